"""Searching the index: what a filter lets through, where words occur, and how near vectors are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.index.columns import Columns, padded
from edge.memory.index.write import WHOLE, quantise, rows_of, term_hash, tokens
from edge.types.evidence import Vector


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
    lengths: NDArray[np.float64]  # (n,) tokens
    starts: NDArray[np.float64]  # (n,) UTC POSIX seconds
    ends: NDArray[np.float64]
    cameras: NDArray[np.int64]  # (n,) ids
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # (n,) in the columns, if of them


# -- searching --------------------------------------------------------------------------------------------------------


def occurrences(connection: apsw.Connection, terms: Sequence[str], traces: NDArray[np.int64]) -> NDArray[np.float64]:
    """How often each term (as `tokens` gives them) occurs in each of some documents.

    Returns:
        (terms, traces); a term is told from others by 32 bits, so that one count in a hundred million documents is wrong.
    """
    sql = "select trace, hashes, counts from terms where trace in (select value from json_each(?))"
    rows = rows_of(connection, sql, (json.dumps(traces.tolist()),))
    found = np.zeros((len(terms), len(traces)))
    if not rows or not terms:
        return found
    order = np.argsort(traces, kind="stable")
    places = order[np.searchsorted(traces[order], [trace for trace, _, _ in rows])]
    sizes = [len(counts) for _, _, counts in rows]
    hashes = np.frombuffer(b"".join(part for _, part, _ in rows), np.uint32)
    counts = np.frombuffer(b"".join(part for _, _, part in rows), np.uint8)
    owners = np.repeat(places, sizes)
    for place, term in enumerate(terms):
        here = hashes == term_hash(term)
        found[place, owners[here]] = counts[here]
    return found


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
    places = np.flatnonzero(through)
    if len(places) == len(through):
        return Corpus(
            all_traces.traces, all_traces.lengths, all_traces.starts, all_traces.ends, all_traces.cameras, places
        )
    return Corpus(
        all_traces.traces[places],
        all_traces.lengths[places],
        all_traces.starts[places],
        all_traces.ends[places],
        all_traces.cameras[places],
        places,
    )


def sign_words(query: Vector) -> NDArray[np.uint64]:
    """The signs of a query as the columns hold them.

    Raises:
        ValueError: the query is zero or not finite.
    """
    return padded(quantise(query)[1].tobytes())


def best_units(
    connection: apsw.Connection, query: Vector, embedder: str, traces: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The nearest unit of each of some traces by signs.

    Returns:
        (n,) bits that differ, NaN without vectors; (n,) number of that unit, 0: the whole trace, which has no units.

    Raises:
        ValueError: the query is zero or not finite.
    """
    _, bits = quantise(query)
    sql = """
        select s.trace, s.unit, s.bits from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join signs s on s.trace = w.value and s.embedder = m.id where m.dimensions = :dimensions"""
    values = {"wanted": json.dumps(traces.tolist()), "embedder": embedder, "dimensions": len(query)}
    rows = rows_of(connection, sql, values)
    distances, units = np.full(len(traces), np.nan), np.zeros(len(traces), np.int64)
    if not rows:
        return distances, units
    stored = np.frombuffer(b"".join(row[2] for row in rows), np.uint8).reshape(len(rows), -1)
    found = np.bitwise_count(stored ^ bits).sum(axis=1, dtype=np.int64)
    unit = np.array([row[1] for row in rows], np.int64)
    order = np.argsort(traces, kind="stable")
    place = order[np.searchsorted(traces[order], [row[0] for row in rows])]
    # Units before the whole trace, near ones before far ones, early ones before late ones.
    first = np.lexsort((unit, found, unit == WHOLE, place))
    leading = first[np.unique(place[first], return_index=True)[1]]
    distances[place[leading]], units[place[leading]] = found[leading], unit[leading]
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
