"""Whether word is sent of a match: deliver, keep for the digest, or drop. Pure: same input, same output.

In this order, the first that applies:

1. outside the rule's hours, or the rule does not count: drop;
2. the same segment has fired this rule: drop;
3. the rule was heard within its cool-down: drop;
4. another rule told the same topic within `topic_s` (24 h: users of comparable systems asked for it, omi PR #5138): drop;
5. quiet hours, and the rule is not urgent: digest;
6. the rule was heard `daily` times in the last 24 h, or all rules together `daily_total` times: digest;
7. deliver.

Times are those of what happened, so that a recording and a live stream are decided about alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from edge.clock import to_local
from edge.memory.tiers.procedural import AlertRecord, Outcome
from edge.notify.program import Hours

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How much the owner wants to hear."""

    cooldown_s: float
    topic_s: float
    daily: int
    daily_total: int
    quiet: tuple[Hours, ...] = ()
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule whose condition was met."""

    rule: int
    trace: int | None  # None: by time
    at: float  # UTC POSIX seconds
    topic: str
    hours: Hours
    cooldown_s: float | None = None  # of the rule itself
    urgent: bool = False
    asked_for: bool = False  # a reminder: given whatever else was said


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done about it."""

    outcome: Outcome
    reason: str  # one sentence


def decide(candidate: Candidate, recent: Sequence[AlertRecord], policy: Policy) -> Decision:
    """Decide about one match.

    Args:
        candidate: the match.
        recent: what was delivered or kept for a digest within a day (or `topic_s`) of it, before and after.
        policy: of the owner.
    """
    local = to_local(candidate.at, policy.zone)
    hour = local.hour + local.minute / 60
    if not candidate.hours.hold(local.weekday(), hour):
        return Decision(Outcome.DROP, "It was outside the hours of the rule.")
    mine = [one for one in recent if one.rule == candidate.rule]
    if candidate.trace is not None and any(one.trace == candidate.trace for one in mine):
        return Decision(Outcome.DROP, "The same moment was told already.")
    cooldown = policy.cooldown_s if candidate.cooldown_s is None else candidate.cooldown_s
    near = [one for one in mine if abs(candidate.at - one.at) < cooldown]
    if near and not (candidate.asked_for and candidate.trace is None):
        return Decision(
            Outcome.DROP,
            f"It was told {_ago(abs(candidate.at - near[-1].at))} before; the cool-down is {_ago(cooldown)}.",
        )
    if not candidate.asked_for:
        same = [
            one for one in recent
            if one.rule != candidate.rule and one.topic == candidate.topic and abs(candidate.at - one.at) < policy.topic_s
        ]  # fmt: skip
        if same:
            return Decision(Outcome.DROP, f"Another rule told the same {_ago(abs(candidate.at - same[-1].at))} before.")
    if not candidate.urgent and any(hours.hold(local.weekday(), hour) for hours in policy.quiet):
        return Decision(Outcome.DIGEST, "It was in quiet hours.")
    last_day = [one for one in recent if abs(candidate.at - one.at) < DAY_S and one.outcome is Outcome.DELIVER]
    if not candidate.urgent and not candidate.asked_for:
        if sum(one.rule == candidate.rule for one in last_day) >= policy.daily:
            return Decision(Outcome.DIGEST, f"The rule was heard {policy.daily} times within a day.")
        if len(last_day) >= policy.daily_total:
            return Decision(Outcome.DIGEST, f"All rules together were heard {policy.daily_total} times within a day.")
    return Decision(Outcome.DELIVER, "The rule's condition was met.")


def _ago(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"
