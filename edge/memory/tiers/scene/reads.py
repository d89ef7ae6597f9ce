"""What is asked of scene memory: a camera as it is now, what was unusual in a span, what of one moment is, places of a day.

Everything is worked out from the tallies of hours (`scene`) when it is asked for, so that it follows every correction, late
recording and forgotten moment at once. Reading a camera takes the `WINDOW` days before the day in question, whatever there was
earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import tzinfo

import apsw

from edge.clock import to_local
from edge.memory.database import fetch
from edge.memory.stored import StoredTrace
from edge.memory.tiers import visual
from edge.memory.tiers.scene import tier
from edge.memory.tiers.scene.baseline import Anomaly, Oddity, unusual
from edge.memory.tiers.scene.days import (
    HOURS,
    LIVELY,
    SEEN,
    WINDOW,
    Days,
    Hour,
    Routine,
    routines,
    share,
    things,
)
from edge.memory.tiers.scene.places import Place, named_places, place_of
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.nodes import HOUR_S

MOST_DAYS = 62  # that are looked at for what was unusual, the latest
YOUNG = 14  # days: a younger camera has hardly anything that is unusual
_MARKED = 7  # days of a page of moments that are marked
_SOME = 12  # moments of a stretch by which it is known again
_SURE = 0.6  # confidence from which a stretch of time is said to be somewhere


@dataclass(frozen=True, slots=True)
class Scene:
    """What is known of what a camera looks at."""

    camera: str
    place: Place
    moving: bool  # it is carried about: its places are those of stretches of time
    days: int  # on which it watched, of the latest `WINDOW`
    moments: int  # in these days
    routines: tuple[Routine, ...]
    things: tuple[tuple[str, int, int], ...]  # label, days with it, days
    places: tuple[tuple[str, int], ...]  # of a camera that is carried about: kind and hours spent there


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some hours of a day in one place."""

    start: float  # UTC POSIX seconds
    end: float
    place: Place
    moments: int
    traces: tuple[int, ...]  # ids of some moments of it, evenly spread, at most `_SOME`


@dataclass(frozen=True, slots=True)
class Found:
    """Something unusual, with where and when it was."""

    camera: str
    start: float  # UTC POSIX seconds: the first moment of it, or the hour from which something is missing
    end: float  # of its last hour
    hours: tuple[float, float]  # UTC POSIX seconds between which other days were looked at
    anomaly: Anomaly


def cameras(connection: apsw.Connection, user: str, camera: str | None = None) -> list[tuple[int, str]]:
    """The cameras of a user with their ids, in the order of their first use."""
    return fetch(
        connection,
        "select id, name from camera where user = ?1 and (?2 is null or name = ?2) order by id",
        (user, camera),
    )


def describe(connection: apsw.Connection, user: str, now: float, camera: str | None = None) -> list[Scene]:
    """What the cameras of a user look at.

    Args:
        connection: any.
        user: whose memory.
        now: UTC POSIX seconds: the days before count.
        camera: only this one.
    """
    return [_describe(connection, number, name, now) for number, name in cameras(connection, user, camera)]


