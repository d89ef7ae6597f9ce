"""The durable queue and its worker: what was asked for is done, exactly once, whatever happens."""

from __future__ import annotations

import json
import multiprocessing
import random
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from edge.consolidate import Handlers, Worker, build_handlers
from edge.errors import ClaimHeldError, PostponedError, StoreError
from edge.identity import RULES
from edge.memory import Store, StoredTrace, Target, jobs
from edge.memory.tiers import working
from edge.settings import ConsolidateSettings
from edge.types.media import Mode
from edge.types.records import Kind
from tests.command import Command, reflectworld
from tests.memory_support import replayed, segment

__all__ = ["reflectworld"]


@pytest.fixture
def store(home: Path):
    with Store.open(home) as opened:
        yield opened


def ask(store: Store, kind: str, key: str | int, **more: object) -> None:
    store.transact(lambda memory: jobs.enqueue(memory, store.user, kind, key, **more))  # type: ignore[arg-type]


def queue(store: Store) -> list[tuple[str, str]]:
    with store.reading() as connection:
        return [(job.kind, job.key) for job in jobs.all_jobs(connection, store.user, limit=10_000)]


def notes(store: Store) -> list[str]:
    return [text for (text,) in store.rows("select text from note_of_test order by rowid")]


@pytest.fixture
def noting(store: Store) -> Handlers:
    """Handlers that write down what they did, in the transaction that takes the job out of the queue."""
    store.transact(lambda memory: memory.execute("create table note_of_test(text text)") and None)
    handlers = Handlers()

    def prompt(memory: apsw.Connection, job: jobs.Job) -> None:
        memory.execute("insert into note_of_test values(?)", (f"{job.kind} {job.key}",))
        if job.key == "bad":
            raise ValueError("no good")

    handlers.prompt("quick", prompt)
    return handlers


def test_a_commit_asks_for_what_follows_from_it_and_a_drain_does_it(store: Store) -> None:
    numbers = [store.commit(segment(i, who=1 if i else None)).trace for i in range(3)]
    assert queue(store) == [("trace", str(number)) for number in numbers]
    seen: list[tuple[int, int]] = []
    report = Worker(store, build_handlers(store)).drain(lambda done, total: seen.append((done, total)))
    assert [job for job in queue(store) if job[0] == "trace"] == []
    assert report.done >= 3
    assert report.failed == 0
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] == report.done


CRITICAL = (
    "camera", "source", "trace", "line", "entity", "observation", "utterance", "decision", "sample", "gallery", "name_claim",
    "name_history", "pending", "key_frame", "crop", "given_name",
)  # fmt: skip


def test_derived_work_never_writes_what_the_commit_wrote(store: Store) -> None:
    for i in range(24):
        store.commit(segment(i, who=1 if i else None))
    before = {table: sorted(store.rows(f"select * from {table}"), key=repr) for table in CRITICAL}
    refused: list[tuple[str, int]] = []

    def guard(operation: int, table: str | None, *_rest: object) -> int:
        writes = operation in (apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE)
        if writes and table in CRITICAL:
            refused.append((str(table), operation))
            return apsw.SQLITE_DENY
        return apsw.SQLITE_OK

    def watched(memory: apsw.Connection) -> None:
        memory.authorizer = guard

    store.transact(watched)
    report = Worker(store, build_handlers(store)).drain()
    assert (refused, report.failed) == ([], 0)
    assert report.done > 24
    assert {table: sorted(store.rows(f"select * from {table}"), key=repr) for table in CRITICAL} == before
    with pytest.raises(StoreError):
        store.transact(lambda memory: memory.execute("update trace set text = ''") and None)
    assert refused  # the guard does refuse


@pytest.mark.parametrize("mode", list(Mode))
def test_what_is_derived_at_once_in_parts_or_at_the_end_is_the_same(tmp_path: Path, mode: Mode) -> None:
    derived = []
    for every in (1, 9, 1000):
        with Store.open(tmp_path / str(every)) as store:
            for i in range(20):
                draft = segment(i, who=1 if i else None)
                assert draft.trace is not None
                store.commit(replace(draft, trace=replace(draft.trace, mode=mode)))
                if i % every == every - 1:
                    Worker(store, build_handlers(store)).drain()
            Worker(store, build_handlers(store)).drain()
            tree = store.rows(
                "select level, slot, start, end, traces, text, people, places, things from node order by level, start"
            )
            with store.reading() as connection:
                (state,) = working.states(connection, store.user)
            derived.append((tree, replace(state, event=0)))
    assert derived[0] == derived[1] == derived[2]


