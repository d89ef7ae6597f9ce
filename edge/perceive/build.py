"""Builds a Perceiver from the catalogue: what is missing is said in a sentence, and the rest works."""

from __future__ import annotations

import structlog

from edge.errors import ModelError
from edge.infer import Catalog, Runtime
from edge.perceive.embed import CropEmbedder, Embedder
from edge.perceive.faces import FaceFinder, build_face_detector
from edge.perceive.objects import ObjectDetector, build_object_detector
from edge.perceive.perceiver import Perceiver
from edge.perceive.speech import build_speech
from edge.perceive.voices import Listener
from edge.settings import PerceiveSettings

log = structlog.get_logger(__name__)


def build_perceiver(
    catalog: Catalog, runtime: Runtime, settings: PerceiveSettings, *, speech: bool = True
) -> Perceiver:
    """Open the default model of each role and put a Perceiver together.

    Args:
        catalog: the known models.
        runtime: opens them.
        settings: what counts as evidence.
        speech: listen to the sound, too.

    Returns:
        A Perceiver; its `missing` says in sentences with remedies which of its senses could not be built.
    """
    missing: list[str] = []

    def absent(error: ModelError, sense: str) -> None:
        missing.append(f"{sense} {error}")
        log.warning("model missing", model=error.model, reason=str(error))

    objects: ObjectDetector | None = None
    faces: FaceFinder | None = None
    face_embedder: Embedder | None = None
    bodies: Embedder | None = None
    listener: Listener | None = None
    try:
        objects = build_object_detector(catalog.default("objects"), runtime, settings.object_threshold)
    except ModelError as error:
        absent(error, "No objects are seen:")
    try:
        faces = build_face_detector(
            catalog.default("faces"), runtime, threshold=settings.face_threshold, input_px=settings.face_input_px
        )
    except ModelError as error:
        absent(error, "No faces are seen:")
    try:
        face_embedder = CropEmbedder(catalog.default("face-embedding"), runtime)
    except ModelError as error:
        absent(error, "No one is known again:")
    if any(spec.role == "body-embedding" and spec.present for spec in catalog.models):
        bodies = CropEmbedder(catalog.default("body-embedding"), runtime)
    if speech:
        analyser = build_speech(catalog, runtime, settings)
        missing.extend(analyser.missing)
        listener = analyser
    return Perceiver(
        objects=objects,
        faces=faces,
        face_embedder=face_embedder,
        bodies=bodies,
        speech=listener,
        settings=settings,
        missing=missing,
    )
