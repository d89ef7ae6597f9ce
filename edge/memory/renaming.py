"""What people are called, derived again: names given with them or by the owner, and names heard, in order.

Invariants:

* What the owner said last is the name; nothing else changes it.
* Of two people who are one now and whom the owner named both, the one who was kept keeps the name.
* Names that were heard count as if everything that is attributed to a person now had been theirs from the start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import apsw

from edge.memory.attribution import Correction
from edge.memory.database import fetch, insert
from edge.memory.names import AUTHORITY
from edge.types.records import CorrectionKind, NameSource

Name = tuple[str | None, NameSource]
# (name heard, its source, name now and its source, names heard before with their sources) -> whether it is believed
Believes = Callable[[str, NameSource, str | None, NameSource, Sequence[tuple[str, NameSource]]], bool]

_GIVEN = "select entity, name, source, at from given_name where entity in (select value from json_each(?))"
_NOBODY: Name = (None, NameSource.NONE)


def derive(
    memory: apsw.Connection,
    entity: int,
    corrections: Sequence[Correction],
    final: Mapping[int, int],
    believes: Believes,
) -> None:
    """Write the name of somebody, its history, and which of the names heard are believed.

    Args:
        memory: the writer's connection; the claims are moved already.
        entity: who is not merged into anybody.
        corrections: those that hold, in order.
        final: `survivors` of them.
        believes: the rule for names that are heard.
    """
    members = _members(entity, corrections, final)
    told = [one for one in corrections if one.kind is CorrectionKind.NAME and one.person in members]
    claims = fetch(memory, "select id, name, source, at from name_claim where entity = ? order by id", (entity,))
    given = {
        who: (name, NameSource(source), at) for who, name, source, at in fetch(memory, _GIVEN, (json.dumps(members),))
    }
    history: list[tuple[Name, Name, float, int | None]] = []
    users: dict[int, str] = {}  # who has a name from the owner
    best = min(
        (place for place, who in enumerate(members) if who in given),
        key=lambda place: (-AUTHORITY[given[members[place]][1]], place),
        default=None,
    )
    heard: Name = _NOBODY
    if best is not None:
        name, source, at = given[members[best]]
        heard = (name, source)
        history.append((_NOBODY, heard, at, None))

    def called() -> Name:
        named = next((users[who] for who in members if who in users), None)
        return heard if named is None else (named, NameSource.USER)

    def tell(one: Correction) -> None:
        nonlocal heard
        before = called()
        for who in _members(one.person, [other for other in corrections if other.id < one.id], None)[1:]:
            users.pop(who, None)  # they were one already: the name is that of all
        if one.name is None:
            users.pop(one.person, None)
            heard = _NOBODY
        elif one.name_source is NameSource.USER:
            users[one.person] = one.name
        elif AUTHORITY[one.name_source] >= AUTHORITY[before[1]]:
            heard = (one.name, one.name_source)
        if called() != before:
            history.append((before, called(), one.at, None))

    earlier: list[tuple[str, NameSource]] = []
    for number, name, source, at in claims:
        while told and told[0].claims < number:
            tell(told.pop(0))
        before = called()
        accepted = believes(name, NameSource(source), *before, earlier)
        earlier.append((name, NameSource(source)))
        if accepted:
            heard = (name, NameSource(source))
            history.append((before, heard, at, number))
        memory.execute("update name_claim set accepted = ?1 where id = ?2 and accepted <> ?1", (accepted, number))
    for one in told:
        tell(one)
    name, source = called()
    memory.execute("update entity set name = ?, name_source = ? where id = ?", (name, source, entity))
    _keep(memory, entity, history)


def _members(entity: int, corrections: Sequence[Correction], final: Mapping[int, int] | None) -> list[int]:
    """Somebody and all who are part of them, in the order in which names of equal authority count."""
    merges = [one for one in corrections if one.kind is CorrectionKind.MERGE and one.other is not None]
    groups: dict[int, list[int]] = {}
    for one in merges:
        if one.other is not None:
            groups.setdefault(one.person, [one.person]).extend(groups.pop(one.other, [one.other]))
    found = groups.get(entity, [entity])
    return found if final is None else [who for who in found if who == entity or final.get(who) == entity]


def _keep(memory: apsw.Connection, entity: int, history: Sequence[tuple[Name, Name, float, int | None]]) -> None:
    wanted = [(*old, *new, at, claim) for old, new, at, claim in history]
    columns = "old_name, old_source, new_name, new_source, at, claim"
    there = fetch(memory, f"select {columns} from name_history where entity = ? order by id", (entity,))  # noqa: S608 -- constants
    if there == wanted:
        return
    memory.execute("delete from name_history where entity = ?", (entity,))
    for row in wanted:
        insert(memory, "name_history", {"entity": entity, **dict(zip(columns.split(", "), row, strict=True))})
