"""What goes into memory: the drafts of one critical commit, which writes all of a segment or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.types.evidence import NormBox, Vector, VisualEvidence
from edge.types.media import CutReason, Image, Mode, SegmentCounts, SourceInfo
from edge.types.records import DEFAULT_USER, EntityKind, LineDraft, Modality, NameSource, Outcome

# An entity in a draft: its id as a positive number, or a negative number for one that this commit creates
# (`NewEntity.key`). The same number always means the same entity inside one commit.
EntityKey = int


@dataclass(frozen=True, slots=True)
class NewEntity:
    """An entity that this commit creates."""

    key: EntityKey  # negative
    kind: EntityKind
    name: str | None = None
    name_source: NameSource = NameSource.NONE


@dataclass(frozen=True, slots=True)
class DecisionDraft:
    """A decision with all that it rests on, so that it can be explained and undone."""

    anchor: str
    outcome: Outcome
    entity: EntityKey | None
    reason: str  # one sentence
    evidence: Mapping[str, object]  # JSON values: candidates with scores, thresholds, gates


@dataclass(frozen=True, slots=True, eq=False)
class SampleDraft:
    """Evidence of who somebody is that was offered to their gallery, whether it was learned or not.

    Galleries are a fold of these, so that they can be made again when one of them turns out to be somebody else's.
    """

    entity: EntityKey
    modality: Modality
    embedder: str
    embedding: Vector  # unit vector (d,)
    quality: float  # larger is better; its meaning belongs to the modality
    anchor: str  # the track or voice of this segment that it came from
    slots: int  # how many slots an entity could have then
    ema: float  # weight that it had in a slot that it refreshed
    limit: float  # cosine to somebody else at which it was too near to be learned
    crop: Image | None = None  # a picture for people, faces only


@dataclass(frozen=True, slots=True, eq=False)
class GalleryWrite:
    """One slot of an entity's gallery, written or replaced."""

    entity: EntityKey
    modality: Modality
    slot: int  # 0, 1, …; the same slot again replaces it
    embedder: str
    embedding: Vector
    quality: float  # larger is better; its meaning belongs to the modality
    count: int  # how many sightings went into it (EMA)
    anchor: str  # the track or voice of this segment that it came from
    crop: Image | None = None  # a picture for people, faces only
    samples: tuple[int, ...] = ()  # indices into CommitDraft.samples: what this commit put into it
    pictured: int | None = None  # index into CommitDraft.samples: whose crop it shows from now on
    begun: bool = False  # nothing from before is in it


@dataclass(frozen=True, slots=True, eq=False)
class DerivedSlot:
    """One slot of a gallery that was made again from samples."""

    entity: int
    modality: Modality
    embedder: str
    slot: int
    embedding: Vector
    quality: float
    count: int
    samples: tuple[int, ...]  # ids of those that are in it, in order
    pictured: int | None  # id of the sample whose crop it shows


@dataclass(frozen=True, slots=True, eq=False)
class PendingWrite:
    """Evidence that is kept for a while because it may become an entity or a match later."""

    anchor: str
    modality: Modality
    embedder: str
    embedding: Vector
    quality: float
    expires: float  # UTC POSIX seconds


@dataclass(frozen=True, slots=True)
class NameClaim:
    """A name heard for someone."""

    entity: EntityKey
    name: str
    source: NameSource  # SELF or ADDRESSED
    utterance: int  # index into CommitDraft.utterances
    accepted: bool  # it became the entity's name with this commit


@dataclass(frozen=True, slots=True)
class ObservationDraft:
    """One entity (or someone unknown) in one segment."""

    anchor: str
    label: str  # "person", "cup", …; "voice" for one who is only heard
    entity: EntityKey | None
    start: float  # UTC POSIX seconds
    end: float
    text: str  # appearance, behaviour, interactions, in words, with mentions
    score: float  # 0..1
    boxes: tuple[tuple[float, NormBox], ...] = ()
    detail: Mapping[str, object] = field(default_factory=dict)  # JSON values: gates, face width, …


@dataclass(frozen=True, slots=True)
class UtteranceDraft:
    """Words that were said."""

    start: float
    end: float
    text: str
    speaker: EntityKey | None
    voice: str | None = None  # local anchor
    speaker_name: str | None = None  # as given by a replayed description
    confidence: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class KeyFrameDraft:
    """A picture to keep."""

    at: float
    image: Image
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """How far a source has been remembered; committed with the segment, so that a second run goes on from there."""

    source: SourceInfo
    position: float  # s of media time up to which everything is remembered or was skipped on purpose
    next_segment: int  # index of the next segment
    finished: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TraceDraft:
    """What happened in one segment."""

    start: float
    end: float
    text: str  # the summary, with mentions
    mode: Mode
    reason: CutReason | None
    lines: tuple[LineDraft, ...] = ()
    counts: SegmentCounts = field(default_factory=SegmentCounts)
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class CommitDraft:
    """Everything that one segment writes, in one transaction. `trace` None: skipped as static and silent."""

    camera: str
    trace: TraceDraft | None
    progress: SourceProgress | None = None  # None: replay
    entities: tuple[NewEntity, ...] = ()
    observations: tuple[ObservationDraft, ...] = ()
    utterances: tuple[UtteranceDraft, ...] = ()
    decisions: tuple[DecisionDraft, ...] = ()
    gallery: tuple[GalleryWrite, ...] = ()
    samples: tuple[SampleDraft, ...] = ()  # what was offered to galleries, in order
    pending: tuple[PendingWrite, ...] = ()
    pending_used: tuple[int, ...] = ()  # ids of pending rows that this commit resolved: deleted
    names: tuple[NameClaim, ...] = ()
    key_frames: tuple[KeyFrameDraft, ...] = ()
    vector: Vector | None = None  # text embedding of the trace
    visual: VisualEvidence | None = None  # what it looked like
    line_vectors: tuple[
        Vector, ...
    ] = ()  # of the units of fine search, as `edge.memory.search_units(draft)` lists them
    word_signs: bytes = b""  # of the content words of these units (`edge.memory.read_units`)
    embedder: str = ""
    user: str = DEFAULT_USER
    as_of: int | None = None  # the `Store.corrections_made` that the decisions know of; None: they rest on no gallery


@dataclass(frozen=True, slots=True)
class Committed:
    """The ids that a commit gave out."""

    trace: int | None
    entities: Mapping[EntityKey, int]  # draft key -> id
    observations: tuple[int, ...]
    utterances: tuple[int, ...]
    key_frames: tuple[int, ...]
