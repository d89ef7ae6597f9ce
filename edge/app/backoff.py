"""How long to wait before trying again: exponentially longer, with jitter, so that many do not come at once."""

from __future__ import annotations

import random

_JITTER = 0.25  # the wait is shorter by up to this share


class Backoff:
    """Waits that double up to a bound."""

    def __init__(self, first: float, most: float, rng: random.Random | None = None) -> None:
        """Begin with the shortest wait.

        Args:
            first: s.
            most: s.
            rng: source of the jitter.
        """
        self._first = first
        self._most = most
        self._tries = 0
        self._random = rng or random.Random()

    def reset(self) -> None:
        """It worked: the next wait is the shortest."""
        self._tries = 0

    def next(self) -> float:
        """The next wait, s."""
        whole = min(self._most, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return whole * (1 - _JITTER * self._random.random())
