"""The segmenter: a stream becomes segments of one activity each, and a few chosen frames in each.

Invariants:

* Everything that decides about a segment begins anew at its start. A segment and its frames are a function of its start
  and of the stream; so a run that resumes at any boundary gives what an uninterrupted run gives, bit for bit.
* Segments do not overlap; each picture belongs to the segment in which its time lies; each sample to one segment.
* Decisions fall in the order of media time: sound up to a picture's time comes before the picture.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass

from edge.capture.feed import Feed, Lookahead
from edge.capture.hearing import Hearing, VoiceActivityLike
from edge.capture.picture import Picture
from edge.capture.timestamps import QUANTUM_S, quantised
from edge.capture.watching import Watching
from edge.clock import monotonic
from edge.settings import CaptureSettings
from edge.types.media import SAMPLE_RATE, CutReason, Frame, Samples, Segment, SegmentCounts, SourceInfo, Span

_BLOCK = SAMPLE_RATE // 10  # sound is looked at in steps of this many samples
_LATE_S = 1.5  # a segment that would be too long amid speech may end this much earlier, s
_TAIL_S = 0.1  # less sound than this after the last boundary joins the segment before it, s
_SHORT_S = 1.0  # a source that ends this much before its announced end was cut short, s
_PATIENCE_S = 1.0  # pictures of a live source wait this long for late sound, s
_EPS = QUANTUM_S / 2


@dataclass(slots=True)
class _Open:
    """The open segment; times are media seconds."""

    index: int
    begin: float
    limit: float  # it ends here at the latest
    first_of_event: bool
    watching: Watching
    content: float  # up to here there was a picture or real sound
    limit_settled: bool = False


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
        self._live = feed.live
        self._ahead = Lookahead(feed)
        self._hearing = Hearing(feed.sound, vad, live=feed.live) if feed.sound is not None else None
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
        first = next_segment == 0 and not begin
        sound_begin = 0
        if begin:
            self._skip_to(begin)
            if self._hearing is not None:
                self._hearing.skip_to(begin, self._stop.is_set)
                sound_begin = self._hearing.part(begin)
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
            if self._hearing is not None:
                sound_begin = self._hearing.end
            next_segment, first = next_segment + 1, False

    # -- opening ----------------------------------------------------------------------------------------------------

    def _skip_to(self, begin: float) -> None:
        while not self._stop.is_set():
            head = self._ahead.head()
            if head is None or head.time >= begin - _EPS:
                return
            self._progress(head.time)
            self._ahead.take()

    def _open(self, begin: float, sound_begin: int, index: int, *, first: bool) -> _Open | None:
        """Find where content goes on; None: nowhere, or stopped."""
        hearing = self._hearing
        starts: list[float] = []
        while not starts:
            if self._stop.is_set():
                return None
            head = self._ahead.head()
            heard = hearing.track.next_heard(sound_begin) if hearing is not None else None
            starts += [head.time] if head is not None else []
            starts += [heard / SAMPLE_RATE] if heard is not None else []
            if not starts and self._ahead.ended and (hearing is None or hearing.track.ended):
                return None
        after_gap = min(starts) - begin > self._settings.event_gap_s
        if after_gap:
            begin = quantised(min(starts))
            sound_begin = max(sound_begin, math.floor(begin * SAMPLE_RATE))
        if hearing is not None:
            hearing.open(sound_begin)
        limit = quantised(begin + self._settings.segment_max_s)
        watching = Watching(begin, self._settings, live=self._live)
        return _Open(index, begin, limit, first or after_gap, watching, begin)

    # -- the open segment -------------------------------------------------------------------------------------------

    def _fill(self, segment: _Open) -> Generator[Frame, None, Segment | None]:
        boundary: _Boundary | None = None
        while boundary is None:
            if self._stop.is_set():
                return self._interrupted(segment)
            head = self._ahead.head()
            hears = self._hears(head)
            if hears is None or (not hears and head is None and not self._ahead.ended):
                continue  # a live source has not sent it yet
            if hears:
                boundary = self._hear(segment)
            elif head is None:
                boundary = _Boundary(self._end_of_source(segment), CutReason.END_OF_SOURCE)
            else:
                boundary = self._too_long(segment, head.time, picture=True) or self._cut(segment, head)
                frame = self._look(segment, self._ahead.take()) if boundary is None else None
                if frame is not None:
                    yield frame
        return self._closed(segment, boundary)

    def _hears(self, head: Picture | None) -> bool | None:
        """Whether a block of sound comes before the next picture; None: ask again (live, not sent yet)."""
        if self._hearing is None:
            return False
        track, upto = self._hearing.track, self._hearing.heard + _BLOCK
        if head is not None and upto / SAMPLE_RATE > head.time:
            return False
        if track.reach(upto) >= upto:
            return True
        if track.ended:
            # Silence goes on as long as there are pictures.
            return head is not None
        return False if head is not None and monotonic() - head.captured > _PATIENCE_S else None

    def _hear(self, segment: _Open) -> _Boundary | None:
        assert self._hearing is not None  # noqa: S101  # _hears has said so; tells mypy
        upto = self._hearing.heard + _BLOCK
        at = upto / SAMPLE_RATE
        boundary = self._too_long(segment, at, picture=False)
        if boundary is not None:
            return boundary
        real = self._hearing.listen(upto)
        segment.content = segment.content if real is None else max(segment.content, real)
        self._progress(at)
        settings = self._settings
        if self._hearing.silence_s >= settings.speech_end_s and at - segment.begin >= settings.segment_min_s:
            return _Boundary(quantised(at), CutReason.SPEECH_END)
        return None

    def _too_long(self, segment: _Open, moment: float, *, picture: bool) -> _Boundary | None:
        """Whether the segment ends before something that happens at `moment`."""
        settings, hearing = self._settings, self._hearing
        if segment.content > segment.begin and moment - segment.content > settings.event_gap_s:
            return _Boundary(quantised(segment.content), CutReason.MAX_LENGTH)
        if not segment.limit_settled and moment >= segment.begin + settings.segment_max_s - _LATE_S:
            segment.limit_settled = True
            if hearing is not None and hearing.speaking and not self._live:
                segment.limit = quantised(hearing.part(segment.limit, back=_LATE_S, ahead=0.0) / SAMPLE_RATE)
        if moment > segment.limit + _EPS or (picture and moment >= segment.limit - _EPS):
            return _Boundary(segment.limit, CutReason.MAX_LENGTH)
        return None

    def _cut(self, segment: _Open, head: Picture) -> _Boundary | None:
        if segment.watching.begins_scene(head, self._ahead):
            return _Boundary(head.time, CutReason.SCENE_CUT)
        if segment.watching.has_changed(head) and not (self._hearing is not None and self._hearing.speaking):
            return _Boundary(head.time, CutReason.VISUAL_CHANGE)
        return None

    def _look(self, segment: _Open, picture: Picture) -> Frame | None:
        """Take a picture into the segment; the frame if it is chosen."""
        change = segment.watching.take(picture)
        segment.content = max(segment.content, picture.end)
        self._progress(picture.time)
        if change is None:
            return None
        image = picture.image(self._settings.max_side_px)
        return Frame(
            image, self._info.start + picture.time, picture.index, picture.captured, change, segment.watching.news
        )

    # -- closing ----------------------------------------------------------------------------------------------------

    def _interrupted(self, segment: _Open) -> Segment | None:
        """Close at the last instant that was taken in; None if there was none."""
        hearing = self._hearing
        heard = hearing.heard / SAMPLE_RATE if hearing is not None and hearing.heard > hearing.begin else segment.begin
        at = quantised(min(max(heard, segment.watching.end or segment.begin), segment.limit))
        return self._closed(segment, _Boundary(at, CutReason.INTERRUPTED)) if at > segment.begin else None

    def _end_of_source(self, segment: _Open) -> float:
        """Where the source ends: with its last picture, unless sound goes on for long after it."""
        pictures = segment.watching.end
        end = segment.begin if pictures is None else pictures
        if self._hearing is not None:
            sound = self._hearing.track.end / SAMPLE_RATE
            end = sound if pictures is None or sound > pictures + _TAIL_S else pictures
        return quantised(max(segment.begin, min(end, segment.begin + self._settings.segment_max_s)))

    def _closed(self, segment: _Open, boundary: _Boundary) -> Segment:
        hearing, watching, start = self._hearing, segment.watching, self._info.start
        if self._nothing_left_after(boundary):
            boundary = _Boundary(self._end_of_source(segment), CutReason.END_OF_SOURCE)
        at, reason = boundary.at, boundary.reason
        audio: Samples | None = None
        audio_start, audio_faults = segment.begin, 0
        spans: tuple[tuple[float, float], ...] = ()
        if hearing is not None:
            audio_start = hearing.begin / SAMPLE_RATE
            audio, spans, audio_faults = hearing.close(self._sound_end(hearing, boundary))
        faults = watching.faults + audio_faults
        if reason is CutReason.END_OF_SOURCE and at < (self._info.duration or 0.0) - _SHORT_S:
            faults += 1
        self._progress(at)
        return Segment(
            camera=self._info.camera,
            source=self._info.fingerprint,
            index=segment.index,
            start=start + segment.begin,
            end=start + at,
            reason=reason,
            first_of_event=segment.first_of_event,
            still=watching.chosen <= 1,
            audio=audio,
            audio_start=start + audio_start,
            speech=tuple(Span(start + low, start + high) for low, high in spans),
            audio_faults=audio_faults,
            counts=SegmentCounts(watching.decoded, watching.chosen, watching.pruned, watching.dropped, faults),
        )

    def _nothing_left_after(self, boundary: _Boundary) -> bool:
        """Whether what follows is too little for a segment of its own."""
        if self._live or boundary.reason is CutReason.INTERRUPTED or self._ahead.head() is not None:
            return False
        if self._hearing is None:
            return True
        tail = round((boundary.at + _TAIL_S) * SAMPLE_RATE)
        return self._hearing.track.reach(tail) < tail and self._hearing.track.ended

    def _sound_end(self, hearing: Hearing, boundary: _Boundary) -> int:
        if boundary.reason is CutReason.END_OF_SOURCE:
            end = hearing.track.end
        elif self._live and boundary.reason is CutReason.MAX_LENGTH:
            end = hearing.part(boundary.at, back=_LATE_S, ahead=0.0)
        else:
            end = hearing.part(boundary.at)
        return max(end, hearing.begin)
