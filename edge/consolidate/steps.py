"""What is derived from each trace, in order. The one place where a tier adds its step.

A step runs inside the writer's transaction, is deterministic, goes by event time and does not depend on the order in which
traces come. It reads the trace from the value that it gets, so that a trace is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import apsw

from edge.memory import StoredTrace, stored_trace
from edge.memory.jobs import Job
from edge.memory.tiers import scene, timeline

Step = Callable[[apsw.Connection, StoredTrace, str], None]
Again = Callable[[apsw.Connection, int, StoredTrace | None, str], None]

# (memory, trace, user): a trace is new.
TRACE_STEPS: Final[tuple[Step, ...]] = (timeline.note, scene.note)

# (memory, id, trace, user): a trace was corrected; None: it was forgotten.
RETRACE_STEPS: Final[tuple[Again, ...]] = (timeline.note_again, scene.note_again)


def trace_work(more: Sequence[Step] = ()) -> Callable[[apsw.Connection, Job], None]:
    """How a job `trace` is done; nothing when the trace was forgotten meanwhile.

    Args:
        more: steps of rooms that this one does not know, after its own.
    """

    def work(memory: apsw.Connection, job: Job) -> None:
        trace = stored_trace(memory, job.user, int(job.key))
        if trace is not None:
            for step in (*TRACE_STEPS, *more):
                step(memory, trace, job.user)

    return work


def derive_trace_again(memory: apsw.Connection, job: Job) -> None:
    """Do a job `rederive-trace`."""
    number = int(job.key)
    trace = stored_trace(memory, job.user, number)
    for step in RETRACE_STEPS:
        step(memory, number, trace, job.user)
