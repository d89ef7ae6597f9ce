"""One container, packet by packet: a decoder that raises in the middle loses that packet, not the rest."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import av

from edge.capture.picture import Picture, sane_aspect
from edge.capture.sound import Chunk, Resampler
from edge.capture.timestamps import MediaClock
from edge.clock import monotonic

_RETRIES = 50  # failures to read on in a row after which a file counts as ended
_STEP_RANGE = (1 / 240, 1.0)  # believable durations of one frame where only a mean rate says so, s
_STEP_GUESS = 0.04  # s, where nothing says so

_REGULAR_S = 1.0  # decoding stamps further apart than this are irregular, s
# Decoders whose packets hold one picture each and that are right from a key frame on.
_SKIPPABLE = frozenset(
    ("h264", "hevc", "vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d", "mpeg1video", "mpeg2video", "mjpeg")
)

_Decoded = TypeVar("_Decoded", av.VideoFrame, av.AudioFrame)


@dataclass(slots=True)
class Faults:
    """Packets that could not be read or decoded and were not reported yet."""

    count: int = 0

    def take(self) -> int:
        """The number since the last call."""
        taken, self.count = self.count, 0
        return taken


def packets(container: av.container.InputContainer, streams: list[Any], faults: Faults) -> Iterator[Any]:
    """All packets of some streams, with one flush packet each at the end."""
    failures = 0
    while True:
        try:
            for packet in container.demux(*streams):
                failures = 0
                yield packet
        except av.EOFError:
            break
        except (TimeoutError, ConnectionError, av.ExitError):
            faults.count += 1
            break  # the network is gone, or too slow; asking again would only wait again
        except av.FFmpegError:
            faults.count += 1
            failures += 1
            if failures >= _RETRIES:
                break
        else:
            return
    for stream in streams:
        flush = av.Packet()
        flush.stream = stream
        yield flush


def decode_packet(packet: Any, faults: Faults) -> list[Any]:
    """The frames of one packet; a packet that cannot be decoded is counted."""
    try:
        return list(packet.decode())
    except av.EOFError:
        return []
    except av.FFmpegError:
        faults.count += 1
        return []


class Ranks:
    """The position of each picture among all packets of its stream, by time stamp.

    It does not depend on what a decoder made of the packets before, so that a run which skips them counts the same.
    """

    def __init__(self, skipped: int) -> None:
        """`skipped` packets went by undecoded."""
        self._passed = skipped
        self._waiting: list[int] = []
        self._last = skipped - 1

    def sent(self, stamp: int | None) -> None:
        """A packet goes into the decoder."""
        if stamp is not None:
            heapq.heappush(self._waiting, stamp)

    def of(self, stamp: int | None) -> int:
        """The rank of a picture that comes out; it always rises."""
        while stamp is not None and self._waiting and self._waiting[0] <= stamp:
            heapq.heappop(self._waiting)
            self._passed += 1
        self._last = max(self._last + 1, self._passed - 1)
        return self._last


def video_frames(
    container: av.container.InputContainer, stream: Any, faults: Faults, skip: int, stopped: Callable[[], bool]
) -> Iterator[tuple[av.VideoFrame, int]]:
    """All frames of a picture stream after its first `skip` packets, each with its rank."""
    ranks = Ranks(skip)
    for number, packet in enumerate(packets(container, [stream], faults)):
        if number < skip:
            if stopped():
                return
            continue
        ranks.sent(packet.pts if packet.size else None)
        for frame in decode_packet(packet, faults):
            if isinstance(frame, av.VideoFrame):
                yield frame, ranks.of(frame.pts)


def skippable(
    container: av.container.InputContainer, stream: Any, origin: float, before: float, stopped: Callable[[], bool]
) -> int:
    """How many packets of a picture stream need not be decoded to get the pictures right from a time on.

    Args:
        container: freshly opened.
        stream: the picture stream.
        origin: the stamp of media time 0, s.
        before: media s up to which decoding may begin.
        stopped: whether to give up.

    Returns:
        The number of packets in front of the last key frame up to `before`; 0 where time stamps are not regular enough to
        know the time of a packet without decoding what lies before it.
    """
    if stream.codec_context.codec.name not in _SKIPPABLE or not stream.time_base:
        return 0
    faults = Faults()
    found, last = 0, None
    for number, packet in enumerate(packets(container, [stream], faults)):
        if not packet.size:
            break
        if packet.pts is None or packet.dts is None or faults.count or stopped():
            return 0
        at = float(packet.dts * stream.time_base)
        if last is not None and not 0 <= at - last <= _REGULAR_S:
            return 0
        last = at
        if float(packet.pts * stream.time_base) - origin > before:
            break
        found = number if packet.is_keyframe else found
    return found


def audio_frames(
    container: av.container.InputContainer, stream: Any, faults: Faults
) -> Iterator[tuple[av.AudioFrame, int]]:
    """All frames of a sound stream, numbered."""
    for packet in packets(container, [stream], faults):
        for frame in decode_packet(packet, faults):
            if isinstance(frame, av.AudioFrame):
                yield frame, 0


def raw_time(frame: av.VideoFrame | av.AudioFrame, stream: Any) -> float | None:
    """A frame's own time stamp, s; None if it has none."""
    stamp = frame.pts if frame.pts is not None else frame.dts
    base = frame.time_base or stream.time_base
    return None if stamp is None or not base else float(stamp * base)


