"""The handlers of this product: the one place where a kind of job gets its work."""

from __future__ import annotations

from collections.abc import Sequence

from edge.consolidate import fact_model, summaries
from edge.consolidate.embedding import Embedder, embed_again
from edge.consolidate.handlers import Handlers
from edge.consolidate.steps import Step, derive_trace_again, step_work, trace_work
from edge.memory import Store, jobs
from edge.memory.tiers import facts, scene, timeline
from edge.reason import Reasoner


def build_handlers(
    store: Store,
    embedder: Embedder | None = None,
    reasoner: Reasoner | None = None,
    *,
    trace_steps: Sequence[Step] = (),
) -> Handlers:
    """Everything that can be done with what is there.

    Args:
        store: the memory, open for writing.
        embedder: of texts; None: what needs it stays in the queue.
        reasoner: that asks a language model; None: what needs it stays in the queue. Where none is set up, it is dropped.
        trace_steps: what other rooms do with each new trace, in its transaction.
    """
    handlers = Handlers()
    handlers.prompt(jobs.TRACE, trace_work(trace_steps))
    handlers.prompt(jobs.RETRACE, derive_trace_again)
    handlers.prompt(jobs.STEP, step_work(trace_steps))
    handlers.prompt(timeline.TIMELINE, timeline.settle_job)
    handlers.prompt(timeline.ABOVE, timeline.settle_above_job, lazy=True)
    handlers.prompt(scene.SCENE, scene.settle_job, lazy=True)
    handlers.prompt(facts.FACTS, facts.settle_job, lazy=True)
    if embedder is not None:
        handlers.patient("embed", lambda job, _stopping: embed_again(store, embedder, job))
    if reasoner is not None:
        _add_reasoning(handlers, store, reasoner)
    return handlers


def _add_reasoning(handlers: Handlers, store: Store, reasoner: Reasoner) -> None:
    """What a language model does: all of it is there without one, too, if not as well."""
    if not reasoner.configured:
        for kind in (
            summaries.SUMMARY,
            summaries.SUMMARIES,
            fact_model.FACT_NOTES,
            fact_model.FACT_NOTING,
        ):  # asked for when there was one
            handlers.prompt(kind, lambda _memory, _job: None)
        return
    handlers.every(summaries.SUMMARIES, summaries.EVERY_S, summaries.ask_for_summaries)
    handlers.patient(summaries.SUMMARY, lambda job, stopping: summaries.write_summary(store, reasoner, job, stopping))
    handlers.every(fact_model.FACT_NOTING, fact_model.EVERY_S, fact_model.ask_for_notes)
    handlers.patient(fact_model.FACT_NOTES, lambda job, stopping: fact_model.note_facts(store, reasoner, job, stopping))
