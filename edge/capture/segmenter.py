"""The segmenter: a stream becomes segments of one activity each, and a few chosen frames in each.

Invariants:

* Everything that decides about a segment begins anew at its start. A segment and its frames are a function of its start
  and of the stream; so a run that resumes at any boundary gives what an uninterrupted run gives, bit for bit.
* Segments do not overlap; each picture belongs to the segment in which its time lies; each sample of sound belongs to one
  segment. Sound is parted at the quietest instant near the boundary, so that words stay whole.
* Decisions fall in the order of media time: sound up to a picture's time comes before the picture.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from edge.capture.cuts import FLASH_FRAMES, NEIGHBOURS, Grey, difference, is_cut, returns, worst_tile
from edge.capture.feed import Feed, Lookahead
from edge.capture.picture import Picture
from edge.capture.sound import SoundTrack
from edge.capture.timestamps import QUANTUM_S, quantised
from edge.clock import monotonic
from edge.settings import CaptureSettings
from edge.types.media import SAMPLE_RATE, CutReason, Frame, Samples, Segment, SegmentCounts, SourceInfo, Span

_BLOCK = SAMPLE_RATE // 10  # sound is looked at in steps of this many samples
_PART_S = 0.3  # sound is parted within this much of a boundary, s
_LATE_S = 1.5  # a segment that would be too long amid speech may end this much earlier, s
_QUIET = (480, 160)  # length and hop of the stretches that are compared to find a quiet instant, samples (30 and 10 ms)
_TAIL_S = 0.1  # less sound than this after the last boundary joins the segment before it, s
_SHORT_S = 1.0  # a source that ends this much before its announced end was cut short, s
_AUDIBLE = 0.01  # peak above which sound counts as audible where no detector can tell speech, of 1
_PATIENCE_S = 1.0  # pictures of a live source wait this long for late sound, s
_SKIP = 10 * SAMPLE_RATE  # sound before a boundary is decoded and forgotten in steps of this many samples
_KEEP = SAMPLE_RATE  # sound before a segment that stays known, samples: more than twice the reach of `_PART_S`
_EPS = QUANTUM_S / 2


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


@dataclass(slots=True)
class _Open:
    """The open segment; all times are media seconds, all sound positions are samples since media time 0."""

    index: int
    begin: float
    limit: float
    first_of_event: bool
    sound_begin: int
    heard: int  # sound was looked at up to here
    content: float  # up to here there was a picture or real sound
    next_sample: float
    limit_settled: bool = False
    picture_end: float | None = None
    previous: Grey | None = None
    first: Grey | None = None
    chosen_grey: Grey | None = None
    chosen_tiles: Grey | None = None
    steps: deque[float] = field(default_factory=lambda: deque(maxlen=NEIGHBOURS))
    flash: Grey | None = None
    flash_left: int = 0
    changed: bool = False
    decoded: int = 0
    chosen: int = 0
    pruned: int = 0
    dropped: int = 0
    faults: int = 0
    onset: int | None = None
    spans: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Boundary:
    at: float
    reason: CutReason


class Segmenter:
    """Cuts one feed into segments."""

    def __init__(
        self,
        info: SourceInfo,
        feed: Feed,
        vad: VoiceActivityLike | None,
        settings: CaptureSettings,
        stop: threading.Event,
        progress: Callable[[float], None],
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            info: the source.
            feed: its pictures and sound.
            vad: hears where somebody speaks; None: unknown, and audible sound counts as speech.
            settings: thresholds.
            stop: when set, the open segment is closed and the iteration ends.
            progress: is told the media time that was reached, s.
        """
        self._info = info
        self._feed = feed
        self._ahead = Lookahead(feed)
        self._sound: SoundTrack | None = feed.sound
        self._vad = vad if feed.sound is not None else None
        self._settings = settings
        self._stop = stop
        self._progress = progress

    def run(self, resume_at: float, next_segment: int) -> Iterator[Frame | Segment]:
        """Frames and segments from a boundary on.

        Args:
            resume_at: media s; 0.0, or where a segment ended in an earlier run.
            next_segment: the index of the first segment.
        """
        begin = quantised(max(0.0, resume_at))
        sound_begin = 0
        first = next_segment == 0 and not begin
        if begin:
            self._skip_to(begin)
            self._skip_sound_to(begin)
            sound_begin = self._part(begin)
        while True:
            segment = self._open(begin, sound_begin, next_segment, first=first)
            if segment is None:
                return
            closed = yield from self._fill(segment)
            if closed is None:
                return
            yield closed
            if closed.reason is CutReason.INTERRUPTED:
                return
            begin = quantised(closed.end - self._info.start)
            if self._sound is not None:
                sound_begin = segment.sound_begin + (0 if closed.audio is None else len(closed.audio))
            next_segment, first = next_segment + 1, False

    # -- opening ----------------------------------------------------------------------------------------------------

    def _skip_to(self, begin: float) -> None:
        while not self._stop.is_set():
            head = self._ahead.head()
            if head is None or head.time >= begin - _EPS:
                return
            self._progress(head.time)
            self._ahead.take()

    def _skip_sound_to(self, begin: float) -> None:
        """Decode and forget sound, in steps, so that memory stays bounded."""
        if self._sound is None:
            return
        target, at = round(begin * SAMPLE_RATE), 0
        while at < target and not self._stop.is_set():
            at = min(target, at + _SKIP)
            self._sound.forget(at - _SKIP)
            if self._sound.reach(at) < at:
                return

    def _open(self, begin: float, sound_begin: int, index: int, *, first: bool) -> _Open | None:
        """Find where content goes on; None: nowhere, or stopped."""
        while not self._stop.is_set():
            head = self._ahead.head()
            heard = self._sound.next_heard(sound_begin) if self._sound is not None else None
            starts = [
                at for at in (head and head.time, None if heard is None else heard / SAMPLE_RATE) if at is not None
            ]
            if starts:
                break
            if self._ahead.ended and (self._sound is None or self._sound.ended):
                return None
        else:
            return None
        after_gap = min(starts) - begin > self._settings.event_gap_s
        if after_gap:
            begin = quantised(min(starts))
            sound_begin = max(sound_begin, math.floor(begin * SAMPLE_RATE))
        if self._vad is not None:
            self._vad.reset()
        if self._sound is not None:
            self._sound.forget(sound_begin - _KEEP)
        limit = quantised(begin + self._settings.segment_max_s)
        return _Open(index, begin, limit, first or after_gap, sound_begin, sound_begin, begin, begin)

    # -- the open segment -------------------------------------------------------------------------------------------

    def _fill(self, segment: _Open) -> Generator[Frame, None, Segment | None]:
        boundary: _Boundary | None = None
        while boundary is None:
            if self._stop.is_set():
                return self._interrupted(segment)
            head = self._ahead.head()
            hears = self._hears(segment, head)
            if hears is None:
                continue
            if not hears and head is None:
                if not self._ahead.ended:
                    continue
                boundary = _Boundary(self._end_of_source(segment), CutReason.END_OF_SOURCE)
                break
            moment = (segment.heard + _BLOCK) / SAMPLE_RATE if hears or head is None else head.time
            boundary = self._too_long(segment, moment, picture=not hears)
            if boundary is not None:
                break
            self._progress(moment)
            if hears:
                boundary = self._hear(segment)
            elif head is not None:
                boundary = self._cut(segment, head)
                if boundary is None:
                    frame = self._look(segment, self._ahead.take())
                    if frame is not None:
                        yield frame
        return self._closed(segment, boundary)

    def _hears(self, segment: _Open, head: Picture | None) -> bool | None:
        """Whether a block of sound comes before the next picture; None: ask again (a live source has not sent it yet)."""
        if self._sound is None:
            return False
        upto = segment.heard + _BLOCK
        if head is not None and upto / SAMPLE_RATE > head.time:
            return False
        if self._sound.reach(upto) >= upto:
            return True
        if self._sound.ended:
            # Silence goes on as long as there are pictures.
            return head is not None
        return False if head is not None and monotonic() - head.captured > _PATIENCE_S else None

    def _too_long(self, segment: _Open, moment: float, *, picture: bool) -> _Boundary | None:
        settings = self._settings
        if segment.content > segment.begin and moment - segment.content > settings.event_gap_s:
            return _Boundary(quantised(segment.content), CutReason.MAX_LENGTH)
        if not segment.limit_settled and moment >= segment.begin + settings.segment_max_s - _LATE_S:
            segment.limit_settled = True
            if self._sound is not None and self._vad is not None and self._vad.speaking and not self._feed.live:
                segment.limit = self._quiet(segment.limit - _LATE_S, segment.limit, segment.limit) / SAMPLE_RATE
        if moment > segment.limit + _EPS or (picture and moment >= segment.limit - _EPS):
            return _Boundary(quantised(segment.limit), CutReason.MAX_LENGTH)
        return None

    def _hear(self, segment: _Open) -> _Boundary | None:
        assert self._sound is not None  # noqa: S101  # _hears has said so; tells mypy
        upto = segment.heard + _BLOCK
        real = self._sound.heard_until(segment.heard, upto)
        if real is not None:
            segment.content = max(segment.content, real / SAMPLE_RATE)
        self._listen(segment, upto)
        vad, settings = self._vad, self._settings
        at = segment.heard / SAMPLE_RATE
        if vad is not None and vad.silence_s >= settings.speech_end_s and at - segment.begin >= settings.segment_min_s:
            return _Boundary(quantised(at), CutReason.SPEECH_END)
        return None

    def _listen(self, segment: _Open, upto: int) -> None:
        """Let the detector hear up to a sample."""
        if self._vad is not None and self._sound is not None and upto > segment.heard:
            self._note(segment, self._vad.feed(self._sound.window(segment.heard, upto)))
        segment.heard = max(segment.heard, upto)

    @staticmethod
    def _note(segment: _Open, changes: Sequence[SpeechChangeLike]) -> None:
        for change in changes:
            at = segment.sound_begin + change.at_sample
            if change.speaking:
                segment.onset = at
            elif segment.onset is not None:
                segment.spans.append((segment.onset, at))
                segment.onset = None

    def _cut(self, segment: _Open, head: Picture) -> _Boundary | None:
        if segment.previous is None or segment.first is None:
            return None
        settings = self._settings
        here = difference(segment.previous, head.cut_grey)
        if here > settings.cut_threshold and self._begins_scene(segment, head, here):
            return _Boundary(head.time, CutReason.SCENE_CUT)
        if head.time < segment.next_sample - _EPS or head.time - segment.begin < settings.segment_min_s:
            return None
        changed = difference(segment.first, head.cut_grey) > settings.change_threshold
        lasting, segment.changed = changed and segment.changed, changed
        if lasting and not (self._vad is not None and self._vad.speaking):
            return _Boundary(head.time, CutReason.VISUAL_CHANGE)
        return None

    def _begins_scene(self, segment: _Open, head: Picture, here: float) -> bool:
        assert segment.previous is not None  # noqa: S101  # _cut has seen to it; tells mypy
        settings = self._settings
        greys = [picture.cut_grey for picture in self._ahead.upto(1 + NEIGHBOURS)]
        after = [difference(one, other) for one, other in zip(greys, greys[1:], strict=False)]
        if not is_cut(segment.steps, here, after, threshold=settings.cut_threshold, ratio=settings.cut_ratio):
            return False
        if segment.flash is not None and returns(segment.flash, [head.cut_grey], settings.cut_threshold):
            segment.flash = None
            return False
        following = [picture.cut_grey for picture in self._ahead.upto(1 + FLASH_FRAMES)[1:]]
        if returns(segment.previous, following, settings.cut_threshold):
            segment.flash, segment.flash_left = segment.previous, FLASH_FRAMES
            return False
        return True

    def _look(self, segment: _Open, picture: Picture) -> Frame | None:
        """Take a picture into the segment; the frame if it is chosen."""
        grey = picture.cut_grey
        if segment.previous is not None:
            segment.steps.append(difference(segment.previous, grey))
        if segment.first is None:
            segment.first = grey
        segment.previous = grey
        segment.flash_left -= 1
        if segment.flash_left < 0:
            segment.flash = None
        segment.decoded += 1
        segment.faults += picture.faults
        segment.dropped += picture.dropped
        segment.picture_end = picture.end
        segment.content = max(segment.content, picture.end)
        if picture.time < segment.next_sample - _EPS:
            return None
        fps = self._settings.sample_fps
        segment.next_sample = segment.begin + (math.floor((picture.time - segment.begin) * fps + _EPS) + 1) / fps
        tiles = picture.tile_grey()
        change = 255.0
        if segment.chosen_tiles is not None and segment.chosen_grey is not None:
            if worst_tile(segment.chosen_tiles, tiles) < self._settings.duplicate_threshold:
                segment.pruned += 1
                return None
            change = difference(segment.chosen_grey, grey)
        segment.chosen += 1
        segment.chosen_tiles, segment.chosen_grey = tiles, grey
        image = picture.image(self._settings.max_side_px)
        return Frame(image, self._info.start + picture.time, picture.index, picture.captured, change)

    # -- closing ----------------------------------------------------------------------------------------------------

    def _interrupted(self, segment: _Open) -> Segment | None:
        heard = segment.heard / SAMPLE_RATE if segment.heard > segment.sound_begin else segment.begin
        at = max(heard, segment.picture_end or segment.begin)
        at = quantised(min(at, segment.limit))
        if at <= segment.begin:
            return None
        return self._closed(segment, _Boundary(at, CutReason.INTERRUPTED))

    def _end_of_source(self, segment: _Open) -> float:
        """Where the source ends: with its last picture, unless sound goes on for long after it."""
        pictures = segment.picture_end or segment.begin
        sound = self._sound.end / SAMPLE_RATE if self._sound is not None else 0.0
        end = sound if segment.picture_end is None or sound > pictures + _TAIL_S else pictures
        return quantised(max(segment.begin, min(end, segment.begin + self._settings.segment_max_s)))

    def _closed(self, segment: _Open, boundary: _Boundary) -> Segment:
        at, reason = boundary.at, boundary.reason
        sound = self._sound
        if reason is not CutReason.INTERRUPTED and not self._feed.live and self._ahead.head() is None:
            # What is left may be too little for a segment of its own.
            tail = round((at + _TAIL_S) * SAMPLE_RATE)
            if sound is None or (sound.reach(tail) < tail and sound.ended):
                at, reason = self._end_of_source(segment), CutReason.END_OF_SOURCE
        audio: Samples | None = None
        audio_faults = 0
        spans: tuple[Span, ...] = ()
        if sound is not None:
            if reason is CutReason.END_OF_SOURCE:
                end = max(sound.end, segment.sound_begin)
            elif self._feed.live and reason is CutReason.MAX_LENGTH:
                end = self._quiet(at - _LATE_S, at, at)
            else:
                end = self._part(at)
            end = max(end, segment.sound_begin)
            self._listen(segment, end)
            audio = sound.window(segment.sound_begin, end)
            audio_faults = sound.faults(segment.sound_begin, end)
            spans = self._speech(segment, audio, end)
        faults = segment.faults + audio_faults
        if reason is CutReason.END_OF_SOURCE and at < (self._info.duration or 0.0) - _SHORT_S:
            faults += 1
        self._progress(at)
        counts = SegmentCounts(segment.decoded, segment.chosen, segment.pruned, segment.dropped, faults)
        start = self._info.start
        return Segment(
            camera=self._info.camera,
            source=self._info.fingerprint,
            index=segment.index,
            start=start + segment.begin,
            end=start + at,
            reason=reason,
            first_of_event=segment.first_of_event,
            still=segment.chosen <= 1,
            audio=audio,
            audio_start=start + segment.sound_begin / SAMPLE_RATE,
            speech=spans,
            audio_faults=audio_faults,
            counts=counts,
        )

    def _speech(self, segment: _Open, audio: Samples, end: int) -> tuple[Span, ...]:
        start = self._info.start
        if self._vad is None:
            if not len(audio) or float(np.abs(audio).max()) < _AUDIBLE:
                return ()
            return (Span(start + segment.sound_begin / SAMPLE_RATE, start + end / SAMPLE_RATE),)
        self._note(segment, self._vad.finish())
        clipped = ((low, min(high, end)) for low, high in segment.spans if low < end)
        return tuple(Span(start + low / SAMPLE_RATE, start + high / SAMPLE_RATE) for low, high in clipped)

    def _part(self, at: float) -> int:
        """The sample at which sound is parted for a boundary: a function of the sound and the boundary alone."""
        return self._quiet(at - _PART_S, at + _PART_S, at)

    def _quiet(self, low: float, high: float, near: float) -> int:
        """The middle of the quietest 30 ms whose middle lies within low..high, the nearest to `near` among equals."""
        wanted = round(near * SAMPLE_RATE)
        if self._sound is None:
            return wanted
        length, hop = _QUIET
        half = length // 2
        last = math.floor(high * SAMPLE_RATE)
        known = self._sound.reach(last + half)
        if self._feed.live:
            last = min(last, known - half)
        first_hop = max(0, math.ceil((low * SAMPLE_RATE - half) / hop))
        last_hop = (last - half) // hop
        if last_hop < first_hop:
            return wanted
        origin = first_hop * hop
        samples = self._sound.window(origin, last_hop * hop + length)
        sums = np.concatenate(([0.0], np.cumsum(np.square(samples, dtype=np.float64))))
        begins = np.arange(last_hop - first_hop + 1) * hop
        power = np.round(sums[begins + length] - sums[begins], 9)
        middles = origin + begins + half
        best = np.lexsort((np.abs(middles - wanted), power))[0]
        return int(middles[best])
