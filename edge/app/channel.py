"""A bounded channel between two threads that reports its fill and can drop pictures, never segments."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace

from edge.types.media import Frame, Mode, Segment


class Channel:
    """Frames and segments from capture to perception, in order.

    In `offline_quality` a full channel makes the writer wait. In `live_latency` it makes room by dropping its oldest frame;
    the drop is counted in the segment that the frame belonged to. Segments carry the speech and are never dropped.
    """

    def __init__(self, bound: int, mode: Mode) -> None:
        self.bound = bound
        self._mode = mode
        self._items: deque[Frame | Segment] = deque()
        self._dropped = 0  # frames of the open segment
        self._closed = False
        self._failure: BaseException | None = None
        self._changed = threading.Condition()
        self.peak = 0

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
                item = replace(item, counts=replace(item.counts, dropped=item.counts.dropped + self._dropped))
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
            self._dropped += 1
            return

    def get(self) -> Frame | Segment | None:
        """The next item; None: the writer has finished.

        Raises:
            BaseException: whatever made the writer fail, once all that it wrote before has been read.
        """
        with self._changed:
            while not self._items and not self._closed:
                self._changed.wait()
            if self._items:
                item = self._items.popleft()
                self._changed.notify_all()
                return item
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            return None

    def close(self, failure: BaseException | None = None) -> None:
        """No more items will come, or none is wanted; idempotent. What waits can still be read."""
        with self._changed:
            self._closed = True
            if failure is not None:
                self._failure = failure
            self._changed.notify_all()
