"""The nodes of the timeline tree: their levels, their tables, and how they are read."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from edge.memory.database import fetch, sql
from edge.memory.tiers.timeline.extract import split
from edge.types.records import Kind, public_id

K: Final = 8  # nodes that merge into one (Light-Omni, 3.2: k = 8)
HOUR_S: Final = 3600.0  # the interval after which a chapter ends
HOURS: Final = 24  # of a day

TRACE: Final = 0
EVENT: Final = 1
CHAPTER: Final = 2
PART: Final = 3  # and as many levels more as a day needs, below DAY
DAY: Final = 10
TOP: Final = 14  # K⁴ days, about eleven years

# What levels are called. Above days they are the powers of eight days that are nearest to what they are called after.
LEVELS: Final = {
    "event": (EVENT, EVENT),
    "chapter": (CHAPTER, CHAPTER),
    "part": (PART, DAY - 1),
    "day": (DAY, DAY),
    "week": (11, 11),  # 8 days
    "season": (12, 12),  # 64 days
    "era": (13, 13),  # 512 days
    "age": (TOP, TOP),  # 4096 days
}

FRONTIER: Final = 48  # nodes of the global state at most; one hour of half minutes has about 18
_RECENT_S: Final = {CHAPTER: HOUR_S / 2, DAY: HOUR_S * 6}  # one that ended less long ago still shows what it holds

NODES_V1: Final = """
create table node(
  id integer primary key autoincrement, camera integer not null references camera(id) on delete cascade,
  level integer not null, slot integer not null, parent integer references node(id) on delete set null,
  start real not null, end real not null, traces integer not null default 0, text text not null default '',
  summary_source text not null default 'extractive', people text not null default '{}', places text not null default '{}',
  things text not null default '{}', digest text not null default '', dirty integer not null default 1);
create index node_slot on node(camera, level, slot, start);
create index node_time on node(camera, level, start);
create index node_parent on node(parent, start);
create index node_dirty on node(camera, level) where dirty;
create index node_extractive on node(level, end) where summary_source = 'extractive';
create table node_trace(trace integer primary key, node integer not null references node(id) on delete cascade) without rowid;
create index node_trace_node on node_trace(node);
create table timeline_clock(offset real not null);
create table faded(camera integer not null references camera(id) on delete cascade, hour integer not null,
  primary key(camera, hour)) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Node:
    """A stretch of one camera's time with what it tells; of level 0, a trace."""

    id: int
    camera: str
    level: int
    start: float  # UTC POSIX seconds of the first and the last of it
    end: float
    traces: int  # how many moments it holds
    sentences: tuple[str, ...]  # what it tells, with mentions
    source: str  # who wrote the text: "extractive" or "model"
    people: dict[int, int]  # entity -> in how many moments; those most often there
    places: dict[str, int]  # kind of place -> in how many moments it is spoken of
    things: dict[str, int]  # class -> in how many moments it was seen
    parent: int | None

    @property
    def text(self) -> str:
        """What it tells, with mentions."""
        return " ".join(self.sentences)

    @property
    def item(self) -> str:
        """Its public id."""
        return public_id(Kind.NODE if self.level else Kind.TRACE, self.id)

    @property
    def name(self) -> str:
        """What its level is called."""
        return level_name(self.level)


def level_name(level: int) -> str:
    """What a level is called."""
    return next((name for name, (low, high) in LEVELS.items() if low <= level <= high), "trace")


_NODE = (
    "select n.id, c.name, n.level, n.start, n.end, n.traces, n.text, n.summary_source, n.people, n.places, n.things,"
    " n.parent from node n join camera c on c.id = n.camera"
)
# A trace as a node of level 0; of who takes part there, the text tells.
_LEAF = (
    "select t.id, c.name, 0, t.start, t.end, 1, t.text, 'extractive', '{}', '{}', '{}', l.node from node_trace l"
    " join trace t on t.id = l.trace join camera c on c.id = t.camera"
)


