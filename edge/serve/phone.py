"""The phone page: its own address, its manifest and its service worker; the rest are static files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends
from starlette.responses import FileResponse, Response

from edge.serve.access import requires
from edge.serve.protocols import Auth, Scope

_STATIC = Path(__file__).parent / "static"
_FRESH = {"Cache-Control": "no-cache"}  # the browser asks each time whether it changed


def phone_router(auth: Auth) -> APIRouter:
    """The routes under `/phone`, for devices that may publish."""
    publishes: Any = Depends(requires(auth, Scope.PUBLISH))
    router = APIRouter(prefix="/phone", include_in_schema=False, dependencies=[publishes])

    @router.get("")
    async def page() -> Response:
        return FileResponse(_STATIC / "phone.html", media_type="text/html; charset=utf-8", headers=_FRESH)

    @router.get("/manifest.webmanifest")
    async def manifest() -> Response:
        return FileResponse(_STATIC / "phone.webmanifest", media_type="application/manifest+json", headers=_FRESH)

    @router.get("/sw.js")
    async def worker() -> Response:
        headers = _FRESH | {"Service-Worker-Allowed": "/phone"}
        return FileResponse(
            _STATIC / "js" / "phone-sw.js", media_type="text/javascript; charset=utf-8", headers=headers
        )

    return router
