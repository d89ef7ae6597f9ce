"""The timeline tree: a function of what is remembered, bounded, the same whatever came first and whatever was put right."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.consolidate import Worker, build_handlers
from edge.memory import Store, jobs
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import extract
from edge.memory.tiers.timeline import nodes as timeline_nodes
from edge.memory.tiers.timeline import text as timeline_text
from edge.memory.tiers.timeline.nodes import CHAPTER, DAY, EVENT, FRONTIER, LEVELS, K, Node
from edge.types.records import mention

BEGIN = 1_735_689_600.0  # 2025-01-01T00:00Z
DAY_S = 86_400.0
WORDS = ("cup", "dog", "door", "garden", "kitchen", "lamp", "letter", "music", "piano", "soup", "stairs", "train")


@dataclass(frozen=True)
class Moment:
    """A trace to be."""

    start: float  # s after BEGIN
    seconds: float = 30.0
    begins: bool = False
    text: str = ""
    camera: str = "hall"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("timeline")


class Memories:
    """A store that is emptied instead of being made again: opening one takes longer than an example."""

    def __init__(self, path: Path) -> None:
        self.store = Store.open(path)

    def fresh(self) -> Store:
        def empty(memory: apsw.Connection) -> None:
            for table in ("trace", "node", "node_trace", "working", "job", "provenance", "camera"):
                memory.execute(f"delete from {table}")

        self.store.transact(empty)
        return self.store


@pytest.fixture(scope="module")
def memories(home: Path):
    made = Memories(home / "shared")
    yield made
    made.store.close()


def write(store: Store, moments: Iterable[Moment]) -> list[int]:
    """Traces with the job that their commit asks for."""

    def work(memory: apsw.Connection) -> list[int]:
        numbers = []
        for one in moments:
            memory.execute(
                "insert or ignore into camera(user, name, created) values(?, ?, 0)", (store.user, one.camera)
            )
            memory.execute(
                "insert into trace(camera, start, end, text, mode, counts, detail, ingested)"
                " select id, ?, ?, ?, 'offline_quality', '{}', ?, 0 from camera where name = ?",
                (
                    BEGIN + one.start, BEGIN + one.start + one.seconds, one.text or f"Something at {one.start:.3f}.",
                    json.dumps({"first_of_event": one.begins}), one.camera,
                ),
            )  # fmt: skip
            numbers.append(memory.last_insert_rowid())
            jobs.enqueue(memory, store.user, jobs.TRACE, numbers[-1], priority=jobs.AT_ONCE)
        return numbers

    return store.transact(work)


def drain(store: Store) -> None:
    report = Worker(store, build_handlers(store)).drain()
    assert report.failed == 0


def forget(store: Store, numbers: Sequence[int], *, at_once: bool) -> None:
    def work(memory: apsw.Connection) -> None:
        memory.execute("delete from trace where id in (select value from json_each(?))", (json.dumps(list(numbers)),))
        if at_once:
            timeline.derive(memory, numbers)
        else:
            for number in numbers:
                jobs.enqueue(memory, store.user, jobs.RETRACE, number)

    store.transact(work)


def tree(store: Store) -> list[Any]:
    """The whole tree without ids."""
    with store.reading() as connection:

        def told(node: Node) -> Any:
            below = [told(child) for child in timeline_nodes.children(connection, node)]
            what = (node.text, node.source, sorted(node.people.items()), node.places, node.things)
            return (node.camera, node.level, node.start, node.end, node.traces, what, below)

        return [told(root) for root in timeline_nodes.roots(connection, store.user)]


def leaves(store: Store) -> list[int]:
    """All traces in the order in which the tree holds them."""
    with store.reading() as connection:

        def below(node: Node) -> list[int]:
            return (
                [node.id]
                if not node.level
                else [n for c in timeline_nodes.children(connection, node) for n in below(c)]
            )

        return [number for root in timeline_nodes.roots(connection, store.user) for number in below(root)]


def test_an_event_ends_at_a_gap_at_a_beginning_and_after_eighteen_traces() -> None:
    def spans(*rows: tuple[float, float, bool]) -> list[tuple[int, float, float, bool]]:
        return [(number, *row) for number, row in enumerate(rows)]

    run = spans(*((30.0 * i, 30.0 * i + 30, False) for i in range(40)))
    assert [len(event) for event in timeline.into_events(run)] == [18, 18, 4]
    assert timeline.into_events(spans((0, 30, False), (60, 90, False), (121, 130, False))) == [(0, 1), (2,)]
    assert timeline.into_events(spans((0, 30, True), (30, 60, True), (60, 90, False))) == [(0,), (1, 2)]
    assert timeline.into_events(spans((0, 500, False), (10, 20, False), (520, 530, False))) == [(0, 1, 2)]


@given(st.integers(0, 700))
def test_a_level_that_holds_nine_merges_its_oldest_eight(count: int) -> None:
    merged, left = timeline.merge(range(count))
    assert [number for group in merged for number in group] + list(left) == list(range(count))
    assert all(len(group) == K for group in merged)
    assert (1 if count else 0) <= len(left) <= K


def test_traces_events_chapters_parts_days_and_what_is_above(memories: Memories) -> None:
    store = memories.fresh()
    day = [Moment(hour * 3600.0 + i * 300) for hour in range(24) for i in range(9)]  # each an event of its own
    write(store, [*day, Moment(9 * DAY_S), Moment(70 * DAY_S)])
    drain(store)
    with store.reading() as connection:
        found = {level: timeline_nodes.nodes_of_level(connection, store.user, level, limit=1000) for level in LEVELS}
    assert {level: len(nodes) for level, nodes in found.items()} == {
        "event": 218, "chapter": 50, "part": 5, "day": 3, "week": 3, "season": 2, "era": 1, "age": 1,
    }  # fmt: skip
    assert found["age"][0].traces == 218
    assert [node.traces for node in found["day"]] == [216, 1, 1]
    with store.reading() as connection:
        below = timeline_nodes.children(connection, found["day"][0])
    # 48 chapters: five parts of eight, and eight chapters that no ninth has merged yet.
    assert [node.name for node in below] == ["part"] * 5 + ["chapter"] * 8
    assert [node.name for node in found["part"]] == ["part"] * 5


MOMENTS = st.lists(
    st.builds(
        Moment,
        start=st.one_of(
            st.integers(0, 3 * 3600).map(float),
            st.integers(0, 400).map(lambda i: i * 30.0),
            st.integers(0, 80).map(lambda day: day * DAY_S + 40_000.0),
        ),
        seconds=st.sampled_from([5.0, 30.0]),
        begins=st.booleans(),
        text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(lambda words: f"A {' and a '.join(words)}."),
        camera=st.sampled_from(["hall", "hall", "shed"]),
    ),
    min_size=1,
    max_size=60,
    unique_by=lambda one: (one.start, one.camera),
)


@settings(max_examples=15, deadline=None)
@given(moments=MOMENTS, order=st.randoms(use_true_random=False), cuts=st.integers(1, 5))
def test_the_tree_does_not_depend_on_what_came_first_and_holds_each_trace_once(
    memories: Memories, moments: list[Moment], order: random.Random, cuts: int
) -> None:
    store = memories.fresh()
    write(store, moments)
    drain(store)
    once = tree(store)
    shuffled = moments[:]
    order.shuffle(shuffled)
    store = memories.fresh()
    for part in range(cuts):
        write(store, shuffled[part::cuts])
        drain(store)
    assert tree(store) == once
    numbers = leaves(store)
    assert sorted(numbers) == sorted(number for (number,) in store.rows("select id from trace"))
    starts = dict(store.rows("select id, start from trace"))
    for camera in ("hall", "shed"):
        mine = [
            n
            for (n,) in store.rows(
                "select t.id from trace t join camera c on c.id = t.camera where c.name = ?", (camera,)
            )
        ]
        held = [starts[number] for number in numbers if number in set(mine)]
        assert held == sorted(held)
    assert store.rows("pragma foreign_key_check") == []


@settings(max_examples=15, deadline=None)
@given(moments=MOMENTS, order=st.randoms(use_true_random=False), at_once=st.booleans())
def test_what_was_forgotten_or_corrected_leaves_the_tree_that_would_be_there_without_it(
    memories: Memories, moments: list[Moment], order: random.Random, at_once: bool
) -> None:
    gone = {place for place in range(len(moments)) if order.random() < 0.4}
    wrong = {place for place in range(len(moments)) if order.random() < 0.3}
    store = memories.fresh()
    write(store, [one for place, one in enumerate(moments) if place not in gone])
    drain(store)
    right = tree(store)
    store = memories.fresh()
    spoiled = [
        Moment(one.start, one.seconds, one.begins, "A mistake.", one.camera) if place in wrong else one
        for place, one in enumerate(moments)
    ]
    numbers = write(store, spoiled)
    drain(store)

    def correct(memory: apsw.Connection) -> None:
        for place in wrong - gone:
            memory.execute("update trace set text = ? where id = ?", (moments[place].text, numbers[place]))
            jobs.enqueue(memory, store.user, jobs.RETRACE, numbers[place])

    store.transact(correct)
    forget(store, [numbers[place] for place in gone], at_once=at_once)
    drain(store)
    assert tree(store) == right
    assert len(gone) < len(moments) or store.rows("select count(*) from node") == [(0,)]


def test_an_old_recording_changes_its_own_hour_and_what_is_above_and_keeps_all_other_nodes(memories: Memories) -> None:
    store = memories.fresh()
    write(
        store, [Moment(day * DAY_S + hour * 3600.0 + i * 30) for day in range(3) for hour in range(4) for i in range(5)]
    )
    drain(store)
    before = dict(store.rows("select id, text || start || end || traces from node where level < ?", (DAY,)))
    write(store, [Moment(DAY_S + 2 * 3600 + 1000.0 + i * 30, text="An old story.") for i in range(3)])
    drain(store)
    after = dict(store.rows("select id, text || start || end || traces from node where level < ?", (DAY,)))
    assert before.keys() <= after.keys()
    assert len([number for number in before if after[number] != before[number]]) == 1  # the chapter of the hour


def test_forgetting_at_once_leaves_no_word_of_it_above(memories: Memories) -> None:
    store = memories.fresh()
    numbers = write(store, [Moment(i * 30.0, text="The zeppelin burns." if i == 3 else "A cup.") for i in range(6)])
    drain(store)
    assert store.rows("select count(*) from node where text like '%zeppelin%'")[0][0] > 3
    forget(store, [numbers[3]], at_once=True)
    assert store.rows("select count(*) from node where text like '%zeppelin%'") == [(0,)]
    assert store.rows("select count(*) from provenance where source_kind = 'trace' and source = ?", (numbers[3],)) == [
        (0,)
    ]


@settings(max_examples=8, deadline=None)
@given(
    days=st.lists(st.integers(0, 200), min_size=1, max_size=12, unique=True),
    times=st.lists(st.integers(0, 2879), min_size=1, max_size=40, unique=True),
    at=st.floats(0, 201 * DAY_S),
)
def test_the_global_state_is_bounded_recent_in_detail_and_tells_nothing_twice(
    memories: Memories, days: list[int], times: list[int], at: float
) -> None:
    store = memories.fresh()
    write(store, [Moment(day * DAY_S + 30.0 * time) for day in days for time in times])
    drain(store)
    with store.reading() as connection:
        for moment in (None, BEGIN + at):
            state = timeline_nodes.frontier(connection, store.user, moment)
            assert len(state) <= FRONTIER + 18 * (moment is not None)
            ended = store.rows("select id, end from trace where ? is null or end <= ?", (moment, moment))
            assert sum(node.traces for node in state) == len(ended)
            assert all(moment is None or node.end <= moment for node in state)
            for one, other in pairwise(state):
                assert one.end <= other.start + 30
            if ended:
                latest = max(end for _, end in ended)
                assert [node.level for node in state if node.end == latest] == [0]


def test_a_span_is_covered_by_few_nodes_coarse_in_the_middle_and_exact_enough_at_its_edges(memories: Memories) -> None:
    store = memories.fresh()
    write(
        store,
        [Moment(day * DAY_S + hour * 3600.0 + i * 60) for day in range(80) for hour in (8, 19) for i in range(2)],
    )
    drain(store)
    with store.reading() as connection:
        for first, last in ((31, 59), (0, 80), (5, 6), (64, 65), (79, 130)):
            start, end = BEGIN + first * DAY_S, BEGIN + last * DAY_S
            found = timeline_nodes.descend(connection, store.user, start, end, 12)
            assert 1 <= len(found) <= 12
            assert all(node.start >= start and node.end <= end for node in found)
            ((held,),) = store.rows("select count(*) from trace where start >= ? and end <= ?", (start, end))
            assert sum(node.traces for node in found) == held
        assert timeline_nodes.descend(connection, store.user, BEGIN - 9e6, BEGIN - 8e6) == []
        early = timeline_nodes.descend(connection, store.user, BEGIN, BEGIN + 80 * DAY_S, at=BEGIN + 2.5 * DAY_S)
        assert max(node.end for node in early) <= BEGIN + 2.5 * DAY_S


def test_what_is_above_follows_a_minute_later_while_a_service_runs_and_is_found_at_once(memories: Memories) -> None:
    store = memories.fresh()
    ticks = [100.0]  # a clock that stands still: a machine that sleeps in between changes nothing here
    worker = Worker(store, build_handlers(store), ticks=lambda: ticks[0])
    write(store, [Moment(0.0, text="A cup.")])
    worker.step()
    assert store.rows("select text from node where level = ?", (DAY,)) == [("A cup.",)]
    write(store, [Moment(30.0, text="A dog.")])
    worker.step()
    assert store.rows("select text from node where level = ?", (CHAPTER,)) == [("A cup.\nA dog.",)]
    assert store.rows("select text from node where level = ?", (DAY,)) == [("A cup.",)]
    with store.reading() as connection:
        (found,) = timeline_nodes.descend(connection, store.user, BEGIN + 35, BEGIN + 90)
    assert found.text == "A dog."
    ticks[0] += 59.0
    worker.step()
    assert store.rows("select text from node where level = ?", (DAY,)) == [("A cup.",)]
    ticks[0] += 1.0
    worker.step()
    assert store.rows("select text from node where level = ?", (DAY,)) == [("A cup.\nA dog.",)]


def test_a_text_of_a_model_stays_until_its_ground_changes(memories: Memories) -> None:
    store = memories.fresh()
    write(store, [Moment(i * 30.0) for i in range(4)])
    drain(store)

    def better(memory: apsw.Connection, text: str) -> int | None:
        (number,) = timeline_text.unwritten(memory, store.user, BEGIN + 10 * DAY_S, 1)
        made_from = timeline_text.ground(memory, number)
        assert made_from is not None
        assert len(made_from.texts) == 4
        camera = timeline_text.rewrite(memory, made_from, text)
        assert camera is not None
        timeline_text.refresh(memory, camera)
        assert timeline_text.rewrite(memory, made_from, "x " * 1000) is not None  # the ground is the same
        timeline_text.rewrite(memory, made_from, text)
        timeline_text.refresh(memory, camera)
        return number

    event = store.transact(lambda memory: better(memory, "They spent two quiet minutes."))
    assert store.rows("select text, summary_source from node where id = ?", (event,)) == [
        ("They spent two quiet minutes.", "model")
    ]
    assert store.rows("select text from node where level = ?", (CHAPTER,)) == [("They spent two quiet minutes.",)]
    with store.reading() as connection:
        stale = timeline_text.ground(connection, event)
    write(store, [Moment(120.0)])
    drain(store)
    assert store.rows("select summary_source from node where level = ?", (EVENT,)) == [("extractive",)]
    assert store.transact(lambda memory: timeline_text.rewrite(memory, stale, "Late.")) is None


def test_summaries_are_short_speak_of_people_by_id_and_tell_what_recurs_and_what_is_new() -> None:
    told = [extract.Sentence(float(i), f"{mention(3)} waters the plants.") for i in range(6)]
    told += [extract.Sentence(6.0, f"{mention(3)} waters the orchids in the greenhouse with {mention(5)}.")]
    told += [extract.Sentence(7.0, "The fire alarm rings."), extract.Sentence(8.0, "It is there.")]
    chosen = extract.extract(told, 20)
    assert sum(map(extract.length, chosen)) <= 20
    assert len(set(chosen)) == len(chosen)
    assert any("{{5}}" in one for one in chosen)
    assert "The fire alarm rings." in chosen
    assert "It is there." not in chosen
    assert list(chosen) == sorted(chosen, key=[one.text for one in told].index)


@given(st.lists(st.tuples(st.text(max_size=200), st.floats(0, 1)), max_size=30), st.integers(1, 120))
def test_any_text_can_be_summarised(texts: list[tuple[str, float]], words: int) -> None:
    told = [extract.Sentence(float(at), text, weight) for at, (text, weight) in enumerate(texts)]
    chosen = extract.extract(told, words)
    assert sum(map(extract.length, chosen)) <= max(words, 41)
    assert chosen == extract.extract(told, words)
    assert bool(chosen) == any(text.strip() for text, _ in texts)


def test_a_script_without_spaces_is_no_single_word() -> None:
    chosen = extract.extract([extract.Sentence(0.0, "字" * 5000), extract.Sentence(1.0, "She waters the plants.")], 50)
    assert sum(map(len, chosen)) < 800
    assert "She waters the plants." in chosen
