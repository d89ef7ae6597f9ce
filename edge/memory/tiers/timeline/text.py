"""What a node of the timeline tells: chosen from what its children tell, counted from what they count.

A node is *dirty* when what it holds changed. Refreshing goes from below upwards and ends where nothing changes any more:
`digest` stands for all that a text was made from, so that a text that a language model wrote stays until its ground changes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from edge.memory.database import fetch
from edge.memory.drafts import to_json
from edge.memory.tiers.timeline.extract import Sentence, bare, extract, is_spoken, length, places_in, split, spoken
from edge.memory.tiers.timeline.nodes import CHAPTER, DAY, EVENT, HOUR_S, HOURS, TOP

MODEL: Final = "model"
EXTRACTIVE: Final = "extractive"
KEPT: Final = "kept"  # extractive, after a model had written nothing better
_WORDS: Final = {EVENT: 50, CHAPTER: 70, DAY: 110}  # of a text at most
_WORDS_ELSE: Final = 90
_PEOPLE, _PLACES, _THINGS = 16, 8, 12  # that a node names
_UTTERANCES: Final = 12  # of a trace that may be told, the longest
_SPOKEN_WEIGHT: Final = 0.7  # what was said tells less of what happened than what was seen
_NOT_THINGS: Final = frozenset({"person", "voice", "face"})


@dataclass(frozen=True, slots=True)
class _Content:
    """What a node holds."""

    start: float
    end: float
    traces: int
    people: Counter[int]
    places: Counter[str]
    things: Counter[str]
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a text of a node is made from."""

    node: int
    level: int
    digest: str  # of all this; the text may only be written while it is the same
    words: int  # that the text may have
    texts: tuple[tuple[float, str], ...]  # (UTC POSIX seconds, text with mentions) in the order of time


def refresh(memory: apsw.Connection, camera: int, top: int = TOP) -> int:
    """Bring the dirty nodes of a camera up to date, from below upwards to the level `top`; how many were looked at."""
    looked = 0
    for level in range(EVENT, top + 1):
        rows = fetch(
            memory, "select id from node where camera = ? and level = ? and dirty order by id", (camera, level)
        )
        for (number,) in rows:
            _refresh(memory, number, level)
        looked += len(rows)
    return looked


def ground(connection: apsw.Connection, number: int) -> Ground | None:
    """What the text of a node is made from, for who writes it better; None: there is no such node."""
    rows = fetch(connection, "select level, digest from node where id = ? and not dirty", (number,))
    if not rows:
        return None
    level, digest = rows[0]
    texts = tuple((one.at, one.text) for one in _content(connection, number, level).sentences)
    return Ground(number, level, digest, _words(level), texts)


def rewrite(memory: apsw.Connection, made_from: Ground, text: str) -> int | None:
    """Put a better text in the place of an extractive one, inside a transaction; what is above follows.

    Args:
        memory: the writer's connection.
        made_from: what it was made from.
        text: a sentence a line, with mentions of people who are in `made_from` only; cut at its number of words.

    Returns:
        The camera whose nodes are to be refreshed (`refresh`); None: what it was made from has changed, and nothing was
        written.
    """
    rows = fetch(
        memory,
        "select camera, parent from node where id = ? and digest = ? and not dirty",
        (made_from.node, made_from.digest),
    )
    if not rows:
        return None
    camera, parent = rows[0]
    lines = [" ".join(line.split()) for line in text.split("\n")]
    words = text.split()
    clean = "\n".join(lines) if len(words) <= made_from.words else " ".join(words[: made_from.words]) + " …"
    memory.execute("update node set text = ?, summary_source = ? where id = ?", (clean, MODEL, made_from.node))
    memory.execute("update node set dirty = 1 where id = ?", (parent,))
    return int(camera)


def keep(memory: apsw.Connection, made_from: Ground) -> None:
    """Keep the extractive text of a node until its ground changes: a model had its try. Inside a transaction."""
    memory.execute(
        "update node set summary_source = ? where id = ? and digest = ? and summary_source = ?",
        (KEPT, made_from.node, made_from.digest, EXTRACTIVE),
    )


def unwritten(connection: apsw.Connection, user: str, now: float, limit: int) -> list[int]:
    """Closed nodes whose text no model has written yet, the finest and then the latest first.

    Args:
        connection: any.
        user: whose memory.
        now: UTC POSIX seconds: a node is closed when its hour or its day is over and nothing of it is dirty.
        limit: at most so many.
    """
    rows = fetch(
        connection,
        "select n.id from node n indexed by node_extractive join camera c on c.id = n.camera"
        " where n.summary_source = 'extractive' and n.level <= ?1 and n.end < ?2 - iif(n.level < ?3, ?4, ?5)"
        " and not n.dirty and +c.user = ?6 and n.traces > 1 order by n.level, n.end desc limit ?7",
        (DAY, now, DAY, HOUR_S, HOUR_S * HOURS, user, limit),
    )
    return [number for (number,) in rows]


def event_sentences(connection: apsw.Connection, number: int) -> tuple[Sentence, ...]:
    """All that an event may be told by, in the order of time."""
    return _of_traces(connection, number).sentences


