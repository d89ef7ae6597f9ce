"""Asking and searching: the same tools as on the command line."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query

from edge.errors import StoreError
from edge.notify import command
from edge.recall import Level
from edge.serve import inputs, shapes
from edge.serve.context import Context
from edge.serve.forms import Answered, Found, Page, Question
from edge.serve.protocols import Scope, ServiceLike


def reply(
    service: ServiceLike, text: str, at: str | None = None, *, overheard: bool = False, deep: bool | None = None
) -> Answered:
    """Answer a question, or carry out what is ordered. Reads the disk.

    Args:
        service: that is asked.
        text: of its user.
        at: as of when, ISO 8601 or words; None: now.
        overheard: it was spoken, and may be talk that asks nothing.
        deep: as of `Recall.ask`.
    """
    if at is None and command(text):
        return shapes.ordered(text, service.orders.take(text))
    answer = service.recall.ask(text, inputs.instant(at, end=True), overheard=overheard, deep=deep)
    try:
        answer = service.recall.keep(answer)
    except StoreError as error:  # it is an answer all the same
        answer = replace(answer, notes=(*answer.notes, f"This answer cannot be judged later: {error}"))
    return shapes.answered(answer)


def ask_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["ask"], dependencies=[context.needs(Scope.ASK)])
    recall = context.service.recall

    @router.get("/search")
    async def search(
        q: Annotated[str, Query(min_length=1, max_length=20_000, description="words or a question")],
        level: Annotated[Level, Query(description="what to find")] = Level.TRACE,
        limit: Annotated[int, Query(ge=1, le=200)] = 10,
        since: Annotated[str | None, Query(max_length=100, description="ISO 8601 or words: “yesterday”")] = None,
        until: Annotated[str | None, Query(max_length=100)] = None,
        camera: Annotated[str | None, Query(max_length=200)] = None,
        person: Annotated[str | None, Query(max_length=200, description="name, “person 3” or id")] = None,
        thing: Annotated[str | None, Query(max_length=100, description="seen or spoken of: “cup”")] = None,
        place: Annotated[str | None, Query(max_length=100, description="“kitchen”")] = None,
        important: Annotated[bool, Query(description="only what retention keeps")] = False,
    ) -> Page[Found]:
        """Search by words and by meaning, best first."""

        def read() -> Page[Found]:
            filters = inputs.filters(since, until, camera, person, thing, place, important)
            return Page(items=[shapes.found(one) for one in recall.search(level, q, filters, limit)], next=None)

        return await context.workers.run(read)

    @router.post("/ask")
    async def ask(question: Question) -> Answered:
        """Answer a question from what was seen and heard; or keep what is ordered: “remind me …”, “remember that …”."""
        return await context.workers.run(
            lambda: reply(context.service, question.question, question.at, deep=question.deep)
        )

    return router
