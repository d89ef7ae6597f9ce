"""When something new shows in a live picture, so that it is looked at at once and not when the next sample is due. Pure.

New is what changes a part of the picture far more than the pictures before it did: somebody comes in at the door, not the
sway of a phone that is carried. The looks between samples are few, whatever moves: two at once, and then one every two
seconds.
"""

from __future__ import annotations

_LEAST = 8.0  # change of a part that is more than noise and light, 0..255
_TIMES = 2.5  # times the usual change
_EMA = 0.3  # weight of the latest sample in the usual change
_APART_S = 0.2  # between two looks, s
_BURST = 2.0  # looks between samples at once
_RATE = 0.5  # and then so many a second, 1/s


class Novelty:
    """Watches how much the picture differs from the frame that was looked at last."""

    def __init__(self) -> None:
        """Begin with a still picture."""
        self._usual = 0.0
        self._left = _BURST
        self._at: float | None = None  # media s of the last look

    def is_new(self, change: float) -> bool:
        """Whether a picture shows something new.

        Args:
            change: the largest change of a part of it against the frame looked at last, 0..255.
        """
        return change >= max(_LEAST, _TIMES * self._usual)

    def is_urgent(self, at: float, change: float) -> bool:
        """Whether a picture between two samples is to be looked at.

        Args:
            at: media s.
            change: as for `is_new`.
        """
        if self._at is None or at - self._at < _APART_S or not self.is_new(change):
            return False
        return min(_BURST, self._left + _RATE * (at - self._at)) >= 1.0

    def note(self, at: float, change: float, *, between: bool) -> None:
        """Take in that a picture is looked at.

        Args:
            at: media s.
            change: as for `is_new`.
            between: it was no sample but urgent.
        """
        if self._at is not None:
            self._left = min(_BURST, self._left + _RATE * (at - self._at)) - (1.0 if between else 0.0)
        self._usual += _EMA * (change - self._usual)
        self._at = at
