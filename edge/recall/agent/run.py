"""The agent as recall uses it: one for a memory, with its experience, its limits and its language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo

from edge.clock import monotonic
from edge.memory import Store
from edge.memory.tiers import experience
from edge.memory.tiers.experience import Experience
from edge.reason import Reasoner
from edge.recall.agent.agent import MOST_ROUNDS, Agent, Limits, first_only
from edge.recall.agent.looks import Looks
from edge.recall.agent.model import Guide
from edge.recall.answer.evidence import Evidence
from edge.recall.question.understand import Question
from edge.recall.records import Answer
from edge.recall.reflection import Signal
from edge.recall.search.searcher import Searcher
from edge.settings import RecallSettings

Reflexes = Callable[[Question], Answer]


class Agents:
    """Answers questions to one memory, going on where the first pass is not sure. Thread-safe as the store is."""

    def __init__(self, store: Store, settings: RecallSettings, reasoner: Reasoner | None = None) -> None:
        """Prepare.

        Args:
            store: the memory; read-only is enough.
            settings: how many rounds, and for how long.
            reasoner: asks a language model; None: the policy without one.
        """
        self._store = store
        self._settings = settings
        self._reasoner = reasoner if reasoner is not None and reasoner.configured else None

    def answer(
        self,
        question: Question,
        searcher: Searcher,
        evidence: Evidence,
        now: float,
        zone: tzinfo | None,
        *,
        reflex: Reflexes,
        understand: Callable[[str], Question],
        deep: bool | None = None,
    ) -> Answer:
        """Answer a question.

        Args:
            question: understood.
            searcher: of the memory.
            evidence: what may be seen.
            now: UTC POSIX seconds of the present of the question.
            zone: whose calendar counts; None: the device's.
            reflex: the first pass.
            understand: reads a question that was put another way.
            deep: True: go on although the first pass is sure; False: the first pass only; None: where it is not sure.
        """
        settings = self._settings
        if deep is False or settings.rounds == 1:
            return first_only(question, reflex(question))
        seconds = settings.deep_s if deep else settings.further_s
        limits = Limits(min(settings.rounds, MOST_ROUNDS), monotonic() + seconds, deep=bool(deep))
        looks = Looks(searcher, evidence, settings, now, zone, reflex=reflex, understand=understand)
        guide = None
        if self._reasoner is not None and (deep or settings.model):
            guide = Guide(self._reasoner, self._store.titles(), now, zone)
        answer = Agent(looks, self._learned, guide, limits).answer(question)
        return replace(answer, notes=(*answer.notes, *(guide.refusals if guide is not None else ())))

    def _learned(self, signal: Signal) -> Sequence[Experience]:
        if not self._settings.learn:
            return ()
        with self._store.reading() as connection:
            return experience.experiences(connection, self._store.user, signal.value)
