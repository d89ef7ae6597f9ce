"""The command tree and the one place where errors become sentences and exit statuses."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import structlog
import typer

from edge import __version__
from edge.cli import (
    cameras,
    config,
    corrections,
    devices,
    forget,
    jobs,
    models,
    pair,
    reason,
    recall,
    retention,
    rules,
    run,
    state,
    upkeep,
    watch,
)
from edge.cli.console import complain, say
from edge.errors import ReflectWorldError

app = typer.Typer(
    name="reflectworld",
    help="A visual memory on this device: it watches, remembers who and what it saw and heard, and answers offline.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"reflectworld {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


app.command()(watch.watch)
app.command()(run.run)
app.add_typer(cameras.app, name="cameras")
app.add_typer(config.app, name="config")
app.command()(recall.ask)
app.command()(recall.search)
app.command()(recall.timeline)
app.add_typer(corrections.app, name="people")  # with what `edge.cli.people` has
app.add_typer(rules.app, name="rules")
app.command()(rules.alerts)
app.command()(rules.remember)
app.command()(pair.pair)
app.add_typer(devices.app, name="devices")
app.command()(state.status)
app.command()(state.doctor)
app.add_typer(jobs.app, name="jobs")
app.add_typer(models.app, name="models")
app.add_typer(reason.app, name="reason")
app.add_typer(forget.app, name="forget")
app.command()(forget.pause)
app.command()(forget.resume)
app.add_typer(retention.app, name="retention")
app.command()(upkeep.export)
app.command(name="import")(upkeep.import_)
app.command()(upkeep.backup)
app.command()(upkeep.restore)
app.command()(upkeep.rekey)
app.command()(recall.replay)
app.command(name="recall")(recall.recall)


def main() -> None:
    """Run the command line: the exit status is 0, or that of the error (see `edge.errors`)."""
    # Standard output is for what was asked for.
    structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    try:
        app()
    except ReflectWorldError as error:
        complain(f"Error: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        complain("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away (`… | head`): nothing is left to say to anyone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
