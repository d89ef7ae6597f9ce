"""`reflectworld people merge | split | not | history | undo`: putting right who is who."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from edge.app.work import work_through
from edge.cli import people
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
from edge.cli.people import WhoArgument, find_person, person_json
from edge.clock import iso, to_local
from edge.errors import UserError
from edge.identity import RULES, preview, sentence, sightings_in, undo
from edge.memory import Store
from edge.settings import Settings
from edge.types.records import CorrectionDraft, CorrectionKind, CorrectionRecord, Kind, parse_id, public_id

app = people.app  # one group of commands

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="WHO", help="Whose they are; without it, somebody new's.")
]
SightingsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SIGHTING…", help="Ids of moments (t12), observations (o7) or words (u9).", show_default=False
    ),
]


@app.command()
def merge(
    keep: Annotated[str, typer.Argument(help="Who is kept: a name, “person 3”, or an id.", show_default=False)],
    other: Annotated[str, typer.Argument(help="Who becomes part of them.", show_default=False)],
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say that two are one: all that was remembered of the second becomes that of the first."""
    settings = settings_for(home)
    _correct(settings, CorrectionKind.MERGE, keep, other, (), dry_run=dry_run, json=json)


@app.command()
def split(
    who: WhoArgument,
    sightings: SightingsArgument,
    to: ToOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say that some sightings of a person are somebody else's."""
    settings = settings_for(home)
    _correct(settings, CorrectionKind.SPLIT, who, to, sightings, dry_run=dry_run, json=json)


@app.command(name="not")
def not_person(
    who: WhoArgument,
    sightings: SightingsArgument,
    to: ToOption = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Say that some sightings are not this person, and never take the two for one again."""
    settings = settings_for(home)
    _correct(settings, CorrectionKind.NOT_PERSON, who, to, sightings, dry_run=dry_run, json=json)


@app.command()
def history(
    who: Annotated[str | None, typer.Argument(help="Only what is about them.", show_default=False)] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what was corrected, the latest first; `people undo` takes any of it back."""
    with open_for_reading(settings_for(home)) as store:
        records = store.corrections(None if who is None else find_person(store, who).id)
        if json:
            print_json([correction_json(store, record) for record in records])
            return
        if not records:
            say("Nothing was corrected yet.")
            return
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("id", "when", "what"):
            table.add_column(column)
        for record in records:
            when = f"{to_local(record.at):%Y-%m-%d %H:%M:%S}"
            table.add_row(public_id(Kind.CORRECTION, record.id), when, sentence(store, record))
        out.print(table)


@app.command(name="undo")
def undo_command(
    correction: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Such as c4; the latest without it.", show_default=False)
    ] = None,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take a correction back, whatever came after it; names that you gave, too."""
    number = None if correction is None else _number(correction)
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        if dry_run:
            holding = [one for one in store.corrections(limit=1_000_000) if one.undone_at is None]
            found = next((one for one in holding if number in (None, one.id)), None)
            if found is None:
                raise UserError("There is no such correction to undo; `reflectworld people history` lists them.")
            if json:
                print_json({"done": False, "correction": correction_json(store, found)})
            else:
                say(f"{public_id(Kind.CORRECTION, found.id)} would be undone: {sentence(store, found)}")
            return
        record = undo(store, number)
        work_through(store, settings, None, purpose="reflectworld people")  # what was told of them follows
        if json:
            print_json({"done": True, "correction": correction_json(store, record)})
        else:
            say(f"{public_id(Kind.CORRECTION, record.id)} is undone: {sentence(store, record)}")


def correction_json(store: Store, record: CorrectionRecord) -> dict[str, object]:
    """The documented form of a correction (docs/json.md)."""
    return {
        "id": public_id(Kind.CORRECTION, record.id),
        "kind": record.kind.value,
        "person": public_id(Kind.ENTITY, record.person),
        "other": None if record.other is None else public_id(Kind.ENTITY, record.other),
        "created": record.created,
        "name": record.name,
        "observations": record.observations,
        "utterances": record.utterances,
        "at": iso(record.at),
        "undone_at": None if record.undone_at is None else iso(record.undone_at),
        "text": sentence(store, record),
    }


def _correct(
    settings: Settings,
    kind: CorrectionKind,
    who: str,
    other: str | None,
    sightings: Sequence[str],
    *,
    dry_run: bool,
    json: bool,
) -> None:
    with (open_for_reading if dry_run else open_for_writing)(settings) as store:
        person = find_person(store, who).id
        second = None if other is None else find_person(store, other).id
        draft = CorrectionDraft(kind, person, second, sightings_in(sightings))
        words = preview(store, draft)
        record = None if dry_run else store.correct(draft, RULES)
        if record is not None:
            work_through(store, settings, None, purpose="reflectworld people")  # what was told of them follows
        if json:
            people = [] if record is None else [store.entity(one) for one in _left(store, record)]
            print_json(
                {
                    "done": record is not None,
                    "text": words,
                    "correction": None if record is None else correction_json(store, record),
                    "people": [person_json(store, one) for one in people],
                }
            )
            return
        say(words)
        if record is not None:
            undoing = f"reflectworld people undo {public_id(Kind.CORRECTION, record.id)}"
            new = f" The new one is {public_id(Kind.ENTITY, record.other or 0)}." if record.created else ""
            say(f"Done.{new} `{undoing}` takes it back.")


def _left(store: Store, record: CorrectionRecord) -> list[int]:
    known = {entity.id for entity in store.entities()}
    return [who for who in (record.person, record.other) if who in known and who is not None]


def _number(text: str) -> int:
    try:
        kind, number = parse_id(text)
    except ValueError:
        kind, number = Kind.ENTITY, 0
    if kind is not Kind.CORRECTION:
        raise UserError(f"“{text[:40]}” is no correction; `reflectworld people history` lists their ids, such as c4.")
    return number
