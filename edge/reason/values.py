"""What is asked of a language model, and what comes back: an object of the form that was asked for, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Literal, TypeVar

T_co = TypeVar("T_co", covariant=True)

_PICTURES = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n": "image/png"}


class Why(StrEnum):
    """Why there is no answer."""

    NONE_CONFIGURED = "none_configured"  # no language model is set up
    NOT_ALLOWED = "not_allowed"  # it would leave the device, and no setting says that it may
    MISCONFIGURED = "misconfigured"  # a setting, a file or a package is lacking
    UNSUPPORTED = "unsupported"  # the model cannot do this, such as look at pictures
    OVER_BUDGET = "over_budget"  # of the request or of the day
    BREAKER_OPEN = "breaker_open"  # it failed lately and is left alone for a while
    OFFLINE = "offline"  # nobody answers at its address
    TIMED_OUT = "timed_out"  # the deadline of the request
    OVERLOADED = "overloaded"  # the server says that it has too much to do
    SERVER_FAULT = "server_fault"  # the server failed, or is no server of a language model
    REJECTED = "rejected"  # the server does not take the request: the key, the model, its length
    INVALID_OUTPUT = "invalid_output"  # what the model wrote has not the form that was asked for
    STOPPED = "stopped"  # the caller gave up


@dataclass(frozen=True, slots=True)
class Refusal:
    """No answer, and what can be done about it."""

    reason: Why
    text: str  # one sentence
    remedy: str  # what to do, one sentence; empty: nothing but to wait
    retry_s: float | None = None  # s after which it is worth another try by itself; None: something has to change first

    def __str__(self) -> str:
        """Both sentences."""
        return f"{self.text} {self.remedy}".strip()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str
    images: tuple[bytes, ...] = ()  # JPEG or PNG

    def __post_init__(self) -> None:
        for image in self.images:
            media_type(image)


def media_type(image: bytes) -> str:
    """The media type of a picture.

    Raises:
        ValueError: neither JPEG nor PNG.
    """
    for magic, name in _PICTURES.items():
        if image.startswith(magic):
            return name
    raise ValueError("a picture for a language model must be JPEG or PNG")


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may take."""

    tokens: int = 512  # of the answer, at most; of a second try, as many again
    cost: float | None = (
        None  # in the currency of the prices in the settings, with all tries; None: no limit but the day's
    )


@dataclass(frozen=True, slots=True)
class Request(Generic[T_co]):
    """One question to a language model."""

    purpose: str  # what it is for, such as "summary": totals are kept by it
    messages: tuple[Message, ...]
    form: type[T_co]  # of the answer: a pydantic model, or any type that pydantic validates, such as dict[str, str]
    budget: Budget = field(default_factory=Budget)
    seconds: float | None = None  # from the call to its answer, at most; None: as the settings say

    @property
    def images(self) -> int:
        """How many pictures it has."""
        return sum(len(message.images) for message in self.messages)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0  # in the currency of the prices in the settings

    def __add__(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, self.cost + other.cost)

    @property
    def tokens(self) -> int:
        """Of questions and answers together."""
        return self.tokens_in + self.tokens_out
