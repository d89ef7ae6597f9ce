"""What is usual in front of a camera, and what is not: predictions from counts of days, hour by hour. Pure.

Whether something is so at an hour of a day is one trial for each day on which the camera was watching then; an hour to each
side is let through, because nobody gets up at the minute. With `seen` of `days` trials the chance of it today is
(seen + ½) / (days + 1) (Jeffreys' prior; Krichevsky & Trofimov 1981), so that little history never makes anything unlikely.
Working days and weekends are told apart as far as each has a history of its own: what all days say counts there as `PRIOR`
further days.

Invariants:

* Days before the day that is looked at decide, `WINDOW` of them; so whatever came in first, the same memory says the same.
* Nothing is unusual without `LEAST` days, and only what is expected less than once in `RARE` days.
* An hour is odd for something only where it is there at others, on so many days that this is no accident.
* What never was seen here counts only where new things are rare: how often a day brings something new is estimated by what
  was seen on one day only (Good 1953), so that a camera that moves about, or a doubtful detector, is not always surprised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from edge.memory.tiers.scene_days import (
    FULL_S,
    HOURS,
    LIVELY,
    MOTION,
    PERSON,
    SEEN,
    SPEECH,
    WINDOW,
    Cell,
    Days,
    Slots,
    trial,
)

LEAST: Final = 7.0  # days that it takes at least
RARE: Final = 30  # what is expected less than once in so many days is unusual
NEW: Final = 7  # something new is unusual where it is expected less than once in so many days
PRIOR: Final = 4.0  # days: what all days say, beside what the days of one kind say
_ACCIDENT: Final = 0.05  # chance of so few days at this hour by accident, above which the hour tells nothing
_WHOLE: Final = 0.9  # of the three hours that have to be watched before something is missed
_RESIDENTS: Final = (PERSON, f"{SEEN}cat", f"{SEEN}dog")  # whoever may be missed
_RANK: Final = {PERSON: 0, SPEECH: 2, MOTION: 3}  # what tells more comes first; everything else 1


class Oddity(StrEnum):
    """In which way something is unusual."""

    UNEXPECTED = "unexpected"  # at an hour at which it hardly ever is so
    NEW = "new"  # never seen here
    MORE = "more"  # more of it at once than ever
    MISSING = "missing"  # always there at this hour, and not today


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something unusual on one day."""

    kind: Oddity
    what: str
    first: int  # hour (slot)
    last: int  # hour (slot), the same or later on that day
    trace: int | None  # id of the first moment of it; None: of what is missing
    at: float | None  # UTC POSIX seconds of that moment
    count: int  # of it at once
    seen: int  # days before on which it was so
    days: float  # days before on which it could have been seen
    usual: float  # of it at once on a day with it, on average
    chance: float  # of it on such a day
    among: Days = Days.ALL  # which days these are
    also: tuple[str, ...] = ()  # what else is unusual, and is explained by it


# -- counting days ------------------------------------------------------------------------------------------------------


def _around(slot: int) -> range:
    return range(slot - 1, slot + 2)


@dataclass(frozen=True, slots=True)
class _History:
    """Trials of one thing at one hour of the day."""

    seen: int
    days: float
    counts: tuple[int, ...]  # of it at once, of each day with it

    @property
    def chance(self) -> float:
        return (self.seen + 0.5) / (self.days + 1.0)

    @property
    def usual(self) -> float:
        return sum(self.counts) / len(self.counts) if self.counts else 0.0


def _history(slots: Slots, what: str, slot: int, among: Days) -> _History:
    day = slot // HOURS
    days, counts = 0.0, []
    for back in range(1, WINDOW + 1):
        if among.has(day - back):
            counted, most, _ = trial(slots, _around(slot - HOURS * back), what)
            days += counted
            if most:
                counts.append(most)
    return _History(len(counts), days, tuple(counts))


# -- what is unusual ----------------------------------------------------------------------------------------------------


def unusual(slots: Slots, day: int, *, only: int | None = None, until: int | None = None) -> list[Anomaly]:
    """What is unusual on a day, the least likely first.

    Args:
        slots: the hours of that day and of the `WINDOW` days before it.
        day: since 1970-01-01.
        only: look at this hour alone, and not at what is missing.
        until: the first hour (slot) that is not over yet: nothing is missing from there on.
    """
    wanted = range(day * HOURS, day * HOURS + HOURS) if only is None else range(only, only + 1)
    found: list[Anomaly] = []
    for slot in wanted:
        hour = slots.get(slot)
        for what, cell in sorted(hour.cells.items()) if hour is not None else ():
            found += filter(None, (_unexpected(slots, what, slot, cell), _more(slots, what, slot, cell)))
    found += _new(slots, day, wanted)
    if only is None:
        found += _missing(slots, day, until)
    return sorted(_grouped(found), key=lambda one: (one.chance, one.first, one.what, one.kind))


