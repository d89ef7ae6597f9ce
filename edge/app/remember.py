"""The last steps of a segment: evidence → who it is → words → one commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from edge.app.compose import compose, skipped
from edge.clock import monotonic
from edge.errors import StaleError
from edge.identity import Identifier
from edge.infer import TextEmbedder, release_memory
from edge.memory import Store, read_units, search_units, trace_vector
from edge.perceive import describe
from edge.types.drafts import CommitDraft, Committed
from edge.types.evidence import SegmentEvidence, Vector
from edge.types.media import Mode, Segment, SourceInfo

_LEFT_OUT_S: Final = 900.0  # what was on the way when something was forgotten has arrived by then, s
_WHO_S = 0.02  # the live view waits for a name no longer than this, s


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Segments that are on the way and are not to be remembered, because their time was forgotten."""

    since: float  # UTC POSIX seconds; all that touch the span
    until: float
    camera: str | None = None  # None: of all

    def has(self, segment: Segment) -> bool:
        """Whether a segment is one."""
        there = segment.start < self.until and segment.end > self.since
        return there and self.camera in (None, segment.camera)


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
        self._left_out: list[tuple[LeftOut, float]] = []  # with the monotonic seconds of forgetting

    def skip(self, segment: Segment, info: SourceInfo) -> None:
        """Note that a static and silent segment was seen."""
        self._store.commit(skipped(segment, info))

    def remember(self, segment: Segment, info: SourceInfo, evidence: SegmentEvidence, mode: Mode) -> Remembered:
        """Decide, describe and commit.

        Raises:
            StoreError: the memory cannot be read or written; nothing of the segment is kept.
        """
        with self._turn:
            if self._is_left_out(segment):
                draft = skipped(segment, info)
                return Remembered(draft, self._store.commit(draft))
            try:
                draft, committed = self._commit(segment, info, evidence, mode)
            except StaleError:  # who is in it was forgotten by another process in between
                draft, committed = self._commit(segment, info, evidence, mode)
        # What a segment freed goes back to the system, so that months of them need no more than the first.
        release_memory()
        return Remembered(draft, committed)

    def _commit(
        self, segment: Segment, info: SourceInfo, evidence: SegmentEvidence, mode: Mode
    ) -> tuple[CommitDraft, Committed]:
        resolution = self._identifier.resolve(evidence, dated=info.dated)
        description = describe(evidence, resolution.names_for(evidence))
        draft = self._with_vectors(compose(segment, info, evidence, resolution, description, mode))
        committed = self._store.commit(draft)
        self._identifier.committed(resolution, committed)
        return draft, committed

    @contextmanager
    def leaving_out(self, what: LeftOut | None) -> Iterator[None]:
        """Hold up what is to be remembered while something is forgotten, and leave out of it what belongs to that.

        Args:
            what: None: nothing but what is remembered already. Nothing is left out if the forgetting fails.
        """
        with self._turn:
            yield
            if what is not None:
                self._left_out.append((what, monotonic()))

    def _is_left_out(self, segment: Segment) -> bool:
        self._left_out = [one for one in self._left_out if monotonic() - one[1] < _LEFT_OUT_S]
        return any(what.has(segment) for what, _ in self._left_out)

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
        vectors, words = read_units(self._embedder, texts.units)
        return replace(
            draft,
            vector=trace_vector(vectors),
            line_vectors=tuple(vectors),
            word_signs=b"".join(words),
            embedder=self._embedder.key,
        )
