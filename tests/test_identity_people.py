"""Who is seen: the pure core against synthetic evidence with known identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.identity import Presence, Resolution, resolve
from edge.settings import IdentitySettings
from edge.types.drafts import DecisionDraft
from edge.types.evidence import SegmentEvidence
from edge.types.records import EntityKind, Modality, Outcome
from tests.identity_support import (
    FACES,
    T0,
    Memory,
    between,
    direction,
    known,
    near,
    segment,
    track,
    waits,
)

SETTINGS = IdentitySettings()
ANN, BEN, CAT = direction(1), direction(2), direction(3)


def decision(resolution: Resolution, anchor: str) -> DecisionDraft:
    (found,) = [item for item in resolution.decisions if item.anchor == anchor]
    return found


def writes_nothing(resolution: Resolution) -> bool:
    return not (resolution.entities or resolution.gallery or resolution.pending or resolution.names)


# -- outcomes -------------------------------------------------------------------------------------------------------


def test_an_unknown_safe_face_is_somebody_new_with_a_gallery_and_a_picture() -> None:
    result = resolve(segment([track("a1", ANN)]), known(), SETTINGS)
    (new,) = result.entities
    assert new.kind is EntityKind.PERSON
    assert result.assigned == {"a1": new.key}
    (write,) = result.gallery
    assert (write.entity, write.modality, write.slot, write.embedder, write.anchor) == (
        new.key,
        Modality.FACE,
        0,
        FACES,
        "a1",
    )
    assert write.crop is not None
    assert decision(result, "a1").outcome is Outcome.NEW


@pytest.mark.parametrize(
    ("cosine", "outcome"),
    [(0.95, Outcome.SAME), (0.59, Outcome.SAME), (0.57, Outcome.PENDING), (0.49, Outcome.PENDING), (0.47, Outcome.NEW)],
)
def test_the_score_decides(cosine: float, outcome: Outcome) -> None:
    result = resolve(segment([track("a1", near(ANN, cosine, 7))]), known({4: [ANN]}), SETTINGS)
    assert decision(result, "a1").outcome is outcome
    assert (result.assigned["a1"] == 4) == (outcome is Outcome.SAME)
    assert bool(result.pending) == (outcome is Outcome.PENDING)


def test_the_mean_of_the_best_three_slots_counts_not_the_maximum() -> None:
    slots = [near(ANN, 0.7, 1), near(ANN, 0.3, 2), near(ANN, 0.3, 3), near(ANN, -0.5, 4)]
    assert decision(resolve(segment([track("a1", ANN)]), known({4: slots}), SETTINGS), "a1").outcome is Outcome.NEW


def test_two_candidates_that_are_too_close_leave_it_open() -> None:
    face = between(ANN, BEN, 0.64, 0.62)
    result = resolve(segment([track("a1", face)]), known({4: [ANN], 5: [BEN]}), SETTINGS)
    assert decision(result, "a1").outcome is Outcome.PENDING
    assert result.assigned == {"a1": None}


def test_a_decision_carries_its_evidence_as_json_values() -> None:
    import orjson

    result = resolve(
        segment([track("a1", near(ANN, 0.8, 1)), track("a2", None)]), known({4: [ANN], 5: [BEN]}), SETTINGS
    )
    evidence = orjson.loads(orjson.dumps(dict(decision(result, "a1").evidence)))
    assert evidence["candidates"][0] == {"entity": 4, "score": pytest.approx(0.8, abs=1e-3)}
    assert evidence["thresholds"]["match"] == SETTINGS.face_match
    assert evidence["embedder"] == FACES
    assert evidence["gates"]["norm"] == 66.0
    assert evidence["margin"] > SETTINGS.face_margin
    assert all(item.reason.endswith(".") for item in result.decisions)


# -- unsafe ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [0.0, 34.0, 41.0])
def test_what_a_network_takes_for_a_face_and_is_none_writes_nothing(norm: float) -> None:
    """A shirt has a norm of 34: perception marks it unsafe, and its likeness to somebody is only shown."""
    shirt = track("a1", near(ANN, 0.99, 1), safe=False, norm=norm)
    result = resolve(segment([shirt]), known({4: [ANN]}), SETTINGS)
    assert writes_nothing(result)
    assert result.assigned == {"a1": None}
    assert decision(result, "a1").outcome is Outcome.UNSAFE
    assert decision(result, "a1").evidence["possible"] == [{"entity": 4, "score": pytest.approx(0.99, abs=1e-3)}]


@pytest.mark.parametrize("vector", [np.zeros(64, np.float32), np.full(64, np.nan, np.float32), np.zeros(0, np.float32)])
def test_a_broken_vector_is_no_evidence_whatever_its_gate_says(vector: np.ndarray) -> None:
    result = resolve(segment([track("a1", vector)]), known({4: [ANN]}), SETTINGS)
    assert writes_nothing(result)
    assert decision(result, "a1").outcome is Outcome.UNSAFE


def test_a_person_without_a_face_stays_unknown_even_in_known_clothes() -> None:
    result = resolve(segment([track("a1", None, body=BEN)]), known({4: [ANN]}, bodies={4: [BEN]}), SETTINGS)
    assert writes_nothing(result)
    assert result.assigned == {"a1": None}


def test_things_are_not_decided_about() -> None:
    cup = replace(track("a1", ANN), label="cup")
    result = resolve(segment([cup]), known(), SETTINGS)
    assert writes_nothing(result)
    assert result.assigned == {}


# -- one body, one place --------------------------------------------------------------------------------------------


def test_of_two_tracks_seen_at_once_only_the_better_gets_the_entity() -> None:
    pair = [track("a1", near(ANN, 0.7, 1)), track("a2", near(ANN, 0.9, 2), x=0.6)]
    result = resolve(segment(pair), known({4: [ANN]}), SETTINGS)
    assert result.assigned == {"a1": None, "a2": 4}
    assert decision(result, "a1").outcome is Outcome.CONFLICT
    assert not result.entities
    assert {write.anchor for write in result.gallery} == {"a2"}


def test_a_stranger_and_their_mirror_image_are_one_new_person_and_a_contradiction() -> None:
    pair = [track("a1", near(ANN, 0.9, 1), norm=50.0), track("a2", near(ANN, 0.9, 2), x=0.6, norm=70.0)]
    result = resolve(segment(pair), known(), SETTINGS)
    assert len(result.entities) == 1
    assert result.assigned == {"a1": None, "a2": -1}
    assert decision(result, "a1").outcome is Outcome.CONFLICT


def test_who_is_taken_leaves_the_second_candidate_clear() -> None:
    pair = [track("a1", near(ANN, 0.95, 1)), track("a2", between(ANN, BEN, 0.60, 0.62), x=0.6)]
    result = resolve(segment(pair), known({4: [ANN], 5: [BEN]}), SETTINGS)
    assert result.assigned == {"a1": 4, "a2": 5}


def test_tracks_apart_in_time_may_be_one_person() -> None:
    pair = [track("a1", near(ANN, 0.8, 1), 0, 4), track("a2", near(ANN, 0.8, 2), 6, 9)]
    result = resolve(segment(pair), known({4: [ANN]}), SETTINGS)
    assert result.assigned == {"a1": 4, "a2": 4}


def test_tracks_that_share_one_frame_are_seen_at_once() -> None:
    pair = [track("a1", near(ANN, 0.9, 1), 0, 5), track("a2", near(ANN, 0.8, 2), 5, 9)]
    assert resolve(segment(pair), known({4: [ANN]}), SETTINGS).assigned == {"a1": 4, "a2": None}


def test_tracks_that_clearly_match_two_people_are_not_one() -> None:
    pair = [track("a1", between(ANN, BEN, 0.75, 0.60), 0, 4), track("a2", between(ANN, BEN, 0.60, 0.75), 6, 9)]
    assert resolve(segment(pair), known({4: [ANN], 5: [BEN]}), SETTINGS).assigned == {"a1": 4, "a2": 5}


def test_new_tracks_apart_in_time_that_match_are_one_new_person() -> None:
    pair = [track("a1", near(ANN, 0.9, 1), 0, 4), track("a2", near(ANN, 0.9, 2), 6, 9)]
    result = resolve(segment(pair), known(), SETTINGS)
    assert len(result.entities) == 1
    assert set(result.assigned.values()) == {-1}


def test_a_doubtful_track_goes_with_a_clear_one_of_the_same_face() -> None:
    clear = near(ANN, 0.9, 1)
    doubtful = between(ANN, clear, 0.52, 0.75)
    pair = [track("a1", clear, 0, 4), track("a2", doubtful, 6, 9)]
    assert resolve(segment(pair), known({4: [ANN]}), SETTINGS).assigned == {"a1": 4, "a2": 4}


def test_nobody_is_seen_by_two_cameras_at_once() -> None:
    elsewhere = (Presence(4, "garden", T0 + 3.0, T0 + 8.0),)
    state = known({4: [ANN]}, elsewhere=elsewhere)
    result = resolve(segment([track("a1", near(ANN, 0.9, 1))]), state, SETTINGS)
    assert writes_nothing(result)
    assert decision(result, "a1").outcome is Outcome.CONFLICT
    assert "garden" in decision(result, "a1").reason


@pytest.mark.parametrize(("camera", "start", "end"), [("hall", 3.0, 8.0), ("garden", 5.5, 8.0), ("garden", -9.0, -1.0)])
def test_other_places_at_other_times_are_no_contradiction(camera: str, start: float, end: float) -> None:
    state = known({4: [ANN]}, elsewhere=(Presence(4, camera, T0 + start, T0 + end),))
    assert resolve(segment([track("a1", near(ANN, 0.9, 1))]), state, SETTINGS).assigned == {"a1": 4}


# -- doubt ----------------------------------------------------------------------------------------------------------


def test_a_later_clear_sighting_settles_what_waited() -> None:
    face = near(ANN, 0.8, 1)
    state = known({4: [ANN]}, waiting=[waits(11, between(ANN, face, 0.5, 0.7)), waits(12, CAT)])
    result = resolve(segment([track("a1", face)]), state, SETTINGS)
    assert result.assigned == {"a1": 4}
    assert result.pending_used == (11,)


def test_two_doubtful_sightings_that_agree_match_together() -> None:
    first = near(ANN, 0.56, 1)
    second = between(ANN, first, 0.56, 0.62)
    result = resolve(segment([track("a1", second)]), known({4: [ANN]}, waiting=[waits(11, first)]), SETTINGS)
    assert result.assigned == {"a1": 4}
    assert result.pending_used == (11,)
    assert decision(result, "a1").evidence["earlier"] == [11]


def test_barely_alike_sightings_stay_open_and_three_of_them_are_somebody_new() -> None:
    base = near(ANN, 0.49, 1)
    rows = [waits(11, near(base, 0.95, 2)), waits(12, near(base, 0.95, 3))]
    rows = [replace(row, embedding=between(ANN, base, 0.49, 0.93, row.id)) for row in rows]
    one = resolve(segment([track("a1", base)]), known({4: [ANN]}, waiting=rows[:1]), SETTINGS)
    assert decision(one, "a1").outcome is Outcome.PENDING
    three = resolve(segment([track("a1", base)]), known({4: [ANN]}, waiting=rows), SETTINGS)
    assert decision(three, "a1").outcome is Outcome.NEW
    assert three.pending_used == (11, 12)
    assert not three.pending


def test_lookalikes_do_not_add_up_to_a_match() -> None:
    """Twice .52 gives a mean above the threshold; each alone is too far from it to be believed."""
    first = near(ANN, 0.52, 1)
    second = between(ANN, first, 0.52, 0.585)
    result = resolve(segment([track("a1", second)]), known({4: [ANN]}, waiting=[waits(11, first)]), SETTINGS)
    assert decision(result, "a1").outcome is Outcome.PENDING


def test_two_strangers_of_one_segment_who_resemble_each_other_are_left_open() -> None:
    pair = [track("a1", ANN, 0, 4, norm=70.0), track("a2", near(ANN, 0.52, 1), 6, 9, norm=50.0)]
    result = resolve(segment(pair), known(), SETTINGS)
    assert result.assigned == {"a1": -1, "a2": None}
    assert decision(result, "a2").outcome is Outcome.PENDING


def test_expired_and_foreign_evidence_does_not_count() -> None:
    first = near(ANN, 0.56, 1)
    second = between(ANN, first, 0.56, 0.62)
    rows = [
        replace(waits(11, first), expires=T0),
        waits(12, first, embedder="other@2"),
        waits(13, first, Modality.VOICE),
    ]
    result = resolve(segment([track("a1", second)]), known({4: [ANN]}, waiting=rows), SETTINGS)
    assert decision(result, "a1").outcome is Outcome.PENDING
    assert result.pending_used == ()


# -- embedders ------------------------------------------------------------------------------------------------------


def test_vectors_of_another_embedder_are_never_compared() -> None:
    result = resolve(segment([track("a1", ANN, embedder="faces@2")]), known({4: [ANN]}), SETTINGS)
    assert decision(result, "a1").outcome is Outcome.NEW
    assert {write.embedder for write in result.gallery} == {"faces@2"}
    pair = [track("a1", ANN, 0, 4, embedder="faces@2"), track("a2", ANN, 6, 9)]
    result = resolve(segment(pair), known({4: [ANN]}), SETTINGS)
    assert result.assigned["a2"] == 4
    assert result.assigned["a1"] != 4


def test_a_vector_of_another_length_under_the_same_name_matches_nobody() -> None:
    short = direction(9)[:32] / np.linalg.norm(direction(9)[:32])
    result = resolve(segment([track("a1", short.astype(np.float32))]), known({4: [ANN]}), SETTINGS)
    assert result.assigned["a1"] != 4


# -- bodies ---------------------------------------------------------------------------------------------------------


def test_the_body_helps_a_doubtful_face_and_vetoes_weakly() -> None:
    clothes = direction(30)
    state = known({4: [ANN]}, bodies={4: [clothes]})
    doubtful, clear = near(ANN, 0.55, 1), near(ANN, 0.62, 2)
    helped = resolve(segment([track("a1", doubtful, body=near(clothes, 0.95, 1))]), state, SETTINGS)
    assert helped.assigned == {"a1": 4}
    vetoed = resolve(segment([track("a1", clear, body=near(clothes, -0.2, 1))]), state, SETTINGS)
    assert decision(vetoed, "a1").outcome is Outcome.PENDING
    strong = resolve(segment([track("a1", near(ANN, 0.9, 1), body=near(clothes, -0.2, 1))]), state, SETTINGS)
    assert strong.assigned == {"a1": 4}


def test_the_body_of_yesterday_does_not_count() -> None:
    clothes = direction(30)
    state = known({4: [ANN]}, bodies={4: [clothes]})
    old = {4: replace(state.entities[4], last_seen=T0 - 86_400)}
    result = resolve(segment([track("a1", near(ANN, 0.55, 1), body=clothes)]), replace(state, entities=old), SETTINGS)
    assert decision(result, "a1").outcome is Outcome.PENDING


def test_bodies_that_overlap_are_not_told_apart() -> None:
    clothes = direction(30)
    state = known({4: [ANN]}, bodies={4: [clothes]})
    beside = track("a2", None, x=0.12)
    result = resolve(segment([track("a1", near(ANN, 0.55, 1), body=clothes), beside]), state, SETTINGS)
    assert decision(result, "a1").outcome is Outcome.PENDING


# -- galleries ------------------------------------------------------------------------------------------------------


def test_a_close_sighting_refreshes_its_slot_by_a_moving_average() -> None:
    sighting = near(ANN, 0.9, 1)
    (write,) = resolve(segment([track("a1", sighting)]), known({4: [ANN]}), SETTINGS).gallery
    expected = 0.8 * ANN + 0.2 * sighting
    assert (write.entity, write.slot, write.count) == (4, 0, 2)
    np.testing.assert_allclose(write.embedding, expected / np.linalg.norm(expected), atol=1e-6)


def test_another_view_takes_a_free_slot() -> None:
    (write,) = resolve(segment([track("a1", near(ANN, 0.7, 1))]), known({4: [ANN]}), SETTINGS).gallery
    assert (write.slot, write.count) == (1, 1)


@pytest.mark.parametrize(("norm", "learned"), [(80.0, True), (40.0, False)])
def test_a_full_gallery_changes_only_for_a_better_picture(norm: float, learned: bool) -> None:
    few = SETTINGS.model_copy(update={"face_slots": 2})
    slots = [near(ANN, 0.8, 1), near(ANN, 0.8, 2)]
    result = resolve(segment([track("a1", near(ANN, 0.8, 3), norm=norm)]), known({4: slots}), few)
    assert result.assigned == {"a1": 4}
    assert bool(result.gallery) == learned


def test_a_gallery_does_not_learn_what_resembles_somebody_else() -> None:
    face = between(ANN, BEN, 0.75, 0.5)
    result = resolve(segment([track("a1", face)]), known({4: [ANN], 5: [BEN]}), SETTINGS)
    assert result.assigned == {"a1": 4}
    assert not result.gallery
    assert str(decision(result, "a1").evidence["gallery"]).startswith("refused")


# -- properties -----------------------------------------------------------------------------------------------------

people = st.integers(min_value=0, max_value=5)
sights = st.lists(
    st.tuples(
        people,
        st.floats(0.3, 0.99),  # cosine to the ideal
        st.integers(0, 8),  # start
        st.integers(0, 5),  # length
        st.booleans(),  # safe
        st.integers(0, 1000),
    ),
    max_size=7,
)


def scene(drawn: list[tuple[int, float, int, int, bool, int]], start: float = 0.0) -> SegmentEvidence:
    tracks = [
        track(
            f"a{i + 1}",
            near(direction(who), cosine, seed * 10 + who),
            start + at,
            start + at + length,
            x=i / 10,
            safe=safe,
        )
        for i, (who, cosine, at, length, safe, seed) in enumerate(drawn)
    ]
    return segment(tracks, start=start, end=start + 15)


GALLERIES = known({who + 10: [direction(who), near(direction(who), 0.8, who)] for who in range(4)})


@settings(max_examples=60, deadline=None)
@given(sights)
def test_what_always_holds(drawn: list[tuple[int, float, int, int, bool, int]]) -> None:
    evidence = scene(drawn)
    result = resolve(evidence, GALLERIES, SETTINGS)
    tracks = {item.anchor: item for item in evidence.tracks}
    assert {item.anchor for item in result.decisions} == set(tracks) == set(result.assigned)
    for one in evidence.tracks:
        for other in evidence.tracks:
            at_once = max(one.start, other.start) <= min(one.end, other.end)
            if one is not other and at_once and result.assigned[one.anchor] is not None:
                assert result.assigned[one.anchor] != result.assigned[other.anchor]
    for item in result.decisions:
        face = tracks[item.anchor].face
        assert face is not None
        assert (item.entity is not None) == (item.outcome in (Outcome.SAME, Outcome.NEW))
        assert (item.outcome is Outcome.UNSAFE) == (not face.safe)
    safe = {anchor for anchor, item in tracks.items() if item.face is not None and item.face.safe}
    assert {write.anchor for write in result.gallery} <= safe
    assert {kept.anchor for kept in result.pending} <= safe
    assert {new.key for new in result.entities} == {
        key for key in result.assigned.values() if key is not None and key < 0
    }
    written = [(write.entity, write.modality, write.slot) for write in result.gallery]
    assert len(written) == len(set(written))
    for write in result.gallery:
        assert write.slot < SETTINGS.face_slots
        assert abs(float(np.linalg.norm(write.embedding)) - 1) < 1e-5
        if write.entity > 0:
            others = dict(GALLERIES.galleries[Modality.FACE, FACES].ranked(write.embedding))
            assert max(score for who, score in others.items() if who != write.entity) < SETTINGS.face_pending


@settings(max_examples=60, deadline=None)
@given(sights, st.randoms(use_true_random=False))
def test_order_and_anchors_do_not_matter(drawn: list[tuple[int, float, int, int, bool, int]], chance: object) -> None:
    evidence = scene(drawn)
    tracks = list(evidence.tracks)
    chance.shuffle(tracks)  # type: ignore[attr-defined]
    renamed = {item.anchor: f"a{90 - index}" for index, item in enumerate(tracks)}
    other = replace(evidence, tracks=tuple(replace(item, anchor=renamed[item.anchor]) for item in tracks))
    first = resolve(evidence, GALLERIES, SETTINGS)
    second = resolve(other, GALLERIES, SETTINGS)
    twins = len({item.face.embedding.tobytes() for item in tracks}) < len(tracks)  # type: ignore[union-attr]
    if not twins:
        assert {renamed[anchor]: key for anchor, key in first.assigned.items()} == second.assigned
        assert [(w.entity, w.slot, w.embedding.tobytes()) for w in first.gallery] == [
            (w.entity, w.slot, w.embedding.tobytes()) for w in second.gallery
        ]
    again = resolve(evidence, GALLERIES, SETTINGS)
    assert again.assigned == first.assigned
    assert [item.evidence for item in again.decisions] == [item.evidence for item in first.decisions]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(people, st.floats(0.86, 0.99), st.integers(0, 10_000)), min_size=1, max_size=30))
def test_people_who_come_and_go_are_kept_apart_and_found_again(visits: list[tuple[int, float, int]]) -> None:
    """Shuffled visits of six people: one entity each, however often they come, and galleries that stay apart."""
    memory = Memory()
    found: dict[int, set[int | None]] = {}
    for turn, (who, cosine, seed) in enumerate(visits):
        evidence = segment(
            [track("a1", near(direction(who), cosine, seed * 10 + who), turn * 20, turn * 20 + 3)],
            start=turn * 20,
            end=turn * 20 + 5,
        )
        assigned = memory.commit(evidence, resolve(evidence, memory.state(), SETTINGS))
        found.setdefault(who, set()).add(assigned["a1"])
    assert all(len(entities) == 1 for entities in found.values())
    assert len({next(iter(entities)) for entities in found.values()}) == len(found)
    assert len(memory.entities) == len(found)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(people, st.floats(0.45, 0.7), st.integers(0, 10_000)), min_size=5, max_size=40))
def test_poor_pictures_never_merge_two_people(visits: list[tuple[int, float, int]]) -> None:
    memory = Memory()
    owners: dict[int, set[int]] = {}
    for turn, (who, cosine, seed) in enumerate(visits):
        evidence = segment(
            [track("a1", near(direction(who), cosine, seed * 10 + who), turn * 20, turn * 20 + 3)],
            start=turn * 20,
            end=turn * 20 + 5,
        )
        entity = memory.commit(evidence, resolve(evidence, memory.state(), SETTINGS))["a1"]
        if entity is not None:
            owners.setdefault(entity, set()).add(who)
    assert all(len(people) == 1 for people in owners.values())
