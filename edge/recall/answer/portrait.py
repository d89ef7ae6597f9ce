"""What is known of somebody, put together for whoever looks at them: attributes, preferences, relations, habits, best face.

One view on the facts that the memory derives (`edge.memory.tiers.facts`): nothing is counted or kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum
from typing import Final

import apsw

from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers.facts import reads as facts_reads
from edge.memory.tiers.facts.runs import COMPANY, COUNTED, NAME
from edge.memory.tiers.facts.said import DISLIKES, FAVOURITE, LIKES, RELATIVES
from edge.types.records import Kind, mentioned, parse_id, public_id, render

UNKNOWN: Final = "someone"  # who is mentioned and no longer known


class Aspect(StrEnum):
    """What side of somebody a fact tells of."""

    IDENTITY = "identity"  # what they are called
    ATTRIBUTE = "attribute"  # what they are and do, where they live
    PREFERENCE = "preference"  # what they like
    RELATION = "relation"  # whom they have and whom they are with
    HABIT = "habit"  # where and when they are usually seen


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is or was so, as people read it."""

    id: str  # f12
    kind: str
    aspect: Aspect
    about: str | None  # id of whom; None: of things
    subject: str  # their title, or "The cup"
    text: str  # what follows the subject, with the names of people put in: "works at the bakery"
    importance: float  # 0..1
    since: float | None  # UTC POSIX seconds; None: of no time, or it is not known since when
    until: float | None  # UTC POSIX seconds from which it was so no more; None: it is so
    protected: bool  # no job changes it
    source: str  # said, model, counted or name
    sources: tuple[str, ...]  # public ids of what it rests on, the latest first

    @property
    def sentence(self) -> str:
        """The whole of it."""
        return f"{self.subject} {self.text}."


@dataclass(frozen=True, slots=True)
class Profile:
    """Somebody, as far as they are known."""

    entity: int
    title: str
    first_seen: float  # UTC POSIX seconds
    last_seen: float
    face: int | None  # id of the best picture of their face
    facts: tuple[Fact, ...]  # what is so now first
    by_aspect: dict[Aspect, tuple[Fact, ...]]  # what is so now
    past: tuple[Fact, ...]  # what was so, the latest first


def profile(store: Store, entity: int, *, at: float | None = None, zone: tzinfo | None = None) -> Profile:
    """What is known of a person.

    Args:
        store: the memory.
        entity: their id.
        at: as it was known at this time (UTC POSIX seconds); None: now.
        zone: whose clock hours are told by; None: the device's.

    Raises:
        NotFoundError: nobody has this id.
    """
    person = store.entity(entity)
    found = known_facts(store, entity=entity, at=at, zone=zone)
    now = [one for one in found if one.until is None]
    best = store.rows(
        "select r.id from gallery g join crop r on r.gallery = g.id where g.entity = ? order by g.quality desc, g.slot limit 1",
        (entity,),
    )
    return Profile(
        entity,
        person.title,
        person.first_seen,
        person.last_seen,
        int(best[0][0]) if best else None,
        tuple(found),
        {aspect: tuple(one for one in now if one.aspect is aspect) for aspect in Aspect},
        tuple(one for one in found if one.until is not None),
    )


def known_facts(
    store: Store,
    *,
    entity: int | None = None,
    label: str | None = None,
    kinds: Sequence[str] | None = None,
    at: float | None = None,
    history: bool = True,
    limit: int = 1000,
    zone: tzinfo | None = None,
) -> list[Fact]:
    """Facts with what they rest on, what is so now first. Arguments as of `edge.memory.tiers.facts.reads.facts`."""
    with store.reading() as connection:
        found = facts_reads.facts(
            connection,
            store.user,
            entity=entity,
            label=label,
            kinds=kinds,
            at=at,
            history=history,
            limit=limit,
            zone=zone,
        )
        return told(store, connection, found, at)


def told(
    store: Store, connection: apsw.Connection, found: Iterable[facts_reads.Fact], at: float | None = None
) -> list[Fact]:
    """Facts as people read them, with what they rest on."""
    kept = list(found)
    titles = store.titles({who for one in kept for who in mentioned(one.sentence)})

    def title(who: int) -> str:
        return titles.get(who, UNKNOWN)

    return [
        Fact(
            one.item,
            one.kind,
            aspect_of(one.kind),
            None if one.entity is None else public_id(Kind.ENTITY, one.entity),
            render(facts_reads.subject_words(one.entity, one.label), title),
            _within(one.text, title),
            one.importance,
            one.valid_from,
            one.valid_to,
            one.protected,
            one.source,
            facts_reads.sources(connection, one, at=at),
        )
        for one in kept
    ]


def aspect_of(kind: str) -> Aspect:
    """What side of somebody a kind of fact tells of."""
    if kind == NAME:
        return Aspect.IDENTITY
    if kind in (LIKES, DISLIKES) or kind.startswith(FAVOURITE):
        return Aspect.PREFERENCE
    if kind == COMPANY or kind in RELATIVES.values():
        return Aspect.RELATION
    return Aspect.HABIT if kind in COUNTED else Aspect.ATTRIBUTE


def _within(text: str, title: Callable[[int], str]) -> str:
    """A predicate with titles put in: it does not begin a sentence."""
    return render(f"x {text}", title)[2:]


def one_fact(store: Store, item: str, zone: tzinfo | None = None) -> Fact:
    """A fact by its public id.

    Raises:
        NotFoundError: there is none of this id.
    """
    with store.reading() as connection:
        return told(store, connection, [_found(store, connection, item, zone)])[0]


def fact_history(store: Store, item: str, zone: tzinfo | None = None) -> list[Fact]:
    """A fact with all that took its place or whose place it took, in the order of time.

    Raises:
        NotFoundError: there is none of this id.
    """
    with store.reading() as connection:
        one = _found(store, connection, item, zone)
        among = facts_reads.facts(connection, store.user, entity=one.entity, label=one.label, zone=zone)
        same = [other for other in among if other.slot == one.slot and other.subject == one.subject]
        return told(store, connection, sorted(same, key=lambda other: (other.known, other.id)))


def _found(store: Store, connection: apsw.Connection, item: str, zone: tzinfo | None) -> facts_reads.Fact:
    try:
        kind, number = parse_id(item)
    except ValueError:
        kind, number = Kind.FACT, 0
    found = None
    if kind is Kind.FACT and 0 < number < 2**63:
        found = facts_reads.fact(connection, store.user, number, zone)
    if found is None:
        raise NotFoundError(item, f"There is no fact {item[:40]}; `reflectworld facts list` shows what is known.")
    return found
