"""`reflectworld scene` and `frames`: what cameras look at, what is usual and unusual there, and pictures by their time."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from edge.cli.console import HomeOption, JsonOption, open_for_reading, out, print_json, say, settings_for
from edge.cli.spans import bound, moment
from edge.clock import iso, to_local, utc_now
from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers import visual
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene import words as scene_words
from edge.memory.tiers.scene.days import SEEN, Routine
from edge.memory.tiers.scene.reads import Found, Scene
from edge.recall import Stretch, stretches
from edge.types.records import Kind, public_id

app = typer.Typer(name="scene", help="What each camera looks at, and what is usual and unusual there.")

DAY_S = 86_400.0


@app.callback(invoke_without_command=True)
def scenes(context: typer.Context, json: JsonOption = False, home: HomeOption = None) -> None:
    """List the cameras with the kind of place that they look at."""
    if context.invoked_subcommand is not None:
        return
    with open_for_reading(settings_for(home)) as store, store.reading() as connection:
        found = scene_reads.describe(connection, store.user, utc_now())
    if json:
        print_json([_scene_json(one, 0) for one in found])
    elif not found:
        say("No camera has seen anything yet; start with `reflectworld watch SOURCE`.")
    else:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("camera", "place", "days", "moments"):
            table.add_column(column)
        for one in found:
            table.add_row(one.camera, _place(one), str(one.days), str(one.moments))
        out.print(table)


@app.command(name="show")
def show(
    camera: Annotated[str, typer.Argument(help="The name of a camera.", show_default=False)],
    day: Annotated[
        str | None,
        typer.Option(
            "--day", help="Also where it was on this day, for a camera that is carried about: 2025-01-03, “yesterday”."
        ),
    ] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Show what a camera looks at: kind of place, routines by hour and day of the week, and what stands there."""
    with open_for_reading(settings_for(home)) as store:
        now = utc_now()
        with store.reading() as connection:
            found = scene_reads.describe(connection, store.user, now, camera)
            shift = scene_reads.shift_of(connection, now)
        if not found:
            cameras = ", ".join(store.cameras()) or "none yet"
            raise NotFoundError(camera, f"There is no camera “{camera}”; the cameras are: {cameras}.")
        since, until = (now - DAY_S, now) if day is None else (moment(day, end=False), moment(day, end=True))
        places = stretches(store, camera, since, until) if found[0].moving or day is not None else []
    if json:
        print_json({**_scene_json(found[0], shift), "stretches": [_stretch_json(one) for one in places]})
        return
    one = found[0]
    say(f"{one.camera}: {_place(one)}; {one.days} days watched, {one.moments} moments")
    for routine in one.routines:
        say(f"  {scene_words.routine(routine, shift)}")
    if not one.routines:
        say("  No routines yet: something has to happen on most of at least five days.")
    if one.things:
        say(f"  To be seen there: {scene_words.inventory(one.things)}.")
    for stretch in places:
        again = f"; looks like {stretch.again}" if stretch.again else ""
        start, end = to_local(stretch.start), to_local(stretch.end)
        say(
            f"  {start:%Y-%m-%d %H:%M}–{end:%H:%M}  {scene_words.place(stretch.place)}, {stretch.moments} moments{again}"
        )


