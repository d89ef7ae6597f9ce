"""The loop: the first pass, then a few looks further while there is no answer and there is time.

Invariants:

* At most `MOST_ROUNDS` rounds, the first pass among them; none begins after the deadline.
* Experience chooses among looks and never reaches what is answered: it has no words (`reflection.bank`), and who answers is given
  nothing but what was found in the memory.
* A negative that follows from rows (nobody was there, none was seen) is an answer; only what is told in words is looked for
  further, and only in words that the memory has.
* Every answer cites what it was drawn from; an answer of a model that cites nothing that was found is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from edge.clock import monotonic
from edge.memory.tiers.experience import Experience
from edge.recall.agent.looks import WORDS, Finding, Looks
from edge.recall.agent.model import Guide
from edge.recall.agent.policy import next_move
from edge.recall.question.understand import Question, QuestionKind
from edge.recall.records import Answer, Look, Result
from edge.recall.reflection import Move, Probe, Repair, Signal, Trajectory, advise, contradiction, shape_of
from edge.recall.reflection.bank import as_route
from edge.recall.reflection.signals import nothing_new
from edge.types.records import Kind, public_id

MOST_ROUNDS: Final = 5  # WorldMM and M3-Agent: more brought nothing
_LEAST_S: Final = 0.01  # with less left no look begins


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one question may go."""

    rounds: int  # at most, the first pass among them
    until: float  # monotonic seconds
    deep: bool = False  # go on although the first pass is sure

    def left(self) -> float:
        """Seconds."""
        return self.until - monotonic()


@dataclass(slots=True)
class _Course:
    """Where one question is now."""

    question: Question
    shape: frozenset[str]
    probe: Probe
    signal: Signal
    left: list[Move]  # moves that can still be made
    said: str = ""  # how the question was put another way


