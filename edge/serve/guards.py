"""What stands before the routes, as plain ASGI: hosts, origins, sizes, times, rates, headers.

Each guard looks at one thing and either passes a request on or answers it. `guarded` puts them in their order. They do
not know devices; `edge.serve.gate` does.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.serve.limits import TokenBuckets
from edge.serve.origins import Coming, client_group, host_admitted, is_loopback, origin_admitted
from edge.serve.problems import problem

CONTENT_SECURITY_POLICY: Final = "; ".join(  # noqa: FLY002 -- one rule a line
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "media-src 'self' blob: mediastream:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
# No Strict-Transport-Security: with a certificate that a phone does not trust, it would forbid to go on regardless.
SECURITY_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(self), screen-wake-lock=(self), geolocation=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}

_REQUESTS: Final = ("http", "websocket")


class HostGuard:
    """Refuses requests that name another host than this device: DNS rebinding ends here.

    Args:
        app: what comes after.
        names: host names of this device beside the local ones.
        addresses: gives its IP addresses now.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], addresses: Callable[[], Collection[str]]) -> None:
        self._app = app
        self._names = frozenset(name.lower().removesuffix(".") for name in names)
        self._addresses = addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] in _REQUESTS:
            hosts = Headers(scope=scope).getlist("host")
            host = hosts[0] if len(hosts) == 1 else None
            if not host_admitted(host, self._names, self._addresses()):
                await refuse(scope, receive, send, 421, "host", "This device does not serve the host of this request.")
                return
        await self._app(scope, receive, send)


class OriginGuard:
    """Refuses requests that pages of other origins send: forms, scripts, pictures, streams and WebSockets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] in _REQUESTS:
            headers = Headers(scope=scope)
            coming = Coming(
                method=scope.get("method", "GET"),
                scheme=scope.get("scheme", "http"),
                host=headers.get("host"),
                origin=headers.get("origin"),
                site=headers.get("sec-fetch-site"),
                mode=headers.get("sec-fetch-mode"),
                dest=headers.get("sec-fetch-dest"),
            )
            if not origin_admitted(coming):
                await refuse(scope, receive, send, 403, "origin", "Pages of other origins may not ask this device.")
                return
        await self._app(scope, receive, send)


class BodyLimit:
    """Refuses bodies that are too long, by what they say and by what they are.

    Args:
        app: what comes after.
        limit: bytes.
        larger: bounds of the paths that take larger ones, bytes.
    """

    def __init__(self, app: ASGIApp, limit: int, larger: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._limit = limit
        self._larger = dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._larger.get(scope["path"], self._limit)

        async def too_long() -> None:
            words = f"The body of a request may have {limit} bytes."
            await refuse(scope, receive, send, 413, "too-long", words, {"Connection": "close"})

        said = Headers(scope=scope).get("content-length")
        # Digits are the server's to check; what it let pass and is none is as good as too long.
        if said is not None and (not said.isdecimal() or len(said) > 15 or int(said) > limit):
            await too_long()
            return
        got = 0

        async def counted() -> Message:
            nonlocal got
            message = await receive()
            got += len(message.get("body", b""))
            if got > limit:
                raise _TooLongError
            return message

        await _answering(self._app, scope, counted, send, _TooLongError, too_long)


class SlowClient:
    """Gives up requests whose body does not arrive, and responses that are not taken.

    Args:
        app: what comes after.
        body_s: the whole body must be here after so many seconds.
        write_s: each piece of a response must be taken after so many seconds.
    """

    def __init__(self, app: ASGIApp, *, body_s: float, write_s: float = 30.0) -> None:
        self._app = app
        self._body_s = body_s
        self._write_s = write_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        until = asyncio.get_running_loop().time() + self._body_s
        whole = False

        async def hurried() -> Message:
            nonlocal whole
            if whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise _TooSlowError from None
            whole = not message.get("more_body", False)
            return message

        async def taken(message: Message) -> None:
            async with asyncio.timeout(self._write_s):
                await send(message)

        words = f"The body of a request must arrive within {self._body_s:.0f} s."
        await _answering(
            self._app,
            scope,
            hurried,
            taken,
            _TooSlowError,
            lambda: refuse(scope, receive, send, 408, "too-slow", words, {"Connection": "close"}),
        )


class RateLimit:
    """Refuses who asks too often, by address. Requests of this device itself are not counted.

    Args:
        app: what comes after.
        buckets: how often.
    """

    def __init__(self, app: ASGIApp, buckets: TokenBuckets) -> None:
        self._app = app
        self._buckets = buckets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] in _REQUESTS:
            client = client_of(scope)
            wait = 0.0 if is_loopback(client) else self._buckets.take(client_group(client))
            if wait > 0:
                after = {"Retry-After": str(math.ceil(wait))}
                await refuse(scope, receive, send, 429, "too-often", "Too many requests; wait a little.", after)
                return
        await self._app(scope, receive, send)


class SecurityHeaders:
    """Puts the headers of `SECURITY_HEADERS` on every response that has not its own."""

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] = SECURITY_HEADERS) -> None:
        self._app = app
        self._headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", ()))
                names = {bytes(name).lower() for name, _ in given}
                message = {**message, "headers": given + [one for one in self._headers if one[0] not in names]}
            await send(message)

        await self._app(scope, receive, dressed if scope["type"] == "http" else send)


def guarded(
    app: ASGIApp,
    *,
    names: Collection[str],
    addresses: Callable[[], Collection[str]],
    max_body_bytes: int,
    body_timeout_s: float,
    larger: Mapping[str, int] | None = None,
    buckets: TokenBuckets | None = None,
) -> ASGIApp:
    """All guards before an application, the cheapest refusals first.

    Args:
        app: the application.
        names: host names of this device beside the local ones.
        addresses: gives its IP addresses now.
        max_body_bytes: longer bodies are refused.
        body_timeout_s: slower bodies are refused, s.
        larger: bounds of the paths that take larger ones, bytes.
        buckets: how often one address of the network may ask; by default 200 at once and then 40 a second.
    """
    slow = SlowClient(BodyLimit(app, max_body_bytes, larger), body_s=body_timeout_s)
    limited = RateLimit(OriginGuard(slow), buckets if buckets is not None else TokenBuckets(40.0, 200.0))
    return SecurityHeaders(HostGuard(limited, names, addresses))


def client_of(scope: Scope) -> str | None:
    """The address that a request comes from, without the port."""
    client = scope.get("client")
    return str(client[0]) if client else None


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    status: int,
    kind: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer a request with a problem document; a WebSocket is closed before it opens."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": kind})
        return
    await problem(status, kind, detail, headers=headers)(scope, receive, send)


class _TooLongError(Exception):
    """The body went beyond its limit."""


class _TooSlowError(Exception):
    """The body did not arrive in time."""


async def _answering(
    app: ASGIApp,
    scope: Scope,
    receive: Receive,
    send: Send,
    kind: type[Exception],
    answer: Callable[[], Awaitable[None]],
) -> None:
    """Run the application; once `receive` raised `kind`, the answer is ours, whatever the application makes of it."""
    started = broken = False

    async def watched() -> MutableMapping[str, Any]:
        nonlocal broken
        try:
            return await receive()
        except kind:
            broken = True
            raise

    async def ours(message: Message) -> None:
        nonlocal started
        if broken and not started:
            return
        started = started or message["type"] == "http.response.start"
        await send(message)

    try:
        await app(scope, watched, ours)
    except kind:
        if started:
            raise
    if broken and not started:
        await answer()
