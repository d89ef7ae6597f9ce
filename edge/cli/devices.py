"""`reflectworld devices`: which devices are paired, what they are called, and taking their keys away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.table import Table

from edge.cli.console import HomeOption, JsonOption, out, print_json, say, settings_for
from edge.clock import parse_instant, to_local

if TYPE_CHECKING:
    from edge.serve.devices import Devices, PairedDevice
    from edge.serve.local import LocalClient

app = typer.Typer(name="devices", help="Paired devices, and taking their keys away.", no_args_is_help=True)

WhichArgument = Annotated[
    str, typer.Argument(metavar="DEVICE", help="Its id, such as d1, or its name.", show_default=False)
]


@app.command(name="list")
def list_devices(json: JsonOption = False, home: HomeOption = None) -> None:
    """List the paired devices: what they may do, and when they were last seen."""
    devices = _ask(
        home,
        lambda client: client.call("GET", "/api/v1/devices"),
        lambda devices: devices.list(),
    )
    if json:
        print_json(devices)
        return
    if not devices:
        say("No device is paired; run `reflectworld pair`.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "name", "may", "paired", "last seen"):
        table.add_column(column)
    for one in devices:
        seen = _local(one["last_seen"]) if one["last_seen"] else "never"
        table.add_row(one["id"], one["name"], ", ".join(one["scopes"]), _local(one["paired"]), seen)
    out.print(table)


@app.command()
def revoke(which: WhichArgument, home: HomeOption = None) -> None:
    """Take a device's key away. What is open with it ends at once."""
    device = _ask(
        home,
        lambda client: client.call("DELETE", f"/api/v1/devices/{quote(which, safe='')}"),
        lambda devices: devices.revoke(which),
    )
    say(f"{device['name']} ({device['id']}) is no longer paired.")


@app.command()
def rename(
    which: WhichArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it from now on.", show_default=False)],
    home: HomeOption = None,
) -> None:
    """Call a device otherwise."""
    device = _ask(
        home,
        lambda client: client.call("PATCH", f"/api/v1/devices/{quote(which, safe='')}", {"name": name}),
        lambda devices: devices.rename(which, name),
    )
    say(f"{device['id']} is now called {device['name']}.")


def _ask(
    home: Path | None,
    remote: Callable[[LocalClient], Any],
    local: Callable[[Devices], PairedDevice | Sequence[PairedDevice]],
) -> Any:
    """Through the running service, so that it acts at once; without one, in the file itself."""
    # Not with the module: the server's libraries would hold every command up.
    from edge.serve.devices import Devices, device_json
    from edge.serve.local import ServiceAbsentError, local_client

    settings = settings_for(home)
    client = local_client(settings.home)
    if client is not None:
        with client:
            try:
                return remote(client)
            except ServiceAbsentError:
                pass  # it was killed, and its file is left over
    found = local(Devices(settings.home))
    return [device_json(one) for one in found] if isinstance(found, Sequence) else device_json(found)


def _local(instant: str) -> str:
    return f"{to_local(parse_instant(instant)):%Y-%m-%d %H:%M}"
