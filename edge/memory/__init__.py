"""The encrypted store: one writer, everything with an id and a provenance."""

from __future__ import annotations

from edge.memory import index, jobs
from edge.memory.store import Store
from edge.memory.units import search_units, trace_vector

__all__ = ["Store", "index", "jobs", "search_units", "trace_vector"]
