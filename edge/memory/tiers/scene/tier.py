"""Scene memory: what each camera sees and hears, counted hour by hour; what is usual there, and what is not.

What is kept are tallies of hours, which are a function of the traces that begin in them, so that the order in which traces
come makes no difference: whenever one is new, corrected or forgotten, its hour is counted again (`settle`). Hours are those of
the clock that cuts the timeline. Routines, the kind of place and anomalies are not kept: they are functions of the tallies
(`days`, `places`, `baseline`) and are worked out when they are asked for, from at most `WINDOW` days before.

`quiet` is how long a camera watched an hour while nothing was to be seen or heard and nothing was written: without it, nobody
could say that something was *not* so on 24 nights. It is written with the critical commit, because nothing else knows of it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import apsw

from edge.memory import jobs
from edge.memory.database import fetch
from edge.memory.stored import StoredTrace
from edge.memory.tiers.scene.days import HOURS, MOTION, PLACE, SEEN, SPEECH, TOLD, Cell, Hour
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.extract import places_in
from edge.memory.tiers.timeline.nodes import CHAPTER, HOUR_S
from edge.types.vocabulary import labels_for

SCENE: Final = "scene"  # kind of job: an hour of a camera changed
SURE: Final = 0.5  # score from which something seen counts: a detector's doubtful finds are no ground for surprise
LARGEST: Final = 2**53  # beyond all hours
QUIET_S: Final = 60.0  # a longer step of a source is a gap and was not watched, s (a segment has at most 30)
_NOT_SEEN: Final = frozenset({"voice", "face"})  # labels that are no things
_WORD = re.compile(r"[a-z]+")

SCENE_V1 = """
create table scene_hour(
  camera integer not null references camera(id) on delete cascade, hour integer not null, watched real not null,
  traces integer not null, primary key(camera, hour)) without rowid;
create table scene_tally(
  camera integer not null references camera(id) on delete cascade, hour integer not null, what text not null,
  traces integer not null, most integer not null, first integer not null, at real not null,
  primary key(camera, hour, what)) without rowid;
create index scene_tally_what on scene_tally(camera, what, hour);
create table quiet(
  camera integer not null references camera(id) on delete cascade, hour integer not null, seconds real not null,
  primary key(camera, hour)) without rowid;
