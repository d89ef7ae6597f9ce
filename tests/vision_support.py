"""Pictures, segments and scripted detectors for the tests of the visual half."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import cv2
import numpy as np
from skimage import data

from edge.infer import Catalog, Runtime
from edge.perceive import Perceiver, build_perceiver
from edge.perceive.faces import FoundFace
from edge.settings import InferSettings, PerceiveSettings
from edge.types.evidence import Box, Detection, SegmentEvidence
from edge.types.media import CutReason, Frame, Image, Samples, Segment, SegmentCounts, Span

TEMPLATE = np.array([[0.34, 0.46], [0.66, 0.46], [0.5, 0.64], [0.37, 0.82], [0.63, 0.82]], np.float32)


def astronaut(side: int = 512) -> Image:
    """A real face, 512 px, or scaled."""
    picture = np.ascontiguousarray(data.astronaut()[:, :, ::-1])
    method = cv2.INTER_AREA if side < 512 else cv2.INTER_LINEAR
    return picture if side == 512 else np.asarray(cv2.resize(picture, (side, side), interpolation=method), np.uint8)


def backdrop(width: int = 960, height: int = 540) -> Image:
    """A real photograph without people, out of focus."""
    picture = cv2.resize(np.ascontiguousarray(data.gravel()), (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.GaussianBlur(cv2.cvtColor(picture, cv2.COLOR_GRAY2BGR), (0, 0), 6), np.uint8)


def paste(canvas: Image, sprite: Image, x: int, y: int) -> Image:
    """A copy of the canvas with a picture on it, cut at its edges."""
    result = canvas.copy()
    height, width = sprite.shape[:2]
    x1, y1 = max(0, x), max(0, y)
    x2, y2 = min(canvas.shape[1], x + width), min(canvas.shape[0], y + height)
    if x2 > x1 and y2 > y1:
        result[y1:y2, x1:x2] = sprite[y1 - y : y2 - y, x1 - x : x2 - x]
    return result


def segment(
    start: float, end: float, *, audio: Samples | None = None, speech: tuple[Span, ...] = (), index: int = 0
) -> Segment:
    return Segment(
        camera="test",
        source="0" * 32,
        index=index,
        start=start,
        end=end,
        reason=CutReason.END_OF_SOURCE,
        first_of_event=True,
        still=False,
        audio=audio,
        audio_start=start,
        speech=speech,
        audio_faults=0,
        counts=SegmentCounts(),
    )


def watch(
    perceiver: Perceiver,
    images: Iterable[Image],
    *,
    fps: float = 2.0,
    start: float = 1000.0,
    change: float = 3.0,
    tail: float = 0.5,
) -> SegmentEvidence:
    """One segment of these pictures."""
    at = start
    for index, image in enumerate(images):
        at = start + index / fps
        perceiver.see(Frame(image, at, index, 0.0, 255.0 if index == 0 else change))
    return perceiver.close(segment(start, at + tail))


def real_perceiver(**settings: float) -> Perceiver:
    """The shipped networks, without speech."""
    infer = InferSettings()
    return build_perceiver(Catalog.load(infer), Runtime(infer), PerceiveSettings(**settings), speech=False)  # type: ignore[arg-type]


def read(path: Path, longer: int | None = None) -> Image:
    picture = cv2.imread(str(path))
    assert picture is not None, path
    if longer is not None:
        scale = longer / max(picture.shape[:2])
        picture = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return np.asarray(picture, np.uint8)


def face_at(x: float, y: float, width: float = 60.0, score: float = 0.99, turn: float = 0.0) -> FoundFace:
    """A face with its upper left corner at (x, y); `turn` moves the nose by so many half eye distances."""
    height = 1.25 * width
    points = np.array([x, y], np.float32) + TEMPLATE * np.array([width, height], np.float32)
    points[2, 0] += turn * 0.16 * width
    return FoundFace((x, y, x + width, y + height), points.astype(np.float32), score)


def person_around(face: FoundFace, score: float = 0.8) -> Detection:
    """A person box with this face where a head is."""
    x1, y1, x2, y2 = face.box
    wide, high = x2 - x1, y2 - y1
    box: Box = (x1 - 0.8 * wide, y1 - 0.2 * high, x2 + 0.8 * wide, y2 + 3.5 * high)
    return Detection("person", score, box)


class ScriptedObjects:
    """An object detector that says what a script says for the picture that it is shown."""

    def __init__(self, script: Callable[[Image], Sequence[Detection]]) -> None:
        self.script = script
        self.shown: list[int] = []

    def detect(self, image: Image) -> tuple[Detection, ...]:
        self.shown.append(id(image))
        return tuple(self.script(image))


class ScriptedFaces:
    """A face detector that says what a script says."""

    def __init__(self, script: Callable[[Image], Sequence[FoundFace]]) -> None:
        self.script = script
        self.shown: list[int] = []

    def detect(self, image: Image, *, within: Box | None = None, half: bool = False) -> tuple[FoundFace, ...]:
        del within, half
        self.shown.append(id(image))
        return tuple(self.script(image))


class ColourEmbedder:
    """An embedder whose vector is the mean colour of a crop, centred: equal faces give equal vectors."""

    key = "colour@test"
    size = (112, 112)

    def embed(self, crops: Sequence[Image]) -> tuple[tuple[np.ndarray, float], ...]:
        result = []
        for crop in crops:
            vector = crop[30:90, 30:90].reshape(-1, 3).mean(axis=0).astype(np.float32) - 128
            norm = float(np.linalg.norm(vector))
            result.append((vector / max(norm, 1e-6), norm))
        return tuple(result)
