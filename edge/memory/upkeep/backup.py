"""Encrypted backups of a memory while it is in use: how they are made, looked over, kept and found again.

A backup is written under a name of its own beside where it goes, read back whole (every page is authenticated, every row
examined), and only then renamed: what has the name of a backup is one. docs/backup.md says what it takes to open one.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import apsw

from edge import __version__
from edge.clock import monotonic, utc_now
from edge.errors import ArchiveError, BackupError, DiskFullError, NotFoundError, ReflectWorldError
from edge.memory.database import fetch, translated
from edge.memory.files import FRAMES_FILE, MEMORY_FILE, sync
from edge.memory.health import problems
from edge.memory.keys import obtain_key, record_data
from edge.memory.upkeep import container, offers, swap
from edge.memory.upkeep.container import Head, Secret
from edge.memory.upkeep.pages import copy, paired
from edge.settings import MemorySettings

SUFFIX: Final = ".rwbackup"
PASSPHRASE_VARIABLE: Final = "REFLECTWORLD_BACKUP_PASSPHRASE"  # noqa: S105 -- the name of a variable
_NAMED: Final = re.compile(r"reflectworld-\d{8}T\d{6}Z(-\d+)?\.rwbackup")
_PART: Final = re.compile(r"\..+\.[0-9a-f]{8}\.rwbackup\.part")
_COUNTED: Final = ("trace", "observation", "utterance", "entity", "key_frame", "crop")
_OPEN: Final = os.O_NOFOLLOW | os.O_CLOEXEC

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made."""

    path: Path
    created: float  # UTC POSIX seconds
    bytes: int
    memory_bytes: int  # of both files of the memory
    counts: Mapping[str, int]  # rows by table
    copy_s: float
    verify_s: float
    removed: tuple[Path, ...]  # older backups


def make(
    home: Path,
    settings: MemorySettings,
    target: Path,
    *,
    passphrase: str | None = None,
    keep: int | None = None,
    progress: Progress = lambda _done, _total: None,
) -> BackupReport:
    """Make a backup; others may write meanwhile.

    Args:
        home: the folder of the memory.
        settings: where the key file is.
        target: a file that is not there yet, or a folder, in which it gets a name with its time.
        passphrase: opens it beside the key of the memory; default: that of the environment, if any.
        keep: so many of the newest in the folder stay, those before them go; only for a folder.
        progress: called with pages copied and pages there are.

    Raises:
        NotFoundError: there is no memory.
        MemoryKeyError: its key is absent or wrong.
        BackupError, StoreError: it cannot be made; nothing has the name of a backup.
    """
    with translated(home / MEMORY_FILE):
        swap.settle(home)
    if not (home / MEMORY_FILE).exists():
        raise NotFoundError(str(home), f"There is no memory in “{home}”: nothing can be backed up.")
    passphrase = passphrase if passphrase is not None else os.environ.get(PASSPHRASE_VARIABLE)
    created = utc_now()
    folder = target.is_dir()
    path = _free_name(target, created) if folder else target
    if path.exists():
        raise BackupError(f"“{path}” is there already; give another name, or a folder.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{SUFFIX}.part")
    with _writing(path):
        _clear(path.parent)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            report = _fill(home, settings, descriptor, path, passphrase, created, progress)
            part.rename(path)
            sync(path.parent)
        finally:
            os.close(descriptor)
            part.unlink(missing_ok=True)
    removed = _rotate(path.parent, keep) if folder and keep else ()
    offers.note(home, path, created)
    return replace(report, removed=removed)