def _describe(connection: apsw.Connection, camera: int, name: str, now: float) -> Scene:
    today = tier.day_of(connection, now)
    first = (today - WINDOW) * HOURS
    until = tier.slot_of(connection, now)
    hours = tier.slots(connection, camera, first, until)
    counts, moments = _tally(hours.values())
    places = _hourly(hours)
    moving = is_moving(connection, camera, name, places, now)
    place = Place(None, 0.0) if moving else place_of(counts, moments, name)
    spent: dict[str, int] = {}
    for kind in places.values():
        spent[kind] = spent.get(kind, 0) + 1
    past = {slot: hour for slot, hour in hours.items() if slot < today * HOURS}
    return Scene(
        name,
        place,
        moving,
        len({slot // HOURS for slot, hour in hours.items() if hour.watched}),
        moments,
        tuple(routines(past, today)),
        tuple((what.removeprefix(SEEN), seen, days) for what, seen, days in things(past, today)),
        tuple(sorted(spent.items(), key=lambda one: (-one[1], one[0]))) if moving else (),
    )


def kind_of(connection: apsw.Connection, user: str, camera: str, now: float) -> str | None:
    """The kind of place that a camera looks at, as far as the `WINDOW` days before tell."""
    for number, name in cameras(connection, user, camera):
        today = tier.day_of(connection, now)
        hours = tier.slots(connection, number, (today - WINDOW) * HOURS, today * HOURS - 1)
        place = place_of(*_tally(hours.values()), name)
        return place.kind if place.confidence >= _SURE else None
    return None


def is_moving(connection: apsw.Connection, camera: int, name: str, places: dict[int, str], now: float) -> bool:
    """Whether a camera is carried about: what it sees tells; where there are no pictures, the places that words tell of.

    One that is called after a place stands there.
    """
    if named_places(name):
        return False
    seen = visual.unsteady(connection, camera, now)
    return len(set(places.values())) >= 3 if seen is None else seen


def _hourly(hours: dict[int, Hour]) -> dict[int, str]:
    """The kind of place of each hour in which it can be told."""
    found = {}
    for slot, hour in hours.items():
        place = place_of(*_tally([hour]))
        if place.kind is not None and place.confidence >= _SURE:
            found[slot] = place.kind
    return found


def _tally(hours: Iterable[Hour]) -> tuple[dict[str, int], int]:
    """In how many moments of some hours each thing was so, and how many there were."""
    counts: Counter[str] = Counter()
    moments = 0
    for hour in hours:
        moments += hour.traces
        counts.update({what: cell.traces for what, cell in hour.cells.items()})
    return dict(counts), moments


def found(connection: apsw.Connection, user: str, since: float, until: float, camera: str | None = None) -> list[Found]:
    """What was unusual in a span, in the order of time; of a longer span the latest `MOST_DAYS` days.

    Args:
        connection: any.
        user: whose memory.
        since: UTC POSIX seconds.
        until: UTC POSIX seconds: nothing that came later is looked at.
        camera: only this one.
    """
    last = tier.day_of(connection, until)
    first = max(tier.day_of(connection, since), last - MOST_DAYS + 1)
    now = tier.slot_of(connection, until)
    result = []
    for number, name in cameras(connection, user, camera):
        hours = tier.slots(connection, number, (first - WINDOW) * HOURS, now)
        if now in hours:
            cells = {what: cell for what, cell in hours[now].cells.items() if cell.at <= until}
            hours[now] = replace(hours[now], cells=cells)
        for day in range(first, last + 1):
            if any(slot in hours for slot in range(day * HOURS, day * HOURS + HOURS)):
                result += [_placed(connection, name, one) for one in unusual(hours, day, until=now)]
    inside = [one for one in result if one.end > since and one.start < until]
    return sorted(inside, key=lambda one: (one.start, one.camera, one.anomaly.what))


def of_trace(connection: apsw.Connection, user: str, trace: StoredTrace) -> list[Found]:
    """What is unusual about one moment and was not yet so in this hour or the one before: for rules.

    It looks at the days before and at the moment itself, so that it does not wait for its hour to be counted.
    """
    numbers = cameras(connection, user, trace.camera)
    if not numbers:
        return []
    slot = tier.slot_of(connection, trace.start)
    day = slot // HOURS
    hours = tier.slots(connection, numbers[0][0], (day - WINDOW) * HOURS, slot)
    going_on = {
        what
        for near in (slot - 1, slot)
        if near in hours
        for what, cell in hours[near].cells.items()
        if cell.at < trace.start
    }
    hours[slot] = Hour(trace.end - trace.start, tier.cells_of(connection, trace.id), 1)
    odd = [one for one in unusual(hours, day, only=slot) if one.what not in going_on or one.kind is Oddity.MORE]
    return [_placed(connection, trace.camera, one) for one in odd]


def stretches(connection: apsw.Connection, camera: int, since: float, until: float) -> list[Stretch]:
    """Where a camera that is carried about was, in the order of time.

    Args:
        connection: any.
        camera: its id.
        since: UTC POSIX seconds.
        until: UTC POSIX seconds.
    """
    first, last = tier.slot_of(connection, since), tier.slot_of(connection, until)
    parts: list[tuple[list[int], Place]] = []
    hours = tier.slots(connection, camera, first, last)
    for slot in sorted(hours):
        if not hours[slot].traces:
            continue
        place = place_of(*_tally([hours[slot]]))
        if place.confidence < _SURE:
            place = Place(None, place.confidence)
        if parts and parts[-1][1].kind == place.kind and parts[-1][0][-1] == slot - 1:
            parts[-1][0].append(slot)
        else:
            parts.append(([slot], place))
    result = []
    for these, place in parts:
        mine = [hours[slot] for slot in these]
        counted = place_of(*_tally(mine)) if place.kind is not None else place
        start, end = tier.begin_of(connection, these[0]), tier.begin_of(connection, these[-1] + 1)
        rows = fetch(
            connection,
            "select id from trace where camera = ? and start >= ? and start < ? order by start, id",
            (camera, start, end),
        )
        some = tuple(number for (number,) in rows[:: max(1, len(rows) // _SOME)][:_SOME])
        result.append(Stretch(start, end, counted, len(rows), some))
    return result


def _placed(connection: apsw.Connection, camera: str, one: Anomaly) -> Found:
    begin, end = tier.begin_of(connection, one.first), tier.begin_of(connection, one.last + 1)
    return Found(camera, begin if one.at is None else one.at, end, (begin - HOUR_S, end + HOUR_S), one)


def usual(
    connection: apsw.Connection, camera: int, hours: Iterable[int], now: float, among: Days = Days.ALL
) -> list[tuple[str, int, int, float]]:
    """What is so within some hours of the day: (what, days with it, days, how much of it at once), the most frequent first.

    Args:
        connection: any.
        camera: its id.
        hours: of the day, on the clock of the memory; from 24 on: of the next day.
        now: UTC POSIX seconds: the `WINDOW` days before count.
        among: which days.
    """
    today = tier.day_of(connection, now)
    past = tier.slots(connection, camera, (today - WINDOW) * HOURS, today * HOURS - 1)
    whats = sorted({what for hour in past.values() for what in hour.cells if what in LIVELY or what.startswith(SEEN)})
    wanted = tuple(hours)
    found = [(what, *share(past, what, wanted, today, among)) for what in whats]
    return sorted((one for one in found if one[1]), key=lambda one: (-one[1], one[0]))


def shift_of(connection: apsw.Connection, now: float, zone: tzinfo | None = None) -> int:
    """Hours that a clock on the wall is ahead of that of the memory: in summer mostly one."""
    offset = to_local(now, zone).utcoffset()
    return round(((offset.total_seconds() if offset is not None else 0.0) - clock_offset(connection)) / HOUR_S)


def marks(connection: apsw.Connection, user: str, moments: Iterable[tuple[int, float]]) -> dict[int, list[Found]]:
    """What is unusual about some moments (id, start in UTC POSIX seconds), of those of the latest `_MARKED` days among them.

    A mark stands on the first moment of each thing that is unusual.
    """
    known = dict(moments)
    days = sorted({tier.day_of(connection, start) for start in known.values()})[-_MARKED:]
    result: dict[int, list[Found]] = {}
    while days:
        run = 1  # days in a row are looked at together
        while run < len(days) and days[run] == days[run - 1] + 1:
            run += 1
        begin = tier.begin_of(connection, days[0] * HOURS)
        end = tier.begin_of(connection, (days[run - 1] + 1) * HOURS)
        for one in found(connection, user, begin, end - 1.0):
            if one.anomaly.trace in known:
                result.setdefault(one.anomaly.trace, []).append(one)
        days = days[run:]
    return result
