"""Who does which kind of job.

Two sorts. *Prompt* work is deterministic and quick: it is done at once, several jobs in one transaction of the writer, each
taken out of the queue in it. *Patient* work (networks, language models) waits for a quiet moment, computes outside the
transaction, and writes together with `jobs.finish` in a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import apsw

from edge.memory.jobs import Job

Prompt = Callable[[apsw.Connection, Job], None]
Patient = Callable[[Job, Callable[[], bool]], object]
Derive = Callable[[apsw.Connection, str, float], None]

# Trouble with the files or the machine, whatever job notices it.
TROUBLE: Final = (
    apsw.FullError, apsw.IOError, apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.CorruptError,
    apsw.CantOpenError, apsw.NoMemError, apsw.InterruptError, apsw.NotADBError, MemoryError,
)  # fmt: skip


@dataclass(slots=True)
class Handlers:
    """The handlers of one worker, by kind of job. Kinds that nobody registered stay in the queue."""

    _prompt: dict[str, Prompt] = field(default_factory=dict)
    _patient: dict[str, Patient] = field(default_factory=dict)
    _lazy: set[str] = field(default_factory=set)
    _every: dict[str, float] = field(default_factory=dict)

    def prompt(self, kind: str, work: Prompt, *, lazy: bool = False) -> None:
        """Register deterministic work.

        Args:
            kind: of job.
            work: (memory, job): derives inside the writer's transaction, milliseconds at most. The worker has already taken
                the job out of the queue in the same transaction; an exception puts it back and counts as a failure.
            lazy: a thread does it once a minute only, because it is asked for with each moment; a drain does it at once.
        """
        self._prompt[kind] = work
        if lazy:
            self._lazy.add(kind)

    def patient(self, kind: str, work: Patient) -> None:
        """Register work that may take long.

        Args:
            kind: of job.
            work: (job, stopping): computes outside any transaction, and writes in one that also calls `jobs.finish`; it asks
                `stopping()` now and then and gives up (writing nothing) when that says so. `PostponedError` lets the job
                wait without counting a failure.
        """
        self._patient[kind] = work

    def every(self, kind: str, seconds: float, work: Derive) -> None:
        """Register prompt work that recurs.

        Args:
            kind: of job.
            seconds: from one time to the next.
            work: (memory, user, now): as for `prompt`.
        """
        self._prompt[kind] = lambda memory, job: work(memory, job.user, job.due)
        self._every[kind] = seconds

    def patient_every(self, kind: str, seconds: float, work: Patient) -> None:
        """Register patient work that recurs.

        Args:
            kind: of job.
            seconds: from one time to the next.
            work: as for `patient`; it asks for the next time itself, in the transaction of `jobs.finish`.
        """
        self._patient[kind] = work
        self._every[kind] = seconds

    @property
    def kinds_prompt(self) -> tuple[str, ...]:
        """Kinds of prompt jobs."""
        return tuple(self._prompt)

    @property
    def kinds_at_once(self) -> tuple[str, ...]:
        """Kinds of prompt jobs that are not lazy."""
        return tuple(kind for kind in self._prompt if kind not in self._lazy)

    @property
    def kinds_patient(self) -> tuple[str, ...]:
        """Kinds of patient jobs."""
        return tuple(self._patient)

    @property
    def recurring(self) -> dict[str, float]:
        """Kinds that recur, with the seconds from one time to the next."""
        return dict(self._every)

    def prompt_work(self, kind: str) -> Prompt:
        """Who does prompt jobs of a kind."""
        return self._prompt[kind]

    def patient_work(self, kind: str) -> Patient:
        """Who does patient jobs of a kind."""
        return self._patient[kind]
