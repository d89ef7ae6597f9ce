"""The ways to look further, one a move: each brings results, how much of the question they hold together, and what to say.

Whatever is brought is held to the same measure as the first pass (`ground.MATCHED`): enough of what is asked for, by weight, in
one place. What the place is differs: one moment, an event, some minutes, a stretch of the timeline, what is known of somebody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Final

import apsw

from edge.errors import NotFoundError, QuestionError
from edge.memory import index
from edge.memory.tiers import timeline
from edge.recall.answer.evidence import Evidence
from edge.recall.answer.ground import LISTED, MATCHED, Ground
from edge.recall.answer.phrases import sentence
from edge.recall.answer.portrait import Fact, known_facts
from edge.recall.question.understand import Question, QuestionKind
from edge.recall.records import Answer, Level, Look, Result
from edge.recall.reflection.bank import Move
from edge.recall.reflection.repair import Repair, anyone, reworded, widened
from edge.recall.reflection.signals import Probe
from edge.recall.search.ranking import Concept
from edge.recall.search.searcher import Found, Hit, Searcher
from edge.settings import RecallSettings
from edge.types.records import parse_id
from edge.types.vocabulary import everyday, labels_for

WIDE: Final = 50  # traces that a look goes over
BROUGHT: Final = 6  # moments that a search of a model brings
AROUND: Final = 2  # moments before and after one that belong to it
TOLD: Final = 3  # lines that an answer tells
SPREAD: Final = 0.9  # share of what is asked for that moments have to hold together: being apart says less than one

WORDS: Final[Mapping[Move, str]] = {
    Move.REFLEX: "the first pass",
    Move.CONTENT: "the words that say what it is about",
    Move.REWORD: "words that are spelled nearly so",
    Move.WIDEN: "any time",
    Move.ANYONE: "what others do with or say of them",
    Move.SPEECH: "what was said",
    Move.EVENT: "events as a whole",
    Move.BESIDE: "what came just before and after",
    Move.CHAPTER: "longer stretches of time",
    Move.FACTS: "what is known of people",
    Move.GRAPH: "who and what is related",
    Move.STOP: "nothing more",
}


def looked_at(look: Look) -> str:
    """Where was looked, in a few words for people."""
    return next((words for move, words in WORDS.items() if move.value == look.memory), look.memory)


Wanted = Sequence[tuple[int, Concept]]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look brought."""

    results: tuple[Result, ...]
    answer: Answer | None  # None: it does not hold enough of what is asked
    query: str  # that was put
    repair: Repair | None = None  # the question put another way, from which the next looks go on


