"""Object detection on real photographs, pictures of every kind, and networks that misbehave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skimage
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from skimage import data, io

from edge.errors import ModelError
from edge.infer import Catalog, ModelSpec, Runtime, TensorInfo
from edge.perceive.objects import DECODERS, ObjectDetector, build_object_detector
from edge.settings import InferSettings


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(InferSettings())


@pytest.fixture(scope="module")
def detector(catalog: Catalog) -> ObjectDetector:
    return build_object_detector(catalog.default("objects"), Runtime(InferSettings()), 0.38)


def bgr(picture: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(picture[:, :, 2::-1])


def motorcycle() -> np.ndarray:
    return io.imread(Path(skimage.__file__).parent / "data" / "motorcycle_left.png")


@pytest.mark.parametrize(
    ("photograph", "label"),
    [
        (data.astronaut, "person"),
        (data.chelsea, "cat"),
        (data.coffee, "cup"),
        pytest.param(motorcycle, "motorcycle", id="motorcycle"),
    ],
)
def test_the_bundled_network_knows_what_is_on_a_photograph(
    detector: ObjectDetector, photograph: Any, label: str
) -> None:
    picture = bgr(photograph())
    found = detector.detect(picture)
    assert label in {item.label for item in found}
    best = next(item for item in found if item.label == label)
    x1, y1, x2, y2 = best.box
    # Each photograph is filled by its subject: the box must be where it is, not merely exist.
    assert (x2 - x1) * (y2 - y1) > 0.2 * picture.shape[0] * picture.shape[1]
    assert 0 <= x1 < x2 <= picture.shape[1]
    assert 0 <= y1 < y2 <= picture.shape[0]
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


def test_a_mirrored_photograph_has_mirrored_boxes(detector: ObjectDetector) -> None:
    picture = bgr(data.chelsea())
    wide = picture.shape[1]
    straight = next(item for item in detector.detect(picture) if item.label == "cat")
    mirrored = next(item for item in detector.detect(np.ascontiguousarray(picture[:, ::-1])) if item.label == "cat")
    assert mirrored.box[0] == pytest.approx(wide - straight.box[2], abs=0.06 * wide)
    assert mirrored.box[2] == pytest.approx(wide - straight.box[0], abs=0.06 * wide)


@pytest.mark.parametrize(
    "shape",
    [(512, 512), (512, 512, 1), (512, 512, 4), (1, 1, 3), (1, 1), (3, 4000, 3), (4000, 3, 3), (0, 0, 3), (0, 5, 3)],
)
def test_pictures_of_every_kind_are_taken(detector: ObjectDetector, shape: tuple[int, ...]) -> None:
    picture = np.random.default_rng(1).integers(0, 255, shape, dtype=np.uint8)
    for item in detector.detect(picture):
        assert 0 <= item.box[0] < item.box[2] <= shape[1]
        assert 0 <= item.box[1] < item.box[3] <= shape[0]


def test_grey_and_alpha_do_not_hide_the_astronaut(detector: ObjectDetector) -> None:
    picture = bgr(data.astronaut())
    grey = picture.mean(axis=2).astype(np.uint8)
    alpha = np.dstack([picture, np.full(picture.shape[:2], 7, np.uint8)])
    assert "person" in {item.label for item in detector.detect(grey)}
    assert detector.detect(alpha) == detector.detect(picture)


def test_the_same_picture_gives_the_same_answer(detector: ObjectDetector) -> None:
    picture = bgr(data.coffee())
    assert detector.detect(picture) == detector.detect(picture.copy())


# -- networks that misbehave ----------------------------------------------------------------------------------------


@dataclass
class Scripted:
    """A network whose outputs are given."""

    answers: list[np.ndarray]
    side: int = 64

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return (TensorInfo("images", (1, 3, self.side, self.side), np.dtype(np.float32)),)

    def run(self, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        assert feeds["images"].shape == (1, 3, self.side, self.side)
        return self.answers

    def open(self, spec: ModelSpec) -> Scripted:
        return self


def scripted(catalog: Catalog, decoder: str, answers: list[np.ndarray], **params: Any) -> ObjectDetector:
    base = dict(catalog.decoders[decoder].params) | {"labels": ("cup", "cat", "dog"), "strides": (8, 16, 32)} | params
    spec = replace(catalog.default("objects"), id="scripted", decoder=decoder, params=base)
    return build_object_detector(spec, Scripted(answers), 0.3)  # type: ignore[arg-type]


SHAPES = {
    "nanodet": [(1, 3, 8, 8), (1, 3, 4, 4), (1, 3, 2, 2), (1, 32, 8, 8), (1, 32, 4, 4), (1, 32, 2, 2)],
    "yolov3-tiny": [(1, 6, 8)],
    "yolox": [(1, 84, 8)],
    "yolov8": [(1, 7, 12)],
    "yolo26": [(1, 30, 6)],
}


def test_every_decoder_of_the_catalogue_for_objects_exists(catalog: Catalog) -> None:
    named = {name for name, decoder in catalog.decoders.items() if "objects" in decoder.roles}
    assert named == set(DECODERS) == set(SHAPES)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(sorted(SHAPES)))
def test_whatever_a_network_says_boxes_stay_in_the_picture(choices: st.DataObject, decoder: str) -> None:
    catalog = Catalog.load(InferSettings())
    values = st.one_of(st.floats(width=32), st.sampled_from([0.0, 0.5, 1.0, 20.0, 40.0, 1e30, -1e30]))
    answers = [choices.draw(arrays(np.float32, shape, elements=values)) for shape in SHAPES[decoder]]
    detector = scripted(catalog, decoder, answers)
    for item in detector.detect(np.zeros((40, 90, 3), np.uint8)):
        assert 0 <= item.box[0] < item.box[2] <= 90
        assert 0 <= item.box[1] < item.box[3] <= 40
        assert 0.3 <= item.score <= 1
        assert item.label in {"cup", "cat", "dog"}


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "row",
    [
        [NAN, 4, 20, 20, 0.9, 0],
        [4, 4, INF, 20, 0.9, 0],
        [4, 4, 20, 20, NAN, 0],
        [4, 4, 20, 20, INF, 0],
        [4, 4, 20, 20, 7.5, 0],
        [20, 4, 4, 20, 0.9, 0],
        [4, 4, 4, 20, 0.9, 0],
        [-1e6, -1e6, 1e6, 1e6, 0.9, 0],
        [4, 4, 20, 20, 0.9, 3],
        [4, 4, 20, 20, 0.9, -1],
        [4, 4, 20, 20, 0.9, NAN],
        [4, 4, 20, 20, 0.9, 0.5],
    ],
)
def test_a_row_that_cannot_be_a_detection_is_dropped_and_counted(catalog: Catalog, row: list[float]) -> None:
    good = [8, 8, 40, 40, 0.8, 1]
    detector = scripted(catalog, "yolo26", [np.array([[row, good]], np.float32)])
    found = detector.detect(np.zeros((64, 64, 3), np.uint8))
    assert [item.label for item in found] == ["cat"]
    assert detector.refused == 1
    detector.detect(np.zeros((64, 64, 3), np.uint8))
    assert detector.refused == 2


def test_a_box_over_the_edge_is_cut_and_one_in_the_padding_is_left_out(catalog: Catalog) -> None:
    # A picture of 64×32 lies at rows 16 to 48 of the square input.
    rows = [[-10, 20, 30, 60, 0.9, 0], [5, 2, 20, 12, 0.9, 1]]
    detector = scripted(catalog, "yolo26", [np.array([rows], np.float32)])
    (only,) = detector.detect(np.zeros((32, 64, 3), np.uint8))
    assert only.box == (0, 4, 30, 32)
    assert detector.refused == 0


def test_only_boxes_of_the_same_class_suppress_each_other(catalog: Catalog) -> None:
    rows = [[32, 32, 20, 20, 0.9, 0.9, 0, 0], [33, 32, 20, 20, 0.9, 0.8, 0, 0], [32, 32, 20, 20, 0.9, 0, 0, 0.8]]
    detector = scripted(catalog, "yolov3-tiny", [np.array([rows], np.float32)])
    assert [item.label for item in detector.detect(np.zeros((64, 64, 3), np.uint8))] == ["cup", "dog"]


def test_a_flood_of_boxes_is_bounded(catalog: Catalog) -> None:
    rng = np.random.default_rng(3)
    centres, sizes = rng.uniform(0, 64, (20_000, 2)), rng.uniform(1, 3, (20_000, 2))
    rows = np.concatenate([centres, sizes, rng.uniform(0.9, 1, (20_000, 4))], axis=1).astype(np.float32)
    assert len(scripted(catalog, "yolov3-tiny", [rows[None]]).detect(np.zeros((64, 64, 3), np.uint8))) == 100


@pytest.mark.parametrize("decoder", sorted(SHAPES))
def test_an_empty_answer_or_one_of_another_shape_is_one_clear_error(catalog: Catalog, decoder: str) -> None:
    for answers in ([], [np.zeros((1, 5, 5, 5, 5), np.float32)], [np.zeros((2, 9), np.float32)] * 6):
        with pytest.raises(ModelError, match=r"scripted.*catalogue entry") as caught:
            scripted(catalog, decoder, answers).detect(np.zeros((8, 8, 3), np.uint8))
        assert caught.value.model == "scripted"


@pytest.mark.parametrize("decoder", ["yolov3-tiny", "yolov8", "yolo26"])
def test_no_rows_are_no_objects(catalog: Catalog, decoder: str) -> None:
    shape = {"yolov3-tiny": (1, 0, 8), "yolov8": (1, 7, 0), "yolo26": (1, 0, 6)}[decoder]
    assert scripted(catalog, decoder, [np.zeros(shape, np.float32)]).detect(np.zeros((8, 8, 3), np.uint8)) == ()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"resize": "crop"}, "resize"),
        ({"mean": (1, 2)}, "mean"),
        ({"std": (0, 1, 1)}, "std"),
        ({"colour": "cmyk"}, "colour"),
        ({"pad_value": [1]}, "pad_value"),
    ],
)
def test_a_wrong_parameter_is_named(catalog: Catalog, params: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        scripted(catalog, "yolov8", [], **params)


def test_a_decoder_for_something_else_is_refused(catalog: Catalog) -> None:
    spec = replace(catalog.default("objects"), decoder="retinaface")
    with pytest.raises(ModelError, match=r"retinaface.*finds no objects"):
        build_object_detector(spec, Runtime(InferSettings()), 0.3)
