"""Both files of a memory in one state while others write, and copies of them page by page under another key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Final

import apsw

from edge.errors import StoreError
from edge.memory.database import CIPHER, connect, fetch, snapshot
from edge.memory.files import FRAMES_FILE, MEMORY_FILE, sync
from edge.memory.keys import MasterKey

_STEP: Final = 512  # pages copied between two looks at whether to go on
_TRIES: Final = 200
_WAIT_S: Final = 0.02


@contextmanager
def paired(home: Path, key: MasterKey) -> Iterator[tuple[apsw.Connection, apsw.Connection]]:
    """Read both files in one state, whatever is written meanwhile.

    A picture is written before its row and removed after it, so the two fit when nothing was committed to memory.db between
    the moments from which they are read; that is looked at, and tried again.

    Raises:
        StoreError: others write without a pause, or the files cannot be read.
    """
    with ExitStack() as opened:
        watch, memory, frames = (
            opened.enter_context(closing(connect(home / file, key, readonly=True)))
            for file in (MEMORY_FILE, MEMORY_FILE, FRAMES_FILE)
        )
        for _ in range(_TRIES):
            before = watch.pragma("data_version")
            with snapshot(memory), snapshot(frames):
                for connection in (memory, frames):
                    fetch(connection, "select 1 from sqlite_schema limit 1")  # from here on it is this state
                if watch.pragma("data_version") == before:
                    yield memory, frames
                    return
            time.sleep(_WAIT_S)
    raise StoreError(home, "The memory is being written to without a pause; try again in a minute.")


def copy(
    source: apsw.Connection,
    path: str | Path,
    pragma: str,
    *,
    vfs: str | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> None:
    """Copy all pages of a database, as its connection reads them, into another encrypted one that nobody else uses yet.

    Args:
        source: in a reading transaction, if others may write.
        path: of the new one.
        pragma: its key, as `MasterKey.pragma`.
        vfs: SQLite's file system; None: the default.
        progress: called with pages done and pages there are.

    Raises:
        apsw.Error: it cannot be read or written.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with closing(apsw.Connection(str(path), flags=flags, vfs=vfs)) as target:
        target.pragma("cipher", CIPHER)
        target.pragma("key", pragma)
        # It counts only when it is whole, so that nothing of it needs a journal.
        target.pragma("locking_mode", "exclusive")
        target.pragma("journal_mode", "off")
        target.pragma("synchronous", 0)
        with target.backup("main", source, "main") as pages:
            while not pages.done:
                pages.step(_STEP)
                progress(pages.page_count - pages.remaining, pages.page_count)
    if vfs is None:
        sync(Path(path))
