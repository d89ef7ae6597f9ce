"""What happens, told to whoever listens: bounded, from any thread, and the one who tells never waits.

Kinds, with the values in `data`:

* `moment`: a segment is remembered: `trace` (t12), `text`, `start`, `end` (UTC POSIX s), `people` ([{`id`, `title`}]).
* `sight`: what is on a camera's frame now: `width`, `height` (px), `in_view` ([{`anchor`, `label`, `name`, `score`,
  `box` (x1, y1, x2, y2 as fractions)}]), `captured` (UTC POSIX s at which the frame was received).
* `camera`: a camera's state changed: `state`, `detail`.
* `person`: somebody is new, was named or corrected: `id`, `title`, `name`, `new`; after a correction also `part_of`: the
  id of whom they are part of now (their own: nothing is left of them), or null.
* `forgot`: something was forgotten: `text`, what and how much; whatever was shown of the memory is to be asked for anew.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from edge.clock import utc_now


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    kind: str
    camera: str | None = None
    at: float = field(default_factory=utc_now)  # UTC POSIX seconds
    data: Mapping[str, object] = field(default_factory=dict)


class Subscription(AsyncIterator[Event]):
    """Events for one listener on one loop; who is slow loses the oldest."""

    def __init__(self, owner: Events, maxlen: int, loop: asyncio.AbstractEventLoop) -> None:
        """Made by `Events.subscribe`."""
        self._owner = owner
        self._loop = loop
        self._waiting: deque[Event] = deque()
        self._maxlen = maxlen
        self._ready = asyncio.Event()
        self._lock = threading.Lock()
        self._closed = False
        self.dropped = 0

    @property
    def fill(self) -> int:
        """Events that wait."""
        return len(self._waiting)

    def put(self, event: Event) -> None:
        """Hand an event over, from any thread."""
        with self._lock:
            if len(self._waiting) >= self._maxlen:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(event)
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:  # the listener's loop has ended without closing
            self._owner.forget(self)

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        """The next event; ends when it is closed."""
        while True:
            with self._lock:
                if self._closed:
                    raise StopAsyncIteration
                if self._waiting:
                    return self._waiting.popleft()
                self._ready.clear()
            await self._ready.wait()

    async def aclose(self) -> None:
        """Listen no more; may be called again."""
        self.close()

    def close(self) -> None:
        """Listen no more; may be called again, from any thread."""
        self._owner.forget(self)
        with self._lock:
            self._closed = True
        self._wake()


class Events:
    """Publishes to all subscribers. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: tuple[Subscription, ...] = ()
        self._lost = 0  # by listeners that are gone
        self.published = 0

    def publish(self, event: Event) -> None:
        """Tell all listeners; never waits."""
        with self._lock:
            self.published += 1
            listeners = self._listeners
        for listener in listeners:
            listener.put(event)

    def subscribe(self, maxlen: int = 64) -> Subscription:
        """Events from now on. To be called on the loop that reads them.

        Args:
            maxlen: how many wait at most.
        """
        listener = Subscription(self, maxlen, asyncio.get_running_loop())
        with self._lock:
            self._listeners = (*self._listeners, listener)
        return listener

    def forget(self, listener: Subscription) -> None:
        """A listener has gone."""
        with self._lock:
            if listener in self._listeners:
                self._listeners = tuple(one for one in self._listeners if one is not listener)
                self._lost += listener.dropped

    @property
    def fill(self) -> tuple[int, int]:
        """The events that wait with the slowest listener, and all that were lost."""
        listeners = self._listeners
        return (
            max((one.fill for one in listeners), default=0),
            self._lost + sum(one.dropped for one in listeners),
        )

    def close(self) -> None:
        """End all listeners."""
        for listener in self._listeners:
            listener.close()
