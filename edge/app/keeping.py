"""What is kept how long: thinning by age and by size, and people without a name who are kept no longer.

Both are patient jobs of the queue, in small steps. A device that runs out of room does not wait for a quiet moment: the
service looks at it every few seconds (`short_of_room`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import apsw
import structlog

from edge.clock import utc_now
from edge.consolidate import Handlers
from edge.identity import RULES
from edge.memory import Store, jobs
from edge.memory.jobs import Job
from edge.memory.upkeep import retention, strangers
from edge.memory.upkeep.retention import Thinning
from edge.memory.writer import Files
from edge.settings import IdentitySettings, MemorySettings, Settings

log = structlog.get_logger(__name__)

RETENTION: Final = "retention"
STRANGERS: Final = "strangers"
_RETENTION_S: Final = 600.0
_STRANGERS_S: Final = 3600.0
_STEPS: Final = 50  # of one job; what is left is done by the next
_EVERYTHING: Final = 10**9
_PEOPLE: Final = 50  # who expire in one transaction


@dataclass(frozen=True, slots=True)
class Room:
    """How full a memory and its device are."""

    used: int  # bytes in use in both files
    free: int  # bytes on the device
    thinning: Thinning  # what would go now


def add_keeping(handlers: Handlers, store: Store, settings: Settings) -> None:
    """Let a worker do it.

    Args:
        handlers: of the worker.
        store: the memory, open for writing.
        settings: `memory` and `identity`.
    """

    def thin(job: Job, stopping: Callable[[], bool]) -> None:
        thin_out(store, settings.memory, stopping=stopping)
        _again(store, job, _RETENTION_S)

    def expire(job: Job, stopping: Callable[[], bool]) -> None:
        expire_strangers(store, settings.identity, stopping=stopping)
        _again(store, job, _STRANGERS_S)

    handlers.patient_every(RETENTION, _RETENTION_S, thin)
    handlers.patient_every(STRANGERS, _STRANGERS_S, expire)


def short_of_room(store: Store, settings: MemorySettings) -> bool:
    """Whether less is free on the device than should be; microseconds."""
    free, floor = retention.free_and_floor(store.home, settings)
    return free < floor


def room(store: Store, settings: MemorySettings) -> Room:
    """How full it is, and what would go; nothing is changed."""

    def look(files: Files) -> Room:
        used = retention.used_bytes((files.memory, files.frames))
        free, floor = retention.free_and_floor(store.home, settings)
        wanted = retention.policy(settings, now=utc_now(), used=used, missing=floor - free)
        return Room(used, free, retention.plan(files.memory, files.frames, store.user, wanted, _EVERYTHING))

    return store.upkeep(look)


def thin_out(
    store: Store, settings: MemorySettings, *, stopping: Callable[[], bool] = lambda: False, steps: int = _STEPS
) -> Thinning:
    """Let go what is not to be kept, in steps.

    Args:
        store: the memory, open for writing.
        settings: what is kept how long.
        stopping: asked between steps.
        steps: at most so many.

    Returns:
        What went.
    """

    def step(files: Files) -> Thinning:
        used = retention.used_bytes((files.memory, files.frames))
        free, floor = retention.free_and_floor(store.home, settings)
        wanted = retention.policy(settings, now=utc_now(), used=used, missing=floor - free)
        what = retention.plan(files.memory, files.frames, store.user, wanted, retention.STEP)
        if what:
            retention.thin(files, store.user, what)
        return what

    total = Thinning()
    for _ in range(steps):
        went = Thinning() if stopping() else store.upkeep(step)
        if not went:
            break
        total = Thinning(
            total.pictures + went.pictures,
            total.details + went.details,
            total.moments + went.moments,
            total.bytes + went.bytes,
        )
    if total:
        log.info("memory.thinned", pictures=len(total.pictures), moments=len(total.moments), bytes=total.bytes)
    if total.moments and store.galleries_due():
        store.rebuild_galleries(RULES)
    return total


def expire_strangers(
    store: Store, settings: IdentitySettings, *, stopping: Callable[[], bool] = lambda: False, now: float | None = None
) -> int:
    """Let faces and voices of people without a name go whose time is over; how many people that were."""
    now = utc_now() if now is None else now
    unseen = now - settings.stranger_days * strangers.DAY_S if settings.stranger_days > 0 else None
    known = now - settings.consent_days * strangers.DAY_S if settings.strangers == "consent" else None
    if settings.strangers == "none":
        unseen = float("inf")
        store.transact(lambda memory: strangers.forget_waiting(memory, store.user))
    gone = 0
    while not stopping():

        def work(memory: apsw.Connection) -> int:
            people = strangers.expired(memory, store.user, unseen_since=unseen, known_since=known, limit=_PEOPLE)
            strangers.expire(memory, people)
            return len(people)

        went = store.transact(work)
        gone += went
        if not went:
            break
    if gone:
        log.info("people.expired", count=gone)
        store.rebuild_galleries(RULES)
    return gone


def _again(store: Store, job: Job, every: float) -> None:
    def write(memory: apsw.Connection) -> None:
        if jobs.finish(memory, job):
            jobs.ensure(memory, job.user, job.kind, job.key, utc_now() + every)

    store.transact(write)
