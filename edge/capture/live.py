"""Live sources: a reader thread that never lets a camera wait.

Pictures go into a small slot that keeps the latest (what is dropped is counted); sound goes into a bounded queue that
never drops.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator

import av

from edge.capture import decode, media
from edge.capture.picture import Picture, sane_aspect
from edge.capture.sound import Chunk, Resampler, SoundTrack
from edge.capture.timestamps import MediaClock
from edge.clock import monotonic
from edge.settings import CaptureSettings

_SOUND_CHUNKS = 4096  # bound of the sound queue; more than a minute of the smallest usual packets
_PICTURE_WAIT_S = 0.05  # a picture is waited for this long at a time, s
_SOUND_WAIT_S = 0.02  # sound is waited for this long at a time, s
_LEAP_S = 10.0  # a live stream's own clock that differs more from ours has leapt, s
_PIECES_ITEMS = 16  # slot of a stream that comes in pieces (HLS): its sound may lie half a second behind its pictures
_CLOSE_S = 0.3  # the reader is waited for this long when closing, s; it may be blocked in the network


class LiveFeed:
    """A feed that runs with the clock."""

    live = True

    def __init__(
        self,
        container: av.container.InputContainer,
        video: int | None,
        audio: int | None,
        settings: CaptureSettings,
        *,
        drop: bool,
    ) -> None:
        """Start reading.

        Args:
            container: the opened source; this feed closes it.
            video: index of its picture stream.
            audio: index of its sound stream.
            settings: `queue_items` bounds the slot for pictures.
            drop: whether pictures are dropped rather than waited for.
        """
        self._container = container
        self._video = video
        self._audio = audio
        self._drop = drop
        self._pieces = container.format.name == "hls"
        self._slot_items = _PIECES_ITEMS if self._pieces else max(1, settings.queue_items // 4)
        self._slot: deque[Picture] = deque()
        self._change = threading.Condition()
        self._sound_queue: queue.Queue[Chunk] = queue.Queue(_SOUND_CHUNKS)
        self._closing = threading.Event()
        self._began: float | None = None  # monotonic s of media time 0
        self.received = monotonic()
        self._over = threading.Event()
        self.sound = SoundTrack(self._pull_sound, self._sound_ended) if audio is not None else None
        self._thread = threading.Thread(target=self._read, name="capture-reader", daemon=True)
        self._thread.start()

    @property
    def pictures_ended(self) -> bool:
        """Whether the source has ended and all its pictures were given."""
        with self._change:
            return self._video is None or (self._over.is_set() and not self._slot)

    def pull_picture(self) -> Picture | None:
        """The next picture; None if none came within a moment."""
        if self._video is None:
            return None
        with self._change:
            if not self._slot and not self._over.is_set():
                self._change.wait(_PICTURE_WAIT_S)
            if not self._slot:
                return None
            picture = self._slot.popleft()
            self._change.notify_all()
            return picture

    def close(self) -> None:
        """Stop reading; the reader closes the container once the network lets go of it."""
        self._closing.set()
        with self._change:
            self._slot.clear()
            self._change.notify_all()
        self._thread.join(_CLOSE_S)

    def _pull_sound(self) -> Chunk | None:
        try:
            return self._sound_queue.get(timeout=0 if self._over.is_set() else _SOUND_WAIT_S)
        except queue.Empty:
            return None

    def _sound_ended(self) -> bool:
        return self._over.is_set() and self._sound_queue.empty()

    # -- the reader thread ------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            with self._container:
                self._run()
        finally:
            self._over.set()
            with self._change:
                self._change.notify_all()

    def _run(self) -> None:
        indexes = [index for index in (self._video, self._audio) if index is not None]
        media.select(self._container, *indexes)
        streams = [self._container.streams[index] for index in indexes]
        faults = {index: decode.Faults() for index in indexes}
        reading = decode.Faults()
        clocks: dict[int, MediaClock] = {}
        resampler: Resampler | None = None
        numbers = 0
        for packet in decode.packets(self._container, streams, reading):
            if self._closing.is_set():
                return
            index = packet.stream.index
            faults[index].count += reading.take()
            for frame in decode.decode_packet(packet, faults[index]):
                raw = decode.raw_time(frame, packet.stream)
                # The first frame of either kind sets media time 0 for both.
                origin = next(iter(clocks.values())).origin if clocks else raw or 0.0
                clock = clocks.setdefault(index, MediaClock(origin, None))
                if not self._settle(clock, raw, isinstance(frame, av.VideoFrame)):
                    return
                if isinstance(frame, av.VideoFrame):
                    self._put_picture(frame, packet.stream, clock, numbers, faults[index].take())
                    numbers += 1
                else:
                    resampler = resampler or Resampler(clock)
                    self._put_sound(resampler.feed(frame, raw, None, faults[index].take()))
        if resampler is not None:
            self._put_sound(resampler.flush())

    def _settle(self, clock: MediaClock, raw: float | None, picture: bool) -> bool:
        """Keep a stream's clock near ours, whatever it does; False: closing.

        A picture of a stream that comes in pieces waits until it is due.
        """
        now = monotonic()
        self._began = now if self._began is None else self._began
        if raw is None:
            return True
        lead = clock.lead(raw, now - self._began)
        if not self._pieces and abs(lead) > _LEAP_S:
            clock.shift(-lead)
        return not (self._pieces and picture and lead > 0 and self._closing.wait(min(lead, _LEAP_S)))

    def _put_picture(self, frame: av.VideoFrame, stream: object, clock: MediaClock, number: int, faults: int) -> None:
        step = decode.step_of(frame, stream)
        time = clock.stamp(decode.raw_time(frame, stream), step, None)
        aspect = sane_aspect(stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio)  # type: ignore[attr-defined]
        picture = Picture(frame, aspect, time, step, number, monotonic(), faults)
        self.received = picture.captured
        with self._change:
            while len(self._slot) >= self._slot_items and not self._closing.is_set():
                if self._drop:
                    lost = self._slot.popleft()
                    heir = self._slot[0] if self._slot else picture
                    heir.dropped += lost.dropped + 1
                    heir.faults += lost.faults
                else:
                    self._change.wait(_PICTURE_WAIT_S)
            self._slot.append(picture)
            self._change.notify_all()

    def _put_sound(self, chunks: Iterator[Chunk]) -> None:
        for chunk in chunks:
            if self._video is None:
                self.received = monotonic()
            while not self._closing.is_set():
                try:
                    self._sound_queue.put(chunk, timeout=_PICTURE_WAIT_S)
                    break
                except queue.Full:
                    continue
