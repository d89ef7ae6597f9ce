"""Locks between processes: short ones while the tables are made, long ones for work that must not be done twice.

A lock belongs to an open file, so that the end of its process, by whatever cause, gives it back.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from edge.clock import monotonic
from edge.errors import ClaimHeldError, StoreError

OPENING_S: Final = 30.0  # how long one process waits for another that makes or changes the tables
ASKING_S: Final = 0.5  # how long a claim is tried: whoever looks who holds it does so for microseconds


@contextmanager
def opening(home: Path) -> Iterator[None]:
    """Let one process at a time make or change the tables of a home.

    Raises:
        StoreError: another one takes too long.
        OSError: the lock file cannot be made.
    """
    descriptor = _open(home / "lock")
    try:
        if not _taken(descriptor, fcntl.LOCK_EX, OPENING_S):
            raise StoreError(
                home,
                f"Something has been opening the memory in “{home}” for {OPENING_S:.0f} s; stop it, then try again.",
            )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def claimed(home: Path, what: str, purpose: str) -> Iterator[None]:
    """Hold a claim on some long work.

    Args:
        home: the folder of the memory.
        what: a name for the work, such as "camera hall".
        purpose: the command, as another process will say it.

    Raises:
        ClaimHeldError: another process holds it.
        OSError: the claim cannot be written.
    """
    folder = home / "claims"
    folder.mkdir(mode=0o700, exist_ok=True)
    descriptor = _open(folder / hashlib.sha256(what.encode(errors="surrogateescape")).hexdigest()[:32])
    try:
        if not _taken(descriptor, fcntl.LOCK_EX, ASKING_S):
            message = f"{_holder(descriptor)} is at it already ({what}); stop it first, or wait until it has finished."
            raise ClaimHeldError(home, message)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"`{purpose}` (pid {os.getpid()})".encode(errors="replace"), 0)
        yield
    finally:
        os.close(descriptor)


def claims(home: Path) -> list[str]:
    """Who holds a claim now, in words: the command and its process."""
    found = []
    for path in sorted((home / "claims").glob("*")):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _taken(descriptor, fcntl.LOCK_SH, 0):
                found.append(_holder(descriptor))
        finally:
            os.close(descriptor)
    return found


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _taken(descriptor: int, kind: int, seconds: float) -> bool:
    deadline = monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 500, 0).decode(errors="replace").strip() or "another process"
