"""`reflectworld config`: the file of settings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from edge.app.config import config_template, effective
from edge.cli.console import HomeOption, say
from edge.errors import SettingsError
from edge.serve.private import write_private
from edge.settings import CONFIG_FILE, home_folder, load_settings

app = typer.Typer(name="config", help="The file of settings, config.toml in the home folder.", no_args_is_help=True)


@app.command()
def init(
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    home: HomeOption = None,
) -> None:
    """Write a file with every setting, its description and its default, all commented out."""
    path = _path(home)
    if path.exists() and not force:
        raise SettingsError(f"“{path}” is there already; change it, or write it anew with --force.")
    try:
        write_private(path, config_template().encode())
    except OSError as error:
        raise SettingsError(
            f"“{path}” cannot be written ({error.strerror}): choose another folder with --home."
        ) from error
    say(f"Wrote {path}; take the # away in front of what you want to change.")


@app.command()
def check(home: HomeOption = None) -> None:
    """Say what is wrong with the settings, with the line; the exit status is 2 when something is."""
    load_settings(home)
    path = _path(home)
    say(
        f"{path} is in order." if path.exists() else f"There is no {path}: the defaults hold. `config init` writes one."
    )


@app.command()
def show(home: HomeOption = None) -> None:
    """Print the values that hold now (environment, then file, then default), as TOML."""
    sys.stdout.write(effective(load_settings(home)))


def _path(home: Path | None) -> Path:
    return home_folder(home) / CONFIG_FILE
