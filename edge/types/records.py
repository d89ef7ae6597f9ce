"""What memory keeps: its ids, kinds and texts, and the records that come out. What goes in is in `drafts`.

Ids are integers inside and have a letter before them outside (`public_id`): t12 a trace, p3 a person or another entity,
o7 an observation, u9 an utterance, k4 a key frame, d5 a decision, n2 a node of the timeline, j6 a job, q8 an answer. They are never used
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edge.types.evidence import NormBox, Vector
from edge.types.media import CutReason, Mode, SegmentCounts
from edge.types.mentions import anchored as anchored
from edge.types.mentions import attributed as attributed
from edge.types.mentions import mention as mention
from edge.types.mentions import mentioned as mentioned
from edge.types.mentions import render as render
from edge.types.mentions import renumbered as renumbered

DEFAULT_USER = "owner"


class Kind(StrEnum):
    """What an id names, with the letter of its public form."""

    TRACE = "t"
    ENTITY = "p"
    OBSERVATION = "o"
    UTTERANCE = "u"
    KEY_FRAME = "k"
    DECISION = "d"
    CORRECTION = "c"
    RULE = "r"
    ALERT = "a"
    NODE = "n"
    JOB = "j"
    FACT = "f"
    ANSWER = "q"


def public_id(kind: Kind, number: int) -> str:
    """The id that people and programs see, for example `t12`."""
    return f"{kind}{number}"


def parse_id(text: str) -> tuple[Kind, int]:
    """Take a public id apart.

    Raises:
        ValueError: `text` is not one.
    """
    text = text.strip().lower()
    if len(text) < 2 or not text[1:].isascii() or not text[1:].isdigit():
        raise ValueError(f"“{text}” is not an id such as t12 or p3")
    return Kind(text[0]), int(text[1:])


class EntityKind(StrEnum):
    """What an entity is."""

    PERSON = "person"  # seen, with a face that was safe enough to know again
    VOICE = "voice"  # heard only
    NAMED = "named"  # known from a description by name, never seen or heard by our own networks (replay)


class Modality(StrEnum):
    """The senses that identify."""

    FACE = "face"
    BODY = "body"
    VOICE = "voice"


class Outcome(StrEnum):
    """What the resolver decided about one track or voice."""

    SAME = "same"
    NEW = "new"
    PENDING = "pending"
    CONFLICT = "conflict"
    UNSAFE = "unsafe"  # evidence that may be shown and never writes a gallery, a name or an identity


class NameSource(StrEnum):
    """Where a name comes from, in rising authority."""

    NONE = "none"
    ADDRESSED = "addressed"  # others called them so, at least twice
    SELF = "self"  # they said it of themselves
    USER = "user"  # told by the owner: nothing else may change it


@dataclass(frozen=True, slots=True)
class LineDraft:
    """One sentence of the description with its moment: the unit of fine search."""

    at: float
    text: str  # with mentions


@dataclass(frozen=True, slots=True)
class EntityRecord:
    """A person or a voice."""

    id: int
    kind: EntityKind
    number: int  # "person 3": counts per kind, from 1
    name: str | None
    name_source: NameSource
    first_seen: float  # UTC POSIX seconds
    last_seen: float
    sightings: int  # observations
    user: str = DEFAULT_USER

    @property
    def title(self) -> str:
        """The name, or "person 3" / "voice 2" while there is none."""
        if self.name:
            return self.name
        return f"{'voice' if self.kind is EntityKind.VOICE else 'person'} {self.number}"


@dataclass(frozen=True, slots=True)
class ObservationRecord:
    """One entity or object in one segment."""

    id: int
    trace: int
    camera: str
    anchor: str
    label: str
    entity: int | None
    start: float
    end: float
    text: str
    score: float
    boxes: tuple[tuple[float, NormBox], ...]
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class UtteranceRecord:
    """Words that were said."""

    id: int
    trace: int
    start: float
    end: float
    text: str
    speaker: int | None  # entity
    speaker_name: str | None  # title of the entity now, or the name given by a replayed description
    confidence: float
    voice: str | None = None  # local anchor


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One remembered segment."""

    id: int
    camera: str
    start: float
    end: float
    text: str
    mode: Mode
    reason: CutReason | None
    entities: tuple[int, ...]
    key_frames: tuple[int, ...]
    lines: tuple[LineDraft, ...]
    utterances: tuple[UtteranceRecord, ...]
    counts: SegmentCounts = field(default_factory=SegmentCounts)
    detail: Mapping[str, object] = field(default_factory=dict)
    embedder: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class GallerySlot:
    """One slot of a gallery as stored."""

    id: int
    entity: int
    modality: Modality
    slot: int
    embedder: str
    embedding: Vector
    quality: float
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class PendingRecord:
    """Pending evidence as stored."""

    id: int
    trace: int
    observation: int | None
    camera: str
    modality: Modality
    embedder: str
    embedding: Vector
    quality: float
    at: float
    expires: float


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision as stored."""

    id: int
    trace: int
    anchor: str
    outcome: Outcome
    entity: int | None
    reason: str
    evidence: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class NameClaimRecord:
    """A name heard for someone, as stored."""

    id: int
    entity: int
    name: str
    source: NameSource
    utterance: int | None
    at: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class NameChange:
    """One change of an entity's name, so that it can be explained and undone."""

    id: int
    entity: int
    old_name: str | None
    old_source: NameSource
    new_name: str | None
    new_source: NameSource
    at: float
    claim: int | None  # the name claim that caused it; None: the user


