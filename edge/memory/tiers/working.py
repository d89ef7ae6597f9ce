"""Working memory: what goes on in front of each camera now (ReflectWorld-MM, Appendix C, context layers). Bounded.

It is a fold of the camera's latest event, which is a node of the timeline, and of the minutes before it. So it survives a
restart, follows corrections and forgetting, and is not moved by an old recording that comes in today.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.memory.drafts import to_json
from edge.memory.tiers.timeline.extract import bare, extract, spoken
from edge.memory.tiers.timeline.nodes import EVENT
from edge.memory.tiers.timeline.text import event_sentences
from edge.types.records import mentioned

SUMMARY_WORDS: Final = 100  # of the rolling summary (Appendix C: about one hundred)
LATEST: Final = 3  # segment summaries (Appendix C)
ACTIVE_S: Final = 300.0  # somebody who was not noticed for longer is not active (Appendix C: a few minutes)
TARGETS: Final = 8  # Appendix C
MISSES: Final = 3  # segments in a row without it that drop a target (Appendix C: a few)
_WINDOW: Final = 64  # segments that are looked at, at most
_LONGEST_S: Final = 60.0  # no segment is longer
_SEGMENT_WORDS: Final = 40  # of a segment's summary

WORKING_V1: Final = """
create table working(camera integer primary key references camera(id) on delete cascade, state text not null);
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Somebody or something that is followed from segment to segment."""

    label: str
    entity: int | None
    first: float  # UTC POSIX seconds
    last: float
    seen: int  # segments
    missed: int  # segments in a row, up to now


@dataclass(frozen=True, slots=True)
class Latest:
    """One segment in short."""

    trace: int
    start: float  # UTC POSIX seconds
    end: float
    text: str  # with mentions


@dataclass(frozen=True, slots=True)
class Working:
    """The event in front of one camera."""

    camera: str
    event: int  # its node of the timeline
    start: float  # UTC POSIX seconds
    end: float  # of its latest segment
    segments: int
    summary: str  # with mentions
    latest: tuple[Latest, ...]  # oldest first
    active: tuple[tuple[int, float], ...]  # (entity, UTC POSIX seconds when noticed last), the latest first
    targets: tuple[Target, ...]  # the latest first

    @property
    def people(self) -> tuple[int, ...]:
        """Everybody who is active, followed or mentioned, each once."""
        texts = (self.summary, *(one.text for one in self.latest))
        followed = [one.entity for one in self.targets if one.entity is not None]
        return tuple(
            dict.fromkeys([*(who for who, _ in self.active), *followed, *(who for t in texts for who in mentioned(t))])
        )

    def current(self, now: float, inactivity_s: float) -> bool:
        """Whether the event still goes on at `now` (UTC POSIX seconds): nothing longer than `inactivity_s` since."""
        return now - self.end <= inactivity_s


def create(connection: apsw.Connection) -> None:
    """Make the table; part of a migration, inside its transaction."""
    connection.execute(WORKING_V1)


def states(connection: apsw.Connection, user: str, camera: str | None = None) -> list[Working]:
    """The working memory of all cameras, or of one, in the order of their names."""
    rows = fetch(
        connection,
        "select c.name, w.state from working w join camera c on c.id = w.camera where c.user = ?1"
        " and (?2 is null or c.name = ?2) order by c.name",
        (user, camera),
    )
    return [_state(name, json.loads(state)) for name, state in rows]


def derive(memory: apsw.Connection, camera: int) -> None:
    """Bring the working memory of a camera up to date, inside a transaction; its timeline is up to date already."""
    rows = fetch(
        memory,
        "select id, start, end, traces from node where camera = ? and level = ? order by start desc, id desc limit 1",
        (camera, EVENT),
    )
    if not rows:
        memory.execute("delete from working where camera = ?", (camera,))
        return
    event, start, end, segments = rows[0]
    window = fetch(
        memory,
        "select id, start, end, text from (select id, start, end, text from trace where camera = ? and start >= ?"
        " order by start desc, id desc limit ?) where end >= ? order by start, end, id",
        (camera, min(start, end - ACTIVE_S - _LONGEST_S), _WINDOW, min(start, end - ACTIVE_S)),
    )
    wanted = (to_json([row[0] for row in window]),)
    seen = fetch(
        memory,
        "select trace, label, entity, end from observation where trace in (select value from json_each(?))"
        " order by trace, id",
        wanted,
    )
    said = fetch(
        memory,
        "select trace, speaker, end, text, speaker_name from utterance where trace in (select value from json_each(?))"
        " order by trace, start, id",
        wanted,
    )
    noticed = [(who, at) for _, _, who, at in seen] + [(who, at) for _, who, at, _, _ in said]
    state = {
        "event": event,
        "start": start,
        "end": end,
        "segments": segments,
        "summary": " ".join(extract(event_sentences(memory, event), SUMMARY_WORDS)),
        "latest": [asdict(one) for one in _latest(window[-LATEST:], said)],
        "active": active(noticed, end),
        "targets": [asdict(one) for one in targets(window, [(trace, label, who) for trace, label, who, _ in seen])],
    }
    memory.execute(
        "insert into working values(?1, ?2) on conflict(camera) do update set state = excluded.state",
        (camera, to_json(state)),
    )


def active(noticed: Iterable[tuple[int | None, float]], now: float) -> list[tuple[int, float]]:
    """Who was noticed lately. Pure.

    Args:
        noticed: (entity, UTC POSIX seconds).
        now: UTC POSIX seconds.

    Returns:
        (entity, when last), the latest first.
    """
    last: dict[int, float] = {}
    for who, at in noticed:
        if who is not None and now - at <= ACTIVE_S:
            last[who] = max(at, last.get(who, at))
    return sorted(last.items(), key=lambda one: (-one[1], one[0]))


def targets(
    segments: Sequence[tuple[int, float, float, str]], seen: Iterable[tuple[int, str, int | None]]
) -> tuple[Target, ...]:
    """What is followed after some segments. Pure.

    Args:
        segments: (trace, start, end, text) in the order of time.
        seen: (trace, label, entity).

    Returns:
        The targets, those seen latest and most often first.
    """
    there: dict[int, dict[tuple[str, int | None], None]] = {}
    for trace, label, who in seen:
        if label != "voice":
            there.setdefault(trace, {})[label, who] = None
    known: dict[tuple[str, int | None], Target] = {}
    for trace, start, end, _ in segments:
        now = there.get(trace, {})
        for key in now:
            had = known.get(key)
            first, count = (had.first, had.seen) if had else (start, 0)
            known[key] = Target(*key, first, end, count + 1, 0)
        for key, one in list(known.items()):
            if key in now:
                continue
            if one.missed + 1 >= MISSES:
                del known[key]
            else:
                known[key] = Target(*key, one.first, one.last, one.seen, one.missed + 1)
        best = sorted(known, key=lambda key: _rank(known[key]))[:TARGETS]
        known = {key: known[key] for key in best}
    return tuple(known.values())


def _rank(one: Target) -> tuple[int, bool, int, str, int]:
    """People and what is seen most often first; named things last by their names."""
    return one.missed, one.entity is None, -one.seen, one.label, one.entity or 0


def _latest(rows: Sequence[tuple[Any, ...]], said: Iterable[tuple[Any, ...]]) -> list[Latest]:
    words: dict[int, list[str]] = {}
    for trace, who, _, text, name in said:
        words.setdefault(trace, []).append(spoken(who, name, bare(text)))
    found = []
    for trace, start, end, text in rows:
        told = bare(text) or " ".join(words.get(trace, ()))
        parts = told.split()
        short = " ".join(parts[:_SEGMENT_WORDS]) + (" …" if len(parts) > _SEGMENT_WORDS else "")
        found.append(Latest(trace, start, end, short))
    return found


def _state(camera: str, state: dict[str, Any]) -> Working:
    return Working(
        camera,
        state["event"],
        state["start"],
        state["end"],
        state["segments"],
        state["summary"],
        tuple(Latest(**one) for one in state["latest"]),
        tuple((who, at) for who, at in state["active"]),
        tuple(Target(**one) for one in state["targets"]),
    )
