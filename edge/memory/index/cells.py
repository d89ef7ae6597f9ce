"""Cells: the traces of a sealed block in groups whose vectors are alike, so that of a large memory only some is compared.

When a block is sealed, the signs of its traces are put in `CELLS` groups (k-means on bits: Lloyd 1982, with the majority of
each bit as the centre, and groups that start from evenly spread traces, so that the same traces give the same groups). A search
compares its signs with the centres first and then with the members of the nearest groups alone: the inverted file of Sivic and
Zisserman (2003; Jégou et al. 2011), over sign codes. What is in no sealed block is in no cell, and is looked at row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

CELLS: Final = 128  # of a block of 16,384 traces
_MEMBERS: Final = 32  # traces a cell has at least, on average
_ROUNDS: Final = 3

CELLS_V1: Final = """
delete from block;
create table block_cells(
  block integer not null references block(id) on delete cascade, embedder integer not null references text_embedder(id),
  members blob not null, sizes blob not null, centres blob not null, primary key(block, embedder)) without rowid;
"""


def create_cells(connection: apsw.Connection) -> None:
    """Make the table; part of a migration. Blocks without cells are dropped, and sealed again in quiet moments."""
    connection.execute(CELLS_V1)


@dataclass(frozen=True, slots=True, eq=False)
class BlockCells:
    """The cells of one block."""

    members: NDArray[np.uint16]  # (n,) places among the traces of the block, cell after cell
    sizes: NDArray[np.uint16]  # (c,) members of each cell
    centres: NDArray[np.uint64]  # (c, w) signs


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """The cells of all sealed blocks whose rows are known."""

    members: NDArray[np.int32]  # (m,) rows, cell after cell
    begins: NDArray[np.int64]  # (c + 1,) where each cell begins among the members
    centres: NDArray[np.uint64]  # (c, w) signs
    lasts: NDArray[np.int64]  # (c,) last row of the block of each cell
    spans: tuple[tuple[int, int], ...]  # rows from and to of each block, rising

    def differing(self, bits: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """How many signs differ between a query (w,) and each centre; (c,)."""
        return np.asarray(np.bitwise_count(self.centres ^ bits).sum(axis=1, dtype=np.uint16))

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.int32]:
        """The members of some cells, in no order."""
        begins = self.begins[chosen]
        sizes = self.begins[chosen + 1] - begins
        places = np.arange(int(sizes.sum()), dtype=np.int64)
        return np.asarray(self.members[places + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)])

    def outside(self, first: int, last: int) -> list[tuple[int, int]]:
        """The runs of rows of [first, last) that are in no block."""
        runs = []
        for begin, end in (*self.spans, (last, last)):
            if begin > first:
                runs.append((first, min(begin, last)))
            first = max(first, end)
            if first >= last:
                break
        return [run for run in runs if run[0] < run[1]]


def joined(blocks: Sequence[tuple[int, int, BlockCells]], words: int) -> Cells:
    """The cells of several blocks as one.

    Args:
        blocks: first row, rows and cells of each, rising.
        words: 64-bit words of signs.
    """
    sizes = np.concatenate([np.zeros(0, np.int64), *(one.sizes.astype(np.int64) for _, _, one in blocks)])
    return Cells(
        np.concatenate([np.zeros(0, np.int32), *(one.members.astype(np.int32) + first for first, _, one in blocks)]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        np.concatenate([np.zeros((0, words), np.uint64), *(one.centres for _, _, one in blocks)]),
        np.repeat(
            np.array([first + rows - 1 for first, rows, _ in blocks], np.int64),
            [len(one.sizes) for _, _, one in blocks],
        ),
        tuple((first, first + rows) for first, rows, _ in blocks),
    )


def load_cells(connection: apsw.Connection, block: int, embedder: int, words: int) -> BlockCells | None:
    """The cells of a sealed block; None: there are none for this embedder."""
    sql = "select members, sizes, centres from block_cells where block = ? and embedder = ?"
    rows: list[Any] = connection.execute(sql, (block, embedder)).fetchall()
    if not rows or not words:
        return None
    members, sizes, centres = rows[0]
    return BlockCells(
        np.frombuffer(members, np.uint16),
        np.frombuffer(sizes, np.uint16),
        np.frombuffer(centres, np.uint64).reshape(-1, words),
    )


def seal_cells(
    memory: apsw.Connection, block: int, embedder: int, signs: NDArray[np.uint64], embedded: NDArray[np.bool_]
) -> None:
    """Group the traces of a block, inside the transaction that seals it.

    Args:
        memory: the writer's connection.
        block: its number.
        embedder: number of the model.
        signs: (n, w) of its traces.
        embedded: (n,) which have any.
    """
    places = np.flatnonzero(embedded)
    owners, centres = grouped(signs[places])
    order = np.argsort(owners, kind="stable")
    sizes = np.bincount(owners, minlength=len(centres))
    memory.execute(
        "insert into block_cells values(?, ?, ?, ?, ?)",
        (
            block,
            embedder,
            places[order].astype(np.uint16).tobytes(),
            sizes[sizes > 0].astype(np.uint16).tobytes(),
            np.ascontiguousarray(centres[sizes > 0]).tobytes(),
        ),
    )


def grouped(signs: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Groups of signs that are alike.

    Args:
        signs: (n, w).

    Returns:
        (n,) the group of each, and (c, w) the centres.
    """
    count = max(min(CELLS, len(signs) // _MEMBERS), 1)
    centres = signs[np.linspace(0, len(signs) - 1, count).astype(np.int64)].copy()
    columns = np.ascontiguousarray(signs.T)
    owners = _nearest(columns, centres)
    for _ in range(_ROUNDS):
        order = np.argsort(owners, kind="stable")
        sizes = np.bincount(owners, minlength=count)
        there = np.flatnonzero(sizes)
        bits = np.unpackbits(signs[order].view(np.uint8), axis=1, bitorder="little")
        begins = (np.cumsum(sizes) - sizes)[there]
        ones = np.add.reduceat(bits, begins, axis=0, dtype=np.int32)
        most = np.packbits(2 * ones > sizes[there, None], axis=1, bitorder="little")
        centres[there] = np.ascontiguousarray(most).view(np.uint64)
        owners = _nearest(columns, centres)
    return owners, centres


def _nearest(columns: NDArray[np.uint64], centres: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The nearest centre of each of some signs, given word by word (w, n); of equals the first."""
    count = columns.shape[1]
    nearest = np.full(count, np.iinfo(np.uint16).max, np.uint16)
    owners = np.zeros(count, np.int64)
    for number, centre in enumerate(centres):
        differ = np.zeros(count, np.uint16)
        for column, word in zip(columns, centre, strict=True):
            differ += np.bitwise_count(column ^ word)
        closer = differ < nearest
        nearest[closer] = differ[closer]
        owners[closer] = number
    return owners
