"""What is made of memories while nobody waits: the worker of the durable queue and its handlers.

`steps` is where a tier adds what it derives from each trace; `build` where a kind of job gets its handler.
"""

from __future__ import annotations

from edge.consolidate.build import build_handlers
from edge.consolidate.embedding import embed_again
from edge.consolidate.handlers import Handlers
from edge.consolidate.worker import Worker, WorkReport

__all__ = ["Handlers", "WorkReport", "Worker", "build_handlers", "embed_again"]
