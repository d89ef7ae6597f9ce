"""Sightings that belong together. Pure.

An occasion ends when they are seen to leave and are away for a moment, when a segment passes without them, or when nothing is
recorded for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    in_time = np.lexsort((corpus.starts, corpus.cameras))
    place = {int(corpus.traces[at]): rank for rank, at in enumerate(in_time)}
    where = {int(trace): at for at, trace in enumerate(corpus.traces)}

    def follows(earlier: int, later: int) -> bool:
        if earlier == later:
            return True
        if earlier not in place or later not in place:
            return False
        a, b = where[earlier], where[later]
        if corpus.cameras[a] != corpus.cameras[b]:
            return bool(corpus.starts[b] <= corpus.ends[a])
        return abs(place[later] - place[earlier]) == 1 and bool(corpus.starts[b] - corpus.ends[a] <= EVENT_GAP_S)

    found: list[Occasion] = []
    for seen in sorted(sightings, key=lambda one: (one.start, one.trace)):
        last = found[-1] if found else None
        away = last is not None and last.gone and seen.start - last.end >= AWAY_S
        if last is not None and not away and any(follows(trace, seen.trace) for trace in last.traces[-3:]):
            traces = last.traces if seen.trace in last.traces[-3:] else (*last.traces, seen.trace)
            gone = seen.gone if seen.end >= last.end else last.gone
            found[-1] = Occasion(last.start, max(last.end, seen.end), traces, gone)
        else:
            found.append(Occasion(seen.start, seen.end, (seen.trace,), seen.gone))
    return found
