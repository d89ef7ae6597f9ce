"""`reflectworld pair`: invite a phone, with a code to scan."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edge.cli.console import HomeOption, JsonOption, print_json, say, settings_for
from edge.clock import monotonic, parse_instant, to_local
from edge.errors import PairingError

if TYPE_CHECKING:
    from edge.serve.local import LocalClient


class May(StrEnum):
    """`edge.serve.Scope`, without loading the server for every command."""

    PUBLISH = "publish"
    ASK = "ask"
    ADMIN = "admin"


POLL_S = 1.0
LISTEN_S = 10.0  # to open the network listener takes a moment


def pair(
    name: Annotated[
        str | None, typer.Option("--name", help="What the device is called; by default it says so itself.")
    ] = None,
    scope: Annotated[
        list[May] | None,
        typer.Option(
            "--scope",
            help="What it may do; may be given more than once. Default: publish and ask.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is paired, and say so.")] = True,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Invite a phone or another device to pair: scan the code within ten minutes.

    The service must run (`reflectworld run`). For these ten minutes it shows its pairing page to the local network.
    """
    # Not with the module: the server's libraries would hold every command up.
    from edge.serve.local import local_client

    settings = settings_for(home)
    client = local_client(settings.home)
    if client is None:
        raise PairingError("The service does not run here; start it with `reflectworld run`, then pair.")
    with client:
        wanted: dict[str, Any] = {} if name is None else {"name": name}
        if scope:
            wanted["scopes"] = [one.value for one in scope]
        made = client.call("POST", "/api/v1/pairing", wanted)
        if json:
            print_json(made)
            return
        _show(made)
        if wait:
            _wait(client)


def _show(made: dict[str, Any]) -> None:
    import segno

    segno.make_qr(made["url"], error="l").terminal(out=sys.stdout, border=2, compact=True)
    say(f"\nScan this with the phone, or open:\n  {made['url']}")
    for other in made["others"]:
        say(f"  {other}")
    say(f"\nIt works once, until {to_local(parse_instant(made['expires'])):%H:%M:%S}.")
    say("When the phone warns of the certificate, its SHA-256 fingerprint must be this one:")
    say(_in_two_lines(made["fingerprint"]))
    if made["authority"] is not None:
        say("Where the phone is to trust the device's authority, that one's is:")
        say(_in_two_lines(made["authority"]))
    if made["uncovered"]:
        say(f"The certificate is not for {', '.join(made['uncovered'])} (not private); use the name.")


def _in_two_lines(fingerprint: str) -> str:
    digits = fingerprint.split(":")
    return "  " + ":".join(digits[:16]) + "\n  " + ":".join(digits[16:])


def _wait(client: LocalClient) -> None:
    began = monotonic()
    warned = False
    try:
        while True:
            time.sleep(POLL_S)
            report = client.call("GET", "/api/v1/pairing")
            stage = report["stage"]
            if stage == "used" and report["device"] is not None:
                device = report["device"]
                scopes = ", ".join(device["scopes"])
                say(f"Paired: {device['name']} ({device['id']}; may {scopes}), from {report['from']}.")
                say(f"Was it not you? Run `reflectworld devices revoke {device['id']}`.")
                return
            if stage == "locked":
                raise PairingError(
                    f"Pairing is locked: {report['wrong_tries']} wrong tokens were tried, so somebody in your network guesses. "
                    "Find out who, then run this again."
                )
            if stage not in {"open", "used"}:
                raise PairingError("Nobody paired in time; run `reflectworld pair` again for a new code.")
            trouble = report["trouble"]
            late = not report["listening"] and monotonic() - began > LISTEN_S
            if not warned and (trouble or late):
                warned = True
                say(trouble or "The network listener is not open yet.")
    except KeyboardInterrupt:
        client.call("DELETE", "/api/v1/pairing")
        raise
