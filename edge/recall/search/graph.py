"""What the graph says of a question: how near each moment is to who and what is asked about, and how two are connected.

The walk (`pagerank`) goes over the semantic graph: people, things and places, by the weights of their bonds. From there each
moment gets its share over its own triples, the episodic graph: what a bond carries is parted among the moments in which it was
so. So the moments in which several of those who are asked about have to do with each other come first, and then those that are
one step on: what Ben gave Anna is near to both, though a question names only these.

Scales: a moment also gets a part of what the other moments of its event have, for what is asked is often said beside it.
"""

from __future__ import annotations

import heapq
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory.tiers import graph
from edge.memory.tiers.graph import Bond, Key, Link, Relation
from edge.memory.tiers.graph.words import TALKING, VERBS, thing
from edge.memory.tiers.timeline.extract import places_in
from edge.recall.question.understand import Question
from edge.recall.search.pagerank import Ranked, push

FAN: Final = 16  # bonds of a node over which a walk goes on, the heaviest of each relation
NAMED: Final = 8.0  # how much more a bond weighs whose relation the question names
EVENT_SHARE: Final = (
    0.25  # of its event's mean that a moment gets: the scales of WorldMM, on the levels of the timeline
)
BONDS: Final = 48  # whose moments are nominated, those that carry most
EACH: Final = 8  # moments of each
NOMINATED: Final = 80
_VISITED: Final = 400  # nodes that are looked at for a connection


def keys_of(question: Question) -> list[Key]:
    """Who and what a question names, in its order, each once."""
    found = [Key.person(who) for who in question.people]
    found += [Key("place", name) for name in sorted(places_in([question.text.lower()]))]
    for one in question.things:
        found += [Key("thing", label) for label in one.labels]
    for word in question.words:
        name = thing(word)
        found += [Key("thing", key) for key in dict.fromkeys((name, word)) if key]
    if question.me:
        found.append(graph.WEARER)
    return list(dict.fromkeys(found))


def relations_of(question: Question) -> frozenset[Relation]:
    """The relations that a question names by its verbs."""
    found = {VERBS[word] for word in re.findall(r"[a-z]+", question.text.lower()) if word in VERBS}
    if found & TALKING:
        found |= TALKING
    if Relation.GIVES in found:
        found.add(Relation.GIVES_TO)
    return frozenset(found - {Relation.IN})


class Nearness:
    """How near moments are to who and what a question names, by one walk."""

    def __init__(
        self,
        connection: apsw.Connection,
        user: str,
        keys: Sequence[Key],
        at: float | None,
        relations: Collection[Relation] = (),
    ) -> None:
        """Walk.

        Each key begins with a share that falls with what its bonds weigh together (the node specificity of HippoRAG, section
        2.3): what has to do with everything tells little.

        Args:
            connection: a reader, inside `Store.reading`.
            user: whose memory.
            keys: who and what is named.
            at: UTC POSIX seconds at which it is asked; None: now, with everything.
            relations: that are asked about: over these a walk goes more often.
        """
        self._connection = connection
        self._at = at
        self._relations = frozenset(relations)
        self._fans: dict[int, list[tuple[int, int, Relation, int]]] = {}  # node -> (bond, other, relation, weight)
        for node in {node for of in graph.find(connection, user, keys).values() for node in of}:
            self._fans[node] = self._fan(node)
        weights = {node: sum(weight for _, _, _, weight in fan) for node, fan in self._fans.items()}
        self.ranked: Ranked = push({node: 1 / weight for node, weight in weights.items() if weight}, self._neighbours)
        self._flows = {
            node: share / self.ranked.degrees[node]
            for node, share in self.ranked.scores.items()
            if self.ranked.degrees[node] > 0
        }

    def __bool__(self) -> bool:
        return bool(self._flows)

    def nominated(self, most: int = NOMINATED) -> NDArray[np.int64]:
        """The moments in which the walk is found most, by its heaviest bonds, the latest of each: ids, rising."""
        carried: dict[int, float] = {}
        for node, flow in self._flows.items():
            for bond, _, relation, weight in self._fans[node]:
                carried[bond] = carried.get(bond, 0.0) + flow * weight * self._asked(relation)
        heaviest = sorted(carried, key=lambda bond: (-carried[bond], bond))[:BONDS]
        each = {link.bond: link.moments for link in graph.links(self._connection, heaviest, self._at)}
        best = sorted(each, key=lambda bond: (-carried[bond] / each[bond], bond))
        chosen: dict[int, None] = {}
        for bond in best:
            if len(chosen) >= most:
                break
            for one in graph.happenings(self._connection, [bond], at=self._at, most=EACH):
                chosen.setdefault(one.trace)
        return np.array(sorted(list(chosen)[:most]), np.int64)

    def scores(self, traces: NDArray[np.int64], *, event_share: float = EVENT_SHARE) -> NDArray[np.float64]:
        """How near some moments are.

        Args:
            traces: (n,) ids of moments, all of which ended at or before the moment of the question.
            event_share: what a moment gets of the mean of the others of its event.

        Returns:
            (n,) zero or more: the logarithm of one plus the share in terms of the mean share of these moments, so that it can be
            standardised as the other signals are.
        """
        found = np.zeros(len(traces))
        if not self._flows or not len(traces):
            return found
        place = {trace: row for row, trace in enumerate(traces.tolist())}
        for trace, link in graph.in_traces(self._connection, place, self._flows, self._at):
            flow = self._flows.get(link.subject, 0.0) + self._flows.get(link.object, 0.0)
            if link.relation is not Relation.SEEN:
                found[place[trace]] += flow * self._asked(link.relation) * link.weight / max(link.moments, 1)
        if event_share:
            found += event_share * _of_events(self._connection, place, found)
        mean = float(found.mean())
        return np.log1p(found / mean) if mean > 0 else found

    def _asked(self, relation: Relation) -> float:
        return NAMED if relation in self._relations else 1.0

    def _neighbours(self, node: int) -> tuple[list[tuple[int, float]], float]:
        if node not in self._fans:
            self._fans[node] = self._fan(node)
        near = [(other, weight * self._asked(relation)) for _, other, relation, weight in self._fans[node]]
        return near, sum(weight for _, weight in near)

    def _fan(self, node: int) -> list[tuple[int, int, Relation, int]]:
        return graph.fan(self._connection, node, FAN, self._at)