def _refresh(memory: apsw.Connection, number: int, level: int) -> None:
    content = _content(memory, number, level)
    if not content.traces:
        return  # all of it was forgotten: its own hour, which is asked for, takes it away
    digest = _digest(content)
    ((parent, before),) = fetch(memory, "select parent, digest from node where id = ?", (number,))
    if digest == before:
        memory.execute("update node set dirty = 0 where id = ?", (number,))
        return
    text = "\n".join(extract(content.sentences, _words(level)))
    memory.execute(
        "update node set start = ?, end = ?, traces = ?, text = ?, summary_source = ?, people = ?, places = ?, things = ?,"
        " digest = ?, dirty = 0 where id = ?",
        (
            content.start,
            content.end,
            content.traces,
            text,
            EXTRACTIVE,
            _counted(content.people, _PEOPLE),
            _counted(content.places, _PLACES),
            _counted(content.things, _THINGS),
            digest,
            number,
        ),
    )
    memory.execute("update node set dirty = 1 where id = ?", (parent,))


def _content(connection: apsw.Connection, number: int, level: int) -> _Content:
    return _of_traces(connection, number) if level == EVENT else _of_nodes(connection, number)


def _of_nodes(connection: apsw.Connection, number: int) -> _Content:
    rows = fetch(
        connection,
        "select start, end, traces, people, places, things, text from node where parent = ? order by start, end, level, id",
        (number,),
    )
    people, places, things = Counter[int](), Counter[str](), Counter[str]()
    sentences = []
    for start, _, _, who, where, what, text in rows:
        people.update({int(one): count for one, count in json.loads(who).items()})
        places.update(json.loads(where))
        things.update(json.loads(what))
        sentences += [Sentence(start, one, _SPOKEN_WEIGHT if is_spoken(one) else 1.0) for one in split(text)]
    return _Content(
        min((row[0] for row in rows), default=0.0),
        max((row[1] for row in rows), default=0.0),
        sum(row[2] for row in rows),
        people,
        places,
        things,
        tuple(sentences),
    )


def _of_traces(connection: apsw.Connection, number: int) -> _Content:
    rows = fetch(
        connection,
        "select t.id, t.start, t.end, t.text from node_trace l join trace t on t.id = l.trace where l.node = ?"
        " order by t.start, t.end, t.id",
        (number,),
    )
    wanted = (json.dumps([row[0] for row in rows]),)
    among = "in (select value from json_each(?))"
    lines = _by_trace(fetch(connection, f"select trace, at, text from line where trace {among} order by id", wanted))  # noqa: S608 -- constants
    seen = _by_trace(fetch(connection, f"select trace, label, entity from observation where trace {among}", wanted))  # noqa: S608
    said = _by_trace(
        fetch(
            connection,
            "select u.trace, u.start, u.text, u.speaker, u.speaker_name from utterance u"  # noqa: S608
            f" where u.trace {among} order by u.start, u.id",
            wanted,
        )
    )
    people, places, things = Counter[int](), Counter[str](), Counter[str]()
    sentences: list[Sentence] = []
    for trace, start, _, text in rows:
        told = lines.get(trace) or [(start, one) for one in split(text)]
        sentences += [Sentence(at, bare(words)) for at, words in told]
        heard = said.get(trace, [])
        longest = sorted(heard, key=lambda one: (-length(one[1]), one[0]))[:_UTTERANCES]
        sentences += [
            Sentence(at, spoken(who, name, bare(words)), _SPOKEN_WEIGHT)
            for at, words, who, name in sorted(longest, key=lambda one: (one[0], one[1]))
            if length(words) >= 3
        ]
        there = {who for _, who in seen.get(trace, []) if who is not None}
        people.update(there | {who for _, _, who, _ in heard if who is not None})
        things.update({label for label, _ in seen.get(trace, []) if label not in _NOT_THINGS})
        places.update(places_in([text, *(words for _, words in told)]))
    sentences.sort(key=lambda one: one.at)
    return _Content(
        min((row[1] for row in rows), default=0.0),
        max((row[2] for row in rows), default=0.0),
        len(rows),
        people,
        places,
        things,
        tuple(sentences),
    )


def _by_trace(rows: Iterable[tuple[Any, ...]]) -> dict[int, list[tuple[Any, ...]]]:
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for trace, *rest in rows:
        groups.setdefault(trace, []).append(tuple(rest))
    return groups


def _words(level: int) -> int:
    return _WORDS.get(level, _WORDS_ELSE)


def _counted(counts: Mapping[Any, int], limit: int) -> str:
    """Those counted most, as JSON."""
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:limit]
    return to_json(dict(sorted((str(key), count) for key, count in most)))


def _digest(content: _Content) -> str:
    parts = [
        content.start, content.end, content.traces, sorted(content.people.items()), sorted(content.places.items()),
        sorted(content.things.items()), [(one.at, one.text) for one in content.sentences],
    ]  # fmt: skip
    return hashlib.sha256(to_json(parts).encode()).hexdigest()[:32]
