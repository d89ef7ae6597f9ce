"""The gate: nobody without a key gets anything, and a key that is revoked ends what is open with it.

`ListenerPolicy` is the pure rule. Its invariants, held by property tests:

* without a paired device and without an open invitation the LAN listener is closed;
* who is not known gets the pairing page and nothing else, and that only while an invitation is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import anyio
import structlog
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edge.serve.auth import COOKIE, key_cookie
from edge.serve.devices import Change, DeviceChange, Devices
from edge.serve.guards import client_of, refuse
from edge.serve.protocols import Auth

PAIRING: Final = frozenset(
    {
        ("GET", "/pair"),
        ("HEAD", "/pair"),
        ("POST", "/pair"),
        ("GET", "/pair/pair.js"),
        ("GET", "/pair/pair.css"),
        ("GET", "/pair/authority.crt"),
    }
)
SAVE_SEEN_S: Final = 3600.0  # seldom: a flash card wears
_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>Not paired</title><h1>Not paired</h1><p>This browser has no key of this device. On the device, run "
    "<code>reflectworld pair</code> and scan its code.<p>It is paired already? <a href=/>Open the page again</a>."
)

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ListenerPolicy:
    """What is open to the network, by how many devices are paired and whether an invitation is open."""

    paired: int
    inviting: bool

    @property
    def lan_open(self) -> bool:
        """Whether the LAN listener listens."""
        return self.paired > 0 or self.inviting

    def admits(self, method: str, path: str, *, known: bool) -> bool:
        """Whether a request goes through; what a known device may do is for the routes to say.

        Args:
            method: of HTTP; `WEBSOCKET` for those.
            path: as the routes see it.
            known: whether the request has the key of a paired device or is this device's own.
        """
        return known or (self.inviting and (method, path) in PAIRING)


class Gate:
    """Stands behind the guards and before the routes.

    Args:
        app: the routes.
        auth: who knows devices.
        devices: tells of revocations.
        policy: the rule as it is now.
    """

    def __init__(self, app: ASGIApp, auth: Auth, devices: Devices, policy: Callable[[], ListenerPolicy]) -> None:
        self._app = app
        self._auth = auth
        self._devices = devices
        self._policy = policy
        self._open: dict[str, set[_Passage]] = {}
        self._saved: float | None = None
        devices.changed(self._changed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on (ASGI)."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        device = self._auth.authenticate(connection.headers, connection.cookies, client_of(scope))
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        if not self._policy().admits(method, scope["path"], known=device is not None):
            await self._turn_away(scope, receive, send, connection)
        elif device is None or device.local:
            await self._app(scope, receive, send)
        else:
            await self._pass(device.id, scope, receive, _renewing(connection, scope, send))

    async def _turn_away(self, scope: Scope, receive: Receive, send: Send, connection: HTTPConnection) -> None:
        if scope["type"] == "http" and "text/html" in connection.headers.get("accept", ""):
            headers = [
                (b"content-type", b"text/html; charset=utf-8"),
                (b"content-length", str(len(_PAGE)).encode()),
                (b"www-authenticate", b"Bearer"),
            ]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _PAGE.encode()})
            return
        words = "This needs the key of a paired device; pair one with `reflectworld pair`."
        await refuse(scope, receive, send, 401, "unauthorised", words, {"WWW-Authenticate": "Bearer"})

    async def _pass(self, device: str, scope: Scope, receive: Receive, send: Send) -> None:
        passage = _Passage(asyncio.get_running_loop(), anyio.CancelScope())
        passages = self._open.setdefault(device, set())
        passages.add(passage)

        async def noted(message: Message) -> None:
            passage.started = passage.started or message["type"] in {"http.response.start", "websocket.accept"}
            passage.ended = passage.ended or (
                message["type"] == "http.response.body" and not message.get("more_body", False)
            )
            await send(message)

        entered = _ENTERED.set(passage)
        try:
            with passage.cancel:
                await self._save_seen()
                await self._app(scope, receive, noted)
        finally:
            _ENTERED.reset(entered)
            passages.discard(passage)
            if not passages and self._open.get(device) is passages:
                del self._open[device]
        if not passage.cancel.cancelled_caught:
            return
        if scope["type"] == "websocket" or not passage.started:
            await refuse(scope, receive, send, 401, "revoked", "The key of this device was revoked.")
        elif not passage.ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _changed(self, change: DeviceChange) -> None:
        if change.change is not Change.REVOKED:
            return
        # A device that revokes itself is told that it is done: that request alone ends by itself.
        own = None if change.found else _ENTERED.get()
        for passage in tuple(self._open.get(change.device.id, ())):
            if passage is own:
                continue
            try:
                passage.loop.call_soon_threadsafe(passage.cancel.cancel)
            except RuntimeError:
                # Its loop has ended, and the connection with it.
                _log.debug("a connection had ended", device=change.device.id)

    async def _save_seen(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._saved is None:
            self._saved = now
        if now - self._saved < SAVE_SEEN_S:
            return
        self._saved = now
        try:
            await asyncio.to_thread(self._devices.save_seen)
        except OSError as error:
            _log.warning("when devices were seen could not be written", error=str(error))


class _Passage:
    """One request of a paired device that is being answered."""

    __slots__ = ("cancel", "ended", "loop", "started")

    def __init__(self, loop: asyncio.AbstractEventLoop, cancel: anyio.CancelScope) -> None:
        self.loop = loop
        self.cancel = cancel
        self.started = False
        self.ended = False


# The request that the present task, and the threads that it asks, work for.
_ENTERED: ContextVar[_Passage | None] = ContextVar("_ENTERED", default=None)


def _renewing(connection: HTTPConnection, scope: Scope, send: Send) -> Send:
    """Give the cookie its full time again when a page is opened, so that a browser that is used stays paired."""
    key = connection.cookies.get(COOKIE)
    opens = scope["type"] == "http" and scope["method"] == "GET" and "text/html" in connection.headers.get("accept", "")
    if key is None or not opens or "authorization" in connection.headers:
        return send

    async def renewing(message: Message) -> None:
        if message["type"] == "http.response.start":
            cookie = (b"set-cookie", key_cookie(key).encode("latin-1"))
            message = {**message, "headers": [*message.get("headers", ()), cookie]}
        await send(message)

    return renewing
