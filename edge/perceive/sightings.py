"""What one frame shows: people (a body, a face, or both) and objects, each once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from edge.perceive.faces import FoundFace
from edge.perceive.gates import on_screen
from edge.perceive.geometry import area, centre, clip, inside, intersection
from edge.types.evidence import Box, Detection
from edge.types.media import Image

PERSON = "person"

_NOT_THEIRS = 1e6
# A standing adult is eight heads tall, about eleven of the detector's face boxes; a box beyond these proportions holds
# a group, or is none.
_UNSURE = 0.5  # object detector score
_MOST_TALL = 15.0
_MOST_WIDE = 11.0
_RAISED = 3.5  # face heights that raised arms may reach above the face
_DOUBLE_SHARE = 0.8  # of the smaller of two person boxes around one face: the network boxed one person twice


@dataclass(frozen=True, slots=True, eq=False)
class Sighting:
    """One person or object in one frame."""

    label: str
    score: float  # of the object detector, or of the face when only that is seen
    body: Box | None  # the object's box; None: a person of whom only the face was found
    face: FoundFace | None = None
    screen: bool = False  # the face is shown by a screen
    look: NDArray[np.float32] | None = None  # colours of the body, L2-normalised; for association inside a segment
    face_look: NDArray[np.float32] | None = None  # coarse picture of the aligned face, zero mean, L2-normalised

    @property
    def box(self) -> Box:
        """The body's box, or the face's when only that is seen, px."""
        if self.body is not None:
            return self.body
        assert self.face is not None  # noqa: S101 - a sighting has one of the two by construction
        return self.face.box


def head_distance(face: Box, person: Box) -> float | None:
    """How far a face is from where a person's head would be, in widths of the person; None: it cannot be theirs."""
    width, height = person[2] - person[0], person[3] - person[1]
    if width <= 0 or height <= 0 or inside(face, person) < 0.6:
        return None
    x, y = centre(face)
    face_width, face_height = face[2] - face[0], face[3] - face[1]
    if face_width > 1.3 * width or width > _MOST_WIDE * face_width or height > _MOST_TALL * face_height:
        return None
    expected_y = person[1] + 0.6 * face_height
    if y > person[1] + 0.65 * height or y - expected_y > _RAISED * face_height:
        return None
    return (abs(x - (person[0] + person[2]) / 2) + abs(y - expected_y)) / width


def gather(
    detections: Sequence[Detection], faces: Sequence[FoundFace], width: int, height: int
) -> tuple[Sighting, ...]:
    """Join faces with the bodies that they belong to.

    The order of the input does not matter: the result is in one order of its own (label, then left to right).

    Args:
        detections: objects of the frame, px.
        faces: faces of the frame, px.
        width: of the frame, px.
        height: of the frame, px.

    Returns:
        Each person once (a face without a body is a person too) and each object.
    """
    ordered = sorted(detections, key=lambda d: (d.label, d.box, d.score))
    people = [d for d in ordered if d.label == PERSON and area(clip(d.box, width, height)) > 0]
    found = sorted(faces, key=lambda f: (f.box, f.score))
    owners = _owners([f.box for f in found], [d.box for d in people])
    by_person = {person: face for face, person in owners.items()}
    doubles = _doubles(people, by_person, found)
    result: list[Sighting] = []
    for index, person in enumerate(people):
        if index in doubles:
            continue
        face = found[by_person[index]] if index in by_person else None
        shown = face is not None and on_screen(face.box, person.box, ordered, width, height)
        result.append(Sighting(PERSON, person.score, clip(person.box, width, height), face, shown))
    for index, face in enumerate(found):
        if index not in owners:
            result.append(Sighting(PERSON, face.score, None, face, on_screen(face.box, None, ordered, width, height)))
    result.sort(key=lambda sighting: (sighting.box, sighting.score))
    result.extend(
        Sighting(d.label, d.score, clip(d.box, width, height))
        for d in ordered
        if d.label != PERSON and area(clip(d.box, width, height)) > 0
    )
    return tuple(result)


def _owners(faces: Sequence[Box], people: Sequence[Box]) -> dict[int, int]:
    """Face index → person index, the assignment with the smallest sum of distances."""
    if not faces or not people:
        return {}
    cost = np.full((len(faces), len(people)), _NOT_THEIRS)
    for i, face in enumerate(faces):
        for j, person in enumerate(people):
            distance = head_distance(face, person)
            if distance is not None:
                cost[i, j] = distance
    from scipy.optimize import linear_sum_assignment  # takes half a second, and most commands follow nobody

    rows, columns = linear_sum_assignment(cost)
    return {int(i): int(j) for i, j in zip(rows, columns, strict=True) if cost[i, j] < _NOT_THEIRS}


def _doubles(people: Sequence[Detection], by_person: dict[int, int], faces: Sequence[FoundFace]) -> set[int]:
    """Person boxes without a face of their own that show nobody else than one that has a face.

    Either both box the same person, or the detector is unsure and the box lies around faces that are not its own.
    """
    doubles: set[int] = set()
    for index, person in enumerate(people):
        if index in by_person:
            continue
        if person.score < _UNSURE and any(inside(face.box, person.box) >= 0.9 for face in faces):
            doubles.add(index)
        for other, face in by_person.items():
            smaller = min(area(person.box), area(people[other].box))
            same_place = intersection(person.box, people[other].box) >= _DOUBLE_SHARE * smaller
            if same_place and inside(faces[face].box, person.box) >= 0.6:
                doubles.add(index)
    return doubles


def body_look(image: Image, box: Box) -> NDArray[np.float32] | None:
    """Colours of the middle of a body: a histogram of hue × saturation and of brightness, L2-normalised.

    Weak evidence that lives as long as a segment: it tells two people who cross apart when their clothes differ.
    """
    x1, y1, x2, y2 = box
    w, h = x2 - x1, y2 - y1
    left, top = int(max(0, x1 + 0.2 * w)), int(max(0, y1 + 0.15 * h))
    part = image[top : int(y2 - 0.15 * h) + 1, left : int(x2 - 0.2 * w) + 1]
    if part.size == 0:
        return None
    step = max(1, int(max(part.shape[:2]) / 48))
    hsv = cv2.cvtColor(np.ascontiguousarray(part[::step, ::step]), cv2.COLOR_BGR2HSV)
    colour = cv2.calcHist([hsv], [0, 1], None, [12, 4], [0, 180, 0, 256]).ravel()
    light = cv2.calcHist([hsv], [2], None, [8], [0, 256]).ravel()
    look = np.sqrt(np.concatenate([colour, light])).astype(np.float32)  # roots: the dot product is Bhattacharyya's
    return np.asarray(look / max(float(np.linalg.norm(look)), 1e-6), np.float32)


def face_look(crop: Image) -> NDArray[np.float32]:
    """A coarse picture of an aligned face, 16×16 grey, zero mean, L2-normalised: tells faces apart for a second."""
    grey = cv2.resize(cv2.cvtColor(crop[16:104, 16:96], cv2.COLOR_BGR2GRAY), (16, 16), interpolation=cv2.INTER_AREA)
    look = grey.astype(np.float32).ravel()
    look -= look.mean()
    return np.asarray(look / max(float(np.linalg.norm(look)), 1e-6), np.float32)
