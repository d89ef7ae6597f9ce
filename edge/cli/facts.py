"""`reflectworld facts`: what is known of people and things, since when and until when."""

from __future__ import annotations

from typing import Annotated

import typer

from edge.cli.console import HomeOption, JsonOption, open_for_reading, print_json, say, settings_for
from edge.cli.known import fact_json, local, said_fact
from edge.cli.people import find_person
from edge.cli.spans import bound
from edge.memory import Store
from edge.recall import Fact, fact_history, known_facts, one_fact
from edge.types.records import Kind
from edge.types.vocabulary import labels_for

app = typer.Typer(
    name="facts", help="What is known of people and things, since when and until when.", no_args_is_help=True
)

FactArgument = Annotated[str, typer.Argument(help="The id of a fact, such as f3.", show_default=False)]


@app.command(name="list")
def list_facts(
    of: Annotated[str | None, typer.Option("--of", metavar="WHO", help="About this person: a name or an id.")] = None,
    thing: Annotated[str | None, typer.Option("--thing", help="About this class of things: “cup”.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only this kind: work, home, likes, place, …")] = None,
    at: Annotated[str | None, typer.Option("--at", help="As it was known then: a date, a time, or words.")] = None,
    past: Annotated[bool, typer.Option("--past", help="Also what is so no more.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many, the latest.")] = 100,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what is known: what is so now first, then the most important."""
    with open_for_reading(settings_for(home)) as store:
        found = known_facts(
            store,
            entity=None if of is None else find_person(store, of).id,
            label=None if thing is None else (labels_for(thing) or (thing.strip().lower(),))[0],
            kinds=None if kind is None else [kind],
            at=bound(at, end=True),
            history=past,
            limit=limit,
        )
    if json:
        print_json([fact_json(one) for one in found])
        return
    if not found:
        say("Nothing is known of that yet.")
    for one in found:
        say(f"{one.id}  {one.subject} {said_fact(one)}")


@app.command()
def show(fact: FactArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Show one fact: since when, how firmly, and what it rests on."""
    with open_for_reading(settings_for(home)) as store:
        one = one_fact(store, fact)
        grounds = _grounds(store, one)
    if json:
        print_json(fact_json(one))
        return
    say(f"{one.id}  {one.sentence}")
    since = "" if one.since is None else f"  since {local(one.since)}"
    until = "" if one.until is None else f", until {local(one.until)}"
    if since or until:
        say(f"{since}{until}" if since else f"  {until.removeprefix(', ')}")
    how = {"said": "said by them", "model": "noted by a language model", "counted": "counted", "name": "their name"}
    guard = ", protected" if one.protected else ""
    say(f"  {how[one.source]}, importance {one.importance:.2f}{guard}")
    for line in grounds:
        say(f"    {line}")


@app.command()
def history(fact: FactArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Show what was so before a fact and after it."""
    with open_for_reading(settings_for(home)) as store:
        found = fact_history(store, fact)
    if json:
        print_json([fact_json(one) for one in found])
        return
    for one in found:
        since = "before" if one.since is None else local(one.since)
        until = "now" if one.until is None else local(one.until)
        say(f"{since} – {until}  {one.id}  {one.sentence}")


def _grounds(store: Store, one: Fact) -> list[str]:
    """The words and moments that a fact rests on."""
    lines = []
    for item in one.sources:
        number = int(item[1:])
        if item.startswith(Kind.UTTERANCE):
            rows = store.rows("select start, text from utterance where id = ?", (number,))
            lines += [f"{item}  {local(start)}  “{text}”" for start, text in rows]
        else:
            trace = store.trace(number)
            lines.append(f"{item}  {local(trace.start)}  {trace.camera}  {trace.text}")
    return lines
