"""Which rows a sighting is made of: what moves together when it turns out to be somebody else."""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw

from edge.errors import UserError
from edge.memory.attribution import Item
from edge.memory.database import fetch
from edge.types.records import Kind, public_id

_WHOLE = (
    "select 'observation', id from observation where trace = ?1 and entity = ?2"
    " union all select 'utterance', id from utterance where trace = ?1 and speaker = ?2"
    " union all select 'decision', id from decision where trace = ?1 and entity = ?2"
    " union all select 'sample', id from sample where trace = ?1 and entity = ?2"
    " union all select 'claim', c.id from name_claim c join utterance u on u.id = c.utterance"
    " where u.trace = ?1 and c.entity = ?2"
)
_ANCHORED = (
    "select 'observation', id from observation where trace = ?1 and entity = ?2 and anchor in (select value from json_each(?3))"
    " union all select 'utterance', id from utterance where trace = ?1 and speaker = ?2"
    " and voice in (select value from json_each(?3))"
    " union all select 'decision', id from decision where trace = ?1 and entity = ?2"
    " and anchor in (select value from json_each(?3))"
    " union all select 'sample', id from sample where trace = ?1 and entity = ?2"
    " and anchor in (select value from json_each(?4)) and (not ?5 or modality = 'voice')"
    " union all select 'claim', c.id from name_claim c join utterance u on u.id = c.utterance"
    " where u.trace = ?1 and c.entity = ?2 and c.source = 'self' and u.voice in (select value from json_each(?3))"
)
# Voices whose owner is seen speaking, by the anchor of the one who is seen.
_LINKED = (
    "select anchor, json_extract(evidence, '$.seen_speaking') from decision where trace = ? and entity = ?"
    " and json_extract(evidence, '$.seen_speaking') is not null"
)


def rows_of(connection: apsw.Connection, entity: int, title: str, sightings: Iterable[tuple[Kind, int]]) -> set[Item]:
    """The rows of some sightings of somebody.

    A trace is all that they did in it. An observation is what hangs on its track, with the voice that it is seen to speak
    with; all observations of a trace are the trace. An utterance is all that the same voice says there.

    Args:
        connection: any, in one state of the memory.
        entity: whose sightings.
        title: how they are called, for errors.
        sightings: ids of traces, observations and utterances.

    Raises:
        UserError: one of them is not a sighting of this person, or there are none.
    """
    whole: set[int] = set()
    seen: dict[int, set[int]] = {}  # trace -> observations
    heard: list[tuple[int, int, str | None]] = []
    for kind, number in sightings:
        if kind is Kind.TRACE:
            whole.add(number)
            if not fetch(connection, _WHOLE + " limit 1", (number, entity)):
                raise _not_theirs(kind, number, title)
        elif kind is Kind.OBSERVATION:
            sql = "select trace, id, anchor from observation where id = ? and entity = ?"
            for trace, _, _ in _found(connection, sql, kind, number, entity, title):
                seen.setdefault(trace, set()).add(number)
        elif kind is Kind.UTTERANCE:
            sql = "select trace, id, voice from utterance where id = ? and speaker = ?"
            heard += _found(connection, sql, kind, number, entity, title)
        else:
            raise UserError(
                f"{public_id(kind, number)} is no sighting; give ids of moments (t12), observations (o7) or words (u9)."
            )
    for trace, observations in seen.items():
        sql = "select id from observation where trace = ? and entity = ?"
        if observations >= {number for (number,) in fetch(connection, sql, (trace, entity))}:
            whole.add(trace)
    found: set[Item] = set()
    for trace in whole:
        found.update(fetch(connection, _WHOLE, (trace, entity)))
    for trace, observations in seen.items():
        if trace not in whole:
            found |= _tracks(connection, entity, trace, observations)
    for trace, number, voice in heard:
        found.add(("utterance", number))
        if trace not in whole and voice is not None:
            tracks = [track for anchor, track in fetch(connection, _LINKED, (trace, entity)) if anchor == voice]
            values = (trace, entity, json.dumps([voice]), json.dumps([voice, *tracks]), True)
            found.update(fetch(connection, _ANCHORED, values))
    if not found:
        raise UserError(f"Say which sightings of {title} are meant: ids such as t12 or o7.")
    return found


def _tracks(connection: apsw.Connection, entity: int, trace: int, observations: set[int]) -> set[Item]:
    sql = "select anchor from observation where id in (select value from json_each(?))"
    anchors = {anchor for (anchor,) in fetch(connection, sql, (json.dumps(sorted(observations)),))}
    anchors |= {voice for voice, track in fetch(connection, _LINKED, (trace, entity)) if track in anchors}
    names = json.dumps(sorted(anchors))
    return set(fetch(connection, _ANCHORED, (trace, entity, names, names, False)))


def _found(
    connection: apsw.Connection, sql: str, kind: Kind, number: int, entity: int, title: str
) -> list[tuple[int, int, str | None]]:
    rows = fetch(connection, sql, (number, entity))
    if not rows:
        raise _not_theirs(kind, number, title)
    return rows


def _not_theirs(kind: Kind, number: int, title: str) -> UserError:
    return UserError(f"{public_id(kind, number)} is no sighting of {title}; `reflectworld people show` lists theirs.")
