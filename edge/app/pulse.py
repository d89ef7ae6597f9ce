"""How late the event loop is, and which task held it up."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

import structlog

from edge.clock import monotonic

log = structlog.get_logger(__name__)

STALL_S = 0.2  # a loop that is held up for longer has stalled, s
_BEAT_S = 0.02  # s between beats
_MEMORY = 3000  # beats that the percentile covers: a minute


class Pulse:
    """Beats on the loop; a thread beside it names who holds it up."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=_MEMORY)
        self._due = monotonic()
        self._culprit: str | None = None
        self._over = threading.Event()
        self.stalls = 0

    def percentile(self, share: float) -> float:
        """The lag that this share of the beats of the last minute did not exceed, s."""
        lags = sorted(self._lags)
        return lags[min(len(lags) - 1, int(share * len(lags)))] if lags else 0.0

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        self._due = monotonic() + _BEAT_S
        watcher = threading.Thread(target=self._watch, args=(loop,), name="loop-watch", daemon=True)
        watcher.start()
        try:
            while True:
                await asyncio.sleep(max(0.0, self._due - monotonic()))
                lag = max(0.0, monotonic() - self._due)
                self._lags.append(lag)
                if lag > STALL_S:
                    self.stalls += 1
                    log.warning("loop.stalled", milliseconds=round(lag * 1000), task=self._culprit or "unknown")
                self._culprit = None
                self._due = monotonic() + _BEAT_S
        finally:
            self._over.set()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._over.wait(STALL_S / 4):
            if monotonic() - self._due > STALL_S / 2 and self._culprit is None:
                task = asyncio.current_task(loop)
                self._culprit = task.get_name() if task is not None else "a callback"