"""


def create(connection: apsw.Connection) -> None:
    """Make the tables, and ask for all hours that are remembered already; part of a migration, inside its transaction."""
    connection.execute(SCENE_V1)
    offset = clock_offset(connection)
    rows = fetch(connection, "select c.user, t.camera, t.start from trace t join camera c on c.id = t.camera")
    for user, camera, hour in sorted({(user, camera, int((start + offset) // HOUR_S)) for user, camera, start in rows}):
        _ask(connection, user, camera, hour)


# -- what changed -----------------------------------------------------------------------------------------------------


def note(memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
    """A trace is new: ask for its hour."""
    note_again(memory, trace.id, trace, user)


def note_again(memory: apsw.Connection, number: int, _trace: StoredTrace | None, user: str) -> None:
    """A trace was corrected: ask for its hour. That of a trace which was forgotten is counted again at once (`settle`)."""
    for camera, hour in hours_of(memory, (number,)):
        _ask(memory, user, camera, hour)


def settle_job(memory: apsw.Connection, job: jobs.Job) -> None:
    """Do a job `scene`."""
    camera, hour = map(int, job.key.split(":"))
    settle(memory, camera, hour)


def note_quiet(memory: apsw.Connection, camera: int, start: float, end: float) -> None:
    """A camera watched, and nothing was to be seen or heard: for the critical commit.

    Args:
        memory: the writer's connection.
        camera: its id.
        start: UTC POSIX seconds up to which its source was remembered before.
        end: UTC POSIX seconds up to which it is now.
    """
    if not 0.0 < end - start <= QUIET_S:
        return
    memory.execute(
        "insert into quiet values(?, ?, ?) on conflict do update set seconds = min(seconds + excluded.seconds, 3600)",
        (camera, slot_of(memory, start), end - start),
    )


def hours_of(connection: apsw.Connection, traces: Iterable[int]) -> list[tuple[int, int]]:
    """The cameras and hours in which some traces begin."""
    rows = fetch(
        connection,
        "select camera, start from trace where id in (select value from json_each(?))",
        (json.dumps(sorted(traces)),),
    )
    offset = clock_offset(connection)
    return sorted({(int(camera), int((start + offset) // HOUR_S)) for camera, start in rows})


def settle(memory: apsw.Connection, camera: int, hour: int) -> None:
    """Count an hour of a camera again, from the traces that begin in it; what is kept of older times stays as it is."""
    if fetch(memory, "select 1 from faded where camera = ? and hour = ?", (camera, hour)):
        return
    begin = hour * HOUR_S - clock_offset(memory)
    traces = fetch(
        memory,
        "select id, start, end, text, detail from trace where camera = ? and start >= ? and start < ? order by start, id",
        (camera, begin, begin + HOUR_S),
    )
    watched = min(3600.0, sum(end - start for _, start, end, _, _ in traces))
    for table in ("scene_hour", "scene_tally"):
        memory.execute(f"delete from {table} where camera = ? and hour = ?", (camera, hour))  # noqa: S608 -- constants
    if not traces:
        return
    memory.execute("insert into scene_hour values(?, ?, ?, ?)", (camera, hour, watched, len(traces)))
    memory.executemany(
        "insert into scene_tally values(?, ?, ?, ?, ?, ?, ?)",
        [
            (camera, hour, what, cell.traces, cell.most, cell.first, cell.at)
            for what, cell in sorted(_counted(memory, traces).items())
        ],
    )


def cells_of(connection: apsw.Connection, trace: int) -> dict[str, Cell]:
    """What one moment adds to its hour."""
    rows = fetch(connection, "select id, start, end, text, detail from trace where id = ?", (trace,))
    return _counted(connection, rows)


def _counted(connection: apsw.Connection, traces: Sequence[tuple[Any, ...]]) -> dict[str, Cell]:
    """What is so in some traces (id, start, end, text, detail), which are in the order of time."""
    starts = {number: start for number, start, *_ in traces}
    cells: dict[str, Cell] = {}
    for number, what, most in _features(connection, traces):
        known = cells.get(what, Cell(0, 0, number, starts[number]))
        cells[what] = Cell(known.traces + 1, max(known.most, most), known.first, known.at)
    return cells


def _features(connection: apsw.Connection, traces: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, str, int]]:
    """What is so in each trace, in order: (trace, what, how much of it at once)."""
    wanted = (json.dumps([row[0] for row in traces]),)
    among = "in (select value from json_each(?))"
    seen: dict[int, dict[str, list[tuple[float, float]]]] = {}
    for number, label, start, end in fetch(
        connection,
        f"select trace, label, start, end from observation where trace {among} and score >= ?",  # noqa: S608 -- constant
        (*wanted, SURE),
    ):
        if label not in _NOT_SEEN:
            seen.setdefault(number, {}).setdefault(label, []).append((start, end))
    heard = {one for (one,) in fetch(connection, f"select distinct trace from utterance where trace {among}", wanted)}  # noqa: S608
    lines: dict[int, list[str]] = {}
    for number, text in fetch(connection, f"select trace, text from line where trace {among} order by id", wanted):  # noqa: S608
        lines.setdefault(number, []).append(text)
    for number, _, _, text, detail in traces:
        known = json.loads(detail)
        for label, spans in sorted(seen.get(number, {}).items()):
            yield number, f"{SEEN}{label}", _at_once(spans)
        if number in heard or known.get("speech_untranscribed"):
            yield number, SPEECH, 1
        if known.get("still") is False:
            yield number, MOTION, 1
        texts = [text, *lines.get(number, ())]
        for place in sorted(places_in(texts)):
            yield number, f"{PLACE}{place}", 1
        if "object_frames" not in known:  # described elsewhere: its words are all that tells of things
            for label in sorted({label for one in texts for label in _things(one)}):
                yield number, f"{TOLD}{label}", 1


def _at_once(spans: Sequence[tuple[float, float]]) -> int:
    """How many of some spans hold at one time, at most."""
    steps = sorted(
        [(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans], key=lambda one: (one[0], -one[1])
    )
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


@lru_cache(maxsize=8192)
def _things(text: str) -> frozenset[str]:
    """The classes of things that a text names."""
    words = _WORD.findall(text.lower())
    pairs = [" ".join(words[at : at + 2]) for at in range(len(words) - 1)]
    found = {label for phrase in (*words, *pairs) if len(labels := labels_for(phrase)) == 1 for label in labels}
    return frozenset(found - {"person"})


def forget_quiet(memory: apsw.Connection, user: str, since: float, until: float, camera: str | None = None) -> None:
    """Forget that cameras watched in a span (UTC POSIX seconds) while nothing was to be seen, by whole hours."""
    first = -LARGEST if since == -math.inf else slot_of(memory, since)
    last = LARGEST if until == math.inf else slot_of(memory, until)
    memory.execute(
        "delete from quiet where hour between ?3 and ?4"
        " and camera in (select id from camera where user = ?1 and (?2 is null or name = ?2))",
        (user, camera, first, last),
    )


def forget_faded(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Forget the tallies of the hours of some nodes of the timeline, of whose moments nothing else is left."""
    hours = fetch(
        memory,
        "select distinct camera, slot from node where level <= ? and id in (select value from json_each(?))",
        (CHAPTER, json.dumps(sorted(nodes))),
    )
    for table in ("scene_hour", "scene_tally"):
        memory.executemany(f"delete from {table} where camera = ? and hour = ?", hours)  # noqa: S608 -- constants


