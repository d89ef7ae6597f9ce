"""What perception found in one segment: scored evidence, no decisions.

Every track has a local anchor (`a1`, `a2`, … in order of first appearance), every voice one too (`v1`, `v2`, …). A description
or a decision may refer to nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edge.types.media import Image

Vector = NDArray[np.float32]  # (d,), L2-normalised
Box = tuple[float, float, float, float]  # x1, y1, x2, y2 in px of the frame
NormBox = tuple[float, float, float, float]  # x1, y1, x2, y2 as fractions 0..1 of the frame's width and height


@dataclass(frozen=True, slots=True)
class Detection:
    """One object in one frame."""

    label: str  # class name of the detector, e.g. "person", "cup"
    score: float  # 0..1
    box: Box


@dataclass(frozen=True, slots=True, eq=False)
class FaceShot:
    """One face in one frame, with what tells whether it can be trusted."""

    at: float  # UTC POSIX seconds
    box: Box
    landmarks: NDArray[
        np.float32
    ]  # (5, 2) px: left eye, right eye, nose, left and right corner of the mouth (image order)
    score: float  # detector, 0..1
    width: float  # px, of the box
    sharpness: float  # variance of the Laplacian of the aligned grey crop
    yaw: float  # |nose offset from the eyes' middle| / half the eye distance; 0 is frontal
    norm: float  # L2 norm of the raw embedding; 0: not embedded
    embedding: Vector | None
    crop: Image | None = None  # (112, 112, 3) aligned
    detail: float = 0.0  # fine over coarse contrast at 70 px of face width: low in enlarged pictures; 0: not measured


@dataclass(frozen=True, slots=True, eq=False)
class FaceEvidence:
    """The face of one track: its best shots and their mean."""

    shots: tuple[FaceShot, ...]  # best first, at most 5
    embedding: Vector | None  # normalised mean of the usable shots
    safe: bool  # passes the gates: may write a gallery, a name or an identity
    reason: str  # why not, in words; "" when safe
    embedder: str  # id of the embedding model: vectors of different models are never compared
    mouth_motion: float = 0.0  # movement of the mouth relative to the upper face; > 1 suggests speaking; 0: unknown


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """One person or object followed through a segment."""

    anchor: str  # a1, a2, …
    label: str  # "person" or the detector's class
    start: float  # UTC POSIX seconds of the first and last sighting
    end: float
    boxes: tuple[tuple[float, NormBox], ...]  # (UTC, box) at the frames where it was seen
    score: float  # mean detector score, 0..1
    face: FaceEvidence | None = None
    body: Vector | None = None  # appearance; weak: vetoes and stitches, never identifies alone
    body_embedder: str = ""
    entered: bool = False  # came into view after the segment had begun
    left: bool = False  # went out of view before it ended


@dataclass(frozen=True, slots=True, eq=False)
class Voice:
    """One speaker inside a segment."""

    anchor: str  # v1, v2, …
    seconds: float  # of speech
    embedding: Vector | None  # None: too little speech
    safe: bool  # enough clean speech (>= 2 s) to write a gallery
    embedder: str
    track: str | None = None  # anchor of the person who is seen speaking, when the pictures support it


@dataclass(frozen=True, slots=True)
class Utterance:
    """A stretch of speech and its words."""

    start: float  # UTC POSIX seconds
    end: float
    text: str
    voice: str | None  # anchor of the voice
    confidence: float = 1.0  # 0..1


@dataclass(frozen=True, slots=True, eq=False)
class KeyFrame:
    """A picture kept for a segment."""

    at: float  # UTC POSIX seconds
    image: Image
    anchors: tuple[str, ...] = ()  # tracks that are seen in it


@dataclass(frozen=True, slots=True, eq=False)
class VisualEvidence:
    """What the pictures of a segment have in common: the place and what is in it, to be known again."""

    embedding: Vector
    embedder: str  # vectors of different networks are never compared
    steadiness: float  # mean cosine of the pictures to `embedding`, 0..1: low where the camera is carried about


@dataclass(frozen=True, slots=True)
class PerceptionCounts:
    """How much work perception did for a segment."""

    object_frames: int = 0  # frames the object detector ran on
    face_frames: int = 0
    faces_embedded: int = 0
    bodies_embedded: int = 0
    speech_seconds: float = 0.0
    words_refused: int = 0  # words thrown away as invented on silence, loops or another language


@dataclass(frozen=True, slots=True, eq=False)
class SegmentEvidence:
    """All that perception has to say about a segment."""

    camera: str
    start: float  # UTC POSIX seconds
    end: float
    tracks: tuple[Track, ...]
    voices: tuple[Voice, ...]
    utterances: tuple[Utterance, ...]
    key_frames: tuple[KeyFrame, ...]
    speech_untranscribed: bool = False  # there was speech, and it could not be put into words
    other_language: bool = False  # speech that is not in the recogniser's language
    counts: PerceptionCounts = field(default_factory=PerceptionCounts)
    visual: VisualEvidence | None = None  # None: no network looked at a picture
