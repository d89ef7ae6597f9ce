"""Corrections: whatever was wrong and is put right, the memory is the one that would be had it been right from the start."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from edge.identity import Identifier, merge_people, not_this_person, resolve, split_person, undo
from edge.memory import Store
from edge.settings import IdentitySettings
from edge.types.records import CorrectionKind, Kind, Modality
from tests import identity_support as evidence_of
from tests.corrections_support import Reference, Scene, Sight, Told, commit, differences, dump

NAMES = st.sampled_from([None, None, None, "Sam", "Kim"])
SIGHTS = st.builds(Sight, st.integers(0, 3), st.sampled_from([0.97, 0.8, 0.65]), st.booleans(), st.booleans(), NAMES)
SCENES = st.builds(Scene, st.lists(SIGHTS, min_size=1, max_size=3).map(tuple), NAMES)
NUMBERS = st.integers(0, 1000)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), SCENES, st.lists(NUMBERS, min_size=4, max_size=4)),
        st.tuples(st.sampled_from(["merge", "split", "not"]), NUMBERS, NUMBERS, NUMBERS),
        st.tuples(st.just("undo"), NUMBERS, NUMBERS, NUMBERS),
    ),
    min_size=2,
    max_size=14,
)
BOUNDS = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


class Life:
    """A memory that makes mistakes and is corrected, beside a reference that knows who is who."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reference = Reference()
        self.scenes: list[Scene] = []
        self.called: list[bool] = []

    def commit(self, scene: Scene, choices: list[int]) -> None:
        number = len(self.scenes)
        known = [one.id for one in self.store.entities()]
        pool = [*known, -1, -2]
        owners = [pool[choice % len(pool)] for choice, _ in zip(choices, scene.sights, strict=False)]
        called = (
            owners[-1] if scene.called and len(set(owners)) > 1 and any(one.speaks for one in scene.sights) else None
        )
        done = commit(self.store, number, scene, owners, called)
        ids = [done.entities.get(owner, owner) for owner in owners]
        self.reference.origin |= {(number, place): who for place, who in enumerate(ids)}
        if called is not None:
            self.reference.origin[number, -1] = done.entities.get(called, called)
        self.scenes.append(scene)
        self.called.append(called is not None)

    def correct(self, kind: str, first: int, second: int, third: int) -> None:
        people = sorted({self.reference.owner(item) for item in self.reference.origin if item[1] >= 0})
        if not people:
            return
        person = people[first % len(people)]
        others = [who for who in people if who != person]
        if kind == "merge":
            if others:
                other = others[second % len(others)]
                record = merge_people(self.store, person, other)
                self.reference.told.append(Told(record.id, kind, person, other))
            return
        mine = [item for item in self.reference.of(person) if item[1] >= 0]
        chosen = {item for place, item in enumerate(mine) if (second + 1) >> place & 1} or {mine[0]}
        to = [None, *others][third % (len(others) + 1)]
        observations = self.store.rows("select trace, id from observation order by id")
        ids: dict[int, list[int]] = {}
        for trace, number in observations:
            ids.setdefault(int(trace), []).append(int(number))
        sightings = [(Kind.OBSERVATION, ids[segment + 1][place]) for segment, place in sorted(chosen)]
        moving = self.reference.moving(person, chosen)
        record = (split_person if kind == "split" else not_this_person)(self.store, person, sightings, to)
        self.reference.told.append(Told(record.id, kind, person, record.other, moving))

    def name(self, first: int, name: str | None) -> None:
        people = sorted({self.reference.owner(item) for item in self.reference.origin if item[1] >= 0})
        person = people[first % len(people)]
        before = self.store.corrections(limit=1)
        if name is None:
            self.store.clear_name(person)
        else:
            self.store.set_name(person, name)
        after = self.store.corrections(limit=1)
        if after != before:
            assert after[0].kind is CorrectionKind.NAME
            self.reference.told.append(Told(after[0].id, "name", person, name=name))

    def undo(self, which: int) -> None:
        holding = [one for one in self.reference.told if not one.undone]
        if holding:
            one = holding[which % len(holding)]
            undo(self.store, one.number)
            one.undone = True

    def step(self, kind: str, first: int, second: int, third: int) -> None:
        if kind == "undo":
            self.undo(first)
        elif kind in ("name", "clear"):
            self.name(first, f"Name {second % 3}" if kind == "name" else None)
        else:
            self.correct(kind, first, second, third)

    def right_from_the_start(self, store: Store) -> dict[int, int]:
        """Write the same scenes with the true owners; who is who in both memories."""
        ids: dict[int, int] = {}
        for number, scene in enumerate(self.scenes):
            true = [self.reference.owner((number, place)) for place in range(len(scene.sights))]
            called = self.reference.owner((number, -1)) if self.called[number] else None
            keys = {who: ids.get(who, -place) for place, who in enumerate(dict.fromkeys(true), 1)}
            owners = [keys[who] for who in true]
            there = None if called is None else keys.get(called, ids.get(called))
            assume(called is None or there is not None)
            done = commit(store, number, scene, owners, there)
            ids |= {who: done.entities.get(key, key) for who, key in keys.items()}
        return ids


