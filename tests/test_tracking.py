"""Following people and things inside a segment: the pure cores, with properties."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.perceive.mouth import MouthMove, compare, mouth_motion
from edge.perceive.schedule import FaceLook, Schedule
from edge.perceive.shots import CANDIDATES, keep_shot
from edge.perceive.sightings import Sighting, gather, head_distance
from edge.perceive.stitch import one_class, split, stitch, usable_mean
from edge.perceive.tracking import Seen, Tracker, Tracklet
from edge.perceive.voices import Face, tie
from edge.types.evidence import Box, Detection, FaceShot, Voice
from edge.types.media import Span
from tests.vision_support import astronaut, face_at, person_around

WIDTH, HEIGHT = 640, 480


def box_at(x: float, y: float, side: float = 80.0) -> Box:
    return (x, y, x + side, y + 2 * side)


boxes = st.tuples(st.floats(-50, 600), st.floats(-50, 440), st.floats(5, 300), st.floats(5, 300)).map(
    lambda v: (v[0], v[1], v[0] + v[2], v[1] + v[3])
)
detections = st.builds(Detection, label=st.sampled_from(["person", "cup", "tv"]), score=st.floats(0.38, 1.0), box=boxes)
faces = st.builds(
    face_at, x=st.floats(-20, 600), y=st.floats(-20, 440), width=st.floats(8, 150), score=st.floats(0.6, 1.0)
)
frames = st.lists(st.tuples(st.lists(detections, max_size=5), st.lists(faces, max_size=3)), min_size=1, max_size=8)


def follow(script: Sequence[tuple[Sequence[Detection], Sequence[object]]]) -> Tracker:
    tracker = Tracker()
    for index, (found, seen) in enumerate(script):
        tracker.update(float(index), gather(found, seen, WIDTH, HEIGHT))  # type: ignore[arg-type]
    return tracker


def shape(tracker: Tracker) -> list[object]:
    return [(t.number, t.label, [(s.frame, s.body, s.face) for s in t.seen]) for t in tracker.tracklets]


@given(script=frames, seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=60)
def test_the_order_of_detections_in_a_frame_changes_nothing(script: list[tuple[list, list]], seed: int) -> None:
    mixer = random.Random(seed)
    shuffled = [(mixer.sample(found, len(found)), mixer.sample(seen, len(seen))) for found, seen in script]
    assert shape(follow(script)) == shape(follow(shuffled))


@given(script=frames)
@settings(deadline=None, max_examples=60)
def test_a_track_is_in_one_place_at_a_time_and_numbers_are_unique(script: list[tuple[list, list]]) -> None:
    tracker = Tracker()
    total = 0
    for index, (found, seen) in enumerate(script):
        sightings = gather(found, seen, WIDTH, HEIGHT)
        taken = tracker.update(float(index), sightings)
        assert len({tracklet.number for tracklet in taken}) == len(sightings)
        assert [tracklet.label for tracklet in taken] == [sighting.label for sighting in sightings]
        total += len(sightings)
    assert [tracklet.number for tracklet in tracker.tracklets] == list(range(len(tracker.tracklets)))
    for tracklet in tracker.tracklets:
        at = [seen.frame for seen in tracklet.seen]
        assert at == sorted(set(at))
    assert sum(len(tracklet.seen) for tracklet in tracker.tracklets) == total


@given(found=st.lists(detections, max_size=6), seen=st.lists(faces, max_size=4))
@settings(deadline=None)
def test_every_face_makes_one_person(found: list[Detection], seen: list) -> None:
    sightings = gather(found, seen, WIDTH, HEIGHT)
    shown = [sighting.face for sighting in sightings if sighting.face is not None]
    assert sorted(id(face) for face in shown) == sorted(id(face) for face in seen)
    assert all(sighting.label == "person" for sighting in sightings if sighting.face is not None)


def test_a_face_goes_with_its_body_and_two_bodies_keep_theirs() -> None:
    left, right = face_at(100, 100), face_at(260, 110)
    sightings = gather([person_around(right), person_around(left)], [right, left], WIDTH, HEIGHT)
    assert [(s.face, s.body is not None) for s in sightings] == [(left, True), (right, True)]


def test_a_box_that_cannot_be_its_body_takes_no_face() -> None:
    face = face_at(300, 300, 30)
    assert head_distance(face.box, (0, 0, 640, 480)) is None
    assert head_distance(face.box, person_around(face).box) is not None
    (alone,) = gather([Detection("person", 0.45, (0.0, 0.0, 640.0, 480.0))], [face], WIDTH, HEIGHT)
    assert alone.body is None


def test_two_boxes_around_one_face_are_one_person() -> None:
    face = face_at(200, 100)
    body = person_around(face)
    x1, y1, x2, y2 = body.box
    double = Detection("person", 0.7, (x1 + 5, y1 - 10, x2 - 5, y2 - 60))
    (only,) = gather([body, double], [face], WIDTH, HEIGHT)
    assert only.face is face


def test_a_person_is_followed_over_a_gap_and_lost_after_a_long_one() -> None:
    def walk(gap: int) -> int:
        script = [([Detection("person", 0.8, box_at(100 + 5 * i, 100))], []) for i in range(3)]
        script += [([], [])] * gap
        script += [([Detection("person", 0.8, box_at(115 + 5 * i, 100))], []) for i in range(3)]
        return len(follow(script).tracklets)

    assert walk(3) == 1
    assert walk(8) == 2


def test_nobody_is_missed_by_a_detector_that_did_not_look() -> None:
    tracker = Tracker()
    tracker.update(0.0, gather([Detection("cup", 0.8, box_at(300, 200, 40))], [face_at(100, 100)], WIDTH, HEIGHT))
    for index in range(1, 30):
        tracker.update(float(index), (), objects_looked=False, faces_looked=False)
    tracker.update(30.0, gather([Detection("cup", 0.8, box_at(300, 200, 40))], [face_at(104, 100)], WIDTH, HEIGHT))
    assert [len(tracklet.seen) for tracklet in tracker.tracklets] == [2, 2]


def test_a_body_moves_along_with_its_face_while_only_faces_are_looked_for() -> None:
    tracker = Tracker()
    face = face_at(100, 100)
    tracker.update(0.0, gather([person_around(face)], [face], WIDTH, HEIGHT))
    for index in range(1, 5):
        tracker.update(float(index), gather([], [face_at(100 + 60 * index, 100)], WIDTH, HEIGHT), objects_looked=False)
    end = face_at(340, 100)
    tracker.update(5.0, gather([person_around(end)], [], WIDTH, HEIGHT))
    assert len(tracker.tracklets) == 1


def test_people_whose_clothes_differ_keep_their_tracks_when_they_cross() -> None:
    red, blue = np.zeros(8, np.float32), np.zeros(8, np.float32)
    red[0] = blue[4] = 1
    tracker = Tracker()
    owners: list[tuple[int, int]] = []
    for step in range(11):
        sightings = [
            Sighting("person", 0.8, box_at(40 + 40 * step, 100), look=red),
            Sighting("person", 0.8, box_at(440 - 40 * step, 104), look=blue),
        ]
        first, second = tracker.update(float(step), sightings)
        owners.append((first.number, second.number))
    assert set(owners) == {(0, 1)}


def unit(*values: float) -> np.ndarray:
    vector = np.array([*values, 0.05], np.float32)
    return vector / np.linalg.norm(vector)


def shot(at: float, vector: np.ndarray | None, *, width: float = 90.0, turn: float = 0.1) -> FaceShot:
    return FaceShot(
        at=at,
        box=(0.0, 0.0, width, width),
        landmarks=np.zeros((5, 2), np.float32),
        score=0.99,
        width=width,
        sharpness=80.0,
        yaw=turn,
        norm=65.0 if vector is not None else 0.0,
        embedding=vector,
    )


def tracklet(number: int, frames_seen: Sequence[int], shots: Sequence[FaceShot], *, weak: bool = False) -> Tracklet:
    seen = [Seen(frame, float(frame), box_at(10, 10), box_at(20, 20, 20), 0.8) for frame in frames_seen]
    return Tracklet(number=number, label="person", seen=seen, shots=list(shots), weak=weak)


ANNA, BEN = unit(1, 0, 0), unit(0, 1, 0)


def test_tracks_that_were_swapped_are_cut_and_put_together_again() -> None:
    one = tracklet(0, range(10), [shot(i, ANNA if i < 5 else BEN) for i in range(10)], weak=True)
    two = tracklet(1, range(10), [shot(i, BEN if i < 5 else ANNA) for i in range(10)], weak=True)
    numbers = iter(range(2, 100))
    parts = [part for t in (one, two) for part in split(t, t.shots, numbers)]
    assert len(parts) == 4
    means = {part.number: mean for part in parts if (mean := usable_mean(part.shots)) is not None}
    joined = stitch(parts, means)
    assert len(joined) == 2
    for track, person in zip(joined, (ANNA, BEN), strict=True):
        assert [seen.frame for seen in track.seen] == list(range(10))
        assert all(float(s.embedding @ person) > 0.9 for s in track.shots if s.embedding is not None)


def test_one_odd_shot_cuts_nothing() -> None:
    whole = tracklet(0, range(8), [shot(i, BEN if i == 4 else ANNA) for i in range(8)])
    assert split(whole, whole.shots, iter([9])) == [whole]
    mean = usable_mean(whole.shots)
    assert mean is not None
    assert float(mean @ ANNA) > 0.99, "and it does not pull the mean"


def test_people_in_view_together_are_never_joined() -> None:
    one = tracklet(0, range(6), [shot(i, ANNA) for i in range(6)])
    two = tracklet(1, range(3, 9), [shot(i, ANNA) for i in range(3, 9)])
    assert len(stitch([one, two], {0: ANNA, 1: ANNA})) == 2
    later = tracklet(2, range(10, 12), [shot(i, ANNA) for i in range(10, 12)])
    (joined,) = stitch([one, later], {0: ANNA, 2: ANNA})
    assert (joined.number, len(joined.seen)) == (0, 8)
    assert len(stitch([one, later], {0: ANNA, 2: BEN})) == 2


def test_one_thing_under_two_names_is_one_thing() -> None:
    cup = Tracklet(0, "cup", [Seen(i, float(i), box_at(50, 50), None, 0.7) for i in range(4)])
    bowl = Tracklet(1, "bowl", [Seen(5, 5.0, box_at(51, 50), None, 0.5)])
    beside = Tracklet(2, "bowl", [Seen(5, 5.0, box_at(300, 50), None, 0.5)])
    assert one_class([cup, bowl, beside]) == [cup, beside]


@given(qualities=st.lists(st.tuples(st.floats(20, 200), st.floats(0, 2)), min_size=1, max_size=60))
def test_candidates_are_bounded_in_order_and_keep_the_best(qualities: list[tuple[float, float]]) -> None:
    kept: list[FaceShot] = []
    for at, (width, turn) in enumerate(qualities):
        keep_shot(kept, shot(at / 2, None, width=width, turn=turn))
        assert len(kept) <= CANDIDATES
        assert [s.at for s in kept] == sorted(s.at for s in kept)
    best = max(range(len(qualities)), key=lambda i: (min(qualities[i][0], 80), -qualities[i][1]))
    if qualities[best][1] == 0 and qualities[best][0] >= 80:
        assert any(s.width >= 80 and s.yaw < 0.2 for s in kept)


def test_candidates_still_show_who_was_there_only_for_a_moment() -> None:
    kept: list[FaceShot] = []
    for i in range(60):
        late = i >= 54
        keep_shot(kept, shot(i / 2, None, width=60.0 if late else 90.0))
    assert any(s.at >= 27 for s in kept)
    assert any(s.at <= 3 for s in kept)


def test_mouth_motion_is_high_when_only_the_mouth_moves_and_zero_when_nothing_does() -> None:
    crop = astronaut()[90:202, 170:282].copy()
    open_mouth = crop.copy()
    open_mouth[84:104, 40:72] = open_mouth[84:104, 40:72][::-1]
    alternating = [crop, open_mouth] * 4
    talk = [compare((i / 2, a), (i / 2 + 0.5, b)) for i, (a, b) in enumerate(itertools.pairwise(alternating))]
    assert mouth_motion(talk) > 2
    still = [compare((i / 2, crop), (i / 2 + 0.5, crop)) for i in range(6)]
    assert mouth_motion(still) == 0.0
    assert mouth_motion(talk[:1]) == 0.0, "two shots say nothing"
    shifted = [np.roll(crop, i % 2, axis=1) for i in range(8)]
    jitter = [compare((0.0, a), (1.0, b)) for a, b in itertools.pairwise(shifted)]
    assert mouth_motion(jitter) < 1.3


def moves(value: float, start: float = 0.0, count: int = 8) -> list[MouthMove]:
    return [MouthMove(start + i / 2, start + i / 2 + 0.5, 4 * value, 4.0) for i in range(count)]


def voice(anchor: str = "v1", seconds: float = 3.0) -> Voice:
    return Voice(anchor, seconds, None, True, "x")


@pytest.mark.parametrize(
    ("people", "spans", "track"),
    [
        ([Face("a1", 0, 10, moves(2.0))], [Span(1, 4)], "a1"),
        ([Face("a1", 0, 10, moves(0.9))], [Span(1, 4)], None),
        ([Face("a1", 0, 10, ())], [Span(1, 4)], None),
        ([Face("a1", 0, 2, moves(2.0))], [Span(1, 4)], None),  # gone while the voice goes on
        ([Face("a1", 0, 10, moves(2.0)), Face("a2", 0, 10, moves(0.9))], [Span(1, 4)], "a1"),
        ([Face("a1", 0, 10, moves(2.0)), Face("a2", 0, 10, moves(1.8))], [Span(1, 4)], None),
        ([Face("a1", 0, 10, moves(2.0)), Face("a2", 0, 10, ())], [Span(1, 4)], None),  # the other may be speaking
        ([Face("a1", 0, 10, moves(2.0)), Face("a2", 20, 30, ())], [Span(1, 4)], "a1"),
        ([Face("a1", 0, 10, moves(2.0))], [], None),
        ([], [Span(1, 4)], None),
    ],
)
def test_a_voice_is_tied_to_the_face_that_speaks(people: list[Face], spans: list[Span], track: str | None) -> None:
    (result,) = tie([voice()], {"v1": spans}, people)
    assert result.track == track


def test_one_face_speaks_with_one_voice() -> None:
    people = [Face("a1", 0, 10, moves(2.0))]
    turns = {"v1": [Span(0, 1)], "v2": [Span(1, 4)]}
    short, long = tie([voice("v1", 1.0), voice("v2", 3.0)], turns, people)
    assert (short.track, long.track) == (None, "a1")


def test_the_schedule_saves_and_never_goes_blind() -> None:
    schedule = Schedule()
    looks: list[tuple[bool, FaceLook]] = []
    for index in range(12):
        at = index / 2
        objects = schedule.objects(at, 2.0)
        look = schedule.faces(at, 1 if objects else None, 2.0)
        schedule.note(at, objects=objects, look=look, people=1, faces=1)
        looks.append((objects, look))
    assert looks[0] == (True, FaceLook.FULL)
    assert sum(objects for objects, _ in looks) == 4
    assert 1 < sum(look is FaceLook.FULL for _, look in looks) < 5
    assert all(look is not FaceLook.NONE for _, look in looks)


@pytest.mark.parametrize(
    ("faces_seen", "bodies", "change", "objects", "look"),
    [
        (0, 1, 2.0, True, FaceLook.FULL),  # someone whose face is not seen: everything looks
        (1, 2, 2.0, False, FaceLook.AROUND),
        (1, 2, 40.0, True, FaceLook.FULL),  # a new picture
        (1, 1, 40.0, True, FaceLook.FULL),
    ],
)
def test_what_is_uncertain_is_looked_at_more(
    faces_seen: int, bodies: int, change: float, objects: bool, look: FaceLook
) -> None:
    schedule = Schedule()
    schedule.note(0.0, objects=True, look=FaceLook.FULL, people=1, faces=faces_seen)
    assert schedule.objects(0.5, change) is objects
    assert schedule.faces(0.5, bodies if objects else None, change) is look


def test_an_empty_calm_room_costs_every_third_frame_and_no_face_is_missed_for_long() -> None:
    schedule = Schedule()
    schedule.note(0.0, objects=True, look=FaceLook.FULL, people=0, faces=0)
    assert not schedule.objects(0.5, 2.0)
    assert schedule.faces(0.5, None, 2.0) is FaceLook.NONE
    assert schedule.faces(1.5, 0, 2.0) is FaceLook.NONE
    assert schedule.faces(1.5, 1, 2.0) is FaceLook.FULL, "somebody came"
    assert schedule.faces(2.5, 0, 2.0) is FaceLook.FULL
    assert schedule.objects(5.0, 2.0), "after a pause everything is new"