@app.command(name="anomalies")
def anomalies(
    since: Annotated[
        str | None, typer.Option("--since", help="ISO 8601 or words such as “last week”; default: the last 7 days.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Only before the end of this.")] = None,
    camera: Annotated[str | None, typer.Option("--camera", help="Only this camera.")] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what was unusual, with what it is compared with; of a longer span the latest 62 days."""
    with open_for_reading(settings_for(home)) as store:
        last = bound(until, end=True)
        last = utc_now() if last is None else last
        first = bound(since, end=False)
        found = found_in(store, last - 7 * DAY_S if first is None else first, last, camera)
    if json:
        print_json([anomaly_json(one) for one in found])
    elif not found:
        say("Nothing unusual. A camera needs some weeks before it can tell what is.")
    else:
        for one in found:
            trace = public_id(Kind.TRACE, one.anomaly.trace) if one.anomaly.trace is not None else "–"
            say(f"{to_local(one.start):%Y-%m-%d %H:%M}  {trace}  {one.camera}  {scene_words.sentence(one)}")


def frames(
    at: Annotated[
        str, typer.Option("--at", help="ISO 8601, or words such as “yesterday at 17:00”.", show_default=False)
    ],
    camera: Annotated[str | None, typer.Option("--camera", help="Only this camera.")] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Find the stored picture of each camera that is nearest to a time."""
    wanted = moment(at, end=False)
    with open_for_reading(settings_for(home)) as store, store.reading() as connection:
        found = visual.frames_at(connection, store.user, wanted, camera)
    if json:
        print_json(
            [
                {
                    "id": public_id(Kind.KEY_FRAME, one.id),
                    "trace": public_id(Kind.TRACE, one.trace),
                    "camera": one.camera,
                    "at": iso(one.at),
                    "away_s": round(one.at - wanted, 3),
                    "width": one.width,
                    "height": one.height,
                }
                for one in found
            ]
        )
    elif not found:
        say("There is no picture.")
    else:
        for one in found:
            frame, trace = public_id(Kind.KEY_FRAME, one.id), public_id(Kind.TRACE, one.trace)
            say(f"{to_local(one.at):%Y-%m-%d %H:%M:%S}  {frame}  {trace}  {one.camera}  {one.width}×{one.height} px")


def found_in(store: Store, since: float, until: float, camera: str | None) -> list[Found]:
    """What was unusual in a span (UTC POSIX seconds).

    Raises:
        NotFoundError: there is no such camera.
    """
    if camera is not None and camera not in store.cameras():
        raise NotFoundError(
            camera, f"There is no camera “{camera}”; the cameras are: {', '.join(store.cameras()) or 'none yet'}."
        )
    with store.reading() as connection:
        return scene_reads.found(connection, store.user, since, until, camera)


def anomaly_json(one: Found) -> dict[str, object]:
    """The form that docs/json.md describes."""
    odd = one.anomaly
    return {
        "camera": one.camera,
        "kind": odd.kind.value,
        "what": odd.what.removeprefix(SEEN),
        "start": iso(one.start),
        "end": iso(one.end),
        "trace": public_id(Kind.TRACE, odd.trace) if odd.trace is not None else None,
        "count": odd.count,
        "usual": round(odd.usual, 2),
        "seen": odd.seen,
        "days": round(odd.days, 1),
        "among": odd.among.value,
        "chance": round(odd.chance, 5),
        "also": [what.removeprefix(SEEN) for what in odd.also],
        "text": scene_words.sentence(one),
    }


def _place(one: Scene) -> str:
    if not one.moving:
        return scene_words.place(one.place)
    places = ", ".join(f"{kind} {hours} h" for kind, hours in one.places[:5])
    return "carried about" + (f" ({places})" if places else "")


def _scene_json(one: Scene, shift: int) -> dict[str, object]:
    return {
        "camera": one.camera,
        "place": one.place.kind,
        "confidence": round(one.place.confidence, 3),
        "grounds": list(one.place.grounds),
        "moving": one.moving,
        "days": one.days,
        "moments": one.moments,
        "routines": [_routine_json(routine, shift) for routine in one.routines],
        "things": [{"label": label, "seen": seen, "days": days} for label, seen, days in one.things],
        "places": [{"kind": kind, "hours": hours} for kind, hours in one.places],
    }


def _routine_json(one: Routine, shift: int) -> dict[str, object]:
    return {
        "what": one.what.removeprefix(SEEN),
        "from_hour": (one.first + shift) % 24,
        "to_hour": (one.last + shift) % 24 + 1,
        "days_of_week": one.among.value,
        "seen": one.seen,
        "days": one.days,
        "usual": round(one.usual, 2),
        "text": scene_words.routine(one, shift),
    }


def _stretch_json(one: Stretch) -> dict[str, object]:
    return {
        "start": iso(one.start),
        "end": iso(one.end),
        "place": one.place.kind,
        "confidence": round(one.place.confidence, 3),
        "moments": one.moments,
        "again": one.again,
        "cosine": None if one.cosine is None else round(one.cosine, 3),
    }
