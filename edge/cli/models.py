"""`reflectworld models`: the networks that the memory perceives with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn
from rich.table import Table

from edge.errors import ModelError
from edge.infer import Catalog, ModelSpec, NewModel, Report, add_model, pull_models, verify_models
from edge.settings import load_settings

app = typer.Typer(no_args_is_help=True, help="List, fetch, check and add the models that the memory perceives with.")

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]


@app.command("list")
def list_command(as_json: JsonOption = False) -> None:
    """List the models: their roles, where they come from, and whether they are on this device."""
    catalog = Catalog.load(load_settings().infer)
    default = {spec.id for spec in catalog.defaults()}
    if as_json:
        _print_json(
            {
                "models_dir": str(catalog.models_dir),
                "models": [_as_json(spec, default=spec.id in default) for spec in catalog.models],
            }
        )
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("role", "model", "size", "source", "here", "licence"):
        table.add_column(column, justify="right" if column == "size" else "left", no_wrap=column in {"role", "model"})
    for spec in catalog.models:
        mark = " *" if spec.id in default else ""
        here = "yes" if spec.present else "no"
        row = (spec.role, spec.id + mark, _megabytes(spec.size), _source(spec), here, spec.licence)
        table.add_row(*(escape(cell) for cell in row))
    Console().print(table)
    typer.echo(f"* the default of its role. Pulled and added models lie in {catalog.models_dir}.")


@app.command("pull")
def pull_command(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Models to fetch. Default: the default of every role.")
    ] = None,
    optional: Annotated[
        bool, typer.Option("--optional", help="Fetch the optional ones, too (recordings for the demo and the tests).")
    ] = False,
) -> None:
    """Fetch models that are missing or damaged. What is there already is not fetched again."""
    catalog = Catalog.load(load_settings().infer)
    specs = [catalog.get(model_id) for model_id in dict.fromkeys(ids)] if ids else list(catalog.defaults())
    if optional:
        specs += [spec for spec in catalog.models if spec.optional and spec not in specs]
    console = Console(stderr=True)
    with _bars(console) as report:
        pulled = pull_models(catalog, specs, report)
    if not pulled.fetched:
        typer.echo("Nothing to do: all of these models are on this device.")
        return
    typer.echo(f"Fetched {', '.join(pulled.fetched)} into {catalog.models_dir}.")


@app.command("verify")
def verify_command(as_json: JsonOption = False) -> None:
    """Compute the checksum of every file again; ends with an error when one is wrong."""
    catalog = Catalog.load(load_settings().infer)
    checks = verify_models(catalog)
    damaged = [check for check in checks if check.state == "damaged"]
    if as_json:
        rows = [
            {
                "model": check.model,
                "file": check.file,
                "path": str(check.path),
                "state": check.state,
                "remedy": check.remedy,
            }
            for check in checks
        ]
        _print_json({"ok": not damaged, "files": rows})
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("model", "file", "state"):
            table.add_column(column)
        for check in checks:
            state = {"ok": "ok", "missing": "not on this device", "damaged": "DAMAGED"}[check.state]
            table.add_row(escape(check.model), escape(check.file), state)
        Console().print(table)
    if damaged:
        first = damaged[0]
        more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
        raise ModelError(first.model, f"{first.file} of {first.model}{more} does not have its checksum. {first.remedy}")


@app.command("add")
def add_command(
    file: Annotated[Path, typer.Argument(help="An ONNX file.")],
    role: Annotated[str, typer.Option(help="What it is for: objects, faces, face-embedding, body-embedding, …")],
    decoder: Annotated[
        str | None,
        typer.Option(
            help="How its output is read; for objects: nanodet, yolov8 (v8, v11), yolox, yolo26, yolov3-tiny."
        ),
    ] = None,
    model_id: Annotated[str | None, typer.Option("--id", help="Its id. Default: from the name of the file.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Text file with the classes, one a line. Default: the 80 of COCO.")
    ] = None,
    input_size: Annotated[
        str | None, typer.Option(help="Input in px: SIDE or WIDTHxHEIGHT. Default: what the network fixes.")
    ] = None,
    licence: Annotated[str, typer.Option(help="Its licence, for the list.")] = "unknown",
    default: Annotated[
        bool, typer.Option("--default/--no-default", help="Whether it becomes the default of its role.")
    ] = True,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a model that was added with this id.")] = False,
) -> None:
    """Try a network of your own and enter it in the catalogue of this device."""
    new = NewModel(
        file=file.expanduser(),
        role=role,
        decoder=decoder,
        id=model_id,
        labels=labels.expanduser() if labels is not None else None,
        input_size=_size(input_size) if input_size is not None else None,
        licence=licence,
        default=default,
        replace=replace,
    )
    spec = add_model(load_settings().infer, new)
    size = spec.params.get("input_size")
    shape = f", input {size[0]}×{size[1]} px" if size is not None else ""
    standing = "It is now the default of its role." if default else "The default of its role stays as it was."
    typer.echo(f"Added {spec.id} as {spec.role} ({spec.decoder}{shape}). {standing}")


def _size(text: str) -> tuple[int, int]:
    sides = text.lower().replace("×", "x").split("x")
    if not 1 <= len(sides) <= 2 or not all(side.strip().isdecimal() for side in sides):
        raise ModelError("input-size", f"“{text}” is not an input size. Give --input-size 640 or 640x384.")
    numbers = [int(side) for side in sides]
    return numbers[0], numbers[-1]


@contextmanager
def _bars(console: Console) -> Iterator[Report]:
    """A progress bar for each download, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        tasks: dict[str, TaskID] = {}

        def report(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(escape(label), total=total or None)
            progress.update(tasks[label], completed=done)

        yield report


def _source(spec: ModelSpec) -> str:
    kinds = {"bundle": "bundled", "user": "added", "pypi": "PyPI", "https": "https"}
    return ", ".join(dict.fromkeys(kinds[file.source.kind] for file in spec.files if file.source.kind in kinds))


def _as_json(spec: ModelSpec, *, default: bool) -> dict[str, Any]:
    return {
        "id": spec.id,
        "role": spec.role,
        "decoder": spec.decoder,
        "default": default,
        "present": spec.present,
        "user": spec.user,
        "key": spec.key,
        "size": spec.size,
        "licence": spec.licence,
        "provenance": spec.provenance,
        "measured": dict(spec.measured),
        "files": [
            {
                "name": file.name,
                "path": str(file.location),
                "present": file.present,
                "sha256": file.sha256,
                "size": file.size,
                "source": file.source.model_dump(mode="json", by_alias=True, exclude_none=True),
            }
            for file in spec.files
        ],
    }


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
