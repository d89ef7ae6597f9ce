"""The face of recall: three tools (search, get, evidence), the reflex answer, and ranking for batches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo

from edge.clock import utc_now
from edge.errors import NotFoundError
from edge.memory import Store, index
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import Node
from edge.recall.batch import Query, Ranked
from edge.recall.choices import choose
from edge.recall.evidence import Evidence, spoken
from edge.recall.question import Known, Question, understand
from edge.recall.records import Answer, Filters, Level, Result
from edge.recall.reflex import Reflex
from edge.recall.search import Embedder, Searcher
from edge.settings import RecallSettings
from edge.types.records import Kind, TraceRecord, mentioned, parse_id, public_id, render

NO_VECTORS = "Found by words alone: the text-embedding model is missing (`reflectworld models pull`)."


class Recall:
    """Questions to one memory. Thread-safe as the store is."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None = None,
        settings: RecallSettings | None = None,
        *,
        now: Callable[[], float] = utc_now,
        zone: tzinfo | None = None,
    ) -> None:
        """Prepare to ask.

        Args:
            store: the memory; read-only is enough.
            embedder: makes vectors of questions; None: words alone.
            settings: how much an answer draws on.
            now: the present, UTC POSIX seconds.
            zone: whose calendar counts; None: the device's.
        """
        self.store = store
        self._embedder = embedder
        self._settings = settings or RecallSettings()
        self._now = now
        self._zone = zone

    def ask(self, question: str, at: float | None = None) -> Answer:
        """Answer a question in one pass, from evidence alone.

        Args:
            question: in English.
            at: UTC POSIX seconds at which it is asked: nothing that ended later is used. None: now, with everything.

        Raises:
            QuestionError: it is empty or too long.
        """
        began = time.perf_counter()
        now = self._now() if at is None else at
        asked = self._understand(question, at, self._zone)
        searcher = Searcher(self.store, self._embedder, self._zone)
        answer = Reflex(searcher, Evidence(self.store, at), self._settings, now, self._zone).answer(asked)
        notes = answer.notes if self._embedder is not None else (*answer.notes, NO_VECTORS)
        return replace(answer, notes=notes, milliseconds=(time.perf_counter() - began) * 1000)

    def search(
        self, level: Level, query: str, filters: Filters | None = None, k: int = 10, *, at: float | None = None
    ) -> list[Result]:
        """Find traces, lines, utterances, observations or people, best first.

        Args:
            level: what to find.
            query: words or a question; time words in it bind, people in it are preferred.
            filters: what may be looked at.
            k: how many.
            at: as in `ask`.

        Raises:
            QuestionError: the query is empty or too long.
            NotFoundError: the filter names nobody who is known, or a camera that is not.
        """
        asked = self._understand(query, at, self._zone)
        evidence = Evidence(self.store, at)
        where = self._where(filters or Filters(), at)
        searcher = Searcher(self.store, self._embedder, self._zone)
        wide = k if level in {Level.TRACE, Level.LINE} else 4 * k
        hits = searcher.find(asked, where, self._now() if at is None else at, wide, only_span=True).hits
        if level is Level.TRACE:
            return evidence.traces(hits)
        if level.value in timeline.LEVELS:
            return evidence.nodes_of(level, hits)[:k]
        if level is Level.LINE:
            return evidence.lines(hits, asked)
        return evidence.parts(level, hits, asked, where.entities)[:k]

    def get(self, item: str, neighbours: int = 0) -> list[Result]:
        """One trace or node of the timeline, with its neighbours in time on the same camera; of another item, its trace.

        Raises:
            NotFoundError: there is no such item.
        """
        evidence = Evidence(self.store, None)
        node = self._node(item)
        if node is not None:
            with self.store.reading() as connection:
                around = timeline.beside(connection, self.store.user, node, neighbours)
            return [evidence.node(one, 0.0) for one in around]
        trace = self._trace_of(item)
        records: Sequence[TraceRecord] = (
            self.store.neighbours(trace, neighbours) if neighbours > 0 else [self.store.trace(trace)]
        )
        return [evidence.trace(record, 0.0) for record in records]

    def evidence(self, item: str) -> list[Result]:
        """What an item rests on: of a trace its observations and utterances, of a node what it was made of, else the trace.

        Raises:
            NotFoundError: there is no such item.
        """
        evidence = Evidence(self.store, None)
        node = self._node(item)
        if node is not None:
            with self.store.reading() as connection:
                below = timeline.children(connection, node)
            return [evidence.node(one, 0.0) for one in below]
        trace = self._trace_of(item)
        if not item.strip().lower().startswith(Kind.TRACE):
            return [evidence.trace(self.store.trace(trace), 0.0)]
        seen = [
            evidence.of_observation(o) for o in self.store.observations(trace=trace, newest_first=False, limit=1000)
        ]
        said = [evidence.of_utterance(u) for u in self.store.utterances(trace=trace, newest_first=False, limit=1000)]
        return [*seen, *said]

    def rank(self, query: Query, k: int) -> Ranked:
        """Rank traces for one query of a batch.

        Raises:
            QuestionError: the question is empty or too long.
        """
        began = time.perf_counter()
        known = self._known(query.at)
        asked = self._understand(query.question, query.at, query.zone, known)
        searcher = Searcher(self.store, self._embedder, query.zone)
        where = index.Filter(self.store.user, before=query.at)
        found = searcher.find(asked, where, query.at, k, neighbours=True)
        texts = self._texts([hit.trace for hit in found.hits])
        choices = {
            letter: self._understand(text, query.at, query.zone, known)
            for letter, text in query.choices.items()
            if text.strip()
        }
        choice = choose(self.store, searcher, found, asked, choices) if choices else None
        rows = tuple(
            (public_id(Kind.TRACE, hit.trace), Level.TRACE.value, hit.start, hit.end, hit.score, texts[hit.trace])
            for hit in found.hits
        )
        return Ranked(rows, choice, 1, (time.perf_counter() - began) * 1000)

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _understand(
        self, text: str, at: float | None, zone: tzinfo | None, known: Sequence[Known] | None = None
    ) -> Question:
        now = self._now() if at is None else at
        known = self._known(at) if known is None else known
        return understand(text, now, zone, known, max_chars=self._settings.max_question_chars)

    def _known(self, at: float | None) -> list[Known]:
        """Everybody who was met by then: who is met later is not known yet at the time of the question."""
        sql = (
            "select id, coalesce(name, iif(kind = 'voice', 'voice ', 'person ') || number) from entity"
            " where user = ?1 and merged_into is null and (?2 is null or first_seen <= ?2) order by id"
        )
        return [Known(entity, title) for entity, title in self.store.rows(sql, (self.store.user, at))]

    def _where(self, filters: Filters, at: float | None) -> index.Filter:
        entities: tuple[int, ...] = ()
        if filters.person is not None:
            entities = tuple(person.id for person in self.store.find_entities(filters.person))
            if not entities:
                raise NotFoundError(
                    filters.person,
                    f"The memory knows nobody called “{filters.person}”; `reflectworld people` lists everybody.",
                )
        if filters.camera is not None and filters.camera not in self.store.cameras():
            cameras = ", ".join(self.store.cameras()) or "none yet"
            raise NotFoundError(filters.camera, f"There is no camera “{filters.camera}”; the cameras are: {cameras}.")
        return index.Filter(
            self.store.user,
            start=filters.since,
            end=filters.until,
            before=at,
            cameras=(filters.camera,) if filters.camera else (),
            entities=entities,
        )

    def _texts(self, traces: Sequence[int]) -> dict[int, str]:
        """What is seen in traces; of those without, what is said."""
        wanted = json.dumps(list(traces))
        seen = self.store.rows("select id, text from trace where id in (select value from json_each(?))", (wanted,))
        titles = self.store.titles({entity for _, text in seen for entity in mentioned(text)})
        texts = {trace: render(text, lambda entity: titles.get(entity, "someone")) for trace, text in seen if text}
        silent = [trace for trace in traces if trace not in texts]
        return texts | {record.id: spoken(record) for record in self.store.traces_by_id(silent)}

    def _node(self, item: str) -> Node | None:
        """A node of the timeline; None: the id is of something else."""
        try:
            kind, number = parse_id(item)
        except ValueError:
            return None
        if kind is not Kind.NODE:
            return None
        with self.store.reading() as connection:
            node = timeline.node(connection, self.store.user, number)
        if node is None:
            raise NotFoundError(
                item, f"There is no {item} in the timeline; `reflectworld timeline --level event` lists what there is."
            )
        return node

    def _trace_of(self, item: str) -> int:
        try:
            kind, number = parse_id(item)
        except ValueError as error:
            raise NotFoundError(item, f"“{item[:40]}” is not an id; ids look like t12, o7, u9 or k4.") from error
        if kind is Kind.TRACE:
            return self.store.trace(number).id
        table = {
            Kind.OBSERVATION: "observation",
            Kind.UTTERANCE: "utterance",
            Kind.KEY_FRAME: "key_frame",
            Kind.DECISION: "decision",
        }
        if kind not in table:
            raise NotFoundError(
                item, f"{item} is a person; `reflectworld people show {item}` tells where they were seen."
            )
        rows = self.store.rows(f"select trace from {table[kind]} where id = ?", (number,))  # noqa: S608 - constants
        if not rows:
            raise NotFoundError(
                item, f"There is no {item} in the memory; `reflectworld timeline` lists what is remembered."
            )
        return self.store.trace(int(rows[0][0])).id