THREE = (Sight(0, 0.65), Sight(3, 0.97, heard_only=True), Sight(3, 0.65, claims="Kim"))
CHOICES = [365, 886, 404, 686]


@BOUNDS
@given(STEPS)
# A split and a merge cancel out, and the merge is undone.
@example([("commit", Scene(THREE), CHOICES), ("split", 607, 940, 517), ("merge", 561, 521, 945), ("undo", 1, 0, 0)])
# Who is called by a name becomes who calls, and part of them somebody else.
@example([("commit", Scene(THREE, "Kim"), [43, 308, 798, 31]), ("merge", 484, 609, 736), ("split", 731, 807, 943)])
def test_a_corrected_memory_is_as_if_it_had_been_right_from_the_start(steps: list[tuple]) -> None:
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home) / "corrected") as store:
        life = Life(store)
        for step in steps:
            life.commit(*step[1:]) if step[0] == "commit" else life.step(*step)
        with Store.open(Path(home) / "true") as true:
            life.right_from_the_start(true)
            assert differences(dump(store), dump(true)) == {}
        assert store.integrity() == []


@BOUNDS
@given(
    st.lists(st.tuples(SCENES, st.lists(NUMBERS, min_size=4, max_size=4)), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.sampled_from(["merge", "split", "not", "name", "clear", "undo"]), NUMBERS, NUMBERS, NUMBERS),
        min_size=1,
        max_size=8,
    ),
    st.lists(NUMBERS, min_size=10, max_size=10),
)
def test_with_everything_undone_nothing_ever_happened(
    scenes: list[tuple[Scene, list[int]]], steps: list[tuple[str, int, int, int]], order: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        life = Life(store)
        for scene, choices in scenes:
            life.commit(scene, choices)
        entities = (
            "select id, kind, number, name, name_source, first_seen, last_seen from entity where merged_into is null"
        )
        before = dump(store), store.rows(entities)
        for step in steps:
            life.step(*step)
        for which in order:
            life.undo(which)
        assert (dump(store), store.rows(entities)) == before
        left = "select * from (select item from moved union all select item from original_text)"
        assert store.rows(left) == []
        assert store.integrity() == []


@BOUNDS
@given(
    st.lists(st.tuples(SCENES, st.lists(NUMBERS, min_size=4, max_size=4)), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(["name", "name", "clear", "merge", "split", "undo"]), NUMBERS, NUMBERS, NUMBERS),
        min_size=1,
        max_size=8,
    ),
)
def test_names_by_the_owner_follow_who_is_kept(
    scenes: list[tuple[Scene, list[int]]], steps: list[tuple[str, int, int, int]]
) -> None:
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        life = Life(store)
        for scene, choices in scenes:
            quiet = Scene(tuple(Sight(one.true, one.cosine, one.speaks, one.heard_only) for one in scene.sights))
            life.commit(quiet, choices)
        for step in steps:
            life.step(*step)
        named = {one.id: one.name for one in store.entities() if one.name is not None}
        expected = life.reference.names()
        assert {who: name for who, name in expected.items() if who in named} == named
        for who in set(expected) - set(named):  # somebody whose making was undone is not there to be called anything
            assert life.reference.of(who) == []


