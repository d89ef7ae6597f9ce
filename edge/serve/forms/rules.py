"""Rules, orders in plain words, notifications."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form


class OrderText(Form):
    """An order in plain words."""

    text: str = Field(min_length=1, max_length=400, description="“tell me when …”, “remind me …”, “remember that …”")


class Ordered(Form):
    """An order that was carried out."""

    text: str = Field(description="what was understood, in one sentence")
    item: str = Field(description="the id of the rule, or of the moment that keeps what to remember")


class OneRule(Form):
    """A rule."""

    id: str
    kind: str = Field(description="alert, reminder or quiet")
    text: str
    state: str = Field(description="active, paused or done")
    created: str
    camera: str | None
    urgent: bool
    next: str | None = Field(description="when time fires it next")
    last_told: str | None


class Notification(Form):
    """A decision about a rule."""

    id: str
    rule: str | None
    at: str = Field(description="of what happened")
    outcome: str = Field(description="deliver, digest or drop")
    reason: str
    text: str
    ground: list[str] = Field(description="ids of what it rests on")
    read: bool
