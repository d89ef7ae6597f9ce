"""What is known of people and things."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form
from edge.serve.forms.people import PersonFact


class OneFact(PersonFact):
    """Something known."""

    about: str | None = Field(description="id of the person; null: of things")
    subject: str = Field(description="whom or what it is about, in words")
    protected: bool = Field(description="no job changes it")
    source: str = Field(description="`said`, `model`, `counted` or `name`")


class Relation(Form):
    """Who or what is related to whom or what."""

    subject: str = Field(description="in words, as the others")
    relation: str
    object: str
    person: str | None = Field(description="id of the person at the other end; null: it is none")
    moments: int
    days: int
    weight: float = Field(description="by which they are ordered")
    first: str
    last: str
    sources: list[str] = Field(description="ids of the latest moments in which it was so")


class WholeFact(OneFact):
    """Something known, with what was so before and after."""

    history: list[OneFact] = Field(description="in the order of time, this one included")