# -- what one sees of it ----------------------------------------------------------------------------------------------


@pytest.fixture
def store(home: Path) -> object:
    with Store.open(home) as store:
        yield store


def two(store: Store) -> tuple[int, int]:
    """Person 1 and person 2 in one segment, then each alone."""
    pair = Scene((Sight(0, 0.9), Sight(1, 0.9)))
    done = commit(store, 0, pair, [-1, -2])
    one, other = done.entities[-1], done.entities[-2]
    commit(store, 1, Scene((Sight(0, 0.9),)), [one])
    commit(store, 2, Scene((Sight(1, 0.9),)), [other])
    return one, other


def test_texts_names_and_search_follow(store: Store) -> None:
    one, other = two(store)
    store.set_name(one, "Ann")
    assert store.trace(1).text == "Ann and person 2 sat at a table."
    merge_people(store, one, other)
    assert store.trace(1).text == "Ann sat at a table."
    assert [trace.id for trace in store.traces(entity=one)] == [3, 2, 1]
    assert store.entity(one).sightings == 4
    assert store.titles()[other] == "Ann"  # whoever still has the old id
    record = not_this_person(store, one, [(Kind.OBSERVATION, 2)])
    assert store.trace(1).text == "Ann and person 3 sat at a table."
    assert store.told_apart() == {(one, record.other)}
    assert [d.entity for d in store.decisions(trace=1)] == [record.other, record.other, one, one]
    assert {("embed", "1"), ("rederive-trace", "1")} <= set(store.rows("select kind, key from job"))


def test_words_that_a_kill_left_unindexed_are_indexed_when_the_memory_is_opened(home: Path) -> None:
    with Store.open(home) as store:
        two(store)
        right = store.rows("select rowid, seen, said from words")

        def killed(memory: apsw.Connection) -> None:
            memory.execute("update words set seen = 'xentityx9 sat' where rowid = 2")
            memory.execute("insert into reindex values(2)")

        store.transact(killed)
    with Store.open(home) as store:
        deadline = time.monotonic() + 10
        while store.rows("select * from reindex") and time.monotonic() < deadline:
            time.sleep(0.01)
        assert store.rows("select rowid, seen, said from words") == right


def test_a_trace_as_a_sighting_takes_all_of_it_along(store: Store) -> None:
    one, other = two(store)
    split_person(store, one, [(Kind.TRACE, 2)], other)
    assert store.trace(2).text == "Person 2 sat at a table."
    assert [line.text for line in store.trace(2).lines] == ["Person 2 waved.", "Then person 2 left."]
    assert store.trace(2).utterances[0].speaker == other


def test_words_can_be_somebody_elses_while_the_face_is_right(store: Store) -> None:
    one, other = two(store)
    (said,) = store.utterances(trace=2)
    split_person(store, one, [(Kind.UTTERANCE, said.id)], other)
    assert store.utterances(trace=2)[0].speaker == other
    assert store.observations(trace=2)[0].entity == one


def test_somebody_of_whom_nothing_is_left_is_listed_no_more_until_it_is_undone(store: Store) -> None:
    one, other = two(store)
    record = split_person(store, one, [(Kind.TRACE, 1), (Kind.TRACE, 2)], other)
    assert [person.id for person in store.entities()] == [other]
    undo(store, record.id)
    assert [person.id for person in store.entities()] == [one, other]


