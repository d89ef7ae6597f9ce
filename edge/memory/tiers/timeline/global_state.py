"""The global state (Light-Omni, 3.2) in moments and vectors: what the reflex head is told of all that was so far."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw
import numpy as np

from edge.memory.database import fetch
from edge.memory.index import WHOLE
from edge.memory.tiers import timeline
from edge.types.evidence import Vector


def moments(connection: apsw.Connection, user: str, at: float) -> list[tuple[int, float]]:
    """The latest trace of each node of the timeline's frontier, of those that had ended by a time.

    Args:
        connection: any reader.
        user: whose memory.
        at: UTC POSIX seconds.

    Returns:
        Ids and ends (UTC POSIX seconds), at most one a node, in the order of time.
    """
    nodes = timeline.frontier(connection, user, at)
    spans = [(node.camera, node.start, min(node.end, at)) for node in nodes]
    sql = """
        select t.id, t.end from json_each(:spans) s join camera c on c.user = :user and c.name = s.value ->> 0
        join trace t on t.id = (
          select i.id from trace i where i.camera = c.id and i.start between s.value ->> 1 and s.value ->> 2 and i.end <= :at
          order by i.start desc, i.id desc limit 1)
        order by s.key"""
    rows = fetch(connection, sql, {"spans": json.dumps(spans), "user": user, "at": at})
    return [(int(trace), float(end)) for trace, end in rows]


def vectors(connection: apsw.Connection, embedder: str, traces: Sequence[int]) -> dict[int, Vector]:
    """The vectors of some traces, (d,) float32 and L2-normalised; those without one are left out.

    Args:
        connection: any reader.
        embedder: key of the model that made them.
        traces: ids.
    """
    sql = """
        select e.trace, e.vector from json_each(:wanted) w join text_embedder m on m.key = :embedder
        join embedding e on e.trace = w.value and e.embedder = m.id and e.unit = :whole"""
    wanted = {"wanted": json.dumps(sorted(set(traces))), "embedder": embedder, "whole": WHOLE}
    found: dict[int, Vector] = {}
    for trace, stored in fetch(connection, sql, wanted):
        value = np.frombuffer(stored, np.int8).astype(np.float32)
        found[int(trace)] = value / np.float32(max(float(np.linalg.norm(value)), 1e-9))
    return found
