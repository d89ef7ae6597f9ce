"""`reflectworld cameras`: which cameras there are, of the running service or for the next one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

import typer
from rich.table import Table

from edge.app import CameraBook, CameraConfig, camera_config
from edge.cli.console import HomeOption, JsonOption, out, print_json, say, settings_for
from edge.errors import UserError
from edge.serve.local import LocalClient, ServiceAbsentError, local_client

app = typer.Typer(name="cameras", help="The cameras: list, add, pause, resume, remove, snapshot.", no_args_is_help=True)

Result = TypeVar("Result")
NameArgument = Annotated[str, typer.Argument(help="The camera's name.", show_default=False)]


@app.command(name="list")
def list_cameras(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the cameras and what they do now."""
    cameras: list[dict[str, Any]] = _ask(
        home,
        lambda client: client.call("GET", "/api/v1/cameras")["items"],
        lambda book: [_idle(camera) for camera in book],
    )
    if json:
        print_json(cameras)
        return
    if not cameras:
        say("There is no camera; add one with `reflectworld cameras add URI`.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "address", "state", "looks/s", "moments", ""):
        table.add_column(column)
    for one in cameras:
        table.add_row(one["name"], one["uri"], one["state"], f"{one['fps']:.1f}", str(one["segments"]), one["detail"])
    out.print(table)


@app.command()
def add(
    uri: Annotated[
        str,
        typer.Argument(
            help="rtsp://…, http(s)://…, usb:0, csi:0, a file, test: (a pattern) or push: (WHIP).", show_default=False
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What it is called; default: from its address.")] = None,
    home: HomeOption = None,
) -> None:
    """Keep a camera; a running service begins to watch it at once."""
    config = camera_config(name, uri)

    def tell(client: LocalClient) -> str:
        client.call("POST", "/api/v1/cameras", {"name": config.name, "uri": config.uri})
        return "watched now"

    def note(book: CameraBook) -> str:
        book.add(config)
        return "watched by the next `reflectworld run`"

    say(f"{config.name} is {_ask(home, tell, note)}.")


@app.command()
def pause(name: NameArgument, home: HomeOption = None) -> None:
    """Look at nothing of a camera until it is resumed (`reflectworld pause --camera` also for a time)."""
    _ask(home, _post(name, "pause"), lambda book: book.pause(name, paused=True))
    say(f"{name} is paused.")


@app.command()
def resume(name: NameArgument, home: HomeOption = None) -> None:
    """Go on with a paused camera."""
    _ask(home, _post(name, "resume"), lambda book: book.pause(name, paused=False))
    say(f"{name} goes on.")


@app.command()
def remove(name: NameArgument, home: HomeOption = None) -> None:
    """Stop to watch a camera and forget its address; what it saw stays remembered."""
    _ask(home, lambda client: client.call("DELETE", _at(name)), lambda book: book.remove(name))
    say(f"{name} is removed; what it saw stays remembered.")


@app.command()
def snapshot(
    name: NameArgument,
    to: Annotated[Path | None, typer.Option("--out", help="File for the JPEG; default: standard output.")] = None,
    home: HomeOption = None,
) -> None:
    """What a camera of the running service sees now, as JPEG."""
    client = local_client(settings_for(home).home)
    if client is None:
        raise ServiceAbsentError("The service does not run; start it with `reflectworld run`.")
    with client:
        data = client.fetch(f"{_at(name)}/snapshot")
    if to is None:
        sys.stdout.buffer.write(data)
        return
    try:
        to.write_bytes(data)
    except OSError as error:
        raise UserError(f"“{to}” cannot be written ({error.strerror}): choose another file.") from error
    say(f"Wrote {to}.")


def _at(name: str) -> str:
    return f"/api/v1/cameras/{quote(name, safe='')}"


def _post(name: str, what: str) -> Callable[[LocalClient], object]:
    return lambda client: client.call("POST", f"{_at(name)}/{what}")


def _ask(home: Path | None, running: Callable[[LocalClient], Result], idle: Callable[[CameraBook], Result]) -> Result:
    """Ask the service if it runs, else change the file."""
    folder = settings_for(home).home
    client = local_client(folder)
    if client is not None:
        try:
            with client:
                return running(client)
        except ServiceAbsentError:
            pass  # it was killed and left its file behind
    return idle(CameraBook(folder))


def _idle(camera: CameraConfig) -> dict[str, Any]:
    return {
        "name": camera.name,
        "uri": camera.shown_uri,
        "state": "paused" if camera.paused else "ended",
        "detail": "the service does not run",
        "since": None,
        "last_frame": None,
        "fps": 0.0,
        "width": 0,
        "height": 0,
        "segments": 0,
        "dropped": 0,
        "enabled": camera.enabled,
        "paused": camera.paused,
        "pushed": camera.pushed,
    }
