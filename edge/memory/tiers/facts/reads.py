"""Facts as they are read: in words, as of any time, with what they rest on."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

import apsw

from edge.clock import to_local
from edge.memory.database import fetch
from edge.memory.tiers.facts.counts import SURE, rows_before
from edge.memory.tiers.facts.runs import (
    COMPANY,
    COUNTED,
    ENOUGH,
    HOURS,
    NAME,
    NOTED,
    ON,
    ON_DAYS,
    PLACE,
    TIMES,
    importance,
    slot,
)
from edge.memory.tiers.facts.said import (
    ALLERGY,
    BIRTHDAY,
    DISLIKES,
    FAVOURITE,
    HOME,
    JOB,
    LIKES,
    ORIGIN,
    RELATIVES,
    SPEAKS,
    STUDIES,
    TRAIT,
    WORK,
)
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.nodes import HOUR_S
from edge.memory.tiers.timeline.nodes import HOURS as HOURS_A_DAY
from edge.types.records import Kind, mention, public_id
from edge.types.vocabulary import article, everyday

LAPSE_DAYS: Final = 28  # a habit that was not seen for so long, while the memory went on, holds no more
DAY_S: Final = 86_400.0
SOURCES: Final = 5  # ids that a fact cites, the latest
WEEKDAYS: Final = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_ADJECTIVES: Final = frozenset(
    """vegetarian vegan married divorced engaged single retired pregnant diabetic left-handed colour-blind color-blind
    colourblind colorblind""".split()  # noqa: SIM905 -- a list of words reads better as text
)
_WORDS: Final = {
    NAME: "is called {}",
    WORK: "works at {}",
    HOME: "lives in {}",
    ORIGIN: "is from {}",
    BIRTHDAY: "has a birthday on {}",
    LIKES: "likes {}",
    DISLIKES: "dislikes {}",
    ALLERGY: "is allergic to {}",
    SPEAKS: "speaks {}",
    STUDIES: "studies {}",
}

_FACT: Final = (
    "select f.id, s.id, s.entity, s.label, f.kind, f.value, f.text, f.importance, f.valid_from, f.valid_to, f.known, f.support,"
    " f.first, f.last, f.protected, f.identity, f.source from fact f join fact_subject s on s.id = f.subject"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is or was so."""

    id: int
    subject: int  # number of the subject
    entity: int | None  # who it is about
    label: str | None  # or the class of the things that it is about
    kind: str
    value: str
    text: str  # what follows the subject, with mentions: "works at the bakery"
    importance: float  # 0..1
    valid_from: float | None  # UTC POSIX seconds; None: of no time, or it is not known since when
    valid_to: float | None  # UTC POSIX seconds from which it was so no more; None: it is so
    known: float  # UTC POSIX seconds at which it was known first
    support: int  # confirmations
    protected: bool  # no job changes it
    identity: bool
    source: str  # said, model, counted or name

    @property
    def item(self) -> str:
        """Its public id."""
        return public_id(Kind.FACT, self.id)

    @property
    def sentence(self) -> str:
        """The whole of it, with mentions."""
        return f"{subject_words(self.entity, self.label)} {self.text}."

    @property
    def noted(self) -> bool:
        """Whether a statement may change it: what is counted follows from what was seen, and a name is the owner's."""
        return not self.protected and self.source in ("said", "model")

    @property
    def slot(self) -> str:
        """The same for facts of which one takes the place of another."""
        return self.kind if self.kind in COUNTED else slot(self.kind, self.value or self.text)


def subject_words(entity: int | None, label: str | None) -> str:
    """Whom or what a fact is about, with mentions."""
    return mention(entity) if entity is not None else f"The {everyday(label or '')}"


def facts(
    connection: apsw.Connection,
    user: str,
    *,
    entity: int | None = None,
    label: str | None = None,
    kinds: Collection[str] | None = None,
    at: float | None = None,
    history: bool = True,
    limit: int = 1000,
    zone: tzinfo | None = None,
) -> list[Fact]:
    """What is known, what is so now first, then the most important and the latest.

    Args:
        connection: any.
        user: whose memory.
        entity: about whom; with `label` None, too: about everybody and everything.
        label: about which class of things.
        kinds: only these.
        at: as it was known at this time (UTC POSIX seconds); None: now.
        history: also what is so no more.
        limit: at most so many are looked at, the latest.
        zone: whose clock hours are told by; None: the device's.
    """
    rows = fetch(
        connection,
        f"{_FACT} where s.user = ?1 and (?2 is null or s.entity = ?2) and (?3 is null or s.label = ?3)"  # noqa: S608 -- constants
        " and (?4 is null or f.kind in (select value from json_each(?4))) and (?5 is null or f.known <= ?5)"
        " and (?5 is null or f.kind <> 'name' or (select e.first_seen from entity e where e.id = s.entity) < ?5)"
        " order by f.known desc, f.id limit ?6",
        (user, entity, label, None if kinds is None else json.dumps(sorted(kinds)), at, limit),
    )
    found = _facts(connection, user, rows, at, zone)
    wanted = [one for one in found if history or one.valid_to is None]
    return sorted(
        wanted,
        key=lambda one: (
            one.valid_to is not None,
            -(one.valid_to or 0.0),
            -one.importance,
            -(one.valid_from or 0.0),
            one.id,
        ),
    )


