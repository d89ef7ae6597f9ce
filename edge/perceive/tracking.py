"""Following people and objects from frame to frame inside one segment. Pure.

Frames come about twice a second and near-duplicates are left out, so a gap in time means that nothing changed:
absence is counted in frames that were looked at, never in seconds.

Invariants: a tracklet has at most one sighting a frame and a sighting belongs to exactly one tracklet; numbers rise
    and are
never used again; the order of the sightings in a frame changes nothing; all sightings of a tracklet have one label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edge.perceive.geometry import area, centre, diagonal, iou, moved
from edge.perceive.mouth import MouthMove
from edge.perceive.sightings import PERSON, Sighting, head_distance
from edge.types.evidence import Box, FaceShot
from edge.types.media import Image

_PERSON_MISSES = 4  # frames looked at without a person before their tracklet ends: two seconds at 2 frames/s
_OBJECT_MISSES = 10  # detectors flicker on small objects, and objects stay where they are
_PERSON_REACH = 0.6  # how far a person moves between frames, in their box's diagonals; more after misses
_OBJECT_REACH = 0.35
_SIZE_RATIO = 2.5  # of box sides, between frames
_LEAST_SCORE = 0.12  # of an association
_WEAK_MISSES = 2  # after so many, someone else may stand there
_WEAK_LINK = 0.3  # overlap under which a link between people may have gone to the wrong one


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a tracklet was in one frame."""

    frame: int  # position among the frames that were looked at, from 0
    at: float  # UTC POSIX seconds
    body: Box | None  # px
    face: Box | None  # px
    score: float
    screen: bool = False

    @property
    def box(self) -> Box:
        """The body's box, or the face's, px."""
        box = self.body if self.body is not None else self.face
        assert box is not None  # noqa: S101 - a sighting has one of the two by construction
        return box


@dataclass(frozen=True, slots=True, eq=False)
class BodyCrop:
    """A picture of a body, kept for its embedding."""

    at: float
    quality: float
    image: Image


@dataclass(slots=True, eq=False)
class Tracklet:
    """One person or object as far as it could be followed."""

    number: int
    label: str
    seen: list[Seen] = field(default_factory=list)
    shots: list[FaceShot] = field(default_factory=list)  # candidates, in order of time
    moves: list[MouthMove] = field(default_factory=list)
    bodies: list[BodyCrop] = field(default_factory=list)
    weak: bool = False  # a link may have gone to the wrong person
    misses: int = 0
    last: Sighting | None = None
    # Time and aligned face of the last shot, by the detector's input: landmarks of different inputs differ by more than a
    # mouth moves.
    last_crops: dict[bool, tuple[float, Image]] = field(default_factory=dict)

    def part(self, number: int, keep: set[int], times: set[float]) -> Tracklet:
        """A tracklet of some of this one's frames."""
        return replace(
            self,
            number=number,
            seen=[seen for seen in self.seen if seen.frame in keep],
            shots=[shot for shot in self.shots if shot.at in times],
            moves=[move for move in self.moves if move.start in times and move.end in times],
            bodies=[body for body in self.bodies if body.at in times],
        )


class Tracker:
    """Associates the sightings of each frame with the tracklets so far."""

    def __init__(self) -> None:
        self._open: list[Tracklet] = []
        self._all: list[Tracklet] = []
        self._frame = -1

    @property
    def tracklets(self) -> tuple[Tracklet, ...]:
        """All tracklets of the segment, in order of first appearance."""
        return tuple(self._all)

    @property
    def in_view(self) -> tuple[Tracklet, ...]:
        """The tracklets that were there when their detector last looked."""
        return tuple(tracklet for tracklet in self._open if tracklet.misses == 0)

    @property
    def frame(self) -> int:
        """Position of the last frame, -1 before the first."""
        return self._frame

    def update(
        self, at: float, sightings: Sequence[Sighting], *, objects_looked: bool = True, faces_looked: bool = True
    ) -> tuple[Tracklet, ...]:
        """Take one frame in.

        Args:
            at: UTC POSIX seconds of the frame, not earlier than those before.
            sightings: what it shows, from `gather`.
            objects_looked: whether the object detector ran: bodies and things are not missed when it did not.
            faces_looked: whether the face detector ran: who is known by the face alone is not missed when it did not.

        Returns:
            The tracklet of each sighting, in the order of `sightings`.
        """
        self._frame += 1
        owners: list[Tracklet | None] = [None] * len(sightings)
        for label in sorted({sighting.label for sighting in sightings}):
            wanted = sorted(
                (index for index, sighting in enumerate(sightings) if sighting.label == label),
                key=lambda index: (sightings[index].box, sightings[index].score),
            )
            candidates = [tracklet for tracklet in self._open if tracklet.label == label]
            for index, tracklet in _associate(candidates, sightings, wanted):
                owners[index] = tracklet
            for index in wanted:
                if owners[index] is None:
                    fresh = Tracklet(number=len(self._all), label=label)
                    self._all.append(fresh)
                    self._open.append(fresh)
                    owners[index] = fresh
        taken: list[Tracklet] = []
        for sighting, owner in zip(sightings, owners, strict=True):
            assert owner is not None  # noqa: S101 - every sighting was given one above
            self._extend(owner, at, sighting, objects_looked)
            taken.append(owner)
        self._age({tracklet.number for tracklet in taken}, objects_looked, faces_looked)
        return tuple(taken)

    def _extend(self, tracklet: Tracklet, at: float, sighting: Sighting, objects_looked: bool) -> None:
        if tracklet.last is not None and tracklet.label == PERSON:
            unsure = tracklet.misses >= _WEAK_MISSES or _overlap(tracklet.last, sighting) < _WEAK_LINK
            tracklet.weak = tracklet.weak or unsure
        face = sighting.face.box if sighting.face is not None else None
        tracklet.seen.append(Seen(self._frame, at, sighting.body, face, sighting.score, sighting.screen))
        tracklet.last = sighting if objects_looked else _with_body(sighting, tracklet.last)
        tracklet.misses = 0

    def _age(self, taken: set[int], objects_looked: bool, faces_looked: bool) -> None:
        still: list[Tracklet] = []
        for tracklet in self._open:
            last = tracklet.last
            by_body = last is not None and last.body is not None and objects_looked
            by_face = last is not None and last.face is not None and faces_looked
            if tracklet.number not in taken and (by_body or by_face):
                tracklet.misses += 1
            if tracklet.misses <= (_PERSON_MISSES if tracklet.label == PERSON else _OBJECT_MISSES):
                still.append(tracklet)
            else:
                tracklet.last = None
                tracklet.last_crops.clear()
        self._open = still


