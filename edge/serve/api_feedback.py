"""Saying whether an answer was right."""

from __future__ import annotations

from fastapi import APIRouter

from edge.serve import inputs
from edge.serve.context import Context
from edge.serve.forms import Judged, Judgement
from edge.serve.protocols import Scope
from edge.types.records import Kind, public_id


def feedback_router(context: Context) -> APIRouter:
    """The route."""
    router = APIRouter(prefix="/api/v1", tags=["ask"], dependencies=[context.needs(Scope.ASK)])
    recall = context.service.recall

    @router.post("/answers/{answer}/feedback")
    async def feedback(answer: str, judgement: Judgement) -> Judged:
        """Say whether an answer was right; of many judgements is learned where to look, never what was asked about."""
        item = public_id(Kind.ANSWER, inputs.number(answer, Kind.ANSWER, "answer"))
        kept = await context.workers.run(lambda: recall.judge(item, good=judgement.good))
        return Judged(id=item, question=kept.question, good=judgement.good, learned=kept.learned)

    return router
