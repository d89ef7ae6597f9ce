"""The language model's part: choosing where to look, answering from what was found, and checking an answer against its picture.

Choosing and answering are two requests that share nothing but what was found (WorldMM: a retrieval agent and a response
agent). Both are forms of JSON, so that any backend will do. Names that the owner gave stand as mentions in what is sent
(ADR 3), and are put in again in what comes back. What a model refuses or cannot do is given up for this question; what it
answers counts only as far as it cites what was found and adds no number to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final, Literal, TypeVar

from pydantic import BaseModel, Field

from edge.clock import to_local
from edge.reason import Budget, Message, Reasoner, Refusal, Request, load_prompt
from edge.recall.agent.looks import WORDS
from edge.recall.answer.phrases import sentence
from edge.recall.question.understand import Question
from edge.recall.records import Look, Result
from edge.recall.reflection import Move
from edge.types.records import mention, mentioned, render

SHOWN: Final = 16  # results that a model is given: 12 and 4 in Light-Omni (A.2)
_LONGEST: Final = 320  # characters of each
_ANSWER: Final = 600  # characters of an answer
_TOKENS: Final = 200
_LEAST_S: Final = 1.0  # with less left nothing is asked
_NUMBER: Final = re.compile(r"\d+")
_NUMBERED: Final = re.compile(r"(?:person|voice) \d+")
_FOR_MODELS: Final[Mapping[Move, str]] = {
    **{move: words for move, words in WORDS.items() if move not in (Move.REFLEX, Move.STOP)},
    Move.REWORD: "moments, by other words",
    Move.ANYONE: "moments, whoever is in them",
    Move.WIDEN: "moments, at any time",
}


class _Next(BaseModel):
    action: Literal["look", "answer", "stop"]
    memory: str = Field("", max_length=40)
    query: str = Field("", max_length=400)
    why: str = Field("", max_length=300)


class _Told(BaseModel):
    answer: str = Field(max_length=2000)
    cited: list[str] = Field(max_length=40)
    sure: bool


class _Checked(BaseModel):
    agrees: Literal["yes", "no", "cannot_tell"]
    because: str = Field("", max_length=400)


_Form = TypeVar("_Form", _Next, _Told)


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a model wants to look."""

    move: Move  # STOP: nowhere
    query: str
    why: str


@dataclass(frozen=True, slots=True)
class Told:
    """What a model answered."""

    text: str  # with titles
    results: tuple[Result, ...]  # that it cites, of those it was given


