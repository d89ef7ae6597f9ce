"""The tools that look into the memory, beside search: who, when, count, and what is behind an id."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from edge.clock import iso
from edge.recall import Person, Time
from edge.serve import inputs, shapes
from edge.serve.api_facts import fact_members
from edge.serve.context import Context
from edge.serve.forms import Companion, Counted, Found, OneFact, OneTime, SomeBody
from edge.serve.protocols import Scope

_Since = Annotated[str | None, Query(max_length=100, description="ISO 8601 or words: “yesterday”")]
_Until = Annotated[str | None, Query(max_length=100)]
_Camera = Annotated[str | None, Query(max_length=200)]
_Person = Annotated[str | None, Query(max_length=200, description="name, “person 3” or id")]
_Thing = Annotated[str | None, Query(max_length=100, description="seen or spoken of: “cup”")]
_Place = Annotated[str | None, Query(max_length=100, description="“kitchen”")]
_Important = Annotated[bool, Query(description="only what retention keeps")]
_At = Annotated[str | None, Query(max_length=100, description="as it was known then: ISO 8601 or words")]


def tools_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["ask"], dependencies=[context.needs(Scope.ASK)])
    tools = context.service.recall.tools

    @router.get("/who")
    async def who(
        name: Annotated[str, Query(min_length=1, max_length=200, description="name, “person 3” or id")], at: _At = None
    ) -> list[SomeBody]:
        """Everybody who may be meant by a name, with what is known of them."""

        def read() -> list[SomeBody]:
            return [_person(one) for one in tools.who(name, at=inputs.instant(at, end=True))]

        return await context.workers.run(read)

    @router.get("/when")
    async def when(
        since: _Since = None,
        until: _Until = None,
        camera: _Camera = None,
        person: _Person = None,
        thing: _Thing = None,
        place: _Place = None,
        important: _Important = False,
        first: Annotated[bool, Query(description="the first times; else the latest")] = False,
        limit: Annotated[int, Query(ge=1, le=1000)] = 10,
        at: _At = None,
    ) -> list[OneTime]:
        """The times at which all of it was so: moments that follow each other are one time."""

        def read() -> list[OneTime]:
            wanted = inputs.filters(since, until, camera, person, thing, place, important)
            found = tools.when(wanted, limit, oldest_first=first, at=inputs.instant(at, end=True))
            return [_time(one) for one in found]

        return await context.workers.run(read)

    @router.get("/count")
    async def count(
        since: _Since = None,
        until: _Until = None,
        camera: _Camera = None,
        person: _Person = None,
        thing: _Thing = None,
        place: _Place = None,
        important: _Important = False,
        at: _At = None,
    ) -> Counted:
        """How often all of it was so, on how many days and for how long."""

        def read() -> Counted:
            wanted = inputs.filters(since, until, camera, person, thing, place, important)
            found = tools.count(wanted, at=inputs.instant(at, end=True))
            return Counted(
                times=found.times,
                moments=found.moments,
                days=found.days,
                seconds=round(found.seconds, 1),
                first=None if found.first is None else _time(found.first),
                last=None if found.last is None else _time(found.last),
            )

        return await context.workers.run(read)

    @router.get("/items/{item}")
    async def get(
        item: str,
        neighbours: Annotated[int, Query(ge=0, le=100, description="so many before and after it, too")] = 0,
        evidence: Annotated[bool, Query(description="what it rests on instead")] = False,
    ) -> list[Found]:
        """A moment or a stretch of the timeline, what is next to it, or what it rests on."""

        def read() -> list[Found]:
            found = tools.evidence(item) if evidence else tools.get(item, neighbours)
            return [shapes.found(one) for one in found]

        return await context.workers.run(read)

    return router


def _person(person: Person) -> SomeBody:
    return SomeBody(
        id=person.id,
        title=person.title,
        kind=person.kind.value,
        first_seen=iso(person.first_seen),
        last_seen=iso(person.last_seen),
        last_moment=person.last_moment,
        moments=person.moments,
        facts=[OneFact(**fact_members(fact)) for fact in person.facts],
        company=[Companion(id=one.id, title=one.title, moments=one.moments) for one in person.company],
    )


def _time(one: Time) -> OneTime:
    return OneTime(start=iso(one.start), end=iso(one.end), moments=one.moments, first=one.first, last=one.last)
