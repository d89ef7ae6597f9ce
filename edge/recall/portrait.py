"""What is known of a person, drawn from their sightings and words when it is asked for.

Nothing here is kept: each fact is counted from what the memory holds now, so that it follows every correction and everything
that is forgotten at once. It looks at the latest `LATEST` moments and utterances, so that it costs the same after years.

Facts rest on repetition (a habit is one on at least `DAYS` different days) or on the person's own words ("I work at …"). A
question, an "if" and somebody else's words are nobody's statement about themselves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Final

from edge.clock import to_local
from edge.memory import Store
from edge.types.records import Kind, Sighting, UtteranceRecord, public_id

LATEST: Final = 1000
DAYS: Final = 3
_MOST: Final = 0.6  # share that makes something usual
_WINDOW_H: Final = 3
_SOURCES: Final = 5  # ids that a fact cites, the latest


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing known of a person."""

    text: str
    since: float | None  # UTC POSIX seconds of the first ground; None: not of a time
    until: float | None  # UTC POSIX seconds from which something else was so; None: it is so now
    sources: tuple[str, ...]  # public ids, the latest first


@dataclass(frozen=True, slots=True)
class _Saying:
    """A way in which people say something of themselves."""

    pattern: re.Pattern[str]
    text: str  # with {}
    single: bool  # a new value takes the place of the old one


_END = r"(?=\s*(?:[.,;!?]|$|\b(?:and|but|because|so|now|since|for|with|when|while|though|anymore|these days)\b))"
_VALUE = rf"(?P<value>[\w'’&.-]+(?: (?!and\b|but\b|because\b|so\b|now\b)[\w'’&-]+){{0,4}}?){_END}"


def _saying(pattern: str, text: str, *, single: bool) -> _Saying:
    return _Saying(re.compile(rf"\b{pattern} {_VALUE}", re.IGNORECASE), text, single)


_SAYINGS: Final = (
    _saying(r"I (?:now )?(?:work|am working|['’]m working) (?:at|for)", "works at {}", single=True),
    _saying(r"I(?: am|['’]m) (?:working|employed) as an?", "works as {}", single=True),
    _saying(r"I(?: now)? (?:live|am living|['’]m living) (?:in|at)", "lives in {}", single=True),
    _saying(r"I(?:['’]ve| have)?(?: just)? moved to", "lives in {}", single=True),
    _saying(r"I(?: am|['’]m| come) (?:originally )?from", "is from {}", single=True),
    _saying(r"I(?: really| also)? (?:like|love|enjoy)", "likes {}", single=False),
    _saying(r"I(?: really)? (?:hate|dislike|can['’]t stand)", "dislikes {}", single=False),
    _saying(r"I(?: am|['’]m) allergic to", "is allergic to {}", single=False),
    _saying(r"my birthday is(?: on)?", "has a birthday on {}", single=True),
    _saying(r"my favou?rite (?:colou?r|food|book|film|movie|song|game) is", "has {} as a favourite", single=False),
)
_NOT_MEANT: Final = re.compile(
    r"\?|\b(?:if|would|wish|imagine|pretend|suppose|maybe|said|says|told|used to|when I was)\b|n['’]t\b|\bnot\b|\bnever\b",
    re.IGNORECASE,
)
_NOTHING: Final = frozenset(("it", "that", "this", "you", "him", "her", "them", "to", "how", "what"))


def facts_about(store: Store, entity: int, zone: tzinfo | None = None) -> list[Fact]:
    """What is known of a person, what is so now first.

    Args:
        store: the memory.
        entity: their id.
        zone: whose calendar counts; None: the device's.

    Raises:
        NotFoundError: nobody has this id.
    """
    store.entity(entity)
    sightings = store.sightings(entity, LATEST)[-LATEST:]
    found = [*_places(sightings, zone), *_hours(sightings, zone), *_company(store, entity, sightings)]
    found += _said(store.utterances(speaker=entity, limit=LATEST))
    return sorted(found, key=lambda fact: (fact.until is not None, -(fact.until or 0.0)))


def _places(sightings: Sequence[Sighting], zone: tzinfo | None) -> list[Fact]:
    by_camera = Counter(one.camera for one in sightings)
    if len(by_camera) < 2:
        return []  # that somebody is seen where the only camera is says nothing
    camera, count = by_camera.most_common(1)[0]
    there = [one for one in sightings if one.camera == camera]
    if count / len(sightings) < _MOST or len(_days(there, zone)) < DAYS:
        return []
    return [_fact(f"is mostly seen by the camera {camera} ({count} of {len(sightings)} moments)", there)]


