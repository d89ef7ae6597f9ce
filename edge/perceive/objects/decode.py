"""Decoders: the raw tensors of a detector → candidate boxes in px of its input. Pure, no picture and no network.

Each takes the outputs in the network's order and raises ValueError, saying what it wants, when their shapes are not its
layout. Scores that are no numbers are counted in `Candidates.refused`; boxes are checked later, in one place for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge.perceive.objects.boxes import Candidates


@dataclass(frozen=True, slots=True)
class Layout:
    """What a decoder has to know of the network."""

    width: int  # px of the input
    height: int
    labels: int  # number of classes
    threshold: float  # candidates below are left out
    strides: tuple[int, ...] = (8, 16, 32)  # px of the input for one cell, finest first


Decoder = Callable[[Sequence[NDArray[Any]], Layout], Candidates]


@dataclass(frozen=True, slots=True)
class DecoderSpec:
    """A decoder and how its candidates are treated."""

    decode: Decoder
    suppress_at: float | None  # IoU for non-maximum suppression unless the catalogue says otherwise; None: end-to-end


def nanodet(outputs: Sequence[NDArray[Any]], layout: Layout) -> Candidates:
    """NanoDet: a class map and a box map a stride; boxes are distributions over distances (Li et al. 2020, GFL, 3.2).

    Class maps (1, C, h, w) hold probabilities; box maps (1, 4·B, h, w) hold B logits for each of left, top, right and
    bottom, whose expectation times the stride is the distance from the cell's centre.
    """
    levels = len(layout.strides)
    if len(outputs) != 2 * levels:
        raise ValueError(
            f"{2 * levels} maps are wanted, a class and a box map for each of the strides {layout.strides}"
        )
    refused = 0
    parts: list[Candidates] = []
    for stride, scores, boxes in zip(layout.strides, outputs[:levels], outputs[levels:], strict=True):
        rows, columns = -(-layout.height // stride), -(-layout.width // stride)
        if scores.shape != (1, layout.labels, rows, columns):
            raise ValueError(f"the class map of stride {stride} must be {(1, layout.labels, rows, columns)}")
        if (
            boxes.ndim != 4
            or boxes.shape[0] != 1
            or boxes.shape[2:] != (rows, columns)
            or boxes.shape[1] % 4
            or boxes.shape[1] < 8
        ):
            raise ValueError(f"the box map of stride {stride} must be (1, 4 times the bins, {rows}, {columns})")
        probabilities = scores.reshape(layout.labels, -1).astype(np.float32, copy=False)
        best, bad = _best(probabilities, layout.threshold, axis=0)
        refused += bad
        if not len(best):
            continue
        classes = probabilities[:, best].argmax(axis=0)
        logits = boxes.reshape(4, boxes.shape[1] // 4, -1)[:, :, best].astype(np.float32)
        with np.errstate(invalid="ignore", over="ignore"):
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            bins = np.arange(logits.shape[1], dtype=np.float32)[None, :, None]
            distance = (weights * bins).sum(axis=1) / weights.sum(axis=1) * stride
        centre_x, centre_y = (best % columns + 0.5) * stride, (best // columns + 0.5) * stride
        corners = [centre_x - distance[0], centre_y - distance[1], centre_x + distance[2], centre_y + distance[3]]
        parts.append(Candidates(np.stack(corners, axis=1).astype(np.float32), probabilities[classes, best], classes))
    if not parts:
        return Candidates.none(refused)
    return Candidates(
        np.concatenate([part.boxes for part in parts]),
        np.concatenate([part.scores for part in parts]),
        np.concatenate([part.classes for part in parts]),
        refused,
    )


def yolov3(outputs: Sequence[NDArray[Any]], layout: Layout) -> Candidates:
    """YOLOv3 and v5, decoded inside the network: rows (1, N, 5 + C) of cx, cy, w, h in px, objectness, classes."""
    rows = _rows(outputs, 5 + layout.labels)
    return _centre_rows(rows[:, :4], rows[:, 5:], layout, objectness=rows[:, 4])


def yolox(outputs: Sequence[NDArray[Any]], layout: Layout) -> Candidates:
    """YOLOX (Ge et al. 2021): rows (1, N, 5 + C); offsets in cells, sizes as their logarithms, stride after stride."""
    rows = _rows(outputs, 5 + layout.labels)
    cells: list[NDArray[np.float32]] = []
    for stride in layout.strides:
        across, down = layout.width // stride, layout.height // stride
        y, x = np.mgrid[:down, :across]
        cells.append(np.stack([x.ravel(), y.ravel(), np.full(across * down, stride)], axis=1).astype(np.float32))
    grid = np.concatenate(cells)
    if len(grid) != len(rows):
        raise ValueError(
            f"an input of {layout.width}×{layout.height} px has {len(grid)} cells, but there are {len(rows)} rows"
        )
    with np.errstate(invalid="ignore", over="ignore"):
        centres = (rows[:, :2] + grid[:, :2]) * grid[:, 2:]
        sizes = np.exp(rows[:, 2:4]) * grid[:, 2:]
    return _centre_rows(np.concatenate([centres, sizes], axis=1), rows[:, 5:], layout, objectness=rows[:, 4])


def yolov8(outputs: Sequence[NDArray[Any]], layout: Layout) -> Candidates:
    """YOLOv8 to v11: columns (1, 4 + C, N) of cx, cy, w, h in px and class probabilities, without objectness."""
    width = 4 + layout.labels
    if not outputs or outputs[0].ndim != 3 or outputs[0].shape[0] != 1 or width not in outputs[0].shape[1:]:
        raise ValueError(f"the output must be (1, {width}, N)")
    rows = outputs[0][0].astype(np.float32, copy=False)
    if rows.shape[0] == width:
        rows = rows.T
    return _centre_rows(rows[:, :4], rows[:, 4:], layout)


def yolo26(outputs: Sequence[NDArray[Any]], layout: Layout) -> Candidates:
    """YOLOv10 and YOLO26, end to end: rows (1, N, 6) of x1, y1, x2, y2 in px, score, class; nothing to suppress."""
    rows = _rows(outputs, 6)
    best, refused = _best(rows[:, 4][None], layout.threshold, axis=0)
    with np.errstate(invalid="ignore"):
        numbers = rows[best, 5]
        whole = np.isfinite(numbers) & (np.abs(numbers - np.rint(numbers)) < 0.01) & (np.abs(numbers) < 1e6)
    classes = np.where(whole, np.rint(np.where(whole, numbers, 0)), -1).astype(np.int64)
    return Candidates(rows[best, :4], rows[best, 4], classes, refused)


DECODERS: Mapping[str, DecoderSpec] = MappingProxyType(
    {
        "nanodet": DecoderSpec(nanodet, 0.5),
        "yolov3-tiny": DecoderSpec(yolov3, 0.45),
        "yolox": DecoderSpec(yolox, 0.45),
        "yolov8": DecoderSpec(yolov8, 0.45),
        "yolo26": DecoderSpec(yolo26, None),
    }
)


def _rows(outputs: Sequence[NDArray[Any]], width: int) -> NDArray[np.float32]:
    if not outputs or outputs[0].ndim != 3 or outputs[0].shape[0] != 1 or outputs[0].shape[2] != width:
        raise ValueError(f"the output must be (1, N, {width})")
    rows: NDArray[np.float32] = outputs[0][0].astype(np.float32, copy=False)
    return rows


def _best(scores: NDArray[np.float32], threshold: float, axis: int) -> tuple[NDArray[np.int64], int]:
    """Positions whose best score reaches the threshold, and how many have a score that is no number."""
    if scores.shape[1 - axis] == 0:
        return np.zeros(0, np.int64), 0
    top = scores.max(axis=axis)  # NaN wins every maximum
    finite = np.isfinite(top)
    return np.flatnonzero(finite & (np.where(finite, top, 0) >= threshold)), int((~finite).sum())


def _centre_rows(
    centred: NDArray[np.float32],
    probabilities: NDArray[np.float32],
    layout: Layout,
    objectness: NDArray[np.float32] | None = None,
) -> Candidates:
    """Rows of centre, size and class probabilities → candidates."""
    with np.errstate(invalid="ignore", over="ignore"):
        scores = probabilities if objectness is None else probabilities * objectness[:, None]
        best, refused = _best(scores, layout.threshold, axis=1)
        half = centred[best, 2:4] / 2
        boxes = np.concatenate([centred[best, :2] - half, centred[best, :2] + half], axis=1)
    classes = scores[best].argmax(axis=1) if len(best) else np.zeros(0, np.int64)
    return Candidates(boxes, scores[best, classes], classes, refused)