class Guide:
    """One language model for one question."""

    def __init__(self, reasoner: Reasoner, titles: Mapping[int, str], now: float, zone: tzinfo | None) -> None:
        """Prepare.

        Args:
            reasoner: that asks it.
            titles: of everybody.
            now: UTC POSIX seconds of the present of the question.
            zone: whose calendar counts; None: the device's.
        """
        self._reasoner = reasoner
        self._titles = titles
        self._now = f"{to_local(now, zone):%A, %d %B %Y, %H:%M}"
        self._zone = zone
        self._willing = reasoner.configured
        self._sees = reasoner.configured
        self.refusals: list[str] = []
        names = {title: who for who, title in titles.items() if not _NUMBERED.fullmatch(title)}
        longest_first = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self._names = names
        self._pattern = re.compile(rf"(?<![^\W_])({longest_first})(?![^\W_])") if names else None

    def willing(self) -> bool:
        """Whether it is worth asking for this question: there is one, and it has refused nothing yet."""
        return self._willing

    @property
    def name(self) -> str:
        """What it is, for people."""
        return self._reasoner.name

    def choose(
        self, question: Question, found: Sequence[Result], left: Sequence[Move], looks: Sequence[Look], seconds: float
    ) -> Choice | None:
        """Where to look next; None: it says nothing of use."""
        offered = {move: words for move, words in _FOR_MODELS.items() if move in left or move is Move.REWORD}
        listed = [move for move in (*left, Move.REWORD) if move in offered]
        messages = load_prompt("look").fill(
            now=self._now,
            question=self.hidden(question.text),
            memories="\n".join(f"- {move.value}: {offered[move]}" for move in dict.fromkeys(listed)),
            looks="\n".join(self._told_look(look) for look in looks) or "(nothing)",
            found=self._listed(found) or "(nothing)",
        )
        answer = self._ask(Request("recall-look", messages, _Next, Budget(tokens=_TOKENS), seconds))
        if answer is None:
            return None
        if answer.action != "look":
            return Choice(Move.STOP, "", answer.why)
        memory = next((move for move in offered if move.value == answer.memory.strip().lower()), Move.REWORD)
        return Choice(memory, self.shown(answer.query), sentence(self.shown(answer.why)[:200]) or "The model wants it.")

    def respond(self, question: Question, found: Sequence[Result], seconds: float) -> Told | None:
        """Answer from what was found, and from nothing else; None: it cannot."""
        given = found[-SHOWN:]
        if not given:
            return None
        messages = load_prompt("respond").fill(
            now=self._now, question=self.hidden(question.text), found=self._listed(given)
        )
        answer = self._ask(Request("recall-answer", messages, _Told, Budget(tokens=2 * _TOKENS), seconds))
        if answer is None or not answer.sure:
            return None
        wanted = {item.strip().strip("[]").lower() for item in answer.cited}
        results = tuple(one for one in given if one.id in wanted)
        if not results:
            self._reasoner.drop("recall-answer", {"uncited": 1})
            return None
        text = " ".join(answer.answer.split())[:_ANSWER]
        ground = " ".join((*(self._line(one) for one in results), question.text, self._now))
        # {{3}} in the text are numbers, too: they are looked at as mentions.
        plain = render(text, lambda _: "X")
        if not text or not set(_NUMBER.findall(plain)) <= set(_NUMBER.findall(ground)):
            self._reasoner.drop("recall-answer", {"unknown_number": 1})
            return None
        if not set(mentioned(text)) <= set(self._titles) or "{" in plain:
            self._reasoner.drop("recall-answer", {"unknown_person": 1})
            return None
        return Told(sentence(self.shown(text)), results)

    def verify(self, question: Question, statement: str, jpeg: bytes | None, seconds: float) -> bool | None:
        """Whether a picture agrees with a statement; None: it cannot be told, or nobody may or can look at it."""
        if jpeg is None or not self._sees or not self._willing:
            return None
        system, user = load_prompt("verify").fill(
            question=self.hidden(question.text), statement=self.hidden(statement)[:_ANSWER]
        )
        request = Request(
            "recall-picture", (system, Message("user", user.text, (jpeg,))), _Checked, Budget(tokens=_TOKENS), seconds
        )
        if seconds < _LEAST_S:
            return None
        answer = self._reasoner.ask(request)
        if isinstance(answer, Refusal):
            self._sees = False  # whatever is asked in words may go well all the same
            self.refusals.append(str(answer))
            return None
        return {"yes": True, "no": False}.get(answer.agrees)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def hidden(self, text: str) -> str:
        """A text with mentions in the place of names that the owner gave."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: mention(self._names[match[1]]), text)

    def shown(self, text: str) -> str:
        """A text with titles in the place of mentions."""
        return render(text, lambda who: self._titles.get(who, "someone"))

    def _ask(self, request: Request[_Form]) -> _Form | None:
        if request.seconds is not None and request.seconds < _LEAST_S:
            return None
        answer = self._reasoner.ask(request)
        if isinstance(answer, Refusal):
            self._willing = False
            self.refusals.append(str(answer))
            return None
        return answer

    def _listed(self, found: Sequence[Result]) -> str:
        return "\n".join(self.hidden(self._line(one)) for one in found[-SHOWN:])

    def _line(self, one: Result) -> str:
        when = f"{to_local(one.start, self._zone):%A %d %B %Y, %H:%M:%S}"
        return f"[{one.id}] {when}, {one.camera}: {' '.join(one.text.split())[:_LONGEST]}"

    def _told_look(self, look: Look) -> str:
        brought = f"{look.brought} new" if look.brought else "nothing new"
        return f"- {look.memory}: “{self.hidden(look.query)[:120]}” brought {brought}"
