"""The worker of the durable queue: one thread, one process at a time.

Invariants:

* Prompt jobs are done at once and in the order of the queue: each in a savepoint of one transaction, which takes it out of
  the queue and writes what it derives. A kill loses the whole transaction or nothing.
* Patient jobs are done when nothing waits to be remembered and the machine is idle, or when they have waited long enough,
  and for no longer than the budget at a stretch.
* A job that fails is tried again later and set aside after `jobs.ATTEMPTS`; it holds up no other. What is wrong with the
  disk or the database is no failure of a job: nothing is counted, and all of it is tried again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

import apsw
import structlog

from edge.clock import monotonic, utc_now
from edge.consolidate.handlers import TROUBLE, Handlers
from edge.errors import ClaimHeldError, PostponedError, ReflectWorldError, StoreError
from edge.memory import Store, jobs
from edge.memory.jobs import Job
from edge.settings import ConsolidateSettings

log = structlog.get_logger(__name__)

CLAIM = "jobs"  # what the process that works on the queue holds
_BATCH = 64  # prompt jobs in one transaction, at most
_BATCH_S = 0.05  # after this the transaction ends: commits wait for it, s
_LAZY_S = 60.0  # from one time that lazy work is done to the next, s
_AGAIN_S = 10.0  # until the next try after the memory failed, s
_HELD_S = 2.0  # until the next try while another process works on the queue, s


@dataclass(slots=True)
class WorkReport:
    """What a worker did so far."""

    done: int = 0
    failed: int = 0  # attempts
    aside: int = 0  # jobs that were set aside
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How one job went."""

    job: Job
    seconds: float
    error: str | None = None
    aside: bool = False


def never() -> bool:
    """For a worker whom nothing holds up."""
    return False


