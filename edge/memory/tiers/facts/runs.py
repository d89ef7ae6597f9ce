"""What follows from what was said and counted, in the order of time: runs of what was so. Pure.

Invariants:

* Whatever order the statements and days came in, the runs are the same: they go by the time of what happened.
* In a slot that holds one thing (where somebody works, whether they like jazz) no two runs hold at one time: what is said later
  ends what was so before, which stays as dated history.
* A run names when it became known: nothing is known before what it rests on has been seen or said.
* Importance rises by w ← w + (1 − w)·γ with each confirmation (ReflectWorld-MM, Appendix C).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from edge.memory.tiers.facts.said import (
    BIRTHDAY,
    DISLIKES,
    FAVOURITE,
    HOME,
    JOB,
    LIKES,
    ONE_OF_A_KIND,
    ORIGIN,
    STUDIES,
    WORK,
    Stance,
    norm,
)

GAMMA: Final = 0.2  # ReflectWorld-MM, Appendix C
FIRST: Final = 0.5  # importance of what was seen or said once: halfway
ENOUGH: Final = 20  # confirmations after which importance does not change by more than 0.01

WINDOW: Final = 7  # latest days with a sighting by which a habit is judged: a week of them
DAYS: Final = 3  # different days that make a habit: two may be chance
USUAL: Final = 0.6  # share that makes something usual: clearly more often than not
OFTEN: Final = 0.3  # share of one's moments that makes company frequent: several people can have it
HOURS: Final = 3  # of the day that a habit spans
MONTH: Final = 28  # days by which a habit of weekdays is judged: four of each
WEEKDAYS: Final = 3  # weekdays of a habit at most: more is nearly every day
FIRMLY: Final = 0.8  # share of the days of a month that fall on these weekdays

PLACE, TIMES, ON_DAYS, COMPANY = "place", "hours", "weekdays", "company"
COUNTED: Final = (PLACE, TIMES, ON_DAYS, COMPANY)
NAME: Final = "name"
NOTED: Final = "noted"  # what a language model noted beside these kinds
_SINGLE: Final = frozenset((WORK, JOB, HOME, ORIGIN, BIRTHDAY, STUDIES)) | ONE_OF_A_KIND
_TASTES: Final = frozenset((LIKES, DISLIKES))

SEEN: Final = ""  # what a cell counts: moments in which the subject was
ON: Final = "@"  # with a surface: moments in which it was on that
WITH: Final = "+"  # with an entity: moments in which both were


@dataclass(frozen=True, slots=True)
class Statement:
    """Something that was said of a subject."""

    id: int
    at: float  # UTC POSIX seconds
    kind: str
    value: str
    stance: Stance
    text: str = ""  # a predicate that a language model wrote; empty: it follows from kind and value

    @property
    def content(self) -> tuple[str, str]:
        """The same for what says the same."""
        return self.kind, norm(self.value) if not self.text else norm(self.text)


@dataclass(frozen=True, slots=True)
class Run:
    """Something that was so for a time."""

    kind: str
    value: str
    start: float | None  # UTC POSIX seconds; None: of no time, or it is not known since when
    end: float | None  # UTC POSIX seconds from which it was so no more; None: it is so
    known: float  # UTC POSIX seconds at which this was known first
    support: int = 0  # confirmations
    text: str = ""  # as in `Statement`
    grounds: tuple[int, ...] = ()  # ids of statements, oldest first
    first: int = 0  # of what was counted: the first and the last day on which it held
    last: int = 0

    @property
    def importance(self) -> float:
        """From 0 to 1."""
        return importance(self.support)


def importance(support: int) -> float:
    """Of something that was confirmed so often."""
    return 1.0 - (1.0 - FIRST) * (1.0 - GAMMA) ** min(support, ENOUGH)


# -- what was said ----------------------------------------------------------------------------------------------------


def slot(kind: str, value: str) -> str:
    """What a statement is about: in one slot only one thing holds at a time."""
    if kind in _TASTES:
        return f"taste:{norm(value)}"
    if kind in _SINGLE or kind.startswith(FAVOURITE):
        return kind
    return f"{kind}:{norm(value)}"


def said_runs(statements: Iterable[Statement]) -> list[Run]:
    """The runs that follow from statements about one subject, in any order."""
    by_slot: dict[str, list[Statement]] = {}
    ends: list[Statement] = []  # "I quit my job", which names no value
    for one in sorted(statements, key=lambda one: (one.at, one.id)):
        if one.value or one.text:
            by_slot.setdefault(slot(one.kind, one.value or one.text), []).append(one)
        else:
            ends.append(one)
    for end in ends:
        by_slot.setdefault(end.kind, []).append(end)
    return [run for of in by_slot.values() for run in _runs(sorted(of, key=lambda one: (one.at, one.id)))]


def _runs(of: Sequence[Statement]) -> list[Run]:
    """The runs of one slot, in the order of time."""
    runs: list[Run] = []
    contents: list[tuple[str, str]] = []
    for one in of:
        now = len(runs) - 1 if runs and runs[-1].end is None else None
        same = now is not None and contents[now] == one.content
        if one.stance is Stance.IS:
            if now is not None and same:
                run = runs[now]
                runs[now] = replace(run, support=run.support + 1, grounds=(*run.grounds, one.id))
                continue
            if now is not None:
                runs[now] = replace(runs[now], end=one.at)
            runs.append(Run(one.kind, one.value, one.at, None, one.at, 0, one.text, (one.id,)))
            contents.append(one.content)
        elif now is not None and (same or not (one.value or one.text)):
            runs[now] = replace(runs[now], end=one.at, grounds=(*runs[now].grounds, one.id))
        elif one.stance is Stance.WAS and one.content not in contents:
            before = [at for at, run in enumerate(runs) if run.end is None]  # what is so stays the last
            place = before[0] if before else len(runs)
            runs.insert(place, Run(one.kind, one.value, None, one.at, one.at, 0, one.text, (one.id,)))
            contents.insert(place, one.content)
    return runs


# -- what was counted -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Day:
    """What was counted of a subject on one day."""

    number: int  # days since 1970-01-01 on the clock of the memory
    cells: Mapping[tuple[int, int, str], int] = field(
        default_factory=dict
    )  # (camera, hour of the day, what) -> moments

    def count(self, wanted: Callable[[int, int, str], bool]) -> int:
        """Moments in the cells that are wanted."""
        return sum(moments for cell, moments in self.cells.items() if wanted(*cell))


Habits = dict[tuple[str, str], int]  # (kind, value) -> the first day of the window that shows it


def habits(
    week: Sequence[Day], month: Sequence[int], *, person: bool, before: Collection[tuple[str, str]] = ()
) -> Habits:
    """What is usual at the end of the last of these days.

    Args:
        week: the latest `WINDOW` days with a sighting, in order.
        month: the days with a sighting among the last `MONTH`, in order.
        person: whether the subject is somebody; of things only their places count.
        before: what was usual the day before: hours stay what they were as long as they fit.
    """
    if len(week) < DAYS:
        return {}
    if not person:
        return _places(week, by_surface=True)
    return {**_places(week, by_surface=False), **_hours(week, before), **_company(week), **_weekdays(month)}


def _places(week: Sequence[Day], *, by_surface: bool) -> Habits:
    """The camera (and for things, the surface) where most moments are."""
    moments: Counter[str] = Counter()
    days: dict[str, set[int]] = {}
    for day in week:
        here: Counter[str] = Counter()
        for (camera, _, what), number in day.cells.items():
            if what == SEEN:
                here[str(camera)] += number
            elif by_surface and what.startswith(ON):
                here[f"{camera}{what}"] += number
                here[str(camera)] -= number
        for where, number in here.items():
            if number > 0:
                moments[where] += number
                days.setdefault(where, set()).add(day.number)
    if not moments:
        return {}
    place = min(moments, key=lambda one: (-moments[one], one))
    if moments[place] < USUAL * moments.total() or len(days[place]) < DAYS:
        return {}
    return {(PLACE, place): min(days[place])}


def _hours(week: Sequence[Day], before: Collection[tuple[str, str]]) -> Habits:
    """The hours of the day in which they are seen on most days, and hardly at others."""
    cells = {(day.number, hour) for day in week for _, hour, what in day.cells if what == SEEN}

    def fit(begin: int) -> tuple[int, int, int]:
        """On how many days, in how many hours; and how far its middle is from them."""
        inside = [(day, hour) for day, hour in cells if begin <= hour < begin + HOURS]
        return len({day for day, _ in inside}), len(inside), -abs(sum(hour - begin - HOURS // 2 for _, hour in inside))

    def usual(begin: int) -> bool:
        days, hours, _ = fit(begin)
        return days >= max(DAYS, USUAL * len(week)) and hours >= USUAL * len(cells)

    known = [int(value) for kind, value in before if kind == TIMES]
    best = max(range(24 - HOURS + 1), key=lambda begin: (fit(begin), -begin))
    for begin in (*known, best):
        if usual(begin):
            return {(TIMES, str(begin)): min(day for day, hour in cells if begin <= hour < begin + HOURS)}
    return {}


def _company(week: Sequence[Day]) -> Habits:
    """Who is there in many of their moments."""
    everything = sum(day.count(lambda _camera, _hour, what: what == SEEN) for day in week)
    moments: Counter[str] = Counter()
    days: dict[str, set[int]] = {}
    for day in week:
        for (_, _, what), number in day.cells.items():
            if what.startswith(WITH):
                moments[what[1:]] += number
                days.setdefault(what[1:], set()).add(day.number)
    return {
        (COMPANY, who): min(days[who])
        for who, number in moments.items()
        if number >= OFTEN * everything and len(days[who]) >= DAYS
    }


def _weekdays(month: Sequence[int]) -> Habits:
    """The weekdays on which they are seen, where these are few."""
    by_weekday: dict[int, list[int]] = {}
    for day in month:
        by_weekday.setdefault((day + 3) % 7, []).append(day)  # 1970-01-01 was a Thursday; Monday is 0
    usual = sorted(one for one, days in by_weekday.items() if len(days) >= DAYS)
    on_them = sum(len(by_weekday[one]) for one in usual)
    if not 0 < len(usual) <= WEEKDAYS or on_them < FIRMLY * len(month):
        return {}
    return {(ON_DAYS, ",".join(map(str, usual))): min(by_weekday[one][0] for one in usual)}


def habit_runs(
    before: Sequence[Day],
    days: Sequence[Day],
    open_runs: Mapping[tuple[str, str], Run],
    *,
    person: bool,
    begin: Callable[[int], float],
) -> list[Run]:
    """What was usual for how long.

    Args:
        before: the days with a sighting before those to look at, in order: at least the last `MONTH` days and `WINDOW` of them.
        days: those to look at, in order.
        open_runs: what was usual at the end of the last day of `before`, as it was known then: with no end.
        person: as in `habits`.
        begin: UTC POSIX seconds at which a day begins.

    Returns:
        The open runs, as they went on, and those that began.
    """
    everything = [*before, *days]
    now = dict(open_runs)
    done: list[Run] = []
    for place in range(len(before), len(everything)):
        day = everything[place].number
        week = everything[max(0, place + 1 - WINDOW) : place + 1]
        month = [one.number for one in everything[max(0, place + 1 - MONTH) : place + 1] if one.number > day - MONTH]
        usual = habits(week, month, person=person, before=tuple(now))
        known = begin(day + 1)  # when the day is over
        done += [replace(run, end=known) for key, run in now.items() if key not in usual]
        now = {key: run for key, run in now.items() if key in usual}
        for key, since in usual.items():
            run = now.get(key)
            if run is None:
                now[key] = Run(*key, begin(since), None, known, 0, first=day, last=day)
            else:
                now[key] = replace(run, support=run.support + 1, last=day)
    return [*done, *now.values()]
