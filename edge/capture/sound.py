"""Sound on the media clock: 16 kHz mono, addressed by sample, silence where there is none.

Invariants:

* Sample n lies at media time n / 16000, whatever the stream's own time stamps do.
* The samples depend on the stream alone, never on where reading began: sound is always decoded from the stream's
  beginning (it costs about a thousandth of real time), since decoders and resamplers carry state over any distance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import av
import numpy as np

from edge.capture.timestamps import MediaClock
from edge.types.media import SAMPLE_RATE, Samples

_SLACK_S = 0.05  # stamps that differ less than this from the count of samples are jitter, s
_QUIET_MID = 0.05  # power of the mid to the louder channel below which stereo cancels itself (about -13 dB)
_MEMORY_S = 0.5  # time constant of that comparison, s


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of sound."""

    begin: int  # samples since media time 0
    samples: Samples
    faults: int  # packets that could not be decoded just before it


class Mixer:
    """Mono from one or two channels that does not cancel out.

    The mean of both channels is silent when they are in anti-phase (a miswired microphone); then the louder channel
    alone is taken until the mean carries sound again.
    """

    def __init__(self) -> None:
        """Begin without any memory of levels."""
        self._mid = 0.0
        self._channels = np.zeros(2)

    def mix(self, channels: Samples) -> Samples:
        """(C, n) → (n,), C being 1 or 2."""
        if len(channels) == 1:
            return np.asarray(channels[0], dtype=np.float32)
        mid: Samples = channels.mean(axis=0, dtype=np.float32)
        count = channels.shape[1]
        keep = float(np.exp(-count / (_MEMORY_S * SAMPLE_RATE)))
        self._mid = keep * self._mid + float(np.square(mid, dtype=np.float64).sum())
        self._channels = keep * self._channels + np.square(channels, dtype=np.float64).sum(axis=1)
        loud = int(self._channels.argmax())
        if self._mid < _QUIET_MID * self._channels[loud]:
            return np.ascontiguousarray(channels[loud])
        return mid


class Resampler:
    """Decoded frames → chunks on the media clock."""

    def __init__(self, clock: MediaClock) -> None:
        """Begin; `clock` places each frame."""
        self._clock = clock
        self._mixer = Mixer()
        self._resampler: av.AudioResampler | None = None
        self._form: tuple[int, str, str] | None = None
        self._next = 0  # sample that the resampler gives next
        self._given = 0  # samples before this were given already
        self._run_begin = 0.0  # media s of the contiguous run's first sample
        self._run_length = 0  # samples, at the stream's own rate, of the run so far
        self._faults = 0

    def feed(self, frame: av.AudioFrame, raw: float | None, following: float | None, faults: int) -> Iterator[Chunk]:
        """Take the next frame.

        Args:
            frame: decoded sound.
            raw: its time stamp, s.
            following: the stamp of the frame after it, s.
            faults: packets that could not be decoded before it.
        """
        rate = frame.sample_rate
        if not frame.samples or not rate:
            self._faults += faults
            return
        at = self._clock.stamp(raw, frame.samples / rate, following)
        form = (rate, frame.format.name, frame.layout.name)
        expected = self._run_begin + self._run_length / rate
        if self._resampler is None or form != self._form or abs(at - expected) > _SLACK_S:
            # A hole in the midst means lost packets, even where the demuxer skipped them without a word.
            self._faults += int(self._resampler is not None and at - expected > _SLACK_S)
            yield from self.flush()
            self._begin(at, form, frame)
        self._faults += faults
        self._run_length += frame.samples
        assert self._resampler is not None  # noqa: S101  # set by _begin; tells mypy
        frame.pts = None
        yield from self._chunks(self._resampler.resample(frame))

    def flush(self) -> Iterator[Chunk]:
        """What the resampler still holds; a new contiguous run begins after it."""
        if self._resampler is not None:
            yield from self._chunks(self._resampler.resample(None))
            self._resampler = None

    def _begin(self, at: float, form: tuple[int, str, str], frame: av.AudioFrame) -> None:
        layout = "mono" if frame.layout.nb_channels == 1 else "stereo"
        self._resampler = av.AudioResampler(format="fltp", layout=layout, rate=SAMPLE_RATE)
        self._form = form
        self._run_begin, self._run_length = at, 0
        self._next = round(at * SAMPLE_RATE)

    def _chunks(self, frames: list[av.AudioFrame]) -> Iterator[Chunk]:
        for frame in frames:
            if not frame.samples:
                continue
            channels = frame.to_ndarray().astype(np.float32, copy=False)
            if not np.isfinite(channels).all():
                channels = np.nan_to_num(channels, posinf=0.0, neginf=0.0)
            samples = np.clip(self._mixer.mix(channels), -1.0, 1.0)
            begin, self._next = self._next, self._next + len(samples)
            repeated = max(0, self._given - begin)
            if repeated >= len(samples):
                continue
            fresh = np.ascontiguousarray(samples[repeated:], dtype=np.float32)
            yield Chunk(begin + repeated, fresh, self._faults)
            self._given = self._next
            self._faults = 0


class SoundTrack:
    """Random access to the recent past and the near future of a source's sound."""

    def __init__(self, pull: Callable[[], Chunk | None], ended: Callable[[], bool]) -> None:
        """Wrap a supply of chunks.

        Args:
            pull: the next chunk; None: nothing now (live) or nothing ever (ended).
            ended: whether None means nothing ever.
        """
        self._pull = pull
        self._ended = ended
        self._chunks: deque[Chunk] = deque()
        self._fault_at: deque[int] = deque()
        self.end = 0  # samples: sound is known up to here

    @property
    def ended(self) -> bool:
        """Whether there is nothing beyond `end`."""
        return self._ended()

    def reach(self, upto: int) -> int:
        """Read on until sample `upto` is known; returns up to where it is known (less: ended, or not there yet)."""
        while self.end < upto:
            chunk = self._pull()
            if chunk is None:
                break
            self._fault_at.extend([chunk.begin] * chunk.faults)
            self._chunks.append(chunk)
            self.end = chunk.begin + len(chunk.samples)
        return self.end

    def window(self, begin: int, end: int) -> Samples:
        """Samples begin..end; silence where there is no sound or it was forgotten."""
        out = np.zeros(max(0, end - begin), dtype=np.float32)
        for chunk in reversed(self._chunks):
            low, high = max(begin, chunk.begin), min(end, chunk.begin + len(chunk.samples))
            if high <= begin:
                break
            if low < high:
                out[low - begin : high - begin] = chunk.samples[low - chunk.begin : high - chunk.begin]
        return out

    def heard_until(self, begin: int, end: int) -> int | None:
        """The end of the last real (not filled) sound within begin..end; None if there is none."""
        for chunk in reversed(self._chunks):
            high = min(end, chunk.begin + len(chunk.samples))
            if max(begin, chunk.begin) < high:
                return high
        return None

    def next_heard(self, begin: int) -> int | None:
        """The first real sample at or after `begin`; None if there is none (or not yet)."""
        self.reach(begin + 1)
        for chunk in self._chunks:
            if len(chunk.samples) and chunk.begin + len(chunk.samples) > begin:
                return max(begin, chunk.begin)
        return None

    def faults(self, begin: int, end: int) -> int:
        """Packets that could not be decoded just before begin..end."""
        return sum(begin <= at < end for at in self._fault_at)

    def forget(self, before: int) -> None:
        """Let go of what lies before a sample."""
        while self._chunks and self._chunks[0].begin + len(self._chunks[0].samples) <= before:
            self._chunks.popleft()
        while self._fault_at and self._fault_at[0] < before:
            self._fault_at.popleft()
