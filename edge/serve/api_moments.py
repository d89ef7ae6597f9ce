"""What is remembered, by time: moments, days, pictures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from edge.clock import iso
from edge.serve import inputs, shapes
from edge.serve.context import Context
from edge.serve.forms import Day, DayCount, Moment, Page, WholeMoment
from edge.serve.pictures import picture
from edge.serve.protocols import Scope
from edge.types.records import Kind, public_id

_DAY_MOMENTS = 10_000  # of one day: three cameras without a pause at the longest segment
# SQLite's localtime is that of the C library, as is the device's zone elsewhere.
_DAYS = (
    "select date(t.start, 'unixepoch', 'localtime') as day, count(*) from trace t join camera c on c.id = t.camera"
    " where c.user = ?1 and (?2 is null or t.start < ?2) and (?3 is null or t.start >= ?3) group by day"
)


def moments_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["moments"], dependencies=[context.needs(Scope.ASK)])
    store = context.service.store

    @router.get("/moments")
    async def moments(
        person: Annotated[str | None, Query(max_length=200, description="name, “person 3” or id")] = None,
        camera: Annotated[str | None, Query(max_length=200)] = None,
        label: Annotated[str | None, Query(max_length=100, description="something that was seen: cup, dog")] = None,
        day: Annotated[str | None, Query(max_length=40, description="2025-01-03, of the device's calendar")] = None,
        since: Annotated[str | None, Query(max_length=100, description="ISO 8601 or words: “yesterday”")] = None,
        until: Annotated[str | None, Query(max_length=100)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 30,
        before: Annotated[str | None, Query(max_length=40, description="`next` of the page before")] = None,
    ) -> Page[Moment]:
        """Moments, newest first."""

        def read() -> Page[Moment]:
            first, last = inputs.instant(since, end=False), inputs.instant(until, end=True)
            if day:
                _, start, end = inputs.day_span(day)
                first, last = max(start, first or start), min(end, last or end)
            beyond = store.trace(inputs.number(before, Kind.TRACE, "moment")).id if before else None
            records = store.traces(
                since=first,
                until=last,
                camera=camera or None,
                entity=inputs.person(store, person),
                label=inputs.label(label),
                limit=limit + 1,
                before_id=beyond,
            )
            more = len(records) > limit
            records = records[:limit]
            titles = store.titles(one for record in records for one in record.entities)
            odd = shapes.unusual(store, records)
            return Page(
                items=[shapes.moment(record, titles, odd.get(record.id, ())) for record in records],
                next=public_id(Kind.TRACE, records[-1].id) if more else None,
            )

        return await context.workers.run(read)

    @router.get("/moments/{moment}")
    async def one_moment(moment: str) -> WholeMoment:
        """One moment with all that is known of it."""

        def read() -> WholeMoment:
            return shapes.whole_moment(store, store.trace(inputs.number(moment, Kind.TRACE, "moment")))

        return await context.workers.run(read)

    @router.get("/pictures/{frame}", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
    async def key_frame(frame: str, request: Request) -> Response:
        """A key frame as JPEG."""

        def read() -> bytes:
            return store.key_frame(inputs.number(frame, Kind.KEY_FRAME, "picture")).jpeg

        return picture(request, await context.workers.run(read))

    @router.get("/days")
    async def days(
        limit: Annotated[int, Query(ge=1, le=400)] = 60,
        before: Annotated[str | None, Query(max_length=40, description="`next` of the page before")] = None,
    ) -> Page[DayCount]:
        """The days that hold something, newest first."""

        def read() -> Page[DayCount]:
            until = inputs.day_span(before)[1] if before else None
            rows = store.rows(_DAYS + " order by day desc limit ?4", (store.user, until, None, limit + 1))
            items = [DayCount(date=date, moments=count) for date, count in rows[:limit]]
            return Page(items=items, next=items[-1].date if len(rows) > limit else None)

        return await context.workers.run(read)

    @router.get("/days/{date}")
    async def one_day(date: str, camera: Annotated[str | None, Query(max_length=200)] = None) -> Day:
        """A day in the order of time; “today” is one too."""

        def read() -> Day:
            day, start, end = inputs.day_span(inputs.today() if date == "today" else date)
            records = store.traces(
                since=start, until=end, camera=camera or None, limit=_DAY_MOMENTS, newest_first=False
            )
            everybody = list(dict.fromkeys(one for record in records for one in record.entities))
            earlier = store.rows(_DAYS + " order by day desc limit 1", (store.user, start, None))
            later = store.rows(_DAYS + " order by day limit 1", (store.user, None, end))
            return Day(
                date=day.isoformat(),
                start=iso(start),
                end=iso(end),
                moments=[shapes.day_moment(record) for record in records],
                people=shapes.who(everybody, store.titles(everybody)),
                cameras=store.cameras(),
                previous=earlier[0][0] if earlier else None,
                next=later[0][0] if later else None,
            )

        return await context.workers.run(read)

    return router
