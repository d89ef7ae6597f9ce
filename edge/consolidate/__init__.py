"""What is made of memories while nobody waits: the worker of the durable queue and its handlers."""

from __future__ import annotations

from edge.consolidate.embedding import embed_again

__all__ = ["embed_again"]
