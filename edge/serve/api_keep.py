"""What is not to be remembered: forgetting, and pausing."""

from __future__ import annotations

from fastapi import APIRouter

from edge.clock import iso
from edge.errors import UserError
from edge.memory import Plan, Target
from edge.serve import inputs
from edge.serve.context import Context
from edge.serve.forms import Forget, ForgetPreview, ForgetThis, NewPause, Paused
from edge.serve.protocols import PauseLike, Scope
from edge.types.records import Kind, parse_id


def keep_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["keep"], dependencies=[context.needs(Scope.ADMIN)])
    service, store = context.service, context.service.store

    @router.post("/forget/preview")
    async def preview(this: ForgetThis) -> ForgetPreview:
        """What would be forgotten; nothing is changed."""

        def look() -> ForgetPreview:
            target = _target(this)
            return _shown(this, target, store.forget_plan(target), store.copies())

        return await context.workers.run(look)

    @router.post("/forget")
    async def forget(this: Forget) -> ForgetPreview:
        """Forget what a preview showed: it is gone from the files afterwards."""
        target = _target(this)
        planned = await service.forget(target, this.token)
        return _shown(this, target, planned, await context.workers.run(store.copies))

    @router.get("/pause")
    async def paused() -> Paused:
        """Whether everything is paused."""
        return _paused(service.paused)

    @router.post("/pause")
    async def pause(new: NewPause) -> Paused:
        """Remember nothing of any camera, for a time or until it is resumed; kept over a restart."""
        return _paused(await service.pause(new.seconds))

    @router.post("/resume")
    async def resume() -> Paused:
        """Go on; cameras that are paused by themselves stay so."""
        await service.resume()
        return _paused(service.paused)

    return router


def _target(this: ForgetThis) -> Target:
    """What a request means.

    Raises:
        UserError: it means nothing, or several things.
        NotFoundError: no such id.
    """
    span = this.since is not None or this.until is not None
    given = [this.person is not None, span, this.camera is not None, bool(this.items), this.everything]
    if sum(given) != 1:
        raise UserError("Say one thing to forget: a person, a span of time, a camera, items, or everything.")
    if this.person is not None:
        return Target(person=inputs.number(this.person, Kind.ENTITY, "person"))
    if this.items:
        return Target(items=tuple(_item(text) for text in this.items))
    since, until = inputs.instant(this.since, end=False), inputs.instant(this.until, end=True)
    return Target(since=since, until=until, camera=this.camera, everything=this.everything)


def _item(text: str) -> tuple[Kind, int]:
    try:
        kind, _ = parse_id(text)
    except ValueError:
        raise UserError(f"“{text[:40]}” is no id; ids look like t12, o7, u9 or k4.") from None
    return kind, inputs.number(text, kind, "thing")


def _shown(this: ForgetThis, target: Target, planned: Plan, beyond: tuple[str, ...]) -> ForgetPreview:
    return ForgetPreview(
        token=planned.token,
        text=planned.text,
        counts=dict(planned.counts),
        beyond=list(beyond),
        person=this.person,
        since=None if target.since is None else iso(target.since),
        until=None if target.until is None else iso(target.until),
        camera=this.camera,
        items=this.items,
        everything=this.everything,
    )


def _paused(pause: PauseLike | None) -> Paused:
    if pause is None:
        return Paused(paused=False, since=None, until=None)
    return Paused(paused=True, since=iso(pause.since), until=None if pause.until is None else iso(pause.until))
