"""Keeping no more than the owner wants, and than there is room for: what goes first, and that it goes in small steps.

By age: pictures after `key_frame_days`, moments after `keep_days`. By size: when the memory is larger than `keep_gb`, or
less than `min_free_gb` is free on the device. Under both, what tells least goes first, the oldest first:

1. pictures of unimportant moments beyond the first of each, and then that, too;
2. fine detail of unimportant moments: boxes, what decisions rest on, vectors of single sentences;
3. unimportant moments; what the timeline tells of their hours stays (`timeline.fade`);
4. of important moments the pictures beyond the first, their fine detail, and at last that picture.

A moment is as old as what it shows, and no older than it is in the memory: a recording of last year that is watched today
does not go tonight. Important is: a moment with somebody who has a name, a note that the owner asked to remember, and what a
message that was sent rests on. An important moment is never removed; neither is anything of the last hour.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from edge.memory.database import fetch, transaction
from edge.memory.drafts import to_json
from edge.memory.upkeep.erase import give_back
from edge.memory.upkeep.remove import THESE, remove_rows, remove_traces
from edge.memory.writer import Files
from edge.settings import MemorySettings

GB: Final = 1e9
FLOOR_PART: Final = 20  # of a device's size: more than this part of it is not kept free, whatever `min_free_gb` says
DAY_S: Final = 86_400.0
LATEST_S: Final = 3600.0  # nothing that is younger goes
STEP: Final = 200  # pictures or moments looked at in one step: commits wait for it
DETAIL_BYTES: Final = 3000  # what the fine detail of a moment takes, about (measured, tools.bench.months)
MOMENT_BYTES: Final = 8000  # what a moment without pictures takes, about (likewise)

_IMPORTANT: Final = (
    "(json_extract(t.detail, '$.note') or exists (select 1 from participation p join entity e on e.id = p.entity"
    " where p.trace = t.id and e.name is not null)"
    " or exists (select 1 from alert a where a.trace = t.id and a.outcome <> 'drop'))"
)
_THINNED: Final = "$.thinned"


@dataclass(frozen=True, slots=True)
class Policy:
    """What is kept how long."""

    pictures_before: float  # UTC POSIX seconds: of older moments the pictures go
    moments_before: float  # UTC POSIX seconds: older unimportant moments go
    latest: float  # UTC POSIX seconds: nothing younger goes
    surplus: float  # bytes that are to be freed for want of room


@dataclass(frozen=True, slots=True)
class Thinning:
    """What goes in one step, or what would go in all."""

    pictures: tuple[int, ...] = ()
    details: tuple[int, ...] = ()  # moments that lose their fine detail
    moments: tuple[int, ...] = ()  # moments that go
    bytes: int = 0  # that this frees, about

    def __bool__(self) -> bool:
        return bool(self.pictures or self.details or self.moments)

    @property
    def text(self) -> str:
        """In one sentence."""
        if not self:
            return "Nothing is to go."
        parts = [
            f"{len(of)} {what}"
            for of, what in (
                (self.pictures, "pictures"),
                (self.moments, "moments"),
                (self.details, "moments' fine detail"),
            )
            if of
        ]
        listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]
        return f"{listed}, about {self.bytes / 1e6:.1f} MB."


def free_and_floor(home: Path, settings: MemorySettings) -> tuple[int, float]:
    """Bytes that are free on the device, and bytes that should be: `min_free_gb`, on a small device less."""
    usage = shutil.disk_usage(home)
    return usage.free, min(settings.min_free_gb * GB, usage.total / FLOOR_PART)


def policy(settings: MemorySettings, *, now: float, used: int, missing: float) -> Policy:
    """What the settings mean now. Pure.

    Args:
        settings: `keep_days`, `key_frame_days`, `keep_gb`.
        now: UTC POSIX seconds.
        used: bytes of both files that hold something.
        missing: bytes that should be free on the device and are not.
    """
    pictures = -math.inf if settings.key_frame_days is None else now - settings.key_frame_days * DAY_S
    moments = -math.inf if settings.keep_days is None else now - settings.keep_days * DAY_S
    over = 0.0 if settings.keep_gb is None else used - settings.keep_gb * GB
    latest = now - LATEST_S
    surplus = max(0.0, over, missing)
    return Policy(min(pictures, latest), min(moments, latest), latest, surplus)


def used_bytes(files: Iterable[apsw.Connection]) -> int:
    """What is in use of some files: free pages inside them do not count."""
    return sum(
        (int(one.pragma("page_count")) - int(one.pragma("freelist_count"))) * int(one.pragma("page_size"))
        for one in files
    )


def plan(memory: apsw.Connection, frames: apsw.Connection, user: str, wanted: Policy, limit: int) -> Thinning:
    """What goes next, at most `limit` of each kind; everything that would go, with a limit that is large enough."""
    pictures = _first(_old_pictures(memory, user, wanted), limit)
    moments = _first(_old_moments(memory, user, wanted), limit)
    of_moments = _pictures_of(memory, moments)
    freed = _sizes(frames, {*pictures, *of_moments}) + MOMENT_BYTES * len(moments)
    old = Thinning(tuple(pictures), (), tuple(moments), freed)
    if freed >= wanted.surplus or len(pictures) >= limit or len(moments) >= limit:
        return old
    more = _for_room(memory, frames, user, wanted, limit)
    gone = {*old.moments, *more.moments}
    return Thinning(
        tuple(dict.fromkeys((*old.pictures, *more.pictures))),
        tuple(trace for trace in more.details if trace not in gone),
        tuple(dict.fromkeys((*old.moments, *more.moments))),
        max(old.bytes, more.bytes),
    )


def thin(files: Files, user: str, what: Thinning) -> None:
    """Let a step go, in one transaction, and give its room back."""
    memory = files.memory
    with transaction(memory):
        remove_rows(memory, "key_frame", what.pictures)
        for trace in what.details:
            _without_detail(memory, trace)
        remove_traces(memory, user, what.moments, fading=True)
    give_back(files, patient=True)


# -- by age -----------------------------------------------------------------------------------------------------------


def _old_pictures(memory: apsw.Connection, user: str, wanted: Policy) -> Iterator[int]:
    """Pictures that are older than is wanted: of important moments the first stays."""
    if wanted.pictures_before == -math.inf:
        return
    yield from _frames(memory, user, wanted.pictures_before, important=False, first=True)
    yield from _frames(memory, user, wanted.pictures_before, important=True, first=False)


def _old_moments(memory: apsw.Connection, user: str, wanted: Policy) -> Iterator[int]:
    if wanted.moments_before > -math.inf:
        yield from _traces(memory, user, wanted.moments_before, important=False)


# -- for room ---------------------------------------------------------------------------------------------------------


def _for_room(memory: apsw.Connection, frames: apsw.Connection, user: str, wanted: Policy, limit: int) -> Thinning:
    pictures: list[int] = []
    details: list[int] = []
    moments: list[int] = []
    freed = 0

    def take_pictures(*, important: bool, first: bool) -> None:
        nonlocal freed
        taken = set(pictures)
        for number in _frames(memory, user, wanted.latest, important=important, first=first):
            if freed >= wanted.surplus or len(pictures) >= limit:
                return
            if number not in taken:
                pictures.append(number)
                freed += _sizes(frames, [number])

    def take_details(*, important: bool) -> None:
        nonlocal freed
        gone = set(moments)
        for trace in _traces(memory, user, wanted.latest, important=important, whole=True):
            if freed >= wanted.surplus or len(details) >= limit:
                return
            if trace not in gone:
                details.append(trace)
                freed += DETAIL_BYTES

    take_pictures(important=False, first=False)
    take_pictures(important=False, first=True)
    take_details(important=False)
    for trace in _traces(memory, user, wanted.latest, important=False):
        if freed >= wanted.surplus or len(moments) >= limit:
            break
        moments.append(trace)
        freed += MOMENT_BYTES - (DETAIL_BYTES if trace in set(details) else 0)
    details = [trace for trace in details if trace not in set(moments)]
    take_pictures(important=True, first=False)
    take_details(important=True)
    take_pictures(important=True, first=True)
    return Thinning(tuple(pictures), tuple(details), tuple(moments), freed)


# -- what there is ----------------------------------------------------------------------------------------------------


def _frames(memory: apsw.Connection, user: str, before: float, *, important: bool, first: bool) -> Iterator[int]:
    """Pictures of moments that ended before an instant, the oldest first; with the first of each moment or without."""
    sql = (
        "select k.id from trace t join camera c on c.id = t.camera join key_frame k on k.trace = t.id"
        f" where t.end < ?1 and t.ingested < ?1 and +c.user = ?2 and {'' if important else 'not '}coalesce({_IMPORTANT}, 0)"
        f" and (?3 or k.id > (select min(id) from key_frame where trace = t.id)) order by t.end, k.id"
    )
    for (number,) in memory.execute(sql, (before, user, first)):
        yield number


def _traces(
    memory: apsw.Connection, user: str, before: float, *, important: bool, whole: bool = False
) -> Iterator[int]:
    """Moments that ended before an instant, the oldest first; `whole`: which still have their fine detail."""
    sql = (
        "select t.id from trace t join camera c on c.id = t.camera"
        f" where t.end < ?1 and t.ingested < ?1 and +c.user = ?2 and {'' if important else 'not '}coalesce({_IMPORTANT}, 0)"
        " and (not ?3 or json_extract(t.detail, ?4) is null) order by t.end, t.id"
    )
    for (number,) in memory.execute(sql, (before, user, whole, _THINNED)):
        yield number


def _first(numbers: Iterator[int], limit: int) -> list[int]:
    found: list[int] = []
    for number in numbers:
        if len(found) >= limit:
            break
        found.append(number)
    return found


def _pictures_of(memory: apsw.Connection, traces: Iterable[int]) -> set[int]:
    sql = f"select id from key_frame where trace {THESE}"
    return {number for (number,) in fetch(memory, sql, (json.dumps(sorted(traces)),))}


def _sizes(frames: apsw.Connection, pictures: Iterable[int]) -> int:
    wanted = (json.dumps(sorted(pictures)),)
    ((size,),) = fetch(frames, f"select coalesce(sum(length(jpeg)), 0) from frame where id {THESE}", wanted)
    return int(size)


def _without_detail(memory: apsw.Connection, trace: int) -> None:
    memory.execute("update observation set boxes = '[]' where trace = ?", (trace,))
    memory.execute("update decision set evidence = '{}' where trace = ?", (trace,))
    memory.execute("delete from embedding where trace = ? and unit > 0", (trace,))
    memory.execute("delete from word_signs where trace = ?", (trace,))
    memory.execute(
        "update signs set bits = substr(bits, 1, (select (m.dimensions + 7) / 8 from text_embedder m where m.id = embedder))"
        " where trace = ?",
        (trace,),
    )
    ((detail,),) = fetch(memory, "select detail from trace where id = ?", (trace,))
    memory.execute(
        "update trace set detail = ? where id = ?", (to_json({**json.loads(detail), "thinned": True}), trace)
    )
