"""What all forms share: people, lines, words, found moments."""

from __future__ import annotations

from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class Form(BaseModel):
    """Base: unknown members are refused in requests."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Page(Form, Generic[Item]):
    """Some of many."""

    items: list[Item]
    next: str | None = Field(None, description="give it as `before` to get what follows; null: nothing follows")


class Who(Form):
    """Somebody who takes part."""

    id: str
    title: str = Field(description="the name, or “person 3”")


class Line(Form):
    """One line of a moment."""

    at: str
    text: str


class Words(Form):
    """Something that was said."""

    id: str
    trace: str
    start: str
    end: str
    speaker: str | None = Field(description="id of a person; null: not known")
    speaker_name: str | None
    text: str