def test_a_correction_in_between_makes_what_was_learned_before_it_wait(store: Store) -> None:
    """A segment that was decided before a correction and committed after it spoils no gallery."""
    room = Identifier(store, IdentitySettings(), user=store.user)
    for number, who in enumerate((0, 1)):
        evidence = evidence_of.segment(
            [evidence_of.track("a1", evidence_of.near(evidence_of.direction(who), 0.98, number))],
            start=20.0 * number,
            end=20.0 * number + 10,
        )
        resolution = room.resolve(evidence)
        room.committed(resolution, store.commit(evidence_of.draft(evidence, resolution)))
    late = evidence_of.segment(
        [evidence_of.track("a1", evidence_of.near(evidence_of.direction(1), 0.7, 9))], start=60.0, end=70.0
    )
    decided = room.resolve(late)
    merge_people(store, 1, 2)
    room.committed(decided, store.commit(evidence_of.draft(late, decided)))
    assert store.galleries_due()
    assert store.entity(1).sightings == 3
    room.refresh()
    assert not store.galleries_due()
    assert [(slot.entity, slot.count) for slot in store.galleries(Modality.FACE)] == [(1, 1), (1, 1), (1, 1)]


def test_somebody_who_was_kept_twice_by_face_and_by_voice_is_one_person_with_both(store: Store) -> None:
    """Of a person and a voice the person is kept, whichever is named first; the voice is theirs from then on."""
    face, sound = evidence_of.direction(0), evidence_of.direction(90)
    room = Identifier(store, IdentitySettings(), user=store.user)
    seen = evidence_of.segment([evidence_of.track("a1", evidence_of.near(face, 0.95, 1))])
    heard = evidence_of.segment(
        voices=[evidence_of.voice("v1", evidence_of.near(sound, 0.95, 2), 6.0)],
        said=[("My name is Eileen.", "v1")],
        start=20.0,
        end=30.0,
    )
    for evidence in (seen, heard):
        resolution = room.resolve(evidence)
        room.committed(resolution, store.commit(evidence_of.draft(evidence, resolution)))
    assert [(one.kind.value, one.name) for one in store.entities()] == [("person", None), ("voice", "Eileen")]
    record = merge_people(store, 2, 1)
    assert (record.person, record.other) == (1, 2)
    (one,) = store.entities()
    assert (one.id, one.kind.value, one.title, one.sightings) == (1, "person", "Eileen", 2)
    assert {slot.modality for kind in Modality for slot in store.galleries(kind)} == {Modality.FACE, Modality.VOICE}
    later = evidence_of.segment(
        voices=[evidence_of.voice("v1", evidence_of.near(sound, 0.9, 3), 6.0)],
        said=[("Hello.", "v1")],
        start=40.0,
        end=50.0,
    )
    assert room.resolve(later).assigned == {"v1": 1}
    undo(store)
    assert [(one.kind.value, one.name) for one in store.entities()] == [("person", None), ("voice", "Eileen")]
    assert room.resolve(later).assigned == {"v1": 2}


def test_between_two_who_were_told_apart_a_match_must_be_twice_as_clear(store: Store) -> None:
    one, other = evidence_of.direction(0), evidence_of.direction(1)
    margin = IdentitySettings().face_margin
    doubtful = evidence_of.between(one, other, 0.7, 0.7 - 1.5 * margin)
    clear = evidence_of.between(one, other, 0.7, 0.7 - 2.5 * margin)
    for apart, vector, known in ((False, doubtful, 1), (True, doubtful, None), (True, clear, 1)):
        state = evidence_of.known({1: [one], 2: [other]}, apart=frozenset({(1, 2)} if apart else ()))
        found = resolve(evidence_of.segment([evidence_of.track("a1", vector)]), state, IdentitySettings())
        assert found.assigned["a1"] == known, (apart, found.decisions)
