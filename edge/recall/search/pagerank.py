"""Personalized PageRank by local push, with a bound on what it costs. Pure: neighbours are asked for.

Forward push (Andersen, Chung and Lang 2006, "Local graph partitioning using PageRank vectors", section 3; here all of a
residual moves, none stays): a node keeps the share `RESTART` of what it has and passes the rest to its neighbours by the
weights of their bonds. Those that have most go first, so that it may end at any time: what has not been passed on is then what
all scores together are short of, at most.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

RESTART: Final = 0.5  # chance to return to what is asked about (HippoRAG, section 3.1: damping 0.5)
LEFT: Final = 2e-3  # what is left with a node that has less stays there
PUSHES: Final = 32  # nodes that pass on what they have, at most

Neighbours = Callable[[int], tuple[Sequence[tuple[int, float]], float]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Where a walk that begins at the seeds and returns to them now and then is found."""

    scores: Mapping[int, float]  # node -> chance, at most 1 together
    degrees: Mapping[int, float]  # of the nodes that passed something on: what their bonds weigh together
    left: float  # what was not passed on


def push(
    seeds: Mapping[int, float],
    neighbours: Neighbours,
    *,
    restart: float = RESTART,
    left: float = LEFT,
    pushes: int = PUSHES,
) -> Ranked:
    """Rank nodes by their nearness to some seeds.

    Args:
        seeds: node -> share; they are made to be 1 together.
        neighbours: of a node: (neighbour, weight) of its bonds, and what all of them weigh together. If that is more than the
            weights that are given, what goes over the others is lost.
        restart: chance to return to the seeds at each step, in (0, 1].
        left: a node passes on what it has when that is more.
        pushes: at most so many nodes do, each as often as it comes to be its turn.

    Returns:
        Scores that are at most what they would be with `left` 0 and without bounds; together they are short of that by at most
        `left` and what was lost.
    """
    whole = sum(share for share in seeds.values() if share > 0)
    residual = {node: share / whole for node, share in seeds.items() if share > 0}
    scores: dict[int, float] = {}
    degrees: dict[int, float] = {}
    known: dict[int, tuple[Sequence[tuple[int, float]], float]] = {}
    queue = [(-share, node) for node, share in residual.items()]
    heapq.heapify(queue)
    while queue and pushes > 0:
        said, node = heapq.heappop(queue)
        share = residual.get(node, 0.0)
        if share <= left:
            continue
        if -said < share:  # it got more since: its turn comes by what it has now
            heapq.heappush(queue, (-share, node))
            continue
        pushes -= 1
        residual[node] = 0.0
        if node not in known:
            known[node] = neighbours(node)
            degrees[node] = known[node][1]
        near, degree = known[node]
        scores[node] = scores.get(node, 0.0) + (restart if degree > 0 else 1.0) * share
        if degree <= 0:  # nowhere to go: it stays
            continue
        for other, weight in near:
            gained = residual.get(other, 0.0) + (1 - restart) * share * weight / degree
            if residual.get(other, 0.0) <= left < gained:
                heapq.heappush(queue, (-gained, other))
            residual[other] = gained
    return Ranked(scores, degrees, sum(residual.values()))
