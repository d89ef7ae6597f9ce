"""The owner's rules, reminders and preferences, and what was sent when and why: tables, reads and writes.

A rule is kept as the owner said it, with the moment at which it was said: what it means is read from that again whenever it
is needed, so that there is one truth. A decision about a rule (`alert`) is kept with its reason and the ids of what it rests
on, whether word was sent or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import apsw

from edge.clock import utc_now
from edge.memory.database import fetch, insert

PROCEDURAL_V1 = """
create table rule(
  id integer primary key autoincrement, user text not null, kind text not null, text text not null, created real not null,
  camera text, urgent integer not null default 0, state text not null default 'active', cooldown real,
  last_true real, last_fired real, due real,
  after integer not null default 0);
create index rule_user on rule(user, state);
create index rule_due on rule(state, due);
create table alert(
  id integer primary key autoincrement, user text not null, rule integer references rule(id) on delete cascade,
  trace integer references trace(id) on delete cascade, at real not null, decided real not null, outcome text not null,
  reason text not null, topic text not null, text text not null, ground text not null, sent text not null default '{}',
  read integer not null default 0);
create index alert_time on alert(user, at);
create index alert_rule on alert(rule, at);
create index alert_topic on alert(user, topic, at);
create index alert_trace on alert(trace);
"""

KEPT_DROPS: Final = 200  # decisions of a rule to send nothing that are kept, the latest


class RuleKind(StrEnum):
    """What a rule is for."""

    ALERT = "alert"  # tell me when
    REMINDER = "reminder"  # remind me to
    QUIET = "quiet"  # send nothing between


class RuleState(StrEnum):
    """Whether a rule counts."""

    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"  # a reminder that was given


class Outcome(StrEnum):
    """What was decided about one match."""

    DELIVER = "deliver"
    DIGEST = "digest"  # told later, with others
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class RuleRecord:
    """A rule as kept."""

    id: int
    kind: RuleKind
    text: str  # as the owner said it
    created: float  # UTC POSIX seconds
    camera: str | None  # only what this camera sees; None: any
    urgent: bool  # also in quiet hours
    state: RuleState
    cooldown: float | None  # s between two messages; None: as the settings say
    last_true: float | None  # UTC POSIX seconds at which what it watches for was last so
    last_fired: float | None  # UTC POSIX seconds of the last message
    due: float | None  # UTC POSIX seconds at which time itself fires it next
    after: int = 0  # only segments with a larger id: a rule is for what comes


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """A decision about a rule."""

    id: int
    rule: int | None
    trace: int | None  # None: fired by time
    at: float  # UTC POSIX seconds of what happened
    decided: float  # UTC POSIX seconds
    outcome: Outcome
    reason: str
    topic: str
    text: str  # with mentions
    ground: tuple[str, ...]  # public ids of what it rests on
    sent: Mapping[str, str]  # sink -> "ok" or why not
    read: bool


_RULE = "select id, kind, text, created, camera, urgent, state, cooldown, last_true, last_fired, due, after from rule"
_ALERT = "select id, rule, trace, at, decided, outcome, reason, topic, text, ground, sent, read from alert"


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    connection.execute(PROCEDURAL_V1)


# -- rules ------------------------------------------------------------------------------------------------------------


def add_rule(
    memory: apsw.Connection,
    user: str,
    kind: RuleKind,
    text: str,
    *,
    created: float,
    camera: str | None = None,
    urgent: bool = False,
    cooldown: float | None = None,
    due: float | None = None,
) -> int:
    """Keep a rule.

    Returns:
        Its id.
    """
    values: dict[str, Any] = {
        "user": user,
        "kind": kind,
        "text": text,
        "created": created,
        "camera": camera,
        "urgent": urgent,
        "cooldown": cooldown,
        "due": due,
    }
    values["after"] = fetch(memory, "select coalesce(max(id), 0) from trace")[0][0]
    return insert(memory, "rule", values)


def rules(connection: apsw.Connection, user: str, state: RuleState | None = None) -> list[RuleRecord]:
    """The rules of a user, oldest first."""
    where = "where user = ?1 and (?2 is null or state = ?2) order by id"
    return [_rule(row) for row in fetch(connection, f"{_RULE} {where}", (user, state))]


def rule(connection: apsw.Connection, user: str, number: int) -> RuleRecord | None:
    """One rule; None: there is none of this id."""
    rows = fetch(connection, f"{_RULE} where user = ? and id = ?", (user, number))
    return _rule(rows[0]) if rows else None


def due_rules(connection: apsw.Connection, user: str, now: float) -> list[RuleRecord]:
    """Active rules that time fires by now."""
    where = "where user = ? and state = 'active' and due <= ? order by due, id"
    return [_rule(row) for row in fetch(connection, f"{_RULE} {where}", (user, now))]


def set_state(memory: apsw.Connection, number: int, state: RuleState) -> None:
    """Let a rule count, or not."""
    memory.execute("update rule set state = ? where id = ?", (state, number))


def remove_rule(memory: apsw.Connection, number: int) -> None:
    """Forget a rule with all that was decided about it."""
    memory.execute("delete from rule where id = ?", (number,))


def note_true(memory: apsw.Connection, number: int, at: float) -> None:
    """Note when what a rule watches for was so; event times may come in any order."""
    memory.execute("update rule set last_true = max(coalesce(last_true, 0), ?) where id = ?", (at, number))


def note_due(memory: apsw.Connection, number: int, due: float | None) -> None:
    """Note when time fires a rule next."""
    memory.execute("update rule set due = ? where id = ?", (due, number))


def look_from_now(memory: apsw.Connection, user: str) -> None:
    """Let no rule look at a segment that is there already, for example one that was imported: it is no news."""
    memory.execute("update rule set after = (select coalesce(max(id), 0) from trace) where user = ?", (user,))


def moments_between(connection: apsw.Connection, user: str, start: float, end: float, camera: str | None = None) -> int:
    """How many segments were remembered in a span (UTC POSIX seconds)."""
    sql = (
        "select count(*) from trace t join camera c on c.id = t.camera where +c.user = ?1 and t.start < ?3 and t.end > ?2"
        " and t.start > ?2 - 3600 and (?4 is null or c.name = ?4)"
    )
    return int(fetch(connection, sql, (user, start, end, camera))[0][0])


# -- decisions --------------------------------------------------------------------------------------------------------


def add_alert(
    memory: apsw.Connection,
    user: str,
    rule_id: int,
    trace: int | None,
    *,
    at: float,
    outcome: Outcome,
    reason: str,
    topic: str,
    text: str,
    ground: Sequence[str],
) -> int:
    """Keep a decision; the oldest of those that sent nothing go.

    Returns:
        Its id.
    """
    values = {
        "user": user,
        "rule": rule_id,
        "trace": trace,
        "at": at,
        "decided": utc_now(),
        "outcome": outcome,
        "reason": reason,
        "topic": topic,
        "text": text,
        "ground": json.dumps(list(ground)),
    }
    number = insert(memory, "alert", values)
    if outcome is Outcome.DELIVER:
        memory.execute("update rule set last_fired = max(coalesce(last_fired, 0), ?) where id = ?", (at, rule_id))
    elif outcome is Outcome.DROP:
        memory.execute(
            "delete from alert where id in (select id from alert where rule = ? and outcome = 'drop'"
            " order by at desc limit 20 offset ?)",
            (rule_id, KEPT_DROPS),
        )
    return number


def alerts(
    connection: apsw.Connection,
    user: str,
    *,
    rule_id: int | None = None,
    outcomes: Sequence[Outcome] = (),
    before: int | None = None,
    limit: int = 50,
) -> list[AlertRecord]:
    """Decisions, the newest first."""
    wanted = json.dumps([str(one) for one in outcomes]) if outcomes else None
    where = (
        "where user = ?1 and (?2 is null or rule = ?2) and (?3 is null or outcome in (select value from json_each(?3)))"
        " and (?4 is null or id < ?4) order by id desc limit ?5"
    )
    return [_alert(row) for row in fetch(connection, f"{_ALERT} {where}", (user, rule_id, wanted, before, limit))]


def alert(connection: apsw.Connection, user: str, number: int) -> AlertRecord | None:
    """One decision; None: there is none of this id."""
    rows = fetch(connection, f"{_ALERT} where user = ? and id = ?", (user, number))
    return _alert(rows[0]) if rows else None


def recent(connection: apsw.Connection, user: str, start: float, end: float) -> list[AlertRecord]:
    """What was sent or kept for a digest, by the time of what happened, from `start` to `end`."""
    where = "where user = ? and at >= ? and at <= ? and outcome <> 'drop' order by at, id"
    return [_alert(row) for row in fetch(connection, f"{_ALERT} {where}", (user, start, end))]


def waiting_digest(connection: apsw.Connection, user: str) -> list[AlertRecord]:
    """What waits to be told with others, oldest first."""
    where = "where user = ? and outcome = 'digest' and sent = '{}' order by at, id limit 200"
    return [_alert(row) for row in fetch(connection, f"{_ALERT} {where}", (user,))]


def note_sent(memory: apsw.Connection, number: int, sink: str, result: str) -> None:
    """Note how sending went."""
    memory.execute("update alert set sent = json_set(sent, '$.' || ?, ?) where id = ?", (f'"{sink}"', result, number))


def note_read(memory: apsw.Connection, user: str, number: int) -> None:
    """Note that the owner saw it."""
    memory.execute("update alert set read = 1 where user = ? and id = ?", (user, number))


def _rule(row: tuple[Any, ...]) -> RuleRecord:
    number, kind, text, created, camera, urgent, state, *times, after = row
    cooldown, last_true, last_fired, due = times
    return RuleRecord(
        number, RuleKind(kind), text, created, camera, bool(urgent), RuleState(state), cooldown, last_true, last_fired,
        due, after,
    )  # fmt: skip


def _alert(row: tuple[Any, ...]) -> AlertRecord:
    number, rule_id, trace, at, decided, outcome, reason, topic, text, ground, sent, read = row
    return AlertRecord(
        number, rule_id, trace, at, decided, Outcome(outcome), reason, topic, text, tuple(json.loads(ground)),
        json.loads(sent), bool(read),
    )  # fmt: skip
