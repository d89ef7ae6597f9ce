"""Questions, answers and what a search finds."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form, Who


class Found(Form):
    """One result of a search."""

    id: str
    level: str
    trace: str
    camera: str
    start: str
    end: str
    score: float
    text: str
    entities: list[Who]
    key_frame: str | None


class Question(Form):
    """A question to the memory."""

    question: str = Field(min_length=1, max_length=20_000)
    at: str | None = Field(None, description="ask as if it were then: nothing that ended later is used")


class Answered(Form):
    """An answer, and what it rests on."""

    question: str
    kind: str
    answer: str
    found: bool
    start: str | None
    end: str | None
    people: list[str]
    camera: str | None
    key_frame: str | None
    cited: list[str]
    evidence: list[Found]
    notes: list[str]
    rounds: int
    ms: float
