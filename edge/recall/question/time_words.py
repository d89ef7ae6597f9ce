"""The English words for times, as patterns and as numbers. Pure data and small readers for `edge.recall.question.when`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from dateutil.relativedelta import relativedelta


def unnamed(pattern: str) -> str:
    """A pattern whose groups have no names, so that it may stand twice in another."""
    return re.sub(r"\?P<\w+>", "?:", pattern)


NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40,
    "fifty": 50, "sixty": 60, "ninety": 90, "a couple of": 2, "a few": 3, "several": 4,
    "half a": 0.5, "half an": 0.5, "a quarter of an": 0.25,
}  # fmt: skip
SECONDS = {"second": 1.0, "sec": 1.0, "minute": 60.0, "min": 60.0, "hour": 3600.0, "hr": 3600.0}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
# Local hours by custom: wide, because people are loose about them.
PARTS = {"morning": (5.0, 12.0), "afternoon": (12.0, 18.0), "evening": (17.0, 23.0), "night": (20.0, 29.0)}
MEALS = {
    "breakfast": (6.0, 10.0), "brunch": (10.0, 13.0), "lunch": (11.5, 14.0), "lunchtime": (11.5, 14.0),
    "tea time": (15.0, 17.0),
    "dinner": (17.5, 21.0), "supper": (18.0, 21.0), "dinnertime": (17.5, 21.0),
}  # fmt: skip

NUMBER = r"(?P<n>\d+(?:\.\d+)?|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + r")"
UNIT = r"(?P<unit>seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|fortnights?|months?|years?)"
WEEKDAY = r"(?P<weekday>" + "|".join(DAYS) + r")"
MONTH = r"(?P<month>" + "|".join(MONTHS) + r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
CLOCK = (
    r"(?:(?P<hour>[01]?\d|2[0-3])(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s*(?P<half>a\.?m\b\.?|p\.?m\b\.?|o['’]?clock)?"
    r"|(?P<word>noon|midday|midnight))"
)
# Certainly a time of day by its form; and a bare number, which is one only where nothing is counted by it.
CLOCK_SURE = (
    r"(?:(?:(?P<hour>[01]?\d|2[0-3])(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?(?:\s*(?P<half>a\.?m\b\.?|p\.?m\b\.?))?"
    r"|(?:[.:](?P<minute2>[0-5]\d))?\s*(?P<half2>a\.?m\b\.?|p\.?m\b\.?|o['’]?clock)))|(?P<word>noon|midday|midnight))"
)
CLOCK_BARE = (
    r"(?P<hour>[01]?\d|2[0-3])(?=\s*(?:[?.,!;]|$|on\b|in\b|yesterday\b|today\b|this\b|last\b|tonight\b|with\b))"
)
PART = r"(?:morning|afternoon|evening|night)"
MEAL = "|".join(MEALS)
DATED = unnamed(
    rf"\d{{1,2}}(?:st|nd|rd|th)?(?:\s+of)?\s+{MONTH}|{MONTH}\s+(?:the\s+)?\d{{1,2}}|\d{{4}}-\d{{1,2}}-\d{{1,2}}"
)
RELATED = unnamed(  # what "before" and its like relate to when they speak of time
    rf"(?:(?:about|around)\s+)?(?:{CLOCK_SURE}|{CLOCK_BARE}|{WEEKDAY}|{DATED}|today|yesterday|the day before yesterday"
    rf"|(?:this|last)\s+(?:week|month|year|{PART}|{WEEKDAY}))"
)


def number_of(word: str) -> float:
    """The number that a word or digits name."""
    word = re.sub(r"\s+", " ", word.lower())
    return float(NUMBERS[word]) if word in NUMBERS else float(word)


def unit_of(word: str) -> str:
    """The unit of time in the singular."""
    word = word.lower().rstrip("s")
    return {"sec": "second", "min": "minute", "hr": "hour"}.get(word, word)


def calendar_delta(unit: str, count: float) -> relativedelta:
    """A count of days, weeks, months or years as a step of the calendar."""
    whole = min(int(count), 100_000)
    days = {"day": 1, "week": 7, "fortnight": 14}
    if unit in days:
        return relativedelta(days=round(count * days[unit]) if count < 1e6 else 10**7)
    return relativedelta(months=whole) if unit == "month" else relativedelta(years=whole)


def month_of(word: str) -> int:
    """January is 1."""
    return next(i for i, month in enumerate(MONTHS, 1) if month.startswith(word.lower().rstrip(".")[:3]))


def real_date(year: int, month: int, day: int) -> date | None:
    """The date, or None when the calendar has no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def clock_of(groups: dict[str, str | None]) -> tuple[int, int, bool]:
    """(hour, minute, whether the half of the day is known)."""
    word = (groups.get("word") or "").lower()
    if word:
        return (0 if word == "midnight" else 12), 0, True
    hour, minute = int(groups.get("hour") or 0), groups.get("minute") or groups.get("minute2")
    half = (groups.get("half") or groups.get("half2") or "").lower().replace(".", "")
    if half in {"am", "pm"}:
        return hour % 12 + (12 if half == "pm" else 0), int(minute or 0), True
    on_24_hours = bool(minute) and len(groups.get("hour") or "") == 2
    return hour, int(minute or 0), hour > 12 or hour == 0 or on_24_hours


def renamed(pattern: str, suffix: str) -> str:
    """A pattern whose groups have a suffix to their names."""
    rename: Callable[[re.Match[str]], str] = lambda match: f"?P<{match[1]}{suffix}>"  # noqa: E731 - a typed one-liner
    return re.sub(r"\?P<(\w+)>", rename, pattern)
