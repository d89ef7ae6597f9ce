"""Forgetting while the service watches: also what is on its way into the memory."""

from __future__ import annotations

import math

from edge.app.events import Event, Events
from edge.app.remember import LeftOut, Rememberer
from edge.clock import utc_now
from edge.errors import UserError
from edge.identity import RULES
from edge.memory import Plan, Store, Target


def forget(store: Store, target: Target, token: str | None, rememberer: Rememberer | None = None) -> Plan:
    """Forget.

    Args:
        store: the memory, open for writing.
        target: what.
        token: of the plan that was shown; None: whatever goes with the target now.
        rememberer: through which this process remembers.

    Returns:
        What went.

    Raises:
        NotFoundError: it is not there.
        UserError: it cannot be forgotten by itself, or the memory has changed since it was shown.
        StoreError: it cannot be written, or a log could not be emptied.
    """
    if rememberer is None:
        return _forget(store, target, token)
    with rememberer.leaving_out(left_out(target)):
        return _forget(store, target, token)


def left_out(target: Target) -> LeftOut | None:
    """What of a target may still be on its way into the memory now."""
    now = utc_now()
    if target.everything:
        return LeftOut(-math.inf, now)
    if target.camera is not None:
        return LeftOut(-math.inf, now, target.camera)
    if target.since is not None or target.until is not None:
        since = -math.inf if target.since is None else target.since
        return LeftOut(since, now if target.until is None else target.until)
    return None


def tell_forgotten(events: Events, planned: Plan) -> None:
    """Let everybody who shows the memory look at it anew."""
    events.publish(Event("forgot", data={"text": planned.text}))


def _forget(store: Store, target: Target, token: str | None) -> Plan:
    planned = store.forget_plan(target)
    if token is not None and token != planned.token:
        raise UserError("The memory has changed since that was shown; look again at what will go.")
    store.forget(planned, RULES)
    return planned
