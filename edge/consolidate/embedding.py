"""Vectors of texts that say something else now: the job `embed`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.memory import Store, index, jobs, read_units, trace_vector
from edge.memory.jobs import Job

UNKNOWN = "someone"  # who is mentioned and no longer known


class Embedder(Protocol):
    """What turns texts into unit vectors."""

    @property
    def key(self) -> str:
        """Names the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


def embed_again(store: Store, embedder: Embedder, job: Job) -> bool:
    """Do a job `embed`: the vectors of a trace are made again from its texts as they are now.

    The network runs outside the transaction that writes; what was asked for again meanwhile is left for the next time.

    Args:
        store: the memory, open for writing.
        embedder: of texts.
        job: its key is the id of the trace.

    Returns:
        Whether the job is done and gone.

    Raises:
        InferenceError: the network failed.
        StoreError: the memory cannot be read or written.
    """
    trace = int(job.key)
    with store.reading() as connection:
        titles = store.titles()
        units = index.trace_units(connection, trace, lambda entity: titles.get(entity, UNKNOWN))
    read = read_units(embedder, [unit.text for unit in units]) if units else None

    def write(memory: apsw.Connection) -> bool:
        there = memory.execute("select 1 from trace where id = ?", (trace,)).fetchall()
        done = jobs.finish(memory, job)
        if done and there and read is not None:
            vectors, words = read
            index.add_vectors(memory, trace, trace_vector(vectors), list(vectors), embedder.key, b"".join(words))
        return done

    return store.transact(write)
