"""The face of recall: the tools (`edge.recall.tools`), answers, and ranking for batches."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo

from edge.clock import utc_now
from edge.memory import Store, index
from edge.memory.tiers.experience import AnswerRecord
from edge.reason import Reasoner
from edge.recall.agent import Agents
from edge.recall.answer.choices import choose, with_choices
from edge.recall.answer.courtesy import courtesy
from edge.recall.answer.evidence import Evidence, spoken
from edge.recall.answer.reflex import Reflex
from edge.recall.batch import Query, Ranked
from edge.recall.question.head import Head
from edge.recall.question.listening import SEARCH, SPEAK, UNASKED, Listener
from edge.recall.question.understand import Known, Question, understand
from edge.recall.records import Answer, Filters, Level, Result
from edge.recall.reflection import judge, keep
from edge.recall.search import ranking
from edge.recall.search.searcher import Embedder, Searcher
from edge.recall.tools import Asking, Tools
from edge.settings import RecallSettings
from edge.types.records import Kind, mentioned, public_id, render

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
        graph: float | None = None,
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
            graph: weight of what the graph says; None: the usual one.
            now: the present, UTC POSIX seconds.
            zone: whose calendar counts; None: the device's.
        """
        self._graph = ranking.GRAPH if graph is None else graph
        self.store = store
        self._embedder = embedder
        self._settings = settings or RecallSettings()
        self._listener = Listener(store, embedder, head, self._settings)
        self._agents = Agents(store, self._settings, reasoner)
        self._now = now
        self._zone = zone
        self.tools = Tools(store, Asking(self._asked, self._searcher, now))

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
        polite = None if overheard else courtesy(asked.text)
        if polite is not None:
            return Answer(asked.text, asked.kind, polite, found=False, rounds=0)
        turn = self._listener.turn(now)
        act = turn.act(asked.text)
        if overheard and act is not None and act.speak < SPEAK:
            return self._unasked(asked)
        aside = act is not None and act.search < SEARCH
        searcher = Searcher(self.store, turn.embedder, self._zone, graph=self._graph)
        evidence = Evidence(self.store, at)
        reflex = Reflex(searcher, evidence, self._settings, now, self._zone)
        known = self._known(at)
        answer = self._agents.answer(
            asked, searcher, evidence, now, self._zone, reflex=reflex.answer,
            deep=False if aside and deep is None else deep,
            understand=lambda text: self._understand(text, at, self._zone, known),
        )  # fmt: skip
        notes = answer.notes if self._embedder is not None else (*answer.notes, NO_VECTORS)
        unasked = aside and act is not None and act.speak < SPEAK and not asked.when.binds
        if unasked and not answer.found:
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
        return self.tools.search(level, query, filters, k, at=at)

    def get(self, item: str, neighbours: int = 0) -> list[Result]:
        """One trace or node of the timeline, with its neighbours in time on the same camera; of another item, its trace.

        Raises:
            NotFoundError: there is no such item.
        """
        return self.tools.get(item, neighbours)

    def evidence(self, item: str) -> list[Result]:
        """What an item rests on: of a trace its observations and utterances, of a node what it was made of, else the trace.

        Raises:
            NotFoundError: there is no such item.
        """
        return self.tools.evidence(item)

    def rank(self, query: Query, k: int, *, by_choices: bool = False) -> Ranked:
        """Rank traces for one query of a batch.

        Args:
            query: with choices, one of them is chosen.
            k: how many traces.
            by_choices: rank by what the choices say, too; else by the question alone, and by the choices only to choose.

        Raises:
            QuestionError: the question is empty or too long.
            InferenceError: the embedder failed.
        """
        began = time.perf_counter()
        known = self._known(query.at)
        asked = self._understand(self._listener.hear(query.question).text, query.at, query.zone, known)
        searcher = Searcher(self.store, self._listener.turn(query.at).embedder, query.zone, graph=self._graph)
        where = index.Filter(self.store.user, before=query.at)
        choices = {
            letter: self._understand(text, query.at, query.zone, known)
            for letter, text in query.choices.items()
            if text.strip()
        }
        choice, found = None, None
        if choices:
            for_all = searcher.find(with_choices(asked, choices), where, query.at, k, neighbours=True)
            choice = choose(self.store, searcher, self._embedder, for_all, asked, choices)
            found = for_all if by_choices else None
        if found is None:
            found = searcher.find(asked, where, query.at, k, neighbours=True)
        texts = self._texts([hit.trace for hit in found.hits])
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

    def _asked(self, text: str, at: float | None) -> Question:
        return self._understand(self._listener.hear(text).text, at, self._zone)

    def _searcher(self, now: float) -> Searcher:
        return Searcher(self.store, self._listener.turn(now).embedder, self._zone)

    def _understand(
        self, text: str, at: float | None, zone: tzinfo | None, known: Sequence[Known] | None = None
    ) -> Question:
        now = self._now() if at is None else at
        known = self._known(at) if known is None else known
        return understand(text, now, zone, known, max_chars=self._settings.max_question_chars)

    def _known(self, at: float | None) -> list[Known]:
        """Everybody who was met by then: who is met later is not known yet at the time of the question."""
        if at is not None:
            return [Known(entity, title) for entity, title in self.store.met(at)]
        sql = (
            "select id, coalesce(name, iif(kind = 'voice', 'voice ', 'person ') || number) from entity"
            " where user = ? and merged_into is null order by id"
        )
        return [Known(entity, title) for entity, title in self.store.rows(sql, (self.store.user,))]

    def _texts(self, traces: Sequence[int]) -> dict[int, str]:
        """What is seen in traces; of those without, what is said."""
        wanted = json.dumps(list(traces))
        seen = self.store.rows("select id, text from trace where id in (select value from json_each(?))", (wanted,))
        titles = self.store.titles({entity for _, text in seen for entity in mentioned(text)})
        texts = {trace: render(text, lambda entity: titles.get(entity, "someone")) for trace, text in seen if text}
        silent = [trace for trace in traces if trace not in texts]
        return texts | {record.id: spoken(record) for record in self.store.traces_by_id(silent)}
