"""Semantic facts: what is known of people and things, since when, and until when."""

from edge.memory.tiers.facts.noting import Material, Noted, material, note_down, unasked
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
    "Material",
    "Noted",
    "create",
    "derive_said",
    "drop",
    "forget_all",
    "forget_faded",
    "forget_people",
    "material",
    "note",
    "note_again",
    "note_down",
    "renew",
    "settle",
    "settle_job",
    "unasked",
]
