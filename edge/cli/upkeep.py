"""`export`, `import`, `backup`, `restore` and `rekey`: the memory as a whole, moved, kept safe, under another key."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from edge.cli.console import HomeOption, JsonOption, bar, open_for_writing, print_json, say, settings_for
from edge.cli.spans import bound
from edge.clock import iso, to_local
from edge.errors import ArchiveError, MemoryKeyError, NotFoundError, UserError
from edge.identity import RULES
from edge.memory import jobs
from edge.memory.keys import KeySource
from edge.memory.upkeep import backup as backups
from edge.memory.upkeep import exporting, importing
from edge.memory.upkeep import rekey as rekeying
from edge.memory.upkeep import restore as restoring
from edge.memory.upkeep.exporting import ExportFilter

NEW_PASSPHRASE = "REFLECTWORLD_NEW_PASSPHRASE"  # noqa: S105 -- the name of a variable

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Put a memory that is there aside.")]


def export(
    target: Annotated[Path, typer.Argument(help="A new folder, or a new file whose name ends with .zip.")],
    since: Annotated[str | None, typer.Option("--since", help="Only moments that end after this.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Only moments that begin before the end of this.")
    ] = None,
    camera: Annotated[str | None, typer.Option("--camera", help="Only this camera.")] = None,
    no_pictures: Annotated[bool, typer.Option("--no-pictures", help="Leave the pictures out.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write all that is remembered into a folder or a ZIP file, readable for anybody: it is not encrypted (docs/export.md)."""
    settings = settings_for(home)
    wanted = ExportFilter(bound(since, end=False), bound(until, end=True), camera, not no_pictures)
    with bar("Exporting") as show:
        report = exporting.export(settings.home, settings.memory, target, wanted, user=settings.user, progress=show)
    if json:
        print_json(
            {
                "path": str(report.path.resolve()),
                "rows": dict(report.rows),
                "pictures": report.pictures,
                "bytes": report.bytes,
            }
        )
        return
    say(f"{report.rows.get('trace', 0)} moments and {report.pictures} pictures are in {report.path}.")
    say("Whoever can read it can read your memory: it is not encrypted. `reflectworld import` takes it in elsewhere.")


