"""Sightings that belong together. Pure.

An occasion ends when they are seen to leave and are away for a moment, when a segment passes without them, or when nothing is
recorded for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edge.memory import index

AWAY_S = 2.0  # who went out of view and is back sooner was at the edge of the picture
EVENT_GAP_S = 30.0  # a gap longer than this starts a new event (ReflectWorld-MM, 3.2)


@dataclass(frozen=True, slots=True)
class Seen:
    """Somebody or something in one trace."""

    trace: int
    start: float  # UTC POSIX seconds
    end: float
    gone: bool = False  # went out of view at the end of it


@dataclass(frozen=True, slots=True)
class Occasion:
    """Sightings without a break between them."""

    start: float  # UTC POSIX seconds
    end: float
    traces: tuple[int, ...]  # in the order of time
    gone: bool = False  # went out of view at the end of it


def occasions(sightings: Sequence[Seen], corpus: index.Corpus) -> list[Occasion]:
    """Join sightings in traces that follow each other on one camera, or that overlap in time.

    Args:
        sightings: in any order.
        corpus: at least all traces between the first and the last of them.
    """
    if not sightings:
        return []
    ordered = sorted(sightings, key=lambda one: (one.start, one.trace))
    ids = np.array([one.trace for one in ordered], np.int64)
    rows = np.minimum(np.searchsorted(corpus.traces, ids), max(len(corpus.traces) - 1, 0))
    known = corpus.traces[rows] == ids if len(corpus.traces) else np.zeros(len(ids), np.bool_)
    if not len(corpus.traces):
        rows = rows[:0]
    ranks = np.empty(len(corpus.traces), np.int64)
    ranks[np.lexsort((corpus.starts, corpus.cameras))] = np.arange(len(corpus.traces))
    # Lists: a memory of years has many sightings of somebody, and they are looked at one by one.
    there, rank, camera = known.tolist(), ranks[rows].tolist(), corpus.cameras[rows].tolist()
    begin, over = corpus.starts[rows].tolist(), corpus.ends[rows].tolist()

    def follows(earlier: int, later: int) -> bool:
        if ordered[earlier].trace == ordered[later].trace:
            return True
        if not there[earlier] or not there[later]:
            return False
        if camera[earlier] != camera[later]:
            return bool(begin[later] <= over[earlier])
        return bool(abs(rank[later] - rank[earlier]) == 1 and begin[later] - over[earlier] <= EVENT_GAP_S)

    found: list[Occasion] = []
    held: list[int] = []  # places of the first sighting in each trace of the occasion
    end, gone = 0.0, False

    def close() -> None:
        if held:
            found.append(Occasion(ordered[held[0]].start, end, tuple(ordered[one].trace for one in held), gone))

    for place, seen in enumerate(ordered):
        away = gone and seen.start - end >= AWAY_S
        if held and not away and any(follows(one, place) for one in held[:-4:-1]):
            if all(ordered[one].trace != seen.trace for one in held[-3:]):
                held.append(place)
            gone = seen.gone if seen.end >= end else gone
            end = max(end, seen.end)
        else:
            close()
            held, end, gone = [place], seen.end, seen.gone
    close()
    return found


def runs(corpus: index.Corpus, through: NDArray[np.bool_]) -> list[tuple[float, float, int, int, int]]:
    """Moments that follow each other, as one time; those of several cameras that overlap are one, too.

    Args:
        corpus: everything that may be seen.
        through: (n,) in which of its traces it was so.

    Returns:
        Start, end, number of moments, id of the first and of the last, in the order of time.
    """
    order = np.lexsort((corpus.starts, corpus.cameras))
    inside = through[order]
    if not inside.any():
        return []
    starts, ends, cameras = corpus.starts[order], corpus.ends[order], corpus.cameras[order]
    goes_on = np.zeros(len(order), np.bool_)
    goes_on[1:] = inside[:-1] & (cameras[1:] == cameras[:-1]) & (starts[1:] - ends[:-1] <= EVENT_GAP_S)
    begins = np.flatnonzero(inside & ~goes_on)
    number = np.cumsum(inside & ~goes_on) - 1
    until = np.zeros(len(begins))
    last = np.zeros(len(begins), np.int64)
    rows = np.flatnonzero(inside)
    np.maximum.at(until, number[rows], ends[rows])
    last[number[rows]] = rows
    moments = np.bincount(number[rows], minlength=len(begins))
    found: list[tuple[float, float, int, int, int]] = []
    for run in np.argsort(starts[begins], kind="stable").tolist():
        start, end = float(starts[begins[run]]), float(until[run])
        first, final = int(corpus.traces[order[begins[run]]]), int(corpus.traces[order[last[run]]])
        if found and start <= found[-1][1]:
            begun, ended, held, one, other = found[-1]
            found[-1] = (begun, max(ended, end), held + int(moments[run]), one, final if end >= ended else other)
        else:
            found.append((start, end, int(moments[run]), first, final))
    return found