def _ask(memory: apsw.Connection, user: str, camera: int, hour: int) -> None:
    jobs.enqueue(memory, user, SCENE, f"{camera}:{hour}", priority=jobs.AT_ONCE - 15)


# -- reading ----------------------------------------------------------------------------------------------------------


def slot_of(connection: apsw.Connection, at: float) -> int:
    """The hour of an instant (UTC POSIX seconds) on the clock of the memory."""
    return int((at + clock_offset(connection)) // HOUR_S)


def day_of(connection: apsw.Connection, at: float) -> int:
    """The day (since 1970-01-01, on the clock of the memory) of an instant, UTC POSIX seconds."""
    return slot_of(connection, at) // HOURS


def begin_of(connection: apsw.Connection, slot: int) -> float:
    """UTC POSIX seconds at which an hour begins."""
    return slot * HOUR_S - clock_offset(connection)


def slots(connection: apsw.Connection, camera: int, first: int, last: int, near: int | None = None) -> dict[int, Hour]:
    """What is known of some hours of a camera.

    Args:
        connection: any.
        camera: its id.
        first: hour.
        last: hour, included.
        near: only hours at this hour of the day, an hour to each side let through.
    """
    span: tuple[object, ...] = (camera, first, last)
    where = "where camera = ? and hour between ? and ?"
    if near is not None:
        where += " and (hour - ? + 49) % 24 <= 2"
        span = (*span, near % HOURS)
    seconds: dict[int, float] = {}
    moments: dict[int, int] = {}
    for hour, watched, traces in fetch(connection, f"select hour, watched, traces from scene_hour {where}", span):  # noqa: S608
        seconds[hour], moments[hour] = watched, traces
    for hour, watched in fetch(connection, f"select hour, seconds from quiet {where}", span):  # noqa: S608
        seconds[hour] = min(3600.0, seconds.get(hour, 0.0) + watched)
    cells: dict[int, dict[str, Cell]] = {}
    rows = fetch(connection, f"select hour, what, traces, most, first, at from scene_tally {where}", span)  # noqa: S608
    for hour, what, traces, most, trace, at in rows:
        cells.setdefault(hour, {})[what] = Cell(traces, most, trace, at)
    return {hour: Hour(seconds.get(hour, 0.0), cells.get(hour, {}), moments.get(hour, 0)) for hour in sorted(seconds)}
