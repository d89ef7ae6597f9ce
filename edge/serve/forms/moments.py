"""Moments, their pictures and evidence; days."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form, Line, Who, Words


class Moment(Form):
    """One remembered segment."""

    id: str
    camera: str
    start: str
    end: str
    text: str = Field(description="what was seen; empty where there was only speech")
    lines: list[Line]
    entities: list[Who]
    utterances: list[Words]
    key_frames: list[str]
    unusual: list[str] = Field(default_factory=list, description="what is unusual about it, one sentence each")


class Mark(Form):
    """A box on a picture."""

    label: str
    entity: str | None
    title: str | None = Field(description="of the entity")
    box: tuple[float, float, float, float] = Field(
        description="x1, y1, x2, y2 as fractions of the picture's width and height"
    )


class KeyFrame(Form):
    """A stored picture; `/pictures/{id}` gives the JPEG."""

    id: str
    at: str
    width: int
    height: int
    marks: list[Mark]


class Seen(Form):
    """One observation."""

    id: str
    trace: str
    camera: str
    label: str
    entity: str | None
    start: str
    end: str
    text: str
    score: float


class Why(Form):
    """A decision about who somebody is."""

    id: str
    outcome: str
    entity: str | None
    reason: str


class WholeMoment(Moment):
    """A moment with all that is known of it."""

    observations: list[Seen]
    pictures: list[KeyFrame]
    decisions: list[Why]
    before: str | None = Field(description="the moment before it on the same camera")
    after: str | None


class DayMoment(Form):
    """A moment as a timeline shows it."""

    id: str
    camera: str
    start: str
    end: str
    text: str
    people: list[str] = Field(description="ids")
    key_frame: str | None


class Day(Form):
    """A day of the device's calendar."""

    date: str
    start: str
    end: str
    moments: list[DayMoment] = Field(description="oldest first")
    people: list[Who]
    cameras: list[str]
    previous: str | None = Field(description="the day before it that has moments")
    next: str | None


class DayCount(Form):
    """How much a day holds."""

    date: str
    moments: int
