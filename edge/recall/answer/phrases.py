"""Times, lists and counts as people say them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, tzinfo

from edge.clock import to_local


def say_time(at: float, now: float, zone: tzinfo | None = None, *, seconds: bool = False) -> str:
    """A moment in local time: "today at 17:04", "yesterday at 09:30", "on Monday at 12:00", "on 3 January 2025 at 12:00"."""
    local = to_local(at, zone)
    return f"{say_day(at, now, zone)} at {local:%H:%M:%S}" if seconds else f"{say_day(at, now, zone)} at {local:%H:%M}"


def say_day(at: float, now: float, zone: tzinfo | None = None) -> str:
    """A local day: "today", "yesterday", "on Monday", "on 3 January 2025"."""
    day, today = to_local(at, zone).date(), to_local(now, zone).date()
    if day == today:
        return "today"
    if day == today - timedelta(days=1):
        return "yesterday"
    if timedelta(0) < today - day < timedelta(days=7):
        return f"on {day:%A}"
    return f"on {day.day} {day:%B %Y}"


def say_days(start: float, end: float, zone: tzinfo | None = None) -> str:
    """Some days in local time: "from 3 to 9 March 2025", "from 28 February to 2 March 2025"."""
    first, last = to_local(start, zone), to_local(end, zone)
    if (first.year, first.month) == (last.year, last.month):
        return f"from {first.day} to {last.day} {last:%B %Y}"
    year = f" {first:%Y}" if first.year != last.year else ""
    return f"from {first.day} {first:%B}{year} to {last.day} {last:%B %Y}"


def say_span(start: float | None, end: float | None, now: float, zone: tzinfo | None = None) -> str:
    """A span of time that a question named: "on 3 January 2025", "between 09:00 and 12:00 today"."""
    if start is None:
        return f"before {_moment(end, now, zone)}" if end is not None else "at any time"
    if end is None or end - start > 400 * 86_400:
        return f"since {_moment(start, now, zone)}"
    first, last = to_local(start, zone), to_local(end, zone)
    midnight = last.replace(hour=0, minute=0, second=0, microsecond=0) == last and last.date() > first.date()
    last_day = to_local(end - 1, zone).date() if midnight else last.date()
    if first.date() == last_day:
        whole = first.hour == first.minute == 0 and midnight
        day = say_day(start, now, zone)
        return day if whole else f"{day} between {first:%H:%M} and {last:%H:%M}"
    whole = first.hour == first.minute == 0 and midnight
    if whole:
        return f"between {first.day} {first:%B} and {last_day.day} {last_day:%B %Y}"
    return f"between {_moment(start, now, zone)} and {_moment(end, now, zone)}"


def _moment(at: float, now: float, zone: tzinfo | None) -> str:
    local = to_local(at, zone)
    day = say_day(at, now, zone)
    return day.removeprefix("on ") if local.hour == local.minute == 0 else f"{local:%H:%M} {day}"


def listed(items: Sequence[str]) -> str:
    """Things as a list in a sentence."""
    if len(items) < 3:
        return " and ".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def times(count: int) -> str:
    """How often: "once", "twice", "5 times"."""
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def sentence(text: str) -> str:
    """With a capital at the beginning and a full stop at the end."""
    text = text.strip()
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", ".”", "!”", "?”")) else f"{text}."


def quoted(text: str, limit: int = 200) -> str:
    """Words as they were said, shortened at a word."""
    text = " ".join(text.split())
    if len(text) > limit:
        text = f"{text[:limit].rsplit(' ', 1)[0]} …"
    return f"“{text}”"
