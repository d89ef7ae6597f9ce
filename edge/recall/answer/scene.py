"""Answers from scene memory: what was unusual, what is usual somewhere, and what kind of place it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import tzinfo
from typing import Final

import apsw

from edge.clock import to_local
from edge.memory import Store
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene import words as scene_words
from edge.memory.tiers.scene.days import MOTION, PERSON, SPEECH, Days, usually
from edge.memory.tiers.scene.places import named_places
from edge.memory.tiers.scene.reads import Found, Scene
from edge.recall.answer.evidence import Evidence
from edge.recall.answer.phrases import listed, say_day, say_span, sentence
from edge.recall.question.understand import QuestionKind
from edge.recall.question.when import When, understand_when
from edge.recall.records import Answer
from edge.types.records import Kind, public_id

LISTED: Final = 5  # of what was unusual, told in an answer
_ODD: Final = r"(?:unusual|strange|odd|weird|abnormal|suspicious|out of the ordinary|surprising|irregular)"
_UNUSUAL: Final = re.compile(
    rf"\b(?:any|some|no)thing (?:\w+ )?{_ODD}\b"
    rf"|\bwhat(?:['’]s| is| was| were| has been| happened that (?:is|was))? (?:\w+ )?{_ODD}\b"
    rf"|\b{_ODD} (?:things?|events?|activity|activities|happenings?|moments?|behaviou?r)\b|\banomal(?:y|ies)\b",
    re.IGNORECASE,
)
_USUAL: Final = re.compile(
    r"\bwhat(?:['’]s| is| was)? (?:usual|normal|typical)(?:ly)?\b(?! (?:about|for (?:me|you)))"
    r"|\bwhat (?:usually|normally|typically) (?:happens|goes on|is (?:there|seen|going on))\b"
    r"|\bwhat (?:happens|goes on) (?:usually|normally|typically)\b|\b(?:what|which) (?:are the )?routines\b"
    r"|\b(?:a|the) (?:usual|normal|typical) (?:day|morning|afternoon|evening|night)\b",
    re.IGNORECASE,
)
_KIND: Final = re.compile(r"\bwhat (?:kind|sort|type) of (?:a )?(?:place|room|scene)\b", re.IGNORECASE)
_WEEKEND: Final = re.compile(r"\b(?:at|on) (?:the )?weekends?\b", re.IGNORECASE)
_WORKING: Final = re.compile(r"\bon (?:week|work(?:ing)? ?)days?\b", re.IGNORECASE)
_WEEKDAY: Final = re.compile(r"\bon (mon|tues|wednes|thurs|fri|satur|sun)days\b", re.IGNORECASE)


def answer(store: Store, text: str, now: float, at: float | None, zone: tzinfo | None) -> Answer | None:
    """Answer a question about scenes; None: it is about something else.

    Args:
        store: the memory.
        text: the question.
        now: UTC POSIX seconds of the present of the question.
        at: UTC POSIX seconds: nothing that came later is used; None: everything.
        zone: whose calendar counts; None: the device's.
    """
    ways = ((_UNUSUAL, _unusual), (_USUAL, _usual), (_KIND, _kind))
    way = next((way for pattern, way in ways if pattern.search(text)), None)
    if way is None:
        return None
    present = now if at is None else at
    with store.reading() as connection:
        scenes = scene_reads.describe(connection, store.user, present)
        if not scenes:
            return _lack(text, "My memory is empty; begin with `reflectworld watch FILE`.")
        chosen = _meant(text, scenes)
        if not chosen:
            watched = listed([f"“{one.camera}”" for one in scenes])
            return _lack(text, f"No camera looks there, as far as I know; I know {watched}.")
        return way(store, connection, text, chosen, present, zone)


def _meant(text: str, scenes: Sequence[Scene]) -> list[Scene]:
    """The cameras that a question is about: by name, or by the place that it names; all, when it names neither."""
    named = [one for one in scenes if re.search(rf"(?<!\w){re.escape(one.camera)}(?!\w)", text, re.IGNORECASE)]
    if named:
        return named
    places = set(named_places(text))
    if not places:
        return list(scenes)
    return [one for one in scenes if one.place.kind in places or places & set(named_places(one.camera))]


def _unusual(
    store: Store, connection: apsw.Connection, text: str, scenes: Sequence[Scene], now: float, zone: tzinfo | None
) -> Answer:
    when = understand_when(text, now, zone)
    midnight = to_local(now, zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    since = when.start if when.start is not None else midnight if when.end is None else 0.0
    until = min(now, when.end) if when.end is not None else now
    names = {one.camera for one in scenes}
    found = [
        one
        for one in scene_reads.found(connection, store.user, since, until)
        if one.camera in names and _within(when.hours, one.start, zone)
    ]
    span = say_span(since, until if when.binds else None, now, zone) if when.binds else "today"
    where = "" if len(scenes) != 1 else f" by the camera {scenes[0].camera}"
    if not found:
        young = [one.camera for one in scenes if one.days < scene_reads.YOUNG]
        grown = f" I know {listed(young)} for too few days to say what is usual there." if young else ""
        return _lack(text, sentence(f"I saw nothing unusual{where} {span}.{grown}"))
    found.sort(key=lambda one: (one.anomaly.chance, one.start))
    told = [
        f"{sentence(say_day(one.start, now, zone))[:-1]}, {one.camera}: {scene_words.sentence(one, zone)}"
        for one in sorted(found[:LISTED], key=lambda one: one.start)
    ]
    more = len(found) - LISTED
    told += [f"And {more} more."] if more > 0 else []
    return _hold(store, text, QuestionKind.WHAT, " ".join(told), found[:LISTED])


def _within(hours: tuple[float, float] | None, at: float, zone: tzinfo | None) -> bool:
    if hours is None:
        return True
    local = to_local(at, zone)
    hour = local.hour + local.minute / 60
    return hours[0] <= hour < hours[1] or hour + 24 < hours[1]


def _usual(
    store: Store, connection: apsw.Connection, text: str, scenes: Sequence[Scene], now: float, zone: tzinfo | None
) -> Answer:
    when = understand_when(text, now, zone)
    among = _among(text)
    first, last = when.hours or (0.0, 24.0)
    shift = scene_reads.shift_of(connection, now, zone)
    hours = tuple(hour - shift for hour in range(int(first), max(int(first) + 1, round(last))))
    parts = []
    ids = {name: number for number, name in scene_reads.cameras(connection, store.user)}
    for one in scenes:
        rows = scene_reads.usual(connection, ids[one.camera], hours, now, among)
        said = _told(one, rows, when, shift, among)
        if said:
            parts.append(f"{sentence(one.camera)[:-1]}{_between(when)}: {said}")
    if not parts:
        return _lack(text, "I have watched too few days to say what is usual there.")
    return Answer(text, QuestionKind.WHAT, " ".join(parts), found=True, camera=scenes[0].camera)


def _told(one: Scene, rows: Sequence[tuple[str, int, int, float]], when: When, shift: int, among: Days) -> str:
    most = [row for row in rows if usually(row[1], row[2])]
    lively = [row for row in most if row[0] in (PERSON, SPEECH, MOTION)]
    things = [row[0] for row in most if row not in lively]
    some = [row for row in rows if row not in most and row[0] in (PERSON, SPEECH) and row[1] * 4 >= row[2]]
    days = max((row[2] for row in rows), default=0)
    said = [f"{scene_words.thing(what)} on {seen} of {total} days" for what, seen, total, _ in lively]
    said += [f"{scene_words.thing(what)} now and then ({seen} of {total} days)" for what, seen, total, _ in some]
    busiest = [
        routine
        for routine in one.routines
        if routine.what == PERSON and routine.among in (among, Days.ALL) and (routine.first, routine.last) != (0, 23)
    ]
    inside = [
        scene_words.hours(routine.first, routine.last, shift)
        for routine in busiest
        if when.hours is None or (routine.first + shift < when.hours[1] and routine.last + 1 + shift > when.hours[0])
    ]
    if not said and not things:
        return f"I have watched {days} days there, and nothing is so on most of them." if days else ""
    text = sentence(listed(said)) if said else ""
    if inside:
        text += f" Mostly somebody is there {listed(inside)}."
    if things:
        text += f" To be seen are {listed([scene_words.thing(what) for what in things[:8]])}."
    return text.strip()


def _between(when: When) -> str:
    return "" if when.hours is None else f", {int(when.hours[0]) % 24:02d}:00–{int(when.hours[1]) % 24:02d}:00"


def _among(text: str) -> Days:
    if _WEEKEND.search(text):
        return Days.WEEKEND
    if _WORKING.search(text):
        return Days.WORKING
    match = _WEEKDAY.search(text)
    return Days(f"{match[1].lower()}day") if match else Days.ALL


def _kind(
    store: Store, connection: apsw.Connection, text: str, scenes: Sequence[Scene], now: float, zone: tzinfo | None
) -> Answer:
    said = []
    for one in scenes:
        if one.moving:
            places = ", ".join(f"{kind} ({hours} h)" for kind, hours in one.places[:5])
            said.append(f"{one.camera} is carried about" + (f": {places}." if places else "."))
        else:
            said.append(f"{one.camera}: {scene_words.place(one.place)}.")
    return Answer(text, QuestionKind.WHAT, sentence(" ".join(said)), found=any(one.place.kind for one in scenes))


def _hold(store: Store, text: str, kind: QuestionKind, said: str, found: Sequence[Found]) -> Answer:
    traces = [one.anomaly.trace for one in found if one.anomaly.trace is not None]
    evidence = Evidence(store, None)
    results = tuple(evidence.trace(record, 0.0) for record in store.traces_by_id(traces))
    first = results[0] if results else None
    return Answer(
        question=text,
        kind=kind,
        text=said,
        found=True,
        start=found[0].start,
        end=found[0].end,
        people=tuple(dict.fromkeys(who for one in results for who in one.people)),
        camera=found[0].camera,
        key_frame=first.key_frame if first is not None else None,
        cited=tuple(public_id(Kind.TRACE, trace) for trace in traces),
        evidence=results,
    )


def _lack(text: str, said: str) -> Answer:
    return Answer(text, QuestionKind.WHAT, said, found=False)
