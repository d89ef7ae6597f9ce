"""Finding traces: the question's concepts and its vector against the index, under a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Protocol, runtime_checkable

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import Store, index
from edge.recall.question.understand import Question, rarity
from edge.recall.question.when import prefer_hours
from edge.recall.search import ranking
from edge.recall.search.graph import Nearness, keys_of, relations_of
from edge.recall.search.pool import Late, Near, Pool
from edge.recall.search.ranking import Concept, Scores
from edge.types.evidence import Vector
from edge.types.stop_words import ASKING_WORDS
from edge.types.vocabulary import everyday, plural


class Embedder(Protocol):
    """What turns texts into unit vectors (`edge.infer.TextEmbedder`)."""

    @property
    def key(self) -> str:
        """Names the model: vectors of different models are never compared."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


@runtime_checkable
class ReadsWords(Protocol):
    """An embedder that also says what each word of a question means in it."""

    def read_words(self, text: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """The content words as written; (m, d) their states, L2-normalised."""


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

    def __init__(
        self, store: Store, embedder: Embedder | None, zone: tzinfo | None = None, *, graph: float = ranking.GRAPH
    ) -> None:
        """Prepare.

        Args:
            store: the memory.
            embedder: of questions; None: words alone.
            zone: whose calendar counts; None: the device's.
            graph: weight of what the graph says; 0: it is not asked.
        """
        self._graph = graph
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
        key = self._embedder.key if self._embedder is not None else None
        with self._store.reading() as connection:
            all_traces = self._store.columns(connection, key)
            corpus = index.corpus_of(all_traces, index.visible(connection, all_traces, where))
            concepts = self.concepts(connection, question)
            inside = self._inside(question, corpus)
            prior = self._prior(question, corpus, now)
            first = inside if question.when.binds and not only_span else None
            near = self._near(connection, question, where)
            pool = Pool(
                connection, corpus, all_traces, concepts, prior, vector, key, k, first=first, near=near,
                near_weight=self._graph, late=self._late(question),
            )  # fmt: skip
            return self._hits(connection, pool, question, inside, k, neighbours=neighbours)

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

    def _near(self, connection: apsw.Connection, question: Question, where: index.Filter) -> Near | None:
        if not self._graph:
            return None
        near = Nearness(connection, self._store.user, keys_of(question), where.before, relations_of(question))
        return near or None

    def _embed(self, question: Question) -> Vector | None:
        return None if self._embedder is None else self._embedder.embed([question.text])[0]

    def _late(self, question: Question) -> Late | None:
        """The words that are asked for as they are meant; None: nobody can read them."""
        reader: object = self._embedder
        if not isinstance(reader, ReadsWords):
            return None
        words, states = reader.read_words(question.text)
        weights = [0.0 if word.lower() in ASKING_WORDS else rarity(word) for word in words]
        return Late(states, np.array(weights)) if any(weights) else None

    def _prior(self, question: Question, corpus: index.Corpus, now: float) -> Callable[[NDArray[np.int64]], Scores]:
        """What speaks for visible traces, by their places, before any of them is read."""

        def of(places: NDArray[np.int64]) -> Scores:
            prior = ranking.recency(corpus.ends[places], now)
            if question.when.hours is not None:
                prior += ranking.HOURS * prefer_hours(question.when.hours, corpus.starts[places], self._zone)
            return prior

        return of

    def _inside(self, question: Question, corpus: index.Corpus) -> NDArray[np.bool_]:
        when = question.when
        inside = np.ones(len(corpus.traces), np.bool_)
        if when.start is not None:
            inside &= corpus.ends > when.start
        if when.end is not None:
            inside &= corpus.starts < when.end
        return inside

    def _hits(
        self,
        connection: apsw.Connection,
        pool: Pool,
        question: Question,
        inside: NDArray[np.bool_],
        k: int,
        *,
        neighbours: bool,
    ) -> Found:
        corpus, concepts = pool.corpus, pool.concepts
        order = pool.best(k)
        if neighbours:
            order = self._with_neighbours(connection, order, corpus, k)
        rows = pool.rows(order)
        weights = np.array([concept.weight for concept in concepts])
        total = float(weights.sum())
        hits = tuple(
            Hit(
                trace=int(corpus.traces[place]),
                start=float(corpus.starts[place]),
                end=float(corpus.ends[place]),
                score=float(rows.scores[row]),
                cosine=float(rows.cosines[row]),
                unit=int(rows.units[row]),
                matched=float(weights @ rows.holds[:, row]) / total if concepts else 0.0,
                holds=tuple(bool(part) for part in rows.holds[:, row]),
                in_span=bool(inside[place]),
            )
            for row, place in enumerate(order.tolist())
        )
        return Found(hits, len(corpus.traces), int(inside.sum()), concepts, pool.known)

    @staticmethod
    def _with_neighbours(
        connection: apsw.Connection, order: NDArray[np.int64], corpus: index.Corpus, k: int
    ) -> NDArray[np.int64]:
        def beside(place: int, step: int) -> int | None:
            found = index.beside(connection, int(corpus.traces[place]), step)
            if found is None:
                return None
            trace, start, end = found
            gap = max(start - corpus.ends[place], corpus.starts[place] - end)
            places, there = ranking.places_of(corpus, np.array([trace]))
            return int(places[0]) if there[0] and gap <= ranking.NEIGHBOUR_GAP_S else None

        return ranking.with_neighbours(order, beside, k)


def narrowed(where: index.Filter, start: float | None, end: float | None) -> index.Filter:
    """A filter that also keeps to a span."""
    starts = [bound for bound in (where.start, start) if bound is not None]
    ends = [bound for bound in (where.end, end) if bound is not None]
    return replace(where, start=max(starts, default=None), end=min(ends, default=None))
