"""Server-sent events: what happens, as it happens, to every page that listens.

One task reads the events of the service, numbers those that change what is remembered or shown, keeps the last of them,
and hands all to the pages. A page that was away says the last number that it saw and gets what it missed; where that is
no longer kept, or the service was started anew, it gets `reset` and asks for everything again. Live boxes (`sight`) are
worth nothing a moment later: they have no number and are not kept.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import orjson
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from edge.clock import iso
from edge.serve.context import Context
from edge.serve.problems import Problem
from edge.serve.protocols import EventLike, EventsLike
from edge.serve.protocols import Scope as DeviceScope
from edge.settings import ServeSettings

FORGOT = "forgot"  # what is kept of before would bring it back: pages begin anew
FLEETING = "sight"  # the kind that is not kept
_PAGE_BUFFER = 128  # messages that wait for a page that is slow to take them; the oldest boxes go first
_SEND_S = 20.0  # a page that takes nothing for so long is let go of
_RETRY_MS = 2000


@dataclass(eq=False, slots=True)
class _Page:
    """One page that listens."""

    waiting: deque[tuple[bool, bytes]] = field(default_factory=deque)  # (kept, message)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    lagging: bool = False  # it has lost something that was kept

    def put(self, kept: bool, message: bytes) -> int:
        """Add a message; returns how many were dropped for it."""
        dropped = 0
        if len(self.waiting) >= _PAGE_BUFFER:
            dropped = 1
            fleeting = next((one for one in self.waiting if not one[0]), None)
            if fleeting is not None:
                self.waiting.remove(fleeting)
            else:
                self.waiting.clear()
                self.lagging = True
        self.waiting.append((kept, message))
        self.ready.set()
        return dropped


class Hub:
    """Between the events of the service and the pages. Everything on one loop."""

    def __init__(self, events: EventsLike, settings: ServeSettings) -> None:
        self._events = events
        self._settings = settings
        self._epoch = secrets.token_hex(4)
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=settings.event_buffer)
        self._last = 0
        self._pages: set[_Page] = set()
        self._closed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.dropped = 0  # messages that slow pages lost

    @property
    def pages(self) -> int:
        """How many listen."""
        return len(self._pages)

    async def run(self) -> None:
        """Hand events on until cancelled."""
        self._loop = asyncio.get_running_loop()
        events = self._events.subscribe(256)
        try:
            async for event in events:
                self._hand_on(event)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._closed.set()
        for page in self._pages:
            page.ready.set()

    def close_soon(self) -> None:
        """`close`, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.close)

    def _hand_on(self, event: EventLike) -> None:
        kept = event.kind != FLEETING
        if kept:
            self._last += 1
        if event.kind == FORGOT:
            self._kept.clear()
            message = self._reset()
        else:
            message = _message(event, f"{self._epoch}-{self._last}" if kept else None)
        if kept:
            self._kept.append((self._last, message))
        for page in self._pages:
            self.dropped += page.put(kept, message)

    def _missed(self, last_id: str) -> list[bytes]:
        """What a page that saw `last_id` has missed, or that it has to begin anew."""
        epoch, _, number = last_id.partition("-")
        if not last_id:
            return []
        if epoch != self._epoch or not number.isascii() or not number.isdigit() or int(number[:18]) > self._last:
            return [self._reset()]
        seen = int(number[:18])
        oldest = self._kept[0][0] if self._kept else self._last + 1
        if seen + 1 < oldest:
            return [self._reset()]
        return [message for place, message in self._kept if place > seen]

    def _reset(self) -> bytes:
        return f"id: {self._epoch}-{self._last}\nevent: reset\ndata: {{}}\n\n".encode()

    async def listen(self, last_id: str) -> AsyncIterator[bytes]:
        """The stream of one page.

        Args:
            last_id: the last number that it saw; empty: it is new.
        """
        page = _Page()
        self._pages.add(page)
        try:
            yield f"retry: {_RETRY_MS}\n: {self._epoch}-{self._last}\n\n".encode()
            for message in self._missed(last_id):
                yield message
            while not self._closed.is_set():
                if not page.waiting:
                    page.ready.clear()
                    try:
                        async with asyncio.timeout(self._settings.heartbeat_s):
                            await page.ready.wait()
                    except TimeoutError:
                        yield b": alive\n\n"
                        continue
                if page.lagging:
                    page.lagging = False
                    yield self._reset()
                while page.waiting:
                    yield page.waiting.popleft()[1]
        finally:
            self._pages.discard(page)


class EventStream(Response):
    """A stream that ends when the page goes, when the hub closes, or when the page takes nothing for long."""

    media_type = "text/event-stream"

    def __init__(self, hub: Hub, last_id: str) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._hub = hub
        self._last_id = last_id

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it."""
        sending = asyncio.create_task(self._send(send), name="events:page")
        leaving = asyncio.create_task(_gone(receive), name="events:page-gone")
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        stream = self._hub.listen(self._last_id)
        async with contextlib.aclosing(stream):  # type: ignore[type-var]
            async for message in stream:
                async with asyncio.timeout(_SEND_S):
                    await send({"type": "http.response.body", "body": message, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _message(event: EventLike, number: str | None) -> bytes:
    data = {"camera": event.camera, "at": iso(event.at), **event.data}
    head = b"" if number is None else f"id: {number}\n".encode()
    # JSON has no line ends of its own, so one `data:` line holds it.
    return head + b"event: " + event.kind.encode() + b"\ndata: " + orjson.dumps(data, default=str) + b"\n\n"


def events_router(context: Context, hub: Hub, settings: ServeSettings) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/v1", tags=["events"], dependencies=[context.needs(DeviceScope.ASK)])

    @router.get(
        "/events",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {}}, "description": "moment, sight, camera, person, notice"}},
    )
    async def events(request: Request) -> Response:
        """What happens, as it happens. Goes on after `Last-Event-ID`."""
        if hub.pages >= settings.max_streams:
            raise Problem(
                503,
                "busy",
                "Too many pages listen already; close one, or try again later.",
                headers={"Retry-After": "5"},
            )
        return EventStream(hub, request.headers.get("last-event-id", "")[:64])

    return router
