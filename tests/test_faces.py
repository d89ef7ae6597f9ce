"""Faces: decoding, alignment, embeddings on a real photograph, and the gates."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from skimage import data

from edge.errors import ModelError
from edge.infer import Catalog, ModelFile, ModelSpec, Runtime
from edge.perceive.embed import CropEmbedder
from edge.perceive.faces import FaceFinder, align, build_face_detector, decode, detail, priors, sharpness, yaw
from edge.perceive.gates import geometry_fault, on_screen, shot_fault
from edge.perceive.geometry import similarity
from edge.perceive.shots import make_shot
from edge.settings import InferSettings, PerceiveSettings
from edge.types.evidence import Detection, FaceShot
from tests.vision_support import astronaut, backdrop, face_at, paste, read, real_perceiver, watch

STRIDES = (8, 16, 32)
SIZES = ((16, 32), (64, 128), (256, 512))
VARIANCES = (0.1, 0.2)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(InferSettings())


@pytest.fixture(scope="module")
def finder(catalog: Catalog) -> FaceFinder:
    return build_face_detector(catalog.default("faces"), Runtime(InferSettings()), threshold=0.6, input_px=640)


@pytest.fixture(scope="module")
def embedder(catalog: Catalog) -> CropEmbedder:
    return CropEmbedder(catalog.default("face-embedding"), Runtime(InferSettings()))


def heads(height: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    cells = priors(height, width, STRIDES, SIZES)
    count = len(cells)
    conf = np.tile(np.array([1.0, 0.0], np.float32), (count, 1))
    return np.zeros((count, 4), np.float32), conf, np.zeros((count, 10), np.float32), cells


def run_decode(loc: Any, conf: Any, marks: Any, cells: Any, scale: float = 1.0) -> Any:
    return decode(loc, conf, marks, cells, variances=VARIANCES, threshold=0.6, nms_iou=0.4, scale=scale)


@given(
    x=st.floats(40, 280),
    y=st.floats(40, 150),
    width=st.floats(12, 200),
    scale=st.floats(0.3, 3),
    cell=st.integers(0, 10_000),
)
def test_a_face_written_into_the_heads_is_read_back(x: float, y: float, width: float, scale: float, cell: int) -> None:
    loc, conf, marks, cells = heads(192, 320)
    index = cell % len(cells)
    cx, cy, side, _ = cells[index].astype(np.float64)
    height = 1.2 * width
    points = np.array([[x - 5, y - 4], [x + 5, y - 4], [x, y], [x - 4, y + 6], [x + 4, y + 6]])
    loc[index] = [
        (x - cx) / (0.1 * side),
        (y - cy) / (0.1 * side),
        np.log(width / side) / 0.2,
        np.log(height / side) / 0.2,
    ]
    marks[index] = ((points - [cx, cy]) / (0.1 * side)).ravel()
    conf[index] = [0.1, 0.9]
    (face,) = run_decode(loc, conf, marks, cells, scale)
    assert face.score == pytest.approx(0.9)
    want = np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2]) / scale
    assert np.allclose(face.box, want, atol=0.05 / scale)
    assert np.allclose(face.landmarks, points / scale, atol=0.05 / scale)


def test_rows_that_are_not_finite_and_doubles_are_left_out() -> None:
    loc, conf, marks, cells = heads(64, 64)
    conf[10] = [0.0, 0.95]
    conf[11] = [0.0, 0.99]
    loc[11] = np.nan
    conf[12] = [0.0, 0.7]
    loc[12, :2] = (cells[10, :2] - cells[12, :2]) / (0.1 * cells[12, 2])
    (face,) = run_decode(loc, conf, marks, cells)
    assert face.score == pytest.approx(0.95)


def test_priors_cover_every_cell_of_the_strides() -> None:
    cells = priors(384, 640, STRIDES, SIZES)
    assert len(cells) == 2 * sum(-(-384 // s) * -(-640 // s) for s in STRIDES)
    assert cells[0].tolist() == [4.0, 4.0, 16.0, 16.0]
    assert cells[-1].tolist() == [624.0, 368.0, 512.0, 512.0]


@given(
    angle=st.floats(-3.1, 3.1),
    scale=st.floats(0.05, 20),
    dx=st.floats(-500, 500),
    dy=st.floats(-500, 500),
)
def test_similarity_finds_the_transform(angle: float, scale: float, dx: float, dy: float) -> None:
    source = np.array([[38, 51], [73, 51], [56, 71], [41, 92], [70, 92]], np.float64)
    linear = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    target = source @ linear.T + [dx, dy]
    matrix = similarity(source.astype(np.float32), target.astype(np.float32))
    assert np.allclose(matrix[:, :2], linear, atol=1e-3 * max(1, scale))
    assert np.allclose(source @ matrix[:, :2].T + matrix[:, 2], target, atol=0.02 * max(1, scale))


def test_points_that_coincide_have_no_transform() -> None:
    with pytest.raises(ValueError, match="coincide"):
        similarity(np.ones((5, 2), np.float32), np.ones((5, 2), np.float32))


def test_a_real_face_is_found_where_it_is(finder: FaceFinder) -> None:
    picture = astronaut()
    (face, *others) = finder.detect(picture)
    assert not others
    assert face.score > 0.99
    x1, y1, x2, y2 = face.box
    assert 160 < x1 < x2 < 290
    assert 50 < y1 < y2 < 230
    left, right, nose, mouth_left, mouth_right = face.landmarks
    assert left[0] < nose[0] < right[0]
    assert left[1] < nose[1] < mouth_left[1]
    assert mouth_left[0] < mouth_right[0]


@pytest.mark.parametrize("shape", [(512, 1400), (900, 512), (64, 64), (33, 517)])
def test_any_shape_of_picture_is_taken(finder: FaceFinder, shape: tuple[int, int]) -> None:
    canvas = backdrop(shape[1], shape[0])
    picture = paste(canvas, astronaut(), 0, 0)
    for within in (None, (20.0, 10.0, 60.0, 400.0), (-5.0, -5.0, 1e4, 1e4), (1e4, 0.0, 2e4, 9.0)):
        for face in finder.detect(picture, within=within, half=within is not None):
            assert face.box[2] > face.box[0]
    if min(shape) >= 512:
        assert len(finder.detect(picture)) == 1


def test_a_part_of_a_picture_shows_the_same_face_as_the_whole(finder: FaceFinder) -> None:
    picture = paste(backdrop(1000, 700), astronaut(), 300, 100)
    (whole,) = finder.detect(picture)
    x1, y1, x2, y2 = whole.box
    width = x2 - x1
    (part,) = finder.detect(picture, within=(x1 - width, y1 - width, x2 + width, y2 + width))
    assert np.allclose(part.box, whole.box, atol=0.06 * width)
    assert np.abs(part.landmarks - whole.landmarks).max() < 0.04 * width
    assert finder.detect(picture, within=(0.0, 0.0, 200.0, 700.0)) == ()


def test_aligned_landmarks_lie_on_the_template_at_every_scale(finder: FaceFinder) -> None:
    reference = align(astronaut(), finder.detect(astronaut())[0].landmarks)
    assert reference.shape == (112, 112, 3)
    for side in (300, 1024):
        picture = astronaut(side)
        crop = align(picture, finder.detect(picture)[0].landmarks)
        assert np.abs(crop.astype(float) - reference).mean() < 12
    upside = cv2.rotate(astronaut(), cv2.ROTATE_90_CLOCKWISE)
    marks = finder.detect(astronaut())[0].landmarks
    turned = np.stack([511 - marks[:, 1], marks[:, 0]], axis=1)
    assert np.abs(align(np.asarray(upside, np.uint8), turned).astype(float) - reference).mean() < 6


def test_a_real_face_stays_itself_and_is_strong(finder: FaceFinder, embedder: CropEmbedder) -> None:
    picture = astronaut()
    turned = cv2.warpAffine(picture, cv2.getRotationMatrix2D((256, 256), 15, 1), (512, 512))
    dark = (picture * 0.6).astype(np.uint8)
    noisy = np.clip(picture + np.random.default_rng(1).normal(0, 8, picture.shape), 0, 255).astype(np.uint8)
    pictures = [picture, astronaut(300), astronaut(900), np.asarray(turned, np.uint8), dark, noisy]
    crops = [align(p, finder.detect(p)[0].landmarks) for p in pictures]
    results = embedder.embed(crops)
    assert all(norm > 46 for _, norm in results)
    first = results[0][0]
    assert first.shape == (192,)
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    for vector, _ in results[1:]:
        assert float(first @ vector) > 0.8
    for (vector, _), crop in zip(results, crops, strict=True):
        alone = embedder.embed([crop])[0][0]
        assert float(vector @ alone) == pytest.approx(1, abs=1e-4)


def test_what_is_no_face_has_a_weaker_norm(finder: FaceFinder, embedder: CropEmbedder) -> None:
    picture = astronaut()
    ((_, real),) = embedder.embed([align(picture, finder.detect(picture)[0].landmarks)])
    crops = [
        np.ascontiguousarray(picture[y : y + 112, x : x + 112]) for x, y in ((20, 380), (380, 60), (60, 40), (300, 390))
    ]
    norms = [norm for _, norm in embedder.embed(crops)]  # suit, shuttle, flag, suit
    assert max(norms) < real - 5
    assert min(norms) < PerceiveSettings().face_min_norm < real


def arcface_like(folder: Path, *, layout: str, colour: str, size: int, dimensions: int) -> ModelSpec:
    """A network of the usual ArcFace form (NCHW, mean colours, a matrix), small enough to know its answer."""
    weights = np.random.default_rng(7).normal(size=(3, dimensions)).astype(np.float32)
    shape = ["n", 3, size, size] if layout == "nchw" else ["n", size, size, 3]
    axes = [2, 3] if layout == "nchw" else [1, 2]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMean", ["x"], ["m"], axes=axes, keepdims=0),
            helper.make_node("MatMul", ["m", "w"], ["y"]),
        ],
        "arcface-like",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", dimensions])],
        [numpy_helper.from_array(weights, "w")],
    )
    path = folder / f"{layout}-{colour}-{size}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    content = path.read_bytes()
    base = Catalog.load(InferSettings()).default("face-embedding")
    file: ModelFile = replace(
        base.files[0], name=path.name, sha256=hashlib.sha256(content).hexdigest(), size=len(content), location=path
    )
    params = {
        **base.params,
        "layout": layout,
        "colour": colour,
        "input_size": [size, size],
        "mean": [127.5, 100.0, 90.0],
        "std": [127.5, 64.0, 32.0],
        "dimensions": dimensions,
    }
    return replace(base, id=path.stem, files=(file,), params=params)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("colour", ["rgb", "bgr"])
@pytest.mark.parametrize("size", [112, 160])
def test_networks_of_other_layouts_get_the_pixels_that_they_want(
    tmp_path: Path, layout: str, colour: str, size: int
) -> None:
    spec = arcface_like(tmp_path, layout=layout, colour=colour, size=size, dimensions=512)
    embedder = CropEmbedder(spec, Runtime(InferSettings()))
    crop = np.zeros((112, 112, 3), np.uint8)
    crop[:] = (10, 120, 230)
    ((vector, norm),) = embedder.embed([crop])
    pixel = np.array([10, 120, 230] if colour == "bgr" else [230, 120, 10], np.float32)
    weights = np.random.default_rng(7).normal(size=(3, 512)).astype(np.float32)
    want = ((pixel - [127.5, 100.0, 90.0]) / [127.5, 64.0, 32.0]) @ weights
    assert norm == pytest.approx(float(np.linalg.norm(want)), rel=1e-4)
    assert np.allclose(vector, want / np.linalg.norm(want), atol=1e-4)
    assert embedder.key == spec.key


def test_a_detector_of_another_kind_is_refused_in_a_sentence(catalog: Catalog) -> None:
    spec = catalog.default("objects")
    with pytest.raises(ModelError, match="cannot find faces"):
        build_face_detector(spec, Runtime(InferSettings()), threshold=0.6, input_px=640)


GOOD = FaceShot(
    at=0.0,
    box=(0.0, 0.0, 80.0, 100.0),
    landmarks=np.zeros((5, 2), np.float32),
    score=0.99,
    width=80.0,
    sharpness=50.0,
    yaw=0.1,
    norm=65.0,
    embedding=np.ones(4, np.float32) / 2,
    detail=3.0,
)


def test_a_good_shot_passes() -> None:
    assert shot_fault(GOOD, PerceiveSettings()) == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"width": 29.0}, "too small"),
        ({"score": 0.89}, "not sure"),
        ({"yaw": 1.6}, "turned away"),
        ({"sharpness": 2.9}, "blurred"),
        ({"detail": 0.5}, "enlarged"),
        ({"norm": 45.0}, "not clear enough"),
        ({"embedding": None}, "embedded"),
    ],
)
def test_each_gate_says_its_reason(change: dict[str, Any], words: str) -> None:
    assert words in shot_fault(replace(GOOD, **change), PerceiveSettings())


def test_gates_open_at_their_bounds() -> None:
    settings = PerceiveSettings()
    edge = replace(
        GOOD,
        width=settings.face_min_width_px,
        score=settings.face_min_score,
        yaw=settings.face_max_yaw,
        sharpness=settings.face_min_sharpness,
        norm=settings.face_min_norm,
    )
    assert shot_fault(edge, settings) == ""
    assert shot_fault(replace(GOOD, detail=0.0), settings) == "", "0 means that it was not measured"


def test_yaw_counts_turning_and_not_tilting() -> None:
    face = face_at(100, 100)
    assert yaw(face.landmarks) < 0.05
    angle = np.deg2rad(35)
    matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    assert yaw((face.landmarks @ matrix.T).astype(np.float32)) == pytest.approx(yaw(face.landmarks), abs=1e-4)
    assert yaw(face_at(100, 100, turn=1.0).landmarks) == pytest.approx(1.0, abs=0.05)
    assert yaw(np.zeros((5, 2), np.float32)) > PerceiveSettings().face_max_yaw


def test_an_enlarged_face_has_no_detail_and_a_blurred_one_no_sharpness(finder: FaceFinder) -> None:
    picture = astronaut()
    (face,) = finder.detect(picture)
    genuine = detail(picture, face.box)
    scale = 15 / (face.box[2] - face.box[0])
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    enlarged = np.asarray(cv2.resize(small, (512, 512), interpolation=cv2.INTER_CUBIC), np.uint8)
    assert detail(enlarged, face.box) < 0.85 < genuine
    shot = make_shot(0.0, face, enlarged, align(enlarged, face.landmarks))
    assert geometry_fault(shot, PerceiveSettings())
    assert sharpness(align(enlarged, face.landmarks)) < sharpness(align(picture, face.landmarks)) / 4


def test_small_strangers_are_seen_and_never_safe() -> None:
    strangers = data.lfw_subset()[:6]  # faces of 25 px, grey
    canvas = backdrop()
    for index, stranger in enumerate(strangers):
        grey = np.clip(np.asarray(stranger) * 255, 0, 255).astype(np.uint8)
        canvas = paste(canvas, np.repeat(grey[:, :, None], 3, axis=2), 80 + 120 * index, 200)
    evidence = watch(real_perceiver(), [canvas])
    for track in evidence.tracks:
        assert track.face is None or (not track.face.safe and track.face.embedding is None and track.face.reason)
    enlarged = backdrop()
    for index, stranger in enumerate(strangers):
        grey = np.clip(np.asarray(stranger) * 255, 0, 255).astype(np.uint8)
        large = cv2.resize(grey, (140, 140), interpolation=cv2.INTER_CUBIC)
        enlarged = paste(enlarged, np.repeat(large[:, :, None], 3, axis=2), 10 + 155 * index, 200)
    evidence = watch(real_perceiver(), [enlarged])
    seen = [track for track in evidence.tracks if track.face is not None]
    assert len(seen) >= 5, "enlarged faces are found"
    assert not any(track.face is not None and track.face.safe for track in seen)


SCREEN = Detection("tv", 0.8, (100.0, 100.0, 500.0, 400.0))
FACE = (250.0, 200.0, 310.0, 280.0)


@pytest.mark.parametrize(
    ("person", "screen", "shown"),
    [
        (None, SCREEN, True),
        ((200.0, 150.0, 400.0, 398.0), SCREEN, True),
        ((200.0, 180.0, 380.0, 700.0), SCREEN, False),  # someone before the television
        (None, replace(SCREEN, label="refrigerator"), False),
        (None, replace(SCREEN, score=0.3), False),
        (None, replace(SCREEN, box=(0.0, 0.0, 960.0, 720.0)), False),  # the whole picture is no screen in a room
        (None, replace(SCREEN, box=(600.0, 100.0, 900.0, 400.0)), False),
    ],
)
def test_a_face_on_a_screen_is_not_in_the_room(person: Any, screen: Detection, shown: bool) -> None:
    assert on_screen(FACE, person, [screen], 960, 720) is shown


def test_every_pair_of_labelled_photographs_is_decided_rightly(shared: Path) -> None:
    perceiver = real_perceiver()
    folder = shared / "media" / "faces" / "us_gov"
    known = []
    for name, people in {
        "obama.jpg": ["obama"],
        "obama2.jpg": ["obama"],
        "obama3.jpg": ["obama"],
        "biden.jpg": ["biden"],
        "biden2.jpg": ["biden"],
        "two_people.jpg": ["obama", "biden"],
    }.items():
        evidence = watch(perceiver, [read(folder / name, 1280)])
        tracks = [track for track in evidence.tracks if track.face is not None]
        tracks.sort(key=lambda track: track.boxes[0][1])
        assert len(tracks) == len(people), name
        known += [(person, track.face) for person, track in zip(people, tracks, strict=True)]
    for index, (one, first) in enumerate(known):
        assert first is not None
        assert first.safe, first.reason
        for other, second in known[:index]:
            assert second is not None
            assert first.embedding is not None
            assert second.embedding is not None
            assert (float(first.embedding @ second.embedding) >= 0.58) == (one == other)