def _of_events(
    connection: apsw.Connection, place: Mapping[int, int], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The mean of the other moments of each one's event, as far as they are among these."""
    rows = connection.execute(
        "select trace, node from node_trace where trace in (select value from json_each(?))", (json.dumps(list(place)),)
    )
    events: dict[int, list[int]] = {}
    for trace, node in rows:
        events.setdefault(node, []).append(place[trace])
    found = np.zeros(len(scores))
    for members in events.values():
        if len(members) > 1:
            found[members] = (scores[members].sum() - scores[members]) / (len(members) - 1)
    return found


# -- how two are connected --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """One bond of a connection."""

    bond: Bond
    forward: bool  # it leads from its subject to its object


def connection_of(connection: apsw.Connection, user: str, one: Key, other: Key) -> list[Step] | None:
    """The likeliest way of a walk from one to the other.

    Of each step the cost is how seldom a walk takes it, in both directions, so that a way over what has to do with everything is
    long. Looks at no more than `_VISITED` nodes.

    Returns:
        The bonds on the way; empty: they are the same; None: there is no way that near.
    """
    ends = graph.find(connection, user, [one, other])
    if one not in ends or other not in ends:
        return None
    goals = set(ends[other])
    best: dict[int, tuple[float, int | None, Link | None]] = dict.fromkeys(ends[one], (0.0, None, None))
    queue = [(0.0, node) for node in ends[one]]
    done: set[int] = set()
    weights: dict[int, int] = {}
    while queue and len(done) < _VISITED:
        cost, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        if node in goals:
            return _way(connection, node, best)
        links = [link for link in graph.links_of(connection, node, FAN) if link.relation is not Relation.SEEN]
        missing = {link.other(node) for link in links} | {node}
        weights |= graph.weigh(connection, missing - weights.keys())
        for link in links:
            near = link.other(node)
            rarity = math.sqrt(weights[node] * weights[near]) / link.weight
            length = cost + 1.0 + math.log(max(rarity, 1.0))
            if near not in done and (near not in best or length < best[near][0]):
                best[near] = (length, node, link)
                heapq.heappush(queue, (length, near))
    return None


def _way(
    connection: apsw.Connection, goal: int, best: Mapping[int, tuple[float, int | None, Link | None]]
) -> list[Step]:
    found: list[Step] = []
    node: int | None = goal
    while node is not None:
        _, before, link = best[node]
        if link is not None:
            (bond,) = graph.named(connection, [link])
            found.append(Step(bond, link.object == node))
        node = before
    return found[::-1]
