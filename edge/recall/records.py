"""What recall gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edge.recall.question.understand import QuestionKind


class Level(StrEnum):
    """What a search looks for."""

    TRACE = "trace"
    LINE = "line"
    UTTERANCE = "utterance"
    OBSERVATION = "observation"
    PERSON = "person"
    EVENT = "event"
    CHAPTER = "chapter"
    PART = "part"
    DAY = "day"
    WEEK = "week"
    SEASON = "season"
    ERA = "era"
    AGE = "age"


@dataclass(frozen=True, slots=True)
class Filters:
    """What the caller lets a search look at, in the caller's words."""

    since: float | None = None  # UTC POSIX seconds: what ended after it
    until: float | None = None  # what started before it
    camera: str | None = None
    person: str | None = None  # a name, "person 3" or an id such as p3


@dataclass(frozen=True, slots=True)
class Result:
    """One thing that was found, of any level."""

    id: str  # t12, u9, o7, p3, n2; a line: its trace's id
    level: Level
    start: float  # UTC POSIX seconds
    end: float
    score: float
    text: str
    camera: str
    trace: str  # id of the trace it belongs to; of a node of the timeline, the first in it
    entities: tuple[str, ...] = ()  # ids of who takes part
    people: tuple[str, ...] = ()  # their titles
    key_frame: str | None = None  # id of a picture of it


@dataclass(frozen=True, slots=True)
class Look:
    """One round beyond the first pass: where was looked, and what that brought."""

    memory: str  # the move (`reflection.Move`)
    query: str  # that was put
    why: str  # one sentence
    brought: int  # moments that were not found before
    helped: bool  # whether the answer came from it


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and what it rests on."""

    question: str
    kind: QuestionKind
    text: str
    found: bool  # False: the memory does not hold it
    start: float | None = None  # UTC POSIX seconds of the evidence
    end: float | None = None
    people: tuple[str, ...] = ()  # titles of who takes part in it
    camera: str | None = None
    key_frame: str | None = None  # id of a picture
    cited: tuple[str, ...] = ()  # ids of what it was drawn from, the most telling first
    evidence: tuple[Result, ...] = ()
    notes: tuple[str, ...] = ()  # what limits the answer
    understood: str | None = None  # the question, when it was found among other text
    silent: bool = False  # it was talk that asks nothing, and should not be answered aloud
    rounds: int = 1
    id: str | None = None  # by which it can be judged; None: it is not kept
    looks: tuple[Look, ...] = ()  # what was looked at after the first pass
    about: tuple[str, ...] = ()  # ids of the people whom the question names
    route: Mapping[str, object] = field(default_factory=dict, compare=False)  # what is learned from (`reflection.bank`)
    milliseconds: float = field(default=0.0, compare=False)
