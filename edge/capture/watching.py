"""The pictures of the open segment: where a scene ends, and which frames are worth a look."""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise

from edge.capture.cuts import PARTS, REACH, Grey, difference, is_cut, returns, worst_tile
from edge.capture.feed import Lookahead
from edge.capture.novelty import Novelty
from edge.capture.picture import Picture
from edge.capture.timestamps import QUANTUM_S
from edge.settings import CaptureSettings

_FIRST_CHANGE = 255.0  # what the first chosen frame of a segment is said to differ by
_EPS = QUANTUM_S / 2


class Watching:
    """One segment's pictures; everything here begins anew with each segment."""

    def __init__(self, begin: float, settings: CaptureSettings, *, live: bool = False) -> None:
        """Begin.

        Args:
            begin: media s.
            settings: thresholds.
            live: what is new in the picture is chosen at once, beside the samples.
        """
        self._begin = begin
        self._novelty = Novelty() if live else None
        self.news = False  # the frame chosen last shows something new (live only)
        self._settings = settings
        self._next_sample = begin
        self._first: Grey | None = None
        self._previous: Grey | None = None
        self._steps: deque[float] = deque(maxlen=REACH)  # differences of the last frames, each to its predecessor
        self._flash: Grey | None = None  # the picture before a flash, until it is back
        self._flash_left = 0
        self._changed = False
        self._chosen_grey: Grey | None = None
        self._chosen_tiles: Grey | None = None
        self.end: float | None = None  # media time at which the last picture stops being shown; None without pictures
        self.decoded = 0
        self.chosen = 0
        self.pruned = 0
        self.dropped = 0
        self.faults = 0

    def begins_scene(self, head: Picture, ahead: Lookahead) -> bool:
        """Whether a new scene begins with the next picture.

        Args:
            head: that picture.
            ahead: it and what follows it.
        """
        if self._previous is None:
            return False
        threshold = self._settings.cut_threshold
        here = difference(self._previous, head.cut_grey)
        if here <= threshold:
            return False
        greys = [picture.cut_grey for picture in ahead.upto(1 + REACH)]
        after = [difference(one, other) for one, other in pairwise(greys)]
        if not is_cut(list(self._steps), here, after, threshold=threshold, ratio=self._settings.cut_ratio):
            return False
        if self._flash is not None and returns(self._flash, [head.cut_grey], here):
            self._flash = None
            return False
        if returns(self._previous, greys[1:], here):
            self._flash, self._flash_left = self._previous, REACH
            return False
        return True

    def has_changed(self, head: Picture) -> bool:
        """Whether the picture has slowly become another one: two looks in a row far from the segment's first frame."""
        if self._first is None or not self._due(head) or head.time - self._begin < self._settings.segment_min_s:
            return False
        changed: bool = difference(self._first, head.cut_grey) > self._settings.change_threshold
        lasting, self._changed = changed and self._changed, changed
        return lasting

    def take(self, picture: Picture) -> float | None:
        """Take a picture into the segment.

        Returns:
            How much it differs from the frame chosen before it (0..255) if it is chosen; None if it is not.
        """
        grey = picture.cut_grey
        if self._previous is not None:
            self._steps.append(difference(self._previous, grey))
        self._first = grey if self._first is None else self._first
        self._previous = grey
        self._flash_left -= 1
        if self._flash_left < 0:
            self._flash = None
        self.decoded += 1
        self.faults += picture.faults
        self.dropped += picture.dropped
        self.end = picture.end
        if self._due(picture):
            return self._choose(picture, grey)
        if self._novelty is None or self._chosen_grey is None:
            return None
        part = worst_tile(self._chosen_grey, grey, PARTS)
        return self._choose_between(picture, grey) if self._novelty.is_urgent(picture.time, part) else None

    def _due(self, picture: Picture) -> bool:
        return picture.time >= self._next_sample - _EPS

    def _choose(self, picture: Picture, grey: Grey) -> float | None:
        fps = self._settings.sample_fps
        self._next_sample = self._begin + (math.floor((picture.time - self._begin) * fps + _EPS) + 1) / fps
        tiles = picture.tile_grey()
        change = _FIRST_CHANGE
        if self._chosen_tiles is not None and self._chosen_grey is not None:
            if worst_tile(self._chosen_tiles, tiles) < self._settings.duplicate_threshold:
                self.pruned += 1
                return None
            change = difference(self._chosen_grey, grey)
        self._note(picture, grey, between=False)
        self.chosen += 1
        self._chosen_tiles, self._chosen_grey = tiles, grey
        return change

    def _choose_between(self, picture: Picture, grey: Grey) -> float:
        """Choose a picture that no sample is due for; the next sample is due when it was."""
        change = _FIRST_CHANGE if self._chosen_grey is None else difference(self._chosen_grey, grey)
        self._note(picture, grey, between=True)
        self.chosen += 1
        self._chosen_tiles, self._chosen_grey = picture.tile_grey(), grey
        return change

    def _note(self, picture: Picture, grey: Grey, *, between: bool) -> None:
        if self._novelty is None:
            return
        part = 0.0 if self._chosen_grey is None else worst_tile(self._chosen_grey, grey, PARTS)
        self.news = self._novelty.is_new(part)
        self._novelty.note(picture.time, part, between=between)
