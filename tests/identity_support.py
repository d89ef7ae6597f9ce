"""Synthetic evidence with known identities, for the tests of the resolver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from edge.identity import Gallery, GalleryState, KnownEntity, Resolution, Slot, Waiting
from edge.types.drafts import CommitDraft, ObservationDraft, TraceDraft, UtteranceDraft
from edge.types.evidence import (
    FaceEvidence,
    FaceShot,
    NormBox,
    SegmentEvidence,
    Track,
    Utterance,
    Vector,
    Voice,
)
from edge.types.media import Mode
from edge.types.records import EntityKind, Modality, NameSource

FACES = "faces@1"
VOICES = "voices@1"
BODIES = "bodies@1"
SIZE = 64
T0 = 1_735_894_800.0  # an arbitrary instant, UTC POSIX seconds


def direction(seed: int) -> Vector:
    """The ideal vector of an identity: those of different seeds are nearly orthogonal."""
    vector = np.random.default_rng(seed).normal(size=SIZE)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def near(centre: Vector, cosine: float, seed: int) -> Vector:
    """A unit vector at an exact cosine to another one."""
    noise = np.random.default_rng(1_000_000 + seed).normal(size=centre.size)
    noise -= (noise @ centre) * centre
    noise /= np.linalg.norm(noise)
    return (cosine * centre + np.sqrt(1 - cosine**2) * noise).astype(np.float32)


def between(one: Vector, other: Vector, first: float, second: float, seed: int = 0) -> Vector:
    """A unit vector with given cosines to two vectors."""
    basis = np.stack([one, other]).astype(np.float64)
    weights = np.linalg.solve(basis @ basis.T, np.array([first, second]))
    inside = weights @ basis
    noise = np.random.default_rng(2_000_000 + seed).normal(size=one.size)
    noise -= basis.T @ np.linalg.solve(basis @ basis.T, basis @ noise)
    noise /= np.linalg.norm(noise)
    return (inside + np.sqrt(max(0.0, 1 - inside @ inside)) * noise).astype(np.float32)


def face(
    vector: Vector | None, *, safe: bool = True, norm: float = 66.0, embedder: str = FACES, mouth: float = 0.0
) -> FaceEvidence:
    shot = FaceShot(
        at=T0,
        box=(10.0, 10.0, 90.0, 100.0),
        landmarks=np.zeros((5, 2), np.float32),
        score=0.99,
        width=80.0,
        sharpness=60.0,
        yaw=0.1,
        norm=norm,
        embedding=vector,
        crop=np.full((112, 112, 3), 128, np.uint8),
    )
    return FaceEvidence((shot,), vector, safe, "" if safe else "the face is too small", embedder, mouth)


def track(
    anchor: str,
    vector: Vector | None,
    start: float = 0.0,
    end: float = 5.0,
    *,
    x: float = 0.1,
    body: Vector | None = None,
    boxes: Sequence[tuple[float, NormBox]] | None = None,
    **quality: object,
) -> Track:
    """A person in view from `start` to `end`, s after T0."""
    at = [T0 + start, T0 + end]
    return Track(
        anchor=anchor,
        label="person",
        start=at[0],
        end=at[1],
        boxes=tuple(boxes) if boxes is not None else tuple((moment, (x, 0.1, x + 0.1, 0.9)) for moment in at),
        score=0.9,
        face=face(vector, **quality) if vector is not None else None,  # type: ignore[arg-type]
        body=body,
        body_embedder=BODIES if body is not None else "",
    )


def voice(
    anchor: str, vector: Vector | None, seconds: float = 3.0, *, on: str | None = None, safe: bool | None = None
) -> Voice:
    return Voice(anchor, seconds, vector, seconds >= 2.0 if safe is None else safe, VOICES, on)


def segment(
    tracks: Iterable[Track] = (),
    voices: Iterable[Voice] = (),
    said: Iterable[tuple[str, str | None]] = (),
    *,
    camera: str = "hall",
    start: float = 0.0,
    end: float = 10.0,
) -> SegmentEvidence:
    utterances = tuple(
        Utterance(T0 + start + index, T0 + start + index + 0.9, text, who) for index, (text, who) in enumerate(said)
    )
    return SegmentEvidence(camera, T0 + start, T0 + end, tuple(tracks), tuple(voices), utterances, ())


def known(
    faces: Mapping[int, Sequence[Vector]] | None = None,
    voices: Mapping[int, Sequence[Vector]] | None = None,
    bodies: Mapping[int, Sequence[Vector]] | None = None,
    *,
    voice_only: Iterable[int] = (),
    names: Mapping[int, tuple[str, NameSource]] | None = None,
    waiting: Iterable[Waiting] = (),
    **rest: object,
) -> GalleryState:
    """A state with the given galleries."""
    galleries = {}
    everybody: set[int] = set(voice_only)
    for modality, embedder, vectors in (
        (Modality.FACE, FACES, faces),
        (Modality.VOICE, VOICES, voices),
        (Modality.BODY, BODIES, bodies),
    ):
        if vectors:
            everybody |= set(vectors)
            galleries[modality, embedder] = Gallery.build(
                {who: [Slot(i, v, 50.0, 1) for i, v in enumerate(items)] for who, items in vectors.items()}
            )
    entities = {}
    for who in everybody:
        name, source = (names or {}).get(who, (None, NameSource.NONE))
        kind = EntityKind.VOICE if who in set(voice_only) else EntityKind.PERSON
        entities[who] = KnownEntity(who, kind, name, source, T0 - 10.0)
    return GalleryState(entities, galleries, tuple(waiting), **rest)  # type: ignore[arg-type]


def waits(
    number: int,
    vector: Vector,
    modality: Modality = Modality.FACE,
    *,
    entity: int | None = None,
    embedder: str | None = None,
) -> Waiting:
    name = embedder or (FACES if modality is Modality.FACE else VOICES)
    return Waiting(number, modality, name, vector, T0 - 60.0, T0 + 86_400.0, entity)


class Memory:
    """Follows resolutions like the store does, in plain dictionaries."""

    def __init__(self) -> None:
        self.slots: dict[tuple[Modality, str], dict[int, dict[int, Slot]]] = {}
        self.entities: dict[int, KnownEntity] = {}
        self.waiting: dict[int, Waiting] = {}
        self._next = 1
        self._rows = 1

    def state(self) -> GalleryState:
        galleries = {
            key: Gallery.build({who: s.values() for who, s in owners.items()}) for key, owners in self.slots.items()
        }
        return GalleryState(dict(self.entities), galleries, tuple(self.waiting.values()))

    def commit(self, evidence: SegmentEvidence, resolution: Resolution) -> dict[str, int | None]:
        ids: dict[int, int] = {}
        for new in resolution.entities:
            ids[new.key] = self._next
            self.entities[self._next] = KnownEntity(self._next, new.kind, None, NameSource.NONE, evidence.end)
            self._next += 1
        for write in resolution.gallery:
            owner = ids.get(write.entity, write.entity)
            owners = self.slots.setdefault((write.modality, write.embedder), {})
            owners.setdefault(owner, {})[write.slot] = Slot(write.slot, write.embedding, write.quality, write.count)
        for number in resolution.pending_used:
            del self.waiting[number]
        for kept in resolution.pending:
            self.waiting[self._rows] = Waiting(
                self._rows, kept.modality, kept.embedder, kept.embedding, evidence.start, kept.expires
            )
            self._rows += 1
        return {anchor: ids.get(key, key) if key is not None else None for anchor, key in resolution.assigned.items()}


def draft(evidence: SegmentEvidence, resolution: Resolution) -> CommitDraft:
    """What a segment writes, without description and pictures."""
    heard = [v for v in evidence.voices if v.track is None and resolution.assigned.get(v.anchor) is not None]
    return CommitDraft(
        camera=evidence.camera,
        trace=TraceDraft(evidence.start, evidence.end, "Something happened.", Mode.OFFLINE_QUALITY, None),
        entities=resolution.entities,
        observations=(
            *(
                ObservationDraft(t.anchor, t.label, resolution.assigned.get(t.anchor), t.start, t.end, "", t.score)
                for t in evidence.tracks
            ),
            *(
                ObservationDraft(
                    v.anchor, "voice", resolution.assigned[v.anchor], evidence.start, evidence.end, "", 1.0
                )
                for v in heard
            ),
        ),
        utterances=tuple(
            UtteranceDraft(u.start, u.end, u.text, resolution.assigned.get(u.voice) if u.voice else None, u.voice)
            for u in evidence.utterances
        ),
        decisions=resolution.decisions,
        gallery=resolution.gallery,
        samples=resolution.samples,
        pending=resolution.pending,
        pending_used=resolution.pending_used,
        names=resolution.names,
        as_of=resolution.as_of,
    )
