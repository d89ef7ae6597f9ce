"""How often something may be done: token buckets.

Pure but for its own counts; the clock is given. Invariants, held by property tests:

* in any span of t seconds a key is let through at most burst + rate·t times;
* a key that was refused and waits as long as it was told is let through;
* no more than `max_keys` keys are kept; what is forgotten first is what has been idle longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from edge.clock import monotonic


class TokenBuckets:
    """One bucket a key; each holds `burst` tokens and gains `rate` a second.

    Args:
        rate: tokens gained, 1/s.
        burst: tokens of a full bucket.
        clock: seconds that never go backwards.
        max_keys: bound of the memory.
    """

    def __init__(
        self, rate: float, burst: float, *, clock: Callable[[], float] = monotonic, max_keys: int = 4096
    ) -> None:
        if rate <= 0 or burst < 1 or max_keys < 1:
            raise ValueError("rate must be above 0, burst and max_keys at least 1")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, when

    def take(self, key: str) -> float:
        """Take one token.

        Returns:
            0.0: taken; else nothing was taken, and there will be one after so many seconds.
        """
        now = self._clock()
        tokens, since = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + max(0.0, now - since) * self._rate)
        # A hair less than one counts as one: whoever waited as told must not fail for a rounding.
        taken = tokens >= 1.0 - 1e-9
        self._buckets[key] = (max(0.0, tokens - 1.0) if taken else tokens, now)
        while len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self._rate

    def __len__(self) -> int:
        return len(self._buckets)
