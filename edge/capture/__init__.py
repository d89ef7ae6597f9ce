"""Sources (files, still images, rtsp, http, usb) behind one gateway, and the segmenter that cuts them.

>>> with open_source("clip.mp4", camera=None, start=None, settings=CaptureSettings()) as source:  # doctest: +SKIP
...     for item in segments(source, vad=None, settings=CaptureSettings(), mode=Mode.OFFLINE_QUALITY, stop=Event()):
...         ...  # chosen frames of the open segment, then the segment that closes them
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from edge.capture.address import Address, parse_address
from edge.capture.described import BadLine, Caption, DescribedFile, DescribedSegment, Speech
from edge.capture.guards import worth_analysing
from edge.capture.handle import Source, StartFrom
from edge.capture.hearing import SpeechChangeLike, VoiceActivityLike
from edge.capture.picture import Picture
from edge.capture.push import PushFeed, PushPort, PushSource
from edge.capture.segmenter import Segmenter
from edge.capture.source import open_source
from edge.settings import CaptureSettings
from edge.types.media import Frame, Mode, Segment

__all__ = [
    "Address",
    "BadLine",
    "Caption",
    "DescribedFile",
    "DescribedSegment",
    "Picture",
    "PushFeed",
    "PushPort",
    "PushSource",
    "Source",
    "Speech",
    "SpeechChangeLike",
    "StartFrom",
    "VoiceActivityLike",
    "open_source",
    "parse_address",
    "segments",
    "worth_analysing",
]


def segments(
    source: Source,
    *,
    vad: VoiceActivityLike | None,
    settings: CaptureSettings,
    mode: Mode,
    resume_at: float = 0.0,
    next_segment: int = 0,
    stop: threading.Event,
) -> Iterator[Frame | Segment]:
    """Read a source and cut it.

    Args:
        source: an opened source; reading starts anew.
        vad: hears where somebody speaks; None, or a source without sound: no segment ends at an end of speech, and
            every audible stretch counts as speech.
        settings: thresholds.
        mode: `LIVE_LATENCY` lets a live source drop pictures (counted), never sound; a recording is read in order in
            both modes, as fast as it is asked for.
        resume_at: media seconds at which the last segment of an earlier run ended; what follows is then the same, bit
            for bit, as if that run had gone on. A live source goes on from now.
        next_segment: the index of the first segment.
        stop: when set, the open segment is closed as INTERRUPTED and the iteration ends.

    Yields:
        The chosen frames of the open segment, then the segment that closes them.
    """
    begin = 0.0 if source.live else resume_at
    feed = source.feed(mode, begin, stop.is_set)
    try:
        segmenter = Segmenter(source.info, feed, vad, settings, stop, source.report)
        yield from segmenter.run(begin, next_segment)
    finally:
        source.close()
