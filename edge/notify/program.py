"""What a rule means: conditions over what is seen, said and not seen, the hours that they hold in, and when time fires."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Who(StrEnum):
    """What kind of subject a condition speaks of."""

    NAMED = "named"  # somebody by name
    ANYBODY = "anybody"
    STRANGER = "stranger"  # somebody whom the memory does not know
    ME = "me"  # whoever wears the camera
    THING = "thing"


@dataclass(frozen=True, slots=True)
class Subject:
    """Who or what a condition speaks of."""

    who: Who
    words: str  # as said, without its article: "dog", "Anna", "washing machine"
    labels: tuple[str, ...] = ()  # classes of the detector, of a thing


@dataclass(frozen=True, slots=True)
class Place:
    """How the subject is to something else."""

    relation: str  # on, in, at, near, with, holding
    words: str  # "sofa"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """The subject is seen, at a place if one is given."""

    subject: Subject
    place: Place | None = None


class Way(StrEnum):
    """How somebody moves."""

    COMES = "comes"
    LEAVES = "leaves"


@dataclass(frozen=True, slots=True)
class Moves:
    """The subject comes or leaves."""

    subject: Subject
    way: Way


@dataclass(frozen=True, slots=True)
class Said:
    """Some words are said, by the subject if one is given."""

    words: tuple[str, ...]  # all of them in one utterance
    speaker: Subject | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """Something was not seen by an hour of the day, or for a time."""

    what: Seen
    by: float | None = None  # local hour of the day, 0..24
    for_s: float | None = None  # s


@dataclass(frozen=True, slots=True)
class Unusual:
    """Something is out of the ordinary, at a place if one is given."""

    place: str | None = None  # "kitchen"


Condition = Seen | Moves | Said | Absent | Unusual


@dataclass(frozen=True, slots=True)
class Hours:
    """When a rule holds, in local time."""

    start: float = 0.0  # hour of the day
    end: float = 24.0  # after 24: of the next day
    days: frozenset[int] = frozenset(range(7))  # Monday is 0

    def hold(self, weekday: int, hour: float) -> bool:
        """Whether a moment lies in them."""
        if weekday in self.days and self.start <= hour < self.end:
            return True
        return (weekday - 1) % 7 in self.days and self.start <= hour + 24 < self.end


@dataclass(frozen=True, slots=True)
class Repeat:
    """Time fires again and again."""

    hour: float | None = None  # local hour of the day; None: after `every_s`
    days: frozenset[int] = frozenset(range(7))
    every_s: float | None = None


@dataclass(frozen=True, slots=True)
class Alert:
    """Tell me when."""

    condition: Condition
    hours: Hours = field(default_factory=Hours)


@dataclass(frozen=True, slots=True)
class Reminder:
    """Remind me of something, at a time or when something is seen."""

    what: str
    due: float | None = None  # UTC POSIX seconds of the first time
    repeat: Repeat | None = None
    condition: Condition | None = None
    hours: Hours = field(default_factory=Hours)


@dataclass(frozen=True, slots=True)
class Quiet:
    """Send nothing in these hours."""

    hours: Hours


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep something that the owner says."""

    what: str


Program = Alert | Reminder | Quiet
