"""Frames and sound in, scored evidence out; no decisions."""

from edge.perceive.build import build_perceiver
from edge.perceive.describe import Description, describe
from edge.perceive.dictation import Dictation, build_dictation
from edge.perceive.perceiver import InView, Perceiver, Sight
from edge.perceive.scenes import SceneEmbedder, build_scene_embedder

__all__ = [
    "Description",
    "Dictation",
    "InView",
    "Perceiver",
    "SceneEmbedder",
    "Sight",
    "build_dictation",
    "build_perceiver",
    "build_scene_embedder",
    "describe",
]
