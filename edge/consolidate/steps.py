"""What is derived from each trace, in order. The one place where a tier adds its step.

A step runs inside the writer's transaction, is deterministic, goes by event time and does not depend on the order in which
traces come. It reads the trace from the value that it gets, so that a trace is read once for all of them.

Each step has a savepoint of its own. One that raises is taken back and becomes a job of its own (`step`, `17:scene.note`),
which the worker tries again, counts, and sets aside with its error; what the others derive from the trace stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import apsw
import structlog

from edge.consolidate.handlers import TROUBLE, Prompt
from edge.memory import StoredTrace, jobs, stored_trace
from edge.memory.jobs import Job
from edge.memory.tiers import facts, graph, scene, timeline

log = structlog.get_logger(__name__)

Step = Callable[[apsw.Connection, StoredTrace, str], None]
Again = Callable[[apsw.Connection, int, StoredTrace | None, str], None]

# (memory, trace, user): a trace is new.
TRACE_STEPS: Final[tuple[Step, ...]] = (timeline.note, scene.note, graph.note, facts.note)

# (memory, id, trace, user): a trace was corrected; None: it was forgotten.
RETRACE_STEPS: Final[tuple[Again, ...]] = (timeline.note_again, scene.note_again, graph.note_again, facts.note_again)


def trace_work(more: Sequence[Step] = ()) -> Prompt:
    """How a job `trace` is done; nothing when the trace was forgotten meanwhile.

    Args:
        more: steps of rooms that this one does not know, after its own.
    """

    def work(memory: apsw.Connection, job: Job) -> None:
        trace = stored_trace(memory, job.user, int(job.key))
        if trace is not None:
            for step in (*TRACE_STEPS, *more):
                _apart(memory, job, _name(step), partial(step, memory, trace, job.user))

    return work


def derive_trace_again(memory: apsw.Connection, job: Job) -> None:
    """Do a job `rederive-trace`."""
    number = int(job.key)
    trace = stored_trace(memory, job.user, number)
    for step in RETRACE_STEPS:
        _apart(memory, job, _name(step), partial(step, memory, number, trace, job.user))


def step_work(more: Sequence[Step] = ()) -> Prompt:
    """How a job `step` is done: a single step that failed before; nothing when there is no such step any more.

    Args:
        more: as for `trace_work`.
    """
    once = {_name(step): step for step in (*TRACE_STEPS, *more)}
    again = {_name(step): step for step in RETRACE_STEPS}

    def work(memory: apsw.Connection, job: Job) -> None:
        number, _, name = job.key.partition(":")
        trace = stored_trace(memory, job.user, int(number))
        if name in again:
            again[name](memory, int(number), trace, job.user)
        elif name in once and trace is not None:
            once[name](memory, trace, job.user)

    return work


def _apart(memory: apsw.Connection, job: Job, name: str, step: Callable[[], None]) -> None:
    """Do one step; if it raises, let it be a job of its own."""
    try:
        with memory:  # a savepoint
            step()
    except TROUBLE:
        raise
    except Exception as error:  # noqa: BLE001 -- reported here, and counted by the worker when its own job fails
        log.warning("step.failed", step=name, trace=job.key, error=f"{type(error).__name__}: {error}")
        jobs.enqueue(memory, job.user, jobs.STEP, f"{job.key}:{name}", priority=jobs.AT_ONCE)


def _name(step: Step | Again) -> str:
    """By which a step is known in the queue: its module and its function."""
    return f"{step.__module__.rpartition('.')[2]}.{step.__name__}"
