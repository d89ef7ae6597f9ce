"""The one-time token that lets a device pair: who may use it, how often it may be guessed at.

Pure: the state is a value, time is an argument. Invariants, held by property tests:

* a token is accepted at most once, only before it expires, and only the right one;
* after 5 wrong tries an address is refused, after 20 of all addresses everybody is, also with the right token, until
  there is a new invitation;
* the token itself is not kept, only its hash, and hashes are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from edge.serve.protocols import Scope

TOKEN_BYTES: Final = 16
LIFETIME_S: Final = 600.0
TRIES_OF_ADDRESS: Final = 5
TRIES_OF_ALL: Final = 20


class Stage(StrEnum):
    """How it stands with an invitation."""

    NONE = "none"  # nobody has been invited
    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"
    LOCKED = "locked"  # guessed at too often
    WITHDRAWN = "withdrawn"


class Verdict(StrEnum):
    """What became of a try."""

    ACCEPTED = "accepted"
    WRONG = "wrong"
    BLOCKED = "blocked"  # this address guessed too often
    CLOSED = "closed"  # no invitation is open


@dataclass(frozen=True, slots=True)
class Invitation:
    """One offer to pair. Times are seconds of a clock that never goes backwards."""

    digest: bytes  # SHA-256 of the token
    scopes: frozenset[Scope]
    expires: float
    name: str | None = None  # of the device, where whoever invites gives one
    used: bool = False
    withdrawn: bool = False
    wrong: Mapping[str, int] = field(default_factory=dict)  # tries by address; at most TRIES_OF_ALL of them

    def stage(self, now: float) -> Stage:
        """How it stands with it."""
        if self.used:
            return Stage.USED
        if self.withdrawn:
            return Stage.WITHDRAWN
        if sum(self.wrong.values()) >= TRIES_OF_ALL:
            return Stage.LOCKED
        return Stage.OPEN if now < self.expires else Stage.EXPIRED


def invite(now: float, scopes: frozenset[Scope], name: str | None = None) -> tuple[Invitation, str]:
    """A new invitation and its token, 22 characters that are safe in an address."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return Invitation(_digest(token), scopes, now + LIFETIME_S, name), token


def present(invitation: Invitation, token: str, address: str, now: float) -> tuple[Invitation, Verdict]:
    """Try a token.

    Args:
        invitation: as it is.
        token: what was given, of any length.
        address: what is counted as one guesser.
        now: the present.

    Returns:
        The invitation as it is afterwards, and what became of the try.
    """
    right = hmac.compare_digest(invitation.digest, _digest(token))
    if invitation.stage(now) is not Stage.OPEN:
        return invitation, Verdict.CLOSED
    tries = invitation.wrong.get(address, 0)
    if tries >= TRIES_OF_ADDRESS:
        return invitation, Verdict.BLOCKED
    if right:
        return replace(invitation, used=True), Verdict.ACCEPTED
    return replace(invitation, wrong={**invitation.wrong, address: tries + 1}), Verdict.WRONG


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
