"""Visual memory: what each moment looked like, as one vector, and the moments that look most like a picture.

A row a moment, written with its critical commit and gone with it: the vector as int8 and its signs. The signs of all moments
are in working memory (`Columns`), as those of texts are (`edge.memory.index`); a search compares them all, takes the nearest
moment of each hour of each camera, because the moments of one hour of a camera that stands still all look alike, and orders
the best hours by the int8 vectors. Vectors of different networks are never compared.
"""

from __future__ import annotations

import itertools
import json
import statistics
import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.database import fetch
from edge.memory.index import quantise
from edge.types.evidence import Vector, VisualEvidence

VISUAL_V1 = """
create table visual(
  trace integer primary key references trace(id) on delete cascade, embedder text not null, steadiness real not null,
  bits blob not null, vector blob not null);
create trigger visual_gone after delete on visual begin update index_state set changes = changes + 1; end;
create trigger visual_late after insert on visual when new.trace < (select max(id) from trace)
  begin update index_state set changes = changes + 1; end;
create index key_frame_at on key_frame(at);
"""

_CHUNK: Final = 20_000  # rows read at once
_AMONG: Final = 256  # hours whose nearest moments are compared by their vectors, at least
STEADY: Final = 0.75  # cosine of one moment to the next, in half of the cases at least, of a camera that stands still
_NEXT_S: Final = 300.0  # moments that are further apart say nothing of it: the light may have been switched off
_PAIRS: Final = 4  # of moments at least
_LATEST: Final = 64  # moments by which it is told whether a camera is carried about


@dataclass(frozen=True, slots=True)
class Like:
    """A moment that looks like what is asked for."""

    trace: int
    cosine: float


@dataclass(frozen=True, slots=True)
class FrameAt:
    """A key frame by its time."""

    id: int
    trace: int
    camera: str
    at: float  # UTC POSIX seconds
    width: int  # px
    height: int  # px


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What moments look like, of all users, in the order of their ids."""

    traces: NDArray[np.int64]  # (n,) ids, rising
    cameras: NDArray[np.int64]  # (n,) ids
    starts: NDArray[np.float64]  # (n,) UTC POSIX seconds
    hours: NDArray[np.int32]  # (n,) which hour of which camera, numbered as they come
    signs: NDArray[np.uint64]  # (n, w)

    def nearest(self, bits: NDArray[np.uint64], places: NDArray[np.bool_] | None, most: int) -> NDArray[np.int64]:
        """The rows of the moments with most signs in common: of each hour of a camera one, the nearest first.

        Args:
            bits: (w,) signs of what is asked for.
            places: (n,) rows that are looked at; None: all.
            most: so many.
        """
        count = len(self.traces)
        if not count or self.signs.shape[1] != len(bits):
            return np.zeros(0, np.int64)
        distances = np.zeros(count, np.uint16)
        for word, sought in enumerate(bits):  # word by word: each is a column, one after another in memory
            distances += np.bitwise_count(self.signs[:, word] ^ sought)
        if places is not None:
            distances[~places] = np.iinfo(np.uint16).max
        # The distance above the row, so that the least of an hour says which row it is.
        keys = (distances.astype(np.int64) << 40) | np.arange(count)
        none = np.iinfo(np.int64).max
        best = np.full(int(self.hours.max()) + 1, none)
        np.minimum.at(best, self.hours, keys)
        best = best[(best >> 40) < np.iinfo(np.uint16).max]
        if len(best) > most:
            best = np.partition(best, most)[:most]
        return np.asarray(np.sort(best) & ((1 << 40) - 1), np.int64)


class ColumnsCache:
    """Keeps the columns of one memory and one network in step with the file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[int, str] | None = None
        self._growing = _Growing()

    def get(self, connection: apsw.Connection, embedder: str) -> Columns:
        """The columns as of the state that the connection reads.

        Args:
            connection: a reader, inside `Store.reading`.
            embedder: key of the network.
        """
        sql = "select changes, coalesce((select max(id) from trace), 0) from index_state"
        changes, last = fetch(connection, sql)[0]
        with self._lock:
            if self._key is not None and embedder == self._key[1] and changes < self._key[0]:
                lone = _Growing()  # a reader of an older state than the one kept
                lone.follow(connection, embedder, last)
                return lone.first(last)
            if self._key != (changes, embedder):
                self._key, self._growing = (changes, embedder), _Growing()
            self._growing.follow(connection, embedder, last)
            return self._growing.first(last)