class Looks(Ground):
    """Looks further for one question."""

    def __init__(
        self,
        searcher: Searcher,
        evidence: Evidence,
        settings: RecallSettings,
        now: float,
        zone: tzinfo | None,
        *,
        reflex: Callable[[Question], Answer],
        understand: Callable[[str], Question],
    ) -> None:
        """Prepare.

        Args:
            searcher: as of `Ground`.
            evidence: likewise: what may be seen.
            settings: likewise.
            now: likewise, UTC POSIX seconds.
            zone: likewise.
            reflex: the first pass.
            understand: reads a question that was put another way.
        """
        super().__init__(searcher, evidence, settings, now, zone)
        self.reflex = reflex
        self.understand = understand

    def can(self, move: Move, question: Question, probe: Probe) -> bool:
        """Whether a move may bring anything that the moves before it cannot."""
        needs = {
            Move.REWORD: bool(probe.unknown) and self._reword(question, probe) is not None,
            Move.WIDEN: question.when.binds and question.kind not in (QuestionKind.EXISTS, QuestionKind.COUNT),
            Move.ANYONE: bool(question.people),
            Move.SPEECH: question.kind is not QuestionKind.SAID or bool(question.people),
            Move.FACTS: bool(question.people or question.things),
            Move.GRAPH: False,
        }
        return needs.get(move, True) and (move is Move.REWORD or not probe.unknown)

    def look(self, move: Move, question: Question, probe: Probe) -> Finding:
        """Make a move."""
        repairs: dict[Move, Callable[[Question, Probe], Repair | None]] = {
            Move.REWORD: self._reword,
            Move.WIDEN: lambda question, _: widened(question, self._span(question).strip()),
            Move.ANYONE: lambda question, _: anyone(question, [self._title(who) for who in question.people]),
        }
        if move in repairs:
            return self._again(question, repairs[move](question, probe))
        ways: dict[Move, Callable[[Question], Finding]] = {
            Move.CONTENT: self._moments,
            Move.SPEECH: self._speech,
            Move.EVENT: self._events,
            Move.BESIDE: self._beside,
            Move.CHAPTER: self._chapters,
            Move.FACTS: self._facts,
        }
        return ways[move](question)

    def probe(self, question: Question) -> Probe:
        """What a search without bounds says of a question."""
        found = self._unbound(question)
        content = self._content(question)
        unknown = self._unknown_words(question, found)
        with self._evidence.store.reading() as connection:
            asked = {term for word in content for term in index.tokens(connection, word)}
        people = {index.entity_token(who) for who in question.people}
        ours = [bool(asked.intersection(concept.terms)) for concept in found.concepts]
        theirs = [bool(people.intersection(concept.terms)) for concept in found.concepts]
        total = sum(concept.weight for concept, mine in zip(found.concepts, ours, strict=True) if mine) or 1.0
        said, there = [], []
        for hit in found.hits:
            held = zip(found.concepts, hit.holds, ours, strict=True)
            said.append(sum(concept.weight for concept, holds, mine in held if holds and mine) / total)
            there.append(all(holds for holds, mine in zip(hit.holds, theirs, strict=True) if mine))
        return Probe(found.hits, tuple(unknown), tuple(content), tuple(there), tuple(said))

    def content(self, question: Question) -> list[str]:
        """The words of a question that say what it is about."""
        return self._content(question)

    def gather(self, move: Move, query: str, question: Question) -> Finding:
        """What a model asks for: results, and no answer.

        Args:
            move: where.
            query: in its words; time words in it bind, else those of the question do, unless at any time is wanted.
            question: as asked.
        """
        try:
            asked = self.understand(query)
        except QuestionError:
            asked = question
        if not asked.when.binds and move is not Move.WIDEN:
            when = replace(asked.when, start=question.when.start, end=question.when.end)
            asked = replace(asked, when=when)
        if move in (Move.REWORD, Move.WIDEN, Move.ANYONE):
            found = self._unbound(asked, only_span=True)
            return Finding(tuple(self._evidence.lines(found.hits[:BROUGHT], asked)), None, asked.text)
        finding = self.look(move, asked, Probe((), (), (), (), ()))
        return replace(finding, answer=None)

    def said(self, question: Question, text: str, results: Sequence[Result]) -> Answer:
        """An answer in somebody's words, with what it rests on."""
        return self._hold(question, text, results)

    def picture_of(self, item: str) -> bytes | None:
        """The JPEG of a key frame; None: it is gone."""
        try:
            return self._evidence.store.key_frame(parse_id(item)[1]).jpeg
        except NotFoundError:
            return None

    # -- the question put another way, to the first pass ---------------------------------------------------------------

    def _reword(self, question: Question, probe: Probe) -> Repair | None:
        def occurs(word: str) -> bool:
            others = [everyday(label) for label in labels_for(word)]  # the index knows things under each of their words
            return any(self._evidence.mentioned(one) for one in (word, *others))

        return reworded(question, probe.unknown, occurs, self._evidence.store.titles().values(), self.understand)

    def _again(self, question: Question, repair: Repair | None) -> Finding:
        if repair is None:
            return Finding((), None, question.text)
        answer = self.reflex(repair.question)
        told = f"{repair.said} {answer.text}".strip()
        held = self._retold(question, answer, told) if answer.found else None
        return Finding(answer.evidence, held, repair.question.text, repair)

    @staticmethod
    def _retold(question: Question, answer: Answer, text: str) -> Answer:
        return Answer(
            question=question.text, kind=question.kind, text=text, found=True, start=answer.start, end=answer.end,
            people=answer.people, camera=answer.camera, key_frame=answer.key_frame, cited=answer.cited, evidence=answer.evidence,
        )  # fmt: skip

    # -- other levels --------------------------------------------------------------------------------------------------

    def _moments(self, question: Question) -> Finding:
        """Moments that hold what the question is about, whatever else its words are."""
        asked = replace(question, words=tuple(self._content(question)))
        found = self._unbound(asked, only_span=True)
        wanted = self._wanted(question, found)
        total = sum(concept.weight for _, concept in wanted) or 1.0
        shares = [sum(concept.weight for place, concept in wanted if hit.holds[place]) / total for hit in found.hits]
        enough = [hit for hit, share in zip(found.hits, shares, strict=True) if share >= MATCHED]
        best = self._in_order(question, enough)[: self._settings.episodic] if enough else []
        lines = self._evidence.lines(best or found.hits[:LISTED], question)
        told = lines[:1] if question.kind is not QuestionKind.WHAT else lines[:2]
        return Finding(tuple(lines), self._telling(question, told) if best else None, " ".join(asked.words))

    def _speech(self, question: Question) -> Finding:
        """What anybody said that holds what is asked for."""
        found = self._unbound(question, only_span=True)
        parts = self._evidence.parts(Level.UTTERANCE, found.hits, question, ())
        wanted = self._wanted(question, found)
        with self._evidence.store.reading() as connection:
            shares = [self._share(connection, wanted, one.text, one.entities) for one in parts]
        most = max(shares, default=0.0)
        best = [one for one, share in zip(parts, shares, strict=True) if share >= max(most, MATCHED)][:LISTED]
        return Finding(tuple(best or parts[:LISTED]), self._telling(question, best), question.text)

    def _events(self, question: Question) -> Finding:
        """The event whose moments together hold most."""
        found = self._unbound(question, only_span=True)
        groups: dict[int, list[Hit]] = {}
        with self._evidence.store.reading() as connection:
            for hit in found.hits:
                number = timeline.of_trace(connection, hit.trace, "event")
                if number is not None:
                    groups.setdefault(number, []).append(hit)
        return self._together(question, found, list(groups.values()))

    def _beside(self, question: Question) -> Finding:
        """Some of it in a moment, the rest in those next to it."""
        found = self._unbound(question, only_span=True)
        by_trace = {hit.trace: hit for hit in found.hits}
        groups = []
        with self._evidence.store.reading() as connection:
            for hit in found.hits[:LISTED]:
                group = [hit]
                for step in (-1, 1):
                    trace = hit.trace
                    for _ in range(AROUND):
                        near = index.beside(connection, trace, step)
                        if near is None:
                            break
                        trace = near[0]
                        if trace in by_trace:
                            group.append(by_trace[trace])
                groups.append(group)
        return self._together(question, found, groups)

    def _together(self, question: Question, found: Found, groups: Sequence[Sequence[Hit]]) -> Finding:
        wanted = self._wanted(question, found)
        total = sum(concept.weight for _, concept in wanted) or 1.0

        def held(group: Sequence[Hit]) -> float:
            return sum(concept.weight for place, concept in wanted if any(hit.holds[place] for hit in group)) / total

        best = max(groups, key=lambda group: (held(group), max(hit.score for hit in group)), default=[])
        telling = self._fewest(best, wanted)
        lines = self._evidence.lines(telling, question) if telling else []
        lines.sort(key=lambda one: one.start)
        enough = held(telling) >= SPREAD
        return Finding(tuple(lines), self._telling(question, lines) if enough else None, question.text)

    @staticmethod
    def _fewest(group: Sequence[Hit], wanted: Wanted) -> list[Hit]:
        """The moments that hold what is wanted, no more than are needed."""
        left = dict(wanted)
        chosen: list[Hit] = []

        def brings(hit: Hit) -> float:
            return sum(concept.weight for place, concept in left.items() if hit.holds[place])

        while left and len(chosen) < TOLD:
            best = max(group, key=lambda hit: (brings(hit), hit.score), default=None)
            if best is None or not brings(best):
                break
            chosen.append(best)
            left = {place: concept for place, concept in left.items() if not best.holds[place]}
        return chosen

    def _chapters(self, question: Question) -> Finding:
        """What the timeline tells of longer stretches."""
        found = self._unbound(question, only_span=True)
        nodes = self._evidence.nodes_of(Level.CHAPTER, found.hits)
        wanted = self._wanted(question, found)
        with self._evidence.store.reading() as connection:
            shares = [self._share(connection, wanted, one.text, one.entities) for one in nodes]
        order = sorted(range(len(nodes)), key=lambda place: (-shares[place], place))
        best = [nodes[place] for place in order if shares[place] >= MATCHED][:1]
        return Finding(tuple(nodes[place] for place in order[:LISTED]), self._telling(question, best), question.text)

    def _facts(self, question: Question) -> Finding:
        """What is known of the people and things that are named, as it was known at the time of the question."""
        content = self._content(question)
        known = [fact for who in question.people for fact in self._known(entity=who)]
        known += [fact for label in question.labels for fact in self._known(label=label)]
        named = {part for thing in question.things for part in thing.word.split()} if not question.people else set()
        results: list[Result] = []
        said: list[str] = []
        with self._evidence.store.reading() as connection:
            asked = [set(index.tokens(connection, word)) for word in content if word.lower() not in named]
            for fact in known:
                terms = set(index.tokens(connection, fact.text))
                held = sum(bool(terms & one) for one in asked)
                grounds = self._evidence.of_ids(fact.sources) if asked and held >= MATCHED * len(asked) else []
                if grounds:
                    said.append(fact.sentence)
                    results += grounds
        results = list({one.id: one for one in results}.values())[:LISTED]
        answer = self._hold(question, " ".join(said[:TOLD]), results) if said else None
        return Finding(tuple(results), answer, question.text)

    def _known(self, *, entity: int | None = None, label: str | None = None) -> list[Fact]:
        at = self._evidence.at
        return known_facts(self._evidence.store, entity=entity, label=label, at=at, history=False, zone=self._zone)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _unbound(self, question: Question, *, only_span: bool = False) -> Found:
        """The best moments with anybody; in the span that is asked for, or in any."""
        where = index.Filter(self._store_user, before=self._evidence.at)
        return self._searcher.find(question, where, self._now, WIDE, only_span=only_span)

    def _wanted(self, question: Question, found: Found) -> Wanted:
        """The concepts that an answer has to hold, with their places: content words and people."""
        people = {index.entity_token(who) for who in question.people}
        with self._evidence.store.reading() as connection:
            asked = people | {term for word in self._content(question) for term in index.tokens(connection, word)}
        return [(place, concept) for place, concept in enumerate(found.concepts) if asked.intersection(concept.terms)]

    @staticmethod
    def _share(connection: apsw.Connection, wanted: Wanted, text: str, entities: Sequence[str]) -> float:
        """Which part of what is wanted, by weight, a text holds; those who take part in it count as named."""
        terms = set(index.tokens(connection, text))
        terms |= {index.entity_token(parse_id(who)[1]) for who in entities}
        held = sum(concept.weight for _, concept in wanted if terms.intersection(concept.terms))
        return held / (sum(concept.weight for _, concept in wanted) or 1.0)

    def _telling(self, question: Question, results: Sequence[Result]) -> Answer | None:
        if not results:
            return None
        said = [f"{sentence(self._say(one.start))[:-1]}: {sentence(one.text)}" for one in results[:TOLD]]
        if question.kind is QuestionKind.WHO and (
            people := list(dict.fromkeys(p for one in results for p in one.people))
        ):
            said.append(f"Those who took part: {', '.join(people)}.")
        return self._hold(question, " ".join(said), results)