def _unexpected(slots: Slots, what: str, slot: int, cell: Cell) -> Anomaly | None:
    if what not in LIVELY:
        return None
    mine = Days.WEEKEND if Days.WEEKEND.has(slot // HOURS) else Days.WORKING
    if _often(slots, what, slot, mine):
        return None
    every = _history(slots, what, slot, Days.ALL)
    own = _history(slots, what, slot, mine)
    if every.days < LEAST:
        return None
    chance = (own.seen + PRIOR * every.chance) / (own.days + PRIOR)
    among, history = (Days.ALL, every) if every.chance <= chance else (mine, own)
    chance = min(chance, every.chance)
    if chance * RARE > 1 or not _of_the_hour(slots, what, slot // HOURS, history, among):
        return None
    return _anomaly(Oddity.UNEXPECTED, what, slot, cell, history, chance, among)


def _often(slots: Slots, what: str, slot: int, among: Days) -> bool:
    """Whether so many days have it that nothing about it is rare: quick, because the latest days mostly tell."""
    seen = 0
    for back in range(1, WINDOW + 1):
        if among.has(slot // HOURS - back):
            seen += trial(slots, _around(slot - HOURS * back), what)[1] > 0
            if (seen + 0.5) * RARE > WINDOW + 1.0:
                return True
    return False


def _of_the_hour(slots: Slots, what: str, day: int, history: _History, among: Days) -> bool:
    """Whether the hour is what makes it unlikely: it is so on other hours of enough days for this to be no accident."""
    on, hours, watched = 0, 0, 0.0
    for back in range(1, WINDOW + 1):
        if among.has(day - back):
            begin = (day - back) * HOURS
            there = {slot for slot in range(begin, begin + HOURS) if slot in slots and what in slots[slot].cells}
            if there:
                on += 1
                hours += len({near for slot in there for near in _around(slot)} & set(range(begin, begin + HOURS)))
                watched += sum(
                    min(1.0, slots[slot].watched / FULL_S) for slot in range(begin, begin + HOURS) if slot in slots
                )
    if not on or not watched:
        return False
    part = min(1.0, hours / max(watched, hours))
    left = sum(math.comb(on, n) * part**n * (1 - part) ** (on - n) for n in range(min(history.seen, on) + 1))
    return left <= _ACCIDENT


def _more(slots: Slots, what: str, slot: int, cell: Cell) -> Anomaly | None:
    if what not in LIVELY or cell.most < 2:
        return None
    if max(_most(slots, what, slot - HOURS * back) for back in (1, 2, 3)) >= cell.most:
        return None  # quick
    history = _history(slots, what, slot, Days.ALL)
    if history.seen < LEAST or cell.most <= max(history.counts):
        return None
    chance = _at_least(cell.most - 1, sum(history.counts) - history.seen + 0.5, float(history.seen))
    if chance * RARE > 1:
        return None
    return _anomaly(Oddity.MORE, what, slot, cell, history, chance, Days.ALL)


def _most(slots: Slots, what: str, slot: int) -> int:
    return trial(slots, _around(slot), what)[1]


def _at_least(count: int, shape: float, rate: float) -> float:
    """The chance of `count` or more of a Poisson number whose mean has the distribution Gamma(shape, rate)."""
    success = rate / (rate + 1.0)
    term = success**shape
    below = 0.0
    for number in range(count):
        below += term
        term *= (shape + number) / (number + 1) * (1 - success)
    return max(0.0, 1.0 - below)


def _new(slots: Slots, day: int, wanted: range) -> list[Anomaly]:
    """Things that were never seen in the days before."""
    today: dict[str, int] = {}
    for slot in wanted:
        for what in slots[slot].cells if slot in slots else ():
            if what.startswith(SEEN) and what != PERSON:
                today.setdefault(what, slot)
    earlier = range(day * HOURS, wanted.start)
    before = {what for slot in earlier if slot in slots for what in slots[slot].cells}
    today = {what: slot for what, slot in today.items() if what not in before}
    if not today:
        return []
    on_days: dict[str, set[int]] = {}
    watched = 0.0
    for back in range(1, WINDOW + 1):
        seconds = 0.0
        for slot in range((day - back) * HOURS, (day - back) * HOURS + HOURS):
            hour = slots.get(slot)
            if hour is not None:
                seconds += hour.watched
                for what in hour.cells:
                    on_days.setdefault(what, set()).add(back)
        watched += min(1.0, seconds / FULL_S)
    chance = new_chance(
        Counter({what: len(those) for what, those in on_days.items() if what.startswith(SEEN)}), watched
    )
    if watched < LEAST or chance * NEW > 1:
        return []
    return [
        _anomaly(
            Oddity.NEW, what, slot, slots[slot].cells[what], _History(0, watched, ()), 0.5 / (watched + 1), Days.ALL
        )
        for what, slot in sorted(today.items())
        if what not in on_days and 0.5 / (watched + 1) * RARE <= 1
    ]


def new_chance(on_days: Mapping[str, int], days: float) -> float:
    """The chance that a day brings something new (Good 1953), from on how many of `days` each thing was seen."""
    return (sum(count == 1 for count in on_days.values()) + 0.5) / (days + 1.0)


def _missing(slots: Slots, day: int, until: int | None) -> list[Anomaly]:
    found = []
    for slot in range(day * HOURS, day * HOURS + HOURS):
        if until is not None and slot + 1 >= until:
            break
        watched = sum(slots[near].watched for near in _around(slot) if near in slots)
        if watched < _WHOLE * 3 * 3600.0:
            continue
        for what in _RESIDENTS:
            if trial(slots, _around(slot), what)[1]:
                continue
            if (
                not trial(slots, _around(slot - HOURS), what)[1]
                and not trial(slots, _around(slot - 2 * HOURS), what)[1]
            ):
                continue  # quick: it is not even missed
            history = _history(slots, what, slot, Days.ALL)
            chance = (history.days - history.seen + 0.5) / (history.days + 1.0)
            if history.days >= LEAST and chance * RARE <= 1:
                found.append(
                    Anomaly(
                        Oddity.MISSING,
                        what,
                        slot,
                        slot,
                        None,
                        None,
                        0,
                        history.seen,
                        history.days,
                        history.usual,
                        chance,
                    )
                )
    return found


def _anomaly(kind: Oddity, what: str, slot: int, cell: Cell, history: _History, chance: float, among: Days) -> Anomaly:
    return Anomaly(
        kind,
        what,
        slot,
        slot,
        cell.first,
        cell.at,
        cell.most,
        history.seen,
        history.days,
        history.usual,
        chance,
        among,
    )


def _grouped(found: list[Anomaly]) -> list[Anomaly]:
    """One for each run of hours; what is explained by something that tells more is put with it."""
    runs: list[Anomaly] = []
    for one in sorted(found, key=lambda one: (one.kind, one.what, one.first)):
        last = runs[-1] if runs else None
        if last is not None and (last.kind, last.what) == (one.kind, one.what) and one.first <= last.last + 1:
            runs[-1] = replace(
                last, last=one.last, count=max(last.count, one.count), chance=min(last.chance, one.chance)
            )
        else:
            runs.append(one)
    kept: list[Anomaly] = []
    for one in sorted(runs, key=_telling):
        over = next((at for at, better in enumerate(kept) if _explains(better, one)), None)
        if over is None:
            kept.append(one)
        elif one.what != kept[over].what and one.what not in kept[over].also:
            kept[over] = replace(kept[over], also=(*kept[over].also, one.what))
    return kept


def _telling(one: Anomaly) -> tuple[int, int, int, str, str]:
    kinds = (Oddity.NEW, Oddity.UNEXPECTED, Oddity.MORE, Oddity.MISSING)
    rank = 1 if one.kind is Oddity.NEW else _RANK.get(one.what, 1)
    return (rank, kinds.index(one.kind), one.first, one.what, one.kind)


def _explains(better: Anomaly, one: Anomaly) -> bool:
    """Somebody there at an odd hour moves and speaks."""
    if Oddity.MISSING in (better.kind, one.kind) or one.first > better.last + 1 or one.last < better.first - 1:
        return False
    if one.what == better.what:
        return one.kind is not better.kind
    return one.what in (SPEECH, MOTION) and one.what != better.what
