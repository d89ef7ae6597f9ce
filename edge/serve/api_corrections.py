"""Putting right who is who: merge, split, “not this person”, and taking any of it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from edge.clock import iso
from edge.identity import preview, sentence, sightings_in
from edge.memory import Store
from edge.serve import inputs
from edge.serve.context import Context
from edge.serve.forms import Corrected, NewMerge, NewSplit, OneCorrection
from edge.serve.protocols import Scope
from edge.types.records import CorrectionDraft, CorrectionKind, CorrectionRecord, Kind, public_id


def corrections_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["corrections"], dependencies=[context.needs(Scope.ASK)])
    service, store = context.service, context.service.store
    admin = [context.needs(Scope.ADMIN)]

    async def correct(draft: CorrectionDraft, only_say: bool) -> Corrected:
        text = await context.workers.run(lambda: preview(store, draft))
        if only_say:
            return Corrected(text=text, correction=None)
        record = await service.correct(draft)
        return Corrected(text=text, correction=await context.workers.run(lambda: _correction(store, record)))

    @router.post("/people/{person}/merge", dependencies=admin)
    async def merge(person: str, new: NewMerge) -> Corrected:
        """Say that another one is this person: all that was remembered of them follows."""
        keep = inputs.number(person, Kind.ENTITY, "person")
        other = inputs.number(new.other, Kind.ENTITY, "person")
        return await correct(CorrectionDraft(CorrectionKind.MERGE, keep, other), new.preview)

    @router.post("/people/{person}/split", dependencies=admin)
    async def split(person: str, new: NewSplit) -> Corrected:
        """Say that some sightings of this person are somebody else's."""
        return await correct(_split(CorrectionKind.SPLIT, person, new), new.preview)

    @router.post("/people/{person}/not", dependencies=admin)
    async def not_this_person(person: str, new: NewSplit) -> Corrected:
        """Say that some sightings are not this person, and that the two are not to be taken for one again."""
        return await correct(_split(CorrectionKind.NOT_PERSON, person, new), new.preview)

    @router.get("/corrections")
    async def corrections(
        person: Annotated[str | None, Query(max_length=40, description="only what is about them")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> list[OneCorrection]:
        """What was corrected, the latest first; undone or not."""
        about = None if person is None else inputs.number(person, Kind.ENTITY, "person")
        return await context.workers.run(
            lambda: [_correction(store, record) for record in store.corrections(about, limit)]
        )

    @router.post("/corrections/{correction}/undo", dependencies=admin)
    async def undo(correction: str) -> OneCorrection:
        """Take a correction back, whatever came after it."""
        record = await service.undo_correction(inputs.number(correction, Kind.CORRECTION, "correction"))
        return await context.workers.run(lambda: _correction(store, record))

    return router


def _split(kind: CorrectionKind, person: str, new: NewSplit) -> CorrectionDraft:
    who = inputs.number(person, Kind.ENTITY, "person")
    to = None if new.to is None else inputs.number(new.to, Kind.ENTITY, "person")
    return CorrectionDraft(kind, who, to, sightings_in(new.sightings))


def _correction(store: Store, record: CorrectionRecord) -> OneCorrection:
    return OneCorrection(
        id=public_id(Kind.CORRECTION, record.id),
        kind=record.kind.value,
        person=public_id(Kind.ENTITY, record.person),
        other=None if record.other is None else public_id(Kind.ENTITY, record.other),
        created=record.created,
        name=record.name,
        observations=record.observations,
        utterances=record.utterances,
        at=iso(record.at),
        undone_at=None if record.undone_at is None else iso(record.undone_at),
        text=sentence(store, record),
    )
