"""The durable queue: work that waits in the database, done at least once and counted once.

Invariants:

* A job is enqueued in the transaction that makes it necessary, so that neither is kept without the other.
* What waits is named by (user, kind, key): asked for twice before it is begun, it is done once.
* A job's results are written in the transaction that takes it out of the queue (`finish`), so that a kill at any point
  repeats nothing twice; one that was asked for again while it ran stays in the queue.
* One that fails waits longer each time (`fail`) and is set aside after `ATTEMPTS`; what is set aside is kept and shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from edge.clock import utc_now
from edge.memory.database import fetch, sql

TRACE: Final = "trace"  # a new trace: derive what follows from it
RETRACE: Final = "rederive-trace"  # a trace that was corrected or forgotten
STEP: Final = "step"  # one of the steps of these that failed; its key begins with the id of the trace
AT_ONCE: Final = 100  # priority of deterministic work, which does not wait for a quiet moment

ATTEMPTS: Final = 5
BACKOFF_S: Final = (5.0, 30.0, 180.0, 1080.0)  # waits after the first, second, … failure

JOBS_V1 = """
create table job(
  id integer primary key autoincrement, user text not null, kind text not null, key text not null,
  payload text not null, priority integer not null, created real not null, due real not null,
  attempts integer not null default 0, generation integer not null default 0, failed integer not null default 0,
  error text not null default '', unique(user, kind, key));
create index job_due on job(failed, priority desc, due, id);
create index job_kind on job(user, failed, kind, due);
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work."""

    id: int
    user: str
    kind: str
    key: str
    payload: Mapping[str, Any]
    priority: int
    created: float  # UTC POSIX seconds
    due: float  # UTC POSIX seconds: not before
    attempts: int  # that failed
    generation: int  # rises when it is asked for again
    failed: bool  # set aside
    error: str  # why it failed last


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How full the queue is."""

    waiting: Mapping[str, int]  # kind -> how many, those included that are tried again later
    aside: Mapping[str, int]  # kind -> how many failed too often


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    connection.execute(JOBS_V1)


def enqueue(
    memory: apsw.Connection,
    user: str,
    kind: str,
    key: str | int,
    payload: Mapping[str, Any] | None = None,
    *,
    due: float = 0.0,
    priority: int = 0,
) -> None:
    """Ask for work, inside the transaction that makes it necessary.

    Args:
        memory: the writer's connection.
        user: whose memory.
        kind: names the handler, such as "trace".
        key: what it is about, such as the id of a trace; the same again while it waits is one job.
        payload: JSON values; that of the latest call counts.
        due: UTC POSIX seconds before which it is not begun; of two calls the earlier counts.
        priority: larger is sooner.
    """
    memory.execute(
        "insert into job(user, kind, key, payload, priority, created, due) values(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " on conflict(user, kind, key) do update set payload = excluded.payload, due = min(due, excluded.due),"
        " priority = max(priority, excluded.priority), generation = generation + 1, failed = 0, attempts = 0",
        (user, kind, str(key), json.dumps(payload or {}), priority, utc_now(), due),
    )


def ensure(memory: apsw.Connection, user: str, kind: str, key: str | int, due: float) -> None:
    """Ask for work that recurs, unless it is asked for already; inside a transaction.

    Args:
        memory: the writer's connection.
        user: whose memory.
        kind: names the handler.
        key: what it is about.
        due: UTC POSIX seconds before which it is not begun.
    """
    memory.execute(
        "insert or ignore into job(user, kind, key, payload, priority, created, due) values(?, ?, ?, '{}', 0, ?, ?)",
        (user, kind, str(key), utc_now(), due),
    )


