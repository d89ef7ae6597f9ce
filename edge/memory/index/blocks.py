"""Sealed blocks: the columns and the postings of many traces in a few rows, so that nobody reads a row for each trace.

The ids of traces are cut into blocks of `SIZE`. Once later traces are there, a block is sealed in a quiet moment of the
writer: its columns become one row (and one for the signs of each embedder), and each word of its documents becomes one
posting, so that a search reads a word with one seek a block. What is not sealed yet is *loose*: `columns` holds the words of
those documents in working memory. A block is derived from `document`, `terms`, `trace`, `participation` and `signs`; when one
of its traces changes or goes, triggers drop the block in the same transaction, and it is sealed again later.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.database import transaction
from edge.memory.index.cells import seal_cells

BITS: Final = 14
SIZE: Final = 1 << BITS  # ids of a block: about six days of half minutes around the clock
QUIET_S: Final = 30.0  # how long nothing old must have changed before a block is sealed again

BLOCKS_V1: Final = """
alter table index_state add column sealed integer not null default 0;
create table block(
  id integer primary key, offsets blob not null, cameras blob not null, starts blob not null, ends blob not null,
  lengths blob not null, people blob not null, people_rows blob not null);
create table block_signs(
  block integer not null references block(id) on delete cascade, embedder integer not null references text_embedder(id),
  bits blob not null, embedded blob not null, primary key(block, embedder)) without rowid;
create table posting(
  block integer not null references block(id) on delete cascade, term integer not null, documents blob not null,
  primary key(block, term)) without rowid;
drop trigger part_late; drop trigger part_gone; drop trigger document_gone; drop trigger document_late;
drop trigger trace_moved; drop trigger signs_late;
create table packed(
  trace integer not null references trace(id) on delete cascade, embedder integer not null references text_embedder(id),
  bits blob not null, primary key(trace, embedder)) without rowid;
create trigger part_late after insert on participation when exists(select 1 from document where trace = new.trace)
  begin drop_block(new.trace); end;
create trigger part_gone after delete on participation
  begin drop_block(old.trace); end;
create trigger document_gone after delete on document
  begin drop_block(old.trace); end;
create trigger document_late after insert on document when new.trace < (select max(id) from trace)
  begin drop_block(new.trace); end;
create trigger trace_moved after update of start, end, camera on trace
  begin drop_block(new.id); end;
"""

SIGNS_V1: Final = """
drop table signs;
alter table packed rename to signs;
create trigger signs_late after insert on signs when new.trace < (select max(id) from trace)
  begin drop_block(new.trace); end;
create trigger signs_gone after delete on signs
  begin drop_block(old.trace); end;
"""

_TRACES: Final = (
    "select t.id, t.camera, t.start, t.end, d.length, w.hashes, w.counts from trace t join document d on d.trace = t.id"
    " join terms w on w.trace = t.id where t.id between ? and ? order by t.id"
)


def create_blocks(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction. The writer seals what is there in its quiet moments."""
    _script(connection, BLOCKS_V1)
    units = _rows(connection, "select trace, embedder, bits from signs order by trace, embedder, unit", ())
    connection.executemany(
        "insert into packed values(?, ?, ?)",
        ((*key, b"".join(bits for _, _, bits in group)) for key, group in groupby(units, key=lambda row: row[:2])),
    )
    _script(connection, SIGNS_V1)


