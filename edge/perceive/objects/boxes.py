"""What all detectors share after decoding: hostile rows out, boxes onto the picture, class-wise suppression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge.perceive.objects.preprocess import Placement

# A network that says more than this about one picture is not describing it; bounds the cost of the suppression.
MAX_CANDIDATES = 1000
MAX_DETECTIONS = 100  # COCO evaluates at most 100 a picture (Lin et al. 2014)
# A box may hang over the edge of the input, but not be several times its size.
_HUGE = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Decoded rows above the threshold, in px of the network's input, before suppression."""

    boxes: NDArray[np.float32]  # (n, 4) x1, y1, x2, y2
    scores: NDArray[np.float32]  # (n,)
    classes: NDArray[np.int64]  # (n,) position in the list of labels
    refused: int = 0  # rows left out already because their scores were no numbers

    @staticmethod
    def none(refused: int = 0) -> Candidates:
        """No rows."""
        return Candidates(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64), refused)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What is left, best first, in px of the picture."""

    boxes: NDArray[np.float32]  # (n, 4), clipped to the picture
    scores: NDArray[np.float32]  # (n,), 0..1
    classes: NDArray[np.int64]  # (n,)
    refused: int  # rows dropped as hostile: not finite, scores beyond 1, inverted or huge boxes, unknown classes


def finish(
    candidates: Candidates, placement: Placement, size: tuple[int, int], labels: int, suppress_at: float | None
) -> Found:
    """Turn candidates into detections.

    Args:
        candidates: decoded rows.
        placement: where the picture lies on the input.
        size: width and height of the input, px.
        labels: number of classes.
        suppress_at: IoU above which the weaker box of the same class goes; None for end-to-end networks.
    """
    boxes, scores, classes = candidates.boxes, candidates.scores, candidates.classes
    with np.errstate(invalid="ignore", over="ignore"):
        wide, high = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
        sound = np.isfinite(boxes).all(axis=1) & np.isfinite(scores) & (scores >= 0) & (scores <= 1 + 1e-3)
        sound &= (wide > 0) & (high > 0) & (wide <= _HUGE * size[0]) & (high <= _HUGE * size[1])
        sound &= (classes >= 0) & (classes < labels)
    refused = candidates.refused + int((~sound).sum())
    boxes, scores, classes = placement.to_image(boxes[sound]), np.minimum(scores[sound], 1), classes[sound]
    boxes[:, 0::2] = boxes[:, 0::2].clip(0, placement.width)
    boxes[:, 1::2] = boxes[:, 1::2].clip(0, placement.height)
    # Boxes that lie wholly in the padding are harmless: nothing of them is on the picture.
    visible = (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    boxes, scores, classes = boxes[visible], scores[visible], classes[visible]
    order = np.argsort(-scores, kind="stable")[:MAX_CANDIDATES]
    boxes, scores, classes = boxes[order], scores[order], classes[order]
    if suppress_at is not None:
        kept = suppress(boxes, classes, suppress_at)
        boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
    return Found(boxes[:MAX_DETECTIONS], scores[:MAX_DETECTIONS], classes[:MAX_DETECTIONS], refused)


def suppress(boxes: NDArray[np.float32], classes: NDArray[np.int64], threshold: float) -> NDArray[np.bool_]:
    """Class-wise non-maximum suppression of boxes (n, 4) sorted by falling score; True: stays."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept = np.ones(len(boxes), bool)
    for i in range(len(boxes)):
        if not kept[i]:
            continue
        rest = boxes[i + 1 :]
        wide = np.minimum(boxes[i, 2], rest[:, 2]) - np.maximum(boxes[i, 0], rest[:, 0])
        high = np.minimum(boxes[i, 3], rest[:, 3]) - np.maximum(boxes[i, 1], rest[:, 1])
        shared = wide.clip(0) * high.clip(0)
        union = area[i] + area[i + 1 :] - shared
        kept[i + 1 :] &= ~((shared > threshold * union) & (classes[i + 1 :] == classes[i]))
    return kept
