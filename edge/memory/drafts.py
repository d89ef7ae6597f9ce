"""Drafts: whether one agrees with itself, and the form of its parts in the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import orjson

from edge.types.drafts import CommitDraft, EntityKey, GalleryWrite
from edge.types.evidence import NormBox, Vector


def contradiction(draft: CommitDraft) -> str:
    """Why a draft cannot be written, as the end of a sentence; "" when it can."""
    trace = draft.trace
    if trace is None:
        if any(_contents(draft)):
            return "it says that nothing happened, and what happened"
        return "" if draft.progress is not None else "there is nothing in it"
    if not np.isfinite([trace.start, trace.end]).all() or trace.end < trace.start:
        return "it ends before it starts"
    new = [entity.key for entity in draft.entities]
    if any(key >= 0 for key in new) or len(set(new)) != len(new):
        return "the keys of its new entities are not negative and different"
    if missing := {key for key in entity_keys(draft) if key <= 0} - set(new):
        return f"it refers to a new entity {max(missing)} that it does not create"
    if any(not 0 <= claim.utterance < len(draft.utterances) for claim in draft.names):
        return "a name was heard in an utterance that is not there"
    if any(not 0 <= at < len(draft.samples) for slot in draft.gallery for at in _sources(slot)):
        return "a slot of a gallery holds a sample that is not there"
    if draft.vector is None and draft.line_vectors:
        return "its lines have vectors and itself has none"
    if not all(map(_usable, _vectors(draft))):
        return "one of its vectors is zero or not finite"
    return ""


def entity_keys(draft: CommitDraft) -> set[EntityKey]:
    """All entity keys of a draft, outside of texts."""
    found: set[EntityKey | None] = {seen.entity for seen in draft.observations}
    found |= {heard.speaker for heard in draft.utterances} | {decision.entity for decision in draft.decisions}
    found |= {sample.entity for sample in draft.samples}
    found |= {slot.entity for slot in draft.gallery} | {claim.entity for claim in draft.names}
    return {key for key in found if key is not None}


def to_json(value: object) -> str:
    """A value as the text of a JSON column; numbers of numpy are numbers."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()


def boxes_to_json(boxes: Iterable[tuple[float, NormBox]]) -> str:
    """Boxes to the millisecond and a ten-thousandth of the picture: a third of the size of all digits."""
    return to_json([[round(at, 3), [round(edge, 4) for edge in box]] for at, box in boxes])


def boxes_from_json(text: str) -> tuple[tuple[float, NormBox], ...]:
    """What `boxes_to_json` wrote."""
    return tuple((at, (x1, y1, x2, y2)) for at, (x1, y1, x2, y2) in orjson.loads(text))


def vector_to_blob(vector: Vector) -> bytes:
    """A vector as little-endian float32."""
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def vector_from_blob(blob: bytes) -> Vector:
    """What `vector_to_blob` wrote."""
    return np.frombuffer(blob, dtype="<f4").astype(np.float32)


def storable(text: str) -> str:
    """A text without halves of surrogate pairs, which UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _contents(draft: CommitDraft) -> Iterator[object]:
    yield from (draft.entities, draft.observations, draft.utterances, draft.decisions, draft.gallery, draft.samples)
    yield from (
        draft.pending,
        draft.pending_used,
        draft.names,
        draft.key_frames,
        draft.line_vectors,
        draft.vector is not None,
        draft.visual is not None,
    )


def _sources(slot: GalleryWrite) -> tuple[int, ...]:
    return slot.samples if slot.pictured is None else (*slot.samples, slot.pictured)


def _vectors(draft: CommitDraft) -> Iterator[Vector]:
    yield from (slot.embedding for slot in draft.gallery)
    yield from (sample.embedding for sample in draft.samples)
    yield from (kept.embedding for kept in draft.pending)
    yield from draft.line_vectors
    if draft.vector is not None:
        yield draft.vector
    if draft.visual is not None:
        yield draft.visual.embedding


def _usable(vector: Vector) -> bool:
    return vector.ndim == 1 and bool(np.isfinite(vector).all()) and bool(np.any(vector))
