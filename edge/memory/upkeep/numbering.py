"""Which id a row of an export has here, and what follows for texts and JSON that hold ids."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from edge.memory.upkeep.tables import Table
from edge.types.mentions import attributed
from edge.types.records import Kind, parse_id, public_id

_KINDS = {
    Kind.TRACE: "trace",
    Kind.ENTITY: "entity",
    Kind.OBSERVATION: "observation",
    Kind.UTTERANCE: "utterance",
    Kind.KEY_FRAME: "key_frame",
    Kind.DECISION: "decision",
    Kind.CORRECTION: "correction",
    Kind.RULE: "rule",
    Kind.ALERT: "alert",
}


class Numbers:
    """Ids there and here; 16 bytes a row. Rows come in the order of their ids."""

    def __init__(self, tables: Iterable[Table]) -> None:
        names = [table.name for table in tables if table.identified]
        self._there = {name: array("q") for name in names}
        self._here = {name: array("q") for name in names}
        self._matched: dict[str, dict[int, int]] = {name: {} for name in names}

    def give(self, table: str, old: int, new: int | None) -> int:
        """A row is new here; `new` None: it keeps its id."""
        here = old if new is None else new
        self._there[table].append(old)
        self._here[table].append(here)
        return here

    def match(self, table: str, old: int, here: int) -> None:
        """A row is one that is here already."""
        self._matched[table][old] = here

    def here(self, table: str, old: int) -> int | None:
        """The id of a row here; None: it is not here."""
        there = self._there.get(table)
        if there is None:
            return None
        place = bisect_left(there, old)
        if place < len(there) and there[place] == old:
            return self._here[table][place]
        return self._matched[table].get(old)

    def at_most(self, table: str, old: int, otherwise: int) -> int:
        """The id here of the last new row up to one; `otherwise` if there is none."""
        place = bisect_right(self._there[table], old)
        return self._here[table][place - 1] if place else otherwise

    def new(self, table: str) -> Iterator[int]:
        """Ids here of all rows that are new."""
        return iter(self._here[table])


def moved_text(text: str | None, numbers: Numbers) -> str | None:
    """A text whose mentions mean the same people here; whoever did not come is someone."""
    return None if text is None else attributed(text, lambda entity, _anchor: numbers.here("entity", entity))


def moved_evidence(text: str, numbers: Numbers) -> str:
    """The evidence of a decision, with candidates as they are here."""

    def walk(value: Any) -> Any:
        if isinstance(value, list):
            return [walk(one) for one in value if not _gone(one, numbers)]
        if isinstance(value, dict):
            return {
                name: numbers.here("entity", one) if name == "entity" and isinstance(one, int) else walk(one)
                for name, one in value.items()
                if name != "earlier"  # evidence that waited then
            }
        return value

    return orjson.dumps(walk(orjson.loads(text))).decode()


def moved_ground(text: str, numbers: Numbers) -> str:
    """What a message rests on, by public ids."""
    found = []
    for one in orjson.loads(text):
        try:
            kind, number = parse_id(str(one))
        except ValueError:
            continue
        here = numbers.here(_KINDS[kind], number) if kind in _KINDS else None
        if here is not None:
            found.append(public_id(kind, here))
    return orjson.dumps(found).decode()


def _gone(value: Any, numbers: Numbers) -> bool:
    entity = value.get("entity") if isinstance(value, dict) else None
    return isinstance(entity, int) and numbers.here("entity", entity) is None