def step_of(frame: av.VideoFrame, stream: Any) -> float:
    """How long a picture is shown, s."""
    base = frame.time_base or stream.time_base
    if frame.duration and base:
        own = float(frame.duration * base)
        if own > 0:
            return own
    rate = stream.average_rate or stream.guessed_rate
    return min(max(1 / float(rate), _STEP_RANGE[0]), _STEP_RANGE[1]) if rate else _STEP_GUESS


def with_following(
    items: Iterator[tuple[_Decoded, int]], faults: Faults
) -> Iterator[tuple[_Decoded, int, _Decoded | None, int]]:
    """Each frame with its number, the frame after it and the faults before it."""
    here: _Decoded | None = None
    number_here = faults_here = 0
    for item, number in items:
        if here is not None:
            yield here, number_here, item, faults_here
        here, number_here, faults_here = item, number, faults.take()
    if here is not None:
        yield here, number_here, None, faults_here + faults.take()


def pictures(
    decoded: Iterator[tuple[av.VideoFrame, int]], stream: Any, clock: MediaClock, faults: Faults
) -> Iterator[Picture]:
    """All pictures of a stream on the media clock.

    A picture lasts until the next one, or for its own duration if the next comes later than that.
    """
    previous: Picture | None = None
    for frame, index, following, faults_before in with_following(decoded, faults):
        step = step_of(frame, stream)
        time = clock.stamp(raw_time(frame, stream), step, raw_time(following, stream) if following else None)
        if previous is not None:
            previous.duration = min(previous.duration, time - previous.time)
            yield previous
        aspect = sane_aspect(stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio)
        previous = Picture(frame, aspect, time, step, index, monotonic(), faults_before)
    if previous is not None:
        yield previous


def chunks(
    decoded: Iterator[tuple[av.AudioFrame, int]], stream: Any, clock: MediaClock, faults: Faults
) -> Iterator[Chunk]:
    """All sound of a stream on the media clock."""
    resampler = Resampler(clock)
    for frame, _, following, faults_before in with_following(decoded, faults):
        after = raw_time(following, stream) if following else None
        yield from resampler.feed(frame, raw_time(frame, stream), after, faults_before)
    yield from resampler.flush()


def once(iterator: Iterator[Chunk]) -> tuple[Callable[[], Chunk | None], Callable[[], bool]]:
    """An iterator as the pair of functions that `SoundTrack` reads from."""
    over = False

    def pull() -> Chunk | None:
        nonlocal over
        chunk = next(iterator, None)
        over = chunk is None
        return chunk

    return pull, lambda: over
