"""The times that rules speak of: "at 5 pm", "in three minutes", "every weekday at 8", "between 22 and 7". Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from edge.clock import to_local
from edge.notify.program import Hours, Repeat

_NUMBERS: Final = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0,
    "eight": 8.0, "nine": 9.0, "ten": 10.0, "eleven": 11.0, "twelve": 12.0, "fifteen": 15.0, "twenty": 20.0,
    "thirty": 30.0, "forty": 40.0, "forty-five": 45.0, "fifty": 50.0, "sixty": 60.0, "ninety": 90.0, "half a": 0.5,
    "half an": 0.5, "a quarter of an": 0.25, "a couple of": 2.0, "a few": 3.0,
}  # fmt: skip
_UNITS: Final = {
    "second": 1.0, "sec": 1.0, "minute": 60.0, "min": 60.0, "hour": 3600.0, "hr": 3600.0, "day": 86_400.0,
    "week": 604_800.0,
}  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_PARTS: Final = {"morning": (5.0, 12.0), "afternoon": (12.0, 18.0), "evening": (17.0, 23.0), "night": (22.0, 30.0)}
_PART_AT: Final = {"morning": 9.0, "afternoon": 15.0, "evening": 19.0, "tonight": 20.0, "night": 20.0}

_N = r"(?:\d+(?:\.\d+)?|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
LENGTH: Final = rf"(?P<n>{_N})\s*(?P<unit>{'|'.join(_UNITS)})s?"
CLOCK: Final = r"(?P<h>[01]?\d|2[0-4])(?:[:.](?P<m>[0-5]\d))?\s*(?P<half>[ap]\.?m\.?)?(?:\s*o['’]?clock)?|(?P<word>noon|midday|midnight)"
_DAY = "|".join(_DAYS)


def _flat(pattern: str) -> str:
    return re.sub(r"\?P<\w+>", "?:", pattern)


_FLAT_CLOCK = _flat(CLOCK)


@dataclass(frozen=True, slots=True)
class When:
    """A first time and how it repeats."""

    due: float  # UTC POSIX seconds
    repeat: Repeat | None = None


def length(text: str) -> float | None:
    """A length of time such as “ten minutes” in s; None: it is none."""
    match = re.fullmatch(LENGTH, text.strip(), re.IGNORECASE)
    if match is None:
        return None
    word = match["n"].lower()
    return (_NUMBERS[word] if word in _NUMBERS else float(word)) * _UNITS[match["unit"].lower()]


def hour(text: str, *, later_than: float | None = None) -> float | None:
    """A time of day such as “5 pm”, “17:30” or “noon” as an hour, 0..24; None: it is none.

    Args:
        text: the words.
        later_than: a bare "5" means the afternoon if 5 in the morning is not later than this hour.
    """
    match = re.fullmatch(CLOCK, text.strip(), re.IGNORECASE)
    if match is None:
        return None
    if match["word"]:
        return 24.0 if match["word"].lower() == "midnight" else 12.0
    value = float(match["h"]) + float(match["m"] or 0) / 60
    half = (match["half"] or "").lower()
    if half.startswith("p") and value < 12:
        return value + 12
    if half.startswith("a") and value >= 12:
        return value - 12
    if not half and match["m"] is None and later_than is not None and value <= later_than and value < 12:
        return value + 12
    return value


def take_hours(text: str) -> tuple[Hours, str]:
    """The hours and days that a condition is bound to, and the text without them."""
    start, end, days = 0.0, 24.0, frozenset(range(7))
    for pattern, which in (
        (r"\b(?:on )?(?:weekdays|working days|workdays)\b", frozenset(range(5))),
        (r"\b(?:on |at |during )?(?:the )?weekends?\b", frozenset({5, 6})),
        (rf"\bon (?P<days>(?:{_DAY})s?(?:(?:,| and|, and) (?:{_DAY})s?)*)", None),
    ):
        match = re.search(pattern, text, re.IGNORECASE)
        if match is not None:
            days = which or frozenset(i for i, day in enumerate(_DAYS) if day in match["days"].lower())
            text = _without(text, match)
    match = re.search(rf"\b(?:between|from) ({_FLAT_CLOCK}) (?:and|to|until|till) ({_FLAT_CLOCK})", text, re.IGNORECASE)
    if match is not None:
        first = hour(match[1])
        last = hour(match[2])
        if first is not None and last is not None:
            return Hours(first, last if last > first else last + 24, days), _without(text, match)
    match = re.search(
        r"\b(?:at (?P<night>night)|in the (?P<part>morning|afternoon|evening|night))\b", text, re.IGNORECASE
    )
    if match is not None:
        start, end = _PARTS[(match["night"] or match["part"]).lower()]
        text = _without(text, match)
    for word in ("after", "before", "until"):
        match = re.search(rf"\b{word} ({_FLAT_CLOCK})(?![\w:])", text, re.IGNORECASE)
        if match is not None and (at := hour(match[1], later_than=11.0 if word == "after" else None)) is not None:
            if word == "after":
                start, end = (
                    at,
                    max(end, 24.0) if at < 20 else 30.0,
                )  # "after ten in the evening" reaches into the night
            else:
                end = at
            text = _without(text, match)
    return Hours(start, end, days), text


def take_deadline(text: str) -> tuple[float | None, float | None, str]:
    """A deadline: “by 10” as an hour, or “for three hours” in s, and the text without it."""
    match = re.search(rf"\bby ({_FLAT_CLOCK})(?![\w:])", text, re.IGNORECASE)
    if match is not None:
        return hour(match[1]), None, _without(text, match)
    match = re.search(
        rf"\b(?:for|in)(?: more than| over| the last| at least)? ({_flat(LENGTH)})\b", text, re.IGNORECASE
    )
    if match is not None:
        return None, length(match[1]), _without(text, match)
    return None, None, text


def take_time(text: str, now: float, zone: tzinfo | None) -> tuple[When | None, str]:
    """When time fires, and the text without it; None: it names no time.

    Args:
        text: the words of a reminder.
        now: UTC POSIX seconds at which it was said.
        zone: whose calendar counts; None: the device's.
    """
    local = to_local(now, zone)
    match = re.search(rf"\bevery ({_flat(LENGTH)}|second|minute|hour)\b", text, re.IGNORECASE)
    every = (length(match[1]) or length(f"one {match[1]}")) if match is not None else None
    if match is not None and every is not None and every >= 60.0 and every % 86_400:
        return When(now + every, Repeat(every_s=every)), _without(text, match)
    match = re.search(rf"\bin ({_flat(LENGTH)})(?:['’]s? time)?\b", text, re.IGNORECASE)
    if match is not None and (after := length(match[1])) is not None:
        return When(_after(local, match[1], after, zone)), _without(text, match)
    repeat, day, rest = _day(text, local)
    match = re.search(rf"(?:\bat |@ ?)({_FLAT_CLOCK})(?![\w:])", rest, re.IGNORECASE)
    bare = match or re.search(
        r"(?<![\w:])([01]?\d|2[0-3])(?:[:.][0-5]\d)?\s*[ap]\.?m\b\.?|\b(noon|midday|midnight)\b", rest
    )
    part = re.search(r"\b(?:(?:this|in the|tomorrow)? ?(morning|afternoon|evening)|(tonight))\b", rest, re.IGNORECASE)
    at: float | None = None
    if bare is not None:
        words = str((bare[1] if match is not None else None) or bare[0])
        at = hour(words)
        ambiguous = match is not None and hour(words, later_than=24.0) != at
        rest = _without(rest, bare)
        if part is not None and at is not None and at < 12 and (part[1] or part[2]).lower() != "morning":
            at += 12
            ambiguous = False
            rest = re.sub(rf"\b(?:this|in the|tomorrow)? ?{part[0].strip()}\b", "", rest, flags=re.IGNORECASE)
        if at is not None and ambiguous and at < 12 and day is None and repeat is None:
            # "at 5" said at noon is this afternoon.
            now_hour = local.hour + local.minute / 60
            at = at + 12 if at <= now_hour < at + 12 else at
    elif part is not None and (day is not None or repeat is not None or part[2] or "this" in part[0].lower()):
        at = _PART_AT[(part[1] or part[2]).lower()]
        rest = _without(rest, part)
    if at is None:
        if day is None and repeat is None:
            return None, text
        at = 9.0
    if repeat is not None:
        repeat = Repeat(at, repeat.days)
        return When(next_time(repeat, now, zone), repeat), rest
    if day is None:
        moment = _at(local.date(), at, zone, local)
        if moment <= now:  # it is past today
            moment = _at(local.date() + timedelta(days=1), at, zone, local)
        return When(moment), rest
    return When(_at(day, at, zone, local)), rest


def next_time(repeat: Repeat, after: float, zone: tzinfo | None) -> float:
    """The next moment of a repetition after another one, UTC POSIX seconds."""
    if repeat.hour is None:
        return after + (repeat.every_s or 86_400.0)
    local = to_local(after, zone)
    for ahead in range(9):
        day = local.date() + timedelta(days=ahead)
        moment = _at(day, repeat.hour, zone, local)
        if day.weekday() in repeat.days and moment > after:
            return moment
    return after + 7 * 86_400.0


def midnight(local: datetime, zone: tzinfo | None) -> float:
    """When the local day of a moment began, UTC POSIX seconds."""
    return _at(local.date(), 0.0, zone, local)


def _day(text: str, local: datetime) -> tuple[Repeat | None, date | None, str]:
    match = re.search(
        rf"\b(?:every (?P<what>day|morning|evening|night|afternoon|weekday|weekend|{_DAY})|(?P<daily>daily)"
        rf"|(?:on )?(?P<plural>weekdays|weekends|(?:{_DAY})s))\b",
        text,
        re.IGNORECASE,
    )
    if match is not None:
        word = (match["what"] or match["daily"] or match["plural"]).lower().rstrip("s")
        days = {"weekday": frozenset(range(5)), "weekend": frozenset({5, 6})}.get(word, frozenset(range(7)))
        if word in _DAYS:
            days = frozenset({_DAYS.index(word)})
        rest = _without(text, match)
        if word in _PART_AT and not re.search(rf"\bat (?:{_FLAT_CLOCK})", rest, re.IGNORECASE):
            rest = f"{rest} at {_PART_AT[word]:g}:00"
        return Repeat(0.0, days), None, rest
    match = re.search(
        rf"\b(?:(?P<today>today)|(?P<after>the day after tomorrow)|(?P<tomorrow>tomorrow)"
        rf"|(?:on |next |this )(?P<day>{_DAY})|(?:on )?(?P<iso>\d{{4}}-\d\d-\d\d))\b",
        text,
        re.IGNORECASE,
    )
    if match is None:
        return None, None, text
    today = local.date()
    part = match["tomorrow"] and re.match(r" (morning|afternoon|evening)", text[match.end() :])
    rest = f"{text[: match.start()]}this{text[match.end() :]}" if part else _without(text, match)
    if match["iso"]:
        try:
            return None, date.fromisoformat(match["iso"]), rest
        except ValueError:
            return None, None, text
    if match["day"]:
        ahead = (_DAYS.index(match["day"].lower()) - today.weekday()) % 7 or 7
        return None, today + timedelta(days=ahead), rest
    return None, today + timedelta(days=2 if match["after"] else 1 if match["tomorrow"] else 0), rest


def _after(local: datetime, words: str, seconds: float, zone: tzinfo | None) -> float:
    """Days are days of the calendar, whatever the clocks do; shorter times are exact."""
    if re.search(r"day|week", words, re.IGNORECASE) and seconds % 86_400 == 0:
        day = local.date() + timedelta(days=int(seconds // 86_400))
        return _at(day, local.hour + local.minute / 60 + local.second / 3600, zone, local)
    return local.timestamp() + seconds


def _at(day: date, at: float, zone: tzinfo | None, local: datetime) -> float:
    if at >= 24:
        day, at = day + timedelta(days=1), at - 24
    whole = round(at * 3600)
    naive = datetime.combine(day, time(whole // 3600, whole % 3600 // 60, whole % 60))
    if zone is None:
        return naive.astimezone().timestamp()
    return naive.replace(tzinfo=zone or local.tzinfo).timestamp()


def _without(text: str, match: re.Match[str]) -> str:
    return " ".join(f"{text[: match.start()]} {text[match.end() :]}".split())
