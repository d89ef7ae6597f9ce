"""The handlers of this product: the one place where a kind of job gets its work."""

from __future__ import annotations

from edge.consolidate.embedding import Embedder, embed_again
from edge.consolidate.handlers import Handlers
from edge.consolidate.steps import derive_entity_again, derive_trace, derive_trace_again
from edge.memory import Store, jobs
from edge.memory.tiers import timeline


def build_handlers(store: Store, embedder: Embedder | None = None) -> Handlers:
    """Everything that can be done with what is there.

    Args:
        store: the memory, open for writing.
        embedder: of texts; None: what needs it stays in the queue.
    """
    handlers = Handlers()
    handlers.prompt(jobs.TRACE, derive_trace)
    handlers.prompt(jobs.RETRACE, derive_trace_again)
    handlers.prompt(jobs.REENTITY, derive_entity_again)
    handlers.prompt(timeline.TIMELINE, timeline.settle_job)
    handlers.prompt(timeline.ABOVE, timeline.settle_above_job, lazy=True)
    if embedder is not None:
        handlers.patient("embed", lambda job, _stopping: embed_again(store, embedder, job))
    return handlers
