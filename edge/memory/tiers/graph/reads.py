"""Reading the graph: what is related to what, as it was known at a moment.

Every read takes `at` (UTC POSIX seconds): what ended later does not count, in weights, counts and times as well as in what is
found; None: everything. Without it the strongest bonds of a node are read from an index and no more; with it all bonds of the
node that had begun are weighed as they were then.
"""

# ruff: noqa: S608 -- columns are constants; values are bound

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.memory.tiers.graph.phrases import Key
from edge.memory.tiers.graph.words import SYMMETRIC, Relation
from edge.memory.tiers.timeline.nodes import HOURS

_AMONG: Final = "in (select value from json_each(?))"
# Of somebody who became somebody else by a correction, the one that is left.
_SURVIVOR: Final = (
    "coalesce((select e.merged_into from entity e where n.kind = 'person' and e.id = cast(n.name as integer)), n.name)"
)


_LINKS: Final = "select id, subject, relation, object, moments, days, weight, first, last from graph_bond"
_WALKED: Final = tuple(one for one in Relation if one is not Relation.SEEN)
_BY_VALUE: Final = {one.value: one for one in Relation}
_FAN: Final = " union all ".join(
    f"select * from (select id, {other}, relation, weight from graph_bond where {one} = ?1 and relation = '{relation}'"
    " order by weight desc limit ?2)"
    for one, other in (("subject", "object"), ("object", "subject"))
    for relation in _WALKED
)


@dataclass(frozen=True, slots=True)
class Link:
    """One bond as it weighs between two nodes, by their ids."""

    bond: int
    subject: int
    relation: Relation
    object: int
    moments: int
    days: int
    weight: int  # thousandths
    first: float  # UTC POSIX seconds of its first and the end of its last moment
    last: float

    def other(self, node: int) -> int:
        """The node at the other end."""
        return self.object if node == self.subject else self.subject


@dataclass(frozen=True, slots=True)
class Bond:
    """One relation with all the times at which it was so."""

    ids: tuple[int, ...]  # of its rows: several while a correction is gone over
    subject: Key
    relation: Relation
    object: Key
    moments: int
    days: int
    weight: float
    first: float  # UTC POSIX seconds of its first and the end of its last moment
    last: float


@dataclass(frozen=True, slots=True)
class Happening:
    """One triple."""

    trace: int
    bond: int
    at: float  # UTC POSIX seconds
    end: float  # of its moment


@dataclass(frozen=True, slots=True)
class Size:
    """How large the graph is."""

    nodes: Mapping[str, int]  # kind -> how many
    bonds: int
    triples: int


def size(connection: apsw.Connection, user: str) -> Size:
    """How large the graph is; counts all of it."""
    kinds = dict(
        fetch(connection, "select kind, count(*) from graph_node where user = ? group by kind order by kind", (user,))
    )
    bonds = "select count(*), coalesce(sum(b.moments), 0) from graph_node n join graph_bond b on b.subject = n.id where n.user = ?"
    ((count, moments),) = fetch(connection, bonds, (user,))
    return Size(kinds, count, moments)


def find(connection: apsw.Connection, user: str, keys: Iterable[Key]) -> dict[Key, tuple[int, ...]]:
    """The nodes of some keys, those of people who became part of somebody by a correction included; absent: there is none."""
    found: dict[Key, tuple[int, ...]] = {}
    for key in dict.fromkeys(keys):
        names = [key.name]
        if key.kind == "person" and key.name.isdigit():
            names += [
                str(one)
                for (one,) in fetch(
                    connection, "select id from entity where merged_into = ? and id <> merged_into", (int(key.name),)
                )
            ]
        rows = fetch(
            connection,
            f"select id from graph_node where user = ? and kind = ? and name {_AMONG} order by id",
            (user, key.kind, json.dumps(names)),
        )
        if rows:
            found[key] = tuple(number for (number,) in rows)
    return found


def keys_of(connection: apsw.Connection, nodes: Iterable[int]) -> dict[int, Key]:
    """What nodes stand for."""
    rows = fetch(
        connection,
        f"select n.id, n.kind, {_SURVIVOR} from graph_node n where n.id {_AMONG}",
        (json.dumps(sorted(set(nodes))),),
    )
    return {number: Key(kind, str(name)) for number, kind, name in rows}


def weigh(connection: apsw.Connection, nodes: Collection[int], at: float | None = None) -> dict[int, int]:
    """What the bonds of each node weigh together, in thousandths."""
    if at is None:
        rows = fetch(connection, f"select id, weight from graph_node where id {_AMONG}", (json.dumps(sorted(nodes)),))
        return dict(rows)
    return {node: sum(link.weight for link in links_of(connection, node, None, at)) for node in nodes}