def import_(
    source: Annotated[Path, typer.Argument(help="A folder or a .zip that `reflectworld export` wrote.")],
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Take an export in: an empty memory is equal then, another one has it beside what it has; all of it or nothing."""
    settings = settings_for(home)
    if not source.exists():
        raise ArchiveError(f"There is no “{source}”; name a folder or a .zip that `reflectworld export` wrote.")
    with open_for_writing(settings) as store, bar("Importing") as show:
        importing.check_quiet(store.claims())
        report = store.upkeep(lambda files: importing.load(source, files, store.user, progress=show))
        if store.rows("select 1 from identity_state where galleries_due = 1"):
            store.rebuild_galleries(RULES)
        with store.reading() as connection:
            waiting = sum(jobs.counts(connection, store.user).waiting.values())
    if json:
        print_json(
            {
                "merged": report.merged,
                "rows": report.rows,
                "passed_over": report.passed_over,
                "left_out": report.left_out,
                "pictures": report.pictures,
                "waiting": waiting,
            }
        )
        return
    say(f"{report.rows.get('trace', 0)} moments and {report.pictures} pictures were imported.")
    if report.passed_over:
        say(f"{report.passed_over} moments were there already and were passed over.")
    if waiting:
        say(
            f"{waiting} jobs wait that make more of them (`reflectworld jobs run`; a running service does it by itself)."
        )


def backup(
    target: Annotated[Path, typer.Argument(help="A new file, or a folder, in which it gets a name with its time.")],
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="In a folder: so many of the newest stay, older ones go.")
    ] = None,
    passphrase: Annotated[
        bool,
        typer.Option("--passphrase", help="Ask for a passphrase that opens it beside the key of the memory."),
    ] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write an encrypted copy of the whole memory, also while it is in use; it is read back before it counts (docs/backup.md)."""
    settings = settings_for(home)
    if keep is not None and not target.is_dir():
        raise UserError(f"--keep is for a folder, and “{target}” is none; make it, or leave --keep away.")
    words = _new_passphrase(backups.PASSPHRASE_VARIABLE) if passphrase else None
    with bar("Copying") as show:
        report = backups.make(settings.home, settings.memory, target, passphrase=words, keep=keep, progress=show)
    if json:
        print_json(
            {
                "path": str(report.path.resolve()),
                "created": iso(report.created),
                "bytes": report.bytes,
                "memory_bytes": report.memory_bytes,
                "counts": dict(report.counts),
                "copy_s": round(report.copy_s, 3),
                "verify_s": round(report.verify_s, 3),
                "removed": [str(path) for path in report.removed],
            }
        )
        return
    say(f"{report.counts['trace']} moments, {report.bytes / 1e6:.1f} MB, read back whole: {report.path}")
    if report.removed:
        say(f"{len(report.removed)} older ones were removed.")
    if words is None and backups.PASSPHRASE_VARIABLE not in os.environ:
        say("It opens with the key of this memory: keep a copy of that apart from this device (docs/backup.md).")


def restore(
    source: Annotated[Path, typer.Argument(help="A file that `reflectworld backup` wrote.")],
    yes: YesOption = False,
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Ask for the passphrase of the backup.")] = False,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="Key file of the memory that was backed up, if it is not here.")
    ] = None,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Bring a memory back from a backup; the one that is there is put aside, never overwritten."""
    settings = settings_for(home)
    if not source.is_file():
        raise NotFoundError(
            str(source), f"There is no backup “{source}”; name a file that `reflectworld backup` wrote."
        )
    words = None
    if passphrase and backups.PASSPHRASE_VARIABLE not in os.environ:
        words = typer.prompt("Passphrase of the backup", hide_input=True, err=True)
    with bar("Copying") as show:
        report = restoring.restore(
            source,
            settings.home,
            settings.memory,
            replace=yes,
            passphrase=words,
            key_file=key_file,
            progress=show,
        )
    if json:
        print_json(
            {
                "home": str(settings.home),
                "created": iso(report.created),
                "counts": dict(report.counts),
                "aside": None if report.aside is None else str(report.aside),
                "key": report.key,
            }
        )
        return
    say(
        f"{report.counts.get('trace', 0)} moments, as of {to_local(report.created):%Y-%m-%d %H:%M}, are at {settings.home}."
    )
    say(f"The memory opens with {report.key}.")
    if report.aside is not None:
        say(f"What was there before is in {report.aside}; remove it when you do not need it any more.")


def rekey(
    passphrase: Annotated[bool, typer.Option("--passphrase", help="From now on it opens with a passphrase.")] = False,
    key_file: Annotated[
        bool,
        typer.Option("--key-file", help="From now on it opens with a new key file (in the place of the settings)."),
    ] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Give the memory a new key; nobody else may have it open. A kill leaves it with the old key or with the new one."""
    settings = settings_for(home)
    if passphrase == key_file:
        raise UserError("Say what it opens with from now on: --passphrase or --key-file.")
    words = _new_passphrase(NEW_PASSPHRASE) if passphrase else None
    kind = KeySource.PASSPHRASE if passphrase else KeySource.FILE
    with bar("Copying") as show:
        report = rekeying.rekey(settings.home, settings.memory, kind, passphrase=words, progress=show)
    if json:
        removed = None if report.removed is None else str(report.removed)
        print_json({"key": report.key, "bytes": report.bytes, "removed": removed})
        return
    say(f"The memory opens with {report.key} now ({report.bytes / 1e6:.1f} MB were written anew).")
    if report.removed is not None:
        say(
            f"The old key file {report.removed} is gone; where this memory is lost, older backups open only with a copy of it."
        )


def _new_passphrase(variable: str) -> str:
    """A passphrase from the environment, or asked for twice."""
    words = os.environ.get(variable)
    if words is None:
        words = str(typer.prompt("New passphrase", hide_input=True, confirmation_prompt=True, err=True))
    if not words:
        raise MemoryKeyError(f"A passphrase cannot be empty; type one, or set {variable}.")
    return words
