"""The encrypted store: one writer, everything with an id and a provenance."""

from __future__ import annotations

from edge.memory import index, jobs
from edge.memory.store import Store
from edge.memory.stored import StoredTrace, stored_trace, titles_of
from edge.memory.units import read_units, search_units, trace_vector
from edge.memory.upkeep.plans import Plan, Target

__all__ = [
    "Plan",
    "Store",
    "StoredTrace",
    "Target",
    "index",
    "jobs",
    "read_units",
    "search_units",
    "stored_trace",
    "titles_of",
    "trace_vector",
]
