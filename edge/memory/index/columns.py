"""The columns of all traces in working memory: what every search looks at, without reading a row for each trace.

One row a trace, in the order of ids: when and where it was, how long its text is, and the signs of its vector. A trace
takes about 90 bytes, so that a year of half minutes of a waking day (350,000) takes 32 MB. Following the file costs what
was added since; the rare changes of what was there before (a correction, something forgotten, a new embedder) are counted
by triggers in `index_state`, and after one everything is read again.

A search reads inside one state of the file (`Store.reading`), and gets the rows of that state: whoever reads an older one
gets as many rows fewer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

COLUMNS_V1 = """
create table index_state(one integer primary key check(one = 1), changes integer not null);
insert into index_state values(1, 0);
create table participation(
  trace integer not null references trace(id) on delete cascade, entity integer not null, primary key(trace, entity))
  without rowid;
insert or ignore into participation select trace, entity from observation where entity is not null
  union select trace, speaker from utterance where speaker is not null;
create trigger observation_takes_part after insert on observation when new.entity is not null
  begin insert or ignore into participation values(new.trace, new.entity); end;
create trigger utterance_takes_part after insert on utterance when new.speaker is not null
  begin insert or ignore into participation values(new.trace, new.speaker); end;
create trigger observation_changes_part after update of entity on observation begin
  delete from participation where trace = old.trace and entity = old.entity and not exists(
    select 1 from observation where trace = old.trace and entity = old.entity) and not exists(
    select 1 from utterance where trace = old.trace and speaker = old.entity);
  insert or ignore into participation select new.trace, new.entity where new.entity is not null; end;
create trigger utterance_changes_part after update of speaker on utterance begin
  delete from participation where trace = old.trace and entity = old.speaker and not exists(
    select 1 from observation where trace = old.trace and entity = old.speaker) and not exists(
    select 1 from utterance where trace = old.trace and speaker = old.speaker);
  insert or ignore into participation select new.trace, new.speaker where new.speaker is not null; end;
create trigger observation_leaves after delete on observation when old.entity is not null begin
  delete from participation where trace = old.trace and entity = old.entity and not exists(
    select 1 from observation where trace = old.trace and entity = old.entity) and not exists(
    select 1 from utterance where trace = old.trace and speaker = old.entity); end;
create trigger utterance_leaves after delete on utterance when old.speaker is not null begin
  delete from participation where trace = old.trace and entity = old.speaker and not exists(
    select 1 from observation where trace = old.trace and entity = old.speaker) and not exists(
    select 1 from utterance where trace = old.trace and speaker = old.speaker); end;
create trigger part_late after insert on participation when new.trace < (select max(id) from trace)
  begin update index_state set changes = changes + 1; end;
create trigger part_gone after delete on participation begin update index_state set changes = changes + 1; end;
create trigger document_gone after delete on document begin update index_state set changes = changes + 1; end;
create trigger document_late after insert on document when new.trace < (select max(id) from trace)
  begin update index_state set changes = changes + 1; end;
create trigger trace_moved after update of start, end, camera on trace
  begin update index_state set changes = changes + 1; end;
create trigger signs_late after insert on signs when new.unit = 0 and new.trace < (select max(id) from trace)
  begin update index_state set changes = changes + 1; end;
"""

_CHUNK: Final = 20_000  # rows read at once
_ROWS = (
    "select t.id, t.camera, t.start, t.end, d.length, s.bits from trace t join document d on d.trace = t.id"
    " left join signs s on s.trace = t.id and s.embedder = ?1 and s.unit = 0 where t.id > ?2 order by t.id limit ?3"
)
_PEOPLE = (
    "select json_group_array(trace), json_group_array(entity) from"
    " (select p.trace, p.entity from participation p join document d on d.trace = p.trace"
    " where p.trace > ?1 and p.trace <= ?2 order by p.trace)"
)
_PER_TRACE: Final = 7  # arrays with a row a trace; the others have one for each person in it


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """All traces of all users, in the order of their ids."""

    traces: NDArray[np.int64]  # (n,) ids, rising
    cameras: NDArray[np.int64]  # (n,) ids
    starts: NDArray[np.float64]  # (n,) UTC POSIX seconds
    ends: NDArray[np.float64]
    lengths: NDArray[np.float64]  # (n,) words of the document
    signs: NDArray[np.uint64]  # (n, w) signs of the vector of the whole trace; w = 0: no vectors of the embedder
    embedded: NDArray[np.bool_]  # (n,) which have one
    people: NDArray[np.int64]  # (m,) entities that took part in a trace or spoke in it
    people_rows: NDArray[np.int64]  # (m,) in which row, rising

    def with_people(self, entities: Iterable[int]) -> NDArray[np.bool_]:
        """In which traces at least one of some entities took part; (n,)."""
        found = np.zeros(len(self.traces), np.bool_)
        found[self.people_rows[np.isin(self.people, np.array(list(entities), np.int64))]] = True
        return found

    def distances(self, bits: NDArray[np.uint64], places: NDArray[np.int64]) -> NDArray[np.float64]:
        """How many signs differ between a query (w,) and the traces at some places; NaN: no vector."""
        if self.signs.shape[1] != len(bits) or not len(bits):
            return np.full(len(places), np.nan)
        every = len(places) == len(self.signs)
        found = np.zeros(len(places), np.uint16)
        for word, sought in enumerate(bits):  # word by word: each is a column, one after another in memory
            column = self.signs[:, word] if every else self.signs[places, word]
            found += np.bitwise_count(column ^ sought)
        result = found.astype(np.float64)
        embedded = self.embedded if every else self.embedded[places]
        if not embedded.all():
            result[~embedded] = np.nan
        return result


class ColumnsCache:
    """Keeps the columns of one memory and one embedder in step with the file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: str | None = None
        self._changes = -1
        self._kept = _Growing(0)

    def get(self, connection: apsw.Connection, embedder: str | None) -> Columns:
        """The columns as of the state that the connection reads.

        Args:
            connection: a reader, inside `Store.reading`.
            embedder: whose signs; None: they do not matter.
        """
        embedder = embedder or self._embedder
        sql = "select changes, coalesce((select max(id) from trace), 0) from index_state"
        row: tuple[int, int] = connection.execute(sql).fetchall()[0]  # type: ignore[assignment]
        changes, last = row
        number, words = _embedder(connection, embedder)
        with self._lock:
            if embedder == self._embedder and changes < self._changes:
                # A reader of an older state than the one kept must not pull the cache back and forth.
                lone = _Growing(words)
                lone.follow(connection, number, last)
                return lone.first(last)
            if (changes, embedder, words) != (self._changes, self._embedder, self._kept.words):
                self._kept = _Growing(words)
                self._changes, self._embedder = changes, embedder
            self._kept.follow(connection, number, last)
            return self._kept.first(last)


