"""Who and what somebody or something has to do with, as people read it: a view on the graph."""

from __future__ import annotations

from dataclasses import dataclass

from edge.memory import Store
from edge.memory.tiers import graph
from edge.memory.tiers.graph import Bond, Key, Relation
from edge.memory.tiers.graph.words import SYMMETRIC, thing
from edge.types.records import Kind, public_id
from edge.types.vocabulary import everyday

_GROUNDS = 3  # moments that a relation cites, the latest


@dataclass(frozen=True, slots=True)
class Related:
    """One relation, with all the times at which it was so."""

    subject: str  # a title, “the cup”, “the kitchen”, “the wearer”
    relation: str  # “is with”, “uses”
    object: str
    person: str | None  # id of the person at the other end; None: it is none
    moments: int
    days: int
    weight: float
    first: float  # UTC POSIX seconds of its first and the end of its last moment
    last: float
    sources: tuple[str, ...]  # ids of moments, the latest first; of moments that are not kept any more there are none

    @property
    def sentence(self) -> str:
        """The whole of it."""
        return f"{self.subject} {self.relation} {self.object}"


def key_of(store: Store, what: str) -> Key | None:
    """What a word stands for in the graph: somebody by name or id, a place, or a thing; None: nothing."""
    found = store.find_entities(what)
    if found:
        return Key.person(found[0].id)
    name = thing(what.strip())
    keys = [Key("place", what.strip().lower())] + ([Key("thing", name)] if name else [])
    with store.reading() as connection:
        there = graph.find(connection, store.user, keys)
    return next((key for key in keys if key in there), None)


def related(store: Store, key: Key | None, *, at: float | None = None, limit: int = 30) -> list[Related]:
    """Relations, the strongest first.

    Args:
        store: the memory.
        key: of whom or what; None: of everybody and everything.
        at: as it was known at this time (UTC POSIX seconds); None: now.
        limit: at most so many.
    """
    with store.reading() as connection:
        if key is None:
            bonds = graph.strongest(connection, store.user, 2 * limit, at)
        else:
            nodes = graph.find(connection, store.user, [key]).get(key, ())
            bonds = graph.bonds_of(connection, store.user, nodes, at=at, most=2 * limit)
        bonds = [one for one in bonds if one.relation is not Relation.SEEN][:limit]
        people = {int(end.name) for one in bonds for end in (one.subject, one.object) if end.kind == "person"}
        titles = store.titles(people)
        told = []
        for one in bonds:
            grounds = graph.happenings(connection, one.ids, at=at, most=_GROUNDS)
            told.append(_told(one, key, titles, tuple(public_id(Kind.TRACE, ground.trace) for ground in grounds)))
    return told


def _told(bond: Bond, key: Key | None, titles: dict[int, str], sources: tuple[str, ...]) -> Related:
    one, other = bond.subject, bond.object
    if bond.relation in SYMMETRIC and other == key:
        one, other = other, one
    far = other if one == key else one if other == key else other
    return Related(
        subject=_title(one, titles),
        relation=f"is {bond.relation.value}" if bond.relation is Relation.WITH else bond.relation.value,
        object=_title(other, titles),
        person=public_id(Kind.ENTITY, int(far.name)) if far.kind == "person" and int(far.name) in titles else None,
        moments=bond.moments,
        days=bond.days,
        weight=bond.weight,
        first=bond.first,
        last=bond.last,
        sources=sources,
    )


def _title(key: Key, titles: dict[int, str]) -> str:
    if key.kind == "person":
        return titles.get(int(key.name), "someone")
    if key.kind == "me":
        return "the wearer"
    return f"the {everyday(key.name)}"
