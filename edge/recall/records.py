"""What recall gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edge.recall.answer.portrait import Fact
from edge.recall.question.understand import QuestionKind
from edge.types.records import EntityKind


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
    thing: str | None = None  # "cup": seen by a detector, or named in what is told or said
    place: str | None = None  # "kitchen": what the camera looks at, or named
    important: bool = False  # somebody with a name, something to remember, or what a message rests on


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
class Time:
    """A time at which something was so."""

    start: float  # UTC POSIX seconds
    end: float
    moments: int
    first: str  # id of its first moment
    last: str


@dataclass(frozen=True, slots=True)
class Count:
    """How often something was so."""

    times: int  # moments that follow each other are one
    moments: int
    days: int  # of the device's calendar
    seconds: float
    first: Time | None
    last: Time | None


@dataclass(frozen=True, slots=True)
class Company:
    """Somebody whom somebody else was seen with."""

    id: str
    title: str
    moments: int


@dataclass(frozen=True, slots=True)
class Person:
    """Who somebody is, as far as the memory knows."""

    id: str  # p3
    title: str
    kind: EntityKind
    first_seen: float  # UTC POSIX seconds
    last_seen: float
    last_moment: str  # id of the moment in which they were last seen or heard
    moments: int
    facts: tuple[Fact, ...]  # what is so
    company: tuple[Company, ...]  # whom they are with most


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