class Agent:
    """Answers one question."""

    def __init__(
        self,
        looks: Looks,
        experience: Callable[[Signal], Sequence[Experience]],
        guide: Guide | None,
        limits: Limits,
    ) -> None:
        """Prepare.

        Args:
            looks: the ways to look.
            experience: what was learned about a signal.
            guide: the language model's part; None: there is none.
            limits: of this question.
        """
        self._looks = looks
        self._experience = experience
        self._guide = guide
        self._limits = limits
        self._trail: list[Look] = []
        self._steps: list[tuple[Signal, Move]] = []
        self._seen: dict[str, Result] = {}
        self._notes: list[str] = []

    def answer(self, question: Question) -> Answer:
        """Answer it."""
        shape = shape_of(question)
        first = self._looks.reflex(question)
        self._take(first.evidence)
        signal = self._signal(question, first, shape)
        if signal is Signal.FITS or (not self._open(question) and not self._limits.deep):
            return self._done(first, question, shape, Signal.FITS, Move.REFLEX)
        probe = self._looks.probe(question)
        course = _Course(
            question, shape, probe, signal if first.found else probe.signal, self._possible(question, probe)
        )
        found, by = self._further(course) or (first, Move.REFLEX)
        if by is Move.REFLEX:
            found = replace(found, notes=(*found.notes, *self._notes))
        return self._done(found, question, shape, course.signal, by)

    # -- the first pass ------------------------------------------------------------------------------------------------

    def _signal(self, question: Question, first: Answer, shape: frozenset[str]) -> Signal:
        """Whether it is to be trusted."""
        if not first.found:
            return Signal.FAR  # until it is probed
        if contradiction([one.text for one in first.evidence]) is not None:
            return Signal.CONTRADICTION
        if self._limits.deep:
            return Signal.UNSURE
        distrust = advise(self._experience(Signal.FITS), shape, Signal.FITS, ()).distrust
        return Signal.UNSURE if distrust and self._open(question) else Signal.FITS

    def _open(self, question: Question) -> bool:
        """Whether there is anything to look for in words."""
        return bool(self._looks.content(question)) and question.kind not in (QuestionKind.EXISTS, QuestionKind.COUNT)

    # -- further rounds ------------------------------------------------------------------------------------------------

    def _further(self, course: _Course) -> tuple[Answer, Move] | None:
        """An answer and the move that brought it; None: there is none.

        Without `deep` the first further look is the policy's, which takes milliseconds; then the model's turn comes.
        """
        guide = self._guide
        if guide is None:
            return self._by_policy(course, self._limits.rounds)
        if not self._limits.deep:
            found = self._by_policy(course, 1)
            if found is not None:
                return found
        found = self._by_model(course, guide)
        if found is None and not guide.willing():  # it refused
            found = self._by_policy(course, self._limits.rounds)
        return found

    def _by_policy(self, course: _Course, looks: int) -> tuple[Answer, Move] | None:
        while looks > 0 and self._more():
            looks -= 1
            learned = self._experience(course.signal)
            advice = next_move(learned, course.shape, course.signal, course.left, len(self._steps))
            move = advice.first
            if move is Move.STOP:
                break
            course.left.remove(move)
            finding = self._looks.look(move, course.question, course.probe)
            answer = self._checked(course.question, finding)
            why = f"{_WHY[course.signal]}{' Such questions were answered so.' if advice.known else ''}"
            self._note(course.signal, move, finding, why, helped=answer is not None)
            if answer is not None:
                return replace(answer, text=f"{course.said} {answer.text}".strip()), move
            if move is Move.REWORD and finding.repair is not None:  # what is asked is known now: look for that
                self._turn(course, finding.repair)
        return None

    def _turn(self, course: _Course, repair: Repair) -> None:
        """Go on from a question that was put another way."""
        course.question, course.said = repair.question, repair.said
        course.probe = self._looks.probe(course.question)
        course.signal = course.probe.signal
        made = {move for _, move in self._steps}
        course.left = [move for move in self._possible(course.question, course.probe) if move not in made]

    def _by_model(self, course: _Course, guide: Guide) -> tuple[Answer, Move] | None:
        """Look where a language model chooses, and answer from what was found, which is another request."""
        last = Move.REFLEX
        learned = self._experience(course.signal)
        while self._more():
            order = next_move(learned, course.shape, course.signal, course.left, len(self._steps)).order
            choice = guide.choose(course.question, self._found(), order, self._trail, self._limits.left())
            if choice is None or choice.move is Move.STOP:
                break
            last = choice.move
            finding = self._looks.gather(last, choice.query or course.question.text, course.question)
            self._note(course.signal, last, finding, choice.why, helped=False)
        told = guide.respond(course.question, self._found(), self._limits.left())
        if told is None:
            return None
        said = self._looks.said(course.question, told.text, told.results)
        answer = self._checked(course.question, Finding(told.results, said, ""))
        if answer is None:
            return None
        if self._trail:
            self._trail[-1] = replace(self._trail[-1], helped=True)
        return replace(answer, notes=(*answer.notes, f"In the words of {guide.name}.")), last

    def _checked(self, question: Question, finding: Finding) -> Answer | None:
        """The answer of a look, unless its picture says otherwise."""
        answer = finding.answer
        if answer is None or self._guide is None or answer.key_frame is None or question.kind is QuestionKind.SAID:
            return answer
        jpeg = self._looks.picture_of(answer.key_frame)
        agrees = self._guide.verify(question, answer.text, jpeg, self._limits.left())
        if agrees is False:
            self._notes.append(f"“{answer.text[:80]}” was dropped: the picture {answer.key_frame} does not show it.")
            return None
        return replace(answer, notes=(*answer.notes, f"The picture {answer.key_frame} agrees.")) if agrees else answer

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _possible(self, question: Question, probe: Probe) -> list[Move]:
        beyond = [move for move in Move if move not in (Move.REFLEX, Move.STOP)]
        return [move for move in beyond if self._looks.can(move, question, probe)]

    def _more(self) -> bool:
        """Whether another look may begin."""
        return 1 + len(self._steps) < min(self._limits.rounds, MOST_ROUNDS) and self._limits.left() > _LEAST_S

    def _found(self) -> tuple[Result, ...]:
        return tuple(self._seen.values())

    def _take(self, results: Sequence[Result]) -> int:
        """Keep what was brought; how much of it is new."""
        if nothing_new((one.id for one in results), self._seen):
            return 0
        before = len(self._seen)
        for one in results:
            self._seen.setdefault(one.id, one)
        return len(self._seen) - before

    def _note(self, signal: Signal, move: Move, finding: Finding, why: str, *, helped: bool) -> None:
        self._steps.append((signal, move))
        brought = self._take(finding.results)
        self._trail.append(Look(move.value, finding.query or WORDS[move], why, brought, helped))

    def _done(
        self, answer: Answer, question: Question, shape: frozenset[str], signal: Signal, by: Move | None
    ) -> Answer:
        went = Trajectory(shape, signal, tuple(self._steps), by if answer.found else None, good=True)
        return _told(replace(answer, rounds=1 + len(self._steps), looks=tuple(self._trail)), question, went)


def first_only(question: Question, answer: Answer) -> Answer:
    """An answer of the first pass as it is kept."""
    went = Trajectory(shape_of(question), Signal.FITS, (), Move.REFLEX if answer.found else None, good=True)
    return _told(answer, question, went)


def _told(answer: Answer, question: Question, went: Trajectory) -> Answer:
    about = tuple(public_id(Kind.ENTITY, who) for who in question.people)
    return replace(answer, about=about, route=as_route(went))


_WHY: Final = {
    Signal.FITS: "There is an answer.",
    Signal.UNSURE: "The first answer is looked at again.",
    Signal.CONTRADICTION: "What was found does not agree with itself.",
    Signal.UNKNOWN: "A word of the question occurs nowhere.",
    Signal.OUTSIDE: "It is there, but not at that time.",
    Signal.APART: "It is there, but not with these people.",
    Signal.PART: "Only parts of it were found.",
    Signal.FAR: "Nothing near was found.",
    Signal.STALE: "Nothing new was found.",
}
