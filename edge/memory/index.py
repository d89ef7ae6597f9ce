"""Search inside the memory: words and vectors, filtered before anything is ranked.

All of it lives in `memory.db`: one transaction writes a trace and makes it findable, and one deletion takes both
away.

*Words.* The FTS5 table `words` holds one document a trace: column `seen` (summary and lines) and column `said`
(speaker and words of each utterance). Its tokenizer is `porter` over `unicode61` without diacritics, with emoji and
other symbols as letters; scripts that write no spaces (Han, kana, Thai …) are parted into single signs by `spaced`,
on both sides, so that a word inside a sentence is found. People are indexed by identity and not by name: the document
says `xentityx7` where the text mentions entity 7 or entity 7 speaks, so a name that is learned or corrected later
reaches old traces at no cost. Postings come out of the `fts5vocab` table of instances, and the ranking is computed by
the caller over what the filter lets through: FTS5's own `bm25()` counts documents that a question about the past must
not know. No text of a user ever becomes a MATCH expression.

*Vectors.* Each trace has one vector, and one for each of its units of fine search (`search_units`), kept as int8
(scaled by 127 / largest component: recall@10 .99 of float, measured) and, apart, as signs: one bit a component. A
search scans the signs with `vec_distance_hamming` of sqlite-vec, 48 bytes a row, under the filter; the caller
rescores a short list with the int8 vectors (`cosines`). Ordinary tables and not `vec0`, on purpose: foreign keys
reach them, any SQL condition filters inside the scan (nearest-neighbours-then-filter would starve), deletion leaves
nothing in shadow tables, all distances come back so that scores can be standardised, and it is faster (50,000 rows,
short list of 400: 9 ms against 30 ms, measured). Every vector belongs to the embedder that made it, and only vectors
of the asking embedder are compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.units import Unit, spaced, units_of
from edge.types.evidence import Vector
from edge.types.records import render

INDEX_V1 = """
create virtual table words using fts5(
  seen, said, tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co So'");
insert into words(words, rank) values('secure-delete', 1);
create virtual table words_instance using fts5vocab(words, instance);
create table document(trace integer primary key references trace(id) on delete cascade, length integer not null);
create table text_embedder(id integer primary key, key text not null unique, dimensions integer not null);
create table embedding(
  trace integer not null references trace(id) on delete cascade, embedder integer not null references text_embedder(id),
  unit integer not null, vector blob not null, primary key(trace, embedder, unit)) without rowid;
create table signs(
  trace integer not null references trace(id) on delete cascade, embedder integer not null references text_embedder(id),
  unit integer not null, bits blob not null, primary key(trace, embedder, unit)) without rowid;
create trigger trace_forgets_words before delete on trace begin delete from words where rowid = old.id; end;
"""

WHOLE = 0  # `embedding.unit` of the vector of a whole trace; units of fine search count from 1


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


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """Where a term occurs, and how often."""

    term: str
    traces: NDArray[np.int64]  # (n,)
    counts: NDArray[np.float64]  # (n,)


@dataclass(frozen=True, slots=True, eq=False)
class SignHits:
    """The Hamming distances of every trace that the filter lets through and that has vectors of the embedder."""

    traces: NDArray[np.int64]  # (n,)
    whole: NDArray[np.float64]  # (n,) bits that differ, of the whole trace
    best: NDArray[np.float64]  # (n,) of its nearest unit; that of the whole trace when it has no units
    units: NDArray[np.int64]  # (n,) number of that unit (1, 2, …; 0: the whole trace)


def create(connection: apsw.Connection) -> None:
    """Make the tables of the index; part of a migration, inside its transaction."""
    connection.execute(INDEX_V1)


# -- texts ------------------------------------------------------------------------------------------------------------


def entity_token(entity: int) -> str:
    """The word that stands for an entity in the index."""
    return f"xentityx{entity}"


def tokens(connection: apsw.Connection, text: str) -> list[str]:
    """A text as the index sees it: folded, stemmed words in order."""
    tokenizer = connection.fts5_tokenizer(
        "porter", ["unicode61", "remove_diacritics", "2", "categories", "L* N* Co So"]
    )
    data = spaced(text).encode("utf-8", "replace")
    return [
        str(token)
        for token in tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    ]


def trace_units(connection: apsw.Connection, trace: int, titles: Callable[[int], str]) -> tuple[Unit, ...]:
    """The units of a stored trace, in the order of their vectors (unit 1 first)."""
    lines = _rows(connection, "select at, text from line where trace = ? order by id", (trace,))
    if not lines:
        lines = _rows(connection, "select start, text from trace where id = ? and text <> ''", (trace,))
    heard = _rows(
        connection, "select start, speaker, speaker_name, text from utterance where trace = ? order by id", (trace,)
    )
    said = [(at, titles(speaker) if speaker is not None else name or "", words) for at, speaker, name, words in heard]
    return units_of([(at, text) for at, text in lines], said, titles)


# -- writing ----------------------------------------------------------------------------------------------------------


def add_trace(
    connection: apsw.Connection, trace: int, vector: Vector | None, line_vectors: Sequence[Vector], embedder: str
) -> None:
    """Make a trace findable. Its rows (trace, lines, utterances) are written already, in the same transaction.

    Args:
        connection: the writer's.
        trace: id of the trace.
        vector: (d,) text embedding of the trace; None: found by words alone.
        line_vectors: of `search_units(…).units`, in order.
        embedder: key of the model that made the vectors.

    Raises:
        ValueError: a vector is zero, not finite, or of another length than the embedder's.
    """
    _add_words(connection, trace)
    if vector is not None:
        add_vectors(connection, trace, vector, line_vectors, embedder)


def add_vectors(
    connection: apsw.Connection, trace: int, vector: Vector, line_vectors: Sequence[Vector], embedder: str
) -> None:
    """Store the vectors of a trace, replacing those of the same embedder.

    Raises:
        ValueError: as in `add_trace`.
    """
    key = _embedder(connection, embedder, len(vector))
    for table in ("embedding", "signs"):
        connection.execute(f"delete from {table} where trace = ? and embedder = ?", (trace, key))  # noqa: S608 - constants
    for unit, values in enumerate((vector, *line_vectors)):
        if len(values) != len(vector):
            raise ValueError(f"a vector of {len(values)} components among those of {len(vector)}")
        quantised, signs = quantise(values)
        connection.execute("insert into embedding values(?, ?, ?, ?)", (trace, key, unit, quantised.tobytes()))
        connection.execute("insert into signs values(?, ?, ?, ?)", (trace, key, unit, signs.tobytes()))


def remove_trace(connection: apsw.Connection, trace: int) -> None:
    """Take a trace out of the index. Deleting the row of the trace does the same."""
    connection.execute("delete from words where rowid = ?", (trace,))
    connection.execute("delete from document where trace = ?", (trace,))
    connection.execute("delete from embedding where trace = ?", (trace,))
    connection.execute("delete from signs where trace = ?", (trace,))


def reindex_trace(connection: apsw.Connection, trace: int) -> None:
    """Bring the words of a trace up to date after its texts or people changed; a new name alone needs no reindexing."""
    connection.execute("delete from words where rowid = ?", (trace,))
    connection.execute("delete from document where trace = ?", (trace,))
    _add_words(connection, trace)


def stale_traces(connection: apsw.Connection, embedder: str, limit: int) -> list[int]:
    """Traces that have no vector of this embedder, oldest first: found by words alone until they are embedded again."""
    sql = (
        "select id from trace t where not exists (select 1 from signs s join text_embedder m on m.id = s.embedder"
        " where s.trace = t.id and m.key = ?) order by id limit ?"
    )
    return [trace for (trace,) in _rows(connection, sql, (embedder, limit))]


def quantise(vector: Vector) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """A vector as int8 (scaled by 127 / largest component) and as its signs, packed.

    Raises:
        ValueError: it is zero or not finite: sqlite-vec would store it and return it without a distance.
    """
    values = np.asarray(vector, dtype=np.float32).ravel()
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0 or np.isnan(values).any():
        raise ValueError("a vector that is zero or not finite cannot be searched for")
    scaled = np.rint(values * (127.0 / largest)).astype(np.int8)
    return scaled, np.packbits(values > 0, bitorder="little")


def _add_words(connection: apsw.Connection, trace: int) -> None:
    summaries = _rows(connection, "select text from trace where id = ?", (trace,))
    if not summaries:
        raise ValueError(f"there is no trace {trace}")
    summary: str = summaries[0][0]
    lines: list[str] = [
        text for (text,) in _rows(connection, "select text from line where trace = ? order by id", (trace,))
    ]
    # A summary that only joins the lines would count each of their words twice.
    seen = lines if lines and summary.split() == " ".join(lines).split() else [summary, *lines]
    said: list[str] = []
    heard = _rows(connection, "select speaker, speaker_name, text from utterance where trace = ? order by id", (trace,))
    for (speaker, name), utterances in groupby(heard, key=lambda row: (row[0], row[1])):
        said.append(entity_token(speaker) if speaker is not None else name or "")
        said.extend(words for _, _, words in utterances)
    seen_text, said_text = (spaced(render(" \n".join(part), entity_token)) for part in (seen, said))
    length = len(tokens(connection, seen_text)) + len(tokens(connection, said_text))
    connection.execute("insert into words(rowid, seen, said) values(?, ?, ?)", (trace, seen_text, said_text))
    connection.execute("insert into document(trace, length) values(?, ?)", (trace, length))


def _embedder(connection: apsw.Connection, key: str, dimensions: int) -> int:
    rows = _rows(connection, "select id, dimensions from text_embedder where key = ?", (key,))
    if not rows:
        connection.execute("insert into text_embedder(key, dimensions) values(?, ?)", (key, dimensions))
        return connection.last_insert_rowid()
    number, expected = rows[0]
    if expected != dimensions:
        raise ValueError(f"the embedder {key} makes vectors of {expected} components, this one has {dimensions}")
    return int(number)


# -- searching --------------------------------------------------------------------------------------------------------

# A filter as SQL over `trace t`; a bound that is null does not bind.
_LETS_THROUGH = """
t.camera in (
  select id from camera where user = :user and (:cameras is null or name in (select value from json_each(:cameras))))
and (:start is null or t.end > :start) and (:end is null or t.start < :end) and (:before is null or t.end <= :before)
and (:traces is null or t.id in (select value from json_each(:traces)))
and (:entities is null or t.id in (
  select trace from observation where entity in (select value from json_each(:entities))
  union select trace from utterance where speaker in (select value from json_each(:entities))))
"""


def corpus(connection: apsw.Connection, where: Filter) -> Corpus:
    """All documents that the filter lets through."""
    sql = "select t.id, d.length, t.start, t.end, t.camera from trace t cross join document d on d.trace = t.id where"
    table = _table(_rows(connection, f"{sql} {_LETS_THROUGH} order by t.id", _bounds(where)), 5)
    return Corpus(table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3], table[:, 4].astype(np.int64))


def postings(connection: apsw.Connection, terms: Iterable[str], *, column: str | None = None) -> list[Postings]:
    """Where each term (as `tokens` gives them) occurs, in all documents; intersect with `corpus` before counting.

    Args:
        connection: any reader.
        terms: stemmed words or entity tokens.
        column: "seen" or "said"; None: both.
    """
    sql = "select doc, count(*) from words_instance where term = ?1 and (?2 is null or col = ?2) group by doc"
    found = []
    for term in dict.fromkeys(terms):
        table = _table(_rows(connection, sql, (term, column)), 2)
        found.append(Postings(term, table[:, 0].astype(np.int64), table[:, 1]))
    return found


def word_sets(connection: apsw.Connection, traces: Sequence[int]) -> dict[int, frozenset[str]]:
    """All words (as `tokens` gives them) and entity tokens of the documents of some traces."""
    sql = "select rowid, seen, said from words where rowid in (select value from json_each(?))"
    rows = _rows(connection, sql, (json.dumps(list(traces)),))
    return {trace: frozenset(tokens(connection, f"{seen} {said}")) for trace, seen, said in rows}


def nearest(connection: apsw.Connection, query: Vector, embedder: str, where: Filter) -> SignHits:
    """How many signs differ between the query and each trace that the filter lets through, whole and at its best unit.

    Args:
        connection: a reader with sqlite-vec loaded.
        query: (d,) embedding of the question.
        embedder: key of the model that made it: only its vectors are looked at.
        where: what may be looked at.

    Raises:
        ValueError: the query is zero or not finite.
    """
    _, bits = quantise(query)
    sql = f"""
        with near as (
          select s.trace, s.unit, vec_distance_hamming(vec_bit(s.bits), vec_bit(:bits)) as distance
          from text_embedder m cross join trace t cross join signs s on s.trace = t.id and s.embedder = m.id
          where m.key = :embedder and m.dimensions = :dimensions and {_LETS_THROUGH})
        select trace, sum(distance) filter (where unit = 0), min(distance * 65536 + unit) filter (where unit > 0)
        from near group by trace"""  # noqa: S608 - constants
    values = {"bits": bits.tobytes(), "embedder": embedder, "dimensions": len(query), **_bounds(where)}
    table = _table(_rows(connection, sql, values), 3)
    best = np.where(np.isnan(table[:, 2]), table[:, 1] * 65536, table[:, 2])
    return SignHits(table[:, 0].astype(np.int64), table[:, 1], best // 65536, (best % 65536).astype(np.int64))


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
        (t, u): vector for t, u, vector in _rows(connection, sql, {"wanted": json.dumps(wanted), "embedder": embedder})
    }
    found = [place for place, key in enumerate(wanted) if key in stored]
    result = np.full(len(wanted), np.nan)
    if found:
        matrix = np.frombuffer(b"".join(stored[wanted[place]] for place in found), np.int8).reshape(len(found), -1)
        values = matrix.astype(np.float32)
        unit = np.asarray(query, np.float32) / np.linalg.norm(query)
        result[found] = (values @ unit) / np.linalg.norm(values, axis=1)
    return result


def _bounds(where: Filter) -> dict[str, Any]:
    return {
        "user": where.user,
        "start": where.start,
        "end": where.end,
        "before": where.before,
        "cameras": json.dumps(where.cameras) if where.cameras else None,
        "entities": json.dumps(where.entities) if where.entities else None,
        "traces": json.dumps(where.traces) if where.traces is not None else None,
    }


def _rows(connection: apsw.Connection, sql: str, values: dict[str, Any] | tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()


def _table(rows: list[tuple[Any, ...]], columns: int) -> NDArray[np.float64]:
    return np.array(rows, dtype=np.float64).reshape(-1, columns)
