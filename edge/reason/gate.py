"""Where a request may be answered: here, elsewhere, later, or nowhere. Pure.

The one place where that is decided. `SettingsGate` goes by the settings and by what was spent; a gate that also looks at
temperature, battery, network and queue stands here in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from edge.clock import to_local
from edge.reason.values import Refusal, Usage, Why
from edge.reason.wire import is_here
from edge.settings import ReasonSettings


class Place(StrEnum):
    """Where."""

    LOCAL = "local"
    CLOUD = "cloud"  # any other machine
    LATER = "later"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Want:
    """What a request would take."""

    purpose: str
    images: int
    most: Usage  # with all tries that it may need


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says."""

    place: Place
    refusal: Refusal | None = None  # for `LATER` and `NONE`


class Gate(Protocol):
    """Decides for each request."""

    def decide(self, want: Want, today: Usage, now: float) -> Decision:
        """Decide.

        Args:
            want: what is asked.
            today: what was used since midnight, local time, with what is under way.
            now: UTC POSIX seconds.
        """


class SettingsGate:
    """Decides by the settings and the budgets of the day."""

    def __init__(self, settings: ReasonSettings) -> None:
        self._settings = settings

    def decide(self, want: Want, today: Usage, now: float) -> Decision:
        """Decide; see `Gate`."""
        settings = self._settings
        if settings.backend == "none":
            remedy = "Set one up in [reason]: docs/language-models.md says how."
            return _no(Refusal(Why.NONE_CONFIGURED, "No language model is set up.", remedy))
        here = settings.backend == "llama" or is_here(settings.base_url)
        if not here and not settings.allow_remote:
            text = "The language model is on another machine, and nothing may be sent there."
            return _no(
                Refusal(Why.NOT_ALLOWED, text, "Allow it with [reason] allow_remote = true, or use one on this device.")
            )
        if not here and want.images and not settings.allow_remote_images:
            text = "The language model is on another machine, and no pictures may be sent there."
            return _no(Refusal(Why.NOT_ALLOWED, text, "Allow it with [reason] allow_remote_images = true."))
        spent = today + want.most
        if settings.daily_tokens is not None and spent.tokens > settings.daily_tokens:
            return _later("tokens", "daily_tokens", want, settings.daily_tokens, now)
        if settings.daily_cost is not None and spent.cost > settings.daily_cost:
            return _later("cost", "daily_cost", want, settings.daily_cost, now)
        return Decision(Place.LOCAL if here else Place.CLOUD)


def next_midnight(now: float) -> float:
    """UTC POSIX seconds of the next midnight, local time."""
    tomorrow = to_local(now).date() + timedelta(days=1)
    return datetime(tomorrow.year, tomorrow.month, tomorrow.day).astimezone().timestamp()


def _no(refusal: Refusal) -> Decision:
    return Decision(Place.NONE, refusal)


def _later(what: str, setting: str, want: Want, limit: float, now: float) -> Decision:
    alone = want.most.tokens > limit if setting == "daily_tokens" else want.most.cost > limit
    if alone:
        text = f"The request alone would take more {what} than a day may."
        return _no(Refusal(Why.OVER_BUDGET, text, f"Raise [reason] {setting}."))
    text = f"The {what} of today may not be more than {limit:g}."
    remedy = f"It goes on tomorrow; or raise [reason] {setting}."
    return Decision(Place.LATER, Refusal(Why.OVER_BUDGET, text, remedy, retry_s=max(1.0, next_midnight(now) - now)))
