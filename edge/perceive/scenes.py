"""What a picture looks like as a whole, read off the object detector while it looks for objects: no network runs for it.

Deep inside the detector a map of features stands for what is where in the picture, before boxes are made of it. Its mean over
each quarter of the picture, without what all pictures have in common, is a vector that stays near itself when the same
place is seen from a little aside, in other light or with somebody in front (measured: `tools.bench.scene`).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import Catalog, Runtime
from edge.perceive.objects import SceneDetector, build_object_detector
from edge.settings import PerceiveSettings
from edge.types.evidence import Vector, VisualEvidence
from edge.types.media import Image

_LEAST: Final = 1e-6  # length of a vector that tells something


class Views:
    """The pictures of an open segment: their sum, whatever number they are."""

    def __init__(self, embedder: str = "") -> None:
        self._embedder = embedder
        self._sum: NDArray[np.float64] | None = None
        self._count = 0

    def add(self, view: Vector) -> None:
        """Take a picture's unit vector in."""
        self._sum = view.astype(np.float64) if self._sum is None else self._sum + view
        self._count += 1

    @property
    def evidence(self) -> VisualEvidence | None:
        """What they have in common; None: there were none, or nothing."""
        if self._sum is None:
            return None
        length = float(np.linalg.norm(self._sum))
        if length < _LEAST * self._count:
            return None
        # The mean cosine of unit vectors to the direction of their sum is the length of their mean.
        return VisualEvidence((self._sum / length).astype(np.float32), self._embedder, min(1.0, length / self._count))


class SceneEmbedder:
    """Turns pictures from elsewhere into vectors that can be compared with those of segments."""

    def __init__(self, detector: SceneDetector, model: str) -> None:
        self._detector = detector
        self._model = model

    @property
    def key(self) -> str:
        """Names the network: vectors of different keys are never compared."""
        return self._detector.scene_key

    def embed(self, image: Image) -> Vector:
        """The unit vector of a picture (H, W, 3), BGR.

        Raises:
            ModelError: there is nothing to be read off it.
            InferenceError: the network failed.
        """
        scene = self._detector.look(image).scene
        if scene is None:
            raise ModelError(self._model, "The picture is empty; give one that shows something.")
        return scene


def build_scene_embedder(catalog: Catalog, runtime: Runtime, settings: PerceiveSettings) -> SceneEmbedder:
    """The embedder of the default object detector.

    Raises:
        ModelError: its file is missing, or it is one that no scene can be read off.
    """
    spec = catalog.default("objects")
    detector: Any = build_object_detector(spec, runtime, settings.object_threshold)
    if not isinstance(detector, SceneDetector) or not detector.scene_key:
        raise ModelError(
            spec.id,
            f"Pictures cannot be compared by “{spec.id}”: its catalogue entry names no map of features (`taps`). "
            "Use the detector that comes with the package.",
        )
    return SceneEmbedder(detector, spec.id)