class Worker:
    """Works on the queue of one memory: in a thread of its own (`start`), or in the caller's (`drain`)."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        settings: ConsolidateSettings | None = None,
        *,
        purpose: str = "reflectworld jobs",
        busy: Callable[[], bool] = never,
        now: Callable[[], float] = utc_now,
        ticks: Callable[[], float] = monotonic,
    ) -> None:
        """Prepare.

        Args:
            store: the memory, open for writing.
            handlers: who does what.
            settings: when.
            purpose: the command, as another process will say it.
            busy: whether patient work should wait: a segment waits to be remembered, or the machine is busy.
            now: the present, UTC POSIX seconds.
            ticks: a clock that never goes backwards, s, by which lazy work is done once a minute.
        """
        self.report = WorkReport()
        self._store = store
        self._handlers = handlers
        self._settings = settings or ConsolidateSettings()
        self._purpose = purpose
        self._busy = busy
        self._now = now
        self._ticks = ticks
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._lazy_from = -math.inf  # ticks: lazy work is done again
        self._rest_until = 0.0  # monotonic: patient work pauses
        self._thread: threading.Thread | None = None

    # -- in a thread of its own -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Work until `stop`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="consolidate", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        """Something was asked for: look now. From any thread."""
        self._wake.set()

    def stop(self) -> None:
        """End after the job at hand, or after its transaction; from any thread, idempotent."""
        self._stopping.set()
        self._wake.set()

    def join(self, seconds: float) -> bool:
        """Wait for the end.

        Returns:
            Whether it has ended; what a job that goes on computes afterwards is not written, and is done again.
        """
        if self._thread is None:
            return True
        self._thread.join(max(0.0, seconds))
        return not self._thread.is_alive()

    def stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def _run(self) -> None:
        while not self.stopping():
            wait = self._settings.poll_s
            try:
                self.step()
            except StoreError as error:
                if self.stopping():
                    break
                wait = _AGAIN_S
                log.warning("jobs.failed", error=str(error))
            self._wake.wait(wait)
            self._wake.clear()

    # -- in the caller's --------------------------------------------------------------------------------------------------

    def step(self) -> int:
        """Do what is due now: all prompt work, and patient work while it is quiet and the budget lasts.

        Returns:
            How many jobs were done; none while another process is at it.

        Raises:
            StoreError: the memory cannot be read or written.
        """
        self._recur()
        before = self.report.done
        lazily = self._ticks() >= self._lazy_from
        prompt = self._handlers.kinds_prompt if lazily else self._handlers.kinds_at_once
        if not self._due(prompt + self._handlers.kinds_patient):
            return 0
        try:
            with self._store.claim(CLAIM, self._purpose):
                self._prompt(prompt)
                if lazily:
                    self._lazy_from = self._ticks() + _LAZY_S
                self._patiently()
        except ClaimHeldError:
            self._rest_until = max(self._rest_until, monotonic() + _HELD_S)
        return self.report.done - before

    def drain(self, progress: Callable[[int, int], None] = lambda _done, _total: None) -> WorkReport:
        """Do all that is due, whatever else the machine does; returns early after `stop`.

        Args:
            progress: called with how many are done and how many there are, as far as is known.

        Returns:
            What was done.

        Raises:
            StoreError: the memory cannot be read or written, or another process is at it.
        """
        before = self.report.done
        kinds = self._handlers.kinds_prompt + self._handlers.kinds_patient

        def tell() -> None:
            done = self.report.done - before
            progress(done, done + self._due(kinds))

        with self._store.claim(CLAIM, self._purpose):
            tell()
            while not self.stopping():
                worked = self._prompt(self._handlers.kinds_prompt, tell)
                job = self._next_patient()
                if job is not None:
                    self._one(job)
                    tell()
                elif not worked:
                    break
        return self.report

    # -- pieces -----------------------------------------------------------------------------------------------------------

    def _due(self, kinds: tuple[str, ...]) -> int:
        with self._store.reading() as connection:
            return jobs.waiting(connection, self._store.user, self._now(), kinds)

    def _recur(self) -> None:
        """See to it that recurring work is in the queue."""
        recurring, user, now = self._handlers.recurring, self._store.user, self._now()
        if not recurring:
            return
        with self._store.reading() as connection:
            there = jobs.asked_for(connection, user, tuple(recurring))
        missing = [kind for kind in recurring if kind not in there]
        if missing:

            def ask(memory: apsw.Connection) -> None:
                for kind in missing:
                    jobs.ensure(memory, user, kind, "", now + recurring[kind])

            self._store.transact(ask)

    def _prompt(self, kinds: tuple[str, ...], tell: Callable[[], None] = lambda: None) -> bool:
        """Do prompt work until none is due; whether there was any."""
        worked, more = False, True
        while more and not self.stopping():
            outcomes, more = self._store.transact(lambda memory: self._batch(memory, kinds))
            self._count(outcomes)
            worked = worked or bool(outcomes)
            if outcomes:
                tell()
        return worked

    def _batch(self, memory: apsw.Connection, kinds: tuple[str, ...]) -> tuple[list[_Outcome], bool]:
        """Prompt jobs inside one transaction, those included that they ask for; and whether there may be more."""
        began, now = monotonic(), self._now()
        outcomes: list[_Outcome] = []
        while batch := jobs.next_due(memory, self._store.user, now, kinds=kinds, limit=_BATCH):
            for job in batch:
                outcomes.append(self._derive(memory, job, now))
                if monotonic() - began > _BATCH_S or self.stopping():
                    return outcomes, True
        return outcomes, False

    def _derive(self, memory: apsw.Connection, job: Job, now: float) -> _Outcome:
        began = monotonic()
        try:
            with memory:  # a savepoint
                if jobs.finish(memory, job):  # else: another one of the batch asked for it again, or took it away
                    self._handlers.prompt_work(job.kind)(memory, job)
                    every = self._handlers.recurring.get(job.kind)
                    if every is not None:
                        jobs.ensure(memory, job.user, job.kind, job.key, now + every)
        except TROUBLE:
            raise
        except Exception as error:  # noqa: BLE001 -- counted, shown, and tried again: one bad job holds up no other
            return self._failed(memory, job, error, now, monotonic() - began)
        return _Outcome(job, monotonic() - began)

    def _next_patient(self) -> Job | None:
        with self._store.reading() as connection:
            kinds = self._handlers.kinds_patient
            found = jobs.next_due(connection, self._store.user, self._now(), kinds=kinds) if kinds else []
        return found[0] if found else None

    def _patiently(self) -> None:
        if monotonic() < self._rest_until:
            return
        began = monotonic()
        while not self.stopping() and monotonic() - began < self._settings.budget_s:
            job = self._next_patient()
            if job is None:
                return
            if self._now() - max(job.created, job.due) < self._settings.patience_s and self._busy():
                return
            self._one(job)
            self._prompt(self._handlers.kinds_at_once)  # what was remembered meanwhile comes first
        self._rest_until = monotonic() + (monotonic() - began)

    def _one(self, job: Job) -> None:
        began, now = monotonic(), self._now()
        try:
            self._handlers.patient_work(job.kind)(job, self.stopping)
        except StoreError:
            raise
        except PostponedError as error:
            due = now + error.seconds
            self._store.transact(lambda memory: jobs.postpone(memory, job, due))
        except Exception as error:  # noqa: BLE001 -- as above
            failure, seconds = error, monotonic() - began
            self._count([self._store.transact(lambda memory: self._failed(memory, job, failure, now, seconds))])
        else:
            if not self.stopping():
                self._count([_Outcome(job, monotonic() - began)])

    def _failed(self, memory: apsw.Connection, job: Job, error: Exception, now: float, seconds: float) -> _Outcome:
        words = str(error) if isinstance(error, ReflectWorldError) else f"{type(error).__name__}: {error}"
        return _Outcome(job, seconds, words, jobs.fail(memory, job, words, now))

    def _count(self, outcomes: list[_Outcome]) -> None:
        """What was committed counts."""
        for one in outcomes:
            self.report.seconds += one.seconds
            if one.error is None:
                self.report.done += 1
                continue
            self.report.failed += 1
            self.report.aside += one.aside
            attempt = one.job.attempts + 1
            log.warning(
                "job.failed", kind=one.job.kind, key=one.job.key, attempt=attempt, aside=one.aside, error=one.error
            )