def fact(connection: apsw.Connection, user: str, number: int, zone: tzinfo | None = None) -> Fact | None:
    """One fact; None: there is none of this id."""
    rows = fetch(connection, f"{_FACT} where s.user = ? and f.id = ?", (user, number))
    return next(iter(_facts(connection, user, rows, None, zone)), None)


def sources(
    connection: apsw.Connection, one: Fact, *, at: float | None = None, limit: int = SOURCES
) -> tuple[str, ...]:
    """The ids of what a fact rests on, the latest first: words that were said, or moments that were counted.

    Args:
        connection: any.
        one: the fact.
        at: nothing that began later.
        limit: at most so many.
    """
    if one.kind == NAME:
        rows = fetch(
            connection,
            "select c.utterance from name_claim c where c.entity = ? and c.accepted and c.utterance is not null"
            " order by c.id desc limit ?",
            (one.entity, limit),
        )
        return tuple(public_id(Kind.UTTERANCE, number) for (number,) in rows)
    if one.kind not in COUNTED:
        rows = fetch(
            connection,
            "select u.id from provenance p join utterance u on u.id = p.source where p.item_kind = 'fact' and p.item = ?"
            " and p.source_kind = 'utterance' and (?2 is null or u.start <= ?2) order by u.start desc, u.id desc limit ?3",
            (one.id, at, limit),
        )
        found = [public_id(Kind.UTTERANCE, number) for (number,) in rows]
        rows = fetch(
            connection,
            # By the item: over all that moments are the ground of, it would look at everything.
            "select q.source from provenance p cross join provenance q on q.item_kind = 'fact_statement' and q.item = p.source"
            " where p.item_kind = 'fact' and p.item = ? and p.source_kind = 'fact_statement' and +q.source_kind = 'trace'"
            " order by q.source desc limit ?",
            (one.id, limit),
        )
        return tuple([*found, *(public_id(Kind.TRACE, number) for (number,) in rows)][:limit])
    end = min(one.valid_to if one.valid_to is not None else at or 1e12, at or 1e12)
    return tuple(public_id(Kind.TRACE, number) for number in _moments(connection, one, end, limit))


def _moments(connection: apsw.Connection, one: Fact, end: float, limit: int) -> list[int]:
    """The latest moments that a counted fact rests on."""
    seen = (
        "select o.trace, t.camera, o.start, o.text from observation o {by} join trace t on t.id = o.trace"
        " where {whose} and o.start between ? and ? order by o.start desc"
    )
    heard = (
        "select u.trace, t.camera, u.start, '' from utterance u join trace t on t.id = u.trace"
        " where u.speaker = ? and u.start between ? and ? order by u.start desc"
    )
    span = (one.valid_from or 0.0, end)
    asked: list[tuple[str, tuple[object, ...]]]
    if one.entity is not None:
        asked = [(seen.format(by="", whose="o.entity = ?"), (one.entity, *span)), (heard, (one.entity, *span))]
    else:
        things = seen.format(by="indexed by observation_label", whose=f"o.score >= {SURE} and o.label = ?")
        asked = [(things, (one.label, *span))]
    offset = clock_offset(connection)
    found: dict[int, float] = {}
    for sql, values in asked:
        here = 0
        for trace, camera, start, text in connection.execute(sql, values):
            if here >= limit:
                break
            if _fits(connection, one, trace, camera, start + offset, text):
                here += trace not in found
                found.setdefault(trace, start)
    return sorted(found, key=lambda trace: (-found[trace], -trace))[:limit]


