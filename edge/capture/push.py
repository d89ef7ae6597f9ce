"""Sources that are fed from outside: by a publisher (WebRTC), or by a thread of ours that makes pictures.

Invariants:

* Pictures go into a small slot that keeps the latest; what is dropped is counted. The one who pushes never waits.
* Sound is kept for minutes and never dropped before that; what is lost beyond is counted as a fault.
* Time is ours, not the sender's: the monotonic second of receipt since the first. It never goes backwards.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from typing import Protocol

import av
import numpy as np
import structlog

from edge.capture.feed import Feed
from edge.capture.handle import Source, StartFrom
from edge.capture.picture import Picture
from edge.capture.sound import Chunk, SoundTrack
from edge.capture.timestamps import QUANTUM_S, quantised
from edge.clock import monotonic, utc_now
from edge.settings import CaptureSettings
from edge.types.media import SAMPLE_RATE, Image, Mode, Samples, SourceInfo, SourceKind

log = structlog.get_logger(__name__)

_SOUND_S = 300.0  # sound that is kept for a reader that is late, s
_WAIT_S = 0.05  # a picture is waited for this long at a time, s
_SOUND_WAIT_S = 0.02  # sound is waited for this long at a time, s
_SILENT_S = 0.5  # a publisher that has sent no sound for this long is silent, s
_GAP_S = 0.1  # sound that comes this much later than expected has a hole before it, s
_LEAD_S = 0.3  # a sender's clock that runs ahead by this is set back at the next silence, s
_QUIET = 0.005  # peak below which sound is silence, of 1
_STEP_RANGE = (1 / 240, 1.0)  # believable durations of a picture, s
_STEP = 1 / 25  # of the first picture, s


class PushFeed:
    """A feed that other threads fill."""

    live = True

    def __init__(self, began: float, settings: CaptureSettings, *, sound: bool = True) -> None:
        """Begin.

        Args:
            began: monotonic seconds of media time 0.
            settings: `queue_items` bounds the slot for pictures.
            sound: whether there will be sound.
        """
        self._began = began
        self._slot: deque[Picture] = deque()
        self._slot_items = max(1, settings.queue_items // 4)
        self._chunks: deque[Chunk] = deque()
        self._waiting = 0  # samples in `_chunks`
        self._next_sample = 0
        self._sounded = began  # monotonic s of the sound that came last
        self._lost = 0  # chunks of sound that did not fit any more
        self._last: float | None = None  # media s of the last picture
        self._step = _STEP
        self._count = 0
        self._over = False
        self._change = threading.Condition()
        self.dropped = 0
        self.received = monotonic()
        self.sound = SoundTrack(self._pull_sound, self._sound_ended) if sound else None

    # -- the side that pushes -----------------------------------------------------------------------------------------

    def push_picture(self, content: av.VideoFrame | Image, mono: float) -> None:
        """Put a picture in the slot of the latest ones.

        Args:
            content: as decoded, or upright BGR.
            mono: monotonic seconds at which it was received.
        """
        with self._change:
            if self._over:
                return
            time = quantised(max(mono - self._began, 0.0))
            if self._last is not None:
                time = max(time, quantised(self._last + QUANTUM_S))
                self._step = min(max(time - self._last, _STEP_RANGE[0]), _STEP_RANGE[1])
            self._last = time
            picture = Picture(content, 1.0, time, self._step, self._count, mono)
            self._count += 1
            self.received = monotonic()
            while len(self._slot) >= self._slot_items:
                lost = self._slot.popleft()
                heir = self._slot[0] if self._slot else picture
                heir.dropped += lost.dropped + 1
                self.dropped += 1
            self._slot.append(picture)
            self._change.notify_all()

    def push_sound(self, samples: Samples, mono: float) -> None:
        """Add sound.

        Args:
            samples: (n,) float32, mono, 16 kHz.
            mono: monotonic seconds of its first sample.
        """
        fresh = np.nan_to_num(np.asarray(samples, np.float32).reshape(-1), posinf=0.0, neginf=0.0)
        with self._change:
            if self._over or not len(fresh):
                return
            self._sounded = max(self._sounded, mono)
            begin = round((mono - self._began) * SAMPLE_RATE)
            lead = (self._next_sample - begin) / SAMPLE_RATE
            if lead > _LEAD_S and float(np.abs(fresh).max()) < _QUIET:
                return
            begin = begin if -lead > _GAP_S else self._next_sample
            if self._waiting > _SOUND_S * SAMPLE_RATE:
                self._lost += 1
                return
            self._chunks.append(Chunk(begin, np.clip(fresh, -1.0, 1.0), self._lost))
            self._lost = 0
            self._waiting += len(fresh)
            self._next_sample = begin + len(fresh)
            self._change.notify_all()

    def finish(self) -> None:
        """Nothing more comes; what waits is still read."""
        with self._change:
            self._over = True
            self._change.notify_all()

    # -- the side that reads --------------------------------------------------------------------------------------------

    @property
    def pictures_ended(self) -> bool:
        """Whether it is over and all pictures were given."""
        with self._change:
            return self._over and not self._slot

    def pull_picture(self) -> Picture | None:
        """The next picture; None if none came within a moment."""
        with self._change:
            if not self._slot and not self._over:
                self._change.wait(_WAIT_S)
            return self._slot.popleft() if self._slot else None

    def close(self) -> None:
        """Stop; what waits is let go of."""
        self.finish()
        with self._change:
            self._slot.clear()
            self._chunks.clear()
            self._waiting = 0

    def _pull_sound(self) -> Chunk | None:
        with self._change:
            if not self._chunks and not self._over:
                self._change.wait(_SOUND_WAIT_S)
            if self._chunks:
                chunk = self._chunks.popleft()
                self._waiting -= len(chunk.samples)
                return chunk
            # Who sends no sound is silent, up to now: pictures need not wait for it.
            now = monotonic()
            silent = round((now - self._began - _SOUND_WAIT_S) * SAMPLE_RATE)
            if self._over or now - self._sounded < _SILENT_S or silent <= self._next_sample:
                return None
            self._next_sample = silent
            return Chunk(silent, np.zeros(0, np.float32), 0)

    def _sound_ended(self) -> bool:
        with self._change:
            return self._over and not self._chunks


class Maker(Protocol):
    """Makes pictures and sound."""

    @property
    def sound(self) -> bool:
        """Whether it makes sound, too."""
        ...

    def make(self, feed: PushFeed, closing: threading.Event) -> None:
        """Push with the clock until `closing` is set."""
        ...


class MadeFeed(PushFeed):
    """A feed with a thread that fills it."""

    def __init__(self, maker: Maker, began: float, settings: CaptureSettings) -> None:
        """Start the thread."""
        super().__init__(began, settings, sound=maker.sound)
        self._maker = maker
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._make, name="capture-maker", daemon=True)
        self._thread.start()

    def _make(self) -> None:
        try:
            self._maker.make(self, self._closing)
        except Exception as error:  # noqa: BLE001 - libraries of cameras raise what they like; the source ends
            log.warning("camera.failed", error=str(error))
        finally:
            self.finish()

    def close(self) -> None:
        """Stop the thread."""
        self._closing.set()
        super().close()
        self._thread.join(1.0)


class PushPort:
    """Where publishers of one camera come in. One at a time: a new publisher takes over from the one before."""

    def __init__(self, settings: CaptureSettings) -> None:
        """Nobody publishes yet."""
        self._settings = settings
        self._lock = threading.Lock()
        self._arrived = threading.Event()
        self._feed: PushFeed | None = None
        self._began_utc = 0.0
        self._publisher: PushSource | None = None
        self._accepting = False
        self.removed = False

    def publish(self) -> PushSource:
        """A source for a new publisher; whoever published before is not listened to any more."""
        with self._lock:
            self._publisher = PushSource(self)
            return self._publisher

    def accept(self, accepting: bool) -> None:
        """Take what is pushed, or let it fall (while remembering is paused)."""
        with self._lock:
            self._accepting = accepting
            if not accepting:
                self._drop_feed()

    def remove(self) -> None:
        """There is no such camera any more."""
        self.removed = True
        self.accept(False)

    def wait(self, seconds: float) -> bool:
        """Wait for something to be pushed; whether there is."""
        return self._arrived.wait(seconds)

    def open(self, camera: str) -> Source:
        """What is being pushed, as a source that ends when the publisher leaves. Call after `wait`."""
        with self._lock:
            feed, start = self._feed, self._began_utc
        if feed is None:  # it left at once
            feed, start = PushFeed(monotonic(), self._settings), utc_now()
            feed.finish()
        fingerprint = hashlib.blake2b(f"push:{camera}".encode(), digest_size=16).hexdigest()
        info = SourceInfo(
            uri="push:",
            camera=camera,
            kind=SourceKind.PUSH,
            fingerprint=fingerprint,
            start=start,
            duration=None,
            has_video=True,
            has_audio=True,
            width=0,
            height=0,
        )

        def opener(mode: Mode, resume_at: float, stopped: object) -> Feed:  # it goes on from now
            return feed

        return Source(info, StartFrom.NOW, opener, live=True, release=lambda: self._released(feed))

    def fed(self, publisher: PushSource, mono: float) -> PushFeed | None:
        """The feed that a publisher pushes into; None: it is not wanted now."""
        with self._lock:
            if publisher is not self._publisher or not self._accepting:
                return None
            if self._feed is None:
                self._feed = PushFeed(mono, self._settings)
                self._began_utc = utc_now() - (monotonic() - mono)
                self._arrived.set()
            return self._feed

    def left(self, publisher: PushSource) -> None:
        """A publisher has gone."""
        with self._lock:
            if publisher is self._publisher:
                self._publisher = None
                self._drop_feed()

    def _drop_feed(self) -> None:
        if self._feed is not None:
            self._feed.finish()
            self._feed = None
        self._arrived.clear()

    def _released(self, feed: PushFeed) -> None:
        feed.close()
        with self._lock:
            if self._feed is feed:
                self._drop_feed()


class PushSource:
    """One publisher's end of a camera. Thread-safe; no call waits."""

    def __init__(self, port: PushPort) -> None:
        """Made by `PushPort.publish`."""
        self._port = port

    @property
    def removed(self) -> bool:
        """Whether its camera was removed: nobody takes what is pushed any more."""
        return self._port.removed

    def push_picture(self, frame: av.VideoFrame | Image, mono: float) -> None:
        """Put a picture in the slot of the latest one.

        Args:
            frame: as decoded, or upright BGR.
            mono: monotonic seconds at which it was received.
        """
        feed = self._port.fed(self, mono)
        if feed is not None:
            feed.push_picture(frame, mono)

    def push_sound(self, samples: Samples, mono: float) -> None:
        """Add sound.

        Args:
            samples: (n,) float32, mono, 16 kHz.
            mono: monotonic seconds of its first sample.
        """
        feed = self._port.fed(self, mono)
        if feed is not None:
            feed.push_sound(samples, mono)

    def close(self) -> None:
        """The publisher leaves: the open segment is remembered; may be called again."""
        self._port.left(self)