def _with_body(sighting: Sighting, before: Sighting | None) -> Sighting:
    """A sighting of a face alone, with the body of the sighting before moved along."""
    if sighting.body is not None or sighting.face is None:
        return sighting
    if before is None or before.body is None or before.face is None:
        return sighting
    return replace(sighting, body=moved(before.body, before.face.box, sighting.face.box), look=before.look)


def _associate(
    tracklets: Sequence[Tracklet], sightings: Sequence[Sighting], wanted: Sequence[int]
) -> list[tuple[int, Tracklet]]:
    """The assignment of sightings to tracklets with the largest sum of scores."""
    if not tracklets or not wanted:
        return []
    scores = np.zeros((len(wanted), len(tracklets)))
    for row, index in enumerate(wanted):
        for column, tracklet in enumerate(tracklets):
            if tracklet.last is not None:
                scores[row, column] = link(tracklet.last, sightings[index], tracklet.misses)
    from scipy.optimize import linear_sum_assignment  # takes half a second, and most commands follow nobody

    rows, columns = linear_sum_assignment(-scores)
    return [
        (wanted[row], tracklets[column])
        for row, column in zip(rows, columns, strict=True)
        if scores[row, column] >= _LEAST_SCORE
    ]


def link(before: Sighting, now: Sighting, misses: int) -> float:
    """How well two sightings of one label in neighbouring frames go together, 0..1; 0: not at all."""
    person = now.label == PERSON
    reach = (_PERSON_REACH if person else _OBJECT_REACH) * (1 + 0.4 * min(misses, 3))
    place = _place(before, now, reach)
    if place <= 0:
        return 0.0
    if not person:
        return place
    looks = [
        float(np.clip(first @ second, 0, 1))
        for first, second in ((before.look, now.look), (before.face_look, now.face_look))
        if first is not None and second is not None
    ]
    look = sum(looks) / len(looks) if looks else 0.5
    return float(0.55 * place + 0.45 * place**0.25 * look**2)


def _place(before: Sighting, now: Sighting, reach: float) -> float:
    """Agreement in place and size, 0..1."""
    values = []
    if before.body is not None and now.body is not None:
        values.append(_boxes(before.body, now.body, reach))
    if before.face is not None and now.face is not None:
        # A face is a quarter of its body's size: it moves further in its own diagonals.
        values.append(_boxes(before.face.box, now.face.box, 2 * reach))
    if not values:
        body = before.body or now.body
        face = now.face if before.body is not None else before.face
        if body is not None and face is not None:
            distance = head_distance(face.box, body)
            values.append(0.0 if distance is None else max(0.0, 0.6 - distance))
    return max(values, default=0.0)


def _boxes(a: Box, b: Box, reach: float) -> float:
    size_a, size_b = area(a) ** 0.5, area(b) ** 0.5
    if min(size_a, size_b) <= 0 or max(size_a, size_b) > _SIZE_RATIO * min(size_a, size_b):
        return 0.0
    (ax, ay), (bx, by) = centre(a), centre(b)
    distance = float(np.hypot(ax - bx, ay - by)) / ((diagonal(a) + diagonal(b)) / 2)
    if distance > reach:
        return 0.0
    return 0.6 * iou(a, b) + 0.4 * (1 - distance / reach)


def _overlap(before: Sighting, now: Sighting) -> float:
    if before.body is not None and now.body is not None:
        return iou(before.body, now.body)
    if before.face is not None and now.face is not None:
        return iou(before.face.box, now.face.box)
    return 1.0  # a face inside its body
