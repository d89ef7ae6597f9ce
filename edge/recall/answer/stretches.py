"""Where a camera that is carried about was: stretches of hours with the kind of place, and when it was there before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers import visual
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene.places import Place
from edge.memory.tiers.visual import Like
from edge.types.records import Kind, public_id

SAME_PLACE: Final = 0.7  # cosine from which two moments are of one place (measured: python -m tools.bench.scene)
_BEFORE_S: Final = 3600.0  # what is nearer before a stretch is the same occasion


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some hours in one place."""

    start: float  # UTC POSIX seconds
    end: float
    place: Place
    moments: int
    again: str | None  # id of an earlier moment that looks as if it were the same place
    cosine: float | None  # of it to the moment of the stretch that it looks like


def stretches(store: Store, camera: str, since: float, until: float) -> list[Stretch]:
    """Where a camera was, in the order of time; where it is known again, with when it was there before.

    Args:
        store: the memory.
        camera: its name.
        since: UTC POSIX seconds.
        until: UTC POSIX seconds.

    Raises:
        NotFoundError: there is no such camera.
    """
    with store.reading() as connection:
        known = scene_reads.cameras(connection, store.user)
        mine = [number for number, name in known if name == camera]
        if not mine:
            cameras = ", ".join(name for _, name in known) or "none yet"
            raise NotFoundError(camera, f"There is no camera “{camera}”; the cameras are: {cameras}.")
        found = []
        for one in scene_reads.stretches(connection, mine[0], since, until):
            best: Like | None = None
            for trace in one.traces:
                looks = visual.vector_of(connection, trace)
                if looks is None:
                    continue
                columns = store.visual_columns(connection, looks[1])
                every = [number for number, _ in known]
                for like in visual.search(connection, columns, *looks, cameras=every, until=one.start - _BEFORE_S, k=1):
                    best = like if best is None or like.cosine > best.cosine else best
            again = best if best is not None and best.cosine >= SAME_PLACE else None
            found.append(
                Stretch(
                    one.start,
                    one.end,
                    one.place,
                    one.moments,
                    None if again is None else public_id(Kind.TRACE, again.trace),
                    None if again is None else again.cosine,
                )
            )
    return found
