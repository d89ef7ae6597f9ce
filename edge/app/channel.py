"""A bounded channel between two threads that reports its fill and can drop pictures, never segments."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

from edge.clock import monotonic
from edge.types.media import Frame, Mode, Segment


class Channel:
    """Frames and segments from capture to perception, in order.

    In `offline_quality` a full channel makes the writer wait. In `live_latency` it makes room by dropping its oldest frame,
    and the reader gets no frame that has become too old or that a newer one of its segment has overtaken. Drops are
    counted in the segment that the frame belonged to. Segments carry the speech and are never dropped.
    """

    def __init__(self, bound: int, mode: Mode, max_age: float | None = None) -> None:
        """Begin empty.

        Args:
            bound: items.
            mode: what happens when it is full.
            max_age: in `live_latency`, frames that were received longer ago than this are not given, s; None: all are.
        """
        self.bound = bound
        self._mode = mode
        self._max_age = max_age if mode is Mode.LIVE_LATENCY else None
        self._items: deque[Frame | Segment] = deque()
        self._dropped = 0  # frames of the open segment
        self._closed = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self.peak = 0
        self.dropped = 0  # frames, ever

    @property
    def fill(self) -> int:
        """Items that wait now."""
        return len(self._items)

    def put(self, item: Frame | Segment) -> bool:
        """Hand an item on; False: the reader has gone and no more is wanted."""
        with self._changed:
            if self._mode is Mode.LIVE_LATENCY and len(self._items) >= self.bound:
                self._drop_oldest_frame()
            while len(self._items) >= self.bound and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            if isinstance(item, Segment) and self._dropped:
                item = _with_dropped(item, self._dropped)
                self._dropped = 0
            self._items.append(item)
            self.peak = max(self.peak, len(self._items))
            self._changed.notify_all()
            return True

    def _drop_oldest_frame(self) -> None:
        # Only frames of the open segment: those before a waiting segment are already counted in it.
        after = max((at for at, item in enumerate(self._items) if isinstance(item, Segment)), default=-1)
        for at in range(after + 1, len(self._items)):
            del self._items[at]
            self.dropped += 1
            self._dropped += 1
            return

    def _count_dropped(self) -> None:
        """Count a frame that was dropped from the front in its segment: the first that waits, else the open one."""
        self.dropped += 1
        for at, item in enumerate(self._items):
            if isinstance(item, Segment):
                self._items[at] = _with_dropped(item, 1)
                return
        self._dropped += 1

    def get(self) -> Frame | Segment | None:
        """The next item; None: the writer has finished.

        Raises:
            BaseException: whatever made the writer fail, once all that it wrote before has been read.
        """
        with self._changed:
            while True:
                while not self._items and not self._closed:
                    self._changed.wait()
                if self._items:
                    item = self._items.popleft()
                    self._changed.notify_all()
                    if isinstance(item, Frame) and self._is_stale(item):
                        self._count_dropped()
                        continue
                    return item
                if self._failure is not None:
                    failure, self._failure = self._failure, None
                    raise failure
                return None

    def _is_stale(self, frame: Frame) -> bool:
        if self._max_age is None:
            return False
        overtaken = bool(self._items) and isinstance(self._items[0], Frame)
        return overtaken or monotonic() - frame.captured > self._max_age

    def close(self, failure: BaseException | None = None) -> None:
        """No more items will come, or none is wanted; idempotent. What waits can still be read."""
        with self._changed:
            self._closed = True
            if failure is not None:
                self._failure = failure
            self._changed.notify_all()


def _with_dropped(segment: Segment, count: int) -> Segment:
    return replace(segment, counts=replace(segment.counts, dropped=segment.counts.dropped + count))