def next_due(
    connection: apsw.Connection, user: str, now: float, *, kinds: tuple[str, ...] | None = None, limit: int = 1
) -> list[Job]:
    """The jobs to do next; of those that are due, the most urgent and then the oldest first."""
    columns = (
        "select id, user, kind, key, payload, priority, created, due, attempts, generation, failed, error from job"
    )
    order = "order by priority desc, due, id limit ?"
    if kinds is None:
        rows = fetch(connection, sql(columns, "where user = ? and failed = 0 and due <= ?", order), (user, now, limit))
    else:  # whatever waits of other kinds costs nothing
        some = "indexed by job_kind where user = ? and failed = 0 and kind in (select value from json_each(?)) and due <= ?"
        rows = fetch(connection, sql(columns, some, order), (user, json.dumps(kinds), now, limit))
    return [_job(row) for row in rows]


def all_jobs(connection: apsw.Connection, user: str, *, failed: bool | None = None, limit: int = 100) -> list[Job]:
    """What waits and what was set aside, oldest first."""
    statement = (
        "select id, user, kind, key, payload, priority, created, due, attempts, generation, failed, error from job"
        " where user = ?1 and (?2 is null or failed = ?2) order by id limit ?3"
    )
    return [_job(row) for row in fetch(connection, statement, (user, failed, limit))]


def counts(connection: apsw.Connection, user: str) -> JobCounts:
    """How much waits and how much was set aside, by kind; what recurs counts once its time has come."""
    waiting: dict[str, int] = {}
    aside: dict[str, int] = {}
    each = (
        "select kind, failed, count(*) from job where user = ? and (due <= ? or attempts > 0) group by kind, failed"
        " order by kind"
    )
    for kind, failed, number in fetch(connection, each, (user, utc_now())):
        (aside if failed else waiting)[kind] = number
    return JobCounts(waiting, aside)


def asked_for(connection: apsw.Connection, user: str, kinds: tuple[str, ...]) -> set[str]:
    """Which of some kinds are in the queue, due or not, or were set aside."""
    there = "select distinct kind from job where user = ? and kind in (select value from json_each(?))"
    return {kind for (kind,) in fetch(connection, there, (user, json.dumps(kinds)))}


def waiting(connection: apsw.Connection, user: str, now: float, kinds: tuple[str, ...]) -> int:
    """How many of some kinds are due."""
    counted = "select count(*) from job where user = ? and failed = 0 and kind in (select value from json_each(?)) and due <= ?"
    return int(fetch(connection, counted, (user, json.dumps(kinds), now))[0][0])


def postpone(memory: apsw.Connection, job: Job, due: float) -> None:
    """Let a job wait until `due` (UTC POSIX seconds), which is no failure; inside a transaction."""
    memory.execute("update job set due = ? where id = ? and generation = ?", (due, job.id, job.generation))


def finish(memory: apsw.Connection, job: Job) -> bool:
    """Take a job out of the queue, in the transaction that writes its results.

    Returns:
        False: it was asked for again meanwhile and stays, or is gone; write results only if they hold all the same.
    """
    memory.execute("delete from job where id = ? and generation = ?", (job.id, job.generation))
    return memory.changes() > 0


def fail(memory: apsw.Connection, job: Job, error: str, now: float) -> bool:
    """Note a failure, in a transaction of its own.

    Returns:
        Whether the job was set aside for good.
    """
    attempts = job.attempts + 1
    aside = attempts >= ATTEMPTS
    wait = BACKOFF_S[min(attempts, len(BACKOFF_S)) - 1]
    memory.execute(
        "update job set attempts = ?, failed = ?, error = ?, due = ? where id = ? and generation = ?",
        (attempts, aside, error[:500], now + wait, job.id, job.generation),
    )
    return aside


def retry(memory: apsw.Connection, user: str, number: int | None = None) -> int:
    """Take what was set aside (or one of it) back into the queue.

    Returns:
        How many.
    """
    memory.execute(
        "update job set failed = 0, attempts = 0, due = 0 where user = ?1 and failed = 1 and (?2 is null or id = ?2)",
        (user, number),
    )
    return memory.changes()


def _job(row: tuple[Any, ...]) -> Job:
    number, user, kind, key, payload, priority, created, due, attempts, generation, failed, error = row
    return Job(
        number, user, kind, key, json.loads(payload), priority, created, due, attempts, generation, bool(failed), error
    )
