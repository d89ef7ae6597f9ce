"""The tools: who, when, count, and what filters let through, in the module, on the command line and over HTTP."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.consolidate import Worker, build_handlers
from edge.errors import NotFoundError, QuestionError
from edge.memory import Store
from edge.memory.index import Corpus
from edge.recall import Filters, Level, Recall, Tools
from edge.recall.answer.occasions import runs
from tests.command import Command, reflectworld
from tests.recall_data import BERLIN, NOW, BagEmbedder, Script, moment, seen, tell

__all__ = ["reflectworld"]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory):
    embedder = BagEmbedder()
    with Store.open(tmp_path_factory.mktemp("memory")) as store:
        tell(store, embedder)
        t = moment("2025-01-08T12:00:00")
        both = [
            seen("person", t, t + 20, "{{1}} cooked soup in the kitchen.", "a1", 1),
            seen("person", t, t + 20, "{{2}} talked with {{1}}.", "a2", 2),
        ]
        Script(store, embedder).trace(t, [one.text for one in both], observations=both)
        t = moment("2025-01-08T12:30:00")
        Script(store, embedder).trace(t, ["Nobody was there."], camera="kitchen_cam")
        Worker(store, build_handlers(store)).drain()
        yield Recall(store, embedder, now=lambda: NOW, zone=BERLIN).tools


def test_who_somebody_is(tools: Tools) -> None:
    (anna,) = tools.who("anna")
    assert (anna.id, anna.title, anna.kind.value, anna.moments) == ("p1", "Anna", "person", 4)
    assert anna.first_seen == moment("2025-01-06T09:00:00")
    assert anna.last_seen == moment("2025-01-08T12:00:20")
    assert anna.last_moment == "t5"
    assert [(one.id, one.moments) for one in anna.company] == [("p2", 1)]
    assert tools.who("p2") == tools.who("person 2")
    with pytest.raises(NotFoundError):
        tools.who("Berta")


def test_who_somebody_was_at_a_time(tools: Tools) -> None:
    (anna,) = tools.who("Anna", at=moment("2025-01-07T00:00:00"))
    assert (anna.moments, anna.last_moment, anna.company) == (2, "t2", ())
    with pytest.raises(NotFoundError):  # not met yet
        tools.who("person 2", at=moment("2025-01-07T00:00:00"))


def test_when_and_how_often(tools: Tools) -> None:
    hers = Filters(person="Anna")
    assert [one.first for one in tools.when(hers)] == ["t5", "t4", "t1"]  # t2 follows t1 at once
    (first,) = tools.when(hers, 1, oldest_first=True)
    assert (first.first, first.last, first.moments) == ("t1", "t2", 2)
    count = tools.count(hers)
    assert (count.times, count.moments, count.days) == (3, 4, 2)
    assert count.seconds == pytest.approx(40.0 + 20.0 + 20.0)
    assert count.first is not None
    assert count.last is not None
    assert (count.first.first, count.last.last) == ("t1", "t5")
    assert tools.count(hers, at=moment("2025-01-07T00:00:00")).moments == 2
    with pytest.raises(QuestionError):
        tools.count(Filters())


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(thing="cup"), {"t1", "t3"}),
        (Filters(thing="mugs"), {"t1", "t3"}),
        (Filters(thing="screwdriver"), {"t3"}),  # that no detector knows
        (Filters(thing="blue umbrella"), {"t4"}),
        (Filters(thing="sofa", person="Anna"), {"t1"}),
        (Filters(thing="unicorn"), set()),
        (Filters(place="kitchen"), {"t5", "t6"}),  # told, and where the camera stands
        (Filters(place="kitchen", person="Anna"), {"t5"}),
        (Filters(important=True), {"t1", "t2", "t4", "t5"}),
        (Filters(important=True, since=moment("2025-01-08T00:00:00")), {"t4", "t5"}),
    ],
)
def test_filters_by_thing_place_and_importance(tools: Tools, filters: Filters, expected: set[str]) -> None:
    assert {one.id for one in tools.search(Level.TRACE, "what was there", filters, 50)} == expected
    assert tools.count(filters).moments == len(expected)


def test_what_ended_later_is_not_there(tools: Tools) -> None:
    early = moment("2025-01-06T12:00:00")
    assert [one.id for one in tools.get("t1", 5, at=early)] == ["t1", "t2"]
    for item in ("t4", "u5", "n1"):
        with pytest.raises(NotFoundError):
            tools.get(item, at=early - 86_400.0 if item == "n1" else early)
        with pytest.raises(NotFoundError):
            tools.evidence(item, at=early - 86_400.0 if item == "n1" else early)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 30), st.booleans()), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_times_hold_every_moment_once_and_do_not_overlap(parts: list[tuple[int, int, int, bool]]) -> None:
    starts, ends, at = [], [], {0: 0.0, 1: 0.0, 2: 0.0}
    for camera, pause, length, _ in parts:
        starts.append(at[camera] + pause)
        ends.append(starts[-1] + length)
        at[camera] = ends[-1]
    through = np.array([there for *_, there in parts], bool)
    corpus = Corpus(
        np.arange(1, len(parts) + 1), np.ones(len(parts), np.float32), np.array(starts, float), np.array(ends, float),
        np.array([camera for camera, *_ in parts], np.int32), slice(0, len(parts)),
    )  # fmt: skip
    found = runs(corpus, through)
    assert sum(moments for _, _, moments, _, _ in found) == int(through.sum())
    assert all(a[1] < b[0] for a, b in pairwise(found))
    for row in np.flatnonzero(through).tolist():
        assert sum(start <= starts[row] and ends[row] <= end for start, end, *_ in found) == 1


def test_the_commands(reflectworld: Command, home: Path) -> None:
    with Store.open(home) as store:
        tell(store, None)
    (person,) = json.loads(reflectworld("who", "Anna", "--json").out)
    assert list(person) == [
        "id", "title", "kind", "first_seen", "last_seen", "last_moment", "moments", "facts", "company",
    ]  # fmt: skip
    assert "Anna  p1  (3 moments)" in reflectworld("who", "Anna").out
    times = json.loads(reflectworld("when", "cup", "--json").out)
    assert [one["first"] for one in times] == ["t3", "t1"]
    assert list(times[0]) == ["start", "end", "moments", "first", "last"]
    assert reflectworld("when", "cup", "--first", "-n", "1").out.count("t1") == 1
    counted = json.loads(reflectworld("count", "cup", "--camera", "garage", "--json").out)
    assert (counted["times"], counted["moments"], counted["days"], counted["seconds"]) == (1, 1, 1, 20.0)
    assert reflectworld("count", "unicorn").out.startswith("Never")
    assert reflectworld("count").code == 2
    assert [one["id"] for one in json.loads(reflectworld("get", "t1", "--neighbours", "1", "--json").out)] == [
        "t1",
        "t2",
    ]
    assert {one["id"] for one in json.loads(reflectworld("get", "t3", "--evidence", "--json").out)} >= {"o7", "u3"}
    found = json.loads(reflectworld("search", "table", "--thing", "cup", "--person", "Anna", "--json").out)
    assert [one["id"] for one in found] == ["t1"]
