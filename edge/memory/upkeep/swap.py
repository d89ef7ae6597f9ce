"""Putting another memory in the place of the one in a home, so that a kill at any moment leaves either the old or the new.

The new files are made in `replacing.part`. When they are whole and on the disk, the folder is renamed to `replacing`: that
is the moment from which the new memory is the memory. What follows is only moving, each step may be done twice, and
whoever opens the memory next finishes it (`finish`). A `replacing.part` that is left behind is of no memory and goes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from edge.errors import StoreError
from edge.memory import locks
from edge.memory.files import FRAMES_FILE, MEMORY_FILE, sync, write_private

PART: Final = "replacing.part"
READY: Final = "replacing"
PLAN: Final = "plan.json"
_LOGS: Final = ("-wal", "-shm", "-journal")
_LOCK_BYTES: Final = (0x40000000, 512)  # where SQLite locks its files, whatever is in them


@dataclass(frozen=True, slots=True)
class Plan:
    """How a new memory takes the place of the old one."""

    key: str | None  # where the new key file goes; None: there is none
    aside: str | None  # the folder in the home to which the old files go; None: they are removed
    remove: str | None = None  # an old key file that goes


def waits(home: Path) -> bool:
    """Whether a new memory waits to be moved into its place."""
    return (home / READY / PLAN).exists()


def settle(home: Path) -> None:
    """Finish what a kill has left on the way, before the memory is read.

    Raises:
        StoreError: another process takes too long.
        OSError: the device failed.
    """
    if waits(home):
        with locks.opening(home):
            finish(home)


@contextmanager
def stage(home: Path) -> Iterator[Path]:
    """An empty folder for the new files, cleared away unless they come to be the memory. The lock of opening is held.

    Raises:
        OSError: it cannot be made.
    """
    folder = home / PART
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        if folder.exists():
            shutil.rmtree(folder)


def commit(home: Path, plan: Plan) -> None:
    """Let what was made take the place of what there is; the lock of opening is held.

    Raises:
        OSError: the device failed; either the old or the new memory is there.
    """
    folder = home / PART
    for path in folder.iterdir():
        sync(path)
    steps = {"key": _within(home, plan.key), "aside": plan.aside, "remove": _within(home, plan.remove)}
    write_private(folder / PLAN, orjson.dumps(steps))
    sync(folder)
    folder.rename(home / READY)
    sync(home)
    finish(home)


def finish(home: Path) -> None:
    """Move a new memory that waits into its place, and clear away one that was never whole. The lock of opening is held.

    Raises:
        OSError: the device failed; nothing is lost, and the next opening goes on.
    """
    if (home / PART).exists():
        shutil.rmtree(home / PART)
    folder = home / READY
    if not waits(home):
        if folder.exists():  # the plan goes last
            shutil.rmtree(folder)
        return
    plan = Plan(**orjson.loads((folder / PLAN).read_bytes()))
    aside = home / plan.aside if plan.aside else None
    if aside is not None:
        aside.mkdir(mode=0o700, exist_ok=True)
    for name in (MEMORY_FILE, FRAMES_FILE, "key.json"):
        if (folder / name).exists():
            # Logs go before their file: a log beside a file that it does not belong to would be played into it.
            for old in (f"{name}{log}" for log in _LOGS):
                _put_away(home / old, aside)
            if aside is not None and (home / name).exists() and not (aside / name).exists():
                _keep(home / name, aside / name)
            sync(home)
            (folder / name).replace(home / name)
    if plan.key is not None and (folder / "key").exists():
        target = home / plan.key
        if aside is not None and target.exists() and not (aside / "key").exists():
            write_private(aside / "key", target.read_bytes())
        write_private(target, (folder / "key").read_bytes())
        (folder / "key").unlink()
    if plan.remove is not None:
        (home / plan.remove).unlink(missing_ok=True)
    sync(home)
    (folder / PLAN).unlink()
    folder.rmdir()
    sync(home)


def check_alone(home: Path) -> None:
    """See to it that nobody has the memory open.

    Whoever has, in whatever way, holds a lock on the files. (Only other processes are seen: locks of this kind belong to
    processes, and looking gives those of this one back. Nothing in this process may have the files open.)

    Raises:
        StoreError: another process has it open.
        OSError: a file cannot be opened.
    """
    for name in (MEMORY_FILE, FRAMES_FILE):
        if not (home / name).exists():
            continue
        descriptor = os.open(home / name, os.O_RDWR | os.O_CLOEXEC)
        try:
            start, length = _LOCK_BYTES
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except (BlockingIOError, PermissionError) as error:
            raise StoreError(
                home,
                f"Another program has the memory in “{home}” open; stop it (`reflectworld run`, `watch`, an open `ask`),"
                " then run this again.",
            ) from error
        finally:
            os.close(descriptor)


def _within(home: Path, path: str | None) -> str | None:
    """A path as it is inside the home, if it is: the home may be elsewhere when it is gone on with."""
    if path is None or not Path(path).is_relative_to(home):
        return path
    return str(Path(path).relative_to(home))


def _keep(path: Path, aside: Path) -> None:
    """Let a file have another name beside its own, which is wanted for the new one at once."""
    try:
        os.link(path, aside)
    except OSError:  # a file system without links
        path.rename(aside)


def _put_away(path: Path, aside: Path | None) -> None:
    if not path.exists():
        return
    if aside is None:
        path.unlink()
    else:
        path.rename(aside / path.name)
