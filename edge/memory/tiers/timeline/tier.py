"""The timeline tree: traces → events → chapters → parts → days → higher nodes, of each camera: how it is derived.

The tree is a pure function of the traces of a camera by event time, so that an old recording which comes in today, a
correction and a forgotten moment all give the tree that would be there had it been so from the start:

* An *event* is a run of traces inside one hour: it ends at a gap, before a trace that begins an event, and after `ROTATION`.
* A *chapter* is up to K events inside one hour.
* Inside a day the 8-of-9 rule (Light-Omni, 3.2) merges: when a level holds K + 1 nodes the oldest K become one above; what is
  left stands under the *day* itself.
* Above, K days, K·K days and so on make one node each, counted from a fixed day, so that the oldest K merge when the
  next one begins, and nothing shifts when a day is added or taken away.

Hours and days are cut on a clock without summer time that is fixed when the memory is made. Whatever changes, one hour and the
path above it are derived again (`settle`): the cost does not grow with history. A node keeps its id as long as most of what it
holds stays. docs/adr/0006-timeline.md says why.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import apsw

from edge.memory import jobs
from edge.memory.database import fetch, insert
from edge.memory.drafts import to_json
from edge.memory.stored import StoredTrace
from edge.memory.tiers import working
from edge.memory.tiers.timeline.nodes import CHAPTER, DAY, EVENT, HOUR_S, HOURS, NODES_V1, TOP, K
from edge.memory.tiers.timeline.text import EXTRACTIVE, KEPT, refresh

ROTATION: Final = 18  # traces of an event at most
GAP_S: Final = 30.0  # a longer gap ends an event (ReflectWorld-MM: 30 s)

TIMELINE: Final = "timeline"  # kind of job: an hour of a camera changed
ABOVE: Final = "timeline-above"  # kind of job: what is told above the chapters of a camera is behind
_LATER: Final = jobs.AT_ONCE - 20
_SOON: Final = jobs.AT_ONCE - 10  # when all traces that wait are looked at, so that an hour is derived once

Span = tuple[float, float]


def create(connection: apsw.Connection) -> None:
    """Make the tables, and ask for all that is remembered already; part of a migration, inside its transaction."""
    connection.execute(NODES_V1)
    working.create(connection)
    # The zone's own time, without summer time: fixed, or the same traces would give another tree after a journey.
    connection.execute("insert into timeline_clock values(?)", (float(-time.timezone),))
    for trace, user in fetch(connection, "select t.id, c.user from trace t join camera c on c.id = t.camera"):
        jobs.enqueue(connection, user, jobs.TRACE, trace, priority=jobs.AT_ONCE)


# -- what changed -----------------------------------------------------------------------------------------------------


def note(memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
    """A trace is new: ask for its hour."""
    _ask(memory, user, _hours_of(memory, trace.id))


def note_again(memory: apsw.Connection, number: int, _trace: StoredTrace | None, user: str) -> None:
    """A trace was corrected or forgotten: ask for the hour where it is and where it was."""
    _touch(memory, number)
    _ask(memory, user, _hours_of(memory, number))


def derive(memory: apsw.Connection, traces: Iterable[int]) -> None:
    """Derive at once what depends on traces that changed or are gone: nothing of what they said before is left.

    For forgetting, inside its transaction and after the rows are gone.
    """
    hours: set[tuple[int, int]] = set()
    for number in traces:
        _touch(memory, number)
        hours |= _hours_of(memory, number)
    for camera, hour in sorted(hours):
        settle(memory, camera, hour)


def settle_job(memory: apsw.Connection, job: jobs.Job) -> None:
    """Do a job `timeline`: the hour at once; what is told above chapters is asked for."""
    camera, hour = map(int, job.key.split(":"))
    settle(memory, camera, hour, top=CHAPTER)
    jobs.enqueue(memory, job.user, ABOVE, camera, priority=_LATER)


def settle_above_job(memory: apsw.Connection, job: jobs.Job) -> None:
    """Do a job `timeline-above`."""
    refresh(memory, int(job.key))


def settle(memory: apsw.Connection, camera: int, hour: int, *, top: int = TOP) -> None:
    """Derive an hour of a camera and all above it from the traces that there are; texts up to the level `top`."""
    if not _faded(memory, camera, hour) and _arrange_hour(memory, camera, hour):
        _arrange_day(memory, camera, hour // HOURS)
    refresh(memory, camera, top)
    _widen(memory, camera, hour)
    ((latest,),) = fetch(memory, "select max(start) from trace where camera = ?", (camera,))
    if latest is None or hour >= (latest + clock_offset(memory)) // HOUR_S - 1:  # it looks back for some minutes
        working.derive(memory, camera)


def _widen(memory: apsw.Connection, camera: int, hour: int) -> None:
    """Let the nodes above an hour reach as far as it does already, so that whoever goes down from the top comes there."""
    ((start, end, number),) = fetch(
        memory,
        "select min(start), max(end), max(id) from node where camera = ? and level = ? and slot = ?",
        (camera, CHAPTER, hour),
    )
    if number is not None:
        memory.execute(
            "with recursive up(id) as (select ?1 union all select n.parent from up join node n on n.id = up.id"
            " where n.parent is not null) update node set start = min(start, ?2), end = max(end, ?3)"
            " where id in (select id from up) and level > ?4 and (start > ?2 or end < ?3)",
            (number, start, end, CHAPTER),
        )


def _touch(memory: apsw.Connection, trace: int) -> None:
    memory.execute("update node set dirty = 1 where id = (select node from node_trace where trace = ?)", (trace,))


def _ask(memory: apsw.Connection, user: str, hours: Iterable[tuple[int, int]]) -> None:
    for camera, hour in hours:
        jobs.enqueue(memory, user, TIMELINE, f"{camera}:{hour}", priority=_SOON)


def _hours_of(memory: apsw.Connection, trace: int) -> set[tuple[int, int]]:
    """The hours of cameras where a trace belongs and where the tree has it."""
    offset = clock_offset(memory)
    now = fetch(memory, "select camera, start from trace where id = ?", (trace,))
    before = fetch(
        memory, "select n.camera, n.slot from node_trace l join node n on n.id = l.node where l.trace = ?", (trace,)
    )
    return {(camera, int((start + offset) // HOUR_S)) for camera, start in now} | {(one, slot) for one, slot in before}


def clock_offset(connection: apsw.Connection) -> float:
    """How far the clock that cuts hours and days is from UTC, s."""
    return float(fetch(connection, "select offset from timeline_clock")[0][0])


# -- what is kept of moments that are not kept any more --------------------------------------------------------------


def fade(memory: apsw.Connection, traces: Iterable[int]) -> None:
    """What is told of the hours of some traces stays as it is, though traces of them are about to go (retention)."""
    for number in traces:
        for camera, hour in _hours_of(memory, number):
            memory.execute("insert or ignore into faded values(?, ?)", (camera, hour))
            held = "select id from node where camera = ? and level = ? and slot = ?"
            memory.execute(f"delete from node_trace where node in ({held})", (camera, EVENT, hour))  # noqa: S608 -- constant
            memory.execute(
                f"update node set summary_source = ? where summary_source = ? and id in ({held})",  # noqa: S608 -- constant
                (KEPT, EXTRACTIVE, camera, EVENT, hour),
            )


def faded(connection: apsw.Connection, user: str, start: float, end: float, camera: str | None = None) -> list[int]:
    """The nodes of faded hours that touch a span (UTC POSIX seconds), events and chapters."""
    rows = fetch(
        connection,
        "select n.id from faded f join node n on n.camera = f.camera and n.slot = f.hour and n.level <= ?1"
        " join camera c on c.id = f.camera where n.start < ?3 and n.end > ?2 and c.user = ?4 and (?5 is null or c.name = ?5)",
        (CHAPTER, start, end, user, camera),
    )
    return [number for (number,) in rows]


def forget_faded(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Take away what is still told of faded hours, whole hours only; what is above follows."""
    rows = fetch(
        memory,
        "select id, camera, slot from node where id in (select value from json_each(?))",
        (to_json(sorted(nodes)),),
    )
    for number, _, _ in rows:
        memory.execute("update node set dirty = 1 where id = (select parent from node where id = ?)", (number,))
        memory.execute("delete from provenance where item_kind = 'node' and item = ?", (number,))
        memory.execute("delete from node where id = ?", (number,))
    for number, day in sorted({(one, slot // HOURS) for _, one, slot in rows}):
        _arrange_day(memory, number, day)
        refresh(memory, number)


def reword_faded(memory: apsw.Connection, user: str, reword: Callable[[str], str | None]) -> None:
    """Let the sentences of faded hours say something else; what is above follows.

    Args:
        memory: the writer's connection.
        user: whose memory.
        reword: a sentence as it is from now on; None: it goes.
    """
    cameras = set()
    for number in faded(memory, user, -math.inf, math.inf):
        ((camera, parent, text),) = fetch(memory, "select camera, parent, text from node where id = ?", (number,))
        lines = [reword(line) for line in text.split("\n")]
        clean = "\n".join(line for line in lines if line)
        if clean != text:
            memory.execute("update node set text = ? where id = ?", (clean, number))
            memory.execute("update node set dirty = 1 where id = ? and level > ?", (parent, CHAPTER))
            cameras.add(camera)
    for camera in sorted(cameras):
        refresh(memory, camera)


def _faded(memory: apsw.Connection, camera: int, hour: int) -> bool:
    return bool(fetch(memory, "select 1 from faded where camera = ? and hour = ?", (camera, hour)))


# -- the rules, pure --------------------------------------------------------------------------------------------------


def into_events(traces: Sequence[tuple[int, float, float, bool]]) -> list[tuple[int, ...]]:
    """Part the traces of an hour into events.

    Args:
        traces: (id, start, end, whether it begins an event), in the order of time.
    """
    events: list[list[int]] = []
    until = -float("inf")
    for number, start, end, begins in traces:
        if not events or begins or start - until > GAP_S or len(events[-1]) >= ROTATION:
            events.append([])
        events[-1].append(number)
        until = max(until, end)
    return [tuple(event) for event in events]


def merge(nodes: Sequence[int]) -> tuple[list[tuple[int, ...]], tuple[int, ...]]:
    """The 8-of-9 rule on one level: which runs of K have become one each, and which nodes are left, one to K of them."""
    groups = max(len(nodes) - 1, 0) // K
    return [tuple(nodes[at * K : at * K + K]) for at in range(groups)], tuple(nodes[groups * K :])


def keep_ids(owner: Mapping[int, int], groups: Sequence[Sequence[int]]) -> list[int | None]:
    """Which known node each group goes on as: that which has most of its members; None: it is new.

    Args:
        owner: member -> the node that has it until now.
        groups: of members.
    """
    taken: set[int] = set()
    kept: list[int | None] = []
    for group in groups:
        had = Counter(owner[one] for one in group if one in owner and owner[one] not in taken)
        best = min(had, key=lambda node: (-had[node], node)) if had else None
        kept.append(best)
        if best is not None:
            taken.add(best)
    return kept


# -- arranging --------------------------------------------------------------------------------------------------------


def _arrange_hour(memory: apsw.Connection, camera: int, hour: int) -> bool:
    """Events and chapters of an hour; whether there are other chapters than before."""
    begin = hour * HOUR_S - clock_offset(memory)
    traces = fetch(
        memory,
        "select id, start, end, coalesce(json_extract(detail, '$.first_of_event'), 0) from trace"
        " where camera = ? and start >= ? and start < ? order by start, end, id",
        (camera, begin, begin + HOUR_S),
    )
    spans = {number: (start, end) for number, start, end, _ in traces}
    groups = into_events(traces)
    owner = dict(
        fetch(
            memory,
            "select l.trace, l.node from node n join node_trace l on l.node = n.id"
            " where n.camera = ? and n.level = ? and n.slot = ?",
            (camera, EVENT, hour),
        )
    )
    events, _ = _place(memory, camera, EVENT, hour, keep_ids(owner, groups), [_span(group, spans) for group in groups])
    _link(memory, owner, dict(zip(events, groups, strict=True)))
    chunks = [tuple(events[at : at + K]) for at in range(0, len(events), K)]
    event_spans = {event: _span(group, spans) for event, group in zip(events, groups, strict=True)}
    return _arrange(memory, camera, CHAPTER, hour, chunks, event_spans)[1]


def _arrange_day(memory: apsw.Connection, camera: int, day: int) -> None:
    """Put the chapters of a day together by the 8-of-9 rule, and the day into what is above it."""
    spans = _spans(memory, camera, CHAPTER, day * HOURS, day * HOURS + HOURS - 1)
    nodes = list(spans)
    left: list[int] = []
    for level in range(CHAPTER + 1, DAY):
        groups, rest = merge(nodes)
        left += rest
        nodes, changed = _arrange(memory, camera, level, day, groups, spans)
        spans |= _spans(memory, camera, level, day, day)
        if not nodes and not changed:
            break
    left += nodes
    _arrange(memory, camera, DAY, day, [tuple(left)] if left else [], spans)
    slot = day
    for level in range(DAY + 1, TOP + 1):
        slot //= K
        below = _spans(memory, camera, level - 1, slot * K, slot * K + K - 1)
        _arrange(memory, camera, level, slot, [tuple(below)] if below else [], below)


def _arrange(
    memory: apsw.Connection,
    camera: int,
    level: int,
    slot: int,
    groups: Sequence[tuple[int, ...]],
    spans: Mapping[int, Span],
) -> tuple[list[int], bool]:
    """Let a slot of a level hold exactly one node for each group of children.

    Returns:
        The nodes, in order, and whether they are others than before.
    """
    owner = dict(
        fetch(
            memory,
            "select b.id, b.parent from node n join node b on b.parent = n.id"
            " where n.camera = ? and n.level = ? and n.slot = ?",
            (camera, level, slot),
        )
    )
    nodes, changed = _place(memory, camera, level, slot, keep_ids(owner, groups), [_span(one, spans) for one in groups])
    held = Counter(owner.values())
    for number, group in zip(nodes, groups, strict=True):
        moved = [child for child in group if owner.get(child) != number]
        for child in moved:
            memory.execute("update node set dirty = 1 where id = (select parent from node where id = ?)", (child,))
            memory.execute("update node set parent = ? where id = ?", (number, child))
        if moved or held[number] != len(group):
            memory.execute("update node set dirty = 1 where id = ?", (number,))
    return nodes, changed


def _place(
    memory: apsw.Connection, camera: int, level: int, slot: int, kept: Sequence[int | None], spans: Sequence[Span]
) -> tuple[list[int], bool]:
    """Make the nodes of a slot those of `kept`, new ones for None, and drop all others.

    Returns:
        The nodes, in order, and whether they are others than before.
    """
    before = list(_spans(memory, camera, level, slot, slot).items())
    old = dict(before)
    nodes = []
    for number, (start, end) in zip(kept, spans, strict=True):
        if number is None:
            values = {"camera": camera, "level": level, "slot": slot, "start": start, "end": end}
            nodes.append(insert(memory, "node", values))
        else:
            if old.get(number) != (start, end):
                memory.execute("update node set start = ?, end = ?, dirty = 1 where id = ?", (start, end, number))
            nodes.append(number)
    for gone in old.keys() - set(nodes):
        # What is above lacks it from now on, whether that is arranged again or not.
        memory.execute("update node set dirty = 1 where id = (select parent from node where id = ?)", (gone,))
        memory.execute("delete from provenance where item_kind = 'node' and item = ?", (gone,))
        memory.execute("delete from node where id = ?", (gone,))
    return nodes, nodes != [number for number, _ in before]


def _link(memory: apsw.Connection, owner: Mapping[int, int], events: Mapping[int, Sequence[int]]) -> None:
    """Let each event hold its traces."""
    held = Counter(owner.values())
    changed = {
        event: traces
        for event, traces in events.items()
        if held[event] != len(traces) or any(owner.get(trace) != event for trace in traces)
    }
    if not changed:
        return
    wanted = (to_json(list(changed)),)
    memory.execute("delete from node_trace where node in (select value from json_each(?))", wanted)
    memory.execute(
        "delete from provenance where item_kind = 'node' and item in (select value from json_each(?))", wanted
    )
    rows = [(trace, event) for event, traces in changed.items() for trace in traces]
    memory.executemany("insert or replace into node_trace(trace, node) values(?, ?)", rows)
    memory.executemany(
        "insert into provenance values('node', ?, 'trace', ?)", [(event, trace) for trace, event in rows]
    )
    memory.execute("update node set dirty = 1 where id in (select value from json_each(?))", wanted)


def _spans(memory: apsw.Connection, camera: int, level: int, first: int, last: int) -> dict[int, Span]:
    """The nodes of some slots of a level in the order of time, with their spans."""
    rows = fetch(
        memory,
        "select id, start, end from node where camera = ? and level = ? and slot between ? and ? order by slot, start, end, id",
        (camera, level, first, last),
    )
    return {number: (start, end) for number, start, end in rows}


def _span(members: Sequence[int], spans: Mapping[int, Span]) -> Span:
    return min(spans[one][0] for one in members), max(spans[one][1] for one in members)
