"""How often things are so in front of a camera: days counted hour by hour, and what happens on most of them. Pure.

Whether something is so at an hour of a day is one trial for each day on which the camera was watching then. A day with less
than an hour of watching counts in part, one on which it was so counts whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from edge.types.vocabulary import ANIMALS, VEHICLES

HOURS: Final = 24
WINDOW: Final = 56  # days that a baseline looks back on: eight weeks
FULL_S: Final = 3600.0  # s of watching from which a day counts whole
USUAL: Final = 0.95  # probability that something happens on more than half of the days, from which it is usual

SEEN: Final = "seen:"  # a class of the detector
TOLD: Final = "told:"  # a class of the detector that the words of a described segment speak of
PLACE: Final = "place:"  # a kind of place that the words speak of
PERSON: Final = f"{SEEN}person"
SPEECH: Final = "speech"
MOTION: Final = "motion"
LIVELY: Final = frozenset({PERSON, SPEECH, MOTION, *(SEEN + one for one in (*ANIMALS, *VEHICLES))})  # comes and goes


class Days(StrEnum):
    """Which days are compared."""

    ALL = "all"
    WORKING = "working"  # Monday to Friday
    WEEKEND = "weekend"
    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"

    def has(self, day: int) -> bool:
        """Whether a day (since 1970-01-01) is one."""
        return weekday(day) in _WEEKDAYS[self]


_WEEKDAYS: Final = {
    Days.ALL: frozenset(range(7)),
    Days.WORKING: frozenset(range(5)),
    Days.WEEKEND: frozenset({5, 6}),
    **{day: frozenset({place}) for place, day in enumerate(list(Days)[3:])},
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What was so in one hour."""

    traces: int  # moments in which it was
    most: int  # of it at once
    first: int  # id of the first of these moments
    at: float  # UTC POSIX seconds at which that began


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour of a camera."""

    watched: float  # s
    cells: Mapping[str, Cell]
    traces: int = 0  # moments that begin in it


Slots = Mapping[int, Hour]  # hours since 1970 on the clock of the memory -> what is known of them


@dataclass(frozen=True, slots=True)
class Routine:
    """Something that happens on most days."""

    what: str
    first: int  # hour of the day
    last: int  # hour of the day, included
    seen: int  # days on which it was so within these hours
    days: int  # days on which the camera was watching then
    usual: float  # of it at once on such a day, on average
    among: Days = Days.ALL


def weekday(day: int) -> int:
    """Of a day since 1970-01-01; Monday is 0."""
    return (day + 3) % 7


def trial(slots: Slots, window: Iterable[int], what: str) -> tuple[float, int, float]:
    """One day: how much of a trial it is (0..1), the most of it at once (0: it was not so), and s watched."""
    watched, most = 0.0, 0
    for slot in window:
        hour = slots.get(slot)
        if hour is not None:
            watched += hour.watched
            cell = hour.cells.get(what)
            if cell is not None:
                most = max(most, cell.most, 1)
    return (1.0 if most else min(1.0, watched / FULL_S)), most, watched


def routines(slots: Slots, day: int) -> list[Routine]:
    """What comes and goes on most days, by hours, from the `WINDOW` days before `day`.

    On all days, or else on working days or weekends, or else on one day of the week.
    """
    found: list[Routine] = []
    for what in sorted({what for hour in slots.values() for what in hour.cells if what in LIVELY}):
        covered: set[tuple[int, int]] = set()  # weekday and hour
        for among in Days:
            for run in runs(slots, what, day, among):
                told = {(one, hour) for one in _WEEKDAYS[among] for hour in range(run.first, run.last + 1)}
                if not told <= covered:
                    found.append(run)
                    covered |= told
    return found


def things(slots: Slots, day: int) -> list[tuple[str, int, int]]:
    """What is seen on most days at any hour, with on how many of how many days; the most often seen first."""
    whats = sorted({what for hour in slots.values() for what in hour.cells if what.startswith(SEEN)} - {PERSON})
    found = [(what, *share(slots, what, range(HOURS), day)[:2]) for what in whats]
    return sorted((one for one in found if usually(one[1], one[2])), key=lambda one: (-one[1], one[0]))


def share(slots: Slots, what: str, hours: Iterable[int], day: int, among: Days = Days.ALL) -> tuple[int, int, float]:
    """On how many of the days before `day` something was so within some hours of the day, of how many, and how much of it."""
    hours = tuple(hours)
    seen, watched, total = 0, 0.0, 0
    for back in range(1, WINDOW + 1):
        if among.has(day - back):
            counted, most, _ = trial(slots, ((day - back) * HOURS + hour for hour in hours), what)
            watched += counted
            seen += bool(most)
            total += most
    return seen, max(seen, round(watched)), total / seen if seen else 0.0


def usually(seen: int, days: int) -> bool:
    """Whether something that was so on `seen` of `days` days is so on most days: P(rate > ½) ≥ `USUAL`, flat prior."""
    return days > 0 and sum(math.comb(days + 1, i) for i in range(seen + 1)) >= USUAL * 2 ** (days + 1)


def runs(slots: Slots, what: str, day: int, among: Days) -> list[Routine]:
    """The hours of the day through which something is so on most of some days before `day`."""
    usual = [usually(*share(slots, what, (hour,), day, among)[:2]) for hour in range(HOURS)]
    found = []
    first: int | None = None
    for hour in range(HOURS + 1):
        if hour < HOURS and usual[hour]:
            first = hour if first is None else first
        elif first is not None:
            seen, days, count = share(slots, what, range(first, hour), day, among)
            found.append(Routine(what, first, hour - 1, seen, days, count, among))
            first = None
    return found
