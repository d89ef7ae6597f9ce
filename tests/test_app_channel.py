"""The channel between capture and perception: order, bounds, what may be dropped and what never is."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app.channel import Channel
from edge.types.media import CutReason, Frame, Mode, Segment, SegmentCounts

PICTURE = np.zeros((2, 2, 3), np.uint8)


def frame(number: int) -> Frame:
    return Frame(image=PICTURE, at=float(number), index=number, captured=0.0, change=255.0)


def segment(number: int) -> Segment:
    return Segment(
        camera="c",
        source="s",
        index=number,
        start=0.0,
        end=1.0,
        reason=CutReason.SCENE_CUT,
        first_of_event=False,
        still=False,
        audio=None,
        audio_start=0.0,
        speech=(),
        audio_faults=0,
        counts=SegmentCounts(chosen=1),
    )


def test_offline_waits_and_loses_nothing() -> None:
    channel = Channel(2, Mode.OFFLINE_QUALITY)
    writer = threading.Thread(target=lambda: ([channel.put(frame(n)) for n in range(50)], channel.close()))
    writer.start()
    got = []
    while (item := channel.get()) is not None:
        time.sleep(0.0005)
        got.append(item)
    writer.join()
    assert [item.index for item in got] == list(range(50))
    assert channel.peak <= 2


@given(st.lists(st.sampled_from(["frame", "segment"]), max_size=40), st.integers(2, 6))
def test_live_drops_frames_never_segments_and_counts_each_where_it_belonged(kinds: list[str], bound: int) -> None:
    channel = Channel(bound, Mode.LIVE_LATENCY)
    sent: list[int] = []  # frames a segment
    run = 0
    read: list[Frame | Segment] = []
    for number, kind in enumerate([*kinds, "segment"]):
        # A reader that only comes when nothing else helps: a full channel of segments.
        while channel.fill >= bound and all(isinstance(item, Segment) for item in channel._items):
            read.append(channel.get())  # type: ignore[arg-type]
        if kind == "frame" and channel.fill >= bound and not isinstance(channel._items[-1], Frame):
            read.append(channel.get())  # type: ignore[arg-type]
        if kind == "segment" and channel.fill >= bound and not isinstance(channel._items[-1], Frame):
            read.append(channel.get())  # type: ignore[arg-type]
        channel.put(frame(number) if kind == "frame" else segment(number))
        if kind == "frame":
            run += 1
        else:
            sent.append(run)
            run = 0
    channel.close()
    while (item := channel.get()) is not None:
        read.append(item)
    segments = [item for item in read if isinstance(item, Segment)]
    assert len(segments) == len(sent)
    at = 0
    for closing, frames in zip(segments, sent, strict=True):
        arrived = 0
        while isinstance(read[at], Frame):
            arrived += 1
            at += 1
        assert read[at] is closing
        at += 1
        assert arrived + closing.counts.dropped == frames


def test_a_failure_comes_after_what_was_written_before_it() -> None:
    channel = Channel(4, Mode.OFFLINE_QUALITY)
    channel.put(frame(1))
    channel.close(ValueError("broken"))
    assert isinstance(channel.get(), Frame)
    with pytest.raises(ValueError, match="broken"):
        channel.get()
    assert channel.get() is None


def test_a_writer_does_not_hang_when_the_reader_has_gone() -> None:
    channel = Channel(2, Mode.OFFLINE_QUALITY)
    results: list[bool] = []
    writer = threading.Thread(target=lambda: results.extend(channel.put(frame(n)) for n in range(5)))
    writer.start()
    time.sleep(0.05)
    channel.close()
    writer.join(2)
    assert not writer.is_alive()
    assert results[-1] is False
