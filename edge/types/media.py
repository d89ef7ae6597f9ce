"""What capture hands on: frames, segments and where they came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]  # (H, W, 3), BGR, upright, square pixels
Samples = NDArray[np.float32]  # (n,), mono, -1..1, at SAMPLE_RATE

SAMPLE_RATE = 16_000  # Hz, of all audio inside the product


class SourceKind(StrEnum):
    """How a source is reached."""

    FILE = "file"
    IMAGE = "image"
    RTSP = "rtsp"
    HTTP = "http"
    USB = "usb"
    CSI = "csi"  # a ribbon-cable camera of a Raspberry Pi
    PUSH = "push"  # a publisher sends it
    TEST = "test"  # made in code
    REPLAY = "replay"  # already described segments


class Mode(StrEnum):
    """The two ways of committing (ReflectWorld-MM, Appendix C)."""

    OFFLINE_QUALITY = "offline_quality"  # in order, nothing dropped, deterministic
    LIVE_LATENCY = "live_latency"  # frames may be dropped (never speech) to keep up with the clock


class CutReason(StrEnum):
    """Why a segment ended."""

    SCENE_CUT = "scene_cut"
    VISUAL_CHANGE = "visual_change"
    SPEECH_END = "speech_end"
    MAX_LENGTH = "max_length"
    END_OF_SOURCE = "end_of_source"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """A source that was opened."""

    uri: str
    camera: str
    kind: SourceKind
    fingerprint: str  # 32 hex digits that name the content of a file, or the address of a live source
    start: float  # UTC POSIX seconds of media time 0
    duration: float | None  # s; None: live, or the container does not say
    has_video: bool
    has_audio: bool
    width: int  # px, upright, square pixels; 0 without video
    height: int  # px
    dated: bool = True  # `start` is known; False: guessed from the date of the file, which may be that of a copy


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One chosen frame of the open segment."""

    image: Image
    at: float  # UTC POSIX seconds
    index: int  # position in decode order within the source, from 0
    captured: float  # monotonic seconds at which it was decoded or received
    change: (
        float  # mean absolute grey difference (0..255) to the frame chosen before it; 255 for the first of a segment
    )
    news: bool = False  # of a live source: something new shows in a part of it, which is to be seen at once


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time."""

    start: float  # UTC POSIX seconds
    end: float  # UTC POSIX seconds


@dataclass(frozen=True, slots=True)
class SegmentCounts:
    """What capture did and dropped in one segment."""

    decoded: int = 0  # frames decoded
    chosen: int = 0  # frames handed on
    pruned: int = 0  # sampled frames left out as near-duplicates of the one chosen before
    dropped: int = 0  # frames dropped because perception lagged
    faults: int = 0  # packets or frames that could not be decoded


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A closed segment: at most 30 s of one activity. Its frames were handed on one by one before it."""

    camera: str
    source: str  # SourceInfo.fingerprint
    index: int  # 0, 1, … within the source
    start: float  # UTC POSIX seconds
    end: float  # UTC POSIX seconds
    reason: CutReason
    first_of_event: bool  # the first of its source, or after a gap or a long inactivity: always analysed (Appendix C)
    still: bool  # nothing moved in it beyond noise
    audio: Samples | None  # all sound of the segment; None: the source has no sound
    audio_start: float  # UTC POSIX seconds of the first sample
    speech: tuple[Span, ...]  # where the voice activity detector heard speech
    audio_faults: int  # audio packets that could not be decoded: such a segment is always analysed (Appendix C)
    counts: SegmentCounts
