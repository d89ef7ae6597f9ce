"""An opened source: what it is, how to read it, how far reading got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

from edge.capture.feed import Feed, WatchedFeed
from edge.capture.picture import Picture
from edge.types.media import Mode, SourceInfo


class StartFrom(StrEnum):
    """Where the start time of a source was taken from."""

    GIVEN = "given"  # by the caller
    RECORDED = "recorded"  # the container says when it was made
    MODIFIED = "modified"  # the file's modification time minus its duration
    NOW = "now"  # a live source


@dataclass(slots=True)
class _Progress:
    position: float = 0.0


class _Opener(Protocol):
    def __call__(self, mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed: ...


class Source:
    """A source that was opened and looked into; a context manager."""

    def __init__(
        self,
        info: SourceInfo,
        start_from: StartFrom,
        opener: _Opener,
        *,
        live: bool,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        """Made by `open_source`; `release` lets go of what `opener` was not asked for."""
        self.info = info
        self.start_from = start_from
        self.live = live
        self._opener = opener
        self._release = release
        self._progress = _Progress()
        self._feed: Feed | None = None
        self.on_picture: Callable[[Picture], None] | None = None  # sees every picture, in the thread that reads

    @property
    def position(self) -> float:
        """Media time that reading has reached, s."""
        return self._progress.position

    @property
    def received(self) -> float | None:
        """Monotonic s at which the latest picture came; None: nothing is read yet."""
        feed = self._feed
        return None if feed is None else feed.received

    def report(self, position: float) -> None:
        """Tell the media time that was reached, s (called by the segmenter)."""
        self._progress.position = position

    def feed(self, mode: Mode, resume_at: float, stopped: Callable[[], bool]) -> Feed:
        """Start reading; an earlier feed of this source is closed.

        Args:
            mode: whether a live source may drop pictures.
            resume_at: media s before which pictures are not needed (some come nevertheless); sound comes whole.
            stopped: whether to give up.
        """
        self._close_feed()
        feed = self._opener(mode, resume_at, stopped)
        self._feed = feed if self.on_picture is None else WatchedFeed(feed, self.on_picture)
        return self._feed

    def close(self) -> None:
        """Stop reading; may be called twice."""
        self._close_feed()
        self._release()

    def _close_feed(self) -> None:
        if self._feed is not None:
            self._feed.close()
            self._feed = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
