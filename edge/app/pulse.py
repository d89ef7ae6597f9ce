"""How late the event loop is, which task held it up, and where."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import deque
from pathlib import Path

import structlog

from edge.clock import monotonic

log = structlog.get_logger(__name__)

STALL_S = 0.2  # a loop that is held up for longer has stalled, s
_BEAT_S = 0.02  # s between beats
_MEMORY = 3000  # beats that the percentile covers: a minute
_FRAMES = 5  # innermost calls that are told


class Pulse:
    """Beats on the loop; a thread beside it names who holds it up."""

    def __init__(self) -> None:
        self._lags: deque[float] = deque(maxlen=_MEMORY)
        self._due = monotonic()
        self._culprit: tuple[str, str] | None = None  # who, and where
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
        watched = (loop, threading.get_ident())
        watcher = threading.Thread(target=self._watch, args=watched, name="loop-watch", daemon=True)
        watcher.start()
        try:
            while True:
                await asyncio.sleep(max(0.0, self._due - monotonic()))
                lag = max(0.0, monotonic() - self._due)
                self._lags.append(lag)
                if lag > STALL_S:
                    self.stalls += 1
                    # Without a culprit the thread beside it did not come to run either.
                    who, where = self._culprit or ("not the loop: no thread ran", "")
                    log.warning("loop.stalled", milliseconds=round(lag * 1000), task=who, where=where)
                self._culprit = None
                self._due = monotonic() + _BEAT_S
        finally:
            self._over.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._over.wait(STALL_S / 4):
            if monotonic() - self._due > STALL_S / 2 and self._culprit is None:
                task = asyncio.current_task(loop)
                frame = sys._current_frames().get(thread)  # noqa: SLF001 -- the documented way to look at another thread
                calls = [call for call in traceback.extract_stack(frame) if not call.filename.startswith("<frozen")]
                if task is not None:
                    who = task_name(task)
                elif calls and Path(calls[-1].filename).name == "selectors.py":
                    who = "not the loop: it waits for the processor"
                else:
                    who = "a callback"
                self._culprit = who, " < ".join(_place(call) for call in reversed(calls[-_FRAMES:]))


def task_name(task: asyncio.Task[object]) -> str:
    """A task's name; of one that a library made without, what it runs."""
    name = task.get_name()
    if not name.startswith("Task-"):
        return name
    return getattr(task.get_coro(), "__qualname__", name)


def _place(call: traceback.FrameSummary) -> str:
    path = Path(call.filename)
    return f"{path.parent.name}/{path.name}:{call.lineno} {call.name}"
