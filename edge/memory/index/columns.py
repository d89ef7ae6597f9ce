"""The columns of all traces in working memory: what every search looks at, without reading a row for each trace.

One row a trace, in the order of ids: when and where it was, how long its text is, and the signs of its vector. A trace
takes about 90 bytes, so that a year of half minutes of a waking day (350,000) takes 32 MB. They are read from sealed blocks
(`blocks`), a few rows for 16,384 traces; of the traces that are not sealed yet the words are here, too. Following the file
costs what was added since; the rare changes of what was there before (a correction, something forgotten, a new embedder) are
counted by triggers in `index_state`, and after one everything is read again.

A search reads inside one state of the file (`Store.reading`), and gets the rows of that state: whoever reads an older one
gets as many rows fewer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.index import blocks
from edge.memory.index.cells import BlockCells, Cells, joined, load_cells

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
_SCANNED: Final = 16_384  # rows whose signs are compared at once: what is worked on stays in the processor's cache
MISSING: Final = 2**16 - 1  # a distance: there is no vector
_ROWS = (
    "select t.id, t.camera, t.start, t.end, d.length, s.bits, w.hashes, w.counts from trace t"
    " join document d on d.trace = t.id join terms w on w.trace = t.id"
    " left join signs s on s.trace = t.id and s.embedder = ?1"
    " where t.id > ?2 and t.id <= ?3 order by t.id limit ?4"
)
_PEOPLE = (
    "select json_group_array(trace), json_group_array(entity) from"
    " (select p.trace, p.entity from participation p join document d on d.trace = p.trace"
    " where p.trace > ?1 and p.trace <= ?2 order by p.trace)"
)
_GROWTH: Final = 1.25  # of an array that is full


Signs = dict[int, bytes]  # trace -> packed signs of its vector and then of those of its units
# (hash of a word, first block, last block) -> documents of sealed blocks that hold it, and how often
Held = dict[tuple[int, int, int], tuple[NDArray[np.int64], NDArray[np.uint8]]]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """All traces of all users, in the order of their ids."""

    traces: NDArray[np.int64]  # (n,) ids, rising
    cameras: NDArray[np.int32]  # (n,) ids
    starts: NDArray[np.float64]  # (n,) UTC POSIX seconds
    ends: NDArray[np.float64]
    lengths: NDArray[np.float32]  # (n,) words of the document
    signs: NDArray[np.uint64]  # (n, w) signs of the vector of the whole trace; w = 0: no vectors of the embedder
    embedded: NDArray[np.bool_]  # (n,) which have one
    people: NDArray[np.int32]  # (m,) entities that took part in a trace or spoke in it
    people_rows: NDArray[np.int32]  # (m,) in which row, rising
    hashes: NDArray[np.uint32]  # (t,) words of the traces that are not in sealed blocks
    counts: NDArray[np.uint8]  # (t,) how often
    owners: NDArray[np.int32]  # (t,) in which row, rising
    kept: Signs = field(default_factory=dict)  # of a few traces that every search looks at
    held: Held = field(default_factory=dict)  # of words that were looked for lately
    cells: Cells | None = None  # which traces of sealed blocks are alike; rows beyond the last may be among them

    def with_people(self, entities: Iterable[int]) -> NDArray[np.bool_]:
        """In which traces at least one of some entities took part; (n,)."""
        found = np.zeros(len(self.traces), np.bool_)
        for entity in set(entities):
            found[self.people_rows[self.people == entity]] = True
        return found

    def rows_of(self, traces: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of traces that are there."""
        ids = self.traces
        if len(ids) and ids[-1] - ids[0] + 1 == len(ids):
            return np.asarray(traces - ids[0])
        return np.searchsorted(ids, traces).astype(np.int64)

    def distances(self, bits: NDArray[np.uint64], rows: NDArray[np.int64] | slice) -> NDArray[np.uint16]:
        """How many signs differ between a query (w,) and the traces in some rows; `MISSING`: no vector."""
        embedded = self.embedded[rows]
        found = np.zeros(len(embedded), np.uint16)
        if self.signs.shape[1] != len(bits) or not len(bits):
            found[:] = MISSING
            return found
        differ = np.empty(_SCANNED, np.uint64)
        ones = np.empty(_SCANNED, np.uint8)
        for begin in range(0, len(found), _SCANNED):
            part = found[begin : begin + _SCANNED]
            for word, sought in enumerate(bits):  # word by word: each is a column, one after another in memory
                column = self.signs[:, word]
                if isinstance(rows, slice):
                    first = (rows.start or 0) + begin
                    np.bitwise_xor(column[first : first + len(part)], sought, out=differ[: len(part)])
                else:
                    np.take(column, rows[begin : begin + len(part)], out=differ[: len(part)], mode="clip")
                    np.bitwise_xor(differ[: len(part)], sought, out=differ[: len(part)])
                np.bitwise_count(differ[: len(part)], out=ones[: len(part)])
                part += ones[: len(part)]
        if not embedded.all():
            found[~embedded] = MISSING
        return found


