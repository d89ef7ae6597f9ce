"""Finding traces: the question's concepts and its vector against the index, under a filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import Store, index
from edge.recall import ranking
from edge.recall.question import Question, rarity
from edge.recall.ranking import Concept, Scores
from edge.recall.when import prefer_hours
from edge.types.evidence import Vector
from edge.types.vocabulary import everyday, plural

SHORT_LIST = (
    200  # rescored with int8 vectors: figures as with all exact index.cosines (measured on 250 questions, 6,223 traces)
)
_IN_SPAN = 1000.0  # more than any score: what lies in the span that is asked about comes first


class Embedder(Protocol):
    """What turns texts into unit vectors (`edge.infer.TextEmbedder`)."""

    @property
    def key(self) -> str:
        """Names the model: vectors of different models are never compared."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One trace that was found."""

    trace: int
    start: float  # UTC POSIX seconds
    end: float
    score: float
    cosine: float  # of its best unit and the question; NaN: unknown
    unit: int  # number of that unit, 0: none
    matched: float  # share of the question's concepts, by weight, that it holds
    holds: tuple[bool, ...]  # which concepts
    in_span: bool


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a search saw and found."""

    hits: tuple[Hit, ...]  # best first
    visible: int  # traces that the filter let through
    in_span: int  # of those, in the span that the question names
    concepts: tuple[Concept, ...]
    known: tuple[bool, ...]  # which concepts occur at all in what is visible


class Searcher:
    """Searches one memory; every call reads one state of it."""

    def __init__(self, store: Store, embedder: Embedder | None, zone: tzinfo | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._zone = zone

    def find(
        self,
        question: Question,
        where: index.Filter,
        now: float,
        k: int,
        *,
        only_span: bool = False,
        neighbours: bool = False,
    ) -> Found:
        """Rank what the filter lets through.

        Args:
            question: what is asked.
            where: what may be looked at.
            now: UTC POSIX seconds, for recency.
            k: how many hits.
            only_span: leave out what lies outside the span that the question names; else it comes last.
            neighbours: bring up the neighbours of the best ten, behind them.
        """
        vector = self._embed(question)
        if only_span:
            where = narrowed(where, question.when.start, question.when.end)
        with self._store.reading() as connection:
            corpus = index.corpus(connection, where)
            concepts = self.concepts(connection, question)
            found = index.postings(connection, [term for concept in concepts for term in concept.terms])
            return self._rank(connection, question, corpus, where, now, k, concepts, found, vector, neighbours)

    def concepts(self, connection: apsw.Connection, question: Question) -> tuple[Concept, ...]:
        """The terms to look for, each thing and person under all the words for it."""
        found: dict[tuple[str, ...], Concept] = {}
        synonyms = {
            thing.word: [word for label in thing.labels for word in (everyday(label), plural(label))]
            for thing in question.things
        }
        for word in question.words:
            spelled = [word, *synonyms.get(word.lower(), [])]
            terms = dict.fromkeys(
                parts[0] for parts in (index.tokens(connection, spelling) for spelling in spelled) if len(parts) == 1
            )
            # A word of several signs of a script without spaces, or with an apostrophe, is all of them.
            groups = [tuple(terms)] if terms else [(term,) for term in index.tokens(connection, word)]
            for group in groups:
                found.setdefault(group, Concept(rarity(word), group))
        titles = self._store.titles(question.people)
        for entity in question.people:
            name = index.tokens(connection, titles.get(entity, ""))
            literal = name[:1] if len(name) == 1 else []
            group = (index.entity_token(entity), *literal)
            found.setdefault(group, Concept(1.0, group))
        return tuple(found.values())

    def _embed(self, question: Question) -> Vector | None:
        return None if self._embedder is None else self._embedder.embed([question.text])[0]

    def _inside(self, question: Question, corpus: index.Corpus) -> NDArray[np.bool_]:
        when = question.when
        inside = np.ones(len(corpus.traces), np.bool_)
        if when.start is not None:
            inside &= corpus.ends > when.start
        if when.end is not None:
            inside &= corpus.starts < when.end
        return inside

    def _rank(
        self,
        connection: apsw.Connection,
        question: Question,
        corpus: index.Corpus,
        where: index.Filter,
        now: float,
        k: int,
        concepts: tuple[Concept, ...],
        found: list[index.Postings],
        vector: Vector | None,
        neighbours: bool,
    ) -> Found:
        inside = self._inside(question, corpus)
        by_term = {part.term: part for part in found}
        present = [
            ranking.occurrences(corpus, [by_term[t] for t in concept.terms if t in by_term]) > 0 for concept in concepts
        ]
        base = ranking.WORDS * ranking.standardise(ranking.bm25(corpus, found, concepts)) + ranking.recency(corpus, now)
        if question.when.hours is not None:
            base += ranking.HOURS * np.array(
                [prefer_hours(question.when.hours, at, self._zone) for at in corpus.starts]
            )
        if question.when.binds:
            base += _IN_SPAN * inside
        cosine, units = np.full(len(base), np.nan), np.zeros(len(base), np.int64)
        scores = base
        if vector is not None and self._embedder is not None and len(base):
            scores, cosine, units = self._with_vectors(connection, corpus, where, base, vector, self._embedder.key, k)
        order = ranking.best_first(scores, max(k, ranking.NEIGHBOURS_OF + 1))
        order = ranking.with_neighbours(order, corpus, k) if neighbours else order[:k]
        total = sum(concept.weight for concept in concepts)
        weights = np.array([concept.weight for concept in concepts])
        hits = []
        for place in order.tolist():
            holds = tuple(bool(part[place]) for part in present)
            matched = float(weights @ np.array(holds)) / total if concepts else 0.0
            score = scores[place] - (_IN_SPAN if question.when.binds and inside[place] else 0.0)
            hits.append(
                Hit(
                    trace=int(corpus.traces[place]),
                    start=float(corpus.starts[place]),
                    end=float(corpus.ends[place]),
                    score=float(score),
                    cosine=float(cosine[place]),
                    unit=int(units[place]),
                    matched=matched,
                    holds=holds,
                    in_span=bool(inside[place]),
                )
            )
        return Found(tuple(hits), len(base), int(inside.sum()), concepts, tuple(bool(part.any()) for part in present))

    def _with_vectors(
        self,
        connection: apsw.Connection,
        corpus: index.Corpus,
        where: index.Filter,
        base: Scores,
        vector: Vector,
        embedder: str,
        k: int,
    ) -> tuple[Scores, Scores, NDArray[np.int64]]:
        near = index.nearest(connection, vector, embedder, where)
        places, visible = ranking.places_of(corpus, near.traces)
        places = places[visible]
        whole, best = (np.full(len(base), np.nan) for _ in range(2))
        units = np.zeros(len(base), np.int64)
        whole[places] = ranking.estimated_cosine(near.whole[visible], len(vector))
        best[places] = ranking.estimated_cosine(near.best[visible], len(vector))
        units[places] = near.units[visible]
        means = [(float(np.nanmean(x)), float(np.nanstd(x))) if len(places) else (0.0, 0.0) for x in (whole, best)]
        rough = base + ranking.WHOLE * ranking.standardise(whole) + ranking.BEST * ranking.standardise(best)
        short = ranking.best_first(rough, max(SHORT_LIST, 2 * k))
        exact_whole, exact_best = (
            index.cosines(connection, vector, embedder, corpus.traces[short], units[short] * which) for which in (0, 1)
        )
        scores = np.full(len(base), -np.inf)
        scores[short] = (
            base[short]
            + ranking.WHOLE * ranking.standardise(exact_whole, *means[0])
            + ranking.BEST * ranking.standardise(exact_best, *means[1])
        )
        cosine = np.full(len(base), np.nan)
        cosine[short] = exact_best
        return scores, cosine, units


def narrowed(where: index.Filter, start: float | None, end: float | None) -> index.Filter:
    """A filter that also keeps to a span."""
    starts = [bound for bound in (where.start, start) if bound is not None]
    ends = [bound for bound in (where.end, end) if bound is not None]
    return replace(where, start=max(starts, default=None), end=min(ends, default=None))
