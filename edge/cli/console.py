"""How the command line speaks: plain text for people, JSON for programs, one sentence for an error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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


class Advance:
    """Moves a bar on; silent where there is none."""

    def __init__(self, progress: Progress | None, title: str) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=None) if progress else None

    def __call__(self, done: int, total: int) -> None:
        """So many are done, of so many."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=done, total=total)


@contextmanager
def bar(title: str) -> Iterator[Advance]:
    """A progress bar on a terminal; silence elsewhere."""
    if not sys.stderr.isatty():
        yield Advance(None, title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as progress:
        yield Advance(progress, title)
