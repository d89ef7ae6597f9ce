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
TOLD_APART = 2.0  # times the usual margin between two who were mistaken for each other (a choice: doubt never merges)
RANKED = 32  # candidates that are looked at; the rest cannot matter to a decision between the best

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
    vectors: NDArray[np.float32]  # (e, s, d), zero where `filled` is not; the second axis is the number of the slot
    filled: NDArray[np.bool_]  # (e, s)
    slots: Mapping[int, Mapping[int, Slot]]  # by entity and number

    @staticmethod
    def build(slots: Mapping[int, Iterable[Slot]]) -> Gallery:
        """Lay out slots by entity; what is no vector, or has another length than the first, is left out."""
        table = GalleryTable()
        for owner in sorted(slots):
            for slot in slots[owner]:
                table.put(owner, slot)
        return table.view()

    def scores(self, vector: Vector) -> NDArray[np.float32]:
        """Cosine of a unit vector (d,) to every entity (e,): the mean over its `TOP_SLOTS` best slots."""
        rows, depth, width = self.vectors.shape
        if width != vector.size:
            return np.full(rows, -1.0, np.float32)
        cosines = (self.vectors.reshape(rows * depth, width) @ vector).reshape(rows, depth)
        return top_mean(cosines, self.filled)

    def score(self, entity: int, vector: Vector) -> float:
        """The score of one entity, -1 if it has no slot."""
        slots = self.slots.get(entity)
        return slots_score(slots.values(), vector) if slots else -1.0

    def ranked(self, vector: Vector) -> list[tuple[int, float]]:
        """The best entities with their score, best first, at most `RANKED`; equal scores in the order of their ids."""
        scores = self.scores(vector)
        rows = np.arange(scores.size)
        if scores.size > RANKED:
            rows = np.sort(np.argpartition(-scores, RANKED)[:RANKED])
        order = rows[np.lexsort((self.owners[rows], -scores[rows]))]
        return [(int(self.owners[row]), float(scores[row])) for row in order]


class GalleryTable:
    """A gallery that grows in place, so that following a commit costs what the commit wrote and not what is known."""

    def __init__(self) -> None:
        self._count = 0
        self._owners = np.zeros(0, np.int64)  # room for more than `_count`
        self._vectors = np.zeros((0, 0, 0), np.float32)
        self._filled = np.zeros((0, 0), np.bool_)
        self._slots: dict[int, dict[int, Slot]] = {}

    def put(self, owner: int, slot: Slot) -> None:
        """Write or replace one slot; what is no vector, or has another length than the first, is left out."""
        width = self._vectors.shape[2] or slot.embedding.size
        if slot.embedding.size != width or unit(slot.embedding) is None:
            return
        self._make_room(slot.slot + 1, width)
        row = int(np.searchsorted(self._owners[: self._count], owner))
        if owner not in self._slots:
            self._open_row(row, owner)
        self._vectors[row, slot.slot] = slot.embedding
        self._filled[row, slot.slot] = True
        self._slots[owner][slot.slot] = slot

    def view(self) -> Gallery:
        """The gallery as it is now; it holds until the next `put`."""
        count = self._count
        return Gallery(self._owners[:count], self._vectors[:count], self._filled[:count], self._slots)

    def _make_room(self, depth: int, width: int) -> None:
        rows, deep, wide = self._vectors.shape
        more = max(8, self._count) if self._count == rows else 0
        deeper = max(0, depth - deep)
        if more or deeper or width != wide:
            self._owners = np.pad(self._owners, (0, more))
            self._vectors = np.pad(self._vectors, ((0, more), (0, deeper), (0, width - wide)))
            self._filled = np.pad(self._filled, ((0, more), (0, deeper)))

    def _open_row(self, row: int, owner: int) -> None:
        """Make an empty row for an entity; an older one that has its first slot later moves the younger ones on."""
        count = self._count
        for array in (self._owners, self._vectors, self._filled):
            array[row + 1 : count + 1] = array[row:count].copy()
            array[row] = 0
        self._owners[row] = owner
        self._slots[owner] = {}
        self._count += 1


def slots_score(slots: Iterable[Slot], vector: Vector) -> float:
    """The mean over the `TOP_SLOTS` best of some slots; the same to the bit in whatever order they come."""
    cosines = np.stack([item.embedding for item in sorted(slots, key=lambda item: item.slot)]) @ vector
    return float(top_mean(cosines[None, :], np.ones((1, cosines.size), np.bool_))[0])


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
    apart: frozenset[tuple[int, int]] = frozenset()  # pairs that the owner told apart, the smaller id first
    agreed: frozenset[int] = frozenset()  # people without a name whom the owner agreed to keep

    def told_apart(self, one: int, other: int) -> bool:
        """Whether the owner said that these two, whom evidence had taken for one, are not one."""
        return (min(one, other), max(one, other)) in self.apart

    def margin(self, one: int, other: int, usual: float) -> float:
        """By how much one must match better than the other: twice as much if they were mistaken for each other once."""
        return TOLD_APART * usual if self.told_apart(one, other) else usual