class CorrectionKind(StrEnum):
    """What the owner corrected."""

    NAME = "name"  # what somebody is called, or that their name is taken away
    MERGE = "merge"  # two are one
    SPLIT = "split"  # some sightings are somebody else's
    NOT_PERSON = "not"  # likewise, and the two are never taken for one again


@dataclass(frozen=True, slots=True)
class CorrectionDraft:
    """What the owner wants to correct."""

    kind: CorrectionKind  # MERGE, SPLIT or NOT_PERSON; names are given by `Store.set_name`
    person: int  # who is kept; or whose sightings they are until now
    other: int | None = None  # who becomes part of `person`; or whose the sightings are: None: somebody new's
    sightings: tuple[tuple[Kind, int], ...] = ()  # traces, observations, utterances: what is moved


@dataclass(frozen=True, slots=True)
class CorrectionRecord:
    """A correction as stored."""

    id: int
    kind: CorrectionKind
    person: int  # entity
    other: int | None  # entity
    created: bool  # `other` is somebody new
    name: str | None  # the name that was given
    at: float  # UTC POSIX seconds
    undone_at: float | None
    observations: int  # that were moved, of a split
    utterances: int


@dataclass(frozen=True, slots=True)
class CorrectionScope:
    """What a correction reaches."""

    traces: int
    observations: int
    utterances: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """One entity in one trace, from its first to its last observation there."""

    start: float  # UTC POSIX seconds
    end: float
    trace: int
    camera: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A stored picture: a key frame, or the face of a gallery slot."""

    id: int
    trace: int | None  # None: the face of a slot whose observation was forgotten
    at: float
    jpeg: bytes
    width: int  # px
    height: int  # px
    anchors: tuple[str, ...] = ()  # of the trace's observations that are seen in it


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """How far a source has been remembered."""

    id: int
    camera: str
    uri: str
    fingerprint: str
    start: float
    duration: float | None
    position: float
    next_segment: int
    finished: bool


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """How much the memory holds."""

    traces: int
    observations: int
    utterances: int
    entities: int
    key_frames: int
    first: float | None  # UTC POSIX seconds of the earliest and the latest moment
    last: float | None
    bytes: int  # on disk, both files with their logs
