"""The circuit breaker: who failed several times in a row is left alone for a while, then tried once. Pure.

Invariants:

* Closed, everything is admitted; `limit` failures in a row open it.
* Open, nothing is admitted before `until`; then it is half open.
* Half open, one probe is admitted. Its success closes, its failure opens again for twice as long, up to `longest_s`. A probe
  that never tells how it went is given up after `probe_s`, and another one is admitted.
* A success closes it whenever it comes. A failure that comes late, of a call from before it opened, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class State(StrEnum):
    """What a breaker does with calls."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class Rules:
    """When it opens, and for how long."""

    limit: int = 5  # failures in a row
    open_s: float = 30.0  # the first time
    longest_s: float = 600.0
    probe_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Breaker:
    """What is known of whom it guards."""

    state: State = State.CLOSED
    failures: int = 0  # in a row, while closed
    openings: int = 0  # since the last success
    until: float = 0.0  # monotonic seconds: open, nothing is admitted before; half open, the probe is given up then


def admit(breaker: Breaker, now: float, rules: Rules) -> tuple[Breaker, bool]:
    """Whether a call may be made at `now` (monotonic seconds), and what is known then."""
    if breaker.state is State.CLOSED:
        return breaker, True
    if now < breaker.until:
        return breaker, False
    return replace(breaker, state=State.HALF_OPEN, until=now + rules.probe_s), True


def succeeded(_breaker: Breaker) -> Breaker:
    """A call went well."""
    return Breaker()


def failed(breaker: Breaker, now: float, rules: Rules) -> Breaker:
    """A call failed at `now` (monotonic seconds)."""
    if breaker.state is State.OPEN:
        return breaker
    if breaker.state is State.CLOSED and breaker.failures + 1 < rules.limit:
        return replace(breaker, failures=breaker.failures + 1)
    openings = breaker.openings + 1
    wait = min(rules.longest_s, rules.open_s * 2.0 ** min(openings - 1, 64))
    return Breaker(State.OPEN, openings=openings, until=now + wait)


def abandoned(breaker: Breaker, now: float) -> Breaker:
    """A call was given up by who made it, which says nothing of whom it guards; the next one may be the probe."""
    return replace(breaker, state=State.OPEN, until=now) if breaker.state is State.HALF_OPEN else breaker
