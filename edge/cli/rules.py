"""`reflectworld rules`, `alerts` and `remember`: what the owner wants to be told, and what was told."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from edge.app.orders import Orders, said_back
from edge.app.rooms import build_text_embedder
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
from edge.clock import iso, to_local
from edge.errors import ModelError, UserError
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory.tiers.procedural import AlertRecord, RuleRecord
from edge.notify import Notifier
from edge.settings import Settings
from edge.types.records import Kind, parse_id, public_id

app = typer.Typer(name="rules", help="What you want to be told or reminded of, in plain words.", no_args_is_help=True)

RuleArgument = Annotated[str, typer.Argument(help="The id of a rule, such as r3.", show_default=False)]


@app.command(name="add")
def add(
    text: Annotated[
        str, typer.Argument(help="For example: “tell me when the dog is on the sofa”.", show_default=False)
    ],
    camera: Annotated[str | None, typer.Option("--camera", help="Only what this camera sees.")] = None,
    urgent: Annotated[bool, typer.Option("--urgent", help="Also in quiet hours.")] = False,
    cooldown: Annotated[
        float | None,
        typer.Option("--cooldown", min=0, help="Minutes between two messages; default: notify.cooldown_s."),
    ] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Keep a rule, a reminder or quiet hours.

    Understood are “tell me when …”, “let me know if …”, “if nobody was in the kitchen by 10, tell me”, “remind me to … at 5 pm |
    in ten minutes | every day at 8 | when I see NAME”, and “don't notify me between 22 and 7”.
    """
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        rule = Notifier(store, settings.notify).add(
            text, camera=camera, urgent=urgent, cooldown_s=None if cooldown is None else cooldown * 60
        )
    if json:
        print_json(rule_json(rule))
    else:
        say(f"{public_id(Kind.RULE, rule.id)}: {said_back(rule, rule.created)}")


@app.command(name="list")
def list_rules(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the rules, oldest first."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        found = Notifier(store, settings.notify).rules()
    if json:
        print_json([rule_json(rule) for rule in found])
        return
    if not found:
        say('There are no rules yet; try `reflectworld rules add "tell me when the dog is on the sofa"`.')
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "state", "next", "last told", "rule"):
        table.add_column(column)
    for rule in found:
        table.add_row(public_id(Kind.RULE, rule.id), rule.state, _short(rule.due), _short(rule.last_fired), rule.text)
    out.print(table)


@app.command(name="remove")
def remove(rule: RuleArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Forget a rule and what was decided about it."""
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        gone = Notifier(store, settings.notify).remove(rule_id(rule))
    if json:
        print_json(rule_json(gone))
    else:
        say(f"Removed: {gone.text}")


@app.command(name="pause")
def pause(rule: RuleArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Let a rule rest."""
    _set_paused(rule, home, paused=True, json=json)


@app.command(name="resume")
def resume(rule: RuleArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Let a rule count again."""
    _set_paused(rule, home, paused=False, json=json)


def _set_paused(rule: str, home: HomeOption, *, paused: bool, json: bool) -> None:
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        found = Notifier(store, settings.notify).pause(rule_id(rule), paused=paused)
    if json:
        print_json(rule_json(found))
    else:
        say(f"{public_id(Kind.RULE, found.id)} is {found.state}: {found.text}")


@app.command(name="why")
def why(rule: RuleArgument, json: JsonOption = False, home: HomeOption = None) -> None:
    """Explain the latest decisions about a rule: what was told, what was not, and for which reason."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        notifier = Notifier(store, settings.notify)
        found, decisions = notifier.rule(rule_id(rule)), notifier.why(rule_id(rule))
    if json:
        print_json({"rule": rule_json(found), "decisions": [alert_json(one) for one in decisions]})
        return
    say(f"{found.text}\n{said_back(found, found.created)}")
    if not decisions:
        say("Nothing has met it yet.")
    for one in decisions:
        ground = f" [{', '.join(one.ground)}]" if one.ground else ""
        say(f"{_short(one.at)}  {one.outcome}: {one.reason}{ground}\n    {one.text}")


def alerts(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="The latest so many.")] = 20,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List the notifications, newest first."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        found = Notifier(store, settings.notify).alerts(limit=limit)
    if json:
        print_json([alert_json(one) for one in found])
    elif not found:
        say("Nothing was told yet.")
    else:
        for one in found:
            say(f"{public_id(Kind.ALERT, one.id)}  {one.text}")


def remember(
    what: Annotated[str, typer.Argument(help="What to keep: “the spare key is under the pot”.", show_default=False)],
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Keep something that you say; questions find it like what was seen."""
    if not what.strip():
        raise UserError(
            'There is nothing to remember; say for example `reflectworld remember "the key is under the pot"`.'
        )
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        order = Orders(store, Notifier(store, settings.notify), _embedder(settings)).remember(what)
    if json:
        print_json({"id": order.item, "text": order.text})
    else:
        say(order.text)


def rule_id(text: str) -> int:
    """The number of a rule.

    Raises:
        UserError: it is not the id of one.
    """
    try:
        kind, number = parse_id(text)
    except ValueError:
        kind, number = Kind.TRACE, 0
    if kind is not Kind.RULE:
        raise UserError(f"“{text[:40]}” is not the id of a rule; `reflectworld rules list` lists them.")
    return number


def rule_json(rule: RuleRecord) -> dict[str, object]:
    """A rule as docs/json.md describes it."""
    return {
        "id": public_id(Kind.RULE, rule.id),
        "kind": rule.kind,
        "text": rule.text,
        "state": rule.state,
        "created": iso(rule.created),
        "camera": rule.camera,
        "urgent": rule.urgent,
        "cooldown_s": rule.cooldown,
        "next": None if rule.due is None else iso(rule.due),
        "last_told": None if rule.last_fired is None else iso(rule.last_fired),
    }


def alert_json(alert: AlertRecord) -> dict[str, object]:
    """A notification as docs/json.md describes it."""
    return {
        "id": public_id(Kind.ALERT, alert.id),
        "rule": None if alert.rule is None else public_id(Kind.RULE, alert.rule),
        "at": iso(alert.at),
        "outcome": alert.outcome,
        "reason": alert.reason,
        "text": alert.text,
        "ground": list(alert.ground),
        "sent": dict(alert.sent),
        "read": alert.read,
    }


def _embedder(settings: Settings) -> TextEmbedder | None:
    try:
        return build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    except ModelError:
        return None


def _short(at: float | None) -> str:
    return "" if at is None else to_local(at).strftime("%d %b %H:%M")
