"""The last steps of a segment: evidence → who it is → words → one commit."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from edge.app.compose import compose, skipped
from edge.identity import Identifier
from edge.infer import TextEmbedder, release_memory
from edge.memory import Store, search_units, trace_vector
from edge.perceive import describe
from edge.types.drafts import CommitDraft, Committed
from edge.types.evidence import SegmentEvidence, Vector
from edge.types.media import Mode, Segment, SourceInfo

_WHO_S = 0.02  # the live view waits for a name no longer than this, s


@dataclass(frozen=True, slots=True)
class Remembered:
    """A segment that is durable."""

    draft: CommitDraft
    committed: Committed


class Rememberer:
    """Decides and commits, one segment at a time, whatever camera it is from. Thread-safe."""

    def __init__(self, store: Store, identifier: Identifier, embedder: TextEmbedder | None) -> None:
        self._store = store
        self._identifier = identifier
        self._embedder = embedder
        self._turn = threading.Lock()  # who is decided about sees all that was decided before

    def skip(self, segment: Segment, info: SourceInfo) -> None:
        """Note that a static and silent segment was seen."""
        self._store.commit(skipped(segment, info))

    def remember(self, segment: Segment, info: SourceInfo, evidence: SegmentEvidence, mode: Mode) -> Remembered:
        """Decide, describe and commit.

        Raises:
            StoreError: the memory cannot be read or written; nothing of the segment is kept.
        """
        with self._turn:
            resolution = self._identifier.resolve(evidence, dated=info.dated)
            description = describe(evidence, resolution.names_for(evidence))
            draft = self._with_vectors(compose(segment, info, evidence, resolution, description, mode))
            committed = self._store.commit(draft)
            self._identifier.committed(resolution, committed)
        # What a segment freed goes back to the system, so that months of them need no more than the first.
        release_memory()
        return Remembered(draft, committed)

    def who(self, face: Vector, embedder: str) -> str | None:
        """What a face in view is called, for the live view; None: unknown, or somebody is being decided about just now.

        Raises:
            StoreError: the memory cannot be read.
        """
        if not self._turn.acquire(timeout=_WHO_S):
            return None
        try:
            entity = self._identifier.recognise(face, embedder)
        finally:
            self._turn.release()
        return None if entity is None else self._store.titles([entity]).get(entity)

    def _with_vectors(self, draft: CommitDraft) -> CommitDraft:
        if self._embedder is None or draft.trace is None:
            return draft
        titles = self._store.titles()
        texts = search_units(draft, lambda key: titles.get(key, "someone"))
        if not texts.units:
            return draft
        vectors = self._embedder.embed(texts.units)
        return replace(draft, vector=trace_vector(vectors), line_vectors=tuple(vectors), embedder=self._embedder.key)
