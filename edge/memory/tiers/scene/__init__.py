"""Scene memory: what each camera sees and hears hour by hour, what is usual there, and what is not."""

from edge.memory.tiers.scene.tier import (
    SCENE,
    create,
    forget_faded,
    forget_quiet,
    hours_of,
    note,
    note_again,
    note_quiet,
    settle,
    settle_job,
)

__all__ = [
    "SCENE",
    "create",
    "forget_faded",
    "forget_quiet",
    "hours_of",
    "note",
    "note_again",
    "note_quiet",
    "settle",
    "settle_job",
]
