"""What cameras look at, what is usual and unusual there, and moments that look alike."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form


class Routine(Form):
    """Something that happens on most days."""

    what: str = Field(description="person, speech, motion, or a class of things")
    from_hour: int
    to_hour: int = Field(description="the end of its last hour")
    days_of_week: str = Field(description="all, working, weekend, or one day")
    seen: int = Field(description="days on which it was so")
    days: int = Field(description="days on which the camera was watching then")
    usual: float = Field(description="of it at once on such a day")
    text: str


class Standing(Form):
    """Something that is to be seen on most days."""

    label: str
    seen: int
    days: int


class Spent(Form):
    """Time of a camera that is carried about in one kind of place."""

    kind: str
    hours: int


class OneScene(Form):
    """What one camera looks at."""

    camera: str
    place: str | None = Field(description="kind of place; null: nothing tells, or it is carried about")
    confidence: float = Field(description="of `place`, 0..1")
    grounds: list[str]
    moving: bool = Field(description="it is carried about")
    days: int = Field(description="on which it watched, of the latest 56")
    moments: int
    routines: list[Routine]
    things: list[Standing]
    places: list[Spent]


class Anomaly(Form):
    """Something unusual."""

    camera: str
    kind: str = Field(description="unexpected, new, more, or missing")
    what: str
    start: str
    end: str
    trace: str | None = Field(description="the first moment of it; null: of what is missing")
    count: int
    usual: float
    seen: int
    days: float
    among: str = Field(description="which days were compared: all, working, weekend")
    chance: float = Field(description="of it on such a day, with what was known before")
    also: list[str]
    text: str


class Place(Form):
    """Some hours of a camera in one place."""

    start: str
    end: str
    place: str | None
    confidence: float
    moments: int
    again: str | None = Field(description="an earlier moment that looks as if it were there")
    cosine: float | None


class Frame(Form):
    """A stored picture by its time; `/pictures/{id}` gives the JPEG."""

    id: str
    trace: str
    camera: str
    at: str
    away_s: float = Field(description="how much later than asked it was taken, s")
    width: int
    height: int
