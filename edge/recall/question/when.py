"""The time words of a question, as a span of time. Pure: the present and the zone are arguments.

Days, weeks and months are those of the local calendar, so a day may have 23 or 25 hours. A time that is named without
a year, a day or a half of the day means the latest one that has begun. Hours that are only named ("in the morning",
"after lunch") bind softly: they prefer, they do not exclude.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum

import numpy as np
from dateutil.relativedelta import relativedelta
from numpy.typing import NDArray

from edge.clock import to_local
from edge.recall.question.time_words import (
    CLOCK,
    CLOCK_BARE,
    CLOCK_SURE,
    DATED,
    DAYS,
    MEAL,
    MEALS,
    MONTH,
    NUMBER,
    PART,
    PARTS,
    RELATED,
    SECONDS,
    UNIT,
    WEEKDAY,
    calendar_delta,
    clock_of,
    month_of,
    number_of,
    real_date,
    renamed,
    unit_of,
    unnamed,
)  # fmt: skip


class Order(StrEnum):
    """Which of several occurrences is meant."""

    NONE = "none"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class When:
    """What a question says about time."""

    start: float | None = None  # UTC POSIX seconds: what is asked about overlaps [start, end)
    end: float | None = None
    hours: tuple[float, float] | None = None  # preferred local hours of any day, 0..30; past 24: of the next day
    order: Order = Order.NONE
    phrase: str = ""  # the words that bind, as written
    rest: str = ""  # the question without its time words

    @property
    def binds(self) -> bool:
        """Whether a span excludes what lies outside it."""
        return self.start is not None or self.end is not None


def understand_when(text: str, now: float, zone: tzinfo | None = None) -> When:
    """Find the time words of a question.

    Args:
        text: the question.
        now: UTC POSIX seconds of the moment at which it is asked.
        zone: the zone whose calendar counts; None: the device's.

    Returns:
        The span, the preferred hours, the order, and the rest of the question.
    """
    return _Reader(text, now, zone).read()


class _Reader:
    """Takes time words out of one text, day first, then the time of day, then what relates them."""

    def __init__(self, text: str, now: float, zone: tzinfo | None) -> None:
        self._text = text
        self._now = now
        self._zone = zone
        self._local = to_local(now, zone).replace(tzinfo=None)
        self._phrases: list[str] = []

    def read(self) -> When:
        order = self._order()
        span: tuple[float | None, float | None] | None = self._between()
        hours: tuple[float, float] | None = None
        if span is None:
            span = self._elapsed()
        if span is None:
            span, hours = self._calendar()
        elif hours is None:
            hours = self._habit()
        rest = re.sub(r"\s+([?.!,])", r"\1", re.sub(r"\s{2,}", " ", self._text)).strip()
        start, end = span or (None, None)
        if start is not None and end is not None and end < start:
            start, end = end, start
        return When(start, end, hours, order, " ".join(self._phrases), rest)

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _take(self, pattern: str, *, keep: bool = False) -> re.Match[str] | None:
        match = re.search(rf"(?<![\w-])(?:{pattern})(?![\w-])", self._text, re.IGNORECASE)
        if match and not keep:
            self._phrases.append(match.group().strip())
            self._text = f"{self._text[: match.start()]} {self._text[match.end() :]}"
        return match

    def _order(self) -> Order:
        latest = r"\b(?:last|latest|most recent(?:ly)?|recently|lately|just now|just)\b(?!\s+(?:in|of)\b)"
        if re.search(latest, self._without_spans(), re.IGNORECASE):
            return Order.LAST
        if re.search(r"\b(?:first|earliest|originally|initially)\b", self._text, re.IGNORECASE):
            return Order.FIRST
        return Order.NONE

    def _without_spans(self) -> str:
        """The text without "last week", "the last two hours" and the like, where "last" speaks of a span."""
        spans = unnamed(rf"\blast\s+(?:{NUMBER}\s+)?(?:{UNIT}|{PART}|{WEEKDAY}|{MONTH})\b")
        return re.sub(spans, " ", self._text, flags=re.IGNORECASE)

    def _instant(self, moment: datetime) -> float:
        """A local date-time as UTC POSIX seconds; one that the clock skips is moved on by the length of the gap."""
        return (moment.replace(tzinfo=self._zone) if self._zone is not None else moment.astimezone()).timestamp()

    def _day(self, day: date, days: int = 1) -> tuple[float, float]:
        midnight = datetime.combine(day, datetime.min.time())
        return self._instant(midnight), self._instant(midnight + timedelta(days=days))

    def _hours(self, day: date, hours: tuple[float, float]) -> tuple[float, float]:
        midnight = datetime.combine(day, datetime.min.time())
        start, end = (self._instant(midnight + timedelta(hours=hour)) for hour in hours)
        return start, end

    # -- "two hours ago", "in the last week" --------------------------------------------------------------------------

    def _elapsed(self) -> tuple[float, float] | None:
        if match := self._take(
            rf"(?:about |around |some |over )?{NUMBER}\s+(?:and a half\s+)?{UNIT}\s+(?:ago|earlier|back)", keep=True
        ):
            unit, count = unit_of(match["unit"]), number_of(match["n"])
            if "and a half" in match.group().lower():
                count += 0.5
            if unit in SECONDS:
                self._take(re.escape(match.group()))
                middle = self._now - count * SECONDS[unit]
                margin = max(0.25 * count * SECONDS[unit], 60.0)
                return max(middle - margin, 0.0), max(min(middle + margin, self._now), 0.0)
            if unit != "day":
                self._take(re.escape(match.group()))
                return self._calendar_ago(unit, count)
            return None  # a day, and perhaps a time of it: see `_calendar`
        preposition = r"(?:(?:in|within|over|during|for|from)\s+)?"
        match = self._take(rf"{preposition}(?:the\s+)?(?:last|past|previous)\s+{NUMBER}\s+{UNIT}")
        match = match or self._take(rf"(?<!on ){preposition}(?:the\s+(?:last|past)|past)\s+{UNIT}(?!\s+(?:of|in)\b)")
        match = match or self._take(rf"{preposition}(?:the\s+)?last\s+(?P<unit>seconds?|minutes?|mins?|hours?)")
        if match:
            count = number_of(match["n"]) if "n" in match.re.groupindex else 1.0
            return self._before_now(unit_of(match["unit"]), count), self._now
        return None

    def _before_now(self, unit: str, count: float) -> float:
        if unit in SECONDS:
            return max(self._now - count * SECONDS[unit], 0.0)
        try:
            return self._instant(self._local - calendar_delta(unit, count))
        except (OverflowError, ValueError):  # before the year 1
            return 0.0

    def _calendar_ago(self, unit: str, count: float) -> tuple[float, float]:
        try:
            day = (self._local - calendar_delta(unit, count)).date()
        except (OverflowError, ValueError):  # before the year 1
            return 0.0, 0.0
        if unit in {"week", "fortnight"}:
            return self._day(day - timedelta(days=3), 7)
        return self._month(day.year, day.month) if unit == "month" else self._year(day.year)

    def _month(self, year: int, month: int) -> tuple[float, float]:
        first = date(year, month, 1)
        return self._day(first)[0], self._day(first + relativedelta(months=1))[0]

    def _year(self, year: int) -> tuple[float, float]:
        return self._day(date(year, 1, 1))[0], self._day(date(year, 12, 31))[1]

    # -- "yesterday", "last Tuesday", "3 January", with or without a time of day ---------------------------------------

    def _calendar(self) -> tuple[tuple[float | None, float | None] | None, tuple[float, float] | None]:
        relation = self._relation()
        found = self._range()
        day = found[0] if found else None
        clock = self._clock(related=bool(relation))
        if clock is not None:
            moment, margin, seconds = clock
            at = self._on_day(moment, day) + timedelta(seconds=seconds)
            if relation in {"after", "since"}:
                limit = self._day(at.date())[1] if relation == "after" else self._now
                return (self._instant(at), max(limit, self._instant(at))), None
            if relation in {"before", "until"}:
                return (self._day(at.date())[0], self._instant(at)), None
            return (self._instant(at) - margin, self._instant(at) + margin), None
        if found is None:
            return None, self._habit()
        first, last, hours = found
        if hours is None and (part := self._take(rf"(?:in the |at |during the )?(?P<part>{PART})")):
            hours = PARTS[part["part"].lower()]
        if hours is not None and first == last:
            span = self._hours(first, hours)
            soft = None
        else:
            span = self._day(first)[0], self._day(last)[1]
            soft = self._habit()
        if relation in {"before", "until"}:
            return (None, span[0] if relation == "before" else span[1]), soft
        if relation == "since":
            return (span[0], self._now), soft
        if relation == "after":
            return (span[1], self._now), soft
        return span, soft

    def _relation(self) -> str:
        match = self._take(rf"(?<!day )(?P<relation>before|after|since|until|till|by|up to)(?=\s+{RELATED})")
        if match is None:
            return ""
        word = match["relation"].lower()
        return "until" if word in {"till", "by", "up to"} else word

    def _range(self) -> tuple[date, date, tuple[float, float] | None] | None:
        """The days that are named: first, last, and hours when the words carry them ("last night")."""
        today = self._local.date()
        if self._take(r"(?:the\s+)?day\s+before\s+yesterday"):
            return today - timedelta(days=2), today - timedelta(days=2), None
        if self._take(r"last\s+night"):
            return today - timedelta(days=1), today - timedelta(days=1), (18.0, 30.0)
        if self._take(r"tonight"):
            return today, today, (17.0, 29.0)
        if match := self._take(rf"yesterday(?:\s+(?P<part>{PART}))?"):
            hours = PARTS[match["part"].lower()] if match["part"] else None
            return today - timedelta(days=1), today - timedelta(days=1), hours
        if match := self._take(rf"this\s+(?P<part>{PART})|(?:earlier\s+)?today|(?:earlier\s+)?this\s+day"):
            hours = PARTS[match["part"].lower()] if match["part"] else None
            return today, today, hours
        if match := self._take(rf"(?:about |around )?{NUMBER}\s+days?\s+(?:ago|earlier|back)"):
            count = min(int(number_of(match["n"])), (today - date.min).days)
            return today - timedelta(days=count), today - timedelta(days=count), None
        return self._weekday(today) or self._date(today) or self._longer(today)

    def _weekday(self, today: date) -> tuple[date, date, tuple[float, float] | None] | None:
        part = rf"(?:\s+(?P<part>{PART}))?"
        which_one = r"(?:(?P<which>last|this|the previous|previous|past)\s+)?"
        week = r"(?:\s+(?P<week>(?:of\s+)?(?:last|this)\s+week))?"
        match = self._take(rf"(?:on\s+)?{which_one}{WEEKDAY}{part}{week}")
        if match is None:
            return None
        wanted = DAYS.index(match["weekday"].lower())
        hours = PARTS[match["part"].lower()] if match["part"] else None
        monday = today - timedelta(days=today.weekday())
        which = (match["which"] or "").lower()
        if match["week"]:
            day = monday + timedelta(days=wanted - (7 if "last" in match["week"].lower() else 0))
        elif which == "this":
            day = monday + timedelta(days=wanted)
        else:
            back = (today.weekday() - wanted) % 7
            day = today - timedelta(days=back or (7 if which else 0))
        return day, day, hours

    def _date(self, today: date) -> tuple[date, date, tuple[float, float] | None] | None:
        if match := self._take(r"(?:on\s+)?(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"):
            day = real_date(int(match["y"]), int(match["m"]), int(match["d"]))
            return (day, day, None) if day else None
        ordinal = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
        year = r"(?:,?\s+(?P<y>\d{4}))?"
        match = self._take(rf"(?:on\s+)?(?:the\s+)?{ordinal}(?:\s+of)?\s+{MONTH}{year}")
        match = match or self._take(rf"(?:on\s+)?{MONTH}\s+(?:the\s+)?{ordinal}{year}")
        if match:
            month = month_of(match["month"])
            years = [int(match["y"])] if match["y"] else range(today.year, today.year - 9, -1)
            for candidate in (real_date(y, month, int(match["d"])) for y in years):
                if candidate and (match["y"] or candidate <= today):
                    return candidate, candidate, None
        return None

    def _longer(self, today: date) -> tuple[date, date, tuple[float, float] | None] | None:
        if match := self._take(
            r"(?:earlier\s+)?(?P<which>this|last|the previous|previous)\s+(?P<span>week(?:end)?|month|year)"
        ):
            back = 0 if match["which"].lower() == "this" else 1
            monday = today - timedelta(days=today.weekday() + 7 * back)
            if match["span"].lower() == "weekend":
                if not back and today.weekday() < 5:
                    monday -= timedelta(days=7)  # on a weekday, "this weekend" of the past is the one just gone
                return monday + timedelta(days=5), monday + timedelta(days=6), None
            if match["span"].lower() == "week":
                return monday, monday + timedelta(days=6), None
            if match["span"].lower() == "month":
                first = today.replace(day=1) - relativedelta(months=back)
                return first, first + relativedelta(months=1, days=-1), None
            return date(today.year - back, 1, 1), date(today.year - back, 12, 31), None
        if match := self._take(rf"(?:in|during|last)\s+{MONTH}(?:\s+(?P<y>\d{{4}}))?"):
            month = month_of(match["month"])
            year = int(match["y"]) if match["y"] else today.year - (1 if month > today.month else 0)
            month_start = real_date(year, month, 1)
            return (month_start, month_start + relativedelta(months=1, days=-1), None) if month_start else None
        if match := self._take(r"(?:in|during)\s+(?P<y>(?:19|20)\d{2})"):
            return date(int(match["y"]), 1, 1), date(int(match["y"]), 12, 31), None
        return None

    # -- times of day -------------------------------------------------------------------------------------------------

    def _clock(self, *, related: bool) -> tuple[tuple[int, int, bool], float, int] | None:
        """((hour, minute, whether the half of the day is known), how far from it still counts in s, seconds)."""
        match = self._take(rf"(?:(?P<about>at about|at around|around|about|at|near)\s+)?{CLOCK_SURE}")
        match = match or self._take(rf"(?P<about>at about|at around|around|about|at|near)\s+{CLOCK_BARE}")
        if match is None and related:
            match = self._take(CLOCK_BARE)
        if match is None:
            return None
        groups = match.groupdict()
        about = (groups.get("about") or "at").lower() not in {"at", ""}
        margin = 900.0 if groups.get("minute") else 1800.0
        seconds = groups.get("second")
        if seconds is not None:
            margin = 5.0
        return clock_of(groups), margin * (2.0 if about else 1.0), int(seconds or 0)

    def _on_day(self, moment: tuple[int, int, bool], day: date | None) -> datetime:
        """The latest such time that has begun, or the one of that day."""
        hour, minute, sure = moment
        halves = [hour] if sure else [hour % 12, hour % 12 + 12]
        if day is not None:
            # "at 5 yesterday": waking hours are likelier.
            chosen = halves[0] if sure or halves[0] >= 7 else halves[-1]
            return datetime.combine(day, datetime.min.time()) + timedelta(hours=chosen, minutes=minute)
        today = datetime.combine(self._local.date(), datetime.min.time())
        candidates = [today + timedelta(days=days, hours=h, minutes=minute) for days in (0, -1) for h in halves]
        return max(c for c in candidates if c <= self._local)

    def _between(self) -> tuple[float, float] | None:
        clock_a, clock_b = (renamed(CLOCK, suffix) for suffix in ("a", "b"))
        match = self._take(rf"(?:between|from)\s+{clock_a}\s+(?:and|to|until|till|-)\s+{clock_b}", keep=True)
        if match:
            groups = match.groupdict()
            first = clock_of({key[:-1]: value for key, value in groups.items() if key.endswith("a")})
            second = clock_of({key[:-1]: value for key, value in groups.items() if key.endswith("b")})
            self._take(re.escape(match.group()))
            found = self._range()
            if second[2] and not first[2]:  # "between 3 and 4 pm"
                later = first[0] % 12 + (12 if second[0] >= 12 else 0)
                first = (later if later <= second[0] else first[0] % 12, first[1], True)
            end = self._on_day(second, found[0] if found else None)
            start = end.replace(hour=first[0], minute=first[1])
            if not first[2] and not second[2]:
                start = end.replace(hour=first[0] % 12 + (12 if end.hour >= 12 else 0), minute=first[1])
            if start > end:
                start -= timedelta(hours=12) if not first[2] else timedelta(days=1)
            return self._instant(start), self._instant(end)
        days = unnamed(rf"(?:the\s+)?(?:{DATED}|{WEEKDAY}|today|yesterday)")
        match = self._take(rf"(?:between|from)\s+(?P<a>{days})\s+(?:and|to|until|till)\s+(?P<b>{days})")
        if match:
            ends = [understand_when(match[group], self._now, self._zone) for group in ("a", "b")]
            starts = [end.start for end in ends if end.start is not None and end.end is not None]
            stops = [end.end for end in ends if end.start is not None and end.end is not None]
            if starts and stops:
                return min(starts), max(stops)
        return None

    def _habit(self) -> tuple[float, float] | None:
        """Hours that are preferred on any day."""
        if match := self._take(rf"(?<!day )(?P<relation>before|after|during|at|for)\s+(?P<meal>{MEAL})", keep=True):
            first, last = MEALS[match["meal"].lower()]
            relation = match["relation"].lower()
            return {"before": (max(first - 3, 0.0), last - 1), "after": (first + 1, last + 4)}.get(
                relation, (first, last)
            )
        if match := self._take(rf"(?:in the|at|during the|every|each)\s+(?P<part>{PART})s?", keep=True):
            return PARTS[match["part"].lower()]
        return None


def prefer_hours(hours: tuple[float, float], starts: NDArray[np.float64], zone: tzinfo | None) -> NDArray[np.bool_]:
    """Which moments (n,) lie in the preferred local hours."""
    days, day = np.unique(starts // 86_400, return_inverse=True)
    first, last = (np.array([_offset(at * 86_400 + into, zone) for at in days]) for into in (0, 86_399))
    offsets = first[day] if len(days) else starts
    for at in np.flatnonzero(first[day] != last[day]) if len(days) else ():  # on days on which the clock changes
        offsets[at] = _offset(float(starts[at]), zone)
    hour = (starts + offsets) % 86_400 / 3600
    return np.asarray(((hours[0] <= hour) & (hour < hours[1])) | (hour + 24 < hours[1]))


def _offset(at: float, zone: tzinfo | None) -> float:
    offset = to_local(at, zone).utcoffset()
    return offset.total_seconds() if offset is not None else 0.0
