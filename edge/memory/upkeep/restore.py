"""Bringing a memory back from a backup. The one that is there is put aside, and a kill at any moment leaves either."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from edge.clock import utc_now
from edge.errors import ArchiveError, MemoryKeyError, StoreError, UserError
from edge.memory import locks
from edge.memory.database import connect, translated
from edge.memory.files import FRAMES_FILE, MEMORY_FILE, write_private
from edge.memory.keys import KeySource, MasterKey, adopt_record, former_keys, obtain_key, record_data
from edge.memory.schema import FRAMES, MEMORY
from edge.memory.upkeep import container, swap
from edge.memory.upkeep.backup import PASSPHRASE_VARIABLE, counted, verify
from edge.memory.upkeep.container import Head, Secret
from edge.memory.upkeep.pages import copy
from edge.settings import MemorySettings

Progress = Callable[[int, int], None]
_ASIDE: Final = "before-restore-"


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """A memory that was brought back."""

    created: float  # of the backup, UTC POSIX seconds
    counts: Mapping[str, int]  # rows by table
    aside: Path | None  # where the memory is that was there
    key: str  # what it opens with, in words


def restore(
    path: Path,
    home: Path,
    settings: MemorySettings,
    *,
    replace: bool = False,
    passphrase: str | None = None,
    key_file: Path | None = None,
    progress: Progress = lambda _done, _total: None,
) -> RestoreReport:
    """Bring a memory back.

    It opens with the key of the home, if there is one, else with that of the backup's memory, else with a new one.

    Args:
        path: of the backup.
        home: where the memory is, or will be.
        settings: where the key file is.
        replace: whether a memory that is there may be put aside.
        passphrase: of the backup; default: that of the environment, if any.
        key_file: the key file of the memory that was backed up; default: that of the home.
        progress: called with pages copied and pages there are.

    Raises:
        ArchiveError: the file is no backup, damaged, or opens with another key.
        UserError: there is a memory, and it may not be put aside.
        StoreError: another program uses the memory, or the device failed; the memory that was there is there.
    """
    with translated(path):
        head = container.read_head(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with translated(home / MEMORY_FILE):
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locks.opening(home):
                swap.finish(home)
                swap.check_alone(home)
                there = (home / MEMORY_FILE).exists()
                if there and not replace:
                    raise UserError(
                        f"There is a memory in “{home}” already; add --yes to put it aside and bring back the one of"
                        f" {datetime.fromtimestamp(head.created, UTC).astimezone():%Y-%m-%d %H:%M}."
                    )
                with swap.stage(home) as folder:
                    return _restore(path, descriptor, head, home, settings, folder, passphrase, key_file, progress)
    finally:
        os.close(descriptor)


def _restore(
    path: Path,
    descriptor: int,
    head: Head,
    home: Path,
    settings: MemorySettings,
    folder: Path,
    passphrase: str | None,
    key_file: Path | None,
    progress: Progress,
) -> RestoreReport:
    key_path = settings.key_file or home / "key"
    secret, key = _open(path, head, home, settings, folder, passphrase, key_file or key_path)
    container.check_head(path, head, secret)
    found = verify(descriptor, head, secret)
    if found:
        raise ArchiveError(f"“{path}” is damaged ({found[0]}); take another backup.")
    for file, migrations in ((MEMORY_FILE, MEMORY), (FRAMES_FILE, FRAMES)):
        with container.opened(descriptor, head, secret, file) as source:
            migrations.check(source, path)
            copy(source, folder / file, key.pragma, progress=progress)
    with (
        closing(connect(folder / MEMORY_FILE, key)) as memory,
        closing(connect(folder / FRAMES_FILE, key)) as frames,
    ):
        if counted(memory, frames) != dict(head.counts):
            raise StoreError(home, "The device did not keep what was written to it; check it. The memory is as it was.")
    moved = key.source is KeySource.FILE and key_file is not None and key_file.resolve() != key_path.resolve()
    if moved:
        write_private(folder / "key", key.secret.hex().encode() + b"\n")
    aside = None
    if (home / MEMORY_FILE).exists():
        aside = f"{_ASIDE}{datetime.fromtimestamp(utc_now(), UTC):%Y%m%dT%H%M%SZ}"
    swap.commit(home, swap.Plan(str(key_path) if moved else None, aside))
    return RestoreReport(head.created, head.counts, home / aside if aside else None, key.words)


def _open(
    path: Path,
    head: Head,
    home: Path,
    settings: MemorySettings,
    folder: Path,
    passphrase: str | None,
    key_file: Path,
) -> tuple[Secret, MasterKey]:
    """The key of the backup, and that of the memory that is brought back; `key.json` of it is in the folder then."""
    secret = None
    passphrase = passphrase if passphrase is not None else os.environ.get(PASSPHRASE_VARIABLE)
    if passphrase:
        secret = container.by_passphrase(head, passphrase)
    current = _current(home, settings)
    if current is not None and secret is None:
        keys = [current.secret, *former_keys(home, current)]
        secret = next((found for one in keys if (found := container.by_key(head, one))), None)
    recorded = None
    if current is None or secret is None:
        recorded = _recorded(head, settings, folder, key_file)
        if recorded is not None and secret is None:
            secret = container.by_key(head, recorded.secret)
    if secret is None:
        raise ArchiveError(_locked(path, head, passphrase is not None))
    if recorded is not None and container.by_key(head, recorded.secret) is not None:
        return secret, recorded
    (folder / "key.json").unlink(missing_ok=True)
    if current is not None:
        shutil.copyfile(home / "key.json", folder / "key.json")
        return secret, current
    return secret, obtain_key(folder, settings.model_copy(update={"key_file": key_file}), exists=False)


def _current(home: Path, settings: MemorySettings) -> MasterKey | None:
    """The key of the memory that is there; None: there is none, or it is not to be had."""
    with suppress(MemoryKeyError):
        if record_data(home) is not None:
            return obtain_key(home, settings, exists=True)
    return None


def _recorded(head: Head, settings: MemorySettings, folder: Path, key_file: Path) -> MasterKey | None:
    """The key of the memory that was backed up, from where that memory had it."""
    kept = head.wraps.get("memory")
    record = kept.get("record") if isinstance(kept, dict) else None
    if not isinstance(record, dict):
        return None
    try:
        adopt_record(folder, record)
        return obtain_key(folder, settings.model_copy(update={"key_file": key_file}), exists=True)
    except MemoryKeyError:
        return None


def _locked(path: Path, head: Head, tried: bool) -> str:
    kept = head.wraps.get("memory")
    record = kept.get("record") if isinstance(kept, dict) else None
    source = record.get("source") if isinstance(record, dict) else None
    ways = {
        KeySource.PASSPHRASE: "the passphrase of its memory (REFLECTWORLD_PASSPHRASE)",
        KeySource.CREDENTIAL: "the systemd credential of its memory",
    }
    ways_words = ways.get(KeySource(source) if source in set(KeySource) else KeySource.FILE)
    first = ways_words or "the key file of its memory (--key-file)"
    second = f" or with its own passphrase ({PASSPHRASE_VARIABLE})" if "passphrase" in head.wraps else ""
    wrong = " The passphrase that was given does not fit." if tried and second else ""
    return f"“{path}” opens with {first}{second}; give it.{wrong}"
