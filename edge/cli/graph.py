"""`reflectworld graph`: who and what is related to whom and what."""

from __future__ import annotations

from typing import Annotated

import typer

from edge.cli.console import HomeOption, JsonOption, open_for_reading, print_json, say, settings_for
from edge.cli.known import local
from edge.cli.spans import bound
from edge.clock import iso
from edge.errors import NotFoundError
from edge.recall import Related, key_of, related


def graph(
    what: Annotated[
        str | None,
        typer.Argument(help="A person (name or id), a thing or a place; all when left out.", show_default=False),
    ] = None,
    at: Annotated[str | None, typer.Option("--at", help="As it was known then: a date, a time, or words.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="At most so many, the strongest.")] = 30,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show who and what is related: since when, on how many days, and in which moments last.

    What was so on many days is stronger than what was so often on one.
    """
    with open_for_reading(settings_for(home)) as store:
        key = None
        if what is not None:
            key = key_of(store, what)
            if key is None:
                raise NotFoundError(
                    what, f"Nothing is related to “{what[:60]}” yet; `reflectworld graph` lists what is known."
                )
        found = related(store, key, at=bound(at, end=True), limit=limit)
    if json:
        print_json([_json(one) for one in found])
        return
    if not found:
        say("Nobody and nothing is related yet.")
        return
    for one in found:
        many = f"{one.moments} moment{'s' * (one.moments != 1)} on {one.days} day{'s' * (one.days != 1)}"
        say(f"{one.sentence}  ({many}, last {local(one.last)})  [{', '.join(one.sources)}]")


def _json(one: Related) -> dict[str, object]:
    return {
        "subject": one.subject,
        "relation": one.relation,
        "object": one.object,
        "person": one.person,
        "moments": one.moments,
        "days": one.days,
        "weight": round(one.weight, 3),
        "first": iso(one.first),
        "last": iso(one.last),
        "sources": list(one.sources),
    }
