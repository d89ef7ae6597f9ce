"""A new key for a memory: both files are written anew under it and then take the place of the old ones.

Written anew and not changed in place, so that the old memory is whole until the new one is; the disk must have room for both.
The former key is kept in `key.json` under the new one, because it opens the backups that were made until now.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import apsw

from edge.errors import DiskFullError, NotFoundError, StoreError
from edge.memory import locks
from edge.memory.database import connect, fetch, translated
from edge.memory.files import FRAMES_FILE, MEMORY_FILE
from edge.memory.keys import KeySource, MasterKey, former_keys, new_key, obtain_key
from edge.memory.upkeep import swap
from edge.memory.upkeep.backup import counted
from edge.memory.upkeep.pages import copy
from edge.settings import MemorySettings

Progress = Callable[[int, int], None]
_ROOM: Final = 16 * 2**20  # bytes beside the copy


@dataclass(frozen=True, slots=True)
class RekeyReport:
    """A memory that has a new key."""

    key: str  # what it opens with now, in words
    bytes: int  # that were written anew
    removed: Path | None  # the old key file


def rekey(
    home: Path,
    settings: MemorySettings,
    source: KeySource,
    *,
    passphrase: str | None = None,
    progress: Progress = lambda _done, _total: None,
) -> RekeyReport:
    """Give a memory a new key. Nobody else may have it open.

    Args:
        home: the folder of the memory.
        settings: where the key file is, and will be.
        source: PASSPHRASE or FILE.
        passphrase: the new one.
        progress: called with pages copied and pages there are.

    Raises:
        NotFoundError: there is no memory.
        MemoryKeyError: its present key is absent or wrong, or the new passphrase is empty.
        StoreError: another program has the memory open.
        DiskFullError: there is no room for a second copy.
    """
    path = home / MEMORY_FILE
    with translated(path):
        swap.settle(home)
    if not path.exists():
        raise NotFoundError(
            str(home), f"There is no memory in “{home}” yet; start one with `reflectworld watch SOURCE`."
        )
    with translated(path), locks.opening(home):
        swap.finish(home)
        swap.check_alone(home)
        key = obtain_key(home, settings, exists=True)
        size = sum((home / file).stat().st_size for file in (MEMORY_FILE, FRAMES_FILE))
        if shutil.disk_usage(home).free < size + _ROOM:
            raise DiskFullError(
                path,
                f"A new key needs room for a second copy ({size / 1e6:.0f} MB) in “{home}”; free some and try again.",
            )
        key_path = settings.key_file or home / "key"
        with swap.stage(home) as folder:
            new = new_key(folder, source, passphrase=passphrase, former=[key.secret, *former_keys(home, key)])
            _copy(home, key, folder, new, progress)
            swap.check_alone(home)
            remove = str(key_path) if key.source is KeySource.FILE and source is not KeySource.FILE else None
            swap.commit(home, swap.Plan(str(key_path) if source is KeySource.FILE else None, None, remove))
        words = "the passphrase" if source is KeySource.PASSPHRASE else f"the key file “{key_path}”"
        return RekeyReport(words, size, Path(remove) if remove else None)


def _copy(home: Path, key: MasterKey, folder: Path, new: MasterKey, progress: Progress) -> None:
    counts = []
    for place, one in ((home, key), (folder, new)):
        with closing(connect(place / MEMORY_FILE, one)) as memory, closing(connect(place / FRAMES_FILE, one)) as frames:
            if place == home:
                copy(memory, folder / MEMORY_FILE, new.pragma, progress=progress)
                copy(frames, folder / FRAMES_FILE, new.pragma, progress=progress)
            counts.append((counted(memory, frames), *(_check(connection) for connection in (memory, frames))))
    if counts[0] != counts[1]:
        raise StoreError(home, "The device did not keep what was written to it; check it. The memory is as it was.")


def _check(connection: apsw.Connection) -> list[tuple[object, ...]]:
    return fetch(connection, "pragma quick_check")
