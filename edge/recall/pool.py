"""What of a memory a question is ranked over: all of it by rough scores, a few hundred traces by exact ones.

The rough score of every visible trace comes from columns in working memory: which of the question's words it holds (from the
postings, newest first), the agreement of its vector's signs with the question's, and its prior. The best by it, the best by
words alone and the best by signs alone are the candidates; for them it is read how often each word occurs and how near the
nearest unit is, and for the best of those the int8 vectors. So the cost grows with the memory by a few nanoseconds a trace.

Every statistic is taken over what was visible at the time of the question: how many documents hold a word (estimated from
the newest `POSTINGS` where there are more), the mean and the spread of scores (those of units from a sample).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import index
from edge.recall import ranking
from edge.recall.ranking import Concept, Scores
from edge.types.evidence import Vector

CANDIDATES: Final = 240  # by the rough score
ALONE: Final = 80  # by words alone, and by signs alone
SHORT_LIST: Final = 120  # rescored with int8 vectors: as good as all (measured on 250 questions, 6,223 traces)
POSTINGS: Final = 8_000  # documents of a word that are looked at, the newest ones
_RUN: Final = 8
_FIRST: Final = 1000.0  # more than any score
SAMPLE: Final = 128  # traces from which the mean and the spread of the nearest units is taken


Prior = Callable[[NDArray[np.int64]], Scores]  # places of visible traces (n,) -> (n,)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What is known of some traces, in the order asked."""

    scores: Scores
    cosines: Scores
    units: NDArray[np.int64]
    holds: NDArray[np.bool_]  # (concepts, n)


