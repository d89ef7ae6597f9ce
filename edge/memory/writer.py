"""The writer: the one thread of a process that owns the writing connections.

Work is handed over as functions through a bounded queue and comes back through futures. While nothing is handed over,
the writer puts things in order in small steps (`idle`). A waiter that went away does not disturb the work.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import structlog

from edge.errors import ReflectWorldError, StoreError
from edge.memory.database import translated

log = structlog.get_logger(__name__)

Result = TypeVar("Result")
QUEUE_ITEMS: Final = 16


class Lifecycle(Enum):
    """What a writer may be asked."""

    OPEN = "open"
    CLOSED = "closed"


class Files:
    """The writing connections; only the writer's thread uses them once it runs."""

    def __init__(self, path: Path, memory: apsw.Connection, frames: apsw.Connection) -> None:
        self.path = path  # of memory.db, for messages
        self.memory = memory
        self.frames = frames

    def close(self) -> None:
        """Close both; what is in the write-ahead logs goes into the files."""
        self.memory.close()
        self.frames.close()


class Writer:
    """The thread, its queue and its lifecycle."""

    def __init__(self, files: Files, idle: Callable[[Files], bool]) -> None:
        """Start the thread.

        Args:
            files: the connections, which the thread closes at its end.
            idle: does one small step of what can wait; returns whether there may be more.
        """
        self._files = files
        self._idle = idle
        self._state = Lifecycle.OPEN
        self._lock = threading.Lock()
        self._jobs: queue.Queue[tuple[Callable[[Files], Any], Future[Any]] | None] = queue.Queue(QUEUE_ITEMS)
        self._thread = threading.Thread(target=self._run, name="memory-writer", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[Files], Result]) -> Future[Result]:
        """Hand work over; waits while the queue is full.

        Raises:
            StoreError: the memory is closed.
        """
        future: Future[Result] = Future()
        with self._lock:  # nothing comes behind the sentinel
            if self._state is not Lifecycle.OPEN:
                raise StoreError(self._files.path, "The memory is closed; open it again to write.")
            self._jobs.put((work, future))
        return future

    def call(self, work: Callable[[Files], Result]) -> Result:
        """Hand work over and wait for its result. Raises what `work` raises, translated."""
        return self.submit(work).result()

    def close(self) -> None:
        """Finish what was handed over, then close the files. May be called again."""
        with self._lock:
            if self._state is Lifecycle.OPEN:
                self._state = Lifecycle.CLOSED
                self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        try:
            while (job := self._next()) is not None:
                work, future = job
                if future.set_running_or_notify_cancel():
                    self._do(work, future)
        finally:
            self._files.close()

    def _next(self) -> tuple[Callable[[Files], Any], Future[Any]] | None:
        while True:
            try:
                return self._jobs.get_nowait()
            except queue.Empty:
                if not self._step():
                    return self._jobs.get()

    def _step(self) -> bool:
        try:
            with translated(self._files.path):
                return self._idle(self._files)
        except ReflectWorldError as error:
            # What can wait waits: it is still noted in the memory, and is tried again after the next job.
            log.warning("memory.upkeep_failed", error=str(error))
            return False

    def _do(self, work: Callable[[Files], Any], future: Future[Any]) -> None:
        try:
            with translated(self._files.path):
                result = work(self._files)
        except BaseException as error:  # noqa: BLE001 -- handed to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)
