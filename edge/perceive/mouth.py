"""Whose mouth moves: motion of the mouth beside that of the upper face, between aligned crops. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from edge.types.media import Image, Span

# Rows and columns of a 112 px crop: brows, eyes and nose; mouth and chin. With these regions the silent faces of the
# evaluation media reach 1.0 at most and the talkers 1.2 at least (measured at 2 frames/s).
_UPPER = (slice(28, 72), slice(26, 86))
_MOUTH = (slice(80, 109), slice(32, 80))
_SHIFT = 3  # px: alignment jitters by about this much, and a jitter is no motion
_NOISE = 1.0  # grey levels: less is the noise of camera and codec
_FLOOR = 0.5  # grey levels, added to both: a ratio of two small numbers says nothing
_LEAST_MOVES = 2  # three shots


@dataclass(frozen=True, slots=True)
class MouthMove:
    """How much two regions of one face changed between two frames."""

    start: float  # UTC POSIX seconds of the two frames
    end: float
    mouth: float  # mean absolute difference after the best shift, grey levels
    upper: float


def compare(before: tuple[float, Image], now: tuple[float, Image]) -> MouthMove:
    """The motion between two aligned crops.

    Args:
        before: time, UTC POSIX seconds, and (112, 112, 3) crop.
        now: the same, later.
    """
    first, second = (_even(crop) for crop in (before[1], now[1]))
    return MouthMove(before[0], now[0], _residue(first, second, _MOUTH), _residue(first, second, _UPPER))


def mouth_motion(moves: Sequence[MouthMove], spans: Sequence[Span] | None = None) -> float:
    """Median over pairs of frames of mouth motion over upper-face motion; above 1 suggests speaking.

    Args:
        moves: of one track.
        spans: count only pairs that touch one of these; None: all.

    Returns:
        0 when fewer than three shots were compared or nothing moved beyond noise.
    """
    used = [m for m in moves if spans is None or any(m.start <= s.end and m.end >= s.start for s in spans)]
    if len(used) < _LEAST_MOVES:
        return 0.0
    if float(np.median([max(move.mouth, move.upper) for move in used])) <= _NOISE:
        return 0.0
    return float(np.median([(move.mouth + _FLOOR) / (move.upper + _FLOOR) for move in used]))


def _even(crop: Image) -> NDArray[np.float32]:
    return cv2.GaussianBlur(cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY), (3, 3), 0).astype(np.float32)


def _residue(first: NDArray[np.float32], second: NDArray[np.float32], region: tuple[slice, slice]) -> float:
    """What differs in a region after the best small shift and a change of brightness and contrast, grey levels."""
    rows, columns = region
    target = second[rows.start - _SHIFT : rows.stop + _SHIFT, columns.start - _SHIFT : columns.stop + _SHIFT]
    template = first[rows, columns]
    match = cv2.matchTemplate(target, template, cv2.TM_CCOEFF_NORMED)
    _, _, _, (x, y) = cv2.minMaxLoc(match)
    part = target[y : y + template.shape[0], x : x + template.shape[1]]
    spread = float(part.std())
    gain = float(template.std()) / spread if spread > 1e-3 else 1.0
    return float(np.abs((part - part.mean()) * gain - (template - template.mean())).mean())
