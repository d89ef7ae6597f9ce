"""How long to wait before another try. Pure but for the dice."""

from __future__ import annotations

import random
from datetime import UTC
from email.utils import parsedate_to_datetime

_LONGEST_S = 86_400.0  # whoever asks for more is not waited for


def backoff(attempt: int, first_s: float, longest_s: float, dice: random.Random) -> float:
    """Seconds before the try after `attempt` (0: the first) failed: twice as long each time, anywhere below (full jitter).

    Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: full jitter needs the fewest calls.
    """
    return dice.uniform(0.0, min(longest_s, first_s * 2.0 ** min(attempt, 32)))


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds of a header `Retry-After` (RFC 9110, 10.2.3).

    Args:
        value: of the header: seconds, or an HTTP date.
        now: UTC POSIX seconds.

    Returns:
        Seconds, 0 to a day; None: it says nothing that can be understood.
    """
    text = (value or "").strip()
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return min(float(text), _LONGEST_S)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    try:
        at = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return min(max(at - now, 0.0), _LONGEST_S)
