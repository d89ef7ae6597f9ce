"""What the tools say: who somebody is, at which times something was so, how often."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form
from edge.serve.forms.facts import OneFact


class OneTime(Form):
    """A time at which something was so."""

    start: str
    end: str
    moments: int
    first: str = Field(description="id of its first moment")
    last: str


class Counted(Form):
    """How often something was so."""

    times: int = Field(description="moments that follow each other are one time")
    moments: int
    days: int
    seconds: float
    first: OneTime | None
    last: OneTime | None


class Companion(Form):
    """Somebody whom somebody else was with."""

    id: str
    title: str
    moments: int


class SomeBody(Form):
    """Who somebody is, as far as the memory knows."""

    id: str
    title: str
    kind: str = Field(description="person or voice")
    first_seen: str
    last_seen: str
    last_moment: str = Field(description="id of the moment in which they were last seen or heard")
    moments: int
    facts: list[OneFact] = Field(description="what is so")
    company: list[Companion] = Field(description="whom they were with most")
