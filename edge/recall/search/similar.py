"""Moments that look alike: “when was I here before?”, by a moment, a key frame or a picture from elsewhere."""

from __future__ import annotations

from typing import Final

from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers import visual
from edge.recall.answer.evidence import Evidence
from edge.recall.records import Filters, Result
from edge.types.evidence import Vector

APART_S: Final = 900.0  # around a moment of the same camera: what looks alike there is the same occasion


def similar(store: Store, trace: int, filters: Filters | None = None, k: int = 10) -> list[Result]:
    """The moments that look most like another one, of each hour of a camera one, the best first; its own occasion is left out.

    Args:
        store: the memory.
        trace: id of the moment.
        filters: what may be looked at; `person` is not looked at.
        k: how many.

    Returns:
        Results of the level `trace`, with the cosine as score.

    Raises:
        NotFoundError: there is no such moment, nobody knows what it looked like, or there is no such camera.
    """
    record = store.trace(trace)
    with store.reading() as connection:
        looked = visual.vector_of(connection, trace)
    if looked is None:
        raise NotFoundError(
            f"t{trace}",
            f"What t{trace} looked like is not known: it had no pictures, or they were forgotten. Ask about another moment.",
        )
    return _search(store, *looked, filters, k, (record.camera, record.start - APART_S, record.end + APART_S))


def like(store: Store, picture: Vector, embedder: str, filters: Filters | None = None, k: int = 10) -> list[Result]:
    """The moments that look most like a picture; as `similar`.

    Args:
        store: the memory.
        picture: (d,) unit vector (`edge.perceive.SceneEmbedder`).
        embedder: key of the network that made it.
        filters: what may be looked at.
        k: how many.

    Raises:
        NotFoundError: there is no such camera.
    """
    return _search(store, picture, embedder, filters, k, None)


def _search(
    store: Store, vector: Vector, embedder: str, filters: Filters | None, k: int, apart: tuple[str, float, float] | None
) -> list[Result]:
    filters = filters or Filters()
    ids: dict[str, int] = dict(store.rows("select name, id from camera where user = ?", (store.user,)))
    if filters.camera is not None and filters.camera not in ids:
        cameras = ", ".join(ids) or "none yet"
        raise NotFoundError(filters.camera, f"There is no camera “{filters.camera}”; the cameras are: {cameras}.")
    with store.reading() as connection:
        found = visual.search(
            connection,
            store.visual_columns(connection, embedder),
            vector,
            embedder,
            cameras=[ids[filters.camera]] if filters.camera is not None else list(ids.values()),
            since=filters.since,
            until=filters.until,
            apart=None if apart is None else (ids[apart[0]], *apart[1:]),
            k=k,
        )
    scores = {one.trace: one.cosine for one in found}
    evidence = Evidence(store, None)
    return [evidence.trace(record, scores[record.id]) for record in store.traces_by_id(scores)]
