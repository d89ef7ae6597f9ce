"""People, what is known of them, and corrections."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form, Words
from edge.serve.forms.moments import Seen


class Person(Form):
    """Somebody who is remembered."""

    id: str
    title: str
    name: str | None
    name_source: str
    kind: str
    first_seen: str
    last_seen: str
    seen: int = Field(description="observations")
    face: str | None = Field(description="path of the best picture of the face")


class Face(Form):
    """A picture of a face."""

    path: str
    at: str
    trace: str | None


class NameHeard(Form):
    """A name that was heard for somebody."""

    name: str
    source: str
    at: str
    accepted: bool
    utterance: str | None


class PersonFact(Form):
    """Something known of a person."""

    id: str
    kind: str = Field(description="`name`, `work`, `job`, `home`, `likes`, `place`, `hours`, `company`, …")
    aspect: str = Field(description="`identity`, `attribute`, `preference`, `relation` or `habit`")
    importance: float = Field(description="0 to 1; rises each time that it is confirmed")
    text: str = Field(description="what follows the name: “works at the bakery”")
    since: str | None
    until: str | None = Field(description="from when something else was so; null: it is so now")
    sources: list[str] = Field(description="ids of what it rests on, the latest first")


class WholePerson(Person):
    """A person with what is known of them."""

    facts: list[PersonFact] = Field(description="what is so now first")
    faces: list[Face] = Field(description="best first")
    sightings: list[Seen] = Field(description="newest first")
    utterances: list[Words] = Field(description="newest first")
    names_heard: list[NameHeard]


class NewName(Form):
    """What to call somebody."""

    name: str | None = Field(max_length=200, description="null: take the name away")


class NewMerge(Form):
    """Who becomes part of a person."""

    other: str = Field(max_length=40, description="id of who becomes part of them")
    preview: bool = Field(False, description="only say what would be done")


class NewSplit(Form):
    """Which sightings are somebody else's."""

    sightings: list[str] = Field(
        min_length=1, max_length=1000, description="ids of moments (t12), observations (o7) or words (u9)"
    )
    to: str | None = Field(None, max_length=40, description="whose they are; null: somebody new's")
    preview: bool = Field(False, description="only say what would be done")


class OneCorrection(Form):
    """Something that the owner put right."""

    id: str
    kind: str = Field(description="`name`, `merge`, `split` or `not`")
    person: str = Field(description="who was kept or named, or whose the sightings were")
    other: str | None = Field(description="who became part of them, or whose the sightings are now")
    created: bool = Field(description="`other` is somebody new")
    name: str | None = Field(description="that was given")
    observations: int = Field(description="that were moved, of a split")
    utterances: int = Field(description="that were moved, of a split")
    at: str
    undone_at: str | None
    text: str = Field(description="what it did, one sentence")


class Corrected(Form):
    """What a correction does or did."""

    text: str = Field(description="what it reaches, one sentence")
    correction: OneCorrection | None = Field(description="null: nothing was done yet")
