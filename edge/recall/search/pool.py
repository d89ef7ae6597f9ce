"""What of a memory a question is ranked over: all of it by rough scores, a few hundred traces by exact ones.

The rough score of a visible trace is its exact score by words (from the postings of the index), the agreement of its vector's
signs with the question's, and its prior. It comes from arrays in working memory at a few nanoseconds a trace. The best by it,
the best by words alone and the best by signs alone are the candidates; of these the signs of all units are read, one row for
each, and of the best the int8 vectors of the whole trace and of its nearest unit.

Every statistic is taken over what was visible at the time of the question: how many documents hold a word, their mean length,
the mean and the spread of scores (of vectors from an even sample where there are many).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import index
from edge.recall.search import ranking
from edge.recall.search.ranking import Concept, Scores
from edge.types.evidence import Vector

CANDIDATES: Final = 240  # by the rough score
ALONE: Final = 40  # by words alone, and by signs alone
SHORT_LIST: Final = 120  # of the candidates whose int8 vectors are read
SAMPLE: Final = 128  # traces from which the mean and the spread of the nearest units are taken, at least
_SAMPLED: Final = 8_192  # traces from which those of whole traces are taken, at least
_STEP: Final = 64  # of a larger memory the prior is taken at every so many traces: half an hour
_MANY: Final = 16_384  # traces of which every one is looked at for its own sake
_KEPT: Final = 4_096  # traces of samples whose signs are in working memory
_FIRST: Final = 1000.0  # more than any score


Prior = Callable[[NDArray[np.int64]], Scores]  # places of visible traces (n,) -> (n,)
Held = tuple[NDArray[np.int64], NDArray[np.float32]]  # places of traces, rising, and how often each holds a concept


class Near(Protocol):
    """What the graph says of a question (`edge.recall.graph.Nearness`)."""

    def nominated(self) -> NDArray[np.int64]:
        """Traces (ids, rising) that are near to who and what is asked about."""

    def scores(self, traces: NDArray[np.int64]) -> NDArray[np.float64]:
        """How near each of some traces is; (n,)."""


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
        near: Near | None = None,
        near_weight: float = 0.0,
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
            near: what the graph says; None: it is not asked.
            near_weight: of its score.
        """
        self.corpus = corpus
        self.concepts = concepts
        self._connection = connection
        self._all = all_traces
        self._asked = (vector, embedder) if vector is not None and embedder is not None else None
        self._prior = prior
        self._first = first
        self._near, self._near_weight = near, near_weight
        self._count = len(corpus.traces)
        self._held = self._holders(concepts)
        self.known = tuple(len(places) > 0 for places, _ in self._held)
        self._words = self._by_words()
        self._words_spread = _spread(self._words)
        self._whole, self._whole_spread = self._by_signs()
        self.places = self._candidates(max(k, 1))
        self.scores, self._cosines, self._units = self._exact(k)

    def rows(self, order: NDArray[np.int64]) -> Rows:
        """What is known of some visible traces; of those that are no candidates (neighbours) no vectors are read."""
        at = np.searchsorted(self.places, order)
        at = np.minimum(at, max(len(self.places) - 1, 0))
        there = self.places[at] == order if len(self.places) else np.zeros(len(order), np.bool_)
        scores = np.where(there, self.scores[at] if len(self.places) else 0.0, self._prior(order))
        cosines = np.where(there, self._cosines[at] if len(self.places) else np.nan, np.nan)
        units = np.where(there, self._units[at] if len(self.places) else 0, 0)
        return Rows(scores, cosines, units, self.holds(order))

    def holds(self, order: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which concepts occur in some visible traces; (concepts, n)."""
        found = np.zeros((len(self._held), len(order)), np.bool_)
        for row, (places, _) in enumerate(self._held):
            if len(places):
                at = np.minimum(np.searchsorted(places, order), len(places) - 1)
                found[row] = places[at] == order
        return found

    def best(self, k: int) -> NDArray[np.int64]:
        """The places of the best candidates, best first."""
        return self.places[ranking.best_first(self.scores + self._ahead(self.places), k)]

    def _ahead(self, places: NDArray[np.int64]) -> Scores:
        if self._first is None:
            return np.zeros(len(places))
        return np.where(self._first[places], _FIRST, 0.0)

    # -- words --------------------------------------------------------------------------------------------------------

    def _holders(self, concepts: Sequence[Concept]) -> list[Held]:
        rows = self.corpus.rows
        among: NDArray[np.int32] | None = None
        if isinstance(rows, slice):
            begin, end = rows.start, rows.stop
        else:
            begin, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
            among = np.full(end - begin, -1, np.int32)
            among[rows - begin] = np.arange(len(rows), dtype=np.int32)
        found = {}
        for term in dict.fromkeys(term for concept in concepts for term in concept.terms):
            there, counts = index.postings(self._connection, self._all, term, begin, end)
            places = there - begin
            if among is not None:
                visible = among[places] >= 0
                places, counts = among[places[visible]].astype(np.int64), counts[visible]
            found[term] = (places, counts.astype(np.float32))
        return [_together([found[term] for term in concept.terms]) for concept in concepts]

    def _by_words(self) -> NDArray[np.float32]:
        """BM25 of every visible trace."""
        scores = np.zeros(self._count, np.float32)
        lengths = self.corpus.lengths
        mean = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
        for concept, (places, often) in zip(self.concepts, self._held, strict=True):
            weight = concept.weight * ranking.rarity(self._count, len(places))
            norm = ranking.length_norm(lengths[places], mean)
            scores[places] += np.float32(weight) * ranking.saturation(often, norm)
        return scores

    # -- signs --------------------------------------------------------------------------------------------------------

    def _by_signs(self) -> tuple[NDArray[np.float32], tuple[float, float]]:
        """The cosine that signs suggest of every visible trace, standardised (0: no vector), and the mean and spread."""
        if self._asked is None:
            return np.zeros(self._count, np.float32), (0.0, 0.0)
        vector, _ = self._asked
        differ = self._all.distances(index.sign_words(vector), self.corpus.rows)
        cosines = ranking.cosines_of_signs(len(vector))
        sample = differ[:: max(self._count // _SAMPLED, 1)]
        sample = sample[sample != index.MISSING]
        mean, spread = _moments(cosines[sample])
        table = np.zeros(len(cosines) + 1, np.float32)  # the last: no vector
        if spread > 1e-9:
            table[:-1] = (cosines - mean) / spread
        return np.take(table, differ, mode="clip"), (mean, spread)

    # -- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, k: int) -> NDArray[np.int64]:
        rough = (ranking.WHOLE + ranking.BEST) * self._whole
        mean, spread = self._words_spread
        if spread > 1e-9:
            rough += (self._words - np.float32(mean)) * np.float32(ranking.WORDS / spread)
        rough += self._rough_prior()
        if self._first is not None:
            rough[self._first] += np.float32(_FIRST)
        chosen = [_top(rough, max(CANDIDATES, 2 * k))]
        if spread > 1e-9:
            chosen.append(_top(self._words, ALONE))
        if self._whole_spread[1] > 1e-9:
            chosen.append(_top(self._whole, ALONE))
        if self._near is not None:
            found, there = ranking.places_of(self.corpus, self._near.nominated())
            chosen.append(found[there])
        return np.unique(np.concatenate(chosen))

    def _rough_prior(self) -> NDArray[np.float32]:
        """The prior of every visible trace, of many that of the nearest of a few."""
        if self._count <= _MANY:
            return self._prior(np.arange(self._count)).astype(np.float32)
        few = self._prior(np.arange(_STEP // 2, self._count + _STEP // 2, _STEP).clip(max=self._count - 1))
        prior = np.repeat(few.astype(np.float32), _STEP)[: self._count]
        prior[-_MANY:] = self._prior(np.arange(self._count - _MANY, self._count))  # it changes most among the latest
        return prior

    # -- exact --------------------------------------------------------------------------------------------------------

    def _exact(self, k: int) -> tuple[Scores, Scores, NDArray[np.int64]]:
        places = self.places
        words = self._words[places].astype(np.float64)
        scores = ranking.WORDS * ranking.standardise(words, *self._words_spread) + self._prior(places)
        if self._near is not None:
            scores += self._near_weight * ranking.standardise(self._near.scores(self.corpus.traces[places]))
        if self._asked is None or not len(places):
            return scores, np.full(len(places), np.nan), np.zeros(len(places), np.int64)
        vector, embedder = self._asked
        cosines = np.append(ranking.cosines_of_signs(len(vector)), np.nan)
        sample = self.corpus.traces[self._sample()]
        usual, _ = index.best_units(vector, self._kept(embedder, sample), sample)
        moments = _moments(cosines[np.nan_to_num(usual, nan=len(vector) + 1).astype(np.int64)])
        # By signs first, then the best of them by their int8 vectors.
        traces = self.corpus.traces[places]
        differ, units = index.best_units(
            vector, index.stored_signs(self._connection, embedder, traces.tolist()), traces
        )
        best = cosines[np.nan_to_num(differ, nan=len(vector) + 1).astype(np.int64)]
        nearly = scores + ranking.WHOLE * self._whole[places] + ranking.BEST * ranking.standardise(best, *moments)
        short = np.sort(ranking.best_first(nearly + self._ahead(places), max(SHORT_LIST, 2 * k)))
        which = np.stack([np.zeros(len(short), np.int64), units[short]], axis=1).ravel()
        exact = index.cosines(self._connection, vector, embedder, np.repeat(traces[short], 2), which).reshape(-1, 2).T
        final, known = np.full(len(places), -np.inf), np.full(len(places), np.nan)
        final[short] = (
            scores[short]
            + ranking.WHOLE * ranking.standardise(exact[0], *self._whole_spread)
            + ranking.BEST * ranking.standardise(exact[1], *moments)
        )
        known[short] = exact[1]
        return final, known, units

    def _kept(self, embedder: str, traces: NDArray[np.int64]) -> index.Signs:
        """The signs of a sample, which stay in working memory."""
        known = self._all.kept
        missing = [trace for trace in traces.tolist() if trace not in known]
        if missing:
            stored = index.stored_signs(self._connection, embedder, missing)
            if len(known) + len(stored) > _KEPT:
                known.clear()
                return index.stored_signs(self._connection, embedder, traces.tolist())
            known.update(stored)
        return known

    def _sample(self) -> NDArray[np.int64]:
        """Places spread evenly over all: the same ones as long as the memory does not double."""
        step = 1
        while self._count // step >= 2 * SAMPLE:
            step *= 2
        return np.arange(0, self._count, step)


def _together(parts: Sequence[Held]) -> Held:
    """One concept under several terms."""
    parts = [part for part in parts if len(part[0])] or list(parts[:1])
    if len(parts) == 1:
        return parts[0]
    places, back = np.unique(np.concatenate([places for places, _ in parts]), return_inverse=True)
    often = np.bincount(back, np.concatenate([often for _, often in parts]), len(places))
    return places, often.astype(np.float32)


def _top(values: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The places of the k largest, in no order; of equals at the end any."""
    count = len(values)
    if count <= _MANY:
        return np.argpartition(values, count - k)[count - k :] if k < count else np.arange(count)
    # A sample says from which value on there are a few times as many as wanted; the rest is not sorted.
    sample = np.sort(values[:: count // _MANY])[::-1]
    more = 3.0
    while True:
        at = int(more * k * len(sample) / count) + 4
        if at >= len(sample):
            return np.argpartition(values, count - k)[count - k :]
        among = np.flatnonzero(values >= sample[at])
        if len(among) >= k:
            return among[np.argpartition(values[among], len(among) - k)[len(among) - k :]] if len(among) > k else among
        more *= 4


def _spread(values: NDArray[np.float32]) -> tuple[float, float]:
    """Mean and spread of all of many values."""
    if not len(values):
        return 0.0, 0.0
    mean = float(values.mean(dtype=np.float64))
    square = float(np.dot(values, values)) / len(values)
    return mean, max(square - mean * mean, 0.0) ** 0.5


def _moments(values: Scores) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    return (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
