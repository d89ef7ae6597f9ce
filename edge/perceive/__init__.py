"""Frames and sound in, scored evidence out; no decisions."""

from edge.perceive.build import build_perceiver
from edge.perceive.describe import Description, describe
from edge.perceive.dictation import Dictation, build_dictation
from edge.perceive.perceiver import InView, Perceiver, Sight

__all__ = ["Description", "Dictation", "InView", "Perceiver", "Sight", "build_dictation", "build_perceiver", "describe"]