def _fits(connection: apsw.Connection, one: Fact, trace: int, camera: int, local: float, text: str) -> bool:
    if one.kind == PLACE:
        where, _, surface = one.value.partition(ON)
        return str(camera) == where and surface in text
    if one.kind == TIMES:
        return int(one.value) <= int(local // HOUR_S) % 24 < int(one.value) + HOURS
    if one.kind == ON_DAYS:
        return str((int(local // DAY_S) + 3) % 7) in one.value.split(",")
    there = "select 1 from participation where trace = ? and entity = ?"
    return bool(fetch(connection, there, (trace, int(one.value))))


# -- in words ---------------------------------------------------------------------------------------------------------


def _facts(
    connection: apsw.Connection, user: str, rows: list[tuple[Any, ...]], at: float | None, zone: tzinfo | None
) -> list[Fact]:
    if not rows:
        return []
    offset = clock_offset(connection)
    cameras = dict(fetch(connection, "select id, name from camera where user = ?", (user,)))
    latest = fetch(
        connection,
        "select t.end from trace t join camera c on c.id = t.camera where +c.user = ?1 and (?2 is null or t.end <= ?2)"
        " order by t.end desc limit 1",
        (user, at),
    )
    present = latest[0][0] if latest else 0.0
    found = []
    for row in rows:
        number, subject, entity, label, kind, value, text, weight, start, end, known, support, first, last, *rest = row
        if kind == PLACE and entity is not None and len(cameras) < 2:
            continue  # that somebody is seen where the only camera is says nothing
        if at is not None and (end is None or end > at):
            end = None
            then = _confirmed(
                connection, number, subject, source=rest[-1], first=first, last=last, offset=offset, at=at
            )
            if then is not None and then < support:
                support, weight = then, importance(then)
            last = None if last is None else min(last, int((at + offset) // DAY_S))
        if end is None and last is not None:
            over = (last + 1) * DAY_S - offset
            end = over if present - over > LAPSE_DAYS * DAY_S else None
        words = text or _predicate(kind, value, entity is not None, cameras, (last or 0) * DAY_S - offset, zone)
        protected, identity, source = rest
        found.append(
            Fact(
                number, subject, entity, label, kind, value, words, weight, start, end, known, support, bool(protected),
                bool(identity), source,
            )
        )  # fmt: skip
    return found


def _confirmed(
    connection: apsw.Connection,
    fact: int,
    subject: int,
    *,
    source: str,
    first: int | None,
    last: int | None,
    offset: float,
    at: float,
) -> int | None:
    """How often something that was so at a time had been confirmed by then; None: that does not change."""
    if source in ("said", "model"):
        ((grounds,),) = fetch(
            connection,
            "select count(*) from provenance p left join utterance u on p.source_kind = 'utterance' and u.id = p.source"
            " left join fact_statement s on p.source_kind = 'fact_statement' and s.id = p.source"
            " where p.item_kind = 'fact' and p.item = ? and coalesce(u.start, s.at) <= ?",
            (fact, at),
        )
        return max(int(grounds) - 1, 0)
    today = int((at + offset) // DAY_S)
    if first is None or last is None or last < today:
        return None
    days: set[int] = set()  # that were over, after the first: as the tier counts them
    for hour, *_ in rows_before(connection, subject, today * HOURS_A_DAY):
        if hour // HOURS_A_DAY <= first or len(days) >= ENOUGH:
            break
        days.add(hour // HOURS_A_DAY)
    return len(days)


def _predicate(kind: str, value: str, person: bool, cameras: Mapping[int, str], day: float, zone: tzinfo | None) -> str:
    if kind == PLACE:
        camera, _, where = value.partition(ON)
        name = cameras.get(int(camera), "that is gone")
        if person:
            return f"is mostly seen by the camera {name}"
        return f"is usually {where}, seen by the camera {name}" if where else f"is usually seen by the camera {name}"
    if kind == TIMES:
        begin = to_local(day + int(value) * HOUR_S, zone).hour
        return f"is usually seen between {begin} and {(begin + HOURS - 1) % 24 + 1} o'clock"
    if kind == ON_DAYS:
        names = [WEEKDAYS[int(one)] for one in value.split(",")]
        return f"is usually seen on {' and '.join([', '.join(names[:-1]), names[-1]] if len(names) > 1 else names)}"
    if kind == COMPANY:
        return f"is often with {mention(int(value))}"
    if kind == JOB:
        return f"is {article(value)} {value}"
    if kind == TRAIT:
        return f"is {value}" if value.lower() in _ADJECTIVES else f"is {article(value)} {value}"
    if kind.startswith(FAVOURITE):
        return f"has {value} as favourite {kind.removeprefix(FAVOURITE)}"
    if kind in RELATIVES.values():
        return f"has {article(kind)} {kind} called {value}"
    return value if kind == NOTED else _WORDS[kind].format(value)
