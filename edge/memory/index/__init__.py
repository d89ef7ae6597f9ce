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

from edge.memory.index.columns import Columns, ColumnsCache
from edge.memory.index.read import (
    Corpus,
    Filter,
    Postings,
    SignHits,
    beside,
    best_units,
    corpus,
    corpus_of,
    cosines,
    documents,
    nearest,
    occurrences,
    postings,
    sign_words,
    visible,
    word_sets,
)
from edge.memory.index.write import (
    WHOLE,
    add_trace,
    add_vectors,
    create,
    create_terms,
    entity_token,
    quantise,
    reindex_trace,
    remove_trace,
    stale_traces,
    tokens,
    trace_units,
)

__all__ = [
    "WHOLE",
    "Columns",
    "ColumnsCache",
    "Corpus",
    "Filter",
    "Postings",
    "SignHits",
    "add_trace",
    "add_vectors",
    "beside",
    "best_units",
    "corpus",
    "corpus_of",
    "cosines",
    "create",
    "create_terms",
    "documents",
    "entity_token",
    "nearest",
    "occurrences",
    "postings",
    "quantise",
    "reindex_trace",
    "remove_trace",
    "sign_words",
    "stale_traces",
    "tokens",
    "trace_units",
    "visible",
    "word_sets",
]
