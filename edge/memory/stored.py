"""One remembered segment as the writer sees it, for what is derived from it inside a transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import apsw

from edge.memory.database import fetch
from edge.types.records import mentioned


@dataclass(frozen=True, slots=True)
class StoredObservation:
    """One entity or object in the segment."""

    id: int
    anchor: str
    label: str
    entity: int | None
    start: float  # UTC POSIX seconds
    end: float
    text: str  # with mentions
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StoredUtterance:
    """Words that were said in it."""

    id: int
    start: float  # UTC POSIX seconds
    end: float
    text: str
    speaker: int | None
    speaker_name: str | None
    confidence: float


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A segment with all that derivations look at."""

    id: int
    camera: str
    start: float  # UTC POSIX seconds
    end: float
    text: str  # with mentions
    detail: Mapping[str, Any]
    lines: tuple[tuple[float, str], ...]  # moment, text with mentions
    observations: tuple[StoredObservation, ...]
    utterances: tuple[StoredUtterance, ...]

    @property
    def entities(self) -> tuple[int, ...]:
        """Everybody who takes part or speaks, each once."""
        seen = [one.entity for one in self.observations] + [one.speaker for one in self.utterances]
        return tuple(dict.fromkeys(who for who in seen if who is not None))

    @property
    def mentioned(self) -> tuple[int, ...]:
        """Everybody who takes part, speaks, or is mentioned in a text, each once."""
        texts = (self.text, *(text for _, text in self.lines), *(one.text for one in self.observations))
        return tuple(dict.fromkeys([*self.entities, *(who for text in texts for who in mentioned(text))]))


def stored_trace(connection: apsw.Connection, user: str, trace: int) -> StoredTrace | None:
    """Read a segment; None: it is not there (any more), or another user's."""
    rows = fetch(
        connection,
        "select c.name, t.start, t.end, t.text, t.detail from trace t join camera c on c.id = t.camera"
        " where t.id = ? and +c.user = ?",
        (trace, user),
    )
    if not rows:
        return None
    camera, start, end, text, detail = rows[0]
    observations = fetch(
        connection,
        "select id, anchor, label, entity, start, end, text, detail from observation where trace = ? order by id",
        (trace,),
    )
    return StoredTrace(
        trace,
        camera,
        start,
        end,
        text,
        json.loads(detail),
        tuple(fetch(connection, "select at, text from line where trace = ? order by id", (trace,))),
        tuple(
            StoredObservation(number, anchor, label, entity, first, last, words, json.loads(more))
            for number, anchor, label, entity, first, last, words, more in observations
        ),
        tuple(
            StoredUtterance(*row)
            for row in fetch(
                connection,
                "select id, start, end, text, speaker, speaker_name, confidence from utterance where trace = ? order by id",
                (trace,),
            )
        ),
    )


def titles_of(connection: apsw.Connection, user: str, people: tuple[int, ...]) -> dict[int, str]:
    """How some entities are called now, by id."""
    sql = (
        "select id, coalesce(name, iif(kind = 'voice', 'voice ', 'person ') || number) from entity"
        " where user = ? and id in (select value from json_each(?))"
    )
    return dict(fetch(connection, sql, (user, json.dumps(people))))
