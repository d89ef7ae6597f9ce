"""Copies of a memory that forgetting does not reach: the owner is told of them."""

from __future__ import annotations

from pathlib import Path

from edge.memory.files import MEMORY_FILE
from edge.settings import MemorySettings


def copies(home: Path, settings: MemorySettings) -> tuple[str, ...]:
    """What still holds an older state, one sentence each."""
    found = [
        f"An older memory that was put aside is in “{folder}”: remove the folder to forget it there, too."
        for folder in (sorted(home.iterdir()) if home.is_dir() else [])
        if (folder / MEMORY_FILE).is_file()
    ]
    if settings.backup_folder is not None:
        found.append(f"Backups in “{settings.backup_folder}” stay as they are: remove those that are older than this.")
    return tuple(found)
