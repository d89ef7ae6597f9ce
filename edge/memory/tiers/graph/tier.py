"""The graph: who and what is related to whom and what, since when, how often (WorldMM: episodic and semantic triples).

* A *triple* (`graph_triple`) is one relation in one moment: the episodic graph. It goes with its moment.
* A *bond* (`graph_bond`) is all triples that say the same, with the time for which it was so and its weight: the semantic graph.
* A *day* (`graph_day`) counts the triples of a bond on one day of the timeline's clock.

A bond weighs the sum over its days of log₂(1 + how often that day), in thousandths: what is so on many days weighs more than
what is so often on one (a burst says little more than its first few). Weights and counts are whole numbers, so that they are
the same in whatever order moments come, are corrected and go.

What retention takes away fades: of moments that go, `graph_kept` keeps the counts by camera and hour, as the timeline keeps
what it tells of them, for bonds that were so on several days; what was so on one day only goes with its moments. A bond
without moments and a node without bonds are gone. The cost of a moment depends on its triples, not on how many there are.
"""

# ruff: noqa: S608 -- columns are constants; values are bound

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import apsw

from edge.memory import jobs
from edge.memory.database import fetch, insert
from edge.memory.stored import StoredTrace, stored_trace
from edge.memory.tiers.graph.phrases import Key
from edge.memory.tiers.graph.relations import Triple, triples_of
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.nodes import CHAPTER, HOUR_S, HOURS

GRAPH_V1: Final = """
create table graph_node(
  id integer primary key autoincrement, user text not null, kind text not null, name text not null,
  weight integer not null default 0, unique(user, kind, name));
create table graph_bond(
  id integer primary key autoincrement, subject integer not null references graph_node(id) on delete cascade,
  relation text not null, object integer not null references graph_node(id) on delete cascade,
  moments integer not null default 0, days integer not null default 0, weight integer not null default 0,
  first real not null, last real not null, unique(subject, relation, object));
create index graph_bond_subject on graph_bond(subject, relation, weight, object);
create index graph_bond_object on graph_bond(object, relation, weight, subject);
create table graph_triple(
  trace integer not null references trace(id) on delete cascade, bond integer not null references graph_bond(id) on delete cascade,
  at real not null, end real not null, hour integer not null, primary key(trace, bond)) without rowid;
create index graph_triple_bond on graph_triple(bond, hour, at, end);
create table graph_day(
  bond integer not null references graph_bond(id) on delete cascade, day integer not null, moments integer not null,
  first real not null, last real not null, primary key(bond, day)) without rowid;
create table graph_kept(
  bond integer not null references graph_bond(id) on delete cascade, hour integer not null,
  camera integer not null references camera(id) on delete cascade, moments integer not null, first real not null,
  last real not null, primary key(bond, hour, camera)) without rowid;
create index graph_kept_hour on graph_kept(camera, hour);
"""

LASTING: Final = 2  # days on which a bond must have been so to outlast its moments

_AMONG: Final = "in (select value from json_each(?))"


def create(connection: apsw.Connection) -> None:
    """Make the tables, and ask for all that is remembered already; part of a migration, inside its transaction."""
    connection.execute(GRAPH_V1)
    for trace, user in fetch(connection, "select t.id, c.user from trace t join camera c on c.id = t.camera"):
        jobs.enqueue(connection, user, jobs.RETRACE, trace, priority=jobs.AT_ONCE)


# -- what changed -----------------------------------------------------------------------------------------------------