def node(connection: apsw.Connection, user: str, number: int) -> Node | None:
    """One node; None: there is none of this id."""
    found = _nodes(connection, sql(_NODE, "where n.id = ? and +c.user = ?"), (number, user))
    return found[0] if found else None


def children(connection: apsw.Connection, one: Node) -> list[Node]:
    """What a node was made of, in the order of time: nodes, of an event traces."""
    if one.level == TRACE:
        return []
    if one.level == EVENT:
        return _nodes(connection, sql(_LEAF, "where l.node = ? order by t.start, t.end, t.id"), (one.id,))
    return _nodes(connection, sql(_NODE, "where n.parent = ? order by n.start, n.id"), (one.id,))


def beside(connection: apsw.Connection, user: str, one: Node, count: int) -> list[Node]:
    """Up to `count` nodes of the same level and camera before a node, itself, and up to `count` after it."""
    where = "where c.user = ? and c.name = ? and n.level = ? and (n.start, n.id)"
    values = (user, one.camera, one.level, one.start, one.id, count)
    before = _nodes(connection, sql(_NODE, where, "< (?, ?) order by n.start desc, n.id desc limit ?"), values)
    after = _nodes(connection, sql(_NODE, where, "> (?, ?) order by n.start, n.id limit ?"), values)
    return [*before[::-1], one, *after]


def roots(connection: apsw.Connection, user: str, camera: str | None = None) -> list[Node]:
    """The highest nodes of all cameras (or one), in the order of time."""
    where = "where n.level = ? and c.user = ? and (? is null or c.name = ?) order by n.start, c.name, n.id"
    return _nodes(connection, sql(_NODE, where), (TOP, user, camera, camera))


def nodes_of_level(
    connection: apsw.Connection,
    user: str,
    level: str,
    *,
    since: float | None = None,
    until: float | None = None,
    camera: str | None = None,
    limit: int = 50,
) -> list[Node]:
    """The latest nodes of a level, in the order of time.

    Args:
        connection: any.
        user: whose memory.
        level: one of `LEVELS`.
        since: UTC POSIX seconds; those that ended after it.
        until: UTC POSIX seconds; those that began before it.
        camera: its name; None: all.
        limit: at most so many.
    """
    low, high = LEVELS[level]
    found = _nodes(
        connection,
        sql(
            _NODE,
            "where c.user = ? and n.level between ? and ? and (? is null or n.end > ?) and (? is null or n.start < ?)",
            "and (? is null or c.name = ?) order by n.start desc, c.name desc, n.id desc limit ?",
        ),
        (user, low, high, since, since, until, until, camera, camera, limit),
    )
    return found[::-1]


def of_trace(connection: apsw.Connection, trace: int, level: str) -> int | None:
    """The node of a level that holds a trace; None: none does."""
    low, high = LEVELS[level]
    rows = fetch(
        connection,
        "with recursive up(id) as (select node from node_trace where trace = ?1 union all"
        " select n.parent from up join node n on n.id = up.id where n.parent is not null)"
        " select n.id from up join node n on n.id = up.id where n.level between ?2 and ?3 order by n.level limit 1",
        (trace, low, high),
    )
    return int(rows[0][0]) if rows else None


