"""Who is remembered: people with their faces, sightings and words, and what they are called."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from edge.clock import iso
from edge.errors import NotFoundError
from edge.memory import Store
from edge.recall import Fact, profile
from edge.serve import inputs, shapes
from edge.serve.context import Context
from edge.serve.forms import Face, NameHeard, NewName, Page, Person, PersonFact, WholePerson
from edge.serve.pictures import picture
from edge.serve.protocols import Scope
from edge.types.records import EntityRecord, Kind, public_id

_BEST = (
    "select g.entity, r.id from crop r join gallery g on g.id = r.gallery"
    " where g.entity in (select value from json_each(?)) order by g.entity, g.quality, g.slot desc"
)


def people_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["people"], dependencies=[context.needs(Scope.ASK)])
    service, store = context.service, context.service.store

    @router.get("/people")
    async def people(
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        before: Annotated[str | None, Query(max_length=40, description="`next` of the page before")] = None,
    ) -> Page[Person]:
        """Everybody, who was seen last first."""

        def read() -> Page[Person]:
            everybody = sorted(store.entities(), key=lambda one: (-one.last_seen, one.id))
            begin = 0
            if before:
                beyond = inputs.number(before, Kind.ENTITY, "person")
                place = next((i for i, one in enumerate(everybody) if one.id == beyond), None)
                if place is None:
                    raise NotFoundError(
                        before, f"The memory knows nobody with the id {before}; begin at the first page."
                    )
                begin = place + 1
            page = everybody[begin : begin + limit]
            faces = _best_faces(store, [one.id for one in page])
            return Page(
                items=[Person(**_person(one, faces.get(one.id))) for one in page],
                next=public_id(Kind.ENTITY, page[-1].id) if begin + limit < len(everybody) else None,
            )

        return await context.workers.run(read)

    @router.get("/people/{person}")
    async def one_person(person: str, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> WholePerson:
        """One person with their faces, sightings and words; `limit` of each of the latter."""
        return await context.workers.run(lambda: _whole(store, inputs.number(person, Kind.ENTITY, "person"), limit))

    @router.get(
        "/people/{person}/faces/{face}", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}}
    )
    async def face(person: str, face: str, request: Request) -> Response:
        """A picture of a face as JPEG."""

        def read() -> bytes:
            crops = store.crops(inputs.number(person, Kind.ENTITY, "person"))
            for crop in crops:
                if str(crop.id) == face:
                    return crop.jpeg
            raise NotFoundError(face[:40], f"{person[:40]} has no such picture any more; ask for the person again.")

        return picture(request, await context.workers.run(read))

    @router.put("/people/{person}/name", dependencies=[context.needs(Scope.ADMIN)])
    async def give_name(person: str, new: NewName) -> Person:
        """Name a person, or take the name away; everything already remembered of them follows."""
        await service.name_person(inputs.number(person, Kind.ENTITY, "person"), new.name)
        return await context.workers.run(read, person)

    @router.post("/people/{person}/allow", dependencies=[context.needs(Scope.ADMIN)])
    async def allow(person: str) -> Person:
        """Let somebody without a name be known again, whatever the settings say of strangers."""
        await context.workers.run(lambda: store.agree(inputs.number(person, Kind.ENTITY, "person")))
        return await context.workers.run(read, person)

    def read(person: str) -> Person:
        record = store.entity(inputs.number(person, Kind.ENTITY, "person"))
        return Person(**_person(record, _best_faces(store, [record.id]).get(record.id)))

    return router


def _best_faces(store: Store, people: list[int]) -> dict[int, int]:
    """The crop of the best gallery slot of each."""
    return {int(entity): int(crop) for entity, crop in store.rows(_BEST, (json.dumps(people),))}


def _face_path(person: int, crop: int) -> str:
    return f"/api/v1/people/{public_id(Kind.ENTITY, person)}/faces/{crop}"


def _person(record: EntityRecord, crop: int | None) -> dict[str, object]:
    return {
        "id": public_id(Kind.ENTITY, record.id),
        "title": record.title,
        "name": record.name,
        "name_source": record.name_source.value,
        "kind": record.kind.value,
        "first_seen": iso(record.first_seen),
        "last_seen": iso(record.last_seen),
        "seen": record.sightings,
        "face": _face_path(record.id, crop) if crop is not None else None,
    }


def fact_form(one: Fact) -> dict[str, Any]:
    """The members that all forms of a fact have."""
    return {
        "id": one.id,
        "kind": one.kind,
        "aspect": one.aspect.value,
        "importance": round(one.importance, 3),
        "text": one.text,
        "since": shapes.when(one.since),
        "until": shapes.when(one.until),
        "sources": list(one.sources),
    }


def _whole(store: Store, number: int, limit: int) -> WholePerson:
    record = store.entity(number)
    crops = store.crops(number)
    return WholePerson(
        **_person(record, crops[0].id if crops else None),
        faces=[
            Face(
                path=_face_path(number, crop.id),
                at=iso(crop.at),
                trace=public_id(Kind.TRACE, crop.trace) if crop.trace is not None else None,
            )
            for crop in crops
        ],
        facts=[PersonFact(**fact_form(one)) for one in profile(store, number).facts],
        sightings=[shapes.seen(one) for one in store.observations(entity=number, limit=limit)],
        utterances=[shapes.words(one) for one in store.utterances(speaker=number, limit=limit)],
        names_heard=[
            NameHeard(
                name=claim.name,
                source=claim.source.value,
                at=iso(claim.at),
                accepted=claim.accepted,
                utterance=public_id(Kind.UTTERANCE, claim.utterance) if claim.utterance is not None else None,
            )
            for claim in store.name_claims(number)
        ],
    )
