"""`reflectworld forget`, `pause`, `resume`: what is not to be remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from edge.app import CameraBook, PauseBook
from edge.app import forget as forget_now
from edge.app.work import work_through
from edge.cli.console import HomeOption, JsonOption, open_for_reading, open_for_writing, print_json, say, settings_for
from edge.cli.people import find_person
from edge.cli.spans import bound, duration
from edge.clock import iso, to_local, utc_now
from edge.errors import UserError
from edge.memory import Target
from edge.serve.local import LocalClient, ServiceAbsentError, read_run_file
from edge.settings import Settings
from edge.types.records import Kind, parse_id, public_id

app = typer.Typer(
    name="forget", help="Forget a person, a span of time, a camera, items, everything.", no_args_is_help=True
)

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")]
CameraOption = Annotated[str | None, typer.Option("--camera", help="Only this camera; default: everything.")]

_PATIENCE_S = 600.0  # forgetting much takes its time


@app.command()
def person(
    who: Annotated[str, typer.Argument(help="A name, “person 3”, or an id such as p3.", show_default=False)],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Forget somebody: all that they did and said, their face, voice and name, everywhere. Seen again, they are new."""
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        found = find_person(store, who).id
    _forget(settings, Target(person=found), yes=yes, dry_run=dry_run, json=json)


