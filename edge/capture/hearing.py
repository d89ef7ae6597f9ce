"""The sound of the open segment: where somebody speaks, and where sound may be parted.

Sound is parted at the quietest instant near a boundary, so that words stay whole. The instant is a function of the
sound and of the boundary alone, and never moves back as boundaries move on: a run that resumes at a boundary finds it
again, and each sample belongs to one segment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from edge.capture.sound import SoundTrack
from edge.types.media import SAMPLE_RATE, Samples

PART_S = 0.3  # sound is parted within this much of a boundary, s

_QUIET = (480, 160)  # length and hop of the stretches that are compared to find a quiet instant, samples (30 and 10 ms)
_AUDIBLE = 0.01  # peak above which sound counts as audible where no detector can tell speech, of 1
_SKIP = 10 * SAMPLE_RATE  # sound before a boundary is decoded and forgotten in steps of this many samples
_KEEP = SAMPLE_RATE  # sound before a segment that stays known, samples: more than twice the reach of `PART_S`
_SETTLED = 2 * SAMPLE_RATE  # silence after the end of the sound that the detector is given, samples


class SpeechChangeLike(Protocol):
    """Speech began or ended (`edge.infer.SpeechChange`)."""

    @property
    def at_sample(self) -> int:
        """Samples since the last reset."""
        ...

    @property
    def speaking(self) -> bool:
        """True: it began."""
        ...


class VoiceActivityLike(Protocol):
    """A streaming voice activity detector (`edge.infer.VoiceActivity`); deterministic from `reset`."""

    @property
    def speaking(self) -> bool:
        """Whether somebody speaks."""
        ...

    @property
    def silence_s(self) -> float:
        """Seconds of silence since speech ended; 0 without any speech since the reset."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...

    def feed(self, samples: Samples) -> Sequence[SpeechChangeLike]:
        """Hear the next samples."""
        ...

    def finish(self) -> Sequence[SpeechChangeLike]:
        """The stream ends here."""
        ...


class Hearing:
    """One source's sound, segment by segment; all positions are samples since media time 0."""

    def __init__(self, track: SoundTrack, vad: VoiceActivityLike | None, *, live: bool) -> None:
        """Wrap a track.

        Args:
            track: the sound.
            vad: hears where somebody speaks; None: all audible sound counts as speech.
            live: whether sound beyond the present cannot be waited for.
        """
        self.track = track
        self._vad = vad
        self._live = live
        self._spans: list[tuple[int, int]] = []
        self._onset: int | None = None
        self.begin = 0  # where the open segment's sound begins
        self.heard = 0  # the open segment's sound was heard up to here
        self.end = 0  # where the last closed segment's sound ended

    def skip_to(self, at: float, stopped: Callable[[], bool]) -> None:
        """Decode and forget up to media time `at`, in steps, so that memory stays bounded."""
        target, here = round(at * SAMPLE_RATE), 0
        while here < target and not stopped():
            here = min(target, here + _SKIP)
            self.track.forget(here - _SKIP)
            if self.track.reach(here) < here:
                return

    def open(self, begin: int) -> None:
        """A segment's sound begins."""
        if self._vad is not None:
            self._vad.reset()
        self.track.forget(begin - _KEEP)
        self.begin = self.heard = begin
        self._spans, self._onset = [], None

    @property
    def speaking(self) -> bool:
        """Whether somebody speaks now, as far as a detector can tell."""
        return self._vad is not None and self._vad.speaking

    @property
    def silence_s(self) -> float:
        """Silence after speech within the segment, s; 0 while somebody speaks or if nobody has spoken."""
        return 0.0 if self._vad is None else self._vad.silence_s

    def listen(self, upto: int) -> float | None:
        """Hear on up to a sample; the media time of the end of real sound in this stretch, None if there was none."""
        if upto <= self.heard:
            return None
        real = self.track.heard_until(self.heard, upto)
        # Past the end of all sound there is nothing but silence to tell the detector.
        if self._vad is not None and not (self.track.ended and self.heard > self.track.end + _SETTLED):
            self._note(self._vad.feed(self.track.window(self.heard, upto)))
        self.heard = upto
        return None if real is None else real / SAMPLE_RATE

    def close(self, end: int) -> tuple[Samples, tuple[tuple[float, float], ...], int]:
        """The segment's sound ends here.

        Returns:
            All its samples, where somebody spoke (media s), and how many packets could not be decoded.
        """
        self.listen(end)
        self.end = end
        samples = self.track.window(self.begin, end)
        return samples, self._spoken(samples, end), self.track.faults(self.begin, end)

    def part(self, at: float, *, back: float = PART_S, ahead: float = PART_S) -> int:
        """Where to part the sound for a boundary: the middle of the quietest 30 ms around it, the nearest of equals.

        Args:
            at: media time of the boundary, s.
            back: how far before it, s.
            ahead: how far after it, s; a live source looks no further than what it has sent.
        """
        wanted = round(at * SAMPLE_RATE)
        length, hop = _QUIET
        half = length // 2
        last = math.floor((at + ahead) * SAMPLE_RATE)
        known = self.track.reach(last + half)
        if self._live:
            last = min(last, known - half)
        first_hop = max(0, math.ceil(((at - back) * SAMPLE_RATE - half) / hop))
        last_hop = (last - half) // hop
        if last_hop < first_hop:
            return wanted
        origin = first_hop * hop
        samples = self.track.window(origin, last_hop * hop + length)
        sums = np.concatenate(([0.0], np.cumsum(np.square(samples, dtype=np.float64))))
        begins = np.arange(last_hop - first_hop + 1) * hop
        power = np.round(sums[begins + length] - sums[begins], 9)
        middles = origin + begins + half
        return int(middles[np.lexsort((np.abs(middles - wanted), power))[0]])

    def _note(self, changes: Sequence[SpeechChangeLike]) -> None:
        for change in changes:
            at = self.begin + change.at_sample
            if change.speaking:
                self._onset = at
            elif self._onset is not None:
                self._spans.append((self._onset, at))
                self._onset = None

    def _spoken(self, samples: Samples, end: int) -> tuple[tuple[float, float], ...]:
        if self._vad is not None:
            self._note(self._vad.finish())
            spans = [(low, min(high, end)) for low, high in self._spans if low < end]
        else:
            audible = len(samples) > 0 and float(np.abs(samples).max()) >= _AUDIBLE
            spans = [(self.begin, end)] if audible else []
        return tuple((low / SAMPLE_RATE, high / SAMPLE_RATE) for low, high in spans)
