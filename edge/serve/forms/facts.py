"""What is known of people and things."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.people import PersonFact


class OneFact(PersonFact):
    """Something known."""

    about: str | None = Field(description="id of the person; null: of things")
    subject: str = Field(description="whom or what it is about, in words")
    protected: bool = Field(description="no job changes it")
    source: str = Field(description="`said`, `model`, `counted` or `name`")


class WholeFact(OneFact):
    """Something known, with what was so before and after."""

    history: list[OneFact] = Field(description="in the order of time, this one included")