@app.command()
def span(
    since: Annotated[str | None, typer.Option("--since", help="All moments that end after this.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="All moments that begin before the end of this.")] = None,
    last: Annotated[str | None, typer.Option("--last", help="The last stretch of time, such as 10m or 2h.")] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Forget all moments of a span of time, whatever they hold."""
    if (last is None) == (since is None and until is None):
        raise UserError("Give either --last, or --since and --until (one of these is enough).")
    start = bound(since, end=False) if last is None else utc_now() - duration(last)
    target = Target(since=start, until=bound(until, end=True) if last is None else None)
    _forget(settings_for(home), target, yes=yes, dry_run=dry_run, json=json)


@app.command()
def camera(
    name: Annotated[str, typer.Argument(help="The camera's name.", show_default=False)],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Forget all that a camera saw; that there is the camera stays (`reflectworld cameras remove`)."""
    _forget(settings_for(home), Target(camera=name), yes=yes, dry_run=dry_run, json=json)


@app.command()
def item(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID…", help="Moments (t12), sightings (o7), words (u9), pictures (k4), stretches (n2), rules (r3),"
            " messages (a5).", show_default=False,
        ),
    ],
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:  # fmt: skip
    """Forget single things by their ids."""
    _forget(settings_for(home), Target(items=tuple(map(_id, ids))), yes=yes, dry_run=dry_run, json=json)


@app.command()
def everything(
    yes: YesOption = False, dry_run: DryRunOption = False, json: JsonOption = False, home: HomeOption = None
) -> None:
    """Forget all that is remembered. Cameras, paired devices and settings stay."""
    _forget(settings_for(home), Target(everything=True), yes=yes, dry_run=dry_run, json=json)


def pause(
    camera: CameraOption = None,
    how_long: Annotated[
        str | None, typer.Option("--for", help="How long, such as 30m or 2h; default: until `resume`.")
    ] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Remember nothing from now on: of no camera, or not of one. It holds over a restart."""
    seconds = None if how_long is None else duration(how_long)
    until = None if seconds is None else utc_now() + seconds
    folder = settings_for(home).home
    with _client(folder) as client:
        if client is not None:
            client.call("POST", f"{_of(camera)}/pause", {"seconds": seconds})
        elif camera is None:
            PauseBook(folder).begin(until)
        else:
            CameraBook(folder).pause(camera, paused=True, until=until or 0.0)
    if json:
        print_json({"paused": True, "camera": camera, "until": None if until is None else iso(until)})
        return
    what = "Everything" if camera is None else camera
    say(f"{what} is paused{'' if until is None else f' until {to_local(until):%Y-%m-%d %H:%M:%S}'}.")


def resume(camera: CameraOption = None, json: JsonOption = False, home: HomeOption = None) -> None:
    """Go on remembering after `pause`; cameras that are paused by themselves stay so unless they are named."""
    folder = settings_for(home).home
    with _client(folder) as client:
        if client is not None:
            client.call("POST", f"{_of(camera)}/resume")
        elif camera is None:
            PauseBook(folder).end()
        else:
            CameraBook(folder).pause(camera, paused=False)
    if json:
        print_json({"paused": False, "camera": camera, "until": None})
    else:
        say(f"{'Everything' if camera is None else camera} goes on.")


# -- how it is done ---------------------------------------------------------------------------------------------------


def _forget(settings: Settings, target: Target, *, yes: bool, dry_run: bool, json: bool) -> None:
    with _client(settings.home) as client:
        shown = _preview(settings, target, client)
        if not json:
            say(shown["text"])
            for sentence in shown["beyond"]:
                say(sentence)
        nothing = not any(shown["counts"].values())
        if not (dry_run or nothing or yes):
            if json:
                raise UserError("Add --yes to forget it, or --dry-run to see only what would go.")
            yes = typer.confirm("Forget this?", default=False, err=True)
        done = yes and not dry_run and not nothing
        if done and client is not None:
            client.call("POST", "/api/v1/forget", {**_body(target, shown), "token": shown["token"]})
        elif done:
            with open_for_writing(settings) as store:
                forget_now(store, target, shown["token"])
                work_through(store, settings, None, purpose="reflectworld forget")  # what is told of the rest follows
    if json:
        print_json({"done": done, "text": shown["text"], "counts": shown["counts"], "beyond": shown["beyond"]})
    elif done:
        say("It is forgotten.")
    elif not nothing and not dry_run:
        say("Nothing was forgotten.")


def _preview(settings: Settings, target: Target, client: LocalClient | None) -> dict[str, Any]:
    if client is not None:
        shown: dict[str, Any] = client.call("POST", "/api/v1/forget/preview", _body(target, {}))
        return shown
    with open_for_reading(settings) as store:
        planned = store.forget_plan(target)
        return {
            "token": planned.token,
            "text": planned.text,
            "counts": dict(planned.counts),
            "beyond": list(store.copies()),
        }


def _body(target: Target, shown: dict[str, Any]) -> dict[str, Any]:
    """The request for a target; times as the preview understood them."""
    return {
        "person": None if target.person is None else public_id(Kind.ENTITY, target.person),
        "since": shown.get("since") or (None if target.since is None else iso(target.since)),
        "until": shown.get("until") or (None if target.until is None else iso(target.until)),
        "camera": target.camera,
        "items": [public_id(kind, number) for kind, number in target.items],
        "everything": target.everything,
    }


class _client:  # noqa: N801 -- used like a function
    """The running service, if there is one that answers."""

    def __init__(self, home: Path) -> None:
        run = read_run_file(home)
        self._client = None if run is None else LocalClient(run, timeout_s=_PATIENCE_S)

    def __enter__(self) -> LocalClient | None:
        if self._client is not None:
            try:
                self._client.call("GET", "/api/v1/pause")
            except ServiceAbsentError:  # it was killed and left its file behind
                self._client = None
        return self._client

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.__exit__()


def _of(camera: str | None) -> str:
    return "/api/v1" if camera is None else f"/api/v1/cameras/{quote(camera, safe='')}"


def _id(text: str) -> tuple[Kind, int]:
    try:
        kind, number = parse_id(text)
    except ValueError:
        raise UserError(f"“{text[:40]}” is no id; ids look like t12, o7, u9 or k4.") from None
    if number > 2**63 - 1:
        raise UserError(f"There is no {text[:40]} in the memory; `reflectworld timeline` lists what is remembered.")
    return kind, number
