"""`reflectworld retention`: what is kept how long, and what goes."""

from __future__ import annotations

from typing import Annotated

import typer

from edge.app.keeping import room, thin_out
from edge.cli.console import HomeOption, JsonOption, open_for_writing, print_json, say, settings_for
from edge.memory.upkeep.retention import Thinning

app = typer.Typer(name="retention", help="What is kept how long, and what goes: show, run.", no_args_is_help=True)

_ALL = 10**6  # steps


@app.command()
def show(json: JsonOption = False, home: HomeOption = None) -> None:
    """Say how full the memory and its device are, and what would go now."""
    settings = settings_for(home)
    wanted = settings.memory
    with open_for_writing(settings) as store:
        now = room(store, wanted)
    if json:
        print_json(
            {
                "used": now.used,
                "free": now.free,
                "keep_days": wanted.keep_days,
                "key_frame_days": wanted.key_frame_days,
                "keep_gb": wanted.keep_gb,
                "min_free_gb": wanted.min_free_gb,
                "would_go": _json(now.thinning),
            }
        )
        return
    say(f"The memory takes {now.used / 1e6:.1f} MB; {now.free / 1e9:.1f} GB are free on its device.")
    for name, value, unit in (
        ("moments", wanted.keep_days, "days"),
        ("pictures", wanted.key_frame_days, "days"),
        ("all together", wanted.keep_gb, "GB"),
    ):
        say(f"  {name}: {'no limit' if value is None else f'{value:g} {unit}'}")
    say(f"  free on the device: at least {wanted.min_free_gb:g} GB")
    say(f"What would go now: {now.thinning.text}" if now.thinning else "Nothing would go now.")


@app.command()
def run(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Let go what is not to be kept; a running service does it by itself."""
    settings = settings_for(home)
    with open_for_writing(settings) as store:
        what = room(store, settings.memory).thinning if dry_run else thin_out(store, settings.memory, steps=_ALL)
    if json:
        print_json({"done": not dry_run, **_json(what)})
    elif not what:
        say("Nothing is to go.")
    else:
        say(f"{'This would go' if dry_run else 'This went'}: {what.text}")


def _json(what: Thinning) -> dict[str, object]:
    return {
        "pictures": len(what.pictures),
        "moments": len(what.moments),
        "details": len(what.details),
        "bytes": what.bytes,
    }
