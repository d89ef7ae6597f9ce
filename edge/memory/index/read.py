"""Searching the index: what a filter lets through, where words occur, and how near vectors are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.index.blocks import BITS, sealed_documents
from edge.memory.index.columns import Columns, Signs, padded
from edge.memory.index.write import WHOLE, quantise, rows_of, term_hash, tokens
from edge.types.evidence import Vector

_UNIT_BITS: Final = 12  # of a number of a unit; what is said in half a minute has a few
_LAST_UNIT: Final = (1 << _UNIT_BITS) - 1
_HELD: Final = 1 << 20  # documents of words that are kept in working memory: 9 MB


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search may look at; every bound is applied inside the search."""

    user: str
    start: float | None = None  # UTC POSIX seconds: traces that overlap [start, end)
    end: float | None = None
    before: float | None = None  # traces that ended at or before this
    cameras: tuple[str, ...] = ()  # names; empty: all
    entities: tuple[
        int, ...
    ] = ()  # traces in which at least one of these takes part, is mentioned or speaks; empty: all
    traces: tuple[int, ...] | None = None  # only these


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """The documents that a filter lets through, each with its length."""

    traces: NDArray[np.int64]  # (n,), rising
    lengths: NDArray[np.float32]  # (n,) tokens
    starts: NDArray[np.float64]  # (n,) UTC POSIX seconds
    ends: NDArray[np.float64]
    cameras: NDArray[np.int32]  # (n,) ids
    rows: NDArray[np.int64] | slice  # (n,) in the columns; a slice where they follow one another


# -- searching --------------------------------------------------------------------------------------------------------


