"""Stretches of time and what goes on now."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form, Who


class StretchPerson(Form):
    """Somebody in a stretch of time."""

    id: str
    title: str
    moments: int


class Stretch(Form):
    """A node of the timeline; of level `trace`, a moment."""

    id: str
    level: str
    camera: str
    start: str
    end: str
    moments: int
    text: str
    summary_source: str = Field(description="extractive, or model")
    people: list[StretchPerson]
    places: dict[str, int] = Field(description="in how many moments it is spoken of")
    things: dict[str, int] = Field(description="in how many moments it was seen")


class WholeStretch(Stretch):
    """A node of the timeline with what it was made of."""

    made_of: list[Stretch]


class Target(Form):
    """Somebody or something that is followed."""

    label: str
    person: str | None
    title: str | None
    last: str
    moments: int
    missed: int = Field(description="moments in a row without it, up to now")


class Working(Form):
    """What goes on in front of a camera."""

    camera: str
    event: str
    start: str
    end: str
    current: bool
    moments: int
    summary: str
    latest: list[str] = Field(description="the latest moments in short, oldest first")
    people: list[Who] = Field(description="who was noticed lately, the latest first")
    targets: list[Target]
