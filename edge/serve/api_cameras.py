"""The cameras: what they do, and what the user lets them do."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from edge.errors import NotFoundError
from edge.serve import shapes
from edge.serve.context import Context
from edge.serve.forms import Camera, NewCamera, NewPause, Page
from edge.serve.pictures import LIVE, picture
from edge.serve.protocols import Scope


def cameras_router(context: Context) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["cameras"], dependencies=[context.needs(Scope.ASK)])
    admin = [context.needs(Scope.ADMIN)]
    service = context.service

    @router.get("/cameras")
    async def cameras() -> Page[Camera]:
        """All cameras."""
        return Page(items=[shapes.camera(one) for one in service.cameras], next=None)

    @router.post("/cameras", status_code=201, dependencies=admin)
    async def add(new: NewCamera) -> Camera:
        """Keep a camera and start to watch it."""
        return shapes.camera(await service.add_camera(new.name, new.uri))

    @router.get("/cameras/{name}")
    async def one(name: str) -> Camera:
        """One camera."""
        for status in service.cameras:
            if status.name == name:
                return shapes.camera(status)
        raise NotFoundError(name[:60], f"There is no camera “{name[:60]}”; `GET /cameras` lists them.")

    @router.delete("/cameras/{name}", status_code=204, dependencies=admin)
    async def remove(name: str) -> None:
        """Stop to watch a camera; what it saw stays remembered."""
        await service.remove_camera(name)

    @router.post("/cameras/{name}/pause", dependencies=admin)
    async def pause(name: str, new: NewPause | None = None) -> Camera:
        """Remember nothing of it, for a time or until it is resumed."""
        return shapes.camera(await service.pause_camera(name, None if new is None else new.seconds))

    @router.post("/cameras/{name}/resume", dependencies=admin)
    async def resume(name: str) -> Camera:
        """Go on."""
        return shapes.camera(await service.resume_camera(name))

    @router.get("/cameras/{name}/snapshot", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
    async def snapshot(name: str, request: Request) -> Response:
        """What it sees now, as JPEG."""
        jpeg = await context.workers.run(service.latest_jpeg, name)
        if jpeg is None:
            raise NotFoundError(name[:60], f"The camera “{name[:60]}” has shown nothing yet; try again in a moment.")
        return picture(request, jpeg, LIVE)

    return router