def note(memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
    """A trace is new: put its triples in. Again, it changes nothing."""
    _replace(memory, user, trace.id, trace)


def note_again(memory: apsw.Connection, number: int, trace: StoredTrace | None, user: str) -> None:
    """A trace was corrected or forgotten: its triples are those that follow from it now."""
    _replace(memory, user, number, trace)


def derive(memory: apsw.Connection, user: str, traces: Iterable[int]) -> None:
    """Derive at once what traces say that lost something: nothing of what they said before is left."""
    for number in sorted(set(traces)):
        _replace(memory, user, number, stored_trace(memory, user, number))


def drop(memory: apsw.Connection, traces: Iterable[int]) -> None:
    """Take the triples of traces out that are about to go, with all that was counted of them."""
    gone = json.dumps(sorted(set(traces)))
    rows = fetch(memory, f"select bond, hour from graph_triple where trace {_AMONG}", (gone,))
    memory.execute(f"delete from graph_triple where trace {_AMONG}", (gone,))
    _settle(memory, ((bond, hour // HOURS) for bond, hour in rows))


# -- what outlasts its moments ----------------------------------------------------------------------------------------


def fade(memory: apsw.Connection, traces: Iterable[int]) -> None:
    """Keep the counts of traces that are about to go, though not their triples; inside the transaction of retention."""
    gone = json.dumps(sorted(set(traces)))
    rows = fetch(
        memory,
        "select x.bond, x.hour, b.days, t.camera, x.at, x.end from graph_triple x join graph_bond b on b.id = x.bond"
        f" join trace t on t.id = x.trace where x.trace {_AMONG} order by x.bond, x.trace",
        (gone,),
    )
    memory.execute(f"delete from graph_triple where trace {_AMONG}", (gone,))
    passing = []
    for bond, hour, days, camera, at, end in rows:
        if days < LASTING:
            passing.append((bond, hour // HOURS))
            continue
        memory.execute(
            "insert into graph_kept values(?, ?, ?, 1, ?, ?) on conflict(bond, hour, camera) do update set"
            " moments = moments + 1, first = min(first, excluded.first), last = max(last, excluded.last)",
            (bond, hour, camera, at, end),
        )
    _settle(memory, passing)


def forget_faded(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Forget the counts of the hours of some nodes of the timeline, of whose moments nothing else is left."""
    hours = fetch(
        memory,
        f"select distinct camera, slot from node where level <= ? and id {_AMONG}",
        (CHAPTER, json.dumps(sorted(nodes))),
    )
    for camera, hour in hours:
        kept = fetch(memory, "select bond, hour, camera from graph_kept where camera = ? and hour = ?", (camera, hour))
        _forget_kept(memory, kept)


def forget_kept(memory: apsw.Connection, user: str, start: float, end: float, camera: str | None = None) -> None:
    """Forget what is kept of hours that touch a span (UTC POSIX seconds), of one camera or of all."""
    kept = fetch(
        memory,
        "select k.bond, k.hour, k.camera from graph_kept k join camera c on c.id = k.camera where c.user = ?1"
        " and (?2 is null or c.name = ?2) and k.last > ?3 and k.first < ?4",
        (user, camera, start, end),
    )
    _forget_kept(memory, kept)


def _forget_kept(memory: apsw.Connection, kept: Iterable[tuple[int, int, int]]) -> None:
    rows = list(kept)
    memory.executemany("delete from graph_kept where bond = ? and hour = ? and camera = ?", rows)
    _settle(memory, ((bond, hour // HOURS) for bond, hour, _ in rows))


def forget_people(
    memory: apsw.Connection, user: str, people: Iterable[int], named: Callable[[str], bool] = lambda _: False
) -> None:
    """Forget people, and what is called by a name of theirs; what moments say is derived again before.

    Args:
        memory: the writer's connection.
        user: whose memory.
        people: entities.
        named: whether a text holds a name of theirs.
    """
    gone = {str(who) for who in people}
    rows = fetch(memory, "select id, kind, name from graph_node where user = ?", (user,))
    _remove_nodes(
        memory,
        [one for one, kind, name in rows if (name in gone if kind == "person" else kind == "thing" and named(name))],
    )


def clear(memory: apsw.Connection, user: str) -> None:
    """Forget all of it."""
    memory.execute("delete from graph_node where user = ?", (user,))


# -- pieces -----------------------------------------------------------------------------------------------------------


def weight_of(moments: int) -> int:
    """What a day on which a bond is so so many times adds to its weight, in thousandths."""
    return round(1000 * math.log2(1 + moments))


def _replace(memory: apsw.Connection, user: str, number: int, trace: StoredTrace | None) -> None:
    before: dict[int, tuple[float, float, int]] = {
        bond: (at, end, hour)
        for bond, at, end, hour in fetch(
            memory, "select bond, at, end, hour from graph_triple where trace = ?", (number,)
        )
    }
    now: dict[int, tuple[float, float, int]] = {}
    if trace is not None:
        hour = int((trace.start + clock_offset(memory)) // HOUR_S)
        for bond, at in _bonds(memory, user, triples_of(trace), trace.end).items():
            now[bond] = (at, trace.end, hour)
    _add(memory, number, {bond: one for bond, one in now.items() if bond not in before})
    gone = [(bond, had[2]) for bond, had in before.items() if bond not in now]
    moved = {bond: one for bond, one in now.items() if before.get(bond, one) != one}
    memory.executemany("delete from graph_triple where trace = ? and bond = ?", [(number, bond) for bond, _ in gone])
    memory.executemany(
        "update graph_triple set at = ?, end = ?, hour = ? where trace = ? and bond = ?",
        [(*one, number, bond) for bond, one in moved.items()],
    )
    again = [*gone, *((bond, one[2]) for bond, one in moved.items()), *((bond, before[bond][2]) for bond in moved)]
    _settle(memory, ((bond, hour // HOURS) for bond, hour in again))


def _bonds(memory: apsw.Connection, user: str, triples: Iterable[Triple], end: float) -> dict[int, float]:
    """The bonds of some triples, made where there are none yet, with the moment of each."""
    nodes: dict[Key, int] = {}
    found: dict[int, float] = {}
    for triple in triples:
        ends = []
        for key in (triple.subject, triple.object):
            if key not in nodes:
                nodes[key] = _node(memory, user, key)
            ends.append(nodes[key])
        values = (ends[0], triple.relation.value, ends[1])
        known = fetch(memory, "select id from graph_bond where subject = ? and relation = ? and object = ?", values)
        if known:
            found[known[0][0]] = triple.at
        else:
            subject, relation, other = values
            made = {"subject": subject, "relation": relation, "object": other, "first": triple.at, "last": end}
            found[insert(memory, "graph_bond", made)] = triple.at
    return found


def _node(memory: apsw.Connection, user: str, key: Key) -> int:
    values = (user, key.kind, key.name)
    known = fetch(memory, "select id from graph_node where user = ? and kind = ? and name = ?", values)
    return known[0][0] if known else insert(memory, "graph_node", {"user": user, "kind": key.kind, "name": key.name})


def _add(memory: apsw.Connection, trace: int, fresh: Mapping[int, tuple[float, float, int]]) -> None:
    """Put triples in: each count rises by one, whatever was there before."""
    for bond, (at, end, hour) in fresh.items():
        memory.execute("insert into graph_triple values(?, ?, ?, ?, ?)", (trace, bond, at, end, hour))
        ((moments,),) = fetch(
            memory,
            "insert into graph_day values(?, ?, 1, ?, ?) on conflict(bond, day) do update set moments = moments + 1,"
            " first = min(first, excluded.first), last = max(last, excluded.last) returning moments",
            (bond, hour // HOURS, at, end),
        )
        gained = weight_of(moments) - weight_of(moments - 1)
        memory.execute(
            "update graph_bond set moments = moments + 1, days = days + ?2, weight = weight + ?3, first = min(first, ?4),"
            " last = max(last, ?5) where id = ?1",
            (bond, moments == 1, gained, at, end),
        )
        memory.execute(
            "update graph_node set weight = weight + ?2 where id in (select subject from graph_bond where id = ?1"
            " union all select object from graph_bond where id = ?1)",
            (bond, gained),
        )


def _settle(memory: apsw.Connection, days: Iterable[tuple[int, int]]) -> None:
    """Count (bond, day) again, and bring the bonds and their nodes up to date."""
    touched = sorted(set(days))
    for bond, day in touched:
        ((moments, first, last),) = fetch(
            memory,
            "select sum(n), min(first), max(last) from (select count(*) n, min(at) first, max(end) last from graph_triple"
            " where bond = ?1 and hour between ?2 and ?3 union all select sum(moments), min(first), max(last)"
            " from graph_kept where bond = ?1 and hour between ?2 and ?3)",
            (bond, day * HOURS, day * HOURS + HOURS - 1),
        )
        memory.execute("delete from graph_day where bond = ? and day = ?", (bond, day))
        if moments:
            memory.execute("insert into graph_day values(?, ?, ?, ?, ?)", (bond, day, moments, first, last))
    alone: set[int] = set()
    for bond in dict.fromkeys(bond for bond, _ in touched):
        rows = fetch(memory, "select moments, first, last from graph_day where bond = ?", (bond,))
        ends = fetch(memory, "select subject, object, weight from graph_bond where id = ?", (bond,))
        subject, other, before = ends[0]
        weight = sum(weight_of(one) for one, _, _ in rows)
        if rows:
            memory.execute(
                "update graph_bond set moments = ?, days = ?, weight = ?, first = ?, last = ? where id = ?",
                (
                    sum(row[0] for row in rows),
                    len(rows),
                    weight,
                    min(row[1] for row in rows),
                    max(row[2] for row in rows),
                    bond,
                ),
            )
        else:
            memory.execute("delete from graph_bond where id = ?", (bond,))
            alone |= {subject, other}
        gained = weight - before
        memory.execute("update graph_node set weight = weight + ? where id in (?, ?)", (gained, subject, other))
    if alone:
        _tidy(memory, alone)


def _tidy(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Let nodes go that nothing is related to any more."""
    memory.execute(
        f"delete from graph_node where id {_AMONG} and not exists (select 1 from graph_bond where subject = graph_node.id)"
        " and not exists (select 1 from graph_bond where object = graph_node.id)",
        (json.dumps(sorted(set(nodes))),),
    )


def _remove_nodes(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Take nodes out with all their bonds."""
    gone = json.dumps(sorted(nodes))
    rows = fetch(
        memory,
        f"select id, subject, object, weight from graph_bond where subject {_AMONG} or object {_AMONG}",
        (gone, gone),
    )
    for bond, subject, other, weight in rows:
        memory.execute("delete from graph_bond where id = ?", (bond,))
        memory.execute("update graph_node set weight = weight - ? where id in (?, ?)", (weight, subject, other))
    _tidy(memory, {one for row in rows for one in row[1:3]})