def frontier(
    connection: apsw.Connection,
    user: str,
    at: float | None = None,
    *,
    camera: str | None = None,
    limit: int = FRONTIER,
) -> list[Node]:
    """The global state (Light-Omni, 3.2): what is recent in detail, what is distant in summary, bounded, in the order of time.

    From the top, the latest node of each level is replaced by what it holds, down to the traces of the latest event; one that
    ended a moment ago still shows what it holds, so that nothing falls out of sight at the turn of an hour or a day.

    Args:
        connection: any.
        user: whose memory.
        at: UTC POSIX seconds: as it was then, without what ended later. None: with everything.
        camera: its name; None: all.
        limit: at most so many nodes, unless there are more cameras.
    """
    state = [root for root in roots(connection, user, camera) if at is None or root.start < at]
    latest = {root.camera: root for root in state}
    if not state:
        return []
    now = max(one.end for one in state) if at is None else at
    # (must, recency, tie) of those to be replaced: those that reach beyond `at` first, then the most recent.
    queue: list[tuple[bool, float, int, int, Node, bool]] = []
    ticket = 0

    def offer(one: Node, *, last: bool) -> None:
        nonlocal ticket
        beyond = at is not None and one.end > at
        recent = now - one.end <= _RECENT_S.get(one.level, -1.0)
        if one.level > TRACE and (beyond or last or (recent and one.level != EVENT)):
            ticket += 1
            heapq.heappush(queue, (not beyond, -one.end, one.level, ticket, one, last))

    kept = {(one.level, one.id): one for one in state}
    for one in state:
        offer(one, last=latest[one.camera] is one)
    while queue:
        optional, _, _, _, one, last = heapq.heappop(queue)
        below = [child for child in children(connection, one) if at is None or child.start < at]
        if at is not None:
            below = [child for child in below if child.level > TRACE or child.end <= at]
        if optional and len(kept) - 1 + len(below) > limit:
            continue
        del kept[one.level, one.id]
        for place, child in enumerate(below):
            kept[child.level, child.id] = child
            offer(child, last=last and place == len(below) - 1)
    return sorted(kept.values(), key=lambda one: (one.start, -one.level, one.camera, one.id))


def descend(
    connection: apsw.Connection,
    user: str,
    start: float,
    end: float,
    limit: int = 12,
    *,
    camera: str | None = None,
    finest: int = EVENT,
    at: float | None = None,
) -> list[Node]:
    """Go down from the top to the nodes that cover a span: coarse where it is wide, fine at its edges, in the order of time.

    Args:
        connection: any.
        user: whose memory.
        start: UTC POSIX seconds.
        end: UTC POSIX seconds.
        limit: about so many nodes are wanted: where there are fewer, the largest are replaced by what they hold. The edges of
            the span may need more; then those with the most moments are kept.
        camera: its name; None: all.
        finest: the level that is not gone below, except at the edges.
        at: UTC POSIX seconds: as it was then, without what ended later. None: with everything.
    """
    end = end if at is None else min(end, at)
    exact = end - start <= HOUR_S  # an event more or less does not matter in a wider span
    inside: dict[tuple[int, int], Node] = {}
    waiting = roots(connection, user, camera)
    while waiting:
        one = waiting.pop()
        if one.end <= start or one.start >= end:
            continue
        if one.start >= start and one.end <= end:
            inside[one.level, one.id] = one
            continue
        below = children(connection, one)
        if one.level > EVENT:
            waiting += below
            continue
        whole = [
            child for child in below if child.start < end and child.end > start and (at is None or child.end <= at)
        ]
        if not exact and (at is None or one.end <= at) and 2 * len(whole) >= len(below) > 2:
            inside[one.level, one.id] = one
        else:
            inside |= {(TRACE, child.id): child for child in whole}
    coarse = [(-(one.end - one.start), one.level, one.id) for one in inside.values() if one.level > finest]
    heapq.heapify(coarse)
    while coarse and len(inside) < limit:
        _, level, number = heapq.heappop(coarse)
        below = children(connection, inside[level, number])
        if len(inside) - 1 + len(below) > limit:
            continue
        del inside[level, number]
        for child in below:
            inside[child.level, child.id] = child
            if child.level > finest:
                heapq.heappush(coarse, (-(child.end - child.start), child.level, child.id))
    most = heapq.nlargest(limit, inside.values(), key=lambda one: (one.traces, one.start)) if limit else []
    return sorted(most, key=lambda one: (one.start, one.camera, one.id))


def _nodes(connection: apsw.Connection, statement: str, values: Sequence[object]) -> list[Node]:
    return [_node(row) for row in fetch(connection, statement, values)]


def _node(row: tuple[Any, ...]) -> Node:
    number, camera, level, start, end, traces, text, source, people, places, things, parent = row
    return Node(
        number,
        camera,
        level,
        start,
        end,
        traces,
        tuple(split(text)),
        source,
        {int(who): count for who, count in json.loads(people).items()},
        json.loads(places),
        json.loads(things),
        parent,
    )
