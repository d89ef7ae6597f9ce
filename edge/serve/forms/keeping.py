"""Forgetting and pausing."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form


class ForgetThis(Form):
    """What to forget: one of these (`since` and `until` go together)."""

    person: str | None = Field(None, max_length=40, description="id of a person or a voice: all that is theirs")
    since: str | None = Field(None, max_length=60, description="all moments that end after this")
    until: str | None = Field(None, max_length=60, description="all moments that begin before this")
    camera: str | None = Field(None, max_length=200, description="all that a camera saw")
    items: list[str] = Field([], max_length=1000, description="ids: t12, o7, u9, k4, n2, r3, a5")
    everything: bool = False


class Forget(ForgetThis):
    """What to forget, as a preview showed it."""

    token: str = Field(max_length=100, description="of the preview, so that what goes is what was shown")


class ForgetPreview(Form):
    """What will go, or went."""

    token: str = Field(description="give it back to forget exactly this")
    text: str = Field(description="one sentence")
    counts: dict[str, int] = Field(description="how many of what")
    beyond: list[str] = Field(description="copies that are not reached, one sentence each")
    person: str | None
    since: str | None
    until: str | None
    camera: str | None
    items: list[str]
    everything: bool


class NewPause(Form):
    """For how long."""

    seconds: float | None = Field(None, gt=0, le=31_536_000, description="null: until it is resumed")


class Paused(Form):
    """Whether everything is paused."""

    paused: bool
    since: str | None
    until: str | None = Field(description="null: until it is resumed")
