"""One container, packet by packet: a decoder that raises in the middle loses that packet, not the rest."""

from __future__ import annotations

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

_Decoded = TypeVar("_Decoded", av.VideoFrame, av.AudioFrame)


@dataclass(slots=True)
class Faults:
    """Packets that could not be read or decoded and were not reported yet."""

    count: int = 0
    read_errors: int = 0

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
        except av.FFmpegError:
            faults.count += 1
            faults.read_errors += 1
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


def frames(
    container: av.container.InputContainer, stream: Any, faults: Faults, wanted: type[_Decoded]
) -> Iterator[_Decoded]:
    """All frames of one stream."""
    for packet in packets(container, [stream], faults):
        for frame in decode_packet(packet, faults):
            if isinstance(frame, wanted):
                yield frame


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


def with_following(items: Iterator[_Decoded], faults: Faults) -> Iterator[tuple[_Decoded, _Decoded | None, int]]:
    """Each frame with the one after it and the faults before it."""
    here: _Decoded | None = None
    faults_here = 0
    for item in items:
        if here is not None:
            yield here, item, faults_here
        here, faults_here = item, faults.take()
    if here is not None:
        yield here, None, faults_here + faults.take()


def pictures(
    container: av.container.InputContainer, stream: Any, clock: MediaClock, faults: Faults
) -> Iterator[Picture]:
    """All pictures of a stream on the media clock.

    A picture lasts until the next one, or for its own duration if the next comes later than that.
    """
    previous: Picture | None = None
    decoded = frames(container, stream, faults, av.VideoFrame)
    for index, (frame, following, faults_before) in enumerate(with_following(decoded, faults)):
        step = step_of(frame, stream)
        time = clock.stamp(raw_time(frame, stream), step, raw_time(following, stream) if following else None)
        if previous is not None:
            previous.duration = min(previous.duration, time - previous.time)
            yield previous
        aspect = sane_aspect(stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio)
        previous = Picture(frame, aspect, time, step, index, monotonic(), faults_before)
    if previous is not None:
        yield previous


def chunks(container: av.container.InputContainer, stream: Any, clock: MediaClock, faults: Faults) -> Iterator[Chunk]:
    """All sound of a stream on the media clock."""
    resampler = Resampler(clock)
    decoded = frames(container, stream, faults, av.AudioFrame)
    for frame, following, faults_before in with_following(decoded, faults):
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
