"""The resolver's shell: keeps the galleries in RAM, in step with the store, and asks the pure core.

Matching never waits for the database: a segment costs one matrix product over the galleries and reads that an index
bounds (evidence that still waits, who else is seen at this time). The galleries are read again only when somebody else
changed the memory.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from edge.identity.corrections import rebuild_galleries
from edge.identity.names import names_in
from edge.identity.resolution import Resolution
from edge.identity.resolver import resolve
from edge.identity.state import (
    GalleryKey,
    GalleryState,
    GalleryTable,
    HeardName,
    KnownEntity,
    Presence,
    Slot,
    Waiting,
)
from edge.memory import Store
from edge.settings import IdentitySettings
from edge.types.drafts import Committed
from edge.types.evidence import SegmentEvidence, Vector
from edge.types.records import EntityRecord, Modality, NameSource, PendingRecord


class Identifier:
    """Decides who is seen and heard, segment by segment. For one thread."""

    def __init__(self, store: Store, settings: IdentitySettings, *, user: str) -> None:
        self._store = store
        self._settings = settings
        self._user = user
        self._version: int | None = None
        self._as_of: int | None = None
        self._apart: frozenset[tuple[int, int]] = frozenset()
        self._agreed: frozenset[int] = frozenset()
        self._entities: dict[int, KnownEntity] = {}
        self._galleries: dict[GalleryKey, GalleryTable] = {}
        self._heard: dict[int, tuple[HeardName, ...]] = {}
        self._owners: dict[int, int | None] = {}  # pending row -> entity that it would belong to

    def resolve(self, evidence: SegmentEvidence, *, dated: bool = True) -> Resolution:
        """Decide about a segment; nothing changes until `committed` is called.

        Args:
            evidence: of the segment.
            dated: its time is known (`SourceInfo.dated`). If not, that someone is seen by another camera at the same time
                contradicts nothing.

        Raises:
            StoreError: the memory cannot be read.
        """
        if self._version is None or self._store.data_version() != self._version:
            self.refresh()
        return replace(resolve(evidence, self._state(evidence, dated=dated), self._settings), as_of=self._as_of)

    def recognise(self, face: Vector, embedder: str) -> int | None:
        """Who a face seems to be, by the rule of a match alone; nothing is decided by it.

        Args:
            face: unit vector (d,).
            embedder: key of the network that made it.

        Returns:
            The entity; None: nobody is near enough, or two are.

        Raises:
            StoreError: the memory cannot be read.
        """
        if self._version is None or self._store.data_version() != self._version:
            self.refresh()
        table = self._galleries.get((Modality.FACE, embedder))
        if table is None:
            return None
        gallery = table.view()
        scores = gallery.scores(face)
        order = np.argsort(-scores)[:2]
        if not len(order) or scores[order[0]] < self._settings.face_match:
            return None
        best = int(gallery.owners[order[0]])
        if len(order) > 1:
            need = GalleryState(apart=self._apart).margin(
                best, int(gallery.owners[order[1]]), self._settings.face_margin
            )
            if scores[order[0]] - scores[order[1]] < need:
                return None
        return best

    def committed(self, resolution: Resolution, committed: Committed) -> None:
        """Follow a critical commit that went through; call it once for each, in order."""
        if committed.trace is None:
            return

        def identity(key: int) -> int:
            return committed.entities[key] if key < 0 else key

        for new in resolution.entities:
            entity = identity(new.key)
            self._entities[entity] = KnownEntity(entity, new.kind, new.name, new.name_source, float("-inf"))
        for key, last in resolution.seen.items():
            known = self._entities[identity(key)]
            self._entities[known.id] = KnownEntity(
                known.id, known.kind, known.name, known.name_source, max(known.last_seen, last)
            )
        for write in resolution.gallery:
            table = self._galleries.setdefault((write.modality, write.embedder), GalleryTable())
            table.put(identity(write.entity), Slot(write.slot, write.embedding, write.quality, write.count))
        for claim in resolution.names:
            entity = identity(claim.entity)
            if entity in self._heard:
                self._heard[entity] = (*self._heard[entity], HeardName(entity, claim.name, claim.source))
            if claim.accepted:
                known = self._entities[entity]
                self._entities[entity] = KnownEntity(entity, known.kind, claim.name, claim.source, known.last_seen)
        for number in resolution.pending_used:
            self._owners.pop(number, None)

    def refresh(self) -> None:
        """Read everybody again: another process, or the user, changed who is known.

        Raises:
            StoreError: the memory cannot be read.
        """
        if self._store.galleries_due():
            rebuild_galleries(self._store)
        # Taken before reading, so that a change in between is seen by the next segment.
        self._version = self._store.data_version()
        self._as_of = self._store.corrections_made()
        self._apart = frozenset(self._store.told_apart())
        self._agreed = frozenset(self._store.agreed())
        self._entities = {record.id: _known(record) for record in self._store.entities()}
        self._galleries = {}
        for modality in Modality:
            for row in self._store.galleries(modality):
                table = self._galleries.setdefault((modality, row.embedder), GalleryTable())
                table.put(row.entity, Slot(row.slot, row.embedding, row.quality, row.count))
        self._heard = {}
        self._owners = {}

    def _state(self, evidence: SegmentEvidence, *, dated: bool) -> GalleryState:
        return GalleryState(
            entities=self._entities,
            galleries={key: table.view() for key, table in self._galleries.items()},
            waiting=tuple(self._waiting(row) for row in self._store.pending(evidence.end)),
            elsewhere=self._elsewhere(evidence) if dated else (),
            heard=self._names_heard(evidence),
            apart=self._apart,
            agreed=self._agreed,
        )

    def _waiting(self, row: PendingRecord) -> Waiting:
        if row.id not in self._owners:
            owner = None
            if row.modality is Modality.VOICE and row.observation is not None:
                seen = self._store.observations(trace=row.trace)
                owner = next((item.entity for item in seen if item.id == row.observation), None)
            self._owners[row.id] = owner
        return Waiting(row.id, row.modality, row.embedder, row.embedding, row.at, row.expires, self._owners[row.id])

    def _elsewhere(self, evidence: SegmentEvidence) -> tuple[Presence, ...]:
        return tuple(
            Presence(entity, camera, start, end)
            for entity, camera, start, end in self._store.people_between(evidence.start, evidence.end)
            if camera != evidence.camera
        )

    def _names_heard(self, evidence: SegmentEvidence) -> tuple[HeardName, ...]:
        """Earlier claims, read only when somebody is called by a name, and only for those who have none yet."""
        called = any(
            said.source is NameSource.ADDRESSED for words in evidence.utterances for said in names_in(words.text)
        )
        if not called:
            return ()
        found: list[HeardName] = []
        for known in self._entities.values():
            if known.name is None:
                if known.id not in self._heard:
                    claims = self._store.name_claims(known.id)
                    self._heard[known.id] = tuple(HeardName(known.id, claim.name, claim.source) for claim in claims)
                found += self._heard[known.id]
        return tuple(found)


def name_entity(store: Store, who: int, name: str) -> EntityRecord:
    """Call somebody by a name, on the user's authority: evidence never changes it again.

    Args:
        store: the memory, open for writing.
        who: id of the entity.
        name: at most 100 characters.

    Raises:
        NotFoundError: nobody has this id.
        UserError: the name is empty, too long, holds signs that cannot be shown, or reads like "person 3".
    """
    return store.set_name(who, name, NameSource.USER)


def _known(record: EntityRecord) -> KnownEntity:
    return KnownEntity(record.id, record.kind, record.name, record.name_source, record.last_seen)
