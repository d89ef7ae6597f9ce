"""Times as people give them to commands."""

from __future__ import annotations

from edge.clock import parse_instant, utc_now
from edge.errors import SettingsError
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
