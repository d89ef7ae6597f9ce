"""How the command line speaks: plain text for people, JSON for programs, one sentence for an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from edge.memory import Store
from edge.settings import Settings, load_settings

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Folder of the memory.", envvar="REFLECTWORLD_HOME", show_envvar=True),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON in the form that docs/json.md describes.")]


def settings_for(home: Path | None) -> Settings:
    """The settings of this invocation."""
    return load_settings(home)


def open_for_reading(settings: Settings) -> Store:
    """The memory for a command that only reads; works while another process watches."""
    return Store.open(settings.home, settings.memory, user=settings.user, readonly=True)


def open_for_writing(settings: Settings) -> Store:
    """The memory for a command that writes; it is made when there is none."""
    return Store.open(settings.home, settings.memory, user=settings.user)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode() + "\n")


def say(text: str) -> None:
    """Print text as it is, without markup."""
    out.print(text, markup=False)


def complain(text: str) -> None:
    """Print one sentence on standard error."""
    err.print(text, markup=False)
