"""Every output layout against plain loops, on the real answers of a network to real photographs.

The bundled network looks at a photograph; its raw tensors are read cell by cell by a reference that shares nothing with
the product. What it reads is then written, row by row, in each of the other layouts, and the product must
read the same.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import onnxruntime
import pytest
from skimage import data

from edge.infer import Catalog, Runtime
from edge.perceive.objects import DECODERS, Candidates, Layout
from edge.settings import InferSettings

SIDE, CLASSES, THRESHOLD = 416, 80, 0.3
STRIDES = (8, 16, 32)
LAYOUT = Layout(SIDE, SIDE, CLASSES, THRESHOLD, STRIDES)


@dataclass(frozen=True)
class Cell:
    """What the network says about one cell, in px of its input."""

    stride: int
    column: int
    row: int
    box: tuple[float, float, float, float]
    scores: list[float]


def read_cells(outputs: list[np.ndarray]) -> list[Cell]:
    """NanoDet's tensors, cell by cell."""
    cells = []
    for level, stride in enumerate(STRIDES):
        side = SIDE // stride
        classes, sides = outputs[level].tolist(), outputs[3 + level].tolist()
        for row in range(side):
            for column in range(side):
                distances = []
                for edge in range(4):
                    weights = [math.exp(sides[0][edge * 11 + k][row][column]) for k in range(11)]
                    distances.append(stride * sum(k * weight for k, weight in enumerate(weights)) / sum(weights))
                x, y = (column + 0.5) * stride, (row + 0.5) * stride
                box = (x - distances[0], y - distances[1], x + distances[2], y + distances[3])
                scores = [classes[0][k][row][column] for k in range(CLASSES)]
                cells.append(Cell(stride, column, row, box, scores))
    return cells


@pytest.fixture(scope="module", params=["astronaut", "coffee"])
def answer(request: pytest.FixtureRequest) -> tuple[list[np.ndarray], list[Cell]]:
    catalog = Catalog.load(InferSettings())
    spec = catalog.get("nanodet-m-416-int8")
    picture = getattr(data, request.param)()[:, :, ::-1]
    square = cv2.resize(np.ascontiguousarray(picture), (SIDE, SIDE)).astype(np.float32)
    tensor = (square - np.float32([103.53, 116.28, 123.675])) / np.float32([57.375, 57.12, 58.395])
    network = Runtime(InferSettings()).open(spec)
    outputs = network.run({network.inputs[0].name: np.ascontiguousarray(tensor.transpose(2, 0, 1)[None])})
    outputs = outputs[: 2 * len(STRIDES)]  # what comes after them tells of the picture as a whole
    return outputs, read_cells(outputs)


def expected(cells: list[Cell]) -> list[tuple[float, int, tuple[float, float, float, float]]]:
    rows = []
    for cell in cells:
        best = max(range(CLASSES), key=lambda k: cell.scores[k])
        if cell.scores[best] >= THRESHOLD:
            rows.append((cell.scores[best], best, cell.box))
    return rows


def check(got: Candidates, cells: list[Cell]) -> None:
    want = sorted(expected(cells))
    assert len(want) >= 5, "the photograph gives the decoder too little to do"
    order = sorted(range(len(got.scores)), key=lambda i: (got.scores[i], got.classes[i], tuple(got.boxes[i])))
    assert [int(got.classes[i]) for i in order] == [row[1] for row in want]
    np.testing.assert_allclose([got.scores[i] for i in order], [row[0] for row in want], rtol=1e-4)
    np.testing.assert_allclose([got.boxes[i] for i in order], [row[2] for row in want], atol=0.02)
    assert got.refused == 0


