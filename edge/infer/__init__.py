"""ONNX Runtime, the model catalogue and the networks that several rooms share."""
