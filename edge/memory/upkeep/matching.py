"""What of an export is in a memory already, when it is merged into one that is not empty."""

# ruff: noqa: S608 -- tables are constants

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.memory.numbers import next_number
from edge.memory.upkeep.archive import Archive
from edge.memory.upkeep.checking import Columns, checked
from edge.memory.upkeep.numbering import Numbers
from edge.memory.upkeep.tables import BY_NAME
from edge.types.mentions import mentioned
from edge.types.records import EntityKind

_TRACE: Final = (
    "select t.id from trace t join camera c on c.id = t.camera left join source s on s.id = t.source"
    " where c.user = ? and c.name = ? and t.start between ? and ? and abs(t.end - ?) <= ?"
    " and s.fingerprint is ? and s.start is ? order by t.id limit 1"
)
_SAME_S: Final = 0.001  # times closer than this are the same, s
_PASSED: Final = 0
# Columns that say who was in a moment; (table, column, what tells a row of one trace from its others).
_PEOPLE: Final = (
    ("observation", "entity", "anchor"),
    ("utterance", "speaker", "start"),
    ("decision", "entity", None),
    ("sample", "entity", None),
    ("moved", "origin", None),
)
_TEXTS: Final = ("line", "observation", "decision")


@dataclass(slots=True)
class Matches:
    """Who and what is here already."""

    traces: dict[int, int] = field(default_factory=dict)  # there -> here
    entities: dict[int, int] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)  # people whom something new needs, by their ids there
    last_claim: int = 0
    _next: dict[str, int] = field(default_factory=dict)

    def known(
        self,
        memory: apsw.Connection,
        table: str,
        old: int,
        values: dict[str, Any],
        numbers: Numbers,
        user: str,
    ) -> int | None:
        """The id of a row that is here already.

        Returns:
            None: it is new; 0: it is passed over.
        """
        if table == "trace":
            return _PASSED if old in self.traces else None
        if table == "entity":
            return self.entities.get(old, None if old in self.used else _PASSED)
        if table == "camera":
            return _one(memory, "select id from camera where user = ? and name = ?", (user, values["name"]))
        if table == "source":
            return _source(memory, values, numbers)
        if table == "text_embedder":
            sql = "select id from text_embedder where key = ? and dimensions = ?"
            return _one(memory, sql, (values["key"], values["dimensions"]))
        if table == "rule":
            sql = "select id from rule where user = ? and kind = ? and text = ? and camera is ?"
            return _one(memory, sql, (user, values["kind"], values["text"], values["camera"]))
        if table == "alert":
            sql = "select id from alert where user = ? and at = ? and decided = ? and topic = ?"
            return _one(memory, sql, (user, values["at"], values["decided"], values["topic"]))
        return None

    def next_id(self, memory: apsw.Connection, table: str) -> int:
        """The next id of a table."""
        if table not in self._next:
            sql = "select max(coalesce((select max(id) from {0}), 0), coalesce((select seq from sqlite_sequence where name = '{0}'), 0))"
            self._next[table] = int(fetch(memory, sql.format(table))[0][0])
        self._next[table] += 1
        return self._next[table]

    def new_number(self, memory: apsw.Connection, user: str, kind: str) -> int:
        """The number of somebody without a name."""
        return next_number(memory, user, EntityKind(kind))


def find_matches(source: Archive, memory: apsw.Connection, user: str) -> Matches:
    """Look which moments are here already, who was in them, and whom the new ones need.

    Raises:
        ArchiveError: a row is none.
    """

    def rows(name: str) -> Iterator[dict[str, Any]]:
        columns = Columns(memory, name)
        if f"{name}.jsonl" in source.files:
            for row in source.rows(f"{name}.jsonl"):
                yield checked(source, BY_NAME[name], columns, row)

    found = Matches(last_claim=int(fetch(memory, "select coalesce(max(id), 0) from name_claim")[0][0]))
    cameras = {row["id"]: row["name"] for row in rows("camera")}
    sources = {row["id"]: (row["fingerprint"], row["start"]) for row in rows("source")}
    for row in rows("trace"):
        fingerprint, start = sources.get(row["source"], (None, None))
        span = (row["start"] - _SAME_S, row["start"] + _SAME_S, row["end"], _SAME_S)
        here = _one(memory, _TRACE, (user, cameras.get(row["camera"]), *span, fingerprint, start))
        if here:
            found.traces[row["id"]] = here
        else:
            found.used.update(mentioned(row["text"]))
    votes: dict[int, Counter[int]] = {}
    for table, column, mark in _PEOPLE:
        for row in rows(table):
            if table in _TEXTS and row["trace"] not in found.traces:
                found.used.update(mentioned(row[BY_NAME[table].texts[0]]))
            if row[column] is None:
                continue
            if row["trace"] not in found.traces:
                found.used.add(row[column])
            elif mark is not None:
                sql = f"select {column} from {table} where trace = ? and {mark} = ? and {column} is not null limit 1"
                here = _one(memory, sql, (found.traces[row["trace"]], row[mark]))
                if here:
                    votes.setdefault(row[column], Counter())[here] += 1
    for row in rows("line"):
        if row["trace"] not in found.traces:
            found.used.update(mentioned(row["text"]))
    found.entities = {there: seen.most_common(1)[0][0] for there, seen in votes.items()}
    part_of = {row["id"]: row["merged_into"] for row in rows("entity") if row["merged_into"] is not None}
    for one in list(found.used):
        while one in part_of and part_of[one] not in found.used:
            one = part_of[one]
            found.used.add(one)
    return found


def _source(memory: apsw.Connection, values: dict[str, Any], numbers: Numbers) -> int | None:
    """A source that is here already goes on from where it got furthest."""
    camera = numbers.here("camera", values["camera"])
    sql = "select id from source where camera = ? and fingerprint = ? and start = ?"
    here = _one(memory, sql, (camera, values["fingerprint"], values["start"]))
    if here:
        memory.execute(
            "update source set position = max(position, ?), next_segment = max(next_segment, ?), finished = max(finished, ?)"
            " where id = ?",
            (values["position"], values["next_segment"], values["finished"], here),
        )
    return here


def _one(memory: apsw.Connection, sql: str, values: tuple[Any, ...]) -> int | None:
    rows = fetch(memory, sql, values)
    return int(rows[0][0]) if rows else None
