"""Scene memory: what is usual in front of a camera and what is not, the same whatever came first and without what is forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.consolidate import Handlers, Worker, build_handlers
from edge.identity import RULES
from edge.memory import Store, Target, jobs, stored_trace
from edge.memory.tiers import scene
from edge.memory.tiers.scene import reads, words
from edge.memory.tiers.scene.baseline import Oddity
from edge.memory.tiers.scene.days import PERSON
from edge.notify import Notifier
from edge.settings import NotifySettings
from edge.types.records import Kind
from tests.command import Command, reflectworld
from tests.facts_support import BEGIN, DAY_S, Moment, people, write

__all__ = ["reflectworld"]

HOUR_S = 3600.0
MOMENTS = st.lists(
    st.builds(
        Moment,
        st.integers(0, 6),
        st.integers(0, 470).map(lambda twentieth: twentieth / 20),
        st.sampled_from(["hall", "kitchen"]),
        st.sampled_from([(), (1,), (1, 2)]),
        st.sampled_from([None, "a table"]),
    ),
    min_size=3,
    max_size=30,
    unique_by=lambda one: (one.day, one.hour),
)
BOUNDS = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def derive(store: Store) -> None:
    handlers = Handlers()

    def note(memory: apsw.Connection, job: jobs.Job) -> None:
        scene.note_again(memory, int(job.key), stored_trace(memory, job.user, int(job.key)), job.user)

    handlers.prompt(jobs.TRACE, note)
    handlers.prompt(jobs.RETRACE, note)
    handlers.prompt(scene.SCENE, scene.settle_job)
    assert Worker(store, handlers).drain().failed == 0


def tallies(store: Store) -> list[tuple[object, ...]]:
    """All that is counted, by the names of cameras and the times of moments."""
    cell = "select c.name, y.hour, y.what, y.traces, y.most, y.at from scene_tally y join camera c on c.id = y.camera"
    hour = "select c.name, h.hour, h.traces from scene_hour h join camera c on c.id = h.camera where h.traces > 0"
    return sorted([*store.rows(cell), *store.rows(hour)], key=repr)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    folder = tmp_path_factory.mktemp("scene")
    made = (Store.open(folder / "one"), Store.open(folder / "other"))
    yield made
    for store in made:
        store.close()


def fresh(stores: tuple[Store, Store]) -> tuple[Store, Store]:
    def empty(memory: apsw.Connection) -> None:
        for table in ("trace", "entity", "job", "provenance", "camera", "moved"):
            memory.execute(f"delete from {table}")

    for store in stores:
        store.transact(empty)
        people(store, ["Anna", "Tom"])
    return stores


@BOUNDS
@given(MOMENTS, st.randoms(use_true_random=False))
def test_whatever_came_first_the_counts_are_the_same(
    stores: tuple[Store, Store], moments: list[Moment], shuffle: object
) -> None:
    one, other = fresh(stores)
    write(one, sorted(moments, key=lambda moment: moment.start))
    derive(one)
    mixed = list(moments)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    for half in (mixed[: len(mixed) // 2], mixed[len(mixed) // 2 :]):
        write(other, half)
        derive(other)
    assert tallies(one) == tallies(other)


@BOUNDS
@given(MOMENTS, st.lists(st.integers(0, 40), min_size=1, max_size=5))
def test_what_is_forgotten_was_never_counted(
    stores: tuple[Store, Store], moments: list[Moment], which: list[int]
) -> None:
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
    assert tallies(one) == tallies(other)


@pytest.fixture
def lived(home) -> Iterator[Store]:  # type: ignore[no-untyped-def]
    """Three weeks of a hall: somebody at eight and at six, and a cup; and one night, at three, somebody."""
    with Store.open(home) as store:
        people(store, ["Anna", "Tom"])
        write(
            store, [Moment(day, hour, "hall", (1,), "a table") for day in range(21) for hour in (8.0, 8.1, 18.0, 18.2)]
        )
        write(store, [Moment(20, 3.5, "hall", (2,)), Moment(20, 3.6, "hall", (2,))])

        def watched(memory: apsw.Connection) -> None:  # it watched all the time, also when nothing was to be seen
            ((camera,),) = memory.execute("select id from camera").fetchall()
            for minute in range(21 * 24 * 60):
                scene.note_quiet(memory, camera, BEGIN + minute * 60.0, BEGIN + minute * 60.0 + 60.0)

        store.transact(watched)
        derive(store)
        yield store


def test_somebody_in_the_night_is_unusual_and_said_with_what_it_is_compared_with(
    lived: Store, reflectworld: Command
) -> None:
    with lived.reading() as connection:
        before = reads.found(connection, lived.user, BEGIN + 10 * DAY_S, BEGIN + 20 * DAY_S)
        found = reads.found(connection, lived.user, BEGIN + 20 * DAY_S, BEGIN + 21 * DAY_S)
        marked = reads.marks(connection, lived.user, [(85, BEGIN + 20 * DAY_S + 3.5 * HOUR_S), (1, BEGIN + 8 * HOUR_S)])
    assert before == []
    assert [one.anomaly.kind for one in found] == [Oddity.UNEXPECTED]
    assert (
        words.sentence(found[0]) == "Somebody at 03:30: so on none of 14 working days before, between 02:00 and 05:00."
    )
    assert list(marked) == [85]
    document = json.loads(
        reflectworld("scene", "anomalies", "--since", "2025-01-20", "--until", "2025-01-22", "--json").out
    )
    assert [one["trace"] for one in document] == ["t85"]
    assert (
        "Somebody at 03:30" in reflectworld("scene", "anomalies", "--since", "2025-01-20", "--until", "2025-01-22").out
    )


def test_what_a_camera_looks_at_and_what_is_usual_there(lived: Store, reflectworld: Command) -> None:
    with lived.reading() as connection:
        (hall,) = reads.describe(connection, lived.user, BEGIN + 21 * DAY_S)
    assert not hall.moving
    assert "cup" in [what for what, _, _ in hall.things]
    assert {one.what for one in hall.routines} >= {PERSON}
    assert hall.days == 21
    assert reflectworld("scene", "show", "hall").out.startswith("hall: a hall")
    assert reflectworld("scene", "show", "attic").code != 0


def test_before_there_is_history_nothing_is_unusual(home) -> None:  # type: ignore[no-untyped-def]
    with Store.open(home) as store:
        people(store, ["Anna"])
        write(store, [Moment(day, 8.0 + 5 * (day == 4), "hall", (1,)) for day in range(5)])
        derive(store)
        with store.reading() as connection:
            assert reads.found(connection, store.user, BEGIN, BEGIN + 6 * DAY_S) == []


def test_a_rule_tells_of_what_is_unusual_at_a_place(home) -> None:  # type: ignore[no-untyped-def]
    with Store.open(home) as store:
        people(store, ["Anna", "Tom"])
        notifier = Notifier(store, NotifySettings())
        worker = Worker(store, build_handlers(store, trace_steps=(notifier.look,)))
        write(store, [Moment(day, hour, "hall", (1,)) for day in range(20) for hour in (8.0, 8.1, 18.0, 18.2)])

        def watched(memory: apsw.Connection) -> None:
            ((camera,),) = memory.execute("select id from camera").fetchall()
            for minute in range(21 * 24 * 60):
                scene.note_quiet(memory, camera, BEGIN + minute * 60.0, BEGIN + minute * 60.0 + 60.0)

        store.transact(watched)
        worker.drain()
        notifier.add("tell me when something unusual happens in the hall", now=BEGIN + 20 * DAY_S)
        write(store, [Moment(20, 3.5, "hall", (2,)), Moment(20, 3.6, "hall", (2,)), Moment(20, 8.0, "hall", (1,))])
        worker.drain()
        (told,) = notifier.alerts()  # eight o'clock is as usual
    assert (told.rule, told.trace) == (1, 81)
    assert "Somebody at 03:30" in told.text
