"""Search inside the memory: words and vectors, filtered before anything is ranked.

All of it lives in `memory.db`: one transaction writes a trace and makes it findable, and one deletion takes both
away.

*Words.* The FTS5 table `words` holds one document a trace: column `seen` (summary and lines) and column `said`
(speaker and words of each utterance). Its tokenizer is `porter` over `unicode61` without diacritics, with emoji and
other symbols as letters; scripts that write no spaces (Han, kana, Thai …) are parted into single signs by `spaced`,
on both sides, so that a word inside a sentence is found. People are indexed by identity and not by name: the document
says `xentityx7` where the text mentions entity 7 or entity 7 speaks, so a name that is learned or corrected later
reaches old traces at no cost. Postings come out newest first and end where enough are there (`documents`); how often
words occur in a candidate is read from `terms` (`occurrences`). The ranking is the caller's: FTS5's own `bm25()` counts
documents that a question about the past must not know. What becomes a MATCH expression is a stem in quotes, never a
text of a user.

*Vectors.* Each trace has one vector, and one for each of its units of fine search (`search_units`), kept as int8
(scaled by 127 / largest component: recall@10 .99 of float, measured) and, apart, as signs: one bit a component. The
signs of whole traces are in working memory (`columns`), where a filter is a mask and every distance comes back, so that
nothing starves behind a filter and scores can be standardised; those of units are read for candidates (`best_units`),
the int8 vectors for a short list (`cosines`). Ordinary tables: foreign keys reach them, and deletion leaves nothing in
shadow tables. Every vector belongs to the embedder that made it, and only vectors of the asking embedder are compared.
"""

from __future__ import annotations

from edge.memory.index.blocks import Sealer, create_blocks
from edge.memory.index.cells import Cells, create_cells
from edge.memory.index.columns import MISSING, Columns, ColumnsCache, Signs
from edge.memory.index.read import (
    Corpus,
    Filter,
    beside,
    best_units,
    corpus_of,
    cosines,
    documents,
    documents_of,
    nearest_units,
    postings,
    sign_words,
    stored_signs,
    visible,
    word_sets,
)
from edge.memory.index.word_signs import create_word_signs, late_interaction
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
    "MISSING",
    "WHOLE",
    "Cells",
    "Columns",
    "ColumnsCache",
    "Corpus",
    "Filter",
    "Sealer",
    "Signs",
    "add_trace",
    "add_vectors",
    "beside",
    "best_units",
    "corpus_of",
    "cosines",
    "create",
    "create_blocks",
    "create_cells",
    "create_terms",
    "create_word_signs",
    "documents",
    "documents_of",
    "entity_token",
    "late_interaction",
    "nearest_units",
    "postings",
    "quantise",
    "reindex_trace",
    "remove_trace",
    "sign_words",
    "stale_traces",
    "stored_signs",
    "tokens",
    "trace_units",
    "visible",
    "word_sets",
]
