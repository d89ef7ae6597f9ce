"""Scenes, routines and anomalies in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from typing import Final

from edge.clock import to_local
from edge.memory.tiers.scene.baseline import Oddity
from edge.memory.tiers.scene.days import MOTION, PERSON, SEEN, SPEECH, Days, Routine
from edge.memory.tiers.scene.places import Place
from edge.memory.tiers.scene.reads import Found
from edge.types.vocabulary import article, counted, everyday

_AMONG: Final = {
    Days.ALL: "days",
    Days.WORKING: "working days",
    Days.WEEKEND: "weekend days",
    **{day: f"{day.value.capitalize()}s" for day in list(Days)[3:]},
}
_ON: Final = {Days.ALL: "", Days.WORKING: " on working days", Days.WEEKEND: " at weekends"}


def thing(what: str) -> str:
    """What is so, as a subject: "somebody", "a bicycle", "talking"."""
    if what == PERSON:
        return "somebody"
    if what in (SPEECH, MOTION):
        return {SPEECH: "talking", MOTION: "movement"}[what]
    word = everyday(what.removeprefix(SEEN))
    return f"{article(word)} {word}"


def sentence(found: Found, zone: tzinfo | None = None) -> str:
    """Something unusual, with what it is compared with: one sentence.

    Args:
        found: what.
        zone: whose calendar counts; None: the device's.
    """
    one = found.anomaly
    at = f"{to_local(found.start, zone):%H:%M}"
    days = f"{max(one.seen, round(one.days))} {_AMONG[one.among]}"
    between = f"between {to_local(found.hours[0], zone):%H:%M} and {to_local(found.hours[1], zone):%H:%M}"
    also = f", with {_listed([thing(what) for what in one.also])}" if one.also else ""
    if one.kind is Oddity.NEW:
        return f"{_capital(thing(one.what))} at {at}{also}: never seen here in the {days} before."
    if one.kind is Oddity.MORE:
        many = counted(one.what.removeprefix(SEEN), one.count)
        return f"{_capital(many)} at once at {at}{also}: usually {_amount(one.usual)} {between}."
    if one.kind is Oddity.MISSING:
        nobody = "Nobody" if one.what == PERSON else f"No {everyday(one.what.removeprefix(SEEN))}"
        return f"{nobody} {between}: {thing(one.what)} was there on {one.seen} of {days} before."
    seen = "none" if not one.seen else str(one.seen)
    return f"{_capital(thing(one.what))} at {at}{also}: so on {seen} of {days} before, {between}."


def hours(first: int, last: int, shift: int = 0) -> str:
    """Hours of the day, the last one included, on a clock that is `shift` hours ahead: "07:00–09:00"."""
    if (first, last) == (0, 23):
        return "at all hours"
    return f"{(first + shift) % 24:02d}:00–{(last + shift) % 24 + 1:02d}:00"


def routine(one: Routine, shift: int = 0) -> str:
    """Something usual: "somebody 07:00–09:00 on working days (38 of 40 days)"; `shift` as in `hours`."""
    much = f", about {_amount(one.usual)} at once" if one.usual >= 1.5 else ""
    on = _ON.get(one.among, f" on {_AMONG[one.among]}")
    return f"{thing(one.what)} {hours(one.first, one.last, shift)}{on}{much} ({one.seen} of {one.days} days)"


def place(one: Place) -> str:
    """A kind of place: "a kitchen (92 %: oven, fridge)"."""
    if one.kind is None:
        return "not known yet"
    grounds = ", ".join(ground if " " in ground else everyday(ground) for ground in one.grounds)
    return f"{article(one.kind)} {one.kind} ({one.confidence:.0%}: {grounds})"


def inventory(things: Iterable[tuple[str, int, int]]) -> str:
    """What is seen on most days: "table, two chairs"."""
    return ", ".join(everyday(label) for label, _, _ in things)


def _amount(number: float) -> str:
    return f"{number:.0f}" if abs(number - round(number)) < 0.25 else f"{number:.1f}"


def _listed(items: Sequence[str]) -> str:
    return " and ".join(items) if len(items) < 3 else f"{', '.join(items[:-1])} and {items[-1]}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
