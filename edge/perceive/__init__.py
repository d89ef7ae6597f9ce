"""Frames and sound in, scored evidence out; no decisions."""

from edge.perceive.build import build_perceiver
from edge.perceive.perceiver import InView, Perceiver, Sight

__all__ = ["InView", "Perceiver", "Sight", "build_perceiver"]
