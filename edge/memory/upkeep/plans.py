"""What is to be forgotten, and what goes with it: the values, and how they are counted."""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.types.records import Kind, public_id


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten: exactly one of these."""

    person: int | None = None
    since: float | None = None  # UTC POSIX seconds; with `until`: all moments that touch the span
    until: float | None = None
    camera: str | None = None
    items: tuple[tuple[Kind, int], ...] = ()
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """What goes of a moment that stays."""

    trace: int
    observations: tuple[int, ...] = ()
    utterances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What will go."""

    target: Target
    people: tuple[int, ...] = ()  # entities that go whole, those merged into them included
    traces: tuple[int, ...] = ()  # moments that go whole
    parts: tuple[Part, ...] = ()  # moments that stay with less in them
    pictures: tuple[int, ...] = ()  # key frames that go from moments that stay
    names: tuple[str, ...] = ()  # that go from all texts
    rules: tuple[int, ...] = ()
    alerts: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()  # evidence that waits
    nodes: tuple[int, ...] = ()  # what is still told of moments that are not kept any more
    answers: tuple[int, ...] = ()  # questions that were asked, with what is kept of their answers
    counts: tuple[tuple[str, int], ...] = ()  # of what, and how many

    @property
    def token(self) -> str:
        """The same for the same plan, so that what goes is what was shown."""
        whole = [getattr(self, name) for name in self.__dataclass_fields__ if name != "target"]
        whole += [self.target.camera, self.target.everything]
        return hashlib.sha256(repr(whole).encode()).hexdigest()[:24]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not any(count for _, count in self.counts)

    @property
    def text(self) -> str:
        """What will go, in one sentence."""
        parts = [f"{count} {_ONE[what] if count == 1 else what}" for what, count in self.counts if count]
        if not parts:
            return "There is nothing to forget."
        listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
        return f"This forgets {listed}, for good."


_ONE: Final = {
    "people or voices": "person or voice",
    "moments": "moment",
    "moments in part": "moment in part",
    "sightings": "sighting",
    "spoken sentences": "spoken sentence",
    "pictures": "picture",
    "faces and voices": "face or voice",
    "rules": "rule",
    "messages": "message",
    "questions": "question",
    "summaries": "summary",
}


def counted(
    connection: apsw.Connection,
    target: Target,
    *,
    people: Iterable[int] = (),
    traces: Iterable[int] = (),
    parts: Iterable[Part] = (),
    pictures: Iterable[int] = (),
    names: Iterable[str] = (),
    rules: Iterable[int] = (),
    alerts: Iterable[int] = (),
    pending: Iterable[int] = (),
    nodes: Iterable[int] = (),
    answers: Iterable[int] = (),
) -> Plan:
    """A plan with its counts; the answers that rest on what goes are found here."""
    people, traces, parts = tuple(sorted(set(people))), tuple(sorted(set(traces))), tuple(parts)
    pictures, rules, pending = tuple(sorted(pictures)), tuple(sorted(rules)), tuple(sorted(pending))
    alerts = tuple(sorted({*alerts, *_told(connection, traces, parts, rules)}))
    nodes = tuple(sorted(nodes))

    def number(table: str, column: str, these: Iterable[int]) -> int:
        return int(among(connection, f"select count(*) from {table} where {column}", these)[0][0])

    asked = {*answers, *_resting(connection, people, traces, parts, pictures)}
    samples = {
        one
        for column, these in (("trace", traces), ("entity", people))
        for (one,) in among(connection, f"select id from sample where {column}", these)
    }
    counts = (
        ("people or voices", number("entity", "merged_into is null and id", people)),
        ("moments", len(traces)),
        ("moments in part", len(parts)),
        ("sightings", number("observation", "trace", traces) + sum(len(one.observations) for one in parts)),
        ("spoken sentences", number("utterance", "trace", traces) + sum(len(one.utterances) for one in parts)),
        ("pictures", number("key_frame", "trace", traces) + len(pictures)),
        ("faces and voices", len(samples)),
        ("rules", len(rules)),
        ("messages", len(alerts)),
        ("questions", len(asked)),
        ("summaries", len(nodes)),
    )
    return Plan(
        target,
        people,
        traces,
        parts,
        pictures,
        tuple(names),
        rules,
        alerts,
        pending,
        nodes,
        tuple(sorted(asked)),
        counts,
    )


def _told(connection: apsw.Connection, traces: Iterable[int], parts: Iterable[Part], rules: Iterable[int]) -> set[int]:
    """The messages of rules that go, and those that tell of what goes."""
    found = {one for (one,) in among(connection, "select id from alert where trace", traces)}
    found |= {one for (one,) in among(connection, "select id from alert where rule", rules)}
    gone = {public_id(Kind.OBSERVATION, number) for part in parts for number in part.observations}
    gone |= {public_id(Kind.UTTERANCE, number) for part in parts for number in part.utterances}
    rows = among(connection, "select id, ground from alert where trace", {part.trace for part in parts})
    return found | {one for one, ground in rows if gone.intersection(json.loads(ground))}


def _resting(
    connection: apsw.Connection,
    people: Iterable[int],
    traces: Iterable[int],
    parts: Iterable[Part],
    pictures: Iterable[int],
) -> set[int]:
    """The answers that cite something of what goes."""
    cited = {
        "entity": set(people),
        "trace": set(traces),
        "observation": {number for one in parts for number in one.observations},
        "utterance": {number for one in parts for number in one.utterances},
        "key_frame": set(pictures),
    }
    for kind in ("observation", "utterance", "key_frame"):
        cited[kind] |= {one for (one,) in among(connection, f"select id from {kind} where trace", traces)}
    sql = "select distinct item from provenance where item_kind = 'answer' and source_kind = '{}' and source"
    return {one for kind, numbers in cited.items() for (one,) in among(connection, sql.format(kind), numbers)}


def traces_where(connection: apsw.Connection, user: str, condition: str, *values: object) -> list[int]:
    """The moments of a user for which something holds of `t` (trace) and `c` (camera)."""
    sql = f"select t.id from trace t join camera c on c.id = t.camera where +c.user = ? and {condition} order by t.id"
    return [trace for (trace,) in fetch(connection, sql, (user, *values))]


def among(connection: apsw.Connection, sql: str, numbers: Iterable[int]) -> list[tuple[Any, ...]]:
    """Rows of a statement that ends with a column, for which some numbers are let through."""
    return fetch(connection, f"{sql} in (select value from json_each(?))", (json.dumps(sorted(numbers)),))
