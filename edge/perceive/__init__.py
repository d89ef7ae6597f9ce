"""Frames and sound in, scored evidence out; no decisions."""

from edge.perceive.build import build_perceiver
from edge.perceive.describe import Description, describe
from edge.perceive.perceiver import InView, Perceiver, Sight

__all__ = ["Description", "InView", "Perceiver", "Sight", "build_perceiver", "describe"]
