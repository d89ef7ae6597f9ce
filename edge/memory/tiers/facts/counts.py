"""What facts are counted from: who and what was seen where, when, with whom and on what; tallies by hour of a camera.

A tally is a function of the moments that begin in its hour: whenever one of them is new, corrected or forgotten, the hour is
counted again, so that the order in which moments come makes no difference. Hours that retention let fade stay as they are.

Subjects are people and voices (an entity), and movable things by their class: a detector tells a cup from a bottle, and not one
cup from another.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.memory.tiers.facts.runs import ON, SEEN, WITH
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.nodes import HOUR_S
from edge.types.vocabulary import ANIMALS, FURNITURE, VEHICLES

SURE: Final = 0.5  # score from which a thing counts: a detector's doubtful finds make no habits
# Nobody looks for these: they stay where they are, or somebody else is meant by them.
_FIXED: Final = frozenset(
    (
        "person", "voice", "face", "traffic light", "fire hydrant", "stop sign", "parking meter", "toilet", "tv", "microwave",
        "oven", "toaster", "sink", "refrigerator", "clock", "potted plant",
    )
) | FURNITURE | VEHICLES | (ANIMALS - {"cat", "dog"})  # fmt: skip
_SURFACE: Final = re.compile(
    r"\b(?:was|were|is|are|lay|lies|stood|stands) (?P<on>(?:on|in) (?:a|an|the) [a-z][a-z ]*?)(?=[,.;]|$)"
)
_IN_VIEW: Final = re.compile(r"\b(?:middle|left|right|view)\b")

Cell = tuple[int, str]  # subject, what
Counts = Counter[Cell]


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom or what facts are about."""

    id: int
    user: str
    entity: int | None
    label: str | None  # class of a thing
    observations: int  # moments in which they took part: the counter of ReflectWorld-MM, Appendix C
    upto: float | None  # UTC POSIX seconds of the first moment that is not consolidated yet


_SUBJECT: Final = "select id, user, entity, label, observations, upto from fact_subject"


def subject_of(
    connection: apsw.Connection, user: str, *, entity: int | None = None, label: str | None = None
) -> Subject | None:
    """The subject that an entity or a class of things is; None: nothing is known of it."""
    column, value = ("entity", entity) if entity is not None else ("label", label)
    rows = fetch(connection, f"{_SUBJECT} where user = ? and {column} = ?", (user, value))
    return Subject(*rows[0]) if rows else None


def subject(connection: apsw.Connection, number: int) -> Subject | None:
    """A subject by its number."""
    rows = fetch(connection, f"{_SUBJECT} where id = ?", (number,))
    return Subject(*rows[0]) if rows else None


def ensure_subject(memory: apsw.Connection, user: str, *, entity: int | None = None, label: str | None = None) -> int:
    """The number of a subject, which is made when there is none."""
    found = subject_of(memory, user, entity=entity, label=label)
    if found is not None:
        return found.id
    memory.execute("insert into fact_subject(user, entity, label) values(?, ?, ?)", (user, entity, label))
    return memory.last_insert_rowid()


def surface(text: str) -> str | None:
    """What a thing is on or in by the words of its observation ("on a table"); None: they do not say."""
    for match in _SURFACE.finditer(text):
        where = match["on"].strip()
        if not _IN_VIEW.search(where):
            return where
    return None


def counted(memory: apsw.Connection, user: str, traces: Iterable[int]) -> Counts:
    """What some moments show.

    Args:
        memory: the writer's connection: subjects that are not known are made.
        user: whose memory.
        traces: ids.

    Returns:
        (subject, what) -> the number of these moments that show it.
    """
    wanted = (json.dumps(sorted(traces)),)
    among = "in (select value from json_each(?))"
    takes_part: dict[int, set[int]] = {}
    things: dict[int, dict[str, set[str]]] = {}
    for trace, label, entity, text, score in fetch(
        memory,
        f"select trace, label, entity, text, score from observation where trace {among}",  # noqa: S608 -- constant
        wanted,
    ):
        if entity is not None:
            takes_part.setdefault(trace, set()).add(entity)
        elif label not in _FIXED and score >= SURE:
            where = surface(text)
            things.setdefault(trace, {}).setdefault(label, set()).update([where] if where else [])
    for trace, speaker in fetch(
        memory,
        f"select distinct trace, speaker from utterance where trace {among} and speaker is not null",  # noqa: S608
        wanted,
    ):
        takes_part.setdefault(trace, set()).add(speaker)
    counts: Counts = Counter()
    known: dict[int | str, int] = {}

    def number(key: int | str) -> int:
        if key not in known:
            known[key] = (
                ensure_subject(memory, user, entity=key)
                if isinstance(key, int)
                else ensure_subject(memory, user, label=key)
            )
        return known[key]

    for people in takes_part.values():
        for who in people:
            counts[number(who), SEEN] += 1
            for other in people - {who}:
                counts[number(who), f"{WITH}{other}"] += 1
    for labels in things.values():
        for label, surfaces in labels.items():
            counts[number(label), SEEN] += 1
            for where in surfaces:
                counts[number(label), f"{ON}{where}"] += 1
    return counts