class _Growing:
    """Arrays with room for more rows than are known; views that were given out stay as they are."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._arrays = list(_arrays(_empty(words)))
        self._count = 0
        self._parts = 0

    def follow(self, connection: apsw.Connection, embedder: int, last: int) -> None:
        """Read what came after the rows that are known."""
        while (after := int(self._arrays[0][self._count - 1]) if self._count else 0) < last:
            rows: list[Any] = connection.execute(_ROWS, (embedder, after, _CHUNK)).fetchall()
            if not rows:
                return
            people: list[Any] = connection.execute(_PEOPLE, (after, rows[-1][0])).fetchall()
            self._append(_columns(rows, json.loads(people[0][0]), json.loads(people[0][1]), self.words))

    def _append(self, part: Columns) -> None:
        ends = [self._count + len(part.traces)] * _PER_TRACE + [self._parts + len(part.people)] * 2
        new = (*_arrays(part)[:-1], part.people_rows + self._count)
        for at, (values, end) in enumerate(zip(new, ends, strict=True)):
            known = self._arrays[at]
            if end > len(known):
                known = np.zeros((max(end, 2 * len(known)), *known.shape[1:]), known.dtype, order="F")
                known[: len(self._arrays[at])] = self._arrays[at]
                self._arrays[at] = known
            known[end - len(values) : end] = values
        self._count, self._parts = ends[0], ends[-1]

    def first(self, last: int) -> Columns:
        """The rows up to a trace."""
        count = int(np.searchsorted(self._arrays[0][: self._count], last, side="right"))
        parts = int(np.searchsorted(self._arrays[-1][: self._parts], count))
        return Columns(*(array[:count] for array in self._arrays[:-2]), *(array[:parts] for array in self._arrays[-2:]))


def _embedder(connection: apsw.Connection, embedder: str | None) -> tuple[int, int]:
    """Number of an embedder, and the 64-bit words of its signs."""
    if embedder is None:
        return -1, 0
    sql = "select id, dimensions from text_embedder where key = ?"
    found: list[Any] = connection.execute(sql, (embedder,)).fetchall()
    return (found[0][0], -(-found[0][1] // 64)) if found else (-1, 0)


def _arrays(columns: Columns) -> tuple[NDArray[Any], ...]:
    return tuple(getattr(columns, part.name) for part in fields(columns))


def _columns(rows: list[Any], parts: list[int], people: list[int], words: int) -> Columns:
    traces, cameras, starts, ends, lengths, bits = zip(*rows, strict=True)
    size = words * 8
    blank = bytes(size)
    data = b"".join(blank if one is None else one.ljust(size, b"\0") for one in bits) if size else b""
    return Columns(
        np.array(traces, np.int64),
        np.array(cameras, np.int64),
        np.array(starts, np.float64),
        np.array(ends, np.float64),
        np.array(lengths, np.float64),
        np.frombuffer(data, np.uint64).reshape(len(rows), words),
        np.array([one is not None for one in bits], np.bool_),
        np.array(people, np.int64),
        np.searchsorted(np.array(traces, np.int64), np.array(parts, np.int64)),
    )


def _empty(words: int) -> Columns:
    numbers, floats = np.zeros(0, np.int64), np.zeros(0, np.float64)
    return Columns(
        numbers,
        numbers,
        floats,
        floats,
        floats,
        np.zeros((0, words), np.uint64),
        np.zeros(0, np.bool_),
        numbers,
        numbers,
    )


def padded(bits: bytes) -> NDArray[np.uint64]:
    """The packed signs of a query as 64-bit words."""
    return np.frombuffer(bits.ljust(-(-len(bits) // 8) * 8, b"\0"), np.uint64)
