"""The files of a memory: their names, and how one is written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

MEMORY_FILE: Final = "memory.db"
FRAMES_FILE: Final = "frames.db"


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner may read, in place of an earlier one: at no moment half.

    Raises:
        OSError: it cannot be written; an earlier one is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
