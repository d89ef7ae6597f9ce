"""Which traces answer a question best: words, vectors and recency, standardised over what was visible and added. Pure.

Every statistic (how many documents hold a word, their mean length, the mean and spread of a score) is taken over the traces
that the question may know, never over later ones.
"""

from __future__ import annotations

from collections.abc import Callable
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
# Words as they are meant, one by one (late interaction), and what a short moment borrows from those beside it: as if it had so
# many more words of theirs (Dirichlet smoothing: Zhai and Lafferty 2004). Both by questions about made-up lives
# (`python -m tools.bench.weights`: in the first five 78.5 % without both, 83.7 % with these; more of the first gains less than
# a standard error, so the least that is as good was taken).
LATE = 1.0
BORROWED = 8.0
GRAPH = 0.0  # what the graph says
NEIGHBOURS_OF = 10  # the neighbours of the best so many are brought up, behind them
NEIGHBOUR_GAP_S = 120.0


@dataclass(frozen=True, slots=True)
class Concept:
    """One thing that is asked for, under any of its terms."""

    weight: float
    terms: tuple[str, ...]  # as in the index


def length_norm(lengths: NDArray[np.float32], mean: float) -> NDArray[np.float32]:
    """What the length of documents takes from a word's weight; (n,).

    Args:
        lengths: (n,) words.
        mean: of all that are visible.
    """
    return np.asarray(K1 * (1 - B + B / mean * lengths), np.float32)


def rarity(visible: int, documents: float) -> float:
    """The weight of a word by the number of documents that hold it."""
    return float(np.log1p(max(visible - documents + 0.5, 0.5) / (documents + 0.5)))


def saturation(counts: NDArray[np.float32], norm: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much occurring so often says, 0..K1 + 1; (n,)."""
    return np.asarray(counts * (K1 + 1) / (counts + norm), np.float32)


def places_of(corpus: index.Corpus, traces: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where traces stand in the corpus, and which of them are in it."""
    if not len(corpus.traces):
        return np.zeros(len(traces), np.int64), np.zeros(len(traces), np.bool_)
    places = np.minimum(np.searchsorted(corpus.traces, traces), len(corpus.traces) - 1).astype(np.int64)
    return places, corpus.traces[places] == traces


def standardise(values: Scores, mean: float | None = None, spread: float | None = None) -> Scores:
    """Values as z-scores; NaN (no vector) becomes 0."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.zeros(len(values))
    mean = float(known.mean()) if mean is None else mean
    spread = float(known.std()) if spread is None else spread
    if spread <= 1e-9:
        return np.zeros(len(values))
    scores = (values - mean) / spread
    return np.asarray(scores if len(known) == len(values) else np.nan_to_num(scores))


def recency(ends: NDArray[np.float64], now: float) -> Scores:
    """The logarithm of the prior odds by age; (n,), 0 for what has just ended.

    Args:
        ends: (n,) UTC POSIX seconds.
        now: UTC POSIX seconds.
    """
    return -DECAY * np.log1p(np.maximum(now - ends, 0.0) / AGE_UNIT_S)


def borrowed(lengths: NDArray[np.float32]) -> NDArray[np.float64]:
    """The share of a score that comes from the moments beside one; (n,), of documents of so many words."""
    return np.asarray(BORROWED / (lengths + BORROWED), np.float64)


def cosines_of_signs(dimensions: int) -> Scores:
    """The cosine that each number of differing signs suggests (Goemans and Williamson 1995; Charikar 2002); (dimensions + 1,)."""
    return np.asarray(np.cos(np.pi * np.arange(dimensions + 1) / dimensions))


def best_first(scores: Scores, k: int) -> NDArray[np.int64]:
    """The places of the k best, best first; of equals, the later place (the newer trace) first."""
    count = len(scores)
    places = np.arange(count)
    if k < count // 4:  # sort what can be among them, and no more
        places = np.flatnonzero(scores >= np.partition(scores, count - k)[count - k])
    order = np.lexsort((-places, -scores[places]))
    return places[order[:k]].astype(np.int64)


def with_neighbours(order: NDArray[np.int64], beside: Callable[[int, int], int | None], k: int) -> NDArray[np.int64]:
    """Bring the neighbours in time of the best ten up to rank eleven and on: what is asked for is often one clip on.

    Args:
        order: places in the corpus, best first.
        beside: the place of the visible neighbour of a place, before (-1) or after (1) it on the same camera.
        k: how many to return.
    """
    if len(order) <= NEIGHBOURS_OF:
        return order[:k]
    head = order[:NEIGHBOURS_OF].tolist()
    chosen = dict.fromkeys(head)
    for place in head:
        for step in (-1, 1):
            near = beside(place, step)
            if near is not None:
                chosen.setdefault(near)
    chosen.update(dict.fromkeys(order.tolist()))
    return np.array(list(chosen)[:k], np.int64)
