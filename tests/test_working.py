"""Working memory: bounded, of the latest event, the same after a restart and whatever came first."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.consolidate import Worker, build_handlers
from edge.memory import Store
from edge.memory.tiers import working
from edge.types.drafts import CommitDraft, NewEntity, ObservationDraft, TraceDraft, UtteranceDraft
from edge.types.media import Mode
from edge.types.records import EntityKind, mention

BEGIN = 1_735_689_600.0 - 3600 * 5
SEGMENT_S = 30.0


def commit(
    store: Store, i: float, people: list[int], things: list[str], text: str = "", *, new: bool = False
) -> dict[int, int]:
    start = BEGIN + i * SEGMENT_S
    seen = [("person", who) for who in people] + [(thing, None) for thing in things]
    told = f"{mention(people[0]) if people else 'Nobody'} waits, {i}."
    draft = CommitDraft(
        camera="hall",
        trace=TraceDraft(start, start + SEGMENT_S, text or told, Mode.LIVE_LATENCY, None),
        entities=tuple(NewEntity(who, EntityKind.PERSON) for who in people if who < 0) if new else (),
        observations=tuple(
            ObservationDraft(f"a{place}", label, who, start, start + SEGMENT_S, "", 0.9)
            for place, (label, who) in enumerate(seen)
        ),
        utterances=(UtteranceDraft(start + 1, start + 3, "Where is it then?", people[0]),) if people else (),
    )  # fmt: skip
    return store.commit(draft).entities


def now(store: Store) -> working.Working:
    report = Worker(store, build_handlers(store)).drain()
    assert report.failed == 0
    with store.reading() as connection:
        (state,) = working.states(connection, store.user)
    return state


@pytest.fixture
def store(home: Path):
    with Store.open(home) as opened:
        yield opened


def test_it_holds_the_event_its_people_and_its_targets_within_bounds(store: Store) -> None:
    ann = commit(store, 0, [-1], ["cup"], "The bell rings.", new=True)[-1]
    for i in range(1, 12):
        commit(
            store, i, [], [f"thing {i % 11}", "cup"], f"The {('fan', 'radio', 'kettle')[i % 3]} hums softly, {i}. " * 9
        )
    state = now(store)
    assert (state.camera, state.segments) == ("hall", 12)
    assert len(state.summary.split()) <= working.SUMMARY_WORDS
    assert "The bell rings." in state.summary
    assert [one.start for one in state.latest] == [BEGIN + i * SEGMENT_S for i in (9, 10, 11)]
    assert all(len(one.text.split()) <= 41 for one in state.latest)
    assert [who for who, _ in state.active] == []  # 330 s ago
    assert len(state.targets) <= working.TARGETS
    assert state.targets[0].label in {"cup", "thing 0"}
    assert not any(one.entity == ann for one in state.targets)
    assert {one.missed for one in state.targets} <= {0, 1, 2}
    commit(store, 12, [ann], [])
    state = now(store)
    assert [who for who, _ in state.active] == [ann]
    assert state.targets[0].entity == ann
    assert state.current(state.end + 29, 30)
    assert not state.current(state.end + 31, 30)


def test_it_rotates_after_eighteen_segments_and_after_a_gap(store: Store) -> None:
    ann = commit(store, 0, [-1], [], new=True)[-1]
    for i in range(1, 19):
        commit(store, i, [ann], [])
    state = now(store)
    assert (state.segments, state.start) == (1, BEGIN + 18 * SEGMENT_S)
    assert [who for who, _ in state.active] == [ann]
    assert len(state.latest) == 3  # the ones before it, too: what led here
    commit(store, 40, [], ["dog"])
    state = now(store)
    assert (state.segments, [who for who, _ in state.active], len(state.latest)) == (1, [], 1)


def test_it_survives_a_restart_and_is_not_moved_by_an_old_recording(home: Path) -> None:
    with Store.open(home) as store:
        commit(store, 100, [-1], ["cup"], new=True)
        before = now(store)
    with Store.open(home) as store, store.reading() as connection:
        assert working.states(connection, store.user) == [before]
    with Store.open(home) as store:
        commit(store, 10, [], ["bus"])
        assert now(store) == before


def test_it_is_the_same_whatever_came_first(tmp_path: Path) -> None:
    states = []
    for seed in range(3):
        with Store.open(tmp_path / str(seed)) as store:
            commit(store, -100, [-1, -2], [], new=True)
            order = list(range(25))
            random.Random(seed).shuffle(order)
            for i in order:
                commit(store, i, [1 + i % 2], [f"thing {i % 5}"], f"Something is done, the {i}. time.")
                if i % 7 == 0:
                    now(store)
            state = now(store)
            states.append((state.start, state.segments, state.summary, state.active, state.targets))
    assert states[0] == states[1] == states[2]


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(["cup", "dog", "person", "voice"]), st.integers(0, 12)), max_size=12),
        max_size=20,
    )
)
def test_targets_are_few_fresh_and_never_voices(seen: list[list[tuple[str, int]]]) -> None:
    segments = [(i, i * 30.0, i * 30.0 + 30, "") for i in range(len(seen))]
    rows = [(i, label, who or None) for i, there in enumerate(seen) for label, who in there]
    found = working.targets(segments, rows)
    assert len(found) <= working.TARGETS
    for one in found:
        assert one.label != "voice"
        assert one.missed < working.MISSES
        last = max(i for i, label, who in rows if (label, who) == (one.label, one.entity))
        assert one.missed == len(seen) - 1 - last
        assert one.last == last * 30.0 + 30