class _Growing:
    """Arrays with room for more rows than are known; views that were given out stay as they are."""

    def __init__(self) -> None:
        self._arrays: list[NDArray[Any]] = []
        self._count = 0
        self._read = 0  # id of the last trace that was looked at
        self._hours: dict[tuple[int, int], int] = {}

    def follow(self, connection: apsw.Connection, embedder: str, last: int) -> None:
        """Read what came after the rows that are known."""
        sql = (
            "select v.trace, t.camera, t.start, v.bits from visual v join trace t on t.id = v.trace"
            " where v.trace > ? and v.trace <= ? and v.embedder = ? order by v.trace limit ?"
        )
        while self._read < last:
            rows = fetch(connection, sql, (self._read, last, embedder, _CHUNK))
            if rows:
                self._append(rows)
            self._read = rows[-1][0] if len(rows) == _CHUNK else last

    def _append(self, rows: list[tuple[Any, ...]]) -> None:
        traces, cameras, starts, bits = zip(*rows, strict=True)
        size = -(-len(bits[0]) // 8) * 8
        data = b"".join(one.ljust(size, b"\0") for one in bits)
        hours = [
            self._hours.setdefault((camera, int(start // 3600)), len(self._hours))
            for camera, start in zip(cameras, starts, strict=True)
        ]
        new: tuple[NDArray[Any], ...] = (
            np.array(traces, np.int64),
            np.array(cameras, np.int64),
            np.array(starts, np.float64),
            np.array(hours, np.int32),
            np.frombuffer(data, np.uint64).reshape(len(rows), -1),
        )
        end = self._count + len(rows)
        for at, values in enumerate(new):
            if at == len(self._arrays):
                self._arrays.append(np.zeros((0, *values.shape[1:]), values.dtype, order="F"))
            known = self._arrays[at]
            if end > len(known):
                wider = np.zeros((max(end, 2 * len(known)), *known.shape[1:]), known.dtype, order="F")
                wider[: len(known)] = known
                self._arrays[at] = known = wider
            known[self._count : end] = values
        self._count = end

    def first(self, last: int) -> Columns:
        """The rows up to a trace."""
        if not self._arrays:
            empty = np.zeros(0, np.int64)
            return Columns(empty, empty, empty.astype(np.float64), empty.astype(np.int32), np.zeros((0, 0), np.uint64))
        count = int(np.searchsorted(self._arrays[0][: self._count], last, side="right"))
        return Columns(*(array[:count] for array in self._arrays))


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    connection.execute(VISUAL_V1)


def add(memory: apsw.Connection, trace: int, looks: VisualEvidence) -> None:
    """Keep what a moment looks like, inside its critical commit.

    Raises:
        ValueError: the vector is zero or not finite.
    """
    values, bits = quantise(looks.embedding)
    memory.execute(
        "insert into visual values(?, ?, ?, ?, ?)",
        (trace, looks.embedder, looks.steadiness, bits.tobytes(), values.tobytes()),
    )


def remove(memory: apsw.Connection, traces: Collection[int]) -> None:
    """Forget what some moments looked like; they themselves stay."""
    memory.execute("delete from visual where trace in (select value from json_each(?))", (json.dumps(sorted(traces)),))


def vector_of(connection: apsw.Connection, trace: int) -> tuple[Vector, str] | None:
    """What a moment looks like, as a unit vector, and the key of the network; None: it is not known."""
    rows = fetch(connection, "select vector, embedder from visual where trace = ?", (trace,))
    return (_unit(rows[0][0]), rows[0][1]) if rows else None


def search(
    connection: apsw.Connection,
    columns: Columns,
    vector: Vector,
    embedder: str,
    *,
    cameras: Collection[int],
    since: float | None = None,
    until: float | None = None,
    apart: tuple[int, float, float] | None = None,
    k: int = 10,
) -> list[Like]:
    """The moments that look most like a picture or another moment, of each hour of a camera one, the best first.

    Args:
        connection: inside `Store.reading`, as `columns` are.
        columns: of the same network.
        vector: (d,) what is looked for.
        embedder: key of the network that made it.
        cameras: ids of those that are looked at.
        since: UTC POSIX seconds; what begins from there on.
        until: what begins before it.
        apart: (camera, from, to) a stretch that is left out: around the moment that is asked about.
        k: how many.

    Raises:
        ValueError: the vector is zero or not finite.
    """
    bits = np.frombuffer(_padded(quantise(vector)[1].tobytes()), np.uint64)
    places = np.isin(columns.cameras, np.array(sorted(cameras), np.int64))
    if since is not None:
        places &= columns.starts >= since
    if until is not None:
        places &= columns.starts < until
    if apart is not None:
        camera, first, last = apart
        places &= ~((columns.cameras == camera) & (columns.starts >= first) & (columns.starts < last))
    rows = columns.nearest(bits, None if places.all() else places, max(_AMONG, 4 * k))
    wanted = json.dumps(columns.traces[rows].tolist())
    stored = fetch(
        connection,
        "select trace, vector from visual where embedder = ? and trace in (select value from json_each(?))",
        (embedder, wanted),
    )
    if not stored:
        return []
    values = np.frombuffer(b"".join(row[1] for row in stored), np.int8).reshape(len(stored), -1).astype(np.float32)
    unit = np.asarray(vector, np.float32) / np.linalg.norm(vector)
    cosines = (values @ unit) / np.linalg.norm(values, axis=1)
    found = [Like(row[0], float(cosine)) for row, cosine in zip(stored, cosines, strict=True)]
    return sorted(found, key=lambda one: (-one.cosine, one.trace))[:k]


def frames_at(connection: apsw.Connection, user: str, at: float, camera: str | None = None) -> list[FrameAt]:
    """The key frame of each camera that is nearest to an instant (UTC POSIX seconds), the nearest first."""
    found = []
    for number, name in fetch(
        connection, "select id, name from camera where user = ?1 and (?2 is null or name = ?2)", (user, camera)
    ):
        sides = []
        for sign, order in (("<=", "desc"), (">", "asc")):
            sides += fetch(
                connection,
                "select k.id, k.trace, k.at, k.width, k.height from key_frame k indexed by key_frame_at"  # noqa: S608 -- constants
                f" join trace t on t.id = k.trace where k.at {sign} ? and +t.camera = ? order by k.at {order} limit 1",
                (at, number),
            )
        if sides:
            frame, trace, when, width, height = min(sides, key=lambda one: (abs(one[2] - at), one[0]))
            found.append(FrameAt(frame, trace, name, when, width, height))
    return sorted(found, key=lambda one: (abs(one.at - at), one.id))


def unsteady(connection: apsw.Connection, camera: int, now: float) -> bool | None:
    """Whether a camera is carried about, by how much each of its latest moments differs from the one before; None: unknown.

    Args:
        connection: any.
        camera: its id.
        now: UTC POSIX seconds: what began before it counts.
    """
    rows = fetch(
        connection,
        "select v.embedder, t.start, t.end, v.vector from trace t join visual v on v.trace = t.id where t.camera = ? and t.start < ?"
        " order by t.start desc limit ?",
        (camera, now, _LATEST),
    )
    cosines = [
        float(_unit(vector) @ _unit(before))
        for (embedder, start, _, vector), (same, _, end, before) in itertools.pairwise(rows)
        if embedder == same and start - end <= _NEXT_S
    ]
    return statistics.median(cosines) < STEADY if len(cosines) >= _PAIRS else None


def _unit(blob: bytes) -> Vector:
    values = np.frombuffer(blob, np.int8).astype(np.float32)
    return values / np.linalg.norm(values)


def _padded(bits: bytes) -> bytes:
    return bits.ljust(-(-len(bits) // 8) * 8, b"\0")
