"""What the segmenter reads from, whatever the source: pictures in order, and sound by sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from edge.capture.picture import Picture
from edge.capture.sound import SoundTrack
from edge.clock import monotonic


class Feed(Protocol):
    """A running source."""

    @property
    def live(self) -> bool:
        """Whether it cannot be read ahead of the clock."""
        ...

    @property
    def sound(self) -> SoundTrack | None:
        """Its sound; None without."""
        ...

    @property
    def received(self) -> float:
        """Monotonic s at which the latest picture (without pictures: sound) came; a recording is never late."""
        ...

    @property
    def pictures_ended(self) -> bool:
        """Whether `pull_picture` will never give one again."""
        ...

    def pull_picture(self) -> Picture | None:
        """The next picture; None: none within a moment (live), or none ever."""
        ...

    def close(self) -> None:
        """Let go of everything; may be called twice."""
        ...


class RecordedFeed:
    """A feed that can be read as fast as it goes."""

    live = False

    def __init__(self, pictures: Iterator[Picture] | None, sound: SoundTrack | None, close: Callable[[], None]) -> None:
        """Wrap the tracks of a recording."""
        self._pictures = pictures
        self.sound = sound
        self._close = close

    @property
    def received(self) -> float:
        """Now: a recording is there when it is wanted."""
        return monotonic()

    @property
    def pictures_ended(self) -> bool:
        """Whether all pictures were given."""
        return self._pictures is None

    def pull_picture(self) -> Picture | None:
        """The next picture; None at the end."""
        if self._pictures is None:
            return None
        picture = next(self._pictures, None)
        if picture is None:
            self._pictures = None
        return picture

    def close(self) -> None:
        """Close the containers."""
        self._pictures = None
        self._close()


class WatchedFeed:
    """A feed whose pictures somebody else sees, too."""

    def __init__(self, feed: Feed, show: Callable[[Picture], None]) -> None:
        """Show each picture of `feed` as it is pulled."""
        self._feed = feed
        self._show = show
        self.live = feed.live
        self.sound = feed.sound

    @property
    def received(self) -> float:
        """As the feed's."""
        return self._feed.received

    @property
    def pictures_ended(self) -> bool:
        """As the feed's."""
        return self._feed.pictures_ended

    def pull_picture(self) -> Picture | None:
        """The next picture, which is shown."""
        picture = self._feed.pull_picture()
        if picture is not None:
            self._show(picture)
        return picture

    def close(self) -> None:
        """Close the feed."""
        self._feed.close()


class Lookahead:
    """The next pictures, which may be seen before they are taken."""

    def __init__(self, feed: Feed) -> None:
        """Nothing is read yet."""
        self._feed = feed
        self._held: deque[Picture] = deque()

    def head(self) -> Picture | None:
        """The next picture; None: none now or none ever."""
        shown = self.upto(1)
        return shown[0] if shown else None

    def upto(self, count: int) -> list[Picture]:
        """Up to `count` next pictures; fewer at the end, or where a live source has not sent more yet."""
        while len(self._held) < count:
            picture = self._feed.pull_picture()
            if picture is None:
                break
            self._held.append(picture)
        return [self._held[place] for place in range(min(count, len(self._held)))]

    @property
    def ended(self) -> bool:
        """Whether there is no picture any more."""
        return not self._held and self._feed.pictures_ended

    def take(self) -> Picture:
        """Take the next picture, which `head` has shown."""
        return self._held.popleft()