def centred(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    x1, y1, x2, y2 = box
    return (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1


def objectness(cell: Cell) -> float:
    """Any split of a score in two factors will do; this one differs from cell to cell."""
    return min(1.0, max(cell.scores) + 0.1)


def test_nanodet(answer: tuple[list[np.ndarray], list[Cell]]) -> None:
    outputs, cells = answer
    check(DECODERS["nanodet"].decode(outputs, LAYOUT), cells)


def test_yolov3(answer: tuple[list[np.ndarray], list[Cell]]) -> None:
    _, cells = answer
    rows = [[*centred(cell.box), objectness(cell), *(s / objectness(cell) for s in cell.scores)] for cell in cells]
    check(DECODERS["yolov3-tiny"].decode([np.array([rows], np.float32)], LAYOUT), cells)


def test_yolox(answer: tuple[list[np.ndarray], list[Cell]]) -> None:
    _, cells = answer
    rows = []
    for cell in cells:
        x, y, wide, high = centred(cell.box)
        place = [x / cell.stride - cell.column, y / cell.stride - cell.row]
        size = [math.log(wide / cell.stride), math.log(high / cell.stride)]
        rows.append([*place, *size, objectness(cell), *(s / objectness(cell) for s in cell.scores)])
    check(DECODERS["yolox"].decode([np.array([rows], np.float32)], LAYOUT), cells)


@pytest.mark.parametrize("transposed", [False, True])
def test_yolov8(answer: tuple[list[np.ndarray], list[Cell]], transposed: bool) -> None:
    _, cells = answer
    columns = np.zeros((1, 4 + CLASSES, len(cells)), np.float32)
    for i, cell in enumerate(cells):
        for k, value in enumerate((*centred(cell.box), *cell.scores)):
            columns[0, k, i] = value
    given = columns.transpose(0, 2, 1) if transposed else columns
    check(DECODERS["yolov8"].decode([given], LAYOUT), cells)


def test_yolo26(answer: tuple[list[np.ndarray], list[Cell]]) -> None:
    _, cells = answer
    rows = sorted(
        ([*cell.box, max(cell.scores), cell.scores.index(max(cell.scores))] for cell in cells), key=lambda r: -r[4]
    )
    check(DECODERS["yolo26"].decode([np.array([rows[:300]], np.float32)], LAYOUT), cells)


def test_half_precision_is_read_too(answer: tuple[list[np.ndarray], list[Cell]]) -> None:
    outputs, cells = answer
    got = DECODERS["nanodet"].decode([output.astype(np.float16) for output in outputs], LAYOUT)
    assert len(got.scores) == pytest.approx(len(expected(cells)), abs=2)


@pytest.mark.parametrize("photograph", ["astronaut", "chelsea", "coffee"])
def test_a_real_yolov3_tiny(photograph: str) -> None:
    """The network's own tensor of a photograph, row by row; REFLECTWORLD_YOLOV3_TINY names its ONNX file."""
    path = os.environ.get("REFLECTWORLD_YOLOV3_TINY")
    if not path or not Path(path).is_file():
        pytest.skip("set REFLECTWORLD_YOLOV3_TINY to an ONNX file of YOLOv3-tiny (416, COCO)")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    square = cv2.resize(getattr(data, photograph)(), (SIDE, SIDE)).astype(np.float32) / 255
    (output,) = session.run(None, {session.get_inputs()[0].name: square.transpose(2, 0, 1)[None]})
    want = []
    for row in output[0].tolist():
        best = max(range(CLASSES), key=lambda k: row[5 + k])
        if row[4] * row[5 + best] >= 0.02:  # a weak network: low enough that it says something
            x, y, wide, high = row[:4]
            want.append((row[4] * row[5 + best], best, (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)))
    got = DECODERS["yolov3-tiny"].decode([output], replace(LAYOUT, threshold=0.02))
    assert len(want) > 5
    np.testing.assert_allclose(got.scores, [row[0] for row in want], rtol=1e-4)
    np.testing.assert_allclose(got.boxes, [row[2] for row in want], atol=0.02)
    assert [int(k) for k in got.classes] == [row[1] for row in want]