def links_of(
    connection: apsw.Connection,
    node: int,
    most: int | None,
    at: float | None = None,
    relations: Collection[Relation] = (),
) -> list[Link]:
    """The bonds of a node, the heaviest first.

    Args:
        connection: any.
        node: its id.
        most: at most so many of each relation; None: all.
        at: UTC POSIX seconds.
        relations: only these; empty: all.
    """
    found = [
        _link(row)
        for column in ("subject", "object")
        for relation in relations or Relation
        for row in fetch(
            connection,
            f"{_LINKS} where {column} = ?1 and relation = ?2 and (?4 is null or first <= ?4) order by weight desc limit ?3",
            (node, relation.value, -1 if most is None or at is not None else most, at),
        )
    ]
    if at is not None:
        found = _as_of(connection, found, at)
    found.sort(key=_heaviest)
    return found


def links(connection: apsw.Connection, bonds: Iterable[int], at: float | None = None) -> list[Link]:
    """Some bonds (ids) as they weigh."""
    rows = fetch(connection, f"{_LINKS} where id {_AMONG}", (json.dumps(sorted(set(bonds))),))
    found = [_link(row) for row in rows]
    return found if at is None else _as_of(connection, found, at)


def fan(
    connection: apsw.Connection, node: int, most: int, at: float | None = None
) -> list[tuple[int, int, Relation, int]]:
    """The heaviest bonds of a node, so many of each relation in each direction; what a camera sees is left out.

    Returns:
        (bond, the node at its other end, relation, weight in thousandths)
    """
    if at is None:
        return [
            (bond, other, _BY_VALUE[relation], weight)
            for bond, other, relation, weight in fetch(connection, _FAN, (node, most))
        ]
    return [
        (link.bond, link.other(node), link.relation, link.weight)
        for column in ("subject", "object")
        for relation in _WALKED
        for link in _heaviest_then(connection, node, column, relation, most, at)
    ]


def _heaviest_then(
    connection: apsw.Connection, node: int, column: str, relation: Relation, most: int, at: float
) -> list[Link]:
    """The bonds of one relation that were the heaviest at a moment.

    None weighed more then than it weighs now, so that it ends where all that follow weigh less now than the lightest of those
    that were the heaviest then.
    """
    found: list[Link] = []
    order = f"{_LINKS} where {column} = ? and relation = ? and first <= ? order by weight desc"
    for row in connection.execute(order, (node, relation.value, at)):
        link = _link(row)
        if len(found) == most and link.weight < found[-1].weight:
            break
        found += _as_of(connection, [link], at)
        found.sort(key=_heaviest)
        del found[most:]
    return found


def bonds_of(
    connection: apsw.Connection,
    user: str,
    nodes: Collection[int],
    *,
    relations: Collection[Relation] = (),
    at: float | None = None,
    most: int = 50,
) -> list[Bond]:
    """The bonds of some nodes (ids) that stand for one thing, the heaviest first; a pair that says the same is one bond."""
    found: dict[int, Link] = {}
    several = most if len(nodes) == 1 else None
    for node in nodes:
        found |= {link.bond: link for link in links_of(connection, node, several, at, relations)}
    return named(connection, found.values())[:most]


def strongest(connection: apsw.Connection, user: str, most: int, at: float | None = None) -> list[Bond]:
    """The heaviest bonds of all; looks at all of them."""
    columns = "b.id, b.subject, b.relation, b.object, b.moments, b.days, b.weight, b.first, b.last"
    rows = fetch(
        connection,
        f"select {columns} from graph_node n join graph_bond b on b.subject = n.id where n.user = ?1"
        " and (?3 is null or b.first <= ?3) order by b.weight desc, b.id limit iif(?3 is null, ?2, -1)",
        (user, most, at),
    )
    found = [_link(row) for row in rows]
    return named(connection, found if at is None else _as_of(connection, found, at))[:most]


def happenings(
    connection: apsw.Connection,
    bonds: Iterable[int],
    *,
    start: float | None = None,
    end: float | None = None,
    at: float | None = None,
    most: int = 2000,
) -> list[Happening]:
    """The triples of some bonds (ids) that touch a span, the latest first.

    Args:
        connection: any.
        bonds: ids.
        start: UTC POSIX seconds: of moments that end after it.
        end: of moments in which it is so before that.
        at: what ended later is left out.
        most: at most so many.
    """
    found: list[Happening] = []
    for bond in sorted(set(bonds)):
        rows = fetch(
            connection,
            "select trace, bond, at, end from graph_triple where bond = ?1 and (?2 is null or end > ?2)"
            " and (?3 is null or at < ?3) and (?4 is null or end <= ?4) order by hour desc, at desc, end desc limit ?5",
            (bond, start, end, at, most),
        )
        found += [Happening(*row) for row in rows]
    found.sort(key=lambda one: (-one.at, -one.trace, one.bond))
    return found[:most]


