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
    deep: bool | None = Field(
        None, description="true: look further although the first answer is sure; false: no further; else as needed"
    )


class Looked(Form):
    """One look after the first pass."""

    memory: str
    where: str = Field(description="the same in words")
    query: str
    why: str
    brought: int
    helped: bool


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
    understood: str | None = Field(None, description="the question, when it was found among other text")
    silent: bool = Field(False, description="what was heard asks nothing of the memory: nothing is to be said aloud")
    rounds: int
    looks: list[Looked] = Field(default_factory=list, description="what was looked at after the first pass")
    id: str | None = Field(None, description="by which the answer can be judged; null: it is not kept")
    ms: float


class Judgement(Form):
    """What is thought of an answer."""

    good: bool


class Judged(Form):
    """An answer that was judged."""

    id: str
    question: str
    good: bool
    learned: bool = Field(description="it is among those that were learned from")
