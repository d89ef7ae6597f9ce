"""`reflectworld status` and `reflectworld doctor`: what is remembered, and whether everything is in order."""

from __future__ import annotations

import typer

from edge.app.health import Check, State, diagnose, look
from edge.cli.console import HomeOption, JsonOption, print_json, say, settings_for
from edge.clock import iso, to_local


def status(
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show how much is remembered, from which cameras, and how far each source got."""
    state = look(settings_for(home))
    if json:
        print_json(_state_json(state))
        return
    counts = state.counts
    say(f"Memory at {state.home} ({counts.bytes / 1e6:.1f} MB on disk, {state.free_bytes / 1e9:.1f} GB free)")
    if counts.first is None or counts.last is None:
        say("  It is empty: begin with `reflectworld watch FILE`.")
    else:
        say(f"  from {to_local(counts.first):%Y-%m-%d %H:%M:%S} to {to_local(counts.last):%Y-%m-%d %H:%M:%S}")
        say(
            f"  {counts.traces} moments, {counts.entities} people and voices, {counts.observations} observations, "
            f"{counts.utterances} utterances, {counts.key_frames} pictures"
        )
    for work in state.busy:
        say(f"  {work} is running")
    for source in state.sources:
        length = f" of {source.duration:.0f} s" if source.duration else ""
        done = "finished" if source.finished else "not finished: watch it again to go on"
        say(f"  {source.camera}: {source.uri}, {source.position:.0f} s{length}, {done}")


def doctor(json: JsonOption = False, home: HomeOption = None) -> None:
    """Check the memory, its key, the models, the networks and the disk; the exit status is 1 when something is wrong."""
    checks = diagnose(settings_for(home))
    if json:
        print_json(
            [{"check": check.name, "ok": check.ok, "detail": check.detail, "remedy": check.remedy} for check in checks]
        )
    else:
        for check in checks:
            say(_line(check))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _line(check: Check) -> str:
    remedy = f"  → {check.remedy}" if check.remedy else ""
    return f"{'ok  ' if check.ok else 'BAD '} {check.name}: {check.detail}{remedy}"


def _state_json(state: State) -> dict[str, object]:
    counts = state.counts
    return {
        "home": str(state.home),
        "bytes": counts.bytes,
        "free_bytes": state.free_bytes,
        "first": None if counts.first is None else iso(counts.first),
        "last": None if counts.last is None else iso(counts.last),
        "traces": counts.traces,
        "entities": counts.entities,
        "observations": counts.observations,
        "utterances": counts.utterances,
        "key_frames": counts.key_frames,
        "busy": list(state.busy),
        "sources": [
            {
                "camera": source.camera,
                "uri": source.uri,
                "start": iso(source.start),
                "duration_s": source.duration,
                "position_s": round(source.position, 3),
                "finished": source.finished,
            }
            for source in state.sources
        ],
    }
