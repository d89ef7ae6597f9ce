"""The graph: who and what is related to whom and what, moment by moment and over days."""

from edge.memory.tiers.graph.phrases import WEARER, Key
from edge.memory.tiers.graph.reads import (
    Bond,
    Link,
    fan,
    find,
    happenings,
    in_traces,
    links,
    links_of,
    named,
    size,
    weigh,
)
from edge.memory.tiers.graph.tier import (
    clear,
    create,
    derive,
    drop,
    fade,
    forget_faded,
    forget_kept,
    forget_people,
    note,
    note_again,
)
from edge.memory.tiers.graph.words import Relation

__all__ = [
    "WEARER",
    "Bond",
    "Key",
    "Link",
    "Relation",
    "clear",
    "create",
    "derive",
    "drop",
    "fade",
    "fan",
    "find",
    "forget_faded",
    "forget_kept",
    "forget_people",
    "happenings",
    "in_traces",
    "links",
    "links_of",
    "named",
    "note",
    "note_again",
    "size",
    "weigh",
]
