"""What cameras look at, what was unusual, pictures by their time, and moments that look alike."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from edge.clock import iso, utc_now
from edge.errors import NotFoundError
from edge.memory.tiers import visual
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene import words as scene_words
from edge.memory.tiers.scene.days import SEEN
from edge.memory.tiers.scene.reads import Found, Scene
from edge.recall import Filters, similar, stretches
from edge.serve import inputs, shapes
from edge.serve.context import Context
from edge.serve.forms import Found as FoundForm
from edge.serve.forms.scenes import Anomaly, Frame, OneScene, Place, Routine, Spent, Standing
from edge.serve.protocols import Scope
from edge.types.records import Kind, public_id

_WEEK_S = 7 * 86_400.0


def scenes_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["scenes"], dependencies=[context.needs(Scope.ASK)])
    store = context.service.store

    def known(camera: str | None) -> str | None:
        if camera and camera not in store.cameras():
            raise NotFoundError(camera[:60], f"There is no camera “{camera[:60]}”; `GET /scenes` lists them.")
        return camera or None

    @router.get("/scenes")
    async def scenes() -> list[OneScene]:
        """What each camera looks at, with routines and what stands there."""

        def read() -> list[OneScene]:
            now = utc_now()
            with store.reading() as connection:
                shift = scene_reads.shift_of(connection, now)
                return [_scene(one, shift) for one in scene_reads.describe(connection, store.user, now)]

        return await context.workers.run(read)

    @router.get("/scenes/{camera}")
    async def one_scene(camera: str) -> OneScene:
        """What one camera looks at."""

        def read() -> OneScene:
            now = utc_now()
            with store.reading() as connection:
                shift = scene_reads.shift_of(connection, now)
                return _scene(scene_reads.describe(connection, store.user, now, known(camera))[0], shift)

        return await context.workers.run(read)

    @router.get("/scenes/{camera}/places")
    async def places(
        camera: str, day: Annotated[str | None, Query(max_length=40, description="2025-01-03; default: today")] = None
    ) -> list[Place]:
        """Where a camera that is carried about was on a day, and when it was there before."""

        def read() -> list[Place]:
            _, start, end = inputs.day_span(day or inputs.today())
            return [
                Place(
                    start=iso(one.start),
                    end=iso(one.end),
                    place=one.place.kind,
                    confidence=round(one.place.confidence, 3),
                    moments=one.moments,
                    again=one.again,
                    cosine=None if one.cosine is None else round(one.cosine, 3),
                )
                for one in stretches(store, camera, start, end)
            ]

        return await context.workers.run(read)

    @router.get("/anomalies")
    async def anomalies(
        since: Annotated[
            str | None, Query(max_length=100, description="ISO 8601 or words; default: a week ago")
        ] = None,
        until: Annotated[str | None, Query(max_length=100)] = None,
        camera: Annotated[str | None, Query(max_length=200)] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> list[Anomaly]:
        """What was unusual, newest first; of a longer span the latest 62 days."""

        def read() -> list[Anomaly]:
            last = inputs.instant(until, end=True)
            last = utc_now() if last is None else last
            first = inputs.instant(since, end=False)
            with store.reading() as connection:
                found = scene_reads.found(
                    connection, store.user, last - _WEEK_S if first is None else first, last, known(camera)
                )
            return [_anomaly(one) for one in found[::-1][:limit]]

        return await context.workers.run(read)

    @router.get("/moments/{moment}/similar")
    async def look_alikes(
        moment: str,
        camera: Annotated[str | None, Query(max_length=200)] = None,
        limit: Annotated[int, Query(ge=1, le=100)] = 12,
    ) -> list[FoundForm]:
        """Moments that look most like this one, best first, of each hour of a camera one; the score is their cosine."""

        def read() -> list[FoundForm]:
            number = inputs.number(moment, Kind.TRACE, "moment")
            return [shapes.found(one) for one in similar(store, number, Filters(camera=known(camera)), limit)]

        return await context.workers.run(read)

    @router.get("/pictures")
    async def frames(
        at: Annotated[str, Query(max_length=100, description="ISO 8601 or words such as “yesterday at 17:00”")],
        camera: Annotated[str | None, Query(max_length=200)] = None,
    ) -> list[Frame]:
        """The stored picture of each camera that is nearest to a time."""

        def read() -> list[Frame]:
            wanted = inputs.instant(at, end=False)
            wanted = utc_now() if wanted is None else wanted
            with store.reading() as connection:
                return [
                    Frame(
                        id=public_id(Kind.KEY_FRAME, one.id),
                        trace=public_id(Kind.TRACE, one.trace),
                        camera=one.camera,
                        at=iso(one.at),
                        away_s=round(one.at - wanted, 3),
                        width=one.width,
                        height=one.height,
                    )
                    for one in visual.frames_at(connection, store.user, wanted, known(camera))
                ]

        return await context.workers.run(read)

    return router


def _scene(one: Scene, shift: int) -> OneScene:
    return OneScene(
        camera=one.camera,
        place=one.place.kind,
        confidence=round(one.place.confidence, 3),
        grounds=list(one.place.grounds),
        moving=one.moving,
        days=one.days,
        moments=one.moments,
        routines=[
            Routine(
                what=routine.what.removeprefix(SEEN),
                from_hour=(routine.first + shift) % 24,
                to_hour=(routine.last + shift) % 24 + 1,
                days_of_week=routine.among.value,
                seen=routine.seen,
                days=routine.days,
                usual=round(routine.usual, 2),
                text=scene_words.routine(routine, shift),
            )
            for routine in one.routines
        ],
        things=[Standing(label=label, seen=seen, days=days) for label, seen, days in one.things],
        places=[Spent(kind=kind, hours=hours) for kind, hours in one.places],
    )


def _anomaly(one: Found) -> Anomaly:
    odd = one.anomaly
    return Anomaly(
        camera=one.camera,
        kind=odd.kind.value,
        what=odd.what.removeprefix(SEEN),
        start=iso(one.start),
        end=iso(one.end),
        trace=public_id(Kind.TRACE, odd.trace) if odd.trace is not None else None,
        count=odd.count,
        usual=round(odd.usual, 2),
        seen=odd.seen,
        days=round(odd.days, 1),
        among=odd.among.value,
        chance=round(odd.chance, 5),
        also=[what.removeprefix(SEEN) for what in odd.also],
        text=scene_words.sentence(one),
    )