_ARRAYS: Final = tuple(part.name for part in fields(Columns) if part.name not in {"kept", "held", "cells"})
_PEOPLE_ROWS: Final = _ARRAYS.index("people_rows")
_WORDS: Final = tuple(_ARRAYS.index(name) for name in ("hashes", "counts", "owners"))


class ColumnsCache:
    """Keeps the columns of one memory and one embedder in step with the file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._embedder: str | None = None
        self._state = (-1, -1)
        self._kept = _Growing(0)

    def get(self, connection: apsw.Connection, embedder: str | None) -> Columns:
        """The columns as of the state that the connection reads.

        Args:
            connection: a reader, inside `Store.reading`.
            embedder: whose signs; None: they do not matter.
        """
        embedder = embedder or self._embedder
        sql = "select changes, sealed, coalesce((select max(id) from trace), 0) from index_state"
        row: tuple[int, int, int] = connection.execute(sql).fetchall()[0]  # type: ignore[assignment]
        state, last = row[:2], row[2]
        number, dimensions = _embedder(connection, embedder)
        with self._lock:
            if embedder == self._embedder and state < self._state:
                # A reader of an older state than the one kept must not pull the cache back and forth.
                lone = _Growing(dimensions)
                lone.follow(connection, number, last)
                return lone.first(last)
            if (state[0], embedder, dimensions) != (self._state[0], self._embedder, self._kept.dimensions):
                self._kept = _Growing(dimensions)
            elif state != self._state:
                self._kept.settle(blocks.sealed_blocks(connection))
            self._state, self._embedder = state, embedder
            self._kept.follow(connection, number, last)
            return self._kept.first(last)


class _Growing:
    """Arrays with room for more rows than are known; views that were given out stay as they are."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._sealed: frozenset[int] | None = None
        self._signs: Signs = {}
        self._held: Held = {}
        self._arrays = list(_arrays(_empty(-(-dimensions // 64))))
        self._sizes = [0] * len(self._arrays)
        self._after = -1  # traces up to this id are known
        self._blocks: dict[int, tuple[int, int, BlockCells]] = {}  # of sealed blocks: first row, rows, cells
        self._looked_for: set[int] = set()  # blocks whose cells were asked for
        self._cells: Cells | None = None

    def settle(self, sealed: frozenset[int]) -> None:
        """Other blocks are sealed now: their words are not kept any longer."""
        self._sealed = sealed
        self._held = {}
        words = [self._arrays[at][: self._sizes[at]] for at in _WORDS]
        loose = ~np.isin(self._arrays[0][words[-1]] >> blocks.BITS, list(sealed))
        for at, array in zip(_WORDS, words, strict=True):
            self._arrays[at] = array[loose]
            self._sizes[at] = len(self._arrays[at])

    def follow(self, connection: apsw.Connection, embedder: int, last: int) -> None:
        """Read what came after the traces that are known: sealed blocks at once, the rest row by row."""
        if self._sealed is None:
            self._sealed = blocks.sealed_blocks(connection)
        while self._after < last:
            number = (self._after + 1) >> blocks.BITS
            begin, end = number << blocks.BITS, ((number + 1) << blocks.BITS) - 1
            if number in self._sealed and self._after == begin - 1:
                self._append(
                    _of_block(blocks.load(connection, number, embedder, -(-self.dimensions // 64))), last / (end + 1)
                )
                self._after = end
                continue
            until = min(end, last)
            rows: list[Any] = connection.execute(_ROWS, (embedder, self._after, until, _CHUNK)).fetchall()
            if rows:
                people: list[Any] = connection.execute(_PEOPLE, (self._after, rows[-1][0])).fetchall()
                part = _columns(rows, json.loads(people[0][0]), json.loads(people[0][1]), self.dimensions)
                self._append(part if number not in self._sealed else _wordless(part), 1.0)
            self._after = rows[-1][0] if len(rows) == _CHUNK else until
        self._group(connection, embedder)

    def _group(self, connection: apsw.Connection, embedder: int) -> None:
        """Read the cells of the sealed blocks of which every trace is known."""
        ids, words = self._arrays[0][: self._sizes[0]], -(-self.dimensions // 64)
        for number in sorted((self._sealed or frozenset()) - self._looked_for):
            if (number + 1) << blocks.BITS > self._after + 1:
                continue
            self._looked_for.add(number)
            found = load_cells(connection, number, embedder, words)
            if found is not None:
                first, end = np.searchsorted(ids, (number << blocks.BITS, (number + 1) << blocks.BITS)).tolist()
                self._blocks[number] = (first, end - first, found)
                self._cells = None
        if self._cells is None and self._blocks:
            self._cells = joined([self._blocks[number] for number in sorted(self._blocks)], words)

    def _append(self, part: Columns, larger: float) -> None:
        """Add rows; `larger` times as many are expected to be there in the end."""
        new = list(_arrays(part))
        for at in (_PEOPLE_ROWS, _WORDS[-1]):  # count rows within the part
            new[at] = new[at] + np.int32(self._sizes[0])
        for at, values in enumerate(new):
            known, end = self._arrays[at], self._sizes[at] + len(values)
            if end > len(known):
                room = max(end, int(len(known) * _GROWTH), int(end * larger) + 1 if larger > 1 else 0)
                known = np.zeros((room, *known.shape[1:]), known.dtype, order="F")
                known[: self._sizes[at]] = self._arrays[at][: self._sizes[at]]
                self._arrays[at] = known
            known[self._sizes[at] : end] = values
            self._sizes[at] = end

    def first(self, last: int) -> Columns:
        """The rows up to a trace."""
        count = int(np.searchsorted(self._arrays[0][: self._sizes[0]], last, side="right"))
        sizes = [count] * len(self._arrays)
        for owners, group in ((_PEOPLE_ROWS, (_PEOPLE_ROWS - 1, _PEOPLE_ROWS)), (_WORDS[-1], _WORDS)):
            size = int(np.searchsorted(self._arrays[owners][: self._sizes[owners]], np.int32(count)))
            for at in group:
                sizes[at] = size
        arrays = {name: array[:size] for name, array, size in zip(_ARRAYS, self._arrays, sizes, strict=True)}
        return Columns(**arrays, kept=self._signs, held=self._held, cells=self._cells)


def _embedder(connection: apsw.Connection, embedder: str | None) -> tuple[int, int]:
    """Number of an embedder, and the components of its vectors; 0: there are none."""
    if embedder is None:
        return -1, 0
    sql = "select id, dimensions from text_embedder where key = ?"
    found: list[Any] = connection.execute(sql, (embedder,)).fetchall()
    return (found[0][0], found[0][1]) if found else (-1, 0)


def _arrays(columns: Columns) -> tuple[NDArray[Any], ...]:
    return tuple(getattr(columns, name) for name in _ARRAYS)


def _columns(rows: list[Any], parts: list[int], people: list[int], dimensions: int) -> Columns:
    traces, cameras, starts, ends, lengths, bits, hashes, counts = zip(*rows, strict=True)
    packed, words = -(-dimensions // 8), -(-dimensions // 64)
    size = words * 8
    blank = bytes(size)
    data = b"".join(blank if one is None else one[:packed].ljust(size, b"\0") for one in bits) if size else b""
    return Columns(
        np.array(traces, np.int64),
        np.array(cameras, np.int32),
        np.array(starts, np.float64),
        np.array(ends, np.float64),
        np.array(lengths, np.float32),
        np.frombuffer(data, np.uint64).reshape(len(rows), words),
        np.array([one is not None for one in bits], np.bool_),
        np.array(people, np.int32),
        np.searchsorted(np.array(traces, np.int64), np.array(parts, np.int64)).astype(np.int32),
        np.frombuffer(b"".join(hashes), np.uint32),
        np.frombuffer(b"".join(counts), np.uint8),
        np.repeat(np.arange(len(rows), dtype=np.int32), [len(one) for one in counts]),
    )


def _of_block(block: blocks.Block) -> Columns:
    return replace(
        _empty(block.bits.shape[1]),
        **{part.name: getattr(block, part.name) for part in fields(block) if part.name != "bits"},
        signs=block.bits,
    )


def _wordless(part: Columns) -> Columns:
    """Rows of a block that was sealed after others of it were read: its postings have their words."""
    none = _empty(0)
    return replace(part, hashes=none.hashes, counts=none.counts, owners=none.owners)


def _empty(words: int) -> Columns:
    numbers, times = np.zeros(0, np.int32), np.zeros(0, np.float64)
    return Columns(
        np.zeros(0, np.int64), numbers, times, times, np.zeros(0, np.float32), np.zeros((0, words), np.uint64),
        np.zeros(0, np.bool_), numbers, numbers, np.zeros(0, np.uint32), np.zeros(0, np.uint8), numbers,
    )  # fmt: skip


def padded(bits: bytes) -> NDArray[np.uint64]:
    """The packed signs of a query as 64-bit words."""
    return np.frombuffer(bits.ljust(-(-len(bits) // 8) * 8, b"\0"), np.uint64)
