"""How galleries learn: slots, moving averages, and the guard that keeps two people's galleries apart.

Invariants:

* an entity never takes a new slot beyond the allowed number;
* every slot is a unit vector;
* nothing is learned that is as near to another entity as the doubtful band (`limit`), or nearer to another than to
  its own, so galleries cannot creep into each other; the first slot of a new entity is the one exception, as it
  decides nothing yet;
* what is offered is kept whether it is learned or not, and galleries are a fold of what was offered, segment by segment
  (`GalleryFold`): made again from that, they are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from edge.identity.state import Gallery, GalleryKey, GalleryState, GalleryTable, Slot, mean_unit, slots_score, unit
from edge.types.drafts import DerivedSlot, EntityKey, GalleryWrite, SampleDraft
from edge.types.evidence import Vector
from edge.types.media import Image
from edge.types.records import EntityKind, Modality

# A sighting this close to a slot is the same view of the person: it refreshes the slot instead of taking a new one.
SAME_VIEW = 0.85
_ROUNDING = 1e-4  # more than the cosines of one matrix product differ from those of another shape


@dataclass(slots=True, eq=False)
class _Draft:
    slots: dict[int, Slot]  # by number
    touched: dict[int, _Touched]  # by number of the slot


@dataclass(slots=True, eq=False)
class _Touched:
    """What a slot has from this segment; samples by their place among those offered."""

    samples: list[int] = field(default_factory=list)
    begun: bool = False  # nothing from before is in it
    pictured: int | None = None  # whose picture it shows; None: the one from before


class GalleryEditor:
    """The galleries of one segment's entities while its decisions are made.

    Starts from the state, collects what is offered and the writes that come of it.
    """

    def __init__(self, state: GalleryState, voices: Collection[EntityKey] | None = None) -> None:
        """Start from what is known.

        Args:
            state: galleries and entities.
            voices: those that are only heard; None: as the state has them.
        """
        self._state = state
        known = state.entities.items()
        heard = voices if voices is not None else [who for who, one in known if one.kind is EntityKind.VOICE]
        self._voices: set[EntityKey] = set(heard)
        self._drafts: dict[tuple[GalleryKey, EntityKey], _Draft] = {}
        self._samples: list[SampleDraft] = []

    def created(self, entity: EntityKey, kind: EntityKind) -> None:
        """Note somebody new before they learn anything."""
        if kind is EntityKind.VOICE:
            self._voices.add(entity)

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

    def learn(self, sample: SampleDraft) -> str:
        """Take a sighting into an entity's gallery, or refuse it; it is kept as a sample either way.

        Args:
            sample: with the rule by which it is learned.

        Returns:
            What was done, for the decision's evidence: `new slot`, `refreshed`, `replaced`, or `refused: …`.
        """
        place = len(self._samples)
        self._samples.append(sample)
        if sample.modality is Modality.BODY:
            return self._learn_body(sample, place)
        key, entity, vector = (sample.modality, sample.embedder), sample.entity, sample.embedding
        draft = self._draft(key, entity)
        if not draft.slots:
            return self._put(draft, Slot(0, vector, sample.quality, 1), place, "new slot", sample.crop is not None)
        old = max(draft.slots.values(), key=lambda item: (float(item.embedding @ vector), -item.slot))
        pictured = sample.crop is not None
        if float(old.embedding @ vector) >= SAME_VIEW:
            blended = mean_unit(np.stack([old.embedding * (1 - sample.ema), vector * sample.ema]))
            changed = Slot(old.slot, blended, max(old.quality, sample.quality), old.count + 1)
            done = "refreshed"
            pictured = pictured and sample.quality > old.quality
        elif len(draft.slots) < sample.slots:
            free = next(number for number in range(sample.slots) if number not in draft.slots)
            changed = Slot(free, vector, sample.quality, 1)
            done = "new slot"
        else:
            worst = min(draft.slots.values(), key=lambda item: (item.quality, -item.slot))
            if sample.quality <= worst.quality:
                return "refused: the gallery is full of better pictures"
            changed = Slot(worst.slot, vector, sample.quality, 1)
            done = "replaced"
        # A voice that was kept before its owner was met must not keep the owner from having it.
        aside = self._voices if sample.modality is Modality.VOICE and entity not in self._voices else ()
        other = self.nearest_other(key, entity, changed.embedding, aside)
        if other >= sample.limit or other >= slots_score(draft.slots.values(), changed.embedding):
            return f"refused: too near to somebody else ({other:.2f})"
        return self._put(draft, changed, place, done, pictured)

    def _learn_body(self, sample: SampleDraft, place: int) -> str:
        """Keep how an entity looks now, in one slot.

        Clothes change, so the past is not kept. Callers know them by the face.
        """
        draft = self._draft((sample.modality, sample.embedder), sample.entity)
        vector, old = sample.embedding, draft.slots.get(0)
        if old is None or float(old.embedding @ vector) < SAME_VIEW:
            return self._put(draft, Slot(0, vector, sample.quality, 1), place, "new slot", False)
        vector = mean_unit(np.stack([old.embedding * (1 - sample.ema), vector * sample.ema]))
        changed = Slot(0, vector, max(old.quality, sample.quality), old.count + 1)
        return self._put(draft, changed, place, "refreshed", False)

    def samples(self) -> tuple[SampleDraft, ...]:
        """All that was offered, in order."""
        return tuple(self._samples)

    def writes(self) -> tuple[GalleryWrite, ...]:
        """The slots that changed, in a fixed order."""
        found = []
        for (key, entity), draft in self._drafts.items():
            modality, embedder = key
            for number, touched in draft.touched.items():
                slot = draft.slots[number]
                crop: Image | None = None if touched.pictured is None else self._samples[touched.pictured].crop
                found.append(
                    GalleryWrite(
                        entity,
                        modality,
                        number,
                        embedder,
                        slot.embedding,
                        slot.quality,
                        slot.count,
                        self._samples[touched.samples[-1]].anchor,
                        crop,
                        samples=tuple(touched.samples),
                        pictured=touched.pictured,
                        begun=touched.begun,
                    )
                )
        return tuple(
            sorted(found, key=lambda item: (item.entity < 0, abs(item.entity), item.modality, item.embedder, item.slot))
        )

    def _put(self, draft: _Draft, slot: Slot, place: int, done: str, pictured: bool) -> str:
        draft.slots[slot.slot] = slot
        touched = draft.touched.setdefault(slot.slot, _Touched())
        if slot.count == 1:
            touched.samples, touched.begun = [], True
        touched.samples.append(place)
        if pictured:
            touched.pictured = place
        return done

    def _draft(self, key: GalleryKey, entity: EntityKey) -> _Draft:
        if (key, entity) not in self._drafts:
            gallery = self._state.galleries.get(key)
            slots = gallery.slots.get(entity, {}) if gallery is not None else {}
            self._drafts[key, entity] = _Draft(dict(slots), {})
        return self._drafts[key, entity]


class GalleryFold:
    """Makes galleries again from all that was ever offered, segment by segment, as live decisions made them."""

    def __init__(self, voices: Collection[int]) -> None:
        """Start with nothing.

        Args:
            voices: the entities that are only heard.
        """
        self._voices = frozenset(voices)
        self._tables: dict[GalleryKey, GalleryTable] = {}
        self._slots: dict[tuple[GalleryKey, int, int], DerivedSlot] = {}

    def add(self, segment: Iterable[tuple[int, SampleDraft]]) -> None:
        """Learn from one segment.

        Args:
            segment: (number, sample) in the order in which they were offered; all of one trace.
        """
        numbered = list(segment)
        views = {key: table.view() for key, table in self._tables.items()}
        editor = GalleryEditor(GalleryState(galleries=views), self._voices)
        for _, sample in numbered:
            editor.learn(sample)
        for write in editor.writes():
            key = (write.modality, write.embedder)
            slot = Slot(write.slot, write.embedding, write.quality, write.count)
            self._tables.setdefault(key, GalleryTable()).put(write.entity, slot)
            before = self._slots.get((key, write.entity, write.slot))
            samples = tuple(numbered[place][0] for place in write.samples)
            pictured = None if write.pictured is None else numbered[write.pictured][0]
            if before is not None:
                samples = samples if write.begun else (*before.samples, *samples)
                pictured = before.pictured if pictured is None else pictured
            self._slots[key, write.entity, write.slot] = DerivedSlot(
                entity=write.entity,
                modality=write.modality,
                embedder=write.embedder,
                slot=slot.slot,
                embedding=slot.embedding,
                quality=slot.quality,
                count=slot.count,
                samples=samples,
                pictured=pictured,
            )

    def slots(self) -> list[DerivedSlot]:
        """All slots, in a fixed order."""
        return [self._slots[key] for key in sorted(self._slots)]


def _best_outside(gallery: Gallery, vector: Vector, left_out: set[int]) -> float:
    scores = gallery.scores(vector)
    for owner in left_out:
        row = int(np.searchsorted(gallery.owners, owner))
        if row < gallery.owners.size and gallery.owners[row] == owner:
            scores[row] = -1.0
    if not scores.size or scores.max() <= -1.0:
        return -1.0
    # The last digits of a product depend on its shape; those of the nearest are taken one by one, so that what is
    # learned does not depend on how many others there are.
    near = np.flatnonzero(scores >= scores.max() - _ROUNDING)
    return max(slots_score(gallery.slots[int(gallery.owners[row])].values(), vector) for row in near)


def usable(vector: Vector | None) -> Vector | None:
    """A unit vector, or None for one that is no evidence."""
    return None if vector is None else unit(vector)