def _hours(sightings: Sequence[Sighting], zone: tzinfo | None) -> list[Fact]:
    days: dict[tuple[date, int], Sighting] = {}
    for one in sightings:
        local = to_local(one.start, zone)
        days.setdefault((local.date(), local.hour), one)
    every = {day for day, _ in days}
    if len(every) < DAYS:
        return []
    best: tuple[int, int] = (0, 0)
    for begin in range(24 - _WINDOW_H + 1):
        inside = {day for day, hour in days if begin <= hour < begin + _WINDOW_H}
        best = max(best, (len(inside), -begin))
    count, begin = best[0], -best[1]
    # All day long is no habit: most of what is seen must lie in the window, too.
    within = [one for (_, hour), one in days.items() if begin <= hour < begin + _WINDOW_H]
    if count < DAYS or count / len(every) < _MOST or len(within) / len(days) < _MOST:
        return []
    return [
        _fact(f"is usually seen between {begin} and {begin + _WINDOW_H} o'clock ({count} of {len(every)} days)", within)
    ]


def _company(store: Store, entity: int, sightings: Sequence[Sighting]) -> list[Fact]:
    if not sightings:
        return []
    traces = {one.trace: one for one in sightings}
    ids = "[" + ",".join(map(str, traces)) + "]"
    rows = store.rows(
        "select entity, trace from participation where trace in (select value from json_each(?)) and entity <> ?",
        (ids, entity),
    )
    together: dict[int, list[Sighting]] = {}
    for other, trace in rows:
        together.setdefault(int(other), []).append(traces[int(trace)])
    titles = store.titles(together)
    found = []
    for other, shared in sorted(together.items(), key=lambda item: (-len(item[1]), item[0]))[:5]:
        if other in titles and len(shared) >= DAYS and len(shared) / len(traces) >= 0.3:
            often = f"({len(shared)} of {len(traces)} moments)"
            found.append(_fact(f"is often with {titles[other]} {often}", sorted(shared, key=lambda one: one.start)))
    return found


def _said(utterances: Sequence[UtteranceRecord]) -> list[Fact]:
    claims: dict[str, list[tuple[float, str, str]]] = {}  # of each kind: when, value, utterance
    for heard in sorted(utterances, key=lambda one: (one.start, one.id)):
        for sentence in re.findall(r"[^.!?]+[.!?]?", heard.text):
            if _NOT_MEANT.search(sentence):
                continue
            for saying in _SAYINGS:
                match = saying.pattern.search(sentence)
                value = match["value"].strip(" .'’") if match is not None else ""
                if value and value.split()[0].lower() not in _NOTHING:
                    claims.setdefault(saying.text, []).append((heard.start, value, public_id(Kind.UTTERANCE, heard.id)))
    found = []
    single = {saying.text: saying.single for saying in _SAYINGS}
    for text, said in claims.items():
        runs: list[list[tuple[float, str, str]]] = []
        if single[text]:
            for claim in said:  # in the order of time: a new value ends the one before
                if runs and runs[-1][0][1].casefold() == claim[1].casefold():
                    runs[-1].append(claim)
                else:
                    runs.append([claim])
        else:
            by_value: dict[str, list[tuple[float, str, str]]] = {}
            for claim in said:
                by_value.setdefault(claim[1].casefold(), []).append(claim)
            runs = list(by_value.values())
        for place, run in enumerate(runs):
            until = runs[place + 1][0][0] if single[text] and place + 1 < len(runs) else None
            sources = tuple(item for _, _, item in reversed(run[-_SOURCES:]))
            found.append(Fact(text.format(run[-1][1]), run[0][0], until, sources))
    return found


def _fact(text: str, grounds: Sequence[Sighting]) -> Fact:
    latest = [public_id(Kind.TRACE, one.trace) for one in grounds[-_SOURCES:]]
    return Fact(text, min(one.start for one in grounds), None, tuple(reversed(latest)))


def _days(sightings: Sequence[Sighting], zone: tzinfo | None) -> set[date]:
    return {to_local(one.start, zone).date() for one in sightings}
