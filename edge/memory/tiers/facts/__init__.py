"""Semantic facts: what is known of people and things, since when, and until when."""

from edge.memory.tiers.facts.tier import (
    EVERY,
    FACTS,
    create,
    derive_said,
    drop,
    forget_all,
    forget_faded,
    forget_people,
    note,
    note_again,
    renew,
    settle,
    settle_job,
)

__all__ = [
    "EVERY",
    "FACTS",
    "create",
    "derive_said",
    "drop",
    "forget_all",
    "forget_faded",
    "forget_people",
    "note",
    "note_again",
    "renew",
    "settle",
    "settle_job",
]