def in_traces(
    connection: apsw.Connection, traces: Iterable[int], nodes: Collection[int], at: float | None = None
) -> list[tuple[int, Link]]:
    """The triples of some moments that have to do with any of some nodes: (trace, bond as it weighs)."""
    rows = fetch(
        connection,
        "select x.trace, b.id, b.subject, b.relation, b.object, b.moments, b.days, b.weight, b.first, b.last"
        " from graph_triple x join graph_bond b on b.id = x.bond"
        " where x.trace in (select value from json_each(?1)) and (?2 is null or x.end <= ?2) order by x.trace, x.bond",
        (json.dumps(sorted(set(traces))), at),
    )
    near = [(row[0], row[1:]) for row in rows if row[2] in nodes or row[4] in nodes]
    known = {row[0]: row for _, row in near}
    weighed = [_link(row) for row in known.values()]
    then = {link.bond: link for link in (weighed if at is None else _as_of(connection, weighed, at))}
    return [(trace, then[row[0]]) for trace, row in near]


# -- pieces -----------------------------------------------------------------------------------------------------------


def _link(row: Sequence[Any]) -> Link:
    number, subject, relation, other, moments, days, weight, first, last = row
    return Link(number, subject, Relation(relation), other, moments, days, weight, first, last)


def _heaviest(link: Link) -> tuple[int, float, str, int]:
    return -link.weight, link.first, link.relation, link.bond


def _as_of(connection: apsw.Connection, some: Iterable[Link], at: float) -> list[Link]:
    """Bonds as they were at a moment; those that had not been so are left out."""
    known = list(some)
    later = {link.bond: link for link in known if link.last > at}
    if not later:
        return known
    days: dict[int, list[tuple[int, float, float]]] = {}
    rows = fetch(
        connection,
        f"select bond, day, moments, first, last from graph_day where bond {_AMONG} and first <= ?",
        (json.dumps(sorted(later)), at),
    )
    for bond, day, moments, first, last in rows:
        if last > at:
            moments, first, last = _part_of_day(connection, bond, day, at)
        if moments:
            days.setdefault(bond, []).append((moments, first, last))
    found = []
    for link in known:
        if link.bond not in later:
            found.append(link)
        elif link.bond in days:
            of = days[link.bond]
            weight = sum(round(1000 * math.log2(1 + moments)) for moments, _, _ in of)
            found.append(
                replace(
                    link,
                    moments=sum(moments for moments, _, _ in of),
                    days=len(of),
                    weight=weight,
                    first=min(first for _, first, _ in of),
                    last=max(last for _, _, last in of),
                )
            )
    return found


def _part_of_day(connection: apsw.Connection, bond: int, day: int, at: float) -> tuple[int, float, float]:
    """How often a bond was so on a day until a moment, and when first and last."""
    ((moments, first, last),) = fetch(
        connection,
        "select coalesce(sum(n), 0), min(first), max(last) from (select count(*) n, min(at) first, max(end) last from graph_triple"
        " where bond = ?1 and hour between ?2 and ?3 and end <= ?4 union all"
        " select sum(moments), min(first), max(last) from graph_kept"
        " where bond = ?1 and hour between ?2 and ?3 and last <= ?4)",
        (bond, day * HOURS, day * HOURS + HOURS - 1, at),
    )
    return moments, first, last


def named(connection: apsw.Connection, some: Iterable[Link]) -> list[Bond]:
    """Bonds between keys; rows that say the same are one."""
    known = list(some)
    keys = keys_of(connection, {node for link in known for node in (link.subject, link.object)})
    groups: dict[tuple[Key, Relation, Key], list[Link]] = {}
    for link in known:
        subject, other = keys[link.subject], keys[link.object]
        if link.relation in SYMMETRIC and other < subject:
            subject, other = other, subject
        if subject != other:
            groups.setdefault((subject, link.relation, other), []).append(link)
    found = [
        Bond(
            tuple(sorted(link.bond for link in of)),
            subject,
            relation,
            other,
            sum(link.moments for link in of),
            max(link.days for link in of),
            sum(link.weight for link in of) / 1000,
            min(link.first for link in of),
            max(link.last for link in of),
        )
        for (subject, relation, other), of in groups.items()
    ]
    return sorted(found, key=lambda one: (-one.weight, one.first, one.relation, one.subject, one.object))