def postings(
    connection: apsw.Connection, all_traces: Columns, term: str, first: int, last: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Which documents hold a term (as `tokens` gives it).

    Args:
        connection: that the columns were read with.
        all_traces: the columns.
        term: what to look for; it is told from others by 32 bits, so that one count in a hundred million documents is wrong.
        first: among the rows from this one
        last: to before this one.

    Returns:
        (m,) their rows, rising, and (m,) how often each holds it, 255 at most.
    """
    if first >= last:
        return np.zeros(0, np.int64), np.zeros(0, np.uint8)
    sought = term_hash(term)
    low, high = int(all_traces.traces[first]), int(all_traces.traces[last - 1])
    # A question is searched several times: its words are read once.
    blocks = (sought, low >> BITS, high >> BITS)
    kept = all_traces.held.get(blocks)
    if kept is None:
        kept = sealed_documents(connection, *blocks)
        if sum(len(ids) for ids, _ in list(all_traces.held.values())) + len(kept[0]) > _HELD:
            all_traces.held.clear()
        all_traces.held[blocks] = kept
    documents, counts = kept
    rows = all_traces.rows_of(documents)
    if len(all_traces.hashes):
        loose = np.flatnonzero(all_traces.hashes == np.uint32(sought))
        if len(loose):
            rows = np.concatenate([rows, all_traces.owners[loose]])
            counts = np.concatenate([counts, all_traces.counts[loose]])
            if len(documents) and rows[len(documents)] < rows[len(documents) - 1]:  # a block was dropped among others
                order = np.argsort(rows, kind="stable")
                rows, counts = rows[order], counts[order]
    begin, end = np.searchsorted(rows, (first, last)).tolist()
    return rows[begin:end], counts[begin:end]


def documents(
    connection: apsw.Connection, term: str, first: int, last: int, limit: int
) -> tuple[NDArray[np.int64], bool]:
    """The documents that hold a term (as `tokens` gives it), newest first, from one id to another.

    Returns:
        At most `limit` ids, and whether these are all.
    """
    if tokens(connection, term) == [term]:
        # The stem is found by itself: the postings come out newest first and end where enough are there.
        inner = "select rowid as doc from words where words match ?1 and rowid between ?2 and ?3 order by rowid desc limit ?4"
        sought = '"' + term.replace('"', '""') + '"'
    else:
        inner = "select distinct doc from words_instance where term = ?1 and doc between ?2 and ?3 order by doc desc limit ?4"
        sought = term
    sql = f"select json_group_array(doc) from ({inner})"  # noqa: S608 - constants
    rows = rows_of(connection, sql, (sought, first, last, limit + 1))
    found = np.array(json.loads(rows[0][0]), np.int64)
    return found[:limit], len(found) <= limit


def documents_of(connection: apsw.Connection, term: str) -> NDArray[np.int64]:
    """All documents that hold a term (as `tokens` gives it), newest first."""
    ((last,),) = rows_of(connection, "select coalesce(max(id), 0) from trace", ())
    found, _ = documents(connection, term, 0, last, last)
    return found


def visible(connection: apsw.Connection, all_traces: Columns, where: Filter) -> NDArray[np.bool_]:
    """Which traces a filter lets through; (n,) in the order of the columns."""
    cameras = rows_of(
        connection,
        "select id from camera where user = :user"
        " and (:cameras is null or name in (select value from json_each(:cameras)))",
        {"user": where.user, "cameras": json.dumps(where.cameras) if where.cameras else None},
    )
    everywhere = rows_of(connection, "select count(*) from camera", ())
    through = np.ones(len(all_traces.traces), np.bool_)
    if len(cameras) < everywhere[0][0]:
        through &= np.isin(all_traces.cameras, [camera for (camera,) in cameras])
    if where.start is not None:
        through &= all_traces.ends > where.start
    if where.end is not None:
        through &= all_traces.starts < where.end
    if where.before is not None:
        through &= all_traces.ends <= where.before
    if where.traces is not None:
        through &= np.isin(all_traces.traces, np.array(where.traces, np.int64))
    if where.entities:
        through &= all_traces.with_people(where.entities)
    return through


def corpus_of(all_traces: Columns, through: NDArray[np.bool_]) -> Corpus:
    """The documents of a mask (`visible`)."""
    count = int(np.count_nonzero(through))
    first = int(through.argmax()) if count else 0
    # What is visible at a time is mostly all up to then: nothing is copied.
    one_run = count > 0 and bool(through[first : first + count].all())
    rows = slice(first, first + count) if one_run else np.flatnonzero(through)
    return Corpus(
        all_traces.traces[rows],
        all_traces.lengths[rows],
        all_traces.starts[rows],
        all_traces.ends[rows],
        all_traces.cameras[rows],
        rows,
    )


def sign_words(query: Vector) -> NDArray[np.uint64]:
    """The signs of a query as the columns hold them.

    Raises:
        ValueError: the query is zero or not finite.
    """
    return padded(quantise(query)[1].tobytes())


def stored_signs(connection: apsw.Connection, embedder: str, traces: Sequence[int]) -> Signs:
    """The packed signs of some traces and of their units; those without vectors are left out."""
    sql = """
        select s.trace, s.bits from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join signs s on s.trace = w.value and s.embedder = m.id"""
    return dict(rows_of(connection, sql, {"wanted": json.dumps(list(traces)), "embedder": embedder}))


def best_units(query: Vector, signs: Signs, traces: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The nearest unit of each of some traces by signs.

    Args:
        query: (d,) embedding of the question.
        signs: of `stored_signs`.
        traces: (n,) ids.

    Returns:
        (n,) bits that differ, NaN without vectors; (n,) number of that unit, 0: the whole trace, which has no units.

    Raises:
        ValueError: the query is zero or not finite.
    """
    _, bits = quantise(query)
    distances, units = np.full(len(traces), np.nan), np.zeros(len(traces), np.int64)
    found = [(place, signs[trace]) for place, trace in enumerate(traces.tolist()) if trace in signs]
    found = [(place, packed) for place, packed in found if len(packed) % len(bits) == 0]
    if not found:
        return distances, units
    sizes = np.array([len(packed) // len(bits) for _, packed in found])
    begins = np.cumsum(sizes) - sizes
    stored = np.frombuffer(b"".join([packed for _, packed in found]), np.uint8).reshape(-1, len(bits))
    differ = np.bitwise_count(stored ^ bits).sum(axis=1, dtype=np.int32)
    order = np.arange(len(differ), dtype=np.int32) - np.repeat(begins, sizes).astype(np.int32)
    # Units before the whole trace, near ones before far ones, early ones before late ones.
    whole = (order == WHOLE) & np.repeat(sizes > 1, sizes)
    keys = np.where(whole, np.iinfo(np.int32).max, (differ << _UNIT_BITS) + np.minimum(order, _LAST_UNIT))
    best = np.minimum.reduceat(keys, begins)
    places = [place for place, _ in found]
    distances[places], units[places] = best >> _UNIT_BITS, best & _LAST_UNIT
    return distances, units


def beside(connection: apsw.Connection, trace: int, step: int) -> tuple[int, float, float] | None:
    """The trace of the same camera before (-1) or after (1) another one in time: its id, start and end."""
    sign, order = ("<", "desc") if step < 0 else (">", "asc")
    sql = (
        f"select t.id, t.start, t.end from trace o join trace t on t.camera = o.camera and"  # noqa: S608 - constants
        f" (t.start, t.id) {sign} (o.start, o.id) where o.id = ? order by t.start {order}, t.id {order} limit 1"
    )
    rows = rows_of(connection, sql, (trace,))
    return (int(rows[0][0]), float(rows[0][1]), float(rows[0][2])) if rows else None


def word_sets(connection: apsw.Connection, traces: Sequence[int]) -> dict[int, frozenset[str]]:
    """All words (as `tokens` gives them) and entity tokens of the documents of some traces."""
    sql = "select rowid, seen, said from words where rowid in (select value from json_each(?))"
    rows = rows_of(connection, sql, (json.dumps(list(traces)),))
    return {trace: frozenset(tokens(connection, f"{seen} {said}")) for trace, seen, said in rows}


def cosines(
    connection: apsw.Connection, query: Vector, embedder: str, traces: NDArray[np.int64], units: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The cosine between the query and the stored int8 vectors of a short list.

    Args:
        connection: any reader.
        query: (d,) embedding of the question.
        embedder: key of the model that made it.
        traces: (n,) ids.
        units: (n,) number of the unit of each; 0: the whole trace.

    Returns:
        (n,), in the order asked; NaN where there is no such vector.
    """
    sql = """
        select e.trace, e.unit, e.vector from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join embedding e on e.trace = w.value ->> 0 and e.embedder = m.id and e.unit = w.value ->> 1"""
    wanted = list(zip(traces.tolist(), units.tolist(), strict=True))
    stored = {
        (t, u): vector
        for t, u, vector in rows_of(connection, sql, {"wanted": json.dumps(wanted), "embedder": embedder})
    }
    found = [place for place, key in enumerate(wanted) if key in stored]
    result = np.full(len(wanted), np.nan)
    if found:
        matrix = np.frombuffer(b"".join(stored[wanted[place]] for place in found), np.int8).reshape(len(found), -1)
        values = matrix.astype(np.float32)
        unit = np.asarray(query, np.float32) / np.linalg.norm(query)
        result[found] = (values @ unit) / np.linalg.norm(values, axis=1)
    return result


def nearest_units(
    connection: apsw.Connection, query: Vector, embedder: str, traces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The nearest unit of each of a few traces by all its stored int8 vectors.

    Args:
        connection: any reader.
        query: (d,) embedding of the question.
        embedder: key of the model that made it.
        traces: (n,) ids.

    Returns:
        (n,) cosines, NaN without vectors; (n,) number of that unit, 0: the whole trace, which has no units.
    """
    sql = """
        select w.key, e.unit, e.vector from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join embedding e on e.trace = w.value and e.embedder = m.id order by w.key, e.unit"""
    rows = rows_of(connection, sql, {"wanted": json.dumps(traces.tolist()), "embedder": embedder})
    nearest, units = np.full(len(traces), np.nan), np.zeros(len(traces), np.int64)
    if not rows:
        return nearest, units
    places, numbers = np.array([place for place, _, _ in rows]), np.array([unit for _, unit, _ in rows])
    values = np.frombuffer(b"".join(vector for _, _, vector in rows), np.int8).reshape(len(rows), -1).astype(np.float32)
    found = (values @ (np.asarray(query, np.float32) / np.linalg.norm(query))) / np.linalg.norm(values, axis=1)
    for place in range(len(traces)):
        among = np.flatnonzero(places == place)
        among = among[numbers[among] != WHOLE] if len(among) > 1 else among
        if len(among):
            best = among[found[among].argmax()]
            nearest[place], units[place] = found[best], numbers[best]
    return nearest, units


def whole_vectors(connection: apsw.Connection, embedder: str, traces: Sequence[int]) -> dict[int, Vector]:
    """The vectors of whole traces, (d,) float32 and L2-normalised; those without one are left out."""
    sql = """
        select e.trace, e.vector from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join embedding e on e.trace = w.value and e.embedder = m.id and e.unit = :whole"""
    values = {"wanted": json.dumps(sorted(set(traces))), "embedder": embedder, "whole": WHOLE}
    found: dict[int, Vector] = {}
    for trace, vector in rows_of(connection, sql, values):
        value = np.frombuffer(vector, np.int8).astype(np.float32)
        found[trace] = value / max(float(np.linalg.norm(value)), 1e-9)
    return found


def latest_in(
    connection: apsw.Connection, user: str, spans: Sequence[tuple[str, float, float]], at: float
) -> list[tuple[int, float]]:
    """The latest trace of each span that had ended by a time.

    Args:
        connection: any reader.
        user: whose memory.
        spans: camera, and UTC POSIX seconds from and to.
        at: UTC POSIX seconds.

    Returns:
        Ids and ends, in the order of the spans; a span without such a trace has none.
    """
    sql = """
        select t.id, t.end from json_each(:spans) s join camera c on c.user = :user and c.name = s.value ->> 0
        join trace t on t.id = (
          select i.id from trace i where i.camera = c.id and i.start between s.value ->> 1 and s.value ->> 2 and i.end <= :at
          order by i.start desc, i.id desc limit 1)
        order by s.key"""
    return [
        (int(trace), float(end))
        for trace, end in rows_of(connection, sql, {"spans": json.dumps(list(spans)), "user": user, "at": at})
    ]
