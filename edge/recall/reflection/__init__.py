"""Reflection: what went wrong with a search, how its question is repaired, and what earlier questions teach (RRM, Fan et al. 2026).

`signals` says what a search showed, `repair` puts the question another way, `shape` abstracts it, `bank` remembers which move
helped questions of such a shape, `feedback` keeps answers and learns from what the owner thinks of them.
"""

from __future__ import annotations

from edge.recall.reflection.bank import Advice, Batch, Move, Trajectory, advise, learn
from edge.recall.reflection.feedback import judge, keep, learn_now
from edge.recall.reflection.repair import Repair, anyone, reworded, widened
from edge.recall.reflection.shape import is_shape, shape_of
from edge.recall.reflection.signals import Probe, Signal, contradiction

__all__ = [
    "Advice",
    "Batch",
    "Move",
    "Probe",
    "Repair",
    "Signal",
    "Trajectory",
    "advise",
    "anyone",
    "contradiction",
    "is_shape",
    "judge",
    "keep",
    "learn",
    "learn_now",
    "reworded",
    "shape_of",
    "widened",
]
