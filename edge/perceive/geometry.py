"""Boxes and similarity transforms: the plane geometry that the visual half shares. Pure."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from edge.types.evidence import Box, NormBox

Points = NDArray[np.float32]  # (n, 2) px


def area(box: Box) -> float:
    """Area of a box, px²; 0 for one that is turned inside out."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def intersection(a: Box, b: Box) -> float:
    """Area that two boxes share, px²."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def iou(a: Box, b: Box) -> float:
    """Intersection over union, 0..1."""
    shared = intersection(a, b)
    union = area(a) + area(b) - shared
    return shared / union if union > 0 else 0.0


def inside(inner: Box, outer: Box) -> float:
    """Share of `inner` that lies in `outer`, 0..1."""
    size = area(inner)
    return intersection(inner, outer) / size if size > 0 else 0.0


def centre(box: Box) -> tuple[float, float]:
    """Middle of a box, px."""
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def diagonal(box: Box) -> float:
    """Length of a box's diagonal, px."""
    return math.hypot(box[2] - box[0], box[3] - box[1])


def clip(box: Box, width: int, height: int) -> Box:
    """The part of a box that lies in a picture of `width` × `height` px."""
    return (
        min(max(box[0], 0.0), float(width)),
        min(max(box[1], 0.0), float(height)),
        min(max(box[2], 0.0), float(width)),
        min(max(box[3], 0.0), float(height)),
    )


def normalise(box: Box, width: int, height: int) -> NormBox:
    """A box in px as fractions of the picture, clipped to it."""
    x1, y1, x2, y2 = clip(box, width, height)
    return x1 / width, y1 / height, x2 / width, y2 / height


def moved(box: Box, anchor_from: Box, anchor_to: Box) -> Box:
    """A box, shifted and scaled as another box was that belongs to it (a body with its face)."""
    scale = (anchor_to[2] - anchor_to[0]) / max(anchor_from[2] - anchor_from[0], 1e-6)
    x = anchor_to[0] + (box[0] - anchor_from[0]) * scale
    y = anchor_to[1] + (box[1] - anchor_from[1]) * scale
    return x, y, x + (box[2] - box[0]) * scale, y + (box[3] - box[1]) * scale


def similarity(source: Points, target: Points) -> NDArray[np.float64]:
    """The similarity transform (rotation, scale, shift; no mirror) that brings `source` nearest to `target`.

    Closed form: least squares over the points (Umeyama, “Least-squares estimation of transformation parameters between
    two point patterns”, 1991, eq. 40–43), which in the plane is one complex division.

    Args:
        source: (n, 2) px, n ≥ 2, not all the same point.
        target: (n, 2) px.

    Returns:
        (2, 3) matrix that maps source to target, as OpenCV's `warpAffine` takes it.

    Raises:
        ValueError: the source points coincide.
    """
    a = source.astype(np.float64)
    b = target.astype(np.float64)
    mean_a, mean_b = a.mean(axis=0), b.mean(axis=0)
    za = (a - mean_a) @ np.array([1, 1j])
    zb = (b - mean_b) @ np.array([1, 1j])
    power = float(np.sum(np.abs(za) ** 2))
    if power <= 1e-12:
        raise ValueError("the source points coincide")
    factor = np.vdot(za, zb) / power  # scale · e^(i·angle)
    linear = np.array([[factor.real, -factor.imag], [factor.imag, factor.real]])
    return np.hstack([linear, (mean_b - linear @ mean_a)[:, None]])
