"""Sources of pictures and sound, the gateway that makes them uniform, and the segmenter."""
