"""Pictures of bodies for an appearance embedding: weak evidence, which never identifies alone."""

from __future__ import annotations

import cv2
import numpy as np

from edge.perceive.geometry import clip
from edge.types.evidence import Box
from edge.types.media import Image

_LEAST_SIDE = 24  # px: a smaller box says nothing of clothes


def body_crop(image: Image, box: Box, size: tuple[int, int]) -> Image | None:
    """A body cut out and stretched to the network's input; None when it is too small.

    Args:
        image: (H, W, 3) BGR.
        box: px.
        size: width and height, px.
    """
    height, width = image.shape[:2]
    x1, y1, x2, y2 = (round(value) for value in clip(box, width, height))
    if min(x2 - x1, y2 - y1) < _LEAST_SIDE:
        return None
    part = np.ascontiguousarray(image[y1:y2, x1:x2])
    return cv2.resize(part, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def body_quality(box: Box, score: float, width: int, height: int) -> float:
    """How well a box shows a whole body, 0..1: sure, large, not cut off by the frame."""
    x1, y1, x2, y2 = clip(box, width, height)
    size = min(1.0, ((x2 - x1) * (y2 - y1) / (0.15 * width * height)) ** 0.5) if x2 > x1 and y2 > y1 else 0.0
    margin = 0.01
    cut = (
        (x1 <= margin * width) + (y1 <= margin * height) + (x2 >= (1 - margin) * width) + (y2 >= (1 - margin) * height)
    )
    return score * size * (1 - 0.15 * cut)
