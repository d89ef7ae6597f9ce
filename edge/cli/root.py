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
    facts,
    feedback,
    forget,
    graph,
    jobs,
    models,
    pair,
    reason,
    recall,
    retention,
    rules,
    run,
    scene,
    state,
    tools,
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


_WATCH, _ASK, _TOLD = "Watching", "Asking", "Being told"
_KEEP, _DEVICE, _MEASURE = "Keeping and forgetting", "This device", "Measuring"

app.command(rich_help_panel=_WATCH)(watch.watch)
app.command(rich_help_panel=_WATCH)(run.run)
app.add_typer(cameras.app, name="cameras", rich_help_panel=_WATCH)
app.command(rich_help_panel=_WATCH)(forget.pause)
app.command(rich_help_panel=_WATCH)(forget.resume)

app.command(rich_help_panel=_ASK)(recall.ask)
app.command(rich_help_panel=_ASK)(feedback.feedback)
app.command(rich_help_panel=_ASK)(recall.search)
app.command(rich_help_panel=_ASK)(recall.timeline)
app.command(rich_help_panel=_ASK)(tools.who)
app.command(rich_help_panel=_ASK)(tools.when)
app.command(rich_help_panel=_ASK)(tools.count)
app.command(rich_help_panel=_ASK)(tools.get)
app.add_typer(facts.app, name="facts", rich_help_panel=_ASK)
app.command(rich_help_panel=_ASK)(graph.graph)
app.add_typer(scene.app, name="scene", rich_help_panel=_ASK)
app.command(rich_help_panel=_ASK)(scene.frames)
app.add_typer(corrections.app, name="people", rich_help_panel=_ASK)  # with what `edge.cli.people` has

app.add_typer(rules.app, name="rules", rich_help_panel=_TOLD)
app.command(rich_help_panel=_TOLD)(rules.alerts)
app.command(rich_help_panel=_TOLD)(rules.remember)

app.add_typer(forget.app, name="forget", rich_help_panel=_KEEP)
app.add_typer(retention.app, name="retention", rich_help_panel=_KEEP)
app.command(rich_help_panel=_KEEP)(upkeep.backup)
app.command(rich_help_panel=_KEEP)(upkeep.restore)
app.command(rich_help_panel=_KEEP)(upkeep.rekey)
app.command(rich_help_panel=_KEEP)(upkeep.export)
app.command(name="import", rich_help_panel=_KEEP)(upkeep.import_)

app.command(rich_help_panel=_DEVICE)(pair.pair)
app.add_typer(devices.app, name="devices", rich_help_panel=_DEVICE)
app.command(rich_help_panel=_DEVICE)(state.status)
app.command(rich_help_panel=_DEVICE)(state.doctor)
app.add_typer(config.app, name="config", rich_help_panel=_DEVICE)
app.add_typer(models.app, name="models", rich_help_panel=_DEVICE)
app.add_typer(reason.app, name="reason", rich_help_panel=_DEVICE)
app.add_typer(jobs.app, name="jobs", rich_help_panel=_DEVICE)

app.command(rich_help_panel=_MEASURE)(recall.replay)
app.command(name="recall", rich_help_panel=_MEASURE)(recall.recall)


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
