"""Frames and sound in, scored evidence out; no decisions."""
