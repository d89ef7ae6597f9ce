"""The media clock: time stamps as they come, made into a time that only goes forward.

Invariants:

* Media time never goes backwards; two pictures never share an instant.
* A real gap stays a gap; a stamp that jumps and comes back, wraps or is missing does not move the clock.
* All times are multiples of `QUANTUM_S`, so that a time which was stored as UTC and comes back is the same number.
"""

from __future__ import annotations

_DIGITS = 5
QUANTUM_S: float = 10**-_DIGITS  # UTC seconds as float64 are exact to 2.4e-7 s: rounding to 1e-5 undoes that

_BACK_S = 1.0  # stamps further back than this belong to a new time base (wrapped, concatenated streams), s
_LEAP_S = 1.0  # leaps beyond this are doubted if the next stamp denies them, s
_LEAP_MAX_S = 3600.0  # leaps beyond this are never believed unless the container's duration covers them, s


def quantised(seconds: float) -> float:
    """Media time as every part of capture uses it."""
    return round(seconds, _DIGITS)


class MediaClock:
    """One stream's clock."""

    def __init__(self, origin: float, duration: float | None) -> None:
        """Start at the first instant.

        Args:
            origin: the stamp, in seconds, that is media time 0.
            duration: what the container says that it lasts, s; None if it does not.
        """
        self.origin = origin
        self._offset = -origin
        self._known = duration or 0.0
        self._last: float | None = None
        self._step = 0.0

    def stamp(self, raw: float | None, step: float, following: float | None) -> float:
        """The media time of the next item.

        Args:
            raw: its own stamp, s; None if it has none.
            step: how long it lasts, s.
            following: the stamp of the item after it, s; None if there is none.

        Returns:
            Media time, s.
        """
        at = self._place(raw, following)
        if self._last is not None:
            at = max(at, self._last + QUANTUM_S)
        self._last = at = quantised(max(at, 0.0))
        self._step = step
        return at

    def lead(self, raw: float, now: float) -> float:
        """How far a stamp lies ahead of what another clock says, s.

        Args:
            raw: the stamp, s.
            now: media time by that clock, s.
        """
        return raw + self._offset - now

    def shift(self, seconds: float) -> None:
        """Take later stamps as that much later: the source's own clock has leapt."""
        self._offset += seconds

    def _place(self, raw: float | None, following: float | None) -> float:
        expected = 0.0 if self._last is None else self._last + self._step
        if raw is None:
            return expected
        at = raw + self._offset
        ahead = at - expected
        if self._last is None:
            # Only a first stamp that is far from the source's own beginning is another time base.
            believed = ahead <= max(_LEAP_MAX_S, self._known)
        elif ahead > _LEAP_S:
            spike = following is not None and following + self._offset < at - _LEAP_S
            believed = not spike and ahead <= max(_LEAP_MAX_S, self._known)
        else:
            believed = ahead > -_BACK_S
        if believed:
            return at
        if following is not None and abs(following + self._offset - expected) <= _LEAP_S + self._step:
            return expected  # one wrong stamp; the next one is right again
        self._offset = expected - raw
        return expected
