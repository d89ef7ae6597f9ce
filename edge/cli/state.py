"""`reflectworld status` and `reflectworld doctor`: what is remembered, and whether everything is in order."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from edge.app.health import Check, State, diagnose, look
from edge.cli.console import HomeOption, JsonOption, print_json, say, settings_for
from edge.clock import iso, to_local, utc_now
from edge.memory.tiers import timeline
from edge.memory.tiers.working import Working
from edge.reason import Totals
from edge.serve.local import ServiceAbsentError, local_client
from edge.types.records import Kind, public_id, render


def status(
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show how much is remembered, from which cameras, and how far each source got."""
    settings = settings_for(home)
    running = _service(settings.home)
    state = look(settings)
    if json:
        print_json(_state_json(state, running))
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
    _say_service(running)
    waiting, aside = sum(state.jobs.waiting.values()), sum(state.jobs.aside.values())
    if waiting or aside:
        left = f", {aside} were set aside (`reflectworld jobs list --aside`)" if aside else ""
        say(f"  {waiting} jobs wait (`reflectworld jobs run`){left}")
    total = state.reason.all
    if total.requests:
        cost = f", cost {total.cost:.4g} ({state.reason.today.cost:.4g} today)" if total.cost > 0 else ""
        say(f"  The language model answered {total.answered} of {total.requests} requests{cost}")
    for work in dict.fromkeys(state.busy):  # one process may have several things in hand
        say(f"  {work} is running")
    for event in state.working:
        if event.current(utc_now(), timeline.GAP_S):
            told = render(event.summary, lambda who: state.titles.get(who, "someone"))
            say(f"  {event.camera}, since {to_local(event.start):%H:%M}: {told}")
    for source in state.sources:
        length = f" of {source.duration:.0f} s" if source.duration else ""
        done = "finished" if source.finished else "not finished: watch it again to go on"
        say(f"  {source.camera}: {source.uri}, {source.position:.0f} s{length}, {done}")


def _reason_json(totals: Totals) -> dict[str, object]:
    return {
        "purposes": {purpose: asdict(tally) for purpose, tally in totals.purposes.items()},
        "refusals": dict(totals.refusals),
        "dropped": dict(totals.dropped),
        "today": asdict(totals.today),
    }


def _service(home: Path) -> dict[str, Any] | None:
    """What the running service says of itself; None: none runs."""
    client = local_client(home)
    if client is None:
        return None
    try:
        with client:
            answer: dict[str, Any] = client.call("GET", "/api/v1/status")
    except ServiceAbsentError:
        return None  # it was killed and left its file behind
    return answer


def _say_service(running: dict[str, Any] | None) -> None:
    if running is None:
        return
    say(f"  The service has run for {running['uptime_s']:.0f} s; its loop lags {running['loop_lag_ms']:.0f} ms at most")
    for camera in running["cameras"]:
        dropped = f", {camera['dropped']} pictures dropped" if camera["dropped"] else ""
        detail = f": {camera['detail']}" if camera["detail"] else ""
        say(f"  {camera['name']} is {camera['state']}{detail} ({camera['fps']:.1f} looks a second{dropped})")
    for name, fill in running["channels"].items():
        if fill["items"] or fill["dropped"]:
            say(f"  channel {name}: {fill['items']} of {fill['bound']} wait, {fill['dropped']} dropped")


def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every page and row of the memory; takes longer the more there is.")
    ] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Check the memory, its key, the models, the networks and the disk; the exit status is 1 when something is wrong."""
    checks = diagnose(settings_for(home), deep=deep)
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


def _state_json(state: State, running: dict[str, Any] | None) -> dict[str, object]:
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
        "jobs": {"waiting": dict(state.jobs.waiting), "aside": dict(state.jobs.aside)},
        "working": [_working_json(event, state) for event in state.working],
        "reason": _reason_json(state.reason),
        "service": running,
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


def _working_json(event: Working, state: State) -> dict[str, object]:
    def titled(text: str) -> str:
        return render(text, lambda who: state.titles.get(who, "someone"))

    return {
        "camera": event.camera,
        "event": public_id(Kind.NODE, event.event),
        "start": iso(event.start),
        "end": iso(event.end),
        "current": event.current(utc_now(), timeline.GAP_S),
        "moments": event.segments,
        "summary": titled(event.summary),
        "latest": [titled(one.text) for one in event.latest],
        "people": [
            {"id": public_id(Kind.ENTITY, who), "title": state.titles.get(who, "someone")} for who, _ in event.active
        ],
        "targets": [
            {
                "label": one.label,
                "person": None if one.entity is None else public_id(Kind.ENTITY, one.entity),
                "last": iso(one.last),
                "moments": one.seen,
                "missed": one.missed,
            }
            for one in event.targets
        ],
    }
