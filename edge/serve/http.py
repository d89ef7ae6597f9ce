"""The app: the JSON API under /api/v1, its description, live events, figures and the pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.serve import problems
from edge.serve.access import admit, requires
from edge.serve.api_ask import ask_router
from edge.serve.api_cameras import cameras_router
from edge.serve.api_corrections import corrections_router
from edge.serve.api_facts import facts_router
from edge.serve.api_feedback import feedback_router
from edge.serve.api_keep import keep_router
from edge.serve.api_moments import moments_router
from edge.serve.api_people import people_router
from edge.serve.api_rules import rules_router
from edge.serve.api_scenes import scenes_router
from edge.serve.api_status import product_version, status_router
from edge.serve.api_timeline import timeline_router
from edge.serve.api_tools import tools_router
from edge.serve.api_voice import LARGER_BODIES, voice_router
from edge.serve.bodies import BoundedBodies
from edge.serve.context import Context
from edge.serve.metrics import Measured, Metrics, metrics_router
from edge.serve.protocols import Auth, ServiceLike
from edge.serve.protocols import Scope as DeviceScope
from edge.serve.sse import Hub, events_router
from edge.serve.work import Workers
from edge.settings import ServeSettings

STATIC = Path(__file__).parent / "static"

POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; media-src 'self' blob: mediastream:; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self), screen-wake-lock=(self), geolocation=()",
}
_DESCRIPTION = (
    "What the device remembers, and what it does now. Errors are problem documents (RFC 9457). Lists come in pages: "
    "give `next` of one as `before` of the following. Times are ISO 8601."
)


def build_app(
    service: ServiceLike, auth: Auth, settings: ServeSettings | None = None, *, routers: Iterable[APIRouter] = ()
) -> FastAPI:
    """The ASGI app. Its lifespan hands events on to pages; `app.state.hub.close()` ends their streams before a stop.

    Args:
        service: what is served; it stays the caller's to close.
        auth: who is let in.
        settings: bounds.
        routers: further routes, which see to their own authorisation.
    """
    settings = settings or ServeSettings()
    context = Context(service, auth, Workers(settings.threads))
    hub = Hub(service.events, settings)
    metrics = Metrics(context, hub)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            await asyncio.to_thread(_warm, app)
            pump = tasks.create_task(hub.run(), name="events:hub")
            try:
                yield
            finally:
                hub.close()
                pump.cancel()
                context.workers.close()

    app = FastAPI(
        title="ReflectWorld Edge",
        version=product_version(),
        description=_DESCRIPTION,
        openapi_url=None,  # served below, behind the same door as the rest
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.hub = hub
    app.state.workers = context.workers
    problems.install(app)
    reads = [Depends(requires(auth, DeviceScope.ASK))]
    for router in (
        status_router(context),
        moments_router(context),
        timeline_router(context),
        scenes_router(context),
        facts_router(context),
        people_router(context),
        corrections_router(context),
        keep_router(context),
        ask_router(context),
        tools_router(context),
        feedback_router(context),
        voice_router(context),
        rules_router(context),
        cameras_router(context),
        events_router(context, hub, settings),
    ):
        app.include_router(router)
    app.include_router(metrics_router(context, metrics))
    for router in routers:
        app.include_router(router)

    @app.get("/api/openapi.json", include_in_schema=False, dependencies=reads)
    async def description() -> dict[str, object]:
        return app.openapi()

    @app.get("/api/docs", include_in_schema=False, dependencies=reads)
    async def docs() -> Response:
        return FileResponse(STATIC / "docs.html", headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def dashboard(request: Request) -> Response:
        admit(auth, DeviceScope.ASK, request)
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/static", _Pages(auth))
    app.add_middleware(
        BoundedBodies, max_bytes=settings.max_body_bytes, timeout_s=settings.body_timeout_s, larger=LARGER_BODIES
    )
    app.add_middleware(SafeHeaders)
    app.add_middleware(Measured, metrics=metrics)
    return app


def _warm(app: FastAPI) -> None:
    """Make what is made on first use, which would hold up the loop at the first requests (measured: up to 0.5 s)."""
    app.openapi()  # all routes, and what describes them
    anyio.run(anyio.sleep, 0)  # imports what it needs on asyncio


class SafeHeaders:
    """ASGI: what browsers are told not to do with an answer; an answer that says otherwise itself is left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def safe(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, safe if scope["type"] == "http" else send)


class _Pages:
    """The files of the pages, for whoever is let in."""

    def __init__(self, auth: Auth) -> None:
        self._auth = auth
        self._files = StaticFiles(directory=STATIC)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # They hold nothing of the memory, and the page of a phone that only publishes needs them, too.
            admit(self._auth, None, Request(scope))

        async def fresh(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "no-cache"  # asks whether it changed, each time
            await send(message)

        await self._files(scope, receive, fresh)
