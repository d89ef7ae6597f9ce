"""Times as people give them to commands."""

from __future__ import annotations

import re

from edge.clock import parse_instant, utc_now
from edge.errors import SettingsError, UserError
from edge.recall import understand_when


def bound(text: str | None, *, end: bool) -> float | None:
    """As `moment`; None stays None."""
    return None if text is None else moment(text, end=end)


def moment(text: str, *, end: bool) -> float:
    """An instant, or the beginning or end of a span in words; a bare date is its whole day.

    Returns:
        UTC POSIX seconds.

    Raises:
        SettingsError: it is no time.
    """
    when = understand_when(text, utc_now()) if "T" not in text else None
    found = None if when is None else when.end if end else when.start
    if found is not None:
        return found
    try:
        return parse_instant(text)
    except (ValueError, OverflowError) as error:
        raise SettingsError(
            f"“{text[:60]}” is not a time; write 2025-01-03T09:12:00, 2025-01-03, or words such as “yesterday”."
        ) from error


def duration(text: str) -> float:
    """A stretch of time such as 10m, 90s, 2h or 1h30m; seconds.

    Raises:
        UserError: it is none.
    """
    match = _DURATION.fullmatch(text.strip().lower().replace(" ", ""))
    parts = [float(part) if part else 0.0 for part in match.groups()] if match else []
    seconds = sum(part * unit for part, unit in zip(parts, _UNITS, strict=True)) if parts else 0.0
    if seconds <= 0:
        raise UserError(f"“{text[:40]}” is no stretch of time; write 10m, 90s, 2h, 3d or 1h30m.")
    return seconds


_UNITS = (86_400.0, 3600.0, 60.0, 1.0)
_NUMBER = r"(\d{1,6}(?:\.\d+)?)"
_DURATION = re.compile(rf"(?:{_NUMBER}d)?(?:{_NUMBER}h)?(?:{_NUMBER}m(?:in)?)?(?:{_NUMBER}s)?")
