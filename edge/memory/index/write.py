"""Making traces findable: the tables of the index, what of a text is indexed, and the writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any
from zlib import crc32

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.index.columns import COLUMNS_V1
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

TERMS_V1 = """
create table terms(
  trace integer primary key references trace(id) on delete cascade, hashes blob not null, counts blob not null);
"""

WHOLE = 0  # `embedding.unit` of the vector of a whole trace; units of fine search count from 1


def create(connection: apsw.Connection) -> None:
    """Make the tables of the index; part of a migration, inside its transaction."""
    connection.execute(INDEX_V1)


def create_terms(connection: apsw.Connection) -> None:
    """Make the table of the words of each document and fill it; part of a migration, inside its transaction."""
    connection.execute(TERMS_V1)
    connection.execute(COLUMNS_V1)
    for trace, seen, said in rows_of(connection, "select rowid, seen, said from words", ()):
        _put_terms(connection, trace, [*tokens(connection, seen), *tokens(connection, said)])


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
    lines = rows_of(connection, "select at, text from line where trace = ? order by id", (trace,))
    if not lines:
        lines = rows_of(connection, "select start, text from trace where id = ? and text <> ''", (trace,))
    heard = rows_of(
        connection, "select start, speaker, speaker_name, text from utterance where trace = ? order by id", (trace,)
    )
    said = [(at, titles(speaker) if speaker is not None else name or "", words) for at, speaker, name, words in heard]
    return units_of([(at, text) for at, text in lines], said, titles)


# -- writing ----------------------------------------------------------------------------------------------------------


def add_trace(
    connection: apsw.Connection,
    trace: int,
    vector: Vector | None,
    line_vectors: Sequence[Vector],
    embedder: str,
    word_signs: bytes = b"",
) -> None:
    """Make a trace findable. Its rows (trace, lines, utterances) are written already, in the same transaction.

    Args:
        connection: the writer's.
        trace: id of the trace.
        vector: (d,) text embedding of the trace; None: found by words alone.
        line_vectors: of `search_units(…).units`, in order.
        embedder: key of the model that made the vectors.
        word_signs: of its content words (`edge.memory.read_units`); empty: they are not compared one by one.

    Raises:
        ValueError: a vector is zero, not finite, or of another length than the embedder's.
    """
    _add_words(connection, trace)
    if vector is not None:
        add_vectors(connection, trace, vector, line_vectors, embedder, word_signs)


def add_vectors(
    connection: apsw.Connection,
    trace: int,
    vector: Vector,
    line_vectors: Sequence[Vector],
    embedder: str,
    word_signs: bytes = b"",
) -> None:
    """Store the vectors of a trace, replacing those of the same embedder.

    Raises:
        ValueError: as in `add_trace`.
    """
    key = _embedder(connection, embedder, len(vector))
    for table in ("embedding", "signs", "word_signs"):
        connection.execute(f"delete from {table} where trace = ? and embedder = ?", (trace, key))  # noqa: S608 - constants
    packed = []
    for unit, values in enumerate((vector, *line_vectors)):
        if len(values) != len(vector):
            raise ValueError(f"a vector of {len(values)} components among those of {len(vector)}")
        quantised, signs = quantise(values)
        connection.execute("insert into embedding values(?, ?, ?, ?)", (trace, key, unit, quantised.tobytes()))
        packed.append(signs.tobytes())
    connection.execute("insert into signs values(?, ?, ?)", (trace, key, b"".join(packed)))
    if word_signs:
        connection.execute("insert into word_signs values(?, ?, ?)", (trace, key, word_signs))


def remove_trace(connection: apsw.Connection, trace: int) -> None:
    """Take a trace out of the index. Deleting the row of the trace does the same."""
    connection.execute("delete from words where rowid = ?", (trace,))
    connection.execute("delete from document where trace = ?", (trace,))
    connection.execute("delete from terms where trace = ?", (trace,))
    connection.execute("delete from embedding where trace = ?", (trace,))
    connection.execute("delete from signs where trace = ?", (trace,))
    connection.execute("delete from word_signs where trace = ?", (trace,))


def reindex_trace(connection: apsw.Connection, trace: int) -> None:
    """Bring the words of a trace up to date after its texts or people changed; a new name alone needs no reindexing."""
    connection.execute("delete from words where rowid = ?", (trace,))
    connection.execute("delete from document where trace = ?", (trace,))
    connection.execute("delete from terms where trace = ?", (trace,))
    _add_words(connection, trace)


def stale_traces(connection: apsw.Connection, embedder: str, limit: int) -> list[int]:
    """Traces that have no vector of this embedder, oldest first: found by words alone until they are embedded again."""
    sql = (
        "select id from trace t where not exists (select 1 from signs s join text_embedder m on m.id = s.embedder"
        " where s.trace = t.id and m.key = ?) order by id limit ?"
    )
    return [trace for (trace,) in rows_of(connection, sql, (embedder, limit))]


def quantise(vector: Vector) -> tuple[NDArray[np.int8], NDArray[np.uint8]]:
    """A vector as int8 (scaled by 127 / largest component) and as its signs, packed.

    Raises:
        ValueError: it is zero or not finite: nothing can be compared with it.
    """
    values = np.asarray(vector, dtype=np.float32).ravel()
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest) or largest == 0.0 or np.isnan(values).any():
        raise ValueError("a vector that is zero or not finite cannot be searched for")
    scaled = np.rint(values * (127.0 / largest)).astype(np.int8)
    return scaled, np.packbits(values > 0, bitorder="little")


def _add_words(connection: apsw.Connection, trace: int) -> None:
    summaries = rows_of(connection, "select text from trace where id = ?", (trace,))
    if not summaries:
        raise ValueError(f"there is no trace {trace}")
    summary: str = summaries[0][0]
    lines: list[str] = [
        text for (text,) in rows_of(connection, "select text from line where trace = ? order by id", (trace,))
    ]
    # A summary that only joins the lines would count each of their words twice.
    seen = lines if lines and summary.split() == " ".join(lines).split() else [summary, *lines]
    said: list[str] = []
    heard = rows_of(
        connection, "select speaker, speaker_name, text from utterance where trace = ? order by id", (trace,)
    )
    for (speaker, name), utterances in groupby(heard, key=lambda row: (row[0], row[1])):
        said.append(entity_token(speaker) if speaker is not None else name or "")
        said.extend(words for _, _, words in utterances)
    seen_text, said_text = (spaced(render(" \n".join(part), entity_token)) for part in (seen, said))
    words = [*tokens(connection, seen_text), *tokens(connection, said_text)]
    connection.execute("insert into words(rowid, seen, said) values(?, ?, ?)", (trace, seen_text, said_text))
    connection.execute("insert into document(trace, length) values(?, ?)", (trace, len(words)))
    _put_terms(connection, trace, words)


def _put_terms(connection: apsw.Connection, trace: int, words: Sequence[str]) -> None:
    counted = Counter(words)
    hashes = np.fromiter(map(term_hash, counted), np.uint32, len(counted))
    counts = np.minimum(np.fromiter(counted.values(), np.int64, len(counted)), 255).astype(np.uint8)
    connection.execute("insert into terms values(?, ?, ?)", (trace, hashes.tobytes(), counts.tobytes()))


def term_hash(term: str) -> int:
    """How a term is told from others in `terms`."""
    return crc32(term.encode("utf-8", "replace"))


def _embedder(connection: apsw.Connection, key: str, dimensions: int) -> int:
    rows = rows_of(connection, "select id, dimensions from text_embedder where key = ?", (key,))
    if not rows:
        connection.execute("insert into text_embedder(key, dimensions) values(?, ?)", (key, dimensions))
        return connection.last_insert_rowid()
    number, expected = rows[0]
    if expected != dimensions:
        raise ValueError(f"the embedder {key} makes vectors of {expected} components, this one has {dimensions}")
    return int(number)


def rows_of(connection: apsw.Connection, sql: str, values: dict[str, Any] | tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    return connection.execute(sql, values).fetchall()
