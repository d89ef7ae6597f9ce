"""Object detection: the decoder that a model wants is named by its catalogue entry."""

from __future__ import annotations

from edge.perceive.objects.boxes import Candidates
from edge.perceive.objects.decode import DECODERS, DecoderSpec, Layout
from edge.perceive.objects.detector import (
    Look,
    NetworkObjectDetector,
    ObjectDetector,
    SceneDetector,
    build_object_detector,
)
from edge.perceive.objects.preprocess import Placement, Preprocessing, prepare

__all__ = [
    "DECODERS",
    "Candidates",
    "DecoderSpec",
    "Layout",
    "Look",
    "NetworkObjectDetector",
    "ObjectDetector",
    "Placement",
    "Preprocessing",
    "SceneDetector",
    "build_object_detector",
    "prepare",
]
