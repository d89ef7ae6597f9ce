"""Forgetting: what goes with what the owner names. That it goes, and is gone from the files, is in `erase`.

What may be named: a person, a span of time, a camera, single items, everything. A moment (trace) goes whole: its sentences,
sightings, words, decisions, evidence of identity, pictures, vectors and index entries hang on it by foreign keys and
triggers. A person goes with all that they did and said, everywhere:

* sightings, words, samples, galleries, faces, names, claims, corrections: by their identity, and that of everybody who was
  merged into them;
* sentences about them alone go from the texts that stay; where others are spoken of, too, "someone" stands for them;
* rules, messages and questions that name them go whole; their name goes from whatever else holds it (`redact`);
* the pictures of moments in which they were seen go whole, whoever else is in them, and so do those where a face that could
  not be decided about may have been theirs: pixels of people who stand together cannot be told apart safely;
* evidence that still waits and is near to their galleries may be theirs, and goes;
* a moment of which nothing is left goes, too.

docs/forgetting.md says the same for the owner, and what is beyond reach.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

import apsw

from edge.errors import NotFoundError, UserError
from edge.memory.database import fetch
from edge.memory.tiers import experience, timeline
from edge.memory.upkeep import strangers
from edge.memory.upkeep.forget_person import person_plan
from edge.memory.upkeep.plans import Part, Plan, Target, among, counted, traces_where
from edge.memory.upkeep.remove import speaking_of
from edge.types.mentions import mentioned
from edge.types.records import Kind, public_id

# Noted of each forgetting: when, and how much of what; nothing of what it was.
FORGET_V1 = """
create table forgotten(id integer primary key autoincrement, user text not null, at real not null, words text not null);
"""


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    connection.execute(FORGET_V1)
    connection.execute(strangers.CONSENT_V1)


def plan(connection: apsw.Connection, user: str, target: Target) -> Plan:
    """What goes with a target; reads one state of the memory.

    Raises:
        NotFoundError: it is not there.
        UserError: it cannot be forgotten by itself.
    """
    if target.person is not None:
        return person_plan(connection, user, target, target.person)
    if target.everything:
        people = [who for (who,) in fetch(connection, "select id from entity where user = ?", (user,))]
        rules = [one for (one,) in fetch(connection, "select id from rule where user = ?", (user,))]
        alerts = [one for (one,) in fetch(connection, "select id from alert where user = ?", (user,))]
        nodes = timeline.faded(connection, user, -math.inf, math.inf)
        traces = traces_where(connection, user, "1")
        questions = experience.answers_between(connection, user, -math.inf, math.inf)
        return counted(
            connection,
            target,
            people=people,
            traces=traces,
            rules=rules,
            alerts=alerts,
            nodes=nodes,
            answers=questions,
        )
    if target.items:
        return _items(connection, user, target)
    asked: list[int] = []
    if target.camera is not None:
        if not fetch(connection, "select 1 from camera where user = ? and name = ?", (user, target.camera)):
            raise NotFoundError(target.camera, f"Nothing is remembered of a camera “{target.camera[:60]}”.")
        traces = traces_where(connection, user, "c.name = ?", target.camera)
        nodes = timeline.faded(connection, user, -math.inf, math.inf, target.camera)
    else:
        since = -math.inf if target.since is None else target.since
        until = math.inf if target.until is None else target.until
        if until <= since:
            raise UserError("The span ends before it begins; give --since before --until.")
        traces = traces_where(connection, user, "t.end > ? and t.start < ?", since, until)
        nodes = timeline.faded(connection, user, since, until)
        asked = experience.answers_between(connection, user, since, until)  # what was asked then tells of it, too
    people = _left_alone(connection, user, traces)
    return counted(connection, target, people=people, traces=traces, nodes=nodes, answers=asked)


# -- other targets ----------------------------------------------------------------------------------------------------


def _items(connection: apsw.Connection, user: str, target: Target) -> Plan:
    traces: set[int] = set()
    pictures: set[int] = set()
    rules: set[int] = set()
    alerts: set[int] = set()
    nodes: set[int] = set()
    rows: dict[int, tuple[set[int], set[int]]] = {}  # of moments that stay: observations, utterances
    for kind, number in target.items:
        item = public_id(kind, number)
        missing = NotFoundError(
            item, f"There is no {item} in the memory; `reflectworld timeline` lists what is remembered."
        )
        if kind is Kind.TRACE:
            found = traces_where(connection, user, "t.id = ?", number)
            traces |= set(found)
        elif kind is Kind.NODE:
            sql = (
                "with recursive below(id) as (select n.id from node n join camera c on c.id = n.camera"
                " where n.id = ?1 and c.user = ?2 union all select n.id from node n join below b on n.parent = b.id)"
                " select l.trace from below b join node_trace l on l.node = b.id"
            )
            found = [trace for (trace,) in fetch(connection, sql, (number, user))]
            traces |= set(found)
            for camera, start, end in fetch(
                connection,
                "select c.name, n.start, n.end from node n join camera c on c.id = n.camera where n.id = ?"
                " and c.user = ?",
                (number, user),
            ):
                told = timeline.faded(connection, user, start, end, camera)
                nodes |= set(told)
                found += told
        elif kind in (Kind.OBSERVATION, Kind.UTTERANCE, Kind.KEY_FRAME):
            table = {Kind.OBSERVATION: "observation", Kind.UTTERANCE: "utterance"}.get(kind, "key_frame")
            sql = f"select x.trace from {table} x join trace t on t.id = x.trace join camera c on c.id = t.camera"
            found = [trace for (trace,) in fetch(connection, f"{sql} where x.id = ? and c.user = ?", (number, user))]
            for trace in found:
                if kind is Kind.KEY_FRAME:
                    pictures.add(number)
                else:
                    rows.setdefault(trace, (set(), set()))[kind is Kind.UTTERANCE].add(number)
        elif kind in (Kind.RULE, Kind.ALERT):
            table = "rule" if kind is Kind.RULE else "alert"
            found = [
                one for (one,) in fetch(connection, f"select id from {table} where id = ? and user = ?", (number, user))
            ]
            (rules if kind is Kind.RULE else alerts).update(found)
        else:
            raise UserError(_elsewhere(kind, item))
        if not found:
            raise missing
    parts = []
    for trace, (observations, utterances) in sorted(rows.items()):
        if trace not in traces:
            parts.append(Part(trace, tuple(sorted(observations)), tuple(sorted(utterances))))
            pictures |= _showing(connection, trace, observations)
    for camera, start, end in among(
        connection,
        "select c.name, t.start, t.end from trace t join camera c on c.id = t.camera where t.id",
        traces | set(rows),
    ):
        nodes |= set(timeline.faded(connection, user, start, end, camera))
    of = dict(among(connection, "select id, trace from key_frame where id", pictures))
    return counted(
        connection,
        target,
        people=_left_alone(connection, user, traces, parts),
        traces=traces,
        parts=parts,
        pictures=[number for number, trace in of.items() if trace not in traces],
        rules=rules,
        alerts=alerts,
        nodes=nodes,
    )


def _elsewhere(kind: Kind, item: str) -> str:
    if kind is Kind.ENTITY:
        return f"Forget a person with `reflectworld forget person {item}`: all that is theirs goes."
    if kind is Kind.CORRECTION:
        return f"{item} is a decision of yours; `reflectworld people undo {item}` takes it back."
    return f"{item} cannot be forgotten by itself; forget the moment (t…) that it belongs to."


_TEXTS: Final = "select text from (select id trace, text from trace union all select trace, text from line)"


def _showing(connection: apsw.Connection, trace: int, observations: Iterable[int]) -> set[int]:
    """The pictures of a moment in which something may be seen."""
    found = set()
    frames = fetch(connection, "select id, at, anchors from key_frame where trace = ?", (trace,))
    for anchor, start, end in among(
        connection, "select anchor, start, end from observation where label <> 'voice' and id", observations
    ):
        found |= {number for number, at, anchors in frames if start <= at <= end or anchor in json.loads(anchors)}
    return found


def _left_alone(connection: apsw.Connection, user: str, traces: Iterable[int], parts: Iterable[Part] = ()) -> list[int]:
    """People whom the owner did not name and of whom nothing is left when some moments go: they go, too.

    Nothing is left of those who are neither seen nor heard in what stays, nor spoken of.
    """
    traces, parts = set(traces), tuple(parts)
    gone = json.dumps(sorted(traces))
    seen = json.dumps(sorted(one for part in parts for one in part.observations))
    said = json.dumps(sorted(one for part in parts for one in part.utterances))
    sql = (
        "select e.id from entity e where e.user = ?1 and e.merged_into is null and e.name_source <> 'user' and exists ("
        "select 1 from participation where entity = e.id) and not exists ("
        "select 1 from observation o where o.entity = e.id and o.trace not in (select value from json_each(?2))"
        " and o.id not in (select value from json_each(?3))) and not exists ("
        "select 1 from utterance u where u.speaker = e.id and u.trace not in (select value from json_each(?2))"
        " and u.id not in (select value from json_each(?4)))"
    )
    alone = [who for (who,) in fetch(connection, sql, (user, gone, seen, said))]
    told = {who for (text,) in among(connection, f"{_TEXTS} where trace", traces) for who in mentioned(text)}
    alone += [
        who
        for (who,) in among(
            connection,
            "select id from entity e where merged_into is null and name_source <> 'user' and not exists"
            " (select 1 from participation where entity = e.id) and id",
            told,
        )
    ]
    going = traces | {part.trace for part in parts}
    found = [who for who in alone if speaking_of(connection, who) <= going]
    for one in found:  # grows while it is walked
        merged = fetch(connection, "select id from entity where merged_into = ? and id <> ?", (one, one))
        found += [who for (who,) in merged if who not in found]
    return found
