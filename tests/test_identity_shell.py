"""The shell: galleries in RAM follow the store, over restarts, other processes and the user's corrections."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from edge.errors import NotFoundError, UserError
from edge.identity import Identifier, Resolution, name_entity
from edge.memory import Store
from edge.settings import IdentitySettings, MemorySettings
from edge.types.evidence import SegmentEvidence
from edge.types.records import EntityKind, Modality, NameSource, Outcome
from tests.identity_support import FACES, between, direction, draft, near, segment, track, voice

SETTINGS = IdentitySettings()
ANN, BEN = direction(1), direction(2)
ANNS, BENS = direction(41), direction(42)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home", MemorySettings(), user="owner") as opened:
        yield opened


def identifier(store: Store) -> Identifier:
    return Identifier(store, SETTINGS, user="owner")


def live(room: Identifier, store: Store, evidence: SegmentEvidence) -> Resolution:
    resolution = room.resolve(evidence)
    room.committed(resolution, store.commit(draft(evidence, resolution)))
    return resolution


def visits() -> list[SegmentEvidence]:
    """Ten segments with everything in them: new and known people, doubt, voices, names, clothes."""
    ann, doubtful = near(ANN, 0.9, 1), near(ANN, 0.56, 3)
    found = [
        segment([track("a1", ANN)], [voice("v1", ANNS, on="a1")], [("Good morning.", "v1")]),
        segment(
            [track("a1", ann), track("a2", BEN, x=0.6)], [voice("v1", near(ANNS, 0.9, 2), on="a1")], [("Hi Ben.", "v1")]
        ),
        segment([track("a1", doubtful)]),
        segment([track("a1", between(ANN, doubtful, 0.56, 0.7))]),
        segment((), [voice("v1", direction(44), 2.5)], [("Anybody home?", "v1")]),
        segment((), [voice("v1", near(direction(44), 0.9, 1), 2.5)], [("Hello?", "v1")]),
        segment([track("a1", ANN), track("a2", BEN, x=0.6)], [voice("v1", BENS, on="a2")], [("What?", "v1")]),
        segment(
            [track("a1", ann), track("a2", near(BEN, 0.8, 1), x=0.6)],
            [voice("v1", near(ANNS, 0.9, 5), on="a1")],
            [("Thanks, Ben.", "v1")],
        ),
        segment(
            [track("a1", near(BEN, 0.8, 4), body=direction(60))],
            [voice("v1", near(BENS, 0.9, 4), on="a1")],
            [("I'm Benjamin.", "v1")],
        ),
        segment([track("a1", near(BEN, 0.66, 9), body=direction(60))]),
    ]
    return [moved(evidence, index * 20.0) for index, evidence in enumerate(found)]


def moved(evidence: SegmentEvidence, by: float) -> SegmentEvidence:
    return replace(
        evidence,
        start=evidence.start + by,
        end=evidence.end + by,
        tracks=tuple(replace(t, start=t.start + by, end=t.end + by) for t in evidence.tracks),
        utterances=tuple(replace(u, start=u.start + by, end=u.end + by) for u in evidence.utterances),
    )


def plain(resolution: Resolution) -> object:
    """A resolution as values that can be compared."""
    return (
        resolution.entities,
        dict(resolution.assigned),
        [(d.anchor, d.outcome, d.entity, d.reason, dict(d.evidence)) for d in resolution.decisions],
        [(w.entity, w.modality, w.slot, w.embedding.tobytes(), w.quality, w.count) for w in resolution.gallery],
        [(p.anchor, p.modality, p.embedding.tobytes(), p.expires) for p in resolution.pending],
        resolution.pending_used,
        resolution.names,
        dict(resolution.confidence),
    )


def test_people_are_found_again_over_restarts(store: Store) -> None:
    first = live(identifier(store), store, segment([track("a1", ANN)]))
    again = live(identifier(store), store, moved(segment([track("a1", near(ANN, 0.8, 1))]), 60))
    (person,) = store.entities()
    assert first.assigned == {"a1": -1}
    assert again.assigned == {"a1": person.id}
    assert person.sightings == 2


def test_a_restart_before_any_segment_changes_no_decision(store: Store) -> None:
    running = identifier(store)
    for evidence in visits():
        fresh = identifier(store).resolve(evidence)
        resolution = running.resolve(evidence)
        assert plain(fresh) == plain(resolution)
        running.committed(resolution, store.commit(draft(evidence, resolution)))
    people = {person.title: person for person in store.entities()}
    assert set(people) == {"person 1", "Benjamin", "voice 1"}
    assert people["Benjamin"].name_source is NameSource.SELF
    assert not store.pending(0.0) or all(row.modality is Modality.VOICE for row in store.pending(0.0))


def test_a_failed_commit_leaves_no_trace_in_ram(store: Store) -> None:
    room = identifier(store)
    evidence = segment([track("a1", ANN)])
    lost = room.resolve(evidence)
    assert plain(room.resolve(evidence)) == plain(lost)


def test_resolving_the_same_segment_twice_is_the_same(store: Store) -> None:
    room = identifier(store)
    for evidence in visits()[:3]:
        live(room, store, evidence)
    evidence = visits()[3]
    assert plain(room.resolve(evidence)) == plain(room.resolve(evidence))


def test_another_process_is_noticed(store: Store, tmp_path: Path) -> None:
    room = identifier(store)
    live(room, store, segment([track("a1", BEN)]))
    with Store.open(tmp_path / "home", MemorySettings(), user="owner") as other:
        live(identifier(other), other, moved(segment([track("a1", ANN)], camera="garden"), 40))
    result = room.resolve(moved(segment([track("a1", near(ANN, 0.8, 1))]), 80))
    assert {person.id: person.first_seen for person in store.entities()}.keys() == {1, 2}
    assert result.assigned == {"a1": 2}


def test_one_person_before_two_cameras_is_refused(store: Store) -> None:
    room = identifier(store)
    live(room, store, segment([track("a1", ANN)]))
    result = live(room, store, segment([track("a1", near(ANN, 0.8, 1))], camera="garden", start=2, end=12))
    assert result.assigned == {"a1": None}
    (kept,) = [item for item in store.decisions() if item.outcome is Outcome.CONFLICT]
    assert "hall" in kept.reason
    assert len(store.galleries(Modality.FACE)) == 1
    later = live(room, store, moved(segment([track("a1", near(ANN, 0.8, 2))], camera="garden"), 20))
    assert later.assigned == {"a1": 1}


def test_unsafe_evidence_changes_nothing_but_the_record(store: Store) -> None:
    room = identifier(store)
    live(room, store, segment([track("a1", ANN)]))
    before = [(slot.entity, slot.embedding.tobytes()) for slot in store.galleries(Modality.FACE)]
    live(room, store, moved(segment([track("a1", near(ANN, 0.95, 1), safe=False, norm=34.0)]), 20))
    live(room, store, moved(segment([track("a1", BEN, safe=False, norm=34.0)]), 40))
    assert [(slot.entity, slot.embedding.tobytes()) for slot in store.galleries(Modality.FACE)] == before
    assert len(store.entities()) == 1
    assert store.pending(0.0) == []
    assert [item.outcome for item in store.decisions()].count(Outcome.UNSAFE) == 2


def test_a_voice_that_waits_for_its_owner_finds_them_in_a_later_run(store: Store) -> None:
    people = [track("a1", ANN), track("a2", BEN, x=0.6)]
    live(identifier(store), store, segment(people, [voice("v1", ANNS, on="a1")]))
    assert store.galleries(Modality.VOICE) == []
    live(identifier(store), store, moved(segment(people, [voice("v1", near(ANNS, 0.9, 1), on="a1")]), 20))
    (slot,) = store.galleries(Modality.VOICE)
    assert slot.entity == min(person.id for person in store.entities())
    heard = live(identifier(store), store, moved(segment((), [voice("v1", near(ANNS, 0.8, 3), 4.0)]), 40))
    assert heard.assigned == {"v1": slot.entity}


def test_being_called_by_a_name_adds_up_over_runs(store: Store) -> None:
    people = [track("a1", ANN), track("a2", BEN, x=0.6)]
    for turn, words in enumerate(["Hi Kim.", "Thanks, Kim."]):
        live(identifier(store), store, moved(segment(people, [voice("v1", ANNS, on="a1")], [(words, "v1")]), turn * 20))
        named = [person.name for person in store.entities()]
        assert named == ([None, None] if turn == 0 else [None, "Kim"])


def test_the_users_name_is_kept_whatever_is_said(store: Store) -> None:
    room = identifier(store)
    live(room, store, segment([track("a1", ANN)]))
    assert name_entity(store, 1, "  Ann   Lee ").title == "Ann Lee"
    evidence = segment([track("a1", near(ANN, 0.8, 1))], [voice("v1", ANNS, on="a1")], [("I'm Sam.", "v1")])
    result = live(room, store, moved(evidence, 20))
    assert [claim.accepted for claim in result.names] == [False]
    assert store.entity(1).name == "Ann Lee"
    assert store.entity(1).name_source is NameSource.USER
    assert [(claim.name, claim.accepted) for claim in store.name_claims(1)] == [("Sam", False)]


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "Sam\x00", "Sam\x1b[31m", "{{3}}", "person 3"])
def test_what_is_no_name_is_refused_in_one_sentence(store: Store, name: str) -> None:
    live(identifier(store), store, segment([track("a1", ANN)]))
    with pytest.raises(UserError):
        name_entity(store, 1, name)
    assert store.entity(1).name is None


def test_nobody_can_be_named_who_is_not_there(store: Store) -> None:
    with pytest.raises(NotFoundError):
        name_entity(store, 99, "Sam")


def test_galleries_keep_their_bounds_over_many_visits(store: Store) -> None:
    small = Identifier(store, IdentitySettings(face_slots=3), user="owner")
    for turn in range(12):
        live(small, store, moved(segment([track("a1", near(ANN, 0.8, turn), norm=40.0 + turn)]), turn * 20))
    assert [(person.kind, person.sightings) for person in store.entities()] == [(EntityKind.PERSON, 12)]
    slots = store.galleries(Modality.FACE, FACES)
    assert [slot.slot for slot in slots] == [0, 1, 2]
    assert len(store.crops(1)) == 3