def test_a_kill_between_jobs_repeats_nothing(home: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    with Store.open(home) as store:
        for i in range(60):
            store.commit(replayed(i))
        store.transact(lambda memory: memory.execute("create table note_of_test(text text)") and None)
    chance = random.Random(1)
    for _ in range(3):
        child = context.Process(target=note_slowly, args=(str(home),), daemon=True)
        child.start()
        child.join(chance.uniform(0.6, 1.2))
        child.kill()
        child.join()
    with Store.open(home) as store:
        Worker(store, noting_handlers()).drain()
        assert sorted(notes(store)) == sorted(f"trace {number}" for number in range(1, 61))
        assert queue(store) == []


def noting_handlers() -> Handlers:
    handlers = Handlers()

    def note(memory: apsw.Connection, job: jobs.Job) -> None:
        memory.execute("insert into note_of_test values(?)", (f"{job.kind} {job.key}",))
        time.sleep(0.004)

    handlers.prompt("trace", note)
    return handlers


def note_slowly(home: str) -> None:
    """The child that is killed."""
    with Store.open(Path(home)) as store:
        Worker(store, noting_handlers()).drain()
        time.sleep(60)


def test_a_bad_job_holds_up_no_other_waits_longer_each_time_and_is_set_aside(store: Store, noting: Handlers) -> None:
    clock = [1000.0]
    worker = Worker(store, noting, now=lambda: clock[0])
    for key in ("a", "bad", "b"):
        ask(store, "quick", key)
    worker.drain()
    assert notes(store) == ["quick a", "quick b"]  # what the bad one wrote is taken back
    waits = []
    for _ in range(jobs.ATTEMPTS - 1):
        with store.reading() as connection:
            (job,) = jobs.all_jobs(connection, store.user)
        waits.append(job.due - clock[0])
        assert "no good" in job.error
        clock[0] = job.due - 0.01
        worker.drain()  # not yet
        clock[0] = job.due
        worker.drain()
    assert waits == sorted(waits)
    assert waits[-1] > waits[0]
    with store.reading() as connection:
        assert jobs.counts(connection, store.user).aside == {"quick": 1}
    assert worker.report.failed == jobs.ATTEMPTS
    assert store.transact(lambda memory: jobs.retry(memory, store.user)) == 1
    assert queue(store) == [("quick", "bad")]


def test_work_that_nobody_can_do_stays(store: Store, noting: Handlers) -> None:
    ask(store, "unheard of", 1)
    Worker(store, noting).drain()
    assert queue(store) == [("unheard of", "1")]


def test_patient_work_waits_for_a_quiet_moment_but_not_for_ever(store: Store, noting: Handlers) -> None:
    clock, busy = [time.time()], [True]

    def slow(job: jobs.Job, _stopping: object) -> None:
        def write(memory: apsw.Connection) -> None:
            if jobs.finish(memory, job):
                memory.execute("insert into note_of_test values(?)", (job.key,))

        store.transact(write)

    noting.patient("slow", slow)
    worker = Worker(store, noting, ConsolidateSettings(patience_s=60), busy=lambda: busy[0], now=lambda: clock[0])
    ask(store, "slow", "one")
    ask(store, "quick", "now")
    worker.step()
    assert notes(store) == ["quick now"]  # prompt work does not wait
    clock[0] += 61
    worker.step()
    assert notes(store)[-1] == "one"
    busy[0] = False
    ask(store, "slow", "two")
    time.sleep(0.01)
    worker.step()
    assert notes(store)[-1] == "two"


def test_work_asked_for_again_while_it_runs_is_done_again(store: Store, noting: Handlers) -> None:
    times: list[bool] = []

    def slow(job: jobs.Job, _stopping: object) -> None:
        if not times:
            ask(store, "slow", job.key)
        times.append(store.transact(lambda memory: jobs.finish(memory, job)))

    noting.patient("slow", slow)
    ask(store, "slow", 1)
    Worker(store, noting).drain()
    assert times == [False, True]
    assert queue(store) == []


def test_what_cannot_be_done_yet_waits_without_a_failure(store: Store, noting: Handlers) -> None:
    def slow(_job: jobs.Job, _stopping: object) -> None:
        raise PostponedError(30.0, "The server does not answer.")

    noting.patient("slow", slow)
    ask(store, "slow", 1)
    worker = Worker(store, noting)
    worker.drain()
    with store.reading() as connection:
        (job,) = jobs.all_jobs(connection, store.user)
    assert (job.attempts, job.failed) == (0, False)
    assert job.due > time.time() + 20
    assert worker.report.failed == 0


def test_recurring_work_comes_back_in_time(store: Store, noting: Handlers) -> None:
    clock = [1000.0]
    noting.every(
        "hourly",
        3600.0,
        lambda memory, _u, now: memory.execute("insert into note_of_test values(?)", (str(now),)) and None,
    )
    worker = Worker(store, noting, now=lambda: clock[0])
    for _ in range(3):
        worker.step()
        worker.step()
        clock[0] += 3600
    assert notes(store) == ["4600.0", "8200.0"]
    assert queue(store) == [("hourly", "")]


def test_only_one_worker_is_at_the_queue(store: Store, noting: Handlers) -> None:
    ask(store, "quick", 1)
    with store.claim("jobs", "another"):
        assert Worker(store, noting).step() == 0
        with pytest.raises(ClaimHeldError, match="another"):
            Worker(store, noting).drain()
    assert Worker(store, noting).step() == 1


def test_a_thread_works_at_once_and_ends_in_time(store: Store, noting: Handlers) -> None:
    begun = threading.Event()

    def endless(_job: jobs.Job, stopping: object) -> None:
        begun.set()
        while not stopping():  # type: ignore[operator]
            time.sleep(0.01)

    noting.patient("slow", endless)
    worker = Worker(store, noting, ConsolidateSettings(poll_s=30))
    worker.start()
    ask(store, "quick", 1)
    worker.wake()
    deadline = time.monotonic() + 5
    while not notes(store) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert notes(store) == ["quick 1"]
    ask(store, "slow", 1)
    worker.wake()
    assert begun.wait(5)
    worker.stop()
    assert worker.join(2)
    assert queue(store) == [("slow", "1")]  # for the next start


def test_jobs_on_the_command_line(home: Path, reflectworld: Command) -> None:
    with Store.open(home) as store:
        for i in range(2):
            store.commit(replayed(i))
        store.transact(lambda memory: jobs.enqueue(memory, store.user, "trace", "no number"))
        clock = [time.time()]
        for _ in range(jobs.ATTEMPTS):
            Worker(store, build_handlers(store), now=lambda: clock[0]).drain()
            clock[0] += 10_000

    def printed(*arguments: str) -> Any:
        return json.loads(reflectworld(*arguments, "--json").out)

    (listed,) = printed("jobs", "list", "--aside")
    assert (listed["kind"], listed["about"], listed["set_aside"]) == ("trace", "no number", True)
    assert listed["id"] in reflectworld("jobs", "list").out
    assert "set aside" in reflectworld("status").out
    assert printed("status")["jobs"] == {"waiting": {}, "aside": {"trace": 1}}
    assert printed("jobs", "retry", listed["id"]) == {"again": 1}
    ran = printed("jobs", "run")
    assert (ran["failed"], ran["waiting"]) == (1, {"trace": 1})
    assert reflectworld("jobs", "retry", "t1").code == 2
    assert reflectworld("jobs", "retry", listed["id"]).code == 2


# -- steps ------------------------------------------------------------------------------------------------------------


def test_a_step_that_fails_holds_up_nothing_else_is_counted_and_set_aside_and_can_be_tried_again(store: Store) -> None:
    """The other steps of a moment are done at once; the one that raises is a job of its own, taken back whole each time."""
    good = False
    times = [1_000.0]

    def look(memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
        memory.execute("insert into note_of_test values(?)", (f"{user} {trace.id}",))
        if not good and trace.id == 1:
            raise KeyError("a rule that nobody foresaw")

    store.transact(lambda memory: memory.execute("create table note_of_test(text text)") and None)
    for i in range(2):
        store.commit(segment(i, who=1 if i else None))
    worker = Worker(store, build_handlers(store, trace_steps=(look,)), now=lambda: times[0])
    worker.drain()
    assert notes(store) == ["owner 2"]
    assert store.rows("select count(*) from node_trace") == [(2,)]
    assert worker.report.failed == 1
    with store.reading() as connection:
        (waiting,) = [job for job in jobs.all_jobs(connection, store.user) if job.kind == jobs.STEP]
    assert (waiting.key, waiting.attempts, waiting.failed) == ("1:test_jobs.look", 1, False)
    assert "nobody foresaw" in waiting.error
    for _ in range(jobs.ATTEMPTS):
        times[0] += 2000.0
        worker.drain()
    assert (worker.report.failed, worker.report.aside) == (jobs.ATTEMPTS, 1)
    with store.reading() as connection:
        assert jobs.counts(connection, store.user).aside == {jobs.STEP: 1}
    good = True
    store.transact(lambda memory: jobs.retry(memory, store.user))
    worker.drain()
    assert sorted(notes(store)) == ["owner 1", "owner 2"]
    assert not [job for job in queue(store) if job[0] in (jobs.STEP, jobs.TRACE)]


def test_a_step_that_failed_goes_with_its_moment_and_trouble_with_the_disk_is_not_its_fault(store: Store) -> None:
    def look(_memory: apsw.Connection, trace: StoredTrace, _user: str) -> None:
        raise apsw.FullError if trace.id == 2 else ValueError

    worker = Worker(store, build_handlers(store, trace_steps=(look,)))
    store.commit(segment(0))
    worker.drain()
    assert ("step", "1:test_jobs.look") in queue(store)
    store.forget(store.forget_plan(Target(items=((Kind.TRACE, 1),))), RULES)
    assert "step" not in dict(queue(store))
    store.commit(segment(1))
    with pytest.raises(StoreError):
        worker.drain()
    assert ("trace", "2") in queue(store)
    assert "step" not in dict(queue(store))
    assert worker.report.failed == 1
