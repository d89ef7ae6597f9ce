"""Drafts for the tests of the memory: deterministic, small, with something in every field."""

from __future__ import annotations

import numpy as np

from edge.types.drafts import (
    CommitDraft,
    DecisionDraft,
    GalleryWrite,
    KeyFrameDraft,
    NameClaim,
    NewEntity,
    ObservationDraft,
    PendingWrite,
    SourceProgress,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.evidence import Vector, VisualEvidence
from edge.types.media import CutReason, Image, Mode, SegmentCounts, SourceInfo, SourceKind
from edge.types.records import EntityKind, LineDraft, Modality, NameSource, Outcome, mention

CAMERA = "hall"
FACE_MODEL = "faces:00000001"
TEXT_MODEL = "texts:00000001"
SCENE_MODEL = "scenes:00000001"
START = 1_700_000_000.0  # UTC POSIX seconds of the source
SEGMENT_S = 30.0


def source(fingerprint: str = "f" * 32, *, camera: str = CAMERA) -> SourceInfo:
    """A file that was opened."""
    return SourceInfo("clip.mp4", camera, SourceKind.FILE, fingerprint, START, 86_400.0, True, True, 640, 480)


def vector(seed: int, size: int = 192) -> Vector:
    """A unit vector."""
    values = np.random.default_rng(seed).normal(size=size).astype(np.float32)
    return values / np.float32(np.linalg.norm(values))


def picture(seed: int, width: int = 64, height: int = 48) -> Image:
    """A smooth picture, so that JPEG keeps it nearly as it is."""
    x, y = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    planes = [np.sin((x * (k + 1) + y + seed) * 2) * 100 + 128 for k in range(3)]
    return np.stack(planes, axis=-1).astype(np.uint8)


def segment(
    i: int,
    *,
    who: int | None = None,
    info: SourceInfo | None = None,
    crop: bool = True,
    frame: Image | None = None,
    finished: bool = False,
) -> CommitDraft:
    """The draft of segment `i` of a source.

    Args:
        i: 0, 1, …; segment i covers SEGMENT_S seconds from START + i·SEGMENT_S.
        who: the person in it; None: somebody new, with the key -1.
        info: the source.
        crop: with a face for people.
        frame: the key frame.
        finished: it is the last of its source.
    """
    info = info or source()
    key = -1 if who is None else who
    start = START + i * SEGMENT_S
    return CommitDraft(
        camera=info.camera,
        trace=TraceDraft(
            start=start,
            end=start + SEGMENT_S,
            text=f"{mention(key)} at a table with a cup, number {i}.",
            mode=Mode.OFFLINE_QUALITY,
            reason=CutReason.MAX_LENGTH,
            lines=(LineDraft(start + 1, f"{mention(key)} sits down."), LineDraft(start + 9, "A cup is on the table.")),
            counts=SegmentCounts(decoded=750, chosen=40, pruned=20, dropped=1, faults=2),
            detail={"still": False, "other": [i, "é"]},
        ),
        progress=SourceProgress(info, (i + 1) * SEGMENT_S, i + 1, finished),
        entities=(NewEntity(key, EntityKind.PERSON),) if who is None else (),
        observations=(
            ObservationDraft(
                "a1",
                "person",
                key,
                start + 2,
                start + 20,
                f"{mention(key)} smiles.",
                0.9,
                ((start + 2, (0.1, 0.2, 0.3, 0.4)), (start + 20, (0.5, 0.25, 0.75, 1.0))),
                {"face": {"width_px": 61.5, "safe": True}},
            ),
            ObservationDraft("a2", "cup", None, start + 3, start + 29, "a cup", 0.7),
        ),
        utterances=(UtteranceDraft(start + 4, start + 6, f"Sentence {i}.", key, "v1", None, 0.8),),
        decisions=(
            DecisionDraft("a1", Outcome.SAME if who else Outcome.NEW, key, "The face fits.", {"scores": {"1": 0.75}}),
        ),
        gallery=(
            GalleryWrite(
                key,
                Modality.FACE,
                i % 8,
                FACE_MODEL,
                vector(i),
                50.0 + i,
                1,
                "a1",
                picture(i, 112, 112) if crop else None,
            ),
        ),
        pending=(PendingWrite("a1", Modality.FACE, FACE_MODEL, vector(i + 10_000), 20.0, start + 100),),
        names=(NameClaim(key, "Ann", NameSource.ADDRESSED, 0, False),),
        key_frames=(KeyFrameDraft(start + 5, picture(i) if frame is None else frame, ("a1", "a2")),),
        vector=vector(i, 384),
        line_vectors=(vector(i + 20_000, 384),),
        word_signs=bytes([i % 251]) * 48,
        visual=VisualEvidence(vector(i + 30_000, 512), SCENE_MODEL, 0.9),
        embedder=TEXT_MODEL,
    )


def replayed(i: int, *, camera: str = CAMERA) -> CommitDraft:
    """A segment that was described elsewhere: no source, no pictures."""
    start = START + i * SEGMENT_S
    return CommitDraft(camera, TraceDraft(start, start + SEGMENT_S, f"Segment {i}.", Mode.OFFLINE_QUALITY, None))
