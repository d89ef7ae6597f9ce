"""Time: three clocks and the words for them.

* media time: seconds (float) since the first instant of a source;
* UTC: POSIX seconds (float) since 1970-01-01T00:00Z. Everything stored is in UTC; a source's start plus its media time;
* monotonic: seconds (float) of `time.monotonic()`, for durations and for the stamp at capture.

Local time exists only where people read or write it: parsing a question, printing an answer.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, tzinfo


def utc_now() -> float:
    """The present, in UTC POSIX seconds."""
    return time.time()


def monotonic() -> float:
    """Seconds of a clock that never goes backwards."""
    return time.monotonic()


def parse_instant(text: str, zone: tzinfo | None = None) -> float:
    """Parse an ISO 8601 date-time; one without an offset is local time in `zone` (default: the device's zone).

    Args:
        text: for example `2025-01-03T09:12:00`, `2025-01-03T09:12:00+02:00`, `2025-01-03`.
        zone: the zone for stamps without one.

    Returns:
        UTC POSIX seconds.

    Raises:
        ValueError: the text is not an ISO 8601 date-time.
    """
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone) if zone is not None else moment.astimezone()
    return moment.timestamp()


def to_local(at: float, zone: tzinfo | None = None) -> datetime:
    """UTC POSIX seconds as an aware `datetime` in `zone` (default: the device's zone)."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone)


def iso(at: float, zone: tzinfo | None = None) -> str:
    """UTC POSIX seconds as ISO 8601 with the offset of `zone`, to the millisecond: the form of every `--json` output."""
    return to_local(at, zone).isoformat(timespec="milliseconds")
