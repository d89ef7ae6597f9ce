"""The queue's worker as the service and the commands run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import psutil

from edge.app.keeping import add_keeping
from edge.app.upkeep import add_upkeep
from edge.consolidate import Worker, WorkReport, build_handlers
from edge.errors import ClaimHeldError
from edge.infer import TextEmbedder
from edge.memory import Store
from edge.notify import Notifier
from edge.reason import Reasoner
from edge.settings import Settings


def build_worker(
    store: Store,
    settings: Settings,
    embedder: TextEmbedder | None,
    *,
    purpose: str,
    reasoner: Reasoner | None = None,
    busy: Callable[[], bool] = lambda: False,
) -> Worker:
    """The worker of one process; arguments as those of `Worker` and `build_handlers`."""
    rules = Notifier(store, settings.notify)
    handlers = build_handlers(store, embedder, reasoner, trace_steps=(rules.look,))
    add_upkeep(handlers, store, settings.memory)
    add_keeping(handlers, store, settings)
    return Worker(store, handlers, settings.consolidate, purpose=purpose, busy=busy)


class Busyness:
    """Whether work that can wait should wait."""

    def __init__(self, limit: float, waiting: Callable[[], Iterable[int]]) -> None:
        """Prepare.

        Args:
            limit: share of the processors in use from which the machine is busy, 0..1.
            waiting: how many segments wait to be remembered, of each camera.
        """
        self._limit = limit
        self._waiting = waiting
        psutil.cpu_percent()  # the first call only starts the measurement

    def __call__(self) -> bool:
        """Look; the use of the processors is that since the last look."""
        return psutil.cpu_percent() / 100 > self._limit or any(self._waiting())


def work_through(
    store: Store,
    settings: Settings,
    embedder: TextEmbedder | None,
    *,
    purpose: str,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> WorkReport:
    """Do all that is due, for commands without a service; where one runs, it does that.

    Args:
        store: open for writing.
        settings: all.
        embedder: of texts; None: what needs it waits.
        purpose: the command.
        progress: as of `Worker.drain`.
    """
    worker = build_worker(store, settings, embedder, purpose=purpose)
    try:
        return worker.drain(progress)
    except ClaimHeldError:
        return worker.report
