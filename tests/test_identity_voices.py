"""Who is heard: the pure core against synthetic voices with known owners."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.identity import Resolution, resolve
from edge.settings import IdentitySettings
from edge.types.drafts import DecisionDraft
from edge.types.evidence import SegmentEvidence
from edge.types.records import EntityKind, Modality, NameSource, Outcome
from tests.identity_support import (
    T0,
    Memory,
    between,
    direction,
    known,
    near,
    segment,
    track,
    voice,
    waits,
)

SETTINGS = IdentitySettings()
ANN, BEN = direction(1), direction(2)
ANNS, BENS, NEWS = direction(41), direction(42), direction(43)  # voices


def decision(resolution: Resolution, anchor: str) -> DecisionDraft:
    (found,) = [item for item in resolution.decisions if item.anchor == anchor and "modality" in item.evidence]
    return found


def voice_writes(resolution: Resolution) -> list[int]:
    return [write.entity for write in resolution.gallery if write.modality is Modality.VOICE]


# -- the owner is seen speaking -------------------------------------------------------------------------------------


def test_a_lone_speaker_who_is_seen_speaking_gets_the_voice() -> None:
    result = resolve(segment([track("a1", ANN)], [voice("v1", ANNS, on="a1")]), known({4: [ANN]}), SETTINGS)
    assert result.assigned == {"a1": 4, "v1": 4}
    assert voice_writes(result) == [4]
    assert len(result.entities) == 0


def test_a_new_person_who_is_seen_speaking_is_one_entity_with_face_and_voice() -> None:
    result = resolve(segment([track("a1", ANN)], [voice("v1", ANNS, on="a1")]), known(), SETTINGS)
    assert [new.kind for new in result.entities] == [EntityKind.PERSON]
    assert result.assigned == {"a1": -1, "v1": -1}
    assert voice_writes(result) == [-1]


def test_a_short_voice_is_theirs_and_writes_nothing() -> None:
    result = resolve(segment([track("a1", ANN)], [voice("v1", ANNS, 1.5, on="a1")]), known({4: [ANN]}), SETTINGS)
    assert result.assigned["v1"] == 4
    assert voice_writes(result) == []
    assert not result.pending


def test_among_several_people_the_link_is_learned_the_second_time() -> None:
    people = [track("a1", ANN), track("a2", BEN, x=0.6)]
    state = known({4: [ANN], 5: [BEN]})
    first = resolve(segment(people, [voice("v1", ANNS, on="a1")]), state, SETTINGS)
    assert first.assigned["v1"] == 4
    assert voice_writes(first) == []
    (kept,) = first.pending
    assert (kept.modality, kept.anchor) == (Modality.VOICE, "a1")
    row = waits(11, near(ANNS, 0.85, 1), Modality.VOICE, entity=4)
    second = resolve(segment(people, [voice("v1", ANNS, on="a1")]), replace(state, waiting=(row,)), SETTINGS)
    assert voice_writes(second) == [4]
    assert second.pending_used == (11,)
    other = resolve(
        segment(people, [voice("v1", ANNS, on="a1")]), replace(state, waiting=(replace(row, entity=5),)), SETTINGS
    )
    assert voice_writes(other) == []


def test_the_voice_of_another_person_is_a_contradiction() -> None:
    state = known({4: [ANN]}, {5: [BENS]})
    result = resolve(segment([track("a1", ANN)], [voice("v1", near(BENS, 0.9, 1), on="a1")]), state, SETTINGS)
    assert result.assigned == {"a1": 4, "v1": None}
    assert decision(result, "v1").outcome is Outcome.CONFLICT
    assert voice_writes(result) == []


def test_an_unlike_voice_is_attributed_and_not_learned() -> None:
    state = known({4: [ANN]}, {4: [ANNS]})
    result = resolve(segment([track("a1", ANN)], [voice("v1", NEWS, on="a1")]), state, SETTINGS)
    assert result.assigned["v1"] == 4
    assert voice_writes(result) == []


def test_a_voice_that_was_kept_before_its_owner_was_met_is_noted_and_not_merged() -> None:
    state = known({4: [ANN]}, {7: [ANNS]}, voice_only=[7])
    result = resolve(segment([track("a1", ANN)], [voice("v1", near(ANNS, 0.9, 1), on="a1")]), state, SETTINGS)
    assert result.assigned["v1"] == 4
    assert decision(result, "v1").evidence["possible_same"] == [7]
    assert voice_writes(result) == [4]


def test_a_person_comes_before_a_voice() -> None:
    state = known({4: [ANN]}, {4: [near(ANNS, 0.85, 1)], 7: [ANNS]}, voice_only=[7])
    result = resolve(segment((), [voice("v1", ANNS, 5.0)]), state, SETTINGS)
    assert result.assigned == {"v1": 4}


# -- nobody is seen speaking ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cosine", "seconds", "outcome", "entity"),
    [
        (0.9, 3.0, Outcome.SAME, 4),
        (0.71, 3.0, Outcome.SAME, 4),
        (0.67, 5.0, Outcome.PENDING, None),
        (0.3, 5.0, Outcome.NEW, -1),
        (0.3, 3.0, Outcome.PENDING, None),
        (0.9, 1.0, Outcome.SAME, 4),
        (0.72, 1.0, Outcome.UNSAFE, None),
        (0.3, 1.0, Outcome.UNSAFE, None),
    ],
)
def test_the_score_and_the_length_decide(cosine: float, seconds: float, outcome: Outcome, entity: int | None) -> None:
    state = known({4: [ANN]}, {4: [ANNS]})
    result = resolve(segment((), [voice("v1", near(ANNS, cosine, 3), seconds)]), state, SETTINGS)
    assert decision(result, "v1").outcome is outcome
    assert result.assigned == {"v1": entity}
    assert 4 not in voice_writes(result)
    if seconds < 2:
        assert not result.gallery
        assert not result.pending
        assert not result.entities


def test_a_short_voice_is_attributed_with_less_confidence() -> None:
    state = known({4: [ANN]}, {4: [ANNS]})
    short = resolve(segment((), [voice("v1", near(ANNS, 0.8, 3), 1.0)]), state, SETTINGS)
    long = resolve(segment((), [voice("v1", near(ANNS, 0.8, 3), 3.0)]), state, SETTINGS)
    assert short.confidence["v1"] < long.confidence["v1"]


def test_a_voice_alone_learns_from_its_own_sightings() -> None:
    state = known(voices={7: [ANNS]}, voice_only=[7])
    result = resolve(segment((), [voice("v1", near(ANNS, 0.8, 3))]), state, SETTINGS)
    assert result.assigned == {"v1": 7}
    assert voice_writes(result) == [7]


def test_a_short_unknown_voice_becomes_somebody_when_it_is_heard_again() -> None:
    memory = Memory()
    found = []
    for turn in range(3):
        evidence = segment((), [voice("v1", near(ANNS, 0.9, turn), 2.5)], start=turn * 20, end=turn * 20 + 10)
        found.append(memory.commit(evidence, resolve(evidence, memory.state(), SETTINGS))["v1"])
    assert found == [None, 1, 1]
    assert [entity.kind for entity in memory.entities.values()] == [EntityKind.VOICE]
    assert not memory.waiting


@pytest.mark.parametrize(("mouth", "outcome"), [(0.0, Outcome.UNSAFE), (1.4, Outcome.UNSAFE), (0.8, Outcome.NEW)])
def test_a_voice_that_may_be_that_of_somebody_in_view_makes_nobody(mouth: float, outcome: Outcome) -> None:
    evidence = segment([track("a1", ANN, mouth=mouth)], [voice("v1", NEWS, 6.0)])
    result = resolve(evidence, known({4: [ANN]}), SETTINGS)
    assert decision(result, "v1").outcome is outcome


def test_talkers_one_after_another_make_no_voices_of_their_own() -> None:
    """Three seconds each with two of speech, as in GRID: nobody is seen to speak, and still no voice becomes somebody."""
    memory = Memory()
    for turn in range(10):
        evidence = segment(
            [track("a1", direction(turn), turn * 5, turn * 5 + 3, mouth=0.9)],
            [voice("v1", near(NEWS, 0.9, turn), 2.1)],
            start=turn * 5,
            end=turn * 5 + 3,
        )
        memory.commit(evidence, resolve(evidence, memory.state(), SETTINGS))
    assert [entity.kind for entity in memory.entities.values()] == [EntityKind.PERSON] * 10


def test_the_voice_of_one_person_from_the_mouth_of_an_unknown_one_is_a_contradiction() -> None:
    evidence = segment([track("a1", ANN), track("a2", None, x=0.6)], [voice("v1", near(ANNS, 0.9, 1), on="a2")])
    result = resolve(evidence, known({4: [ANN]}, {4: [ANNS]}), SETTINGS)
    assert decision(result, "v1").outcome is Outcome.CONFLICT


def test_an_unknown_person_who_speaks_for_long_makes_no_voice() -> None:
    evidence = segment([track("a1", None)], [voice("v1", NEWS, 9.0, on="a1")])
    result = resolve(evidence, known(), SETTINGS)
    assert result.assigned == {"a1": None, "v1": None}
    assert not result.entities


def test_parts_of_one_new_voice_are_one_entity() -> None:
    parts = [voice("v1", near(NEWS, 0.9, 1), 6.0), voice("v2", near(NEWS, 0.9, 2), 5.0)]
    said = [("one", "v1"), ("two", "v2")]
    result = resolve(segment((), parts, said), known(), SETTINGS)
    assert len(result.entities) == 1
    assert result.assigned == {"v1": -1, "v2": -1}


def test_two_candidates_that_are_too_close_leave_it_open() -> None:
    both = between(ANNS, BENS, 0.705, 0.70)
    result = resolve(segment((), [voice("v1", both, 5.0)]), known(voices={4: [ANNS], 5: [BENS]}), SETTINGS)
    assert decision(result, "v1").outcome is Outcome.PENDING


def test_voices_of_another_embedder_are_never_compared() -> None:
    other = replace(voice("v1", ANNS, 5.0), embedder="voices@2")
    result = resolve(segment((), [other]), known({4: [ANN]}, {4: [ANNS]}), SETTINGS)
    assert result.assigned == {"v1": -1}


# -- names, through the whole resolver ------------------------------------------------------------------------------


def talk(*said: tuple[str, str], on: str | None = "a1", seconds: float = 4.0) -> SegmentEvidence:
    people = [track("a1", ANN), track("a2", BEN, x=0.6)]
    return segment(people, [voice("v1", ANNS, seconds, on=on), voice("v2", BENS, 4.0, on="a2")], said)


def test_a_person_who_is_seen_to_say_their_name_has_it() -> None:
    result = resolve(talk(("Hi, I'm Sam.", "v1")), known({4: [ANN], 5: [BEN]}), SETTINGS)
    (claim,) = result.names
    assert (claim.entity, claim.name, claim.source, claim.accepted) == (4, "Sam", NameSource.SELF, True)
    note = result.decisions[-1]
    assert note.evidence["words"] == "Hi, I'm Sam."


def test_a_new_person_may_say_their_name_at_once() -> None:
    result = resolve(segment([track("a1", ANN)], [voice("v1", ANNS, on="a1")], [("I'm Sam.", "v1")]), known(), SETTINGS)
    assert [(claim.entity, claim.accepted) for claim in result.names] == [(-1, True)]


def test_the_other_one_is_addressed() -> None:
    result = resolve(
        talk(("Hi Kim.", "v1"), ("Hello.", "v2"), ("Kim, can you help me?", "v1")),
        known({4: [ANN], 5: [BEN]}),
        SETTINGS,
    )
    assert [(claim.entity, claim.accepted) for claim in result.names] == [(5, False), (5, True)]


def test_among_three_nobody_is_addressed() -> None:
    evidence = talk(("Hi Kim.", "v1"), ("Thanks, Kim.", "v1"))
    for third in (track("a3", direction(3), x=0.3), track("a3", None, x=0.3)):
        crowd = replace(evidence, tracks=(*evidence.tracks, third))
        assert resolve(crowd, known({4: [ANN], 5: [BEN]}), SETTINGS).names == ()


def test_a_voice_that_is_not_sure_names_nobody() -> None:
    evidence = segment([track("a1", ANN)], [voice("v1", near(ANNS, 0.8, 1), 1.0)], [("I'm Sam.", "v1")])
    result = resolve(evidence, known({4: [ANN]}, {4: [ANNS]}), SETTINGS)
    assert result.assigned["v1"] == 4
    assert result.names == ()


def test_a_shared_name_is_accepted_and_said() -> None:
    state = known({4: [ANN], 5: [BEN]}, names={5: ("Sam", NameSource.SELF)})
    result = resolve(talk(("I'm Sam.", "v1")), state, SETTINGS)
    assert [claim.accepted for claim in result.names] == [True]
    assert result.decisions[-1].evidence["also_called_so"] == [5]


def test_a_name_told_by_the_user_stays() -> None:
    state = known({4: [ANN], 5: [BEN]}, names={4: ("Eve", NameSource.USER)})
    assert [claim.accepted for claim in resolve(talk(("I'm Sam.", "v1")), state, SETTINGS).names] == [False]


# -- properties -----------------------------------------------------------------------------------------------------

voices = st.lists(
    st.tuples(
        st.integers(0, 3),  # whose
        st.floats(0.4, 0.98),
        st.floats(0.5, 9.0),  # s
        st.sampled_from([None, "a1", "a2"]),
        st.integers(0, 1000),
    ),
    max_size=4,
)
STATE = known(
    {4: [ANN]},
    {4: [direction(50)], 5: [direction(51)], 7: [direction(52)]},
    voice_only=[7],
    waiting=[waits(11, direction(53), Modality.VOICE)],
)


@settings(max_examples=80, deadline=None)
@given(voices, st.booleans(), st.floats(0.0, 1.5))
def test_what_always_holds(drawn: list[tuple[int, float, float, str | None, int]], seen: bool, mouth: float) -> None:
    people = [track("a1", ANN, mouth=mouth), track("a2", None, x=0.6)] if seen else []
    heard = [
        voice(f"v{i + 1}", near(direction(50 + who), cosine, seed * 10 + who), seconds, on=on if seen else None)
        for i, (who, cosine, seconds, on, seed) in enumerate(drawn)
    ]
    evidence = segment(people, heard)
    result = resolve(evidence, STATE, SETTINGS)
    owners = {item.anchor: item for item in heard}
    by_track = {item.track: item.anchor for item in heard if item.track}
    assert {item.anchor for item in result.decisions} == set(result.assigned)
    for item in result.decisions:
        if item.anchor not in owners:
            continue
        assert (item.entity is not None) == (item.outcome in (Outcome.SAME, Outcome.NEW))
        if item.outcome is Outcome.NEW:
            assert owners[item.anchor].safe
            assert owners[item.anchor].track is None
    for write in result.gallery:
        if write.modality is Modality.VOICE and write.entity not in (
            7,
            *(n.key for n in result.entities if n.kind is EntityKind.VOICE),
        ):
            # A person's voice: somebody was seen speaking.
            assert write.anchor == "a1"
            assert write.anchor in by_track
    assert all(new.kind is EntityKind.VOICE for new in result.entities if not seen)
    for kept in result.pending:
        assert kept.expires == T0 + 10 + SETTINGS.pending_s


@settings(max_examples=40, deadline=None)
@given(voices, st.randoms(use_true_random=False))
def test_order_and_anchors_do_not_matter(
    drawn: list[tuple[int, float, float, str | None, int]], chance: object
) -> None:
    heard = [
        voice(f"v{i + 1}", near(direction(50 + who), cosine, seed * 10 + who), seconds)
        for i, (who, cosine, seconds, _, seed) in enumerate(drawn)
    ]
    shuffled = list(heard)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    if len({item.embedding.tobytes() for item in heard}) < len(heard):  # type: ignore[union-attr]
        return
    renamed = {item.anchor: f"v{90 - index}" for index, item in enumerate(shuffled)}
    others = [replace(item, anchor=renamed[item.anchor]) for item in shuffled]
    first = resolve(segment((), heard), STATE, SETTINGS)
    second = resolve(segment((), others), STATE, SETTINGS)
    assert {renamed[anchor]: key for anchor, key in first.assigned.items()} == second.assigned
