"""What a request may weigh and how long it may take to arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.serve.problems import problem

_BODILESS = {"GET", "HEAD", "OPTIONS", "DELETE"}


class BoundedBodies:
    """ASGI: reads the whole body, up to a bound and within a time, before the app sees the request.

    A body that is too large is refused before it is read where the client says how long it is.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, timeout_s: float, larger: Mapping[str, int] | None = None) -> None:
        """Bound an application.

        Args:
            app: what comes after.
            max_bytes: of a body.
            timeout_s: until it is here, s.
            larger: bounds of the paths that take larger ones, bytes.
        """
        self._app = app
        self._larger = dict(larger or {})
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        if not declared and "transfer-encoding" not in headers and scope["method"] in _BODILESS:
            await self._app(scope, receive, send)
            return
        bound = self._larger.get(scope["path"], self._max_bytes)
        if declared.isascii() and declared.isdigit() and int(declared[:18]) > bound:
            await _too_large(bound)(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await _read(receive, bound)
        except TimeoutError:
            detail = f"The request took longer than {self._timeout_s:g} s to arrive; send it again over a better link."
            await problem(408, "slow", detail, headers={"Connection": "close"})(scope, receive, send)
            return
        if body is None:
            await _too_large(bound)(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        await self._app(scope, replay, send)


async def _read(receive: Receive, bound: int) -> bytes | None:
    """The body; None: it is too large."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)  # whoever reads on is told that it has gone
        part = message.get("body", b"")
        size += len(part)
        if size > bound:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(bound: int) -> ASGIApp:
    detail = f"The request is larger than {bound} bytes; send less."
    return problem(413, "too-large", detail, headers={"Connection": "close"})