def _script(connection: apsw.Connection, script: str) -> None:
    changed = r"update index_state set changes = changes + 1; delete from block where id = \1 >> 14"
    connection.execute(re.sub(r"drop_block\((\S+)\)", changed, script))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The columns of a sealed block."""

    traces: NDArray[np.int64]  # (n,)
    cameras: NDArray[np.int32]
    starts: NDArray[np.float64]
    ends: NDArray[np.float64]
    lengths: NDArray[np.float32]
    bits: NDArray[np.uint64]  # (n, w)
    embedded: NDArray[np.bool_]
    people: NDArray[np.int32]  # (m,)
    people_rows: NDArray[np.int32]  # (m,) within the block


# -- reading ----------------------------------------------------------------------------------------------------------


def sealed_blocks(connection: apsw.Connection) -> frozenset[int]:
    """Which blocks are sealed in the state that the connection reads."""
    return frozenset(number for (number,) in _rows(connection, "select id from block", ()))


def load(connection: apsw.Connection, number: int, embedder: int, words: int) -> Block:
    """The columns of a sealed block.

    Args:
        connection: any reader.
        number: of the block.
        embedder: number of the model whose signs are wanted.
        words: 64-bit words of its signs; 0: none.
    """
    sql = "select offsets, cameras, starts, ends, lengths, people, people_rows from block where id = ?"
    ((offsets, cameras, starts, ends, lengths, people, people_rows),) = _rows(connection, sql, (number,))
    traces = np.frombuffer(offsets, np.uint16).astype(np.int64) + (number << BITS)
    bits, embedded = np.zeros((len(traces), words), np.uint64), np.zeros(len(traces), np.bool_)
    if words:
        sql = "select bits, embedded from block_signs where block = ? and embedder = ?"
        for packed, there in _rows(connection, sql, (number, embedder)):
            bits = np.frombuffer(packed, np.uint64).reshape(words, -1).T
            embedded = np.frombuffer(there, np.bool_)
    return Block(
        traces,
        np.frombuffer(cameras, np.int32),
        np.frombuffer(starts, np.float64),
        np.frombuffer(ends, np.float64),
        np.frombuffer(lengths, np.float32),
        bits,
        embedded,
        np.frombuffer(people, np.int32),
        np.frombuffer(people_rows, np.int32),
    )


def sealed_documents(
    connection: apsw.Connection, term: int, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The documents of sealed blocks that hold a word, oldest first, and how often they do (255 at most).

    Args:
        connection: any reader.
        term: hash of the word.
        first: the blocks from this one
        last: to this one are looked at.
    """
    # One seek a block; the planner must not turn it round.
    sql = (
        "select b.id, p.documents from block b cross join posting p on p.block = b.id and p.term = ?"
        " where b.id between ? and ? order by b.id"
    )
    ids: list[NDArray[np.int64]] = []
    counts: list[NDArray[np.uint8]] = []
    for number, packed in _rows(connection, sql, (term, first, last)):
        size = len(packed) // 3
        ids.append(np.frombuffer(packed, np.uint16, size).astype(np.int64) + (number << BITS))
        counts.append(np.frombuffer(packed, np.uint8, size, 2 * size))
    if not ids:
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    return np.concatenate(ids), np.concatenate(counts)


# -- sealing ----------------------------------------------------------------------------------------------------------


class Sealer:
    """Seals blocks in the quiet moments of a writer; used by its thread alone."""

    def __init__(self) -> None:
        self._changes: int | None = None
        self._since = -QUIET_S

    def step(self, memory: apsw.Connection) -> bool:
        """Seal one block, if there is one to seal.

        Args:
            memory: the writer's connection.

        Returns:
            Whether there may be more.
        """
        sql = "select changes, coalesce((select max(id) from trace), 0) from index_state"
        ((changes, last),) = _rows(memory, sql, ())
        if self._changes is not None and changes != self._changes:
            self._since = time.monotonic()
        self._changes = changes
        if last < SIZE or time.monotonic() - self._since < QUIET_S:
            return False
        there = sealed_blocks(memory)
        number = next((number for number in range(last >> BITS) if number not in there), None)
        if number is None:
            return False
        with transaction(memory):
            _seal(memory, number)
        return True


