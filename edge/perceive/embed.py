"""Embedding networks for faces and bodies: crops in, vectors and their raw norms out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from edge.errors import InferenceError
from edge.infer import ModelSpec, Network, Runtime
from edge.types.evidence import Vector
from edge.types.media import Image

_BATCH = 8  # crops in one run: more does not make one thread faster, and memory stays small
_LEAST_NORM = 1e-6


class Embedder(Protocol):
    """What the Perceiver needs of an embedding network."""

    @property
    def key(self) -> str:
        """Names model and weights: vectors of different keys are never compared."""
        ...

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its input, px."""
        ...

    def embed(self, crops: Sequence[Image]) -> tuple[tuple[Vector, float], ...]:
        """For each crop its L2-normalised vector and the norm before."""
        ...


class CropEmbedder:
    """A network that turns one crop into one vector; the catalogue says how it wants its pixels.

    Parameters read from the entry: `input_size` ([width, height], px), `layout` (`nchw` or `nhwc`), `colour` (`rgb`
    or `bgr`), `mean` and `std` (in that order, for pixels 0..255), and optionally `flip` (average with the mirrored
    crop).
    """

    def __init__(self, spec: ModelSpec, runtime: Runtime) -> None:
        params = spec.params
        self._network: Network = runtime.open(spec)
        self._input = self._network.inputs[0].name
        shape = self._network.inputs[0].shape
        self._one_by_one = bool(shape) and shape[0] == 1
        self._channels_last = params["layout"] == "nhwc"
        self._rgb = params["colour"] == "rgb"
        self._mean = np.asarray(params["mean"], np.float32)
        self._std = np.asarray(params["std"], np.float32)
        self._flip = bool(params.get("flip", False))
        self._size = (int(params["input_size"][0]), int(params["input_size"][1]))
        self._key = spec.key

    @property
    def key(self) -> str:
        """Names model and weights."""
        return self._key

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of its input, px."""
        return self._size

    def embed(self, crops: Sequence[Image]) -> tuple[tuple[Vector, float], ...]:
        """For each crop its L2-normalised vector and the norm before (of the unmirrored crop).

        Args:
            crops: (h, w, 3) BGR each, of any size; scaled to the network's.

        Raises:
            InferenceError: the network failed, or gave what is no vector.
        """
        results: list[tuple[Vector, float]] = []
        step = 1 if self._one_by_one else _BATCH
        for start in range(0, len(crops), step):
            pixels = self._pixels(crops[start : start + step])
            raw = self._run(pixels)
            norms = np.linalg.norm(raw, axis=1)
            unit = raw / np.maximum(norms, _LEAST_NORM)[:, None]
            if self._flip:
                mirrored = self._run(pixels[:, :, ::-1])
                unit = unit + mirrored / np.maximum(np.linalg.norm(mirrored, axis=1), _LEAST_NORM)[:, None]
                unit = unit / np.maximum(np.linalg.norm(unit, axis=1), _LEAST_NORM)[:, None]
            results.extend((unit[i].astype(np.float32), float(norms[i])) for i in range(len(raw)))
        return tuple(results)

    def _pixels(self, crops: Sequence[Image]) -> NDArray[np.float32]:
        sized = [crop if crop.shape[1::-1] == self._size else cv2.resize(crop, self._size) for crop in crops]
        pixels = np.stack(sized)
        if self._rgb:
            pixels = pixels[..., ::-1]
        return (pixels.astype(np.float32) - self._mean) / self._std

    def _run(self, pixels: NDArray[np.float32]) -> NDArray[np.float32]:
        feed = pixels if self._channels_last else pixels.transpose(0, 3, 1, 2)
        output = self._network.run({self._input: np.ascontiguousarray(feed)})[0]
        raw = np.asarray(output, np.float32).reshape(len(pixels), -1)
        if not np.isfinite(raw).all():
            raise InferenceError(
                f"The model “{self._key}” gave numbers that are not finite. Check it: `reflectworld models verify`."
            )
        return raw


def mean_vector(vectors: Sequence[Vector]) -> Vector | None:
    """The L2-normalised mean of unit vectors; None for none, or when they cancel out."""
    if not vectors:
        return None
    total = np.sum(np.stack(vectors).astype(np.float64), axis=0)
    norm = float(np.linalg.norm(total))
    return None if norm < _LEAST_NORM else (total / norm).astype(np.float32)
