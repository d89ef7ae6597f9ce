"""`reflectworld people`: who is remembered, and what they are called."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from edge.cli.console import (
    HomeOption,
    JsonOption,
    open_for_reading,
    open_for_writing,
    out,
    print_json,
    say,
    settings_for,
)
from edge.cli.known import fact_json, said_fact
from edge.clock import iso, to_local
from edge.errors import NotFoundError, UserError
from edge.identity import name_entity
from edge.memory import Store
from edge.recall import Aspect, profile
from edge.types.records import EntityRecord, Kind, parse_id, public_id

app = typer.Typer(name="people", help="Who is remembered, and what they are called.", no_args_is_help=True)

WhoArgument = Annotated[str, typer.Argument(help="A name, “person 3”, or an id such as p3.", show_default=False)]


@app.command(name="list")
def list_people(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the people and voices in the memory, the latest seen first."""
    with open_for_reading(settings_for(home)) as store:
        people = sorted(store.entities(), key=lambda person: (-person.last_seen, person.id))
        if json:
            print_json([person_json(store, person) for person in people])
            return
    if not people:
        say("Nobody is remembered yet.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "who", "kind", "seen", "first", "last"):
        table.add_column(column, justify="right" if column == "seen" else "left")
    for person in people:
        table.add_row(
            public_id(Kind.ENTITY, person.id),
            person.title,
            person.kind.value,
            str(person.sightings),
            _local(person.first_seen),
            _local(person.last_seen),
        )
    out.print(table)


@app.command()
def show(who: WhoArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one person: when and where they were seen, and what they said."""
    with open_for_reading(settings_for(home)) as store:
        person = find_person(store, who)
        if json:
            print_json(person_json(store, person))
            return
        say(f"{person.title} ({public_id(Kind.ENTITY, person.id)}, {person.kind.value})")
        say(f"  name: {_name_source(person)}")
        known = profile(store, person.id)
        for title, found in (
            *((f"{aspect.value}s", known.by_aspect[aspect]) for aspect in Aspect if aspect is not Aspect.IDENTITY),
            ("before", known.past),
        ):
            if found:
                say(f"  {title}:")
                for fact in found:
                    say(f"    {said_fact(fact)}")
        say(f"  seen {person.sightings} {'time' if person.sightings == 1 else 'times'}:")
        for seen in store.observations(entity=person.id, limit=20):
            say(f"    {_local(seen.start)}–{to_local(seen.end):%H:%M:%S}  {seen.camera}  {seen.text}")
        said = store.utterances(speaker=person.id, limit=10)
        if said:
            say("  said:")
            for words in said:
                say(f"    {_local(words.start)}  “{words.text}”")


@app.command()
def name(
    who: WhoArgument,
    new_name: Annotated[str, typer.Argument(metavar="NAME", help="What to call them from now on.", show_default=False)],
    home: HomeOption = None,
) -> None:
    """Give a person a name; everything already remembered of them follows."""
    with open_for_writing(settings_for(home)) as store:
        person = find_person(store, who)
        before = person.title
        name_entity(store, person.id, new_name)
        say(f"{before} ({public_id(Kind.ENTITY, person.id)}) is now called {store.entity(person.id).title}.")


@app.command()
def allow(who: WhoArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Say that somebody without a name may be known again, whatever the settings say of strangers (identity.strangers)."""
    with open_for_writing(settings_for(home)) as store:
        person = store.agree(find_person(store, who).id)
        if json:
            print_json(person_json(store, person))
            return
    say(f"{person.title} ({public_id(Kind.ENTITY, person.id)}) is known again from now on.")


def find_person(store: Store, who: str) -> EntityRecord:
    """The one entity that `who` means.

    Raises:
        NotFoundError: nobody is called so.
        UserError: several are.
    """
    try:
        kind, number = parse_id(who)
    except ValueError:
        pass
    else:
        if kind is Kind.ENTITY:
            return store.entity(number)
    found = store.find_entities(who)
    if not found:
        raise NotFoundError(
            who, f"Nobody in the memory is called “{who[:60]}”; `reflectworld people list` shows who is."
        )
    if len(found) > 1:
        ids = ", ".join(public_id(Kind.ENTITY, person.id) for person in found)
        raise UserError(f"“{who[:60]}” means {len(found)} people ({ids}); give the id of one.")
    return found[0]


def person_json(store: Store, person: EntityRecord) -> dict[str, object]:
    """The documented form of a person (docs/json.md)."""
    return {
        "id": public_id(Kind.ENTITY, person.id),
        "title": person.title,
        "name": person.name,
        "name_source": person.name_source.value,
        "kind": person.kind.value,
        "first_seen": iso(person.first_seen),
        "last_seen": iso(person.last_seen),
        "facts": [fact_json(fact) for fact in profile(store, person.id).facts],
        "sightings": [
            {
                "id": public_id(Kind.OBSERVATION, seen.id),
                "trace": public_id(Kind.TRACE, seen.trace),
                "camera": seen.camera,
                "start": iso(seen.start),
                "end": iso(seen.end),
                "text": seen.text,
            }
            for seen in store.observations(entity=person.id, limit=max(1, person.sightings), newest_first=False)
        ],
    }


def _name_source(person: EntityRecord) -> str:
    said = {
        "none": "none yet",
        "addressed": "called so by others",
        "self": "said so themselves",
        "user": "given by you",
    }[person.name_source.value]
    return (
        f"{person.name} ({said})"
        if person.name
        else f"{said}; give one with `reflectworld people name p{person.id} NAME`"
    )


def _local(at: float) -> str:
    return f"{to_local(at):%Y-%m-%d %H:%M:%S}"
