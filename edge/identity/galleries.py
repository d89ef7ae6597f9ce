"""How galleries learn: slots, moving averages, and the guard that keeps two people's galleries apart.

Invariants:

* an entity never takes a new slot beyond the allowed number;
* every slot is a unit vector;
* nothing is learned that is as near to another entity as the doubtful band (`limit`), or nearer to another than to
  its own, so galleries cannot creep into each other; the first slot of a new entity is the one exception, as it
  decides nothing yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from edge.identity.state import Gallery, GalleryKey, GalleryState, Slot, mean_unit, slots_score, unit
from edge.types.drafts import EntityKey, GalleryWrite
from edge.types.evidence import Vector
from edge.types.media import Image

# A sighting this close to a slot is the same view of the person: it refreshes the slot instead of taking a new one.
SAME_VIEW = 0.85


@dataclass(slots=True, eq=False)
class _Draft:
    slots: dict[int, Slot]  # by number
    touched: dict[int, tuple[str, Image | None]]  # slot number -> anchor, crop


class GalleryEditor:
    """The galleries of one segment's entities while its decisions are made.

    Starts from the state, collects the writes.
    """

    def __init__(self, state: GalleryState) -> None:
        self._state = state
        self._drafts: dict[tuple[GalleryKey, EntityKey], _Draft] = {}

    def score(self, key: GalleryKey, entity: EntityKey, vector: Vector) -> float | None:
        """Cosine of a vector to an entity's gallery before this segment, or None when it had none."""
        gallery = self._state.galleries.get(key)
        return gallery.score(entity, vector) if gallery is not None and entity in gallery.slots else None

    def nearest_other(
        self, key: GalleryKey, entity: EntityKey, vector: Vector, aside: Collection[EntityKey] = ()
    ) -> float:
        """The best score of a vector among all other entities but those `aside`, -1 when there is none."""
        best = -1.0
        gallery = self._state.galleries.get(key)
        edited = {owner for where, owner in self._drafts if where == key}
        if gallery is not None:
            best = _best_outside(gallery, vector, edited | {entity} | set(aside))
        for owner in edited - {entity} - set(aside):
            slots = self._drafts[key, owner].slots
            if slots:
                best = max(best, slots_score(slots.values(), vector))
        return best

    def learn(
        self,
        key: GalleryKey,
        entity: EntityKey,
        vector: Vector,
        *,
        quality: float,
        anchor: str,
        slots: int,
        ema: float,
        limit: float,
        crop: Image | None = None,
        aside: Collection[EntityKey] = (),
    ) -> str:
        """Take a sighting into an entity's gallery.

        Args:
            key: sense and embedder.
            entity: whose gallery.
            vector: unit vector (d,).
            quality: larger is better.
            anchor: the track or voice that it comes from.
            slots: how many slots an entity may have.
            ema: weight of a new sighting in a slot that it refreshes.
            limit: cosine to another entity at which a sighting is too near to be learned.
            crop: a picture of it.
            aside: entities that may be the same one, so that nearness to them does not count.

        Returns:
            What was done, for the decision's evidence: `new slot`, `refreshed`, `replaced`, or `refused: …`.
        """
        draft = self._draft(key, entity)
        if not draft.slots:
            draft.slots[0] = Slot(0, vector, quality, 1)
            draft.touched[0] = (anchor, crop)
            return "new slot"
        old = max(draft.slots.values(), key=lambda item: (float(item.embedding @ vector), -item.slot))
        if float(old.embedding @ vector) >= SAME_VIEW:
            blended = mean_unit(np.stack([old.embedding * (1 - ema), vector * ema]))
            changed = Slot(old.slot, blended, max(old.quality, quality), old.count + 1)
            done = "refreshed"
            crop = crop if quality > old.quality else None
        elif len(draft.slots) < slots:
            free = next(number for number in range(slots) if number not in draft.slots)
            changed = Slot(free, vector, quality, 1)
            done = "new slot"
        else:
            worst = min(draft.slots.values(), key=lambda item: (item.quality, -item.slot))
            if quality <= worst.quality:
                return "refused: the gallery is full of better pictures"
            changed = Slot(worst.slot, vector, quality, 1)
            done = "replaced"
        other = self.nearest_other(key, entity, changed.embedding, aside)
        if other >= limit or other >= slots_score(draft.slots.values(), changed.embedding):
            return f"refused: too near to somebody else ({other:.2f})"
        draft.slots[changed.slot] = changed
        earlier = draft.touched.get(changed.slot)
        if crop is None and earlier is not None:
            crop = earlier[1]
        draft.touched[changed.slot] = (anchor, crop)
        return done

    def learn_body(
        self, key: GalleryKey, entity: EntityKey, vector: Vector, *, quality: float, anchor: str, ema: float
    ) -> None:
        """Keep how an entity looks now, in one slot.

        Clothes change, so the past is not kept. Callers know them by the face.
        """
        draft = self._draft(key, entity)
        old = draft.slots.get(0)
        if old is not None and float(old.embedding @ vector) >= SAME_VIEW:
            vector = mean_unit(np.stack([old.embedding * (1 - ema), vector * ema]))
            draft.slots[0] = Slot(0, vector, max(old.quality, quality), old.count + 1)
        else:
            draft.slots[0] = Slot(0, vector, quality, 1)
        draft.touched[0] = (anchor, None)

    def writes(self) -> tuple[GalleryWrite, ...]:
        """The slots that changed, in a fixed order."""
        found = []
        for (key, entity), draft in self._drafts.items():
            modality, embedder = key
            for number, (anchor, crop) in draft.touched.items():
                slot = draft.slots[number]
                found.append(
                    GalleryWrite(
                        entity, modality, number, embedder, slot.embedding, slot.quality, slot.count, anchor, crop
                    )
                )
        return tuple(
            sorted(found, key=lambda item: (item.entity < 0, abs(item.entity), item.modality, item.embedder, item.slot))
        )

    def _draft(self, key: GalleryKey, entity: EntityKey) -> _Draft:
        if (key, entity) not in self._drafts:
            gallery = self._state.galleries.get(key)
            slots = gallery.slots.get(entity, {}) if gallery is not None else {}
            self._drafts[key, entity] = _Draft(dict(slots), {})
        return self._drafts[key, entity]


def _best_outside(gallery: Gallery, vector: Vector, left_out: set[int]) -> float:
    scores = gallery.scores(vector)
    for owner in left_out:
        row = int(np.searchsorted(gallery.owners, owner))
        if row < gallery.owners.size and gallery.owners[row] == owner:
            scores[row] = -1.0
    return float(scores.max()) if scores.size else -1.0


def usable(vector: Vector | None) -> Vector | None:
    """A unit vector, or None for one that is no evidence."""
    return None if vector is None else unit(vector)
