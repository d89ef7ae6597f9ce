"""One source running: three threads with bounded channels between them.

capture ─Frame, Segment→ channel ─→ see (the caller's thread) ─Segment, its Perceiver→ hand-over ─→ remember ─→ commit

The open segment is looked at by one Perceiver while another still concludes the one before it, so that transcribing
speech never holds up the live view.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import structlog

from edge.app.channel import Channel
from edge.app.remember import Remembered, Rememberer
from edge.app.rooms import Rooms
from edge.capture import Source, segments, worth_analysing
from edge.clock import monotonic, utc_now
from edge.errors import InferenceError
from edge.perceive import Perceiver, Sight
from edge.types.media import SAMPLE_RATE, Frame, Mode, Segment

log = structlog.get_logger(__name__)

_LOOK_FIRST_S = 0.5  # a closed segment is concluded this much later at most, s (measured: tools.bench.glass)
_PERCEIVERS = 3  # one sees, one waits with its segment, one concludes


@dataclass(slots=True)
class Tally:
    """What the runs of one camera came to."""

    segments: int = 0  # remembered
    skipped: int = 0  # static and silent
    dropped: int = 0  # frames, to keep up
    faults: int = 0  # packets, frames and looks that failed
    oldest: float = 0.0  # greatest age of a live frame when its look began, s


class Senses:
    """The networks of one camera: Perceivers in turn, and an ear. Kept from run to run."""

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self._free: queue.SimpleQueue[Perceiver] = queue.SimpleQueue()
        for _ in range(_PERCEIVERS):
            self._free.put(rooms.another_perceiver())
        self.voice_activity = rooms.another_voice_activity()

    def take(self) -> Perceiver:
        """A Perceiver that nobody uses; waits for one."""
        return self._free.get()

    def give(self, perceiver: Perceiver) -> None:
        """Give a Perceiver back."""
        perceiver.discard()
        self._free.put(perceiver)


def cut_off(segment: Segment, at: float) -> Segment | None:
    """A segment without all that came after an instant (UTC POSIX seconds); None: nothing of it is left. Pure."""
    if segment.start >= at:
        return None
    end = min(segment.end, at)
    audio = segment.audio
    if audio is not None:
        audio = audio[: max(0, int((end - segment.audio_start) * SAMPLE_RATE))].copy()
    speech = tuple(replace(one, end=min(one.end, end)) for one in segment.speech if one.start < end)
    return replace(segment, end=end, audio=audio, speech=speech)


class Pipeline:
    """One run of one source."""

    def __init__(
        self,
        rooms: Rooms,
        rememberer: Rememberer,
        senses: Senses,
        source: Source,
        mode: Mode,
        tally: Tally,
        *,
        on_sight: Callable[[Frame, Sight, Mapping[str, str]], None],
        on_remembered: Callable[[Remembered], None],
    ) -> None:
        self.source = source
        self._rooms = rooms
        self._rememberer = rememberer
        self._senses = senses
        self._mode = mode
        self._tally = tally
        self._on_sight = on_sight
        self._on_remembered = on_remembered
        self._stop = threading.Event()
        self._cut: float | None = None  # monotonic seconds after which nothing that is live is kept
        self._clock = 0.0  # UTC minus monotonic seconds of the source's pictures
        self._names: dict[str, str] = {}  # of the open segment, by anchor
        self._names_first = False  # somebody was called by name up to the last cut: the first boxes wait for names
        self._failure: BaseException | None = None
        self._looked = threading.Event()  # at the open segment
        capture = rooms.settings.capture
        self.channel = Channel(capture.queue_items, mode, capture.live_max_age_s)
        self.handover: queue.Queue[tuple[Segment, Perceiver | None] | None] = queue.Queue(_PERCEIVERS - 2)
        self.last_end = source.info.start  # UTC up to which it was captured

    def stop(self, cut: float | None = None) -> None:
        """Finish the open segment and end; from any thread, idempotent.

        Args:
            cut: monotonic seconds: of a live source nothing that came later is kept, neither pictures nor sound.
        """
        if cut is not None and self.source.live and self._cut is None:
            self._cut = cut
        self._stop.set()

    def forget_names(self) -> None:
        """Call nobody in view by a name until they are known again; from any thread."""
        self._names = {}

    def run(self) -> None:
        """Watch until the source ends or `stop` is called; a recording goes on where an earlier run stopped.

        Raises:
            ReflectWorldError: the source cannot be read, a network failed at the end of a segment, or the memory cannot
                be written. What was committed is kept.
        """
        info, store = self.source.info, self._rooms.store
        with store.claim(f"camera {info.camera}", "reflectworld run"):
            known = None if self.source.live else store.source(info.camera, info.fingerprint, info.start)
            if known is not None and known.finished:
                self.source.close()
                return
            resume_at, next_segment = (known.position, known.next_segment) if known else (0.0, 0)
            threads = (
                threading.Thread(
                    target=self._capture, args=(resume_at, next_segment), name=f"capture:{info.camera}", daemon=True
                ),
                threading.Thread(target=self._remember, name=f"remember:{info.camera}", daemon=True),
            )
            for thread in threads:
                thread.start()
            try:
                self._see()
            finally:
                self._stop.set()
                self._looked.set()
                self.channel.close()
                self.handover.put(None)
                for thread in threads:
                    thread.join()
                self.source.close()
            if self._failure is not None:
                raise self._failure

    # -- the threads ----------------------------------------------------------------------------------------------------

    def _capture(self, resume_at: float, next_segment: int) -> None:
        failure: BaseException | None = None
        try:
            for item in segments(
                self.source,
                vad=self._senses.voice_activity,
                settings=self._rooms.settings.capture,
                mode=self._mode,
                resume_at=resume_at,
                next_segment=next_segment,
                stop=self._stop,
            ):
                kept = self._before_cut(item)
                if kept is None:
                    continue
                if isinstance(kept, Segment):
                    self.last_end = kept.end
                if not self.channel.put(kept):
                    break
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            failure = error
        finally:
            self.channel.close(failure)

    def _before_cut(self, item: Frame | Segment) -> Frame | Segment | None:
        """An item without what came after the cut; None: nothing of it is left."""
        if isinstance(item, Frame):
            self._clock = item.at - item.captured
            return item if self._cut is None or item.captured <= self._cut else None
        if self._cut is None:
            return item
        clock = self._clock or utc_now() - monotonic()  # of sound alone
        return cut_off(item, self._cut + clock)

    def _see(self) -> None:
        perceiver = self._senses.take()
        try:
            while self._failure is None and (item := self.channel.get()) is not None:
                if isinstance(item, Frame):
                    self._look(perceiver, item)
                    self._looked.set()
                    continue
                self._names_first, self._names = bool(self._names), {}
                self._looked.clear()
                if worth_analysing(item):
                    self.handover.put((item, perceiver))
                    perceiver = self._senses.take()
                else:
                    perceiver.discard()
                    self.handover.put((item, None))
        finally:
            self._senses.give(perceiver)

    def _look(self, perceiver: Perceiver, frame: Frame) -> None:
        if self._mode is Mode.LIVE_LATENCY:
            self._tally.oldest = max(self._tally.oldest, monotonic() - frame.captured)
        try:
            sight = perceiver.see(frame)
            # Boxes do not wait for names: a face takes as long again to know. But who was known stays so.
            names_first, self._names_first = self._names_first, False
            if not names_first:
                self._on_sight(frame, sight, self._names)
            named = self._mode is Mode.LIVE_LATENCY and self._name(perceiver)
            if named or names_first:
                self._on_sight(frame, sight, self._names)
        except InferenceError as error:
            if self._mode is not Mode.LIVE_LATENCY:
                raise
            # The frame leaves no trace; the next one is half a second away.
            self._tally.faults += 1
            log.warning("frame.not_seen", camera=self.source.info.camera, error=str(error))

    def _name(self, perceiver: Perceiver) -> bool:
        """What the people in view are called, as far as their faces tell; a name once seen stays for its track.

        Returns:
            Whether that has changed.
        """
        before = dict(self._names)
        for anchor, face in perceiver.faces_now().items():
            name = self._rememberer.who(face, perceiver.face_embedder)
            if name is not None:
                self._names[anchor] = name
        return self._names != before

    def _remember(self) -> None:
        while (work := self.handover.get()) is not None:
            segment, perceiver = work
            if self._mode is Mode.LIVE_LATENCY:
                # What a scene cut brings into view is looked at first: on few cores it would take twice as long beside this.
                self._looked.wait(_LOOK_FIRST_S)
            try:
                # After a failure nothing is committed any more: the next run goes on from the last commit.
                if self._failure is None:
                    self._commit(segment, perceiver)
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
                self._failure = error
                self._stop.set()
            finally:
                if perceiver is not None:
                    self._senses.give(perceiver)

    def _commit(self, segment: Segment, perceiver: Perceiver | None) -> None:
        info, tally = self.source.info, self._tally
        tally.dropped += segment.counts.dropped
        tally.faults += segment.counts.faults + segment.audio_faults
        if perceiver is None:
            self._rememberer.skip(segment, info)
            tally.skipped += 1
            return
        remembered = self._rememberer.remember(segment, info, perceiver.close(segment), self._mode)
        tally.segments += 1
        self._on_remembered(remembered)
