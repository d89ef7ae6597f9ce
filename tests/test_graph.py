"""The graph: what moments say of who and what is related, the same whatever came first, corrected and forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.consolidate import Handlers, Worker
from edge.identity import RULES, merge_people, undo
from edge.memory import Store, Target, jobs, stored_trace
from edge.memory.tiers import graph
from edge.recall import key_of, related
from edge.recall.search.pagerank import push
from edge.types.records import Kind
from tests.command import Command, reflectworld
from tests.facts_support import BEGIN, DAY_S, people

__all__ = ["reflectworld"]

TEXTS = (
    "{{1}} put a cup on a table.",
    "{{1}} and {{2}} talked in the kitchen.",
    "{{2}} gave a book to {{1}}.",
    "{{3}} used a laptop at a desk.",
    "{{1}} ate an apple.",
    "A dog was on a sofa.",
    "Nothing went on.",
)


@dataclass(frozen=True)
class Told:
    """A moment to be."""

    day: int
    half: int  # half minutes since the begin of the day
    camera: str
    text: str

    @property
    def start(self) -> float:
        return BEGIN + self.day * DAY_S + self.half * 30.0


MOMENTS = st.lists(
    st.builds(
        Told, st.integers(0, 5), st.integers(0, 2000), st.sampled_from(["hall", "kitchen"]), st.sampled_from(TEXTS)
    ),
    min_size=3,
    max_size=25,
    unique_by=lambda one: (one.day, one.half, one.camera),
)
BOUNDS = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def write(store: Store, moments: list[Told]) -> list[int]:
    def work(memory: apsw.Connection) -> list[int]:
        numbers = []
        for one in moments:
            memory.execute(
                "insert or ignore into camera(user, name, created) values(?, ?, 0)", (store.user, one.camera)
            )
            memory.execute(
                "insert into trace(camera, start, end, text, mode, counts, detail, ingested)"
                " select id, ?, ?, ?, 'offline_quality', '{}', '{}', 0 from camera where name = ?",
                (one.start, one.start + 20, one.text, one.camera),
            )
            trace = memory.last_insert_rowid()
            memory.execute("insert into line(trace, at, text) values(?, ?, ?)", (trace, one.start, one.text))
            for who in (1, 2, 3):
                if f"{{{{{who}}}}}" in one.text:
                    memory.execute(
                        "insert into observation(trace, anchor, label, entity, start, end, text, score, boxes, detail)"
                        " values(?, ?, 'person', ?, ?, ?, '', 0.9, '[]', '{}')",
                        (trace, f"a{who}", who, one.start, one.start + 20),
                    )
            numbers.append(trace)
            jobs.enqueue(memory, store.user, jobs.TRACE, trace, priority=jobs.AT_ONCE)
        return numbers

    return store.transact(work)


def derive(store: Store) -> None:
    handlers = Handlers()

    def again(memory: apsw.Connection, job: jobs.Job) -> None:
        graph.note_again(memory, int(job.key), stored_trace(memory, job.user, int(job.key)), job.user)

    handlers.prompt(jobs.TRACE, again)
    handlers.prompt(jobs.RETRACE, again)
    assert Worker(store, handlers).drain().failed == 0


def rows(store: Store) -> list[tuple[object, ...]]:
    """All bonds and triples, by what they say."""
    node = "(select kind || ':' || name from graph_node where id = b.{})"
    bond = f"{node.format('subject')}, b.relation, {node.format('object')}"
    found = store.rows(f"select {bond}, b.moments, b.days, b.weight, b.first, b.last from graph_bond b")
    found += store.rows(f"select {bond}, x.at, x.end from graph_triple x join graph_bond b on b.id = x.bond")
    found += [("node", *row) for row in store.rows("select kind, name from graph_node")]
    return sorted(found, key=repr)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    folder = tmp_path_factory.mktemp("graph")
    made = (Store.open(folder / "one"), Store.open(folder / "other"))
    yield made
    for store in made:
        store.close()


def fresh(stores: tuple[Store, Store]) -> tuple[Store, Store]:
    def empty(memory: apsw.Connection) -> None:
        graph.clear(memory, "owner")
        for table in ("correction", "trace", "graph_node", "entity", "job", "provenance", "camera", "moved"):
            memory.execute(f"delete from {table}")

    for store in stores:
        store.transact(empty)
        people(store, ["Anna", "Tom", "Zoe"])
    return stores


@BOUNDS
@given(MOMENTS, st.randoms(use_true_random=False))
def test_whatever_came_first_the_graph_is_the_same(
    stores: tuple[Store, Store], moments: list[Told], shuffle: object
) -> None:
    one, other = fresh(stores)
    write(one, sorted(moments, key=lambda moment: moment.start))
    derive(one)
    mixed = list(moments)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    for half in (mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]):
        write(other, half)
        derive(other)
    assert rows(one) == rows(other)


@BOUNDS
@given(MOMENTS, st.lists(st.integers(0, 30), min_size=1, max_size=4))
def test_what_is_forgotten_was_never_there(stores: tuple[Store, Store], moments: list[Told], which: list[int]) -> None:
    one, other = fresh(stores)
    numbers = write(one, moments)
    derive(one)
    left = list(moments)
    for place in which:
        if left:
            at = place % len(left)
            one.forget(one.forget_plan(Target(items=((Kind.TRACE, numbers.pop(at)),))), RULES)
            del left[at]
    derive(one)
    write(other, left)
    derive(other)
    assert rows(one) == rows(other)


def test_a_merge_makes_two_into_one_and_an_undo_two_again(home: Path) -> None:
    with Store.open(home) as store:
        people(store, ["Anna", "Tom", "Zoe"])
        write(store, [Told(day, 10 * day, "hall", text) for day, text in enumerate(TEXTS)])
        derive(store)
        before = rows(store)
        record = merge_people(store, 1, 3)
        derive(store)
        assert not any("person:3" in str(row) for row in rows(store))
        assert {one.sentence for one in related(store, key_of(store, "Anna"))} >= {
            "Anna uses the laptop",
            "Tom gives something to Anna",
        }
        undo(store, record.id)
        derive(store)
        assert rows(store) == before


def test_relations_are_told_by_their_strength_as_of_any_time(home: Path, reflectworld: Command) -> None:
    with Store.open(home) as store:
        people(store, ["Anna", "Tom", "Zoe"])
        write(store, [Told(day, 100, "hall", TEXTS[0]) for day in range(4)])
        write(store, [Told(5, 100 + place, "hall", TEXTS[4]) for place in range(6)])
        derive(store)
        found = related(store, key_of(store, "Anna"))
        assert found[0].sentence == "Anna puts the cup"
        assert (found[0].moments, found[0].days, found[0].sources) == (4, 4, ("t4", "t3", "t2"))
        assert any(one.sentence == "Anna eats or drinks the apple" and one.days == 1 for one in found)
        then = related(store, key_of(store, "Anna"), at=BEGIN + 1.5 * DAY_S)
        assert {(one.sentence, one.moments) for one in then} >= {("Anna puts the cup", 2)}
        assert not any("apple" in one.sentence for one in then)
        assert key_of(store, "trombone") is None
        assert related(store, None, limit=3)
    shown = reflectworld("graph", "cup")
    assert "Anna puts the cup  (4 moments on 4 days" in shown.out
    document = json.loads(reflectworld("graph", "Anna", "--json").out)
    assert document[0].keys() == {
        "subject",
        "relation",
        "object",
        "person",
        "moments",
        "days",
        "weight",
        "first",
        "last",
        "sources",
    }
    assert reflectworld("graph", "trombone").code != 0


@settings(max_examples=40, deadline=None)
@given(
    st.integers(3, 12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.floats(0.1, 5.0)), min_size=2, max_size=40),
    st.integers(0, 11),
)
def test_the_push_is_short_of_the_exact_walk_by_no_more_than_it_says(
    count: int, edges: list[tuple[int, int, float]], seed: int
) -> None:
    weights = np.zeros((count, count))
    for one, other, weight in edges:
        if one % count != other % count:
            weights[one % count, other % count] += weight
            weights[other % count, one % count] += weight
    degrees = weights.sum(axis=1)

    def neighbours(node: int) -> tuple[list[tuple[int, float]], float]:
        return [(int(other), float(weights[node, other])) for other in np.flatnonzero(weights[node])], float(
            degrees[node]
        )

    start = np.zeros(count)
    start[seed % count] = 1.0
    steps = np.divide(weights, degrees[:, None], out=np.zeros_like(weights), where=degrees[:, None] > 0)
    exact, here = np.zeros(count), start
    for _ in range(200):  # a walk that ends with a chance of a half at each step; where nothing leads on it ends
        ends = np.where(degrees > 0, 0.5, 1.0)
        exact += here * ends
        here = (here * (1 - ends)) @ steps
    found = push({seed % count: 1.0}, neighbours, left=1e-4, pushes=500)
    scores = np.array([found.scores.get(node, 0.0) for node in range(count)])
    assert (scores <= exact + 1e-9).all()
    assert (exact - scores).sum() <= found.left + 1e-6
    assert found.left <= 1e-4 * count + 1e-9
