"""The timeline in summary: nodes of its levels, what they were made of, and the global state."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query

from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import Node
from edge.serve import inputs, shapes
from edge.serve.context import Context
from edge.serve.forms import Stretch, WholeStretch
from edge.serve.protocols import Scope
from edge.types.records import Kind, mentioned


class TimelineLevel(StrEnum):
    """The levels of the timeline."""

    EVENT = "event"
    CHAPTER = "chapter"
    PART = "part"
    DAY = "day"
    WEEK = "week"
    SEASON = "season"
    ERA = "era"
    AGE = "age"


def timeline_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["moments"], dependencies=[context.needs(Scope.ASK)])
    store = context.service.store

    @router.get("/timeline")
    async def nodes(
        level: Annotated[
            TimelineLevel | None, Query(description="default: what is recent in detail, the rest in summary")
        ] = None,
        camera: Annotated[str | None, Query(max_length=200)] = None,
        since: Annotated[str | None, Query(max_length=100, description="ISO 8601 or words: “yesterday”")] = None,
        until: Annotated[str | None, Query(max_length=100)] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 60,
    ) -> list[Stretch]:
        """Stretches of time with what they tell, in the order of time: the latest so many."""

        def read() -> list[Stretch]:
            first, last = inputs.instant(since, end=False), inputs.instant(until, end=True)
            with store.reading() as connection:
                if level is None:
                    found = timeline.frontier(connection, store.user, last, camera=camera or None)
                    found = [node for node in found if first is None or node.end > first][-limit:]
                else:
                    found = timeline.nodes_of_level(
                        connection, store.user, level.value, since=first, until=last, camera=camera or None, limit=limit
                    )
            return _stretches(store, found)

        return await context.workers.run(read)

    @router.get("/timeline/{node}")
    async def one_node(node: str) -> WholeStretch:
        """A stretch with what it was made of."""

        def read() -> WholeStretch:
            number = inputs.number(node, Kind.NODE, "stretch of the timeline")
            with store.reading() as connection:
                found = timeline.node(connection, store.user, number)
                if found is None:
                    raise NotFoundError(node[:40], f"There is no {node[:40]} in the timeline; ask /api/v1/timeline.")
                below = timeline.children(connection, found)
            whole, *parts = _stretches(store, [found, *below])
            return WholeStretch(**dict(whole), made_of=parts)

        return await context.workers.run(read)

    return router


def _stretches(store: Store, nodes: list[Node]) -> list[Stretch]:
    titles = store.titles({who for node in nodes for who in (*node.people, *mentioned(node.text))})
    return [shapes.stretch(node, titles) for node in nodes]
