"""What requests bring, checked: ids, instants, days, names."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta

from edge.clock import parse_instant, to_local, utc_now
from edge.errors import NotFoundError, UserError
from edge.memory import Store
from edge.recall import Filters, understand_when
from edge.types.records import Kind, parse_id
from edge.types.vocabulary import labels_for

LARGEST_ID = 2**63 - 1  # of SQLite


def number(text: str, kind: Kind, what: str) -> int:
    """The number of a public id of one kind.

    Raises:
        NotFoundError: it is none of this kind.
    """
    try:
        found, value = parse_id(text)
    except ValueError:
        found, value = None, 0
    if found is not kind or not 0 < value <= LARGEST_ID:
        raise NotFoundError(text[:40], f"“{text[:40]}” is not the id of a {what}; such ids look like {kind}12.")
    return value


def instant(text: str | None, *, end: bool) -> float | None:
    """UTC POSIX seconds of an ISO 8601 instant or of words such as “yesterday”; a bare date is its whole day.

    Args:
        text: as it was given.
        end: of a span, take the end.

    Raises:
        UserError: it is not a time.
    """
    if text is None or not text.strip():
        return None
    try:
        when = understand_when(text, utc_now()) if "T" not in text else None
        found = None if when is None else when.end if end else when.start
        return parse_instant(text) if found is None else found
    except (ValueError, OverflowError, OSError) as error:
        raise UserError(
            f"“{text[:60]}” is not a time; write 2025-01-03T09:12:00, 2025-01-03, or words such as “yesterday”."
        ) from error


def filters(
    since: str | None,
    until: str | None,
    camera: str | None,
    person: str | None,
    thing: str | None,
    place: str | None,
    important: bool,
) -> Filters:
    """What a search may look at; empty texts are none.

    Raises:
        UserError: a time is none.
    """
    first, last = instant(since, end=False), instant(until, end=True)
    return Filters(first, last, camera or None, person or None, thing or None, place or None, important)


def today() -> str:
    """Today in the device's calendar."""
    return to_local(utc_now()).date().isoformat()


def day_span(text: str) -> tuple[date, float, float]:
    """A day of the device's calendar with its first instant and the first after it, UTC POSIX seconds.

    Raises:
        UserError: it is not a day.
    """
    try:
        day = date.fromisoformat(text)
        first = datetime.combine(day, time()).astimezone().timestamp()
        after = datetime.combine(day + timedelta(days=1), time()).astimezone().timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise UserError(f"“{text[:40]}” is not a day; write it like 2025-01-03.") from error
    return day, first, after


def person(store: Store, text: str | None) -> int | None:
    """The one entity that a name, “person 3” or an id such as p3 means.

    Raises:
        NotFoundError: nobody, or several.
    """
    if text is None or not text.strip():
        return None
    found = store.find_entities(text)
    if not found:
        raise NotFoundError(text[:60], f"The memory knows nobody called “{text[:60]}”; `GET /people` lists everybody.")
    if len(found) > 1:
        ids = ", ".join(f"p{one.id}" for one in found)
        raise NotFoundError(text[:60], f"“{text[:60]}” may be any of {ids}; give the id.")
    return found[0].id


def label(word: str | None) -> str | None:
    """The detector class that a word means; a word that means none is taken as it is."""
    if word is None or not word.strip():
        return None
    classes = labels_for(word)
    return classes[0] if classes else word.strip().lower()
