"""What of a memory a question is ranked over: all of it by rough scores, a few hundred traces by exact ones.

The rough score of a visible trace is its exact score by words (from the postings of the index), the agreement of its vector's
signs with the question's, and its prior. It comes from arrays in working memory at a few nanoseconds a trace. Of a memory of
more than `LARGE` traces not all get one: those that hold a word of the question with a good score, those of the cells (groups of
alike vectors, `edge.memory.index`) whose centre and age promise most, and those that are in no cell yet. The best by the rough
score, the best by words alone and the best by signs alone are the candidates; of these the signs of all units are read, one row for
each, and of the best the int8 vectors of the whole trace and of its nearest unit.

Every statistic is taken over what was visible at the time of the question: how many documents hold a word, their mean length,
the mean and the spread of scores (of vectors from an even sample where there are many).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import index
from edge.recall.search import ranking
from edge.recall.search.ranking import Concept, Scores
from edge.types.evidence import Vector

CANDIDATES: Final = 200  # by the rough score; eight times as many as are wanted, at least
ALONE: Final = 20  # by words alone, and by signs alone
# Of the candidates whose int8 vectors and words are read; four times as many as are wanted, at least.
SHORT_LIST: Final = 120
FINAL: Final = 24  # of these, all of whose units are read
SAMPLE: Final = 128  # traces from which the mean and the spread of the nearest units are taken, at least
_SAMPLED: Final = 4_096  # traces from which those of whole traces are taken, at least
_STEP: Final = 64  # of a larger memory the prior is taken at every so many traces: half an hour
LARGE: Final = 131_072  # traces from which on not all are compared: a few months of half minutes of waking days
PROMISING: Final = 16_384  # of these, so many by cells and age,
_ALIKE: Final = 8_192  # so many by cells alone,
_TELLING: Final = 4_096  # and so many by words and age
_MANY: Final = 16_384  # traces of which every one is looked at for its own sake
_REACH: Final = 3  # places to each side among which the moment next to one is: other cameras watch, too
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
class Late:
    """The words of a question as they are meant in it."""

    states: NDArray[np.float32]  # (m, d), L2-normalised
    weights: NDArray[np.float64]  # (m,) how much each tells


@dataclass(frozen=True, slots=True, eq=False)
class SignScale:
    """What so many differing signs say of a cosine, among what is visible."""

    scores: NDArray[np.float32]  # (dimensions + 2,) standardised; the last: no vector
    mean: float  # of the cosines that signs suggest
    spread: float

    def of(self, differ: NDArray[np.uint16]) -> NDArray[np.float32]:
        """Standardised scores of distances, in their shape."""
        return np.take(self.scores, differ, mode="clip")


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
        late: Late | None = None,
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
            late: the question's words as they are meant; None: they are not compared one by one.
        """
        self.corpus = corpus
        self.concepts = concepts
        self._connection = connection
        self._all = all_traces
        self._asked = (vector, embedder) if vector is not None and embedder is not None else None
        self._prior = prior
        self._first = first
        self._near, self._near_weight = near, near_weight
        self._late = late
        self._count = len(corpus.traces)
        self._few: NDArray[np.float32] | None = None  # the prior of every so many traces
        self._held = self._holding(concepts)
        self.known = tuple(len(places) > 0 for places, _ in self._held)
        self._words, self._holders = self._by_words()
        self._words_spread = _spread(self._words[self._holders], self._count)
        self._bits = index.sign_words(vector) if self._asked is not None and vector is not None else None
        self._scale = self._sign_scale()
        # Mean and spread with which cosines are standardised: of whole traces, and of their nearest units.
        self.moments = ((self._scale.mean, self._scale.spread), (0.0, 0.0))
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

    def _holding(self, concepts: Sequence[Concept]) -> list[Held]:
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

    def _by_words(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """BM25 of every visible trace, and the places of those that hold a word."""
        scores, holding = np.zeros(self._count, np.float32), np.zeros(self._count, np.bool_)
        lengths = self.corpus.lengths
        mean = max(float(lengths.mean()), 1.0) if len(lengths) else 1.0
        for concept, (places, often) in zip(self.concepts, self._held, strict=True):
            weight = concept.weight * ranking.rarity(self._count, len(places))
            norm = ranking.length_norm(lengths[places], mean)
            scores[places] += np.float32(weight) * ranking.saturation(often, norm)
            holding[places] = True
        return scores, np.flatnonzero(holding)

    # -- signs --------------------------------------------------------------------------------------------------------

    def _rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where visible traces stand in the columns."""
        rows = self.corpus.rows
        return places + rows.start if isinstance(rows, slice) else rows[places]

    def _sign_scale(self) -> SignScale:
        """What the number of differing signs says, by an even sample of what is visible."""
        if self._bits is None or self._asked is None:
            return SignScale(np.zeros(2, np.float32), 0.0, 0.0)
        cosines = ranking.cosines_of_signs(len(self._asked[0]))
        differ = self._distances(np.arange(0, self._count, max(self._count // _SAMPLED, 1)))
        mean, spread = _moments(cosines[differ[differ != index.MISSING]])
        scores = np.zeros(len(cosines) + 1, np.float32)
        if spread > 1e-9:
            scores[:-1] = (cosines - mean) / spread
        return SignScale(scores, mean, spread)

    def _distances(self, places: NDArray[np.int64]) -> NDArray[np.uint16]:
        if self._bits is None:
            return np.full(len(places), index.MISSING, np.uint16)
        return self._all.distances(self._bits, self._rows(places))

    # -- candidates ---------------------------------------------------------------------------------------------------

    def _candidates(self, k: int) -> NDArray[np.int64]:
        chosen = []
        if self._near is not None:
            found, there = ranking.places_of(self.corpus, self._near.nominated())
            chosen.append(found[there])
        if self._words_spread[1] > 1e-9:
            chosen.append(self._holders[_top(self._words[self._holders], ALONE)])
        among = self._among()
        if among is None:
            differ = None if self._bits is None else self._all.distances(self._bits, self.corpus.rows)
            words, prior, ahead = self._roughly_borrowed(None), self._rough_prior(), self._first
        else:
            differ = self._distances(among)
            words, prior = self._roughly_borrowed(among), self._rough_prior(among)
            ahead = None if self._first is None else self._first[among]
        rough = self._with_words(prior, words)
        if ahead is not None:
            rough[ahead] += np.float32(_FIRST)
        best = []
        if differ is not None:
            whole = self._scale.of(differ)
            rough += np.float32(ranking.WHOLE + ranking.BEST) * whole
            if self._scale.spread > 1e-9:
                best.append(_top(whole, ALONE))
        best.append(_top(rough, max(CANDIDATES, 8 * k)))
        chosen += best if among is None else [among[places] for places in best]
        return np.unique(np.concatenate(chosen))

    def _roughly_borrowed(self, places: NDArray[np.int64] | None) -> NDArray[np.float32]:
        """Scores by words of some visible traces or of all, with what they borrow from those stored beside them."""
        if places is None:
            own = self._words
            beside = np.convolve(own, np.array([0.5, 0.0, 0.5], np.float32), "same") if len(own) > 2 else own
        else:
            own = self._words[places]
            beside = self._words[np.maximum(places - 1, 0)] + self._words[np.minimum(places + 1, self._count - 1)]
            beside *= np.float32(0.5)
        share = ranking.borrowed(self.corpus.lengths if places is None else self.corpus.lengths[places])
        return own + (beside - own) * share.astype(np.float32)

    def _with_words(self, prior: NDArray[np.float32], words: NDArray[np.float32]) -> NDArray[np.float32]:
        mean, spread = self._words_spread
        if spread > 1e-9:
            prior += (words - np.float32(mean)) * np.float32(ranking.WORDS / spread)
        return prior

    def _among(self) -> NDArray[np.int64] | None:
        """Of a large memory, the places of the traces that are worth a rough score; None: all of them."""
        rows, cells = self.corpus.rows, self._all.cells
        if self._count <= LARGE or cells is None or self._bits is None or not isinstance(rows, slice):
            return None
        if self._first is not None and 0 < np.count_nonzero(self._first) < self._count:
            return None  # what lies in the span comes first, and the cells do not know it
        worth = np.zeros(self._count, np.bool_)
        for begin, end in cells.outside(rows.start, rows.stop):
            worth[begin - rows.start : end - rows.start] = True
        holders = self._holders
        if len(holders) > _TELLING:
            holders = holders[_top(self._with_words(self._rough_prior(holders), self._words[holders]), _TELLING)]
        worth[holders] = True
        alike = self._scale.of(cells.differing(self._bits)) * np.float32(ranking.WHOLE + ranking.BEST)
        age = self._rough_prior((cells.lasts - rows.start).clip(0, self._count - 1))
        for promise, count in ((alike + age, PROMISING), (alike, _ALIKE)):
            order = np.argsort(-promise)
            sizes = np.diff(cells.begins)[order]
            members = cells.rows(order[: int(np.searchsorted(np.cumsum(sizes), count)) + 1])
            worth[members[(members >= rows.start) & (members < rows.stop)] - rows.start] = True
        return np.flatnonzero(worth)

    def _rough_prior(self, places: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        """The prior of some visible traces or of all, of many that of the nearest of a few."""
        if self._count <= _MANY:
            return self._prior(np.arange(self._count) if places is None else places).astype(np.float32)
        if self._few is None:
            few = np.arange(_STEP // 2, self._count + _STEP // 2, _STEP).clip(max=self._count - 1)
            self._few = self._prior(few).astype(np.float32)
        latest = self._count - _MANY  # it changes most among the latest
        if places is None:
            prior = np.repeat(self._few, _STEP)[: self._count]
            prior[latest:] = self._prior(np.arange(latest, self._count))
            return prior
        prior = self._few[places // _STEP]
        late = places >= latest
        prior[late] = self._prior(places[late])
        return prior

    # -- exact --------------------------------------------------------------------------------------------------------

    def _exact(self, k: int) -> tuple[Scores, Scores, NDArray[np.int64]]:
        places = self.places
        beside = self.beside(places)
        words = self.with_borrowed(places, self._by_words_of(places), self._by_words_of(beside), beside)
        scores = ranking.WORDS * words + self._prior(places)
        if self._near is not None:
            scores += self._near_weight * ranking.standardise(self._near.scores(self.corpus.traces[places]))
        if self._asked is None or not len(places):
            return scores, np.full(len(places), np.nan), np.zeros(len(places), np.int64)
        vector, embedder = self._asked
        cosines = np.append(ranking.cosines_of_signs(len(vector)), np.nan)
        sample = self.corpus.traces[self._sample()]
        usual, _ = index.best_units(vector, self._kept(embedder, sample), sample)
        moments = _moments(cosines[np.nan_to_num(usual, nan=len(vector) + 1).astype(np.int64)])
        self.moments = (self.moments[0], moments)
        # By signs first, then the best of them by their int8 vectors.
        traces = self.corpus.traces[places]
        differ, units = index.best_units(
            vector, index.stored_signs(self._connection, embedder, traces.tolist()), traces
        )
        best = cosines[np.nan_to_num(differ, nan=len(vector) + 1).astype(np.int64)]
        lent = self._scale.of(self._distances(beside.ravel())).reshape(beside.shape)
        whole = self._scale.of(self._distances(places)).astype(np.float64)
        nearly = (
            scores
            + ranking.WHOLE * self.with_borrowed(places, whole, lent, beside)
            + ranking.BEST * ranking.standardise(best, *moments)
        )
        order = ranking.best_first(nearly + self._ahead(places), max(SHORT_LIST, 4 * k))
        short = np.sort(order)
        which = np.stack([np.zeros(len(short), np.int64), units[short]], axis=1).ravel()
        exact = index.cosines(self._connection, vector, embedder, np.repeat(traces[short], 2), which).reshape(-1, 2).T
        final, known = np.full(len(places), -np.inf), np.full(len(places), np.nan)
        final[short] = (
            scores[short]
            + ranking.WHOLE
            * self.with_borrowed(
                places[short], ranking.standardise(exact[0], *self.moments[0]), lent[:, short], beside[:, short]
            )
            + ranking.BEST * ranking.standardise(exact[1], *moments)
        )
        known[short] = exact[1]
        if self._late is not None:
            late = index.late_interaction(
                self._connection, embedder, self._late.states, self._late.weights, traces[short]
            )
            # Over the same ones however many are wanted, so that more results begin with the same ones.
            scale = _moments(late[np.searchsorted(short, order[:SHORT_LIST])])
            final[short] += ranking.LATE * ranking.standardise(late, *scale)
        # The unit that is nearest by signs may not be so by its vector: of the best, all units are read.
        top = short[ranking.best_first(final[short] + self._ahead(places[short]), max(FINAL, k))]
        best, units[top] = index.nearest_units(self._connection, vector, embedder, traces[top])
        final[top] += ranking.BEST * (ranking.standardise(best, *moments) - ranking.standardise(known[top], *moments))
        known[top] = best
        # Nor is what is beside them as near as signs say.
        near, own = beside[:, top], np.zeros(len(top))
        read = index.cosines(
            self._connection, vector, embedder, self.corpus.traces[near.ravel()], np.zeros(near.size, np.int64)
        )
        change = ranking.standardise(read, *self.moments[0]).reshape(near.shape) - lent[:, top]
        final[top] += ranking.WHOLE * self.with_borrowed(places[top], own, change, near)
        return final, known, units

    def _by_words_of(self, places: NDArray[np.int64]) -> Scores:
        """Standardised scores by words, in the shape of the places."""
        return ranking.standardise(self._words[places].astype(np.float64).ravel(), *self._words_spread).reshape(
            places.shape
        )

    def beside(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The visible moments before and after some on the same camera, by their places, the moment itself: none; (2, n)."""
        corpus, found = self.corpus, np.stack([places, places])
        for row, step in enumerate((-1, 1)):
            for reach in range(1, _REACH + 1):
                at = np.clip(places + step * reach, 0, self._count - 1)
                gap = np.maximum(corpus.starts[at] - corpus.ends[places], corpus.starts[places] - corpus.ends[at])
                fits = (corpus.cameras[at] == corpus.cameras[places]) & (gap <= ranking.NEIGHBOUR_GAP_S)
                found[row] = np.where(fits & (found[row] == places), at, found[row])
        return found

    def with_borrowed(
        self, places: NDArray[np.int64], own: Scores, lent: NDArray[np.floating[Any]], beside: NDArray[np.int64]
    ) -> Scores:
        """Scores of moments with what short ones borrow from those beside them.

        Args:
            places: of the moments, (n,).
            own: scores, (n,).
            lent: scores of those beside them, (2, n).
            beside: their places, of `_beside`.
        """
        there = beside != places
        many = there.sum(axis=0)
        mean = np.where(there, lent, 0.0).sum(axis=0) / np.maximum(many, 1)
        share = np.where(many > 0, ranking.borrowed(self.corpus.lengths[places]), 0.0)
        return np.asarray((1.0 - share) * own + share * mean)

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


def _spread(values: NDArray[np.float32], count: int) -> tuple[float, float]:
    """Mean and spread of so many values of which all but some are 0."""
    if not len(values):
        return 0.0, 0.0
    mean = float(values.sum(dtype=np.float64)) / count
    square = float(np.dot(values, values)) / count
    return mean, max(square - mean * mean, 0.0) ** 0.5


def _moments(values: Scores) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    return (float(known.mean()), float(known.std())) if len(known) else (0.0, 0.0)