def _seal(memory: apsw.Connection, number: int) -> None:
    first, last = number << BITS, ((number + 1) << BITS) - 1
    rows = _rows(memory, _TRACES, (first, last))
    traces = np.array([row[0] for row in rows], np.int64)
    parts = _rows(
        memory, "select trace, entity from participation where trace between ? and ? order by trace", (first, last)
    )
    among = np.isin(np.array([trace for trace, _ in parts], np.int64), traces)
    parts = [part for part, here in zip(parts, among.tolist(), strict=True) if here]
    memory.execute(
        "insert into block values(?, ?, ?, ?, ?, ?, ?, ?)",
        (
            number,
            (traces - first).astype(np.uint16).tobytes(),
            _bytes([row[1] for row in rows], np.int32),
            _bytes([row[2] for row in rows], np.float64),
            _bytes([row[3] for row in rows], np.float64),
            _bytes([row[4] for row in rows], np.float32),
            _bytes([entity for _, entity in parts], np.int32),
            np.searchsorted(traces, np.array([trace for trace, _ in parts], np.int64)).astype(np.int32).tobytes(),
        ),
    )
    _seal_signs(memory, number, traces)
    _seal_words(memory, number, [(row[0] - first, row[5], row[6]) for row in rows])
    memory.execute("update index_state set sealed = sealed + 1")


def _seal_signs(memory: apsw.Connection, number: int, traces: NDArray[np.int64]) -> None:
    first, last = number << BITS, ((number + 1) << BITS) - 1
    for embedder, dimensions in _rows(memory, "select id, dimensions from text_embedder", ()):
        sql = "select trace, bits from signs where trace between ? and ? and embedder = ? order by trace"
        size = -(-dimensions // 8)  # of the whole trace; those of its units come behind
        found = [(trace, bits[:size]) for trace, bits in _rows(memory, sql, (first, last, embedder))]
        at = np.searchsorted(traces, np.array([trace for trace, _ in found], np.int64))
        if not len(found):
            continue
        words = -(-dimensions // 64)
        signs, embedded = np.zeros((len(traces), words), np.uint64), np.zeros(len(traces), np.bool_)
        packed = b"".join(bits.ljust(words * 8, b"\0") for _, bits in found)
        signs[at] = np.frombuffer(packed, np.uint64).reshape(len(found), words)
        embedded[at] = True
        memory.execute(
            "insert into block_signs values(?, ?, ?, ?)",
            (number, embedder, np.ascontiguousarray(signs.T).tobytes(), embedded.tobytes()),
        )
        seal_cells(memory, number, embedder, signs, embedded)


def _seal_words(memory: apsw.Connection, number: int, documents: Sequence[tuple[int, bytes, bytes]]) -> None:
    hashes = np.frombuffer(b"".join(one for _, one, _ in documents), np.uint32).astype(np.uint64)
    counts = np.frombuffer(b"".join(one for _, _, one in documents), np.uint8)
    offsets = np.repeat(
        np.array([offset for offset, _, _ in documents], np.uint64), [len(counts) for _, _, counts in documents]
    )
    keys = hashes << np.uint64(BITS + 8) | offsets << np.uint64(8) | counts
    keys.sort()
    terms = keys >> np.uint64(BITS + 8)
    begins = np.flatnonzero(np.diff(terms, prepend=np.uint64(2**63)))
    ends = [*begins[1:].tolist(), len(keys)]
    where = (keys >> np.uint64(8) & np.uint64(SIZE - 1)).astype(np.uint16).tobytes()
    often = (keys & np.uint64(255)).astype(np.uint8).tobytes()
    memory.executemany(
        "insert into posting values(?, ?, ?)",
        (
            (number, term, where[2 * begin : 2 * end] + often[begin:end])
            for term, begin, end in zip(terms[begins].tolist(), begins.tolist(), ends, strict=True)
        ),
    )


def _bytes(values: Sequence[Any], kind: type[np.generic]) -> bytes:
    return np.array(values, kind).tobytes()


def _rows(connection: apsw.Connection, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()
