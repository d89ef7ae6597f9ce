"""`who`, `when`, `count` and `get`: the tools that look into the memory, beside `search`."""

from __future__ import annotations

from typing import Annotated

import typer

from edge.cli.console import HomeOption, JsonOption, open_for_reading, print_json, say, settings_for
from edge.cli.known import fact_json, said_fact
from edge.cli.spans import bound, moment
from edge.clock import iso, to_local
from edge.recall import Filters, Person, Recall, Result, Time

SinceOption = Annotated[
    str | None, typer.Option("--since", help="Only after this: ISO 8601, or words such as “yesterday”.")
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Only before the end of this.")]
CameraOption = Annotated[str | None, typer.Option("--camera", help="Only this camera.")]
PersonOption = Annotated[str | None, typer.Option("--person", help="Only where this person takes part: name or id.")]
ThingOption = Annotated[str | None, typer.Option("--thing", help="Only where this was seen or spoken of: “cup”.")]
PlaceOption = Annotated[str | None, typer.Option("--place", help="Only there: “kitchen”.")]
ImportantOption = Annotated[
    bool,
    typer.Option(
        "--important", help="Only moments with somebody who has a name, things to remember, and what you were told of."
    ),
]
AtOption = Annotated[
    str | None, typer.Option("--at", help="As it was known then: nothing that ended later is used.", show_default=False)
]


def filters_of(
    since: str | None,
    until: str | None,
    camera: str | None,
    person: str | None,
    thing: str | None,
    place: str | None,
    important: bool,
) -> Filters:
    """The options of a command as filters."""
    return Filters(bound(since, end=False), bound(until, end=True), camera, person, thing, place, important)


def who(
    name: Annotated[str, typer.Argument(help="A name, “person 3” or an id.", show_default=False)],
    at: AtOption = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say who somebody is: since when they are known, where they were last seen, what is known of them and whom they are with."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        found = Recall(store, settings=settings.recall).tools.who(name, at=_at(at))
    if json:
        print_json([person_json(person) for person in found])
        return
    for person in found:
        say(f"{person.title}  {person.id}  ({_many(person.moments, 'moment')})")
        say(f"    first seen {_local(person.first_seen)}, last {_local(person.last_seen)}  {person.last_moment}")
        for fact in person.facts:
            say(f"    {said_fact(fact)}")
        if person.company:
            say(f"    mostly with {', '.join(f'{one.title} ({one.moments})' for one in person.company)}")


def when(
    thing: Annotated[str | None, typer.Argument(help="A thing, like --thing.", show_default=False)] = None,
    person: PersonOption = None,
    place: PlaceOption = None,
    camera: CameraOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    important: ImportantOption = False,
    first: Annotated[bool, typer.Option("--first", help="The first times; else the latest.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="So many.")] = 10,
    at: AtOption = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the times at which something was so: with somebody, a thing, at a place, on a camera, or all of these together."""
    settings = settings_for(home)
    wanted = filters_of(since, until, camera, person, thing, place, important)
    with open_for_reading(settings) as store:
        found = Recall(store, settings=settings.recall).tools.when(wanted, limit, oldest_first=first, at=_at(at))
    if json:
        print_json([time_json(one) for one in found])
    elif not found:
        say("Never, as far as is remembered.")
    else:
        for one in found:
            say(f"{_local(one.start)} – {_local(one.end)}  {one.first}  ({_many(one.moments, 'moment')})")


def count(
    thing: Annotated[str | None, typer.Argument(help="A thing, like --thing of search.", show_default=False)] = None,
    person: PersonOption = None,
    place: PlaceOption = None,
    camera: CameraOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    important: ImportantOption = False,
    at: AtOption = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Count how often something was so, on how many days and for how long."""
    settings = settings_for(home)
    wanted = filters_of(since, until, camera, person, thing, place, important)
    with open_for_reading(settings) as store:
        found = Recall(store, settings=settings.recall).tools.count(wanted, at=_at(at))
    if json:
        print_json(
            {
                "times": found.times,
                "moments": found.moments,
                "days": found.days,
                "seconds": round(found.seconds, 1),
                "first": None if found.first is None else time_json(found.first),
                "last": None if found.last is None else time_json(found.last),
            }
        )
    elif found.first is None or found.last is None:
        say("Never, as far as is remembered.")
    else:
        say(
            f"{_many(found.times, 'time')} on {_many(found.days, 'day')}, {found.seconds / 60:.0f} minutes in all;"
            f" first {_local(found.first.start)}, last {_local(found.last.end)}"
        )


def get(
    item: Annotated[str, typer.Argument(help="An id: t12, o7, u9, k4 or n2.", show_default=False)],
    neighbours: Annotated[
        int, typer.Option("--neighbours", min=0, max=100, help="So many moments before and after it, too.")
    ] = 0,
    evidence: Annotated[bool, typer.Option("--evidence", help="What it rests on instead.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show a moment or a stretch of the timeline, what is next to it, or what it rests on."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        tools = Recall(store, settings=settings.recall).tools
        found = tools.evidence(item) if evidence else tools.get(item, neighbours)
    if json:
        print_json([result_json(one) for one in found])
    else:
        for one in found:
            names = f"  ({', '.join(one.people)})" if one.people else ""
            say(f"{_local(one.start)}  {one.id}  {one.camera}{names}")
            say(f"    {one.text}")


def result_json(result: Result) -> dict[str, object]:
    """The documented form of a result (docs/json.md)."""
    return {
        "id": result.id,
        "level": result.level.value,
        "trace": result.trace,
        "camera": result.camera,
        "start": iso(result.start),
        "end": iso(result.end),
        "score": round(result.score, 4),
        "text": result.text,
        "entities": [{"id": who, "title": title} for who, title in zip(result.entities, result.people, strict=False)],
        "key_frame": result.key_frame,
    }


def person_json(person: Person) -> dict[str, object]:
    """The documented form of somebody (docs/json.md)."""
    return {
        "id": person.id,
        "title": person.title,
        "kind": person.kind.value,
        "first_seen": iso(person.first_seen),
        "last_seen": iso(person.last_seen),
        "last_moment": person.last_moment,
        "moments": person.moments,
        "facts": [fact_json(fact) for fact in person.facts],
        "company": [{"id": one.id, "title": one.title, "moments": one.moments} for one in person.company],
    }


def time_json(one: Time) -> dict[str, object]:
    """The documented form of a time (docs/json.md)."""
    return {"start": iso(one.start), "end": iso(one.end), "moments": one.moments, "first": one.first, "last": one.last}


def _at(text: str | None) -> float | None:
    return None if text is None else moment(text, end=True)


def _local(at: float) -> str:
    return f"{to_local(at):%Y-%m-%d %H:%M:%S}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
