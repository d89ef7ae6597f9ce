"""Who each row belongs to: what was decided first, and the owner's corrections applied to it in order.

Invariants:

* A correction never changes what was decided first: `moved` keeps it for every row that belongs to somebody else now, and
  `original_text` keeps the first form of every text whose mentions were changed.
* The owner of a row is a pure function of who it was decided to be and of the corrections that are not undone, so that
  undoing one gives what would be there had it never been made.
* A merge sends all that belongs to one person to another; a split says of single rows whose they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import apsw

from edge.memory import index
from edge.memory.database import fetch
from edge.types.records import CorrectionKind, NameSource, attributed

Item = tuple[str, int]  # kind of a row and its id

# Kind of a row that belongs to somebody: its table, its column, and its trace.
_OWNED: Final = {
    "observation": ("observation", "entity", "x.trace"),
    "utterance": ("utterance", "speaker", "x.trace"),
    "decision": ("decision", "entity", "x.trace"),
    "sample": ("sample", "entity", "x.trace"),
    "claim": ("name_claim", "entity", "(select trace from utterance where id = x.utterance)"),
}
_TEXTS: Final = (("trace", "id", "text"), ("line", "trace", "text"), ("observation", "trace", "text"))
_TEXTS_AND_REASONS: Final = (*_TEXTS, ("decision", "trace", "reason"))


@dataclass(frozen=True, slots=True)
class Correction:
    """One active correction."""

    id: int
    kind: CorrectionKind
    person: int
    other: int | None  # merged into `person`; or whose the items are
    created: bool  # `other` exists because of it
    name: str | None
    name_source: NameSource
    at: float  # UTC POSIX seconds
    claims: int  # the last name claim before it
    items: frozenset[Item] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Move:
    """A row that gets another owner."""

    item: Item
    trace: int | None
    origin: int
    before: int
    now: int


def active(connection: apsw.Connection, user: str, *, without: int | None = None) -> list[Correction]:
    """The corrections that are not undone, in order.

    Args:
        connection: any.
        user: whose.
        without: leave this one out.
    """
    found = fetch(
        connection,
        "select id, kind, person, other, created, name, name_source, at, claims from correction"
        " where user = ? and undone_at is null and id is not ? order by id",
        (user, without),
    )
    items: dict[int, set[Item]] = {}
    ids = json.dumps([row[0] for row in found if row[1] not in (CorrectionKind.NAME, CorrectionKind.MERGE)])
    sql = "select correction, kind, item from correction_item where correction in (select value from json_each(?))"
    for number, kind, item in fetch(connection, sql, (ids,)):
        items.setdefault(number, set()).add((kind, item))
    return [
        Correction(
            number, CorrectionKind(kind), person, other, bool(created), name, NameSource(source), at, claims,
            frozenset(items.get(number, ())),
        )
        for number, kind, person, other, created, name, source, at, claims in found
    ]  # fmt: skip


def survivors(corrections: Iterable[Correction]) -> dict[int, int]:
    """Whom each merged person is a part of now; those who are themselves are left out."""
    final: dict[int, int] = {}
    for one in corrections:
        if one.kind is CorrectionKind.MERGE and one.other is not None:
            for merged, into in list(final.items()):
                if into == one.other:
                    final[merged] = one.person
            final[one.other] = one.person
    return final


def apart(corrections: Iterable[Correction]) -> set[tuple[int, int]]:
    """The pairs of people whom the owner told apart, the smaller id first; those who were merged later are left out."""
    everything = list(corrections)
    final = survivors(everything)
    pairs = set()
    for one in everything:
        if one.kind is CorrectionKind.NOT_PERSON and one.other is not None:
            pair = final.get(one.person, one.person), final.get(one.other, one.other)
            if pair[0] != pair[1]:
                pairs.add((min(pair), max(pair)))
    return pairs


def planned(connection: apsw.Connection, user: str, corrections: Sequence[Correction]) -> list[Move]:
    """What has to move so that every row belongs to whom the corrections say.

    Args:
        connection: any, in one state of the memory.
        user: whose.
        corrections: those that hold.
    """
    merged = json.dumps([one.other for one in corrections if one.kind is CorrectionKind.MERGE])
    # Also those that are where they were first: a split and a merge may have cancelled out.
    split = {item for one in corrections for item in one.items}
    moves = []
    for kind, (table, column, trace) in _OWNED.items():
        some = json.dumps([number for of, number in split if of == kind])
        rows = fetch(
            connection,
            f"select x.id, {trace}, x.{column}, m.origin from {table} x"  # noqa: S608 -- constants
            " left join moved m on m.kind = ?1 and m.item = x.id where x.id in ("
            f" select id from {table} where {column} in (select value from json_each(?2))"
            f" union select id from {table} where id in (select value from json_each(?3)) and {column} is not null"
            " union select v.item from moved v join entity e on e.id = v.origin where v.kind = ?1 and e.user = ?4)",
            (kind, merged, some, user),
        )
        for number, of, before, origin in rows:
            first = before if origin is None else origin
            now = _owner((kind, number), first, corrections)
            if now != before:
                moves.append(Move((kind, number), of, first, before, now))
    return moves


def _owner(item: Item, origin: int, corrections: Iterable[Correction]) -> int:
    owner = origin
    for one in corrections:
        if one.kind is CorrectionKind.MERGE:
            owner = one.person if owner == one.other else owner
        elif item in one.items and one.other is not None:
            owner = one.other
    return owner


def apply(memory: apsw.Connection, moves: Iterable[Move]) -> None:
    """Move rows to their owners."""
    for move in moves:
        kind, number = move.item
        table, column, _ = _OWNED[kind]
        memory.execute(f"update {table} set {column} = ? where id = ?", (move.now, number))  # noqa: S608 -- constants
        if move.now == move.origin:
            memory.execute("delete from moved where kind = ? and item = ?", move.item)
        else:
            memory.execute("insert or replace into moved values(?, ?, ?, ?)", (kind, number, move.trace, move.origin))


# -- texts ------------------------------------------------------------------------------------------------------------


def mentioning(memory: apsw.Connection, user: str, entities: Iterable[int]) -> set[int]:
    """The traces whose summary, lines or speakers name one of these people now."""
    found = {trace for entity in entities for trace in index.documents_of(memory, index.entity_token(entity)).tolist()}
    sql = (
        "select t.id from trace t join camera c on c.id = t.camera"
        " where c.user = ? and t.id in (select value from json_each(?))"
    )
    return {trace for (trace,) in fetch(memory, sql, (user, json.dumps(sorted(found))))}


def rewrite(memory: apsw.Connection, trace: int, elsewhere: Mapping[int, int]) -> bool:
    """Let the mentions in all texts of a trace follow the owners of its rows.

    Args:
        memory: the writer's connection; the rows are moved already.
        trace: its id.
        elsewhere: who somebody is who is mentioned without being there.

    Returns:
        Whether a text changed.
    """
    by_row, of_anchor = _owners(memory, trace, elsewhere)
    changed = False
    for table, column, words in _TEXTS_AND_REASONS:
        sql = (
            f"select x.id, x.{words}, o.text from {table} x left join original_text o"  # noqa: S608 -- constants
            f" on o.kind = '{table}' and o.item = x.id where x.{column} = ? and instr(coalesce(o.text, x.{words}), '{{{{')"
        )
        for number, text, first in fetch(memory, sql, (trace,)):
            own = by_row.get((table, number))

            def owner(entity: int, anchor: str | None, own: tuple[int, int] | None = own) -> int:
                if anchor is None and own is not None and own[0] == entity:
                    return own[1]
                return of_anchor(entity, anchor)

            original = text if first is None else first
            new = attributed(original, owner)
            if new == text:
                continue
            changed = True
            memory.execute(f"update {table} set {words} = ? where id = ?", (new, number))  # noqa: S608 -- constants
            if new == original:
                memory.execute("delete from original_text where kind = ? and item = ?", (table, number))
            else:
                memory.execute(
                    "insert or ignore into original_text values(?, ?, ?, ?)", (table, number, trace, original)
                )
    return changed


def owner_of_mentions(memory: apsw.Connection, trace: int) -> Callable[[int, str | None], int]:
    """Who is meant now by a mention of (entity, anchor or None) in the first form of a text of a trace."""
    return _owners(memory, trace, {})[1]


def _owners(
    memory: apsw.Connection, trace: int, elsewhere: Mapping[int, int]
) -> tuple[dict[Item, tuple[int, int]], Callable[[int, str | None], int]]:
    """Of each row of a trace whose it was first and is now; and whom a mention means now."""
    rows = fetch(
        memory,
        "select x.kind, x.id, x.anchor, x.entity, coalesce(m.origin, x.entity) from ("
        " select 1 place, 'observation' kind, id, anchor, entity from observation where trace = ?1"
        " union all select 2, 'utterance', id, coalesce(voice, ''), speaker from utterance where trace = ?1"
        " union all select 3, 'decision', id, anchor, entity from decision where trace = ?1) x"
        " left join moved m on m.kind = x.kind and m.item = x.id where x.entity is not null order by x.place, x.id",
        (trace,),
    )
    by_anchor: dict[tuple[int, str], int] = {}
    by_row: dict[Item, tuple[int, int]] = {}
    everywhere: dict[int, set[int]] = {}
    for kind, number, anchor, now, origin in rows:
        by_anchor.setdefault((origin, anchor), now)
        by_row[kind, number] = (origin, now)
        if kind != "decision":
            everywhere.setdefault(origin, set()).add(now)

    def owner(entity: int, anchor: str | None) -> int:
        known = by_anchor.get((entity, anchor)) if anchor is not None else None
        if known is not None:
            return known
        owners = everywhere.get(entity, set())
        return next(iter(owners)) if len(owners) == 1 else elsewhere.get(entity, entity)

    return by_row, owner
