"""Which traces answer a question best: words, vectors and recency, standardised over what was visible and added. Pure.

Every statistic (how many documents hold a word, their mean length, the mean and spread of a score) is taken over the traces
that the question may know, never over later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge.memory import index

Scores = NDArray[np.float64]

# BM25 with the customary constants (Robertson and Zaragoza 2009, section 3.4).
K1 = 1.2
B = 0.75
# Words and vectors weigh the same; of the vectors, the whole trace and its best unit.
WORDS = 1.0
WHOLE = 0.5
BEST = 0.5
# The odds that a memory is needed fall as a power of its age (Anderson and Schooler 1991); 0.5 is the decay of ACT-R.
DECAY = 0.5
AGE_UNIT_S = 60.0
HOURS = 1.0  # for a preferred time of day
NEIGHBOURS_OF = 10  # the neighbours of the best so many are brought up, behind them
NEIGHBOUR_GAP_S = 120.0


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing that is asked for, under any of its terms."""

    weight: float
    terms: tuple[str, ...]  # as in the index


def bm25(corpus: index.Corpus, postings: Sequence[index.Postings], concepts: Sequence[Concept]) -> Scores:
    """The BM25 score of every visible document; (n,), 0 where nothing occurs.

    Args:
        corpus: what is visible.
        postings: of all terms of all concepts.
        concepts: the query; the occurrences of a concept's terms count as one word.
    """
    scores = np.zeros(len(corpus.traces))
    if not len(scores):
        return scores
    by_term = {found.term: found for found in postings}
    norm = K1 * (1 - B + B * corpus.lengths / max(float(corpus.lengths.mean()), 1.0))
    for concept in concepts:
        counts = occurrences(corpus, [by_term[term] for term in concept.terms if term in by_term])
        documents = np.count_nonzero(counts)
        if documents:
            rarity = np.log1p((len(scores) - documents + 0.5) / (documents + 0.5))
            scores += concept.weight * rarity * counts * (K1 + 1) / (counts + norm)
    return scores


def occurrences(corpus: index.Corpus, postings: Sequence[index.Postings]) -> Scores:
    """How often any of the terms occurs in every visible document; (n,)."""
    counts = np.zeros(len(corpus.traces))
    for found in postings:
        places, visible = places_of(corpus, found.traces)
        np.add.at(counts, places[visible], found.counts[visible])
    return counts


def places_of(corpus: index.Corpus, traces: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where traces stand in the corpus, and which of them are in it."""
    if not len(corpus.traces):
        return np.zeros(len(traces), np.int64), np.zeros(len(traces), np.bool_)
    places = np.minimum(np.searchsorted(corpus.traces, traces), len(corpus.traces) - 1).astype(np.int64)
    return places, corpus.traces[places] == traces


def standardise(values: Scores, mean: float | None = None, spread: float | None = None) -> Scores:
    """Values as z-scores; NaN (no vector) becomes 0."""
    if not len(values) or np.isnan(values).all():
        return np.zeros(len(values))
    mean = float(np.nanmean(values)) if mean is None else mean
    spread = float(np.nanstd(values)) if spread is None else spread
    return np.nan_to_num((values - mean) / spread) if spread > 1e-9 else np.zeros(len(values))


def recency(corpus: index.Corpus, now: float) -> Scores:
    """The logarithm of the prior odds by age; (n,), 0 for what has just ended."""
    return -DECAY * np.log1p(np.maximum(now - corpus.ends, 0.0) / AGE_UNIT_S)


def estimated_cosine(distances: Scores, dimensions: int) -> Scores:
    """The cosine that signs suggest: their agreement measures the angle (Goemans and Williamson 1995; Charikar 2002)."""
    return np.asarray(np.cos(np.pi * distances / dimensions))


def best_first(scores: Scores, k: int) -> NDArray[np.int64]:
    """The places of the k best, best first; of equals, the later place (the newer trace) first."""
    places = np.arange(len(scores))
    order = np.lexsort((-places, -scores))
    return order[:k].astype(np.int64)


def with_neighbours(order: NDArray[np.int64], corpus: index.Corpus, k: int) -> NDArray[np.int64]:
    """Bring the neighbours in time of the best ten up to rank eleven and on: what is asked for is often one clip on.

    Args:
        order: places in the corpus, best first.
        corpus: what is visible.
        k: how many to return.
    """
    if len(order) <= NEIGHBOURS_OF:
        return order[:k]
    in_time = np.lexsort((corpus.starts, corpus.cameras))
    rank = np.empty(len(in_time), np.int64)
    rank[in_time] = np.arange(len(in_time))
    head = order[:NEIGHBOURS_OF].tolist()
    chosen = dict.fromkeys(head)
    for place in head:
        for step in (-1, 1):
            other = rank[place] + step
            if not 0 <= other < len(in_time):
                continue
            near = int(in_time[other])
            gap = max(corpus.starts[near] - corpus.ends[place], corpus.starts[place] - corpus.ends[near])
            if corpus.cameras[near] == corpus.cameras[place] and gap <= NEIGHBOUR_GAP_S:
                chosen.setdefault(near)
    chosen.update(dict.fromkeys(order.tolist()))
    return np.array(list(chosen)[:k], np.int64)
