"""Watching one source: capture in a thread of its own, everything after it in order in the caller's thread.

capture ─Frame, Segment→ channel ─→ see / close ─Evidence→ resolve ─→ describe ─→ commit
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from edge.app.channel import Channel
from edge.app.pauses import PauseBook
from edge.app.remember import Rememberer
from edge.app.rooms import Rooms
from edge.capture import open_source, segments, worth_analysing
from edge.clock import monotonic
from edge.errors import InferenceError, UserError
from edge.types.drafts import CommitDraft, Committed
from edge.types.media import Frame, Mode, Segment, SourceInfo
from edge.types.records import EntityKind

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class WatchReport:
    """What a watch did; it grows while the watch runs."""

    info: SourceInfo
    resumed_at: float = 0.0  # s of media time at which this run began
    position: float = 0.0  # s of media time that is remembered
    segments: int = 0  # remembered by this run
    skipped: int = 0  # static and silent
    frames_decoded: int = 0
    frames_looked_at: int = 0
    frames_pruned: int = 0
    frames_dropped: int = 0
    faults: int = 0  # packets and frames that could not be decoded
    failures: int = 0  # frames and segments that a network could not work on
    people: set[int] = field(default_factory=set)  # entities that were seen
    voices: set[int] = field(default_factory=set)  # entities that were only heard
    new_people: int = 0
    utterances: int = 0
    elapsed: float = 0.0  # s
    already_finished: bool = False
    interrupted: bool = False

    @property
    def speed(self) -> float:
        """Media seconds a second."""
        return (self.position - self.resumed_at) / self.elapsed if self.elapsed > 0 else 0.0


class Watch:
    """One source being watched into the memory."""

    def __init__(
        self,
        rooms: Rooms,
        uri: str,
        *,
        camera: str | None = None,
        start: float | None = None,
        mode: Mode = Mode.OFFLINE_QUALITY,
    ) -> None:
        self._rooms = rooms
        self._rememberer = Rememberer(rooms.store, rooms.identifier, rooms.embedder)
        self._mode = mode
        self._stop = threading.Event()
        settings = rooms.settings.capture
        self._source = open_source(uri, camera=camera, start=start, settings=settings)
        self.channel = Channel(settings.queue_items, mode)
        self.report = WatchReport(self._source.info)

    @property
    def info(self) -> SourceInfo:
        """What is being watched."""
        return self._source.info

    def stop(self) -> None:
        """Finish the open segment and end; safe from a signal handler, idempotent."""
        self.report.interrupted = True
        self._stop.set()

    def run(self, on_progress: Callable[[WatchReport], None] = lambda _report: None) -> WatchReport:
        """Watch until the source ends or `stop` is called; each segment is durable before the next is looked at.

        Raises:
            SourceError: the source cannot be read.
            UserError: it is live, and everything is paused.
            FaultError: the memory cannot be written. What was committed is kept.
        """
        if self._source.live and PauseBook(self._rooms.settings.home).pause is not None:
            self._source.close()
            raise UserError("Everything is paused: nothing live is remembered; `reflectworld resume` goes on.")
        with self._rooms.store.claim(f"camera {self.info.camera}", f"reflectworld watch {self.info.uri}"):
            return self._run(on_progress)

    def _run(self, on_progress: Callable[[WatchReport], None]) -> WatchReport:
        began = monotonic()
        known = self._rooms.store.source(self.info.camera, self.info.fingerprint, self.info.start)
        if known is not None and known.finished:
            self.report.already_finished = True
            self.report.position = self.report.resumed_at = known.position
            self._source.close()
            return self.report
        resume_at, next_segment = (known.position, known.next_segment) if known else (0.0, 0)
        self.report.resumed_at = self.report.position = resume_at
        capture = threading.Thread(
            target=self._capture, args=(resume_at, next_segment), name=f"capture:{self.info.camera}", daemon=True
        )
        capture.start()
        try:
            while (item := self.channel.get()) is not None:
                if isinstance(item, Frame):
                    self._see(item)
                else:
                    self._remember(item)
                self.report.elapsed = monotonic() - began
                on_progress(self.report)
        finally:
            self._stop.set()
            self.channel.close()
            capture.join()
            self._source.close()
            self._rooms.perceiver.discard()
            self.report.elapsed = monotonic() - began
        return self.report

    def _see(self, frame: Frame) -> None:
        try:
            self._rooms.perceiver.see(frame)
        except InferenceError as error:
            # A frame that a network chokes on leaves no trace; the watch goes on.
            self.report.failures += 1
            log.warning("frame passed over", camera=self.info.camera, at=frame.at, reason=str(error))

    def _capture(self, resume_at: float, next_segment: int) -> None:
        failure: BaseException | None = None
        try:
            for item in segments(
                self._source,
                vad=self._rooms.voice_activity,
                settings=self._rooms.settings.capture,
                mode=self._mode,
                resume_at=resume_at,
                next_segment=next_segment,
                stop=self._stop,
            ):
                if not self.channel.put(item):
                    break
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits for it
            failure = error
        finally:
            self.channel.close(failure)

    def _remember(self, segment: Segment) -> None:
        report, rooms = self.report, self._rooms
        report.frames_decoded += segment.counts.decoded
        report.frames_looked_at += segment.counts.chosen
        report.frames_pruned += segment.counts.pruned
        report.frames_dropped += segment.counts.dropped
        report.faults += segment.counts.faults + segment.audio_faults
        if not worth_analysing(segment):
            rooms.perceiver.discard()
            self._rememberer.skip(segment, self.info)
            report.skipped += 1
        else:
            try:
                evidence = rooms.perceiver.close(segment)
            except InferenceError as error:
                report.failures += 1
                log.warning("segment passed over", camera=segment.camera, start=segment.start, reason=str(error))
                self._rememberer.skip(segment, self.info)
            else:
                remembered = self._rememberer.remember(segment, self.info, evidence, self._mode)
                self._count(remembered.draft, remembered.committed)
        report.position = segment.end - self.info.start

    def _count(self, draft: CommitDraft, committed: Committed) -> None:
        report = self.report
        report.segments += 1
        report.utterances += len(draft.utterances)
        report.new_people += sum(entity.kind is EntityKind.PERSON for entity in draft.entities)
        for seen in draft.observations:
            if seen.entity is not None:
                kind = report.voices if seen.label == "voice" else report.people
                kind.add(committed.entities.get(seen.entity, seen.entity))
