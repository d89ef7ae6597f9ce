"""What a language model looks like from inside this room: one call, one completion, or trouble."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from edge.reason.values import Message, Refusal, Why

Halted = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Call:
    """One try."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]  # of the answer
    purpose: str
    tokens: int  # of the answer, at most


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote."""

    text: str
    tokens_in: int | None  # None: it was not told
    tokens_out: int | None
    cut: bool = False  # it ended because the tokens did


class Trouble(Exception):  # noqa: N818 -- it never leaves this room
    """There is no completion."""

    def __init__(self, refusal: Refusal, *, again: bool = False, wait: float | None = None, sick: bool = False) -> None:
        """Make one.

        Args:
            refusal: what the caller is told.
            again: whether another try may go better.
            wait: s before it, as whoever serves asks for; None: nobody said.
            sick: whether it counts against the backend, as it does not when only the request is at fault.
        """
        super().__init__(str(refusal))
        self.refusal = refusal
        self.again = again
        self.wait = wait
        self.sick = sick


def stopped() -> Trouble:
    """The caller gave up."""
    return Trouble(Refusal(Why.STOPPED, "The request was given up.", ""))


def timed_out(seconds: float) -> Trouble:
    """The deadline came."""
    text = f"The language model did not answer within {seconds:.3g} s."
    remedy = "Give it more time, a smaller model or a faster machine."
    return Trouble(Refusal(Why.TIMED_OUT, text, remedy, retry_s=60.0), sick=True)


class Backend(Protocol):
    """One language model."""

    @property
    def name(self) -> str:
        """For people: what it is and where."""

    def complete(self, call: Call, seconds: float, halted: Halted) -> Completion:
        """Make one try; from any thread, several at once.

        Args:
            call: what is asked.
            seconds: at most.
            halted: asked several times a second; when it says so, the try is given up.

        Raises:
            Trouble: there is no completion.
        """

    def probe(self, seconds: float) -> Refusal | None:
        """Whether it is there, without asking it anything: None, or what is wrong."""

    def close(self) -> None:
        """End its threads; idempotent."""
