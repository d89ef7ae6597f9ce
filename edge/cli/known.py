"""How the command line tells what is known."""

from __future__ import annotations

from edge.clock import iso, to_local
from edge.recall import Fact


def fact_json(one: Fact) -> dict[str, object]:
    """The documented form of a fact (docs/json.md)."""
    return {
        "id": one.id,
        "about": one.about,
        "subject": one.subject,
        "kind": one.kind,
        "aspect": one.aspect.value,
        "text": one.text,
        "importance": round(one.importance, 3),
        "since": None if one.since is None else iso(one.since),
        "until": None if one.until is None else iso(one.until),
        "protected": one.protected,
        "source": one.source,
        "sources": list(one.sources),
    }


def said_fact(one: Fact) -> str:
    """What follows the subject, with until when it was so and what it rests on."""
    until = "" if one.until is None else f" until {local(one.until)}"
    return f"{one.text}{until}" + (f" [{', '.join(one.sources)}]" if one.sources else "")


def local(at: float) -> str:
    """A moment in local time, to the minute."""
    return f"{to_local(at):%Y-%m-%d %H:%M}"
