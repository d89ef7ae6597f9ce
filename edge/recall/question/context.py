"""What a question is asked in: the global state and what is on camera now, as vectors for the reflex head."""

from __future__ import annotations

from typing import Final

import apsw
import numpy as np

from edge.memory.tiers.timeline import global_state
from edge.recall.question.head import Context
from edge.types.evidence import Vector

NOW_S: Final = 120.0  # what ended less long ago is on camera now, s: a segment lasts 30 s, and another one may be open


def read_context(connection: apsw.Connection, user: str, embedder: str, dimensions: int, at: float) -> Context:
    """The context at a time, from what had ended by then; zeros where nothing had.

    Each node of the global state stands in with the last moment in it, so that recent moments weigh one by one and distant
    ones by their days, as in the state itself.

    Args:
        connection: a reader.
        user: whose memory.
        embedder: key of the embedding model.
        dimensions: of its vectors.
        at: UTC POSIX seconds.
    """
    state = global_state.moments(connection, user, at)
    vectors = global_state.vectors(connection, embedder, [trace for trace, _ in state])
    found = [(vectors[trace], end) for trace, end in state if trace in vectors and len(vectors[trace]) == dimensions]
    nothing = np.zeros(dimensions, np.float32)
    if not found:
        return Context(nothing, nothing)
    mean: Vector = np.mean([vector for vector, _ in found], axis=0, dtype=np.float32)
    newest, end = max(found, key=lambda one: one[1])
    length = float(np.linalg.norm(mean))
    return Context(mean / np.float32(length) if length > 0 else nothing, newest if at - end <= NOW_S else nothing)