class Pool:
    """The candidates of one question with their scores."""

    def __init__(
        self,
        connection: apsw.Connection,
        corpus: index.Corpus,
        all_traces: index.Columns,
        concepts: tuple[Concept, ...],
        prior: Prior,
        vector: Vector | None,
        embedder: str | None,
        k: int,
        *,
        first: NDArray[np.bool_] | None = None,
    ) -> None:
        """Gather and score.

        Args:
            connection: a reader, inside `Store.reading`.
            corpus: what is visible.
            all_traces: the columns that it was taken from.
            concepts: the question's words.
            prior: by age and hour, of visible traces by their places.
            vector: of the question; None: words alone.
            embedder: that made it.
            k: how many hits are wanted.
            first: (n,) which come before all others, whatever their scores; None: no such order.
        """
        self.corpus = corpus
        self.concepts = concepts
        self._connection = connection
        self._vector = vector if embedder is not None else None
        self._embedder = embedder
        self._prior = prior
        self._first = first
        terms = list(dict.fromkeys(term for concept in concepts for term in concept.terms))
        lists = [_documents(connection, corpus, term) for term in terms]
        places = {term: found for term, (found, _) in zip(terms, lists, strict=True)}
        shares = {term: share for term, (_, share) in zip(terms, lists, strict=True)}
        self._terms = terms
        self.known = tuple(any(len(places[term]) for term in concept.terms) for concept in concepts)
        self._norm = ranking.length_norm(corpus)
        self._rarity = np.zeros(len(concepts))
        words = np.zeros(len(corpus.traces))
        for row, concept in enumerate(concepts):
            parts = [places[term] for term in concept.terms]
            held = np.unique(np.concatenate(parts)) if len(parts) > 1 else parts[0]
            if len(held):
                documents = len(held) / min(shares[term] for term in concept.terms)
                self._rarity[row] = concept.weight * ranking.rarity(len(corpus.traces), documents)
                words[held] += self._rarity[row] * ranking.saturation(1.0, self._norm[held])
        self._whole = self._rough_whole(all_traces)
        self._rough_words = words
        self.places = self._candidates(words, max(k, 1))
        self._counts = self._occurrences(self.places)
        self.scores, self._cosines, self._units = self._exact(k)

    def rows(self, order: NDArray[np.int64]) -> Rows:
        """What is known of some visible traces; those that are no candidates (neighbours) are read now."""
        at = np.searchsorted(self.places, order)
        at = np.minimum(at, max(len(self.places) - 1, 0))
        there = self.places[at] == order if len(self.places) else np.zeros(len(order), np.bool_)
        scores = np.where(there, self.scores[at] if len(self.places) else 0.0, self._prior(order))
        cosines = np.where(there, self._cosines[at] if len(self.places) else np.nan, np.nan)
        units = np.where(there, self._units[at] if len(self.places) else 0, 0)
        counts = np.zeros((len(self.concepts), len(order)))
        counts[:, there] = self._counts[:, at[there]]
        if not there.all():
            counts[:, ~there] = self._occurrences(order[~there])
        return Rows(scores, cosines, units, counts > 0)

    def best(self, k: int) -> NDArray[np.int64]:
        """The places of the best candidates, best first."""
        return self.places[ranking.best_first(self.scores + self._ahead(self.places), k)]

    def _ahead(self, places: NDArray[np.int64] | slice) -> Scores | float:
        return 0.0 if self._first is None else _FIRST * self._first[places]

    # -- rough --------------------------------------------------------------------------------------------------------

    def _rough_whole(self, all_traces: index.Columns) -> Scores:
        """The cosine that signs suggest of every visible trace; NaN: no vector."""
        if self._vector is None:
            return np.full(len(self.corpus.traces), np.nan)
        bits = index.sign_words(self._vector)
        return ranking.estimated_cosine(all_traces.distances(bits, self.corpus.places), len(self._vector))

    def _candidates(self, words: Scores, k: int) -> NDArray[np.int64]:
        whole = ranking.standardise(self._whole)
        rough = ranking.WORDS * ranking.standardise(words) + (ranking.WHOLE + ranking.BEST) * whole
        rough += self._prior(np.arange(len(rough))) + self._ahead(slice(None))
        chosen = [
            ranking.best_first(rough, max(CANDIDATES, 2 * k)),
            ranking.best_first(words, ALONE) if words.any() else np.zeros(0, np.int64),
            ranking.best_first(whole, ALONE) if whole.any() else np.zeros(0, np.int64),
        ]
        return np.unique(np.concatenate(chosen))

    # -- exact --------------------------------------------------------------------------------------------------------

    def _occurrences(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """How often each concept occurs in some visible traces; (concepts, n)."""
        counts = index.occurrences(self._connection, self._terms, self.corpus.traces[places])
        row = {term: at for at, term in enumerate(self._terms)}
        found = np.zeros((len(self.concepts), len(places)))
        for at, concept in enumerate(self.concepts):
            found[at] = counts[[row[term] for term in concept.terms]].sum(axis=0)
        return found

    def _exact(self, k: int) -> tuple[Scores, Scores, NDArray[np.int64]]:
        places, rough = self.places, self._rough_words
        words = self._rarity @ ranking.saturation(self._counts, self._norm[places])
        # Exact scores are larger than rough ones, which count each word once; so are their mean and spread.
        common = rough[places] > 0
        scale = float(words[common].mean() / rough[places][common].mean()) if common.any() else 1.0
        mean, spread = float(rough.mean()) if len(rough) else 0.0, float(rough.std()) if len(rough) else 0.0
        base = ranking.WORDS * ranking.standardise(words, mean * scale, spread * scale) + self._prior(places)
        cosines, units = np.full(len(places), np.nan), np.zeros(len(places), np.int64)
        if self._vector is None or self._embedder is None or not len(places):
            return base, cosines, units
        dimensions = len(self._vector)
        sample = _sample(len(rough))
        wanted = np.union1d(places, sample)
        bits, nearest = index.best_units(self._connection, self._vector, self._embedder, self.corpus.traces[wanted])
        best = ranking.estimated_cosine(bits, dimensions)
        usual = best[np.searchsorted(wanted, sample)]
        here = np.searchsorted(wanted, places)
        best, units = best[here], nearest[here]
        whole = self._whole[places]
        moments = [_moments(self._whole), _moments(usual)]
        scores = (
            base
            + ranking.WHOLE * ranking.standardise(whole, *moments[0])
            + ranking.BEST * ranking.standardise(best, *moments[1])
        )
        short = np.sort(ranking.best_first(scores + self._ahead(places), max(SHORT_LIST, 2 * k)))
        traces = np.repeat(self.corpus.traces[places[short]], 2)
        which = np.stack([np.zeros(len(short), np.int64), units[short]], axis=1).ravel()
        pairs = index.cosines(self._connection, self._vector, self._embedder, traces, which)
        exact = pairs.reshape(-1, 2).T
        final = np.full(len(places), -np.inf)
        final[short] = (
            base[short]
            + ranking.WHOLE * ranking.standardise(exact[0], *moments[0])
            + ranking.BEST * ranking.standardise(exact[1], *moments[1])
        )
        cosines[short] = exact[1]
        return final, cosines, units


def _documents(connection: apsw.Connection, corpus: index.Corpus, term: str) -> tuple[NDArray[np.int64], float]:
    """The places of the visible documents that hold a term, and of which share of the visible ones they are all."""
    if not len(corpus.traces):
        return np.zeros(0, np.int64), 1.0
    first, last = int(corpus.traces[0]), int(corpus.traces[-1])
    found, complete = index.documents(connection, term, first, last, POSTINGS)
    places, there = ranking.places_of(corpus, found)
    if complete:
        return places[there], 1.0
    looked_at = len(corpus.traces) - int(np.searchsorted(corpus.traces, found[-1]))
    return places[there], max(looked_at, 1) / len(corpus.traces)


def _sample(count: int) -> NDArray[np.int64]:
    """Places spread evenly over all, in runs of neighbours, which lie on the same pages of the file."""
    if count <= SAMPLE:
        return np.arange(count)
    heads = np.linspace(0, count - _RUN, SAMPLE // _RUN).astype(np.int64)
    return np.unique(heads[:, None] + np.arange(_RUN))


def _moments(values: Scores) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    return (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
