"""What is known of people and things, since when and until when."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from edge.clock import iso
from edge.errors import NotFoundError
from edge.recall import Fact, fact_history, key_of, known_facts, related
from edge.serve import inputs
from edge.serve.api_people import fact_form
from edge.serve.context import Context
from edge.serve.forms import OneFact, Relation, WholeFact
from edge.serve.protocols import Scope
from edge.types.records import Kind, public_id


def facts_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["people"], dependencies=[context.needs(Scope.ASK)])
    store = context.service.store

    @router.get("/facts")
    async def facts(
        person: Annotated[str | None, Query(max_length=200, description="a name, “person 3” or an id")] = None,
        thing: Annotated[str | None, Query(max_length=100, description="a class of things: “cup”")] = None,
        kind: Annotated[
            str | None, Query(max_length=60, description="only this kind: `work`, `likes`, `place`")
        ] = None,
        at: Annotated[str | None, Query(max_length=100, description="as it was known then: ISO 8601 or words")] = None,
        past: Annotated[bool, Query(description="also what is so no more")] = False,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[OneFact]:
        """What is known, the latest so many: what is so now first, then the most important."""

        def read() -> list[OneFact]:
            found = known_facts(
                store,
                entity=inputs.person(store, person),
                label=inputs.label(thing),
                kinds=None if not kind else [kind],
                at=inputs.instant(at, end=True),
                history=past,
                limit=limit,
            )
            return [OneFact(**fact_members(one)) for one in found]

        return await context.workers.run(read)

    @router.get("/facts/{fact}")
    async def one_fact(fact: str) -> WholeFact:
        """A fact with what was so before and after."""

        def read() -> WholeFact:
            item = public_id(Kind.FACT, inputs.number(fact, Kind.FACT, "fact"))
            history = fact_history(store, item)
            this = next(one for one in history if one.id == item)
            return WholeFact(**fact_members(this), history=[OneFact(**fact_members(one)) for one in history])

        return await context.workers.run(read)

    @router.get("/graph")
    async def graph(
        of: Annotated[
            str | None, Query(max_length=200, description="a person, a thing or a place; all when left out")
        ] = None,
        at: Annotated[str | None, Query(max_length=100, description="as it was known then: ISO 8601 or words")] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 30,
    ) -> list[Relation]:
        """Who and what is related to whom and what, the strongest first."""

        def read() -> list[Relation]:
            key = None if of is None else key_of(store, of)
            if of is not None and key is None:
                raise NotFoundError(of, f"Nothing is related to “{of[:60]}” yet.")
            found = related(store, key, at=inputs.instant(at, end=True), limit=limit)
            return [
                Relation(
                    subject=one.subject,
                    relation=one.relation,
                    object=one.object,
                    person=one.person,
                    moments=one.moments,
                    days=one.days,
                    weight=round(one.weight, 3),
                    first=iso(one.first),
                    last=iso(one.last),
                    sources=list(one.sources),
                )
                for one in found
            ]

        return await context.workers.run(read)

    return router


def fact_members(one: Fact) -> dict[str, Any]:
    """The members of a fact by itself."""
    return {
        **fact_form(one),
        "about": one.about,
        "subject": one.subject,
        "protected": one.protected,
        "source": one.source,
    }