def hours_of(connection: apsw.Connection, traces: Iterable[int]) -> list[tuple[int, int]]:
    """The cameras and hours in which some moments begin."""
    rows = fetch(
        connection,
        "select camera, start from trace where id in (select value from json_each(?))",
        (json.dumps(sorted(traces)),),
    )
    offset = clock_offset(connection)
    return sorted({(int(camera), int((start + offset) // HOUR_S)) for camera, start in rows})


def count_hour(memory: apsw.Connection, camera: int, hour: int) -> set[int]:
    """Count an hour of a camera again.

    Returns:
        The subjects of whom it shows something else than before.
    """
    if fetch(memory, "select 1 from faded where camera = ? and hour = ?", (camera, hour)):
        return set()
    users = fetch(memory, "select user from camera where id = ?", (camera,))
    if not users:
        return set()
    begin = hour * HOUR_S - clock_offset(memory)
    traces = fetch(
        memory,
        "select id from trace where camera = ? and start >= ? and start < ?",
        (camera, begin, begin + HOUR_S),
    )
    before = {
        (subject, what): moments
        for subject, what, moments in fetch(
            memory, "select subject, what, traces from fact_tally where camera = ? and hour = ?", (camera, hour)
        )
    }
    now = counted(memory, users[0][0], [number for (number,) in traces])
    changed = {cell for cell in {*before, *now} if before.get(cell, 0) != now.get(cell, 0)}
    for subject, what in changed:
        moments = now.get((subject, what), 0)
        if moments:
            memory.execute(
                "insert or replace into fact_tally values(?, ?, ?, ?, ?)", (camera, hour, subject, what, moments)
            )
        else:
            memory.execute(
                "delete from fact_tally where camera = ? and hour = ? and subject = ? and what = ?",
                (camera, hour, subject, what),
            )
        if what == SEEN:
            memory.execute(
                "update fact_subject set observations = observations + ? where id = ?",
                (moments - before.get((subject, what), 0), subject),
            )
    return {subject for subject, _ in changed}


def latest(connection: apsw.Connection, of: Subject, number: int) -> list[tuple[float, int, int]]:
    """The latest moments of a subject that are still there: (start, trace, camera), the latest first.

    Args:
        connection: any.
        of: whom or what.
        number: how many.
    """
    if number <= 0:
        return []
    if of.entity is not None:
        cursors = [
            connection.execute(
                "select o.trace, t.start, t.camera from observation o join trace t on t.id = o.trace"
                " where o.entity = ? order by o.start desc",
                (of.entity,),
            ),
            connection.execute(
                "select u.trace, t.start, t.camera from utterance u join trace t on t.id = u.trace"
                " where u.speaker = ? order by u.start desc",
                (of.entity,),
            ),
        ]
    else:
        cursors = [
            connection.execute(
                "select o.trace, t.start, t.camera from observation o indexed by observation_label"
                " join trace t on t.id = o.trace join camera c on c.id = t.camera"
                " where o.label = ? and o.entity is null and o.score >= ? and +c.user = ? order by o.start desc",
                (of.label, SURE, of.user),
            )
        ]
    found: set[tuple[float, int, int]] = set()
    for cursor in cursors:
        here: set[tuple[float, int, int]] = set()
        # Moments overlap where two cameras look at once: some more are looked at, so that the latest are among them.
        for trace, start, camera in cursor:
            here.add((start, trace, camera))
            if len(here) >= 2 * number + 4:
                break
        found |= here
    return sorted(found, reverse=True)[:number]


def uncounted(
    memory: apsw.Connection, of: Subject, moments: Sequence[tuple[float, int, int]]
) -> Counter[tuple[int, int, str]]:
    """What some moments of a subject add to its tallies: (camera, hour, what) -> moments."""
    offset = clock_offset(memory)
    found: Counter[tuple[int, int, str]] = Counter()
    for start, trace, camera in moments:
        hour = int((start + offset) // HOUR_S)
        for (subject, what), number in counted(memory, of.user, [trace]).items():
            if subject == of.id:
                found[camera, hour, what] += number
    return found


def rows_before(connection: apsw.Connection, of: int, hour: int) -> Any:
    """The tallies of a subject before an hour, the latest first; read as far as they are wanted."""
    return connection.execute(
        "select hour, camera, what, traces from fact_tally where subject = ? and hour < ? order by hour desc",
        (of, hour),
    )


def rows_since(connection: apsw.Connection, of: int, hour: int) -> list[tuple[int, int, str, int]]:
    """The tallies of a subject from an hour on: (hour, camera, what, moments)."""
    return fetch(
        connection, "select hour, camera, what, traces from fact_tally where subject = ? and hour >= ?", (of, hour)
    )
