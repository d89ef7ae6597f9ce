"""`reflectworld watch`: remember what a file, an image or a stream shows."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from edge.app import Watch, WatchReport, open_rooms
from edge.app.notices import deliver_waiting
from edge.app.work import work_through
from edge.cli.console import HomeOption, JsonOption, bar, complain, err, print_json, say, settings_for
from edge.clock import iso, parse_instant
from edge.errors import SettingsError
from edge.types.media import Mode


def watch(
    source: Annotated[
        str, typer.Argument(help="A video, sound or picture file, rtsp://…, http(s)://…, or usb:0.", show_default=False)
    ],
    camera: Annotated[str | None, typer.Option(help="Name of the camera; default: from the source.")] = None,
    start: Annotated[
        str | None,
        typer.Option(
            help="When a recording began (ISO 8601, local time without an offset); default: its creation time."
        ),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(help="offline_quality drops nothing; live_latency drops pictures, never speech, to keep up."),
    ] = Mode.OFFLINE_QUALITY,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Watch SOURCE and remember who and what is seen and heard.

    Ctrl-C finishes the open segment; the same command again goes on where it stopped.
    """
    settings = settings_for(home)
    with open_rooms(settings) as rooms:
        for sentence in rooms.missing:
            complain(f"Note: {sentence}")
        job = Watch(rooms, source, camera=camera, start=_instant(start), mode=mode)
        with _stopping(job.stop), _progress(job) as show:
            report = job.run(show)
        with bar("Going over it") as show_work:
            work_through(rooms.store, settings, rooms.embedder, purpose="reflectworld watch", progress=show_work)
        told = deliver_waiting(rooms.store, settings)
    if json:
        print_json(_as_json(report))
    else:
        _say_report(report, source)
        for text in told:
            say(f"! {text}")
    if report.interrupted:
        raise typer.Exit(130)


def _instant(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        raise SettingsError(
            f"“{text[:60]}” is not a time; write it as 2025-01-03T09:12:00 (local) or with an offset."
        ) from error


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """The first SIGINT or SIGTERM finishes the open segment, a second one ends at once."""

    def handle(number: int, _frame: FrameType | None) -> None:
        stop()
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        complain("Finishing the open segment … (again to stop at once)")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress(job: Watch) -> Iterator[Callable[[WatchReport], None]]:
    """A progress bar on a terminal; silence elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _report: None
        return
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task(f"Watching {job.info.camera}", total=job.info.duration, done="")

        def show(report: WatchReport) -> None:
            people = _many(len(report.people), "person", "people")
            progress.update(
                task,
                completed=report.position,
                done=f"{_clock(report.position)}  {_many(report.segments, 'moment')}, {people}, {report.speed:.1f}× real time",
            )

        yield show


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or one + 's'}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600}:{int(seconds) // 60 % 60:02}:{int(seconds) % 60:02}"


def _say_report(report: WatchReport, source: str) -> None:
    if report.already_finished:
        say(
            f"{source} is already remembered to its end; ask about it, or give another --start or --camera to add it again."
        )
        return
    say(
        f"Remembered {_clock(report.position - report.resumed_at)} of {report.info.camera} in {report.elapsed:.1f} s "
        f"({report.speed:.1f}× real time): {_many(report.segments, 'moment')}, {_many(len(report.people), 'person', 'people')} "
        f"({report.new_people} new), {_many(len(report.voices), 'voice')} without a face, "
        f"{_many(report.utterances, 'utterance')}."
    )
    if report.skipped:
        say(f"Skipped as still and silent: {_many(report.skipped, 'stretch', 'stretches')}.")
    if report.frames_dropped:
        say(f"Dropped to keep up with the clock: {_many(report.frames_dropped, 'picture')}; speech never is.")
    if report.faults:
        say(
            f"Passed over as not decodable: {_many(report.faults, 'packet or frame', 'packets or frames')} of the source."
        )
    if report.failures:
        say(
            f"Passed over because a network failed on them: {_many(report.failures, 'frame or moment', 'frames or moments')}."
        )
    if report.interrupted:
        say("Stopped before the end; the same command goes on from here.")


def _as_json(report: WatchReport) -> dict[str, object]:
    info = report.info
    return {
        "camera": info.camera,
        "source": info.uri,
        "start": iso(info.start),
        "duration_s": info.duration,
        "resumed_at_s": round(report.resumed_at, 3),
        "position_s": round(report.position, 3),
        "elapsed_s": round(report.elapsed, 3),
        "segments": report.segments,
        "skipped": report.skipped,
        "frames": {
            "decoded": report.frames_decoded,
            "looked_at": report.frames_looked_at,
            "pruned": report.frames_pruned,
            "dropped": report.frames_dropped,
        },
        "faults": report.faults,
        "failures": report.failures,
        "people": [f"p{number}" for number in sorted(report.people)],
        "voices": [f"p{number}" for number in sorted(report.voices)],
        "new_people": report.new_people,
        "utterances": report.utterances,
        "already_finished": report.already_finished,
        "interrupted": report.interrupted,
    }