def _fill(
    home: Path,
    settings: MemorySettings,
    descriptor: int,
    path: Path,
    passphrase: str | None,
    created: float,
    progress: Progress,
) -> BackupReport:
    began = monotonic()
    with translated(home / MEMORY_FILE):
        key = obtain_key(home, settings, exists=True)
        record = record_data(home)
    secret = container.new_secret()
    regions: dict[str, tuple[int, int]] = {}
    start = container.HEAD
    with _of_backup(home, path), paired(home, key) as (memory, frames):
        counts = counted(memory, frames)
        size = sum(int(one.pragma("page_count")) * int(one.pragma("page_size")) for one in (memory, frames))
        schema = (int(memory.pragma("user_version")), int(frames.pragma("user_version")))
        for file, source in ((MEMORY_FILE, memory), (FRAMES_FILE, frames)):
            with container.region(descriptor, start) as (name, vfs, region):
                copy(source, name, secret.pragma, vfs=vfs, progress=progress)
                regions[file] = (start, region.length)
                start += region.length
    os.ftruncate(descriptor, start)
    wraps = container.wraps_of(secret, key.secret, record, passphrase)
    head = Head(created, __version__, schema, counts, regions, wraps)
    container.write_head(descriptor, head, secret)
    os.fsync(descriptor)
    copied = monotonic()
    with suppress(AttributeError):  # not everywhere; the pages are then read from working memory
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    found = verify(descriptor, head, secret)
    if found:
        raise BackupError(f"The backup was read back and is not whole ({found[0]}); check the device of “{path}”.")
    return BackupReport(path, created, start, size, counts, copied - began, monotonic() - copied, ())


def verify(descriptor: int, head: Head, secret: Secret) -> list[str]:
    """Read a backup whole.

    Returns:
        What is wrong with it, one sentence each.
    """
    try:
        with (
            container.opened(descriptor, head, secret, MEMORY_FILE) as memory,
            container.opened(descriptor, head, secret, FRAMES_FILE) as frames,
        ):
            found = problems(memory, frames)
            if counted(memory, frames) != dict(head.counts):
                found.append("The backup holds more or fewer rows than it says.")
            return found
    except apsw.Error as error:
        return [f"A page cannot be read ({error})."]


def counted(memory: apsw.Connection, frames: apsw.Connection) -> dict[str, int]:
    """How much both files hold, by table."""
    found = {table: int(fetch(memory, f"select count(*) from {table}")[0][0]) for table in _COUNTED}  # noqa: S608 -- constants
    found["pictures"] = sum(
        int(fetch(frames, f"select count(*) from {table}")[0][0])  # noqa: S608 -- constants
        for table in ("frame", "crop")
    )
    return found


def _clear(folder: Path) -> None:
    """Remove what backups that were cut off have left: nobody holds a lock on it."""
    for path in folder.iterdir():
        if not _PART.fullmatch(path.name) or path.is_symlink() or not path.is_file():
            continue
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
        except BlockingIOError:
            continue  # another one is being made
        finally:
            os.close(descriptor)


def _rotate(folder: Path, keep: int) -> tuple[Path, ...]:
    """Remove the oldest backups of a folder; only what has the name and the head of one."""
    found = []
    for path in folder.iterdir():
        if _NAMED.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with suppress(ArchiveError):
                found.append((container.read_head(path).created, path))
    removed = tuple(path for _, path in sorted(found)[:-keep])
    for path in removed:
        path.unlink()
    return removed


def _free_name(folder: Path, created: float) -> Path:
    stem = f"reflectworld-{datetime.fromtimestamp(created, UTC):%Y%m%dT%H%M%SZ}"
    path, again = folder / f"{stem}{SUFFIX}", 1
    while path.exists():
        again += 1
        path = folder / f"{stem}-{again}{SUFFIX}"
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say what is wrong with the place of a backup."""
    try:
        yield
    except ReflectWorldError:
        raise
    except OSError as error:
        raise BackupError(
            f"“{path}” cannot be written ({error.strerror or error}); choose another place, or free some space."
        ) from error


@contextmanager
def _of_backup(home: Path, path: Path) -> Iterator[None]:
    """Tell a full device of the backup from trouble with the memory."""
    try:
        with translated(home / MEMORY_FILE):
            yield
    except DiskFullError as error:
        raise BackupError(f"No space is left for “{path}”; free some, or choose another place.") from error
