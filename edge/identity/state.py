"""What the resolver knows when it decides: galleries, entities, waiting evidence and who is elsewhere.

All of it is plain values. The shell (`edge.identity.identifier`) keeps it in step with the store; the cores only read
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edge.types.evidence import Vector
from edge.types.records import EntityKind, Modality, NameSource

# Decide on the mean of the three best matches of a gallery: the maximum merges more (measured on 190 shuffled tracks
# of 43 people).
TOP_SLOTS = 3

GalleryKey = tuple[Modality, str]  # sense, embedder: vectors of different embedders are never compared


def unit(vector: NDArray[np.float32]) -> Vector | None:
    """The vector at length 1, or None when it is empty, zero or not finite: such a vector is no evidence."""
    if vector.ndim != 1 or vector.size == 0 or not np.isfinite(vector).all():
        return None
    length = float(np.linalg.norm(vector))
    if length < 1e-6:
        return None
    return (vector / length).astype(np.float32)


def mean_unit(vectors: Iterable[Vector]) -> Vector:
    """The normalised mean of unit vectors.

    Raises:
        ValueError: they cancel out or there are none.
    """
    stacked = np.stack(list(vectors)) if not isinstance(vectors, np.ndarray) else vectors
    mean = unit(stacked.mean(axis=0))
    if mean is None:
        raise ValueError("vectors that cancel out have no mean")
    return mean


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One slot of a gallery."""

    slot: int  # its number within the entity, from 0
    embedding: Vector
    quality: float
    count: int  # sightings in it


@dataclass(frozen=True, slots=True, eq=False)
class Gallery:
    """All slots of one sense and one embedder, laid out for one matrix product."""

    owners: NDArray[np.int64]  # (e,) entity ids, rising
    vectors: NDArray[np.float32]  # (e, s, d), zero where `filled` is not
    filled: NDArray[np.bool_]  # (e, s)
    slots: Mapping[int, tuple[Slot, ...]]  # by entity

    @staticmethod
    def build(slots: Mapping[int, Iterable[Slot]]) -> Gallery:
        """Lay out slots by entity.

        Slots of another length than the first are left out (a damaged row must not stop all).
        """
        kept: dict[int, tuple[Slot, ...]] = {}
        width = 0
        for owner in sorted(slots):
            usable = []
            for slot in sorted(slots[owner], key=lambda item: item.slot):
                width = width or slot.embedding.size
                if slot.embedding.size == width and unit(slot.embedding) is not None:
                    usable.append(slot)
            if usable:
                kept[owner] = tuple(usable)
        depth = max((len(items) for items in kept.values()), default=0)
        vectors = np.zeros((len(kept), depth, width), np.float32)
        filled = np.zeros((len(kept), depth), np.bool_)
        for row, items in enumerate(kept.values()):
            vectors[row, : len(items)] = np.stack([item.embedding for item in items])
            filled[row, : len(items)] = True
        return Gallery(np.fromiter(kept, np.int64, len(kept)), vectors, filled, kept)

    def scores(self, vector: Vector) -> NDArray[np.float32]:
        """Cosine of a unit vector (d,) to every entity (e,): the mean over its `TOP_SLOTS` best slots."""
        if not len(self.owners) or self.vectors.shape[2] != vector.size:
            return np.zeros(0, np.float32) if not len(self.owners) else np.full(len(self.owners), -1.0, np.float32)
        rows, depth, width = self.vectors.shape
        cosines = (self.vectors.reshape(rows * depth, width) @ vector).reshape(rows, depth)
        return top_mean(cosines, self.filled)

    def ranked(self, vector: Vector) -> list[tuple[int, float]]:
        """Entities with their score, best first; equal scores in the order of their ids."""
        scores = self.scores(vector)
        order = np.lexsort((self.owners, -scores))
        return [(int(self.owners[row]), float(scores[row])) for row in order]


def top_mean(cosines: NDArray[np.float32], filled: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The mean of the `TOP_SLOTS` largest filled entries of each row: (e, s), (e, s) -> (e,)."""
    best = -np.sort(np.where(filled, -cosines, np.inf), axis=1)[:, :TOP_SLOTS]
    present = np.isfinite(best)
    total: NDArray[np.float32] = np.where(present, best, 0.0).sum(axis=1, dtype=np.float32)
    means: NDArray[np.float32] = total / np.maximum(present.sum(axis=1), 1).astype(np.float32)
    return means


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """What the resolver needs to know about an entity."""

    id: int
    kind: EntityKind
    name: str | None
    name_source: NameSource
    last_seen: float  # UTC POSIX seconds


@dataclass(frozen=True, slots=True)
class Presence:
    """Where an entity was seen."""

    entity: int
    camera: str
    start: float  # UTC POSIX seconds
    end: float


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """Evidence of an earlier segment that has not become anybody yet."""

    id: int  # of the pending row
    modality: Modality
    embedder: str
    embedding: Vector
    at: float  # UTC POSIX seconds
    expires: float
    entity: int | None = None  # whose it would be: a voice that was seen to be theirs once


@dataclass(frozen=True, slots=True)
class HeardName:
    """A name that was claimed for an entity before."""

    entity: int
    name: str
    source: NameSource


@dataclass(frozen=True, slots=True, eq=False)
class GalleryState:
    """All that the past contributes to one decision."""

    entities: Mapping[int, KnownEntity] = field(default_factory=dict)
    galleries: Mapping[GalleryKey, Gallery] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    elsewhere: tuple[Presence, ...] = ()  # sightings by other cameras that touch the segment's time
    heard: tuple[HeardName, ...] = ()
