"""What is done of itself to keep the memory safe: backups, and reading it whole now and then.

Both are patient jobs of the queue: they wait for a quiet moment, and give up when the service stops.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw
import structlog

from edge.clock import utc_now
from edge.consolidate import Handlers
from edge.errors import BackupError, PostponedError, StoreError
from edge.memory import Store, jobs
from edge.memory.jobs import Job
from edge.memory.upkeep import backup, examined, offers
from edge.memory.upkeep.examined import Examination
from edge.settings import MemorySettings

log = structlog.get_logger(__name__)

HOUR_S = 3600.0
BACKUP = "backup"
EXAMINE = "examine"
_AGAIN_S = HOUR_S  # until a backup that could not be made is tried again


def add_upkeep(handlers: Handlers, store: Store, settings: MemorySettings) -> None:
    """Let a worker do it.

    Args:
        handlers: of the worker.
        store: the memory, open for writing.
        settings: how often, and where backups go.
    """
    if settings.examine_h > 0:
        every = settings.examine_h * HOUR_S
        handlers.patient_every(EXAMINE, every, lambda job, _stopping: _examine(store, job, every))
    if settings.backup_folder is not None and settings.backup_h > 0:
        handlers.patient_every(
            BACKUP, settings.backup_h * HOUR_S, lambda job, stopping: _back_up(store, settings, job, stopping)
        )


def examine(store: Store) -> Examination:
    """Read a memory whole and keep what was found."""
    found = Examination(utc_now(), tuple(store.integrity()))
    try:
        examined.note(store.home, found)
    except OSError as error:
        log.warning("memory.not_noted", error=str(error))
    return found


def _examine(store: Store, job: Job, every: float) -> None:
    found = examine(store)
    if found.problems:
        log.error("memory.damaged", problems=list(found.problems[:3]), remedy=offers.offer(store.home))
    _again(store, job, every)


def _back_up(store: Store, settings: MemorySettings, job: Job, stopping: Callable[[], bool]) -> None:
    folder = settings.backup_folder
    if folder is None or not folder.is_dir():
        log.warning("backup.no_folder", folder=str(folder))
        raise PostponedError(_AGAIN_S, f"The folder for backups “{folder}” is not there; make it, or plug it in.")

    def go_on(_done: int, _total: int) -> None:
        if stopping():
            raise PostponedError(0.0, "The service stops; the backup is made next time.")

    try:
        made = backup.make(store.home, settings, folder, keep=settings.backup_keep, progress=go_on)
    except (BackupError, StoreError) as error:
        log.warning("backup.failed", error=str(error))
        raise PostponedError(_AGAIN_S, str(error)) from error
    log.info("backup.made", path=str(made.path), bytes=made.bytes, removed=len(made.removed))
    _again(store, job, settings.backup_h * HOUR_S)


def _again(store: Store, job: Job, every: float) -> None:
    def write(memory: apsw.Connection) -> None:
        if jobs.finish(memory, job):
            jobs.ensure(memory, job.user, job.kind, job.key, utc_now() + every)

    store.transact(write)
