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
from edge.memory.tiers.experience import AnswerRecord
from edge.memory.tiers.timeline import Node
from edge.reason import Reasoner
from edge.recall.agent import Agents
from edge.recall.answer.choices import choose
from edge.recall.answer.evidence import Evidence, spoken
from edge.recall.answer.reflex import Reflex
from edge.recall.batch import Query, Ranked
from edge.recall.question.head import Head
from edge.recall.question.listening import SEARCH, SPEAK, UNASKED, Listener
from edge.recall.question.understand import Known, Question, understand
from edge.recall.records import Answer, Filters, Level, Result
from edge.recall.reflection import judge, keep
from edge.recall.search.searcher import Embedder, Searcher
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
        head: Head | None = None,
        reasoner: Reasoner | None = None,
        now: Callable[[], float] = utc_now,
        zone: tzinfo | None = None,
    ) -> None:
        """Prepare to ask.

        Args:
            store: the memory; read-only is enough.
            embedder: makes vectors of questions; None: words alone.
            settings: how much an answer draws on.
            head: finds the question in an input and moves its vector; None: rules find it, and nothing is moved.
            reasoner: asks a language model where the first pass is not sure; None: that goes on without one.
            now: the present, UTC POSIX seconds.
            zone: whose calendar counts; None: the device's.
        """
        self.store = store
        self._embedder = embedder
        self._settings = settings or RecallSettings()
        self._listener = Listener(store, embedder, head, self._settings)
        self._agents = Agents(store, self._settings, reasoner)
        self._now = now
        self._zone = zone

    def ask(
        self, question: str, at: float | None = None, *, overheard: bool = False, deep: bool | None = None
    ) -> Answer:
        """Answer a question from evidence alone: in one pass, and in some more where that is not sure.

        Args:
            question: in English.
            at: UTC POSIX seconds at which it is asked: nothing that ended later is used. None: now, with everything.
            overheard: it was heard and not typed, so that it may be talk which asks nothing: then it is not answered
                (with a reflex head; without one nobody knows).
            deep: True: look further although the first pass is sure; False: the first pass only; None: as needed.

        Raises:
            QuestionError: it is empty or too long.
        """
        began = time.perf_counter()
        now = self._now() if at is None else at
        heard = self._listener.hear(question)
        asked = self._understand(heard.text, at, self._zone)
        turn = self._listener.turn(now)
        act = turn.act(asked.text)
        if overheard and act is not None and act.speak < SPEAK:
            return self._unasked(asked)
        aside = act is not None and act.search < SEARCH
        searcher = Searcher(self.store, turn.embedder, self._zone)
        evidence = Evidence(self.store, at)
        reflex = Reflex(searcher, evidence, self._settings, now, self._zone)
        known = self._known(at)
        answer = self._agents.answer(
            asked, searcher, evidence, now, self._zone, reflex=reflex.answer,
            deep=False if aside and deep is None else deep,
            understand=lambda text: self._understand(text, at, self._zone, known),
        )  # fmt: skip
        notes = answer.notes if self._embedder is not None else (*answer.notes, NO_VECTORS)
        if aside and not answer.found:
            notes = (*notes, UNASKED)
        understood = heard.text if heard.cut else None
        return replace(answer, understood=understood, notes=notes, milliseconds=(time.perf_counter() - began) * 1000)

    def keep(self, answer: Answer, store: Store | None = None) -> Answer:
        """Keep what an owner needs to judge an answer by; it has an id then.

        Args:
            answer: that was given.
            store: the memory open for writing; None: this one is.

        Raises:
            StoreError: it cannot be written.
        """
        limit = self._settings.keep_answers
        if not limit or answer.silent or not answer.route:
            return answer
        return replace(answer, id=keep(store or self.store, answer, self._now(), limit))

    def judge(self, item: str | None, *, good: bool) -> AnswerRecord:
        """Note what the owner thinks of an answer; of many judgements is learned where to look.

        Args:
            item: its id, such as q3; None: the last one.
            good: whether it was right.

        Raises:
            NotFoundError: there is none, or it is kept no longer.
            StoreError: it cannot be written.
        """
        return judge(self.store, item, good=good, at=self._now(), batch=self._settings.learn_batch)

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
        now = self._now() if at is None else at
        asked = self._understand(self._listener.hear(query).text, at, self._zone)
        evidence = Evidence(self.store, at)
        where = self._where(filters or Filters(), at)
        searcher = Searcher(self.store, self._listener.turn(now).embedder, self._zone)
        wide = k if level in {Level.TRACE, Level.LINE} else 4 * k
        hits = searcher.find(asked, where, now, wide, only_span=True).hits
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
        asked = self._understand(self._listener.hear(query.question).text, query.at, query.zone, known)
        searcher = Searcher(self.store, self._listener.turn(query.at).embedder, query.zone)
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

    @staticmethod
    def _unasked(asked: Question) -> Answer:
        """What is said to talk that asks nothing of the memory."""
        said = f"I heard “{asked.text}”, which asks nothing of the memory."
        return Answer(question=asked.text, kind=asked.kind, text=said, found=False, silent=True, rounds=0)

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
        if kind is Kind.ANSWER:
            raise NotFoundError(item, f"{item} is an answer; look at what it cites.")
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
