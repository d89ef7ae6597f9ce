"""`reflectworld jobs`: what is still made of memories, and what could not be."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from edge.app.rooms import build_text_embedder
from edge.app.work import build_worker
from edge.cli.console import (
    HomeOption,
    JsonOption,
    bar,
    complain,
    open_for_reading,
    open_for_writing,
    out,
    print_json,
    say,
    settings_for,
)
from edge.clock import iso, to_local
from edge.errors import ModelError, NotFoundError
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import jobs
from edge.memory.jobs import Job
from edge.reason import open_reasoner
from edge.settings import Settings
from edge.types.records import Kind, parse_id, public_id

app = typer.Typer(name="jobs", help="What is still made of memories, and what could not be.", no_args_is_help=True)


@app.command(name="list")
def list_jobs(
    aside: Annotated[bool, typer.Option("--aside", help="Only what failed too often and was set aside.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="The oldest so many.")] = 50,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what waits in the queue and what was set aside, oldest first."""
    with open_for_reading(settings_for(home)) as store, store.reading() as connection:
        found = jobs.all_jobs(connection, store.user, failed=True if aside else None, limit=limit)
    if json:
        print_json([_as_json(job) for job in found])
        return
    if not found:
        say("Nothing was set aside." if aside else "Nothing waits.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("id", "kind", "about", "state", "attempts", "why it failed"):
        table.add_column(column)
    for job in found:
        table.add_row(public_id(Kind.JOB, job.id), job.kind, job.key, _state(job), str(job.attempts), job.error)
    out.print(table)


@app.command(name="run")
def run_jobs(json: JsonOption = False, home: HomeOption = None) -> None:
    """Do now all that is due. A running service does this by itself."""
    settings = settings_for(home)
    with open_for_writing(settings) as store, bar("Going over it") as show:
        reasoner = open_reasoner(settings.reason, settings.home)
        purpose = "reflectworld jobs run"
        worker = build_worker(store, settings, _embedder(settings), purpose=purpose, reasoner=reasoner)
        try:
            report = worker.drain(show)
        finally:
            reasoner.close()
        with store.reading() as connection:
            left = jobs.counts(connection, store.user)
    if json:
        print_json(
            {
                "done": report.done,
                "failed": report.failed,
                "set_aside": report.aside,
                "seconds": round(report.seconds, 3),
                "waiting": dict(left.waiting),
                "aside": dict(left.aside),
            }
        )
        return
    say(f"{report.done} done in {report.seconds:.1f} s, {sum(left.waiting.values())} wait for later.")
    if report.failed:
        say(f"{report.failed} attempts failed, {report.aside} jobs were set aside; `reflectworld jobs list` tells why.")


@app.command(name="retry")
def retry(
    job: Annotated[
        str | None, typer.Argument(help="The id of a job, such as j3; default: all that were set aside.")
    ] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take what was set aside back into the queue; it is done by the service or by `reflectworld jobs run`."""
    number = None if job is None else _number(job)
    with open_for_writing(settings_for(home)) as store:
        again = store.transact(lambda memory: jobs.retry(memory, store.user, number))
    if number is not None and not again:
        raise NotFoundError(str(job), f"No job {job} was set aside; `reflectworld jobs list --aside` lists them.")
    if json:
        print_json({"again": again})
    else:
        say(f"{again} back in the queue.")


def _number(job: str) -> int:
    try:
        kind, number = parse_id(job)
    except ValueError:
        kind, number = Kind.TRACE, 0
    if kind is not Kind.JOB:
        raise NotFoundError(job, f"“{job[:40]}” is not the id of a job; they look like j3 (`reflectworld jobs list`).")
    return number


def _state(job: Job) -> str:
    if job.failed:
        return "set aside"
    return f"due {to_local(job.due):%m-%d %H:%M:%S}" if job.due > job.created else "waits"


def _as_json(job: Job) -> dict[str, object]:
    return {
        "id": public_id(Kind.JOB, job.id),
        "kind": job.kind,
        "about": job.key,
        "created": iso(job.created),
        "due": iso(max(job.due, job.created)),
        "attempts": job.attempts,
        "set_aside": job.failed,
        "error": job.error,
    }


def _embedder(settings: Settings) -> TextEmbedder | None:
    try:
        return build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    except ModelError as error:
        complain(f"Note: texts get no vectors: {error}")
        return None
