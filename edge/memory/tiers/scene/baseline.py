"""What is unusual in front of a camera: predictions from counts of days. Pure.

Whether something is so at an hour of a day is one trial for each day on which the camera was watching then; an hour to each
side is let through, because nobody gets up at the minute. With `seen` of `days` trials the chance of it today is
(seen + ½) / (days + 1) (Jeffreys' prior; Krichevsky & Trofimov 1981), so that little history never makes anything unlikely.
Working days and weekends are told apart as far as each has a history of its own: what all days say counts there as `PRIOR`
further days.

Invariants:

* Days before the day that is looked at decide, `WINDOW` of them; so whatever came in first, the same memory says the same.
* Nothing is unusual without `LEAST` days, and only what is expected less than once in `RARE` days.
* An hour is odd for something only where it is there at others, on so many days that this is no accident.
* What never was seen here counts only when it shows in more than one moment, and where new things are rare: how often a day
  brings something new is estimated by what was seen on one day only (Good 1953), so that a camera that moves about is not
  always surprised.
* What may happen at any hour (more than ever at once, something missing) is asked once a day and not hour by hour, or chance
  alone would find one every few days.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from edge.memory.tiers.scene.days import (
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
    runs,
    trial,
)

LEAST: Final = 7.0  # days that it takes at least
RARE: Final = 50  # what is expected less than once in so many days is unusual
NEW: Final = 7  # something new is unusual where it is expected less than once in so many days
PRIOR: Final = 4.0  # days: what all days say, beside what the days of one kind say
_ACCIDENT: Final = 0.05  # chance of so few days at this hour by accident, above which the hour tells nothing
_WHOLE: Final = 0.9  # of the hours that have to be watched before something is missed
_TWICE: Final = 2  # moments of a day in which something new has to be seen: a detector's slip is seen once
_RESIDENTS: Final = (PERSON, f"{SEEN}cat", f"{SEEN}dog")  # who may be missed, or come in numbers
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


def unusual(slots: Slots, day: int, *, only: int | None = None, until: int | None = None) -> list[Anomaly]:
    """What is unusual on a day, the least likely first.

    Args:
        slots: the hours of that day and of the `WINDOW` days before it.
        day: since 1970-01-01.
        only: look at what happens in this hour alone, and not at what is missing.
        until: the first hour (slot) that is not over yet: nothing is missing from there on.
    """
    begin = day * HOURS
    wanted = range(begin, begin + HOURS) if only is None else range(only, only + 1)
    found: list[Anomaly] = []
    for slot in wanted:
        hour = slots.get(slot)
        for what, cell in sorted(hour.cells.items()) if hour is not None else ():
            one = _unexpected(slots, what, slot, cell)
            found += [] if one is None else [one]
    found += _more(slots, day, wanted)
    found += _new(slots, day, wanted)
    if only is None:
        found += _missing(slots, day, begin + HOURS if until is None else until)
    return sorted(_grouped(found), key=lambda one: (one.chance, one.first, one.what, one.kind))


# -- at an hour -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _History:
    """Trials of one thing."""

    seen: int
    days: float
    usual: float = 0.0

    @property
    def chance(self) -> float:
        return (self.seen + 0.5) / (self.days + 1.0)


def _around(slot: int) -> range:
    return range(slot - 1, slot + 2)


def _history(slots: Slots, what: str, hours: range, among: Days, *, day: int) -> _History:
    """Of some hours (slots of a day), on the days before it."""
    days, counts = 0.0, []
    for back in range(1, WINDOW + 1):
        if among.has(day - back):
            counted, most, _ = trial(slots, range(hours.start - HOURS * back, hours.stop - HOURS * back), what)
            days += counted
            if most:
                counts.append(most)
    return _History(len(counts), days, sum(counts) / len(counts) if counts else 0.0)


def kind_of_day(day: int) -> Days:
    """Whether it is a working day or a weekend."""
    return Days.WEEKEND if Days.WEEKEND.has(day) else Days.WORKING


def _unexpected(slots: Slots, what: str, slot: int, cell: Cell) -> Anomaly | None:
    day = slot // HOURS
    mine = kind_of_day(day)
    if what not in LIVELY or _often(slots, what, slot, mine):
        return None
    every = _history(slots, what, _around(slot), Days.ALL, day=day)
    own = _history(slots, what, _around(slot), mine, day=day)
    if every.days < LEAST:
        return None
    chance = (own.seen + PRIOR * every.chance) / (own.days + PRIOR)
    among, history = (Days.ALL, every) if every.chance <= chance else (mine, own)
    chance = min(chance, every.chance)
    if chance * RARE > 1 or not _of_the_hour(slots, what, day, history, among):
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
            whole = range((day - back) * HOURS, (day - back) * HOURS + HOURS)
            there = {slot for slot in whole if slot in slots and what in slots[slot].cells}
            if there:
                on += 1
                hours += len({near for slot in there for near in _around(slot)} & set(whole))
                watched += sum(min(1.0, slots[slot].watched / FULL_S) for slot in whole if slot in slots)
    if not on:
        return False
    part = hours / max(watched, hours)
    left = sum(math.comb(on, n) * part**n * (1 - part) ** (on - n) for n in range(min(history.seen, on) + 1))
    return left <= _ACCIDENT


# -- on a day -------------------------------------------------------------------------------------------------------------


def _more(slots: Slots, day: int, wanted: range) -> list[Anomaly]:
    """More of somebody at once than on any day before."""
    found = []
    for what in _RESIDENTS:
        cells = [(slot, cell) for slot in wanted if slot in slots and (cell := slots[slot].cells.get(what)) is not None]
        slot, cell = max(cells, key=lambda one: (one[1].most, -one[0]), default=(0, None))
        if cell is None or cell.most < 2:
            continue
        counts = []
        for back in range(1, WINDOW + 1):
            begin = (day - back) * HOURS
            _, most, _ = trial(slots, range(begin, begin + HOURS), what)
            if most >= cell.most:
                break
            counts += [most] if most else []
        else:
            chance = _at_least(cell.most - 1, sum(counts) - len(counts) + 0.5, float(len(counts)))
            if len(counts) >= LEAST and chance * RARE <= 1:
                history = _History(len(counts), float(len(counts)), sum(counts) / len(counts))
                found.append(_anomaly(Oddity.MORE, what, slot, cell, history, chance, Days.ALL))
    return found


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
    """Things that were never seen in the days before, once they have shown in `_TWICE` moments."""
    today: dict[str, tuple[int, int]] = {}  # moments up to here, and the first hour
    for slot in range(day * HOURS, wanted.stop):
        for what, cell in slots[slot].cells.items() if slot in slots else ():
            if what.startswith(SEEN) and what != PERSON:
                count, first = today.get(what, (0, slot))
                today[what] = (count + cell.traces, first)
    today = {what: one for what, one in today.items() if one[0] >= _TWICE and one[1] in wanted}
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
    counts = Counter({what: len(those) for what, those in on_days.items() if what.startswith(SEEN)})
    history = _History(0, watched)
    if watched < LEAST or history.chance * RARE > 1 or new_chance(counts, watched) * NEW > 1:
        return []
    return [
        _anomaly(Oddity.NEW, what, slot, slots[slot].cells[what], history, history.chance, Days.ALL)
        for what, (_, slot) in sorted(today.items())
        if what not in on_days
    ]


def new_chance(on_days: Mapping[str, int], days: float) -> float:
    """The chance that a day brings something new (Good 1953), from on how many of `days` each thing was seen."""
    return (sum(count == 1 for count in on_days.values()) + 0.5) / (days + 1.0)


def _missing(slots: Slots, day: int, until: int) -> list[Anomaly]:
    """Who is there on such days through some hours, and was not, nor in the hour before or after."""
    found = []
    begin, mine = day * HOURS, kind_of_day(day)
    for what in _RESIDENTS:
        gone = [slot for slot in range(begin, begin + HOURS) if not trial(slots, _around(slot), what)[1]]
        if not any(trial(slots, (slot - back * HOURS,), what)[1] for slot in gone for back in (1, 2, 3, 7)):
            continue  # quick: nobody expects it
        for run in runs(slots, what, day, mine):
            hours = range(begin + run.first - 1, begin + run.last + 2)
            _, most, watched = trial(slots, hours, what)
            if most or hours.stop > until or watched < _WHOLE * len(hours) * 3600.0:
                continue
            history = _history(slots, what, hours, mine, day=day)
            chance = (history.days - history.seen + 0.5) / (history.days + 1.0)
            if history.days >= LEAST and chance * RARE <= 1:
                first, last = begin + run.first, begin + run.last
                found.append(
                    Anomaly(
                        Oddity.MISSING,
                        what,
                        first,
                        last,
                        None,
                        None,
                        0,
                        history.seen,
                        history.days,
                        history.usual,
                        chance,
                        mine,
                    )
                )
    return found


# -- together -------------------------------------------------------------------------------------------------------------


def _anomaly(kind: Oddity, what: str, slot: int, cell: Cell, history: _History, chance: float, among: Days) -> Anomaly:
    return Anomaly(
        kind, what, slot, slot, cell.first, cell.at, cell.most, history.seen, history.days, history.usual, chance, among
    )  # fmt: skip


def _grouped(found: list[Anomaly]) -> list[Anomaly]:
    """One for each run of hours; what is explained by something that tells more is put with it."""
    joined: list[Anomaly] = []
    for one in sorted(found, key=lambda one: (one.kind, one.what, one.first)):
        last = joined[-1] if joined else None
        if last is not None and (last.kind, last.what) == (one.kind, one.what) and one.first <= last.last + 1:
            joined[-1] = replace(
                last,
                last=max(last.last, one.last),
                count=max(last.count, one.count),
                chance=min(last.chance, one.chance),
            )
        else:
            joined.append(one)
    kept: list[Anomaly] = []
    for one in sorted(joined, key=_telling):
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
    return one.what in (SPEECH, MOTION)
