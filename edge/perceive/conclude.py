"""What the tracklets of a closed segment come to: which of them are something, their faces and their tracks. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edge.perceive.gates import SEEN_TWICE, is_no_face
from edge.perceive.geometry import iou, moved, normalise
from edge.perceive.shots import face_evidence, usable
from edge.perceive.sightings import PERSON
from edge.perceive.stitch import overlap, split, stitch, usable_mean
from edge.perceive.tracking import Tracklet
from edge.settings import PerceiveSettings
from edge.types.evidence import Box, FaceEvidence, NormBox, Track, Vector
from edge.types.media import Segment
from edge.types.vocabulary import ANIMALS

_FLICKER_LOOKS = 3  # what is seen once in so many looks or more needs the score below
_FLICKER_SCORE = 0.6
_EDGE_S = 0.9  # who appears or goes within this of the ends of a segment was not seen coming or going
_ANIMAL_SHARE = 0.7  # overlap with an animal
_NEAR_SHARE = 0.3  # of a box, on each side: whose widened boxes touch may be taken for one another
_SURER = 0.1  # of score
_MIRROR = 0.7  # cosine of two faces in view at one time: one person twice (different people: mean .05; measured)
_MIRROR_FRAMES = 2


@dataclass(slots=True)
class Looks:
    """Which frames were looked at, by their position."""

    sizes: list[tuple[int, int]] = field(default_factory=list)  # width and height of each, px
    objects: list[int] = field(default_factory=list)  # frames that the object detector saw
    faces: list[int] = field(default_factory=list)

    def of(self, tracklet: Tracklet) -> Sequence[int]:
        """The frames in which a tracklet would have been seen."""
        body = any(seen.body is not None for seen in tracklet.seen)
        face = any(seen.face is not None for seen in tracklet.seen)
        if body and face:
            return range(len(self.sizes))
        return self.objects if body else self.faces


def sort_out(people: Sequence[Tracklet], settings: PerceiveSettings, first_free: int) -> list[Tracklet]:
    """Cut tracklets that went over to another person, and join those of one person.

    Args:
        people: tracklets with embedded shots.
        settings: the gates.
        first_free: least number that no tracklet has.
    """
    numbers = iter(range(first_free, first_free + 10_000))
    parts = [part for tracklet in people for part in split(tracklet, usable(tracklet, settings), numbers)]
    means = {part.number: mean for part in parts if (mean := usable_mean(usable(part, settings))) is not None}
    return stitch(parts, means)


def risky(people: Sequence[Tracklet]) -> set[int]:
    """Numbers of tracklets that may hold two people: a link between frames was weak, or others came near."""
    found = {tracklet.number for tracklet in people if tracklet.weak}
    for one, other in itertools.combinations(people, 2):
        if not {one.number, other.number} <= found and _came_near(one, other):
            found |= {one.number, other.number}
    return found


def _came_near(one: Tracklet, other: Tracklet) -> bool:
    by_frame = {seen.frame: seen.box for seen in other.seen}
    return any(
        seen.frame in by_frame and iou(_widened(seen.box), _widened(by_frame[seen.frame])) > 0 for seen in one.seen
    )


def _widened(box: Box) -> Box:
    dx, dy = _NEAR_SHARE * (box[2] - box[0]), _NEAR_SHARE * (box[3] - box[1])
    return box[0] - dx, box[1] - dy, box[2] + dx, box[3] + dy


def is_nothing(tracklet: Tracklet, looks: Looks, settings: PerceiveSettings) -> bool:
    """Whether a tracklet is the flicker of a detector: unsure and seen once among several looks, or no face."""
    by_face_alone = all(seen.body is None for seen in tracklet.seen)
    face = any(shot.score >= settings.face_min_score for shot in tracklet.shots)
    if tracklet.label == PERSON and by_face_alone and (not face or is_no_face(tracklet.shots, settings)):
        return True  # a headlight, the face of a cat: a doubtful face without a body makes nobody
    least = settings.face_min_score if by_face_alone else _FLICKER_SCORE
    once = len({seen.at for seen in tracklet.seen}) == 1 and len(looks.of(tracklet)) >= _FLICKER_LOOKS
    return once and tracklet.seen[0].score < least and not face


def is_animal(tracklet: Tracklet, things: Sequence[Tracklet], settings: PerceiveSettings) -> bool:
    """Whether a person tracklet is an animal that the detectors took for a person, too.

    A cat that fills the picture is boxed as a cat and as a person, and its face is found with a low score. Who shows
    a face that passes the gates is a person; one whose face is large and fails them is not, nor one who is no surer
    than the animal.
    """
    if usable(tracklet, settings):
        return False
    large = any(shot.width >= settings.face_min_width_px for shot in tracklet.shots)
    for thing in things:
        if thing.label in ANIMALS and overlap(tracklet, thing) >= _ANIMAL_SHARE:
            return large or _score(tracklet) <= _score(thing) + _SURER
    return False


def face_evidences(kept: Sequence[Tracklet], embedder: str, settings: PerceiveSettings) -> dict[int, FaceEvidence]:
    """The face of each person by tracklet number; of one face in view twice at a time, the smaller is unsafe."""
    people = [tracklet for tracklet in kept if tracklet.label == PERSON]
    faces = {t.number: face for t in people if (face := face_evidence(t, embedder, settings)) is not None}
    safe = sorted(
        (t for t in people if t.number in faces and faces[t.number].safe),
        key=lambda t: (-max(shot.width for shot in t.shots), t.number),
    )
    for index, smaller in enumerate(safe):
        if any(_twice(smaller, larger, faces) for larger in safe[:index]):
            faces[smaller.number] = replace(faces[smaller.number], safe=False, reason=SEEN_TWICE)
    return faces


def _twice(a: Tracklet, b: Tracklet, faces: Mapping[int, FaceEvidence]) -> bool:
    first, second = faces[a.number].embedding, faces[b.number].embedding
    if first is None or second is None or float(first @ second) < _MIRROR:
        return False
    together = {seen.frame for seen in a.seen if seen.face} & {seen.frame for seen in b.seen if seen.face}
    return len(together) >= min(_MIRROR_FRAMES, len(a.seen), len(b.seen))


def track(
    anchor: str,
    tracklet: Tracklet,
    segment: Segment,
    looks: Looks,
    face: FaceEvidence | None,
    body: tuple[Vector, str] | None,
) -> Track:
    """The track of a tracklet.

    Args:
        anchor: `a1`, `a2`, …
        tracklet: with at least one sighting.
        segment: that it belongs to.
        looks: the frames of the segment.
        face: of a person.
        body: appearance and the key of its embedder.
    """
    first, last = tracklet.seen[0], tracklet.seen[-1]
    looked = looks.of(tracklet)
    before = any(frame < first.frame for frame in looked)
    after = any(frame > last.frame for frame in looked)
    return Track(
        anchor=anchor,
        label=tracklet.label,
        start=first.at,
        # Frames that differ by nothing are not handed on, so who is on the last one stays to the end.
        end=last.at if after else max(last.at, segment.end),
        boxes=_boxes(tracklet, looks),
        score=_score(tracklet),
        face=face,
        body=body[0] if body is not None else None,
        body_embedder=body[1] if body is not None else "",
        entered=before and first.at - segment.start > _EDGE_S,
        left=after and segment.end - last.at > _EDGE_S,
    )


def _score(tracklet: Tracklet) -> float:
    """Mean score of the object detector, of the face detector when only it saw the person."""
    scores = [seen.score for seen in tracklet.seen if seen.body is not None]
    return float(np.mean(scores or [seen.score for seen in tracklet.seen]))


def _boxes(tracklet: Tracklet, looks: Looks) -> tuple[tuple[float, NormBox], ...]:
    """Boxes over time: of the body, and where only the face was found, of the body where it must be."""
    both = [(seen.frame, seen.body, seen.face) for seen in tracklet.seen if seen.body and seen.face]
    boxes: dict[float, NormBox] = {}
    for seen in tracklet.seen:
        box = seen.box
        if seen.body is None and seen.face is not None and both:
            _, body, face = min(both, key=lambda other: (abs(other[0] - seen.frame), other[0]))
            box = moved(body, face, seen.face)
        width, height = looks.sizes[seen.frame]
        boxes[seen.at] = normalise(box, width, height)
    return tuple(boxes.items())
