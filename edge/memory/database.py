"""One encrypted SQLite file: how it is opened, how it is written to, and what its errors mean.

The settings and their reasons are in docs/adr/0002-store.md.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw

from edge.errors import DiskFullError, MemoryKeyError, StoreError
from edge.memory.drafts import storable
from edge.memory.keys import MasterKey
from edge.memory.upkeep.offers import offer

CIPHER: Final = "chacha20"  # ChaCha20-Poly1305: authenticated, and fast on processors without AES instructions
BUSY_MS: Final = 10_000  # how long a writer waits for another one
JOURNAL_LIMIT: Final = 16 * 2**20  # bytes that a write-ahead log keeps after a checkpoint
NEARLY_FULL: Final = 256 * 2**10  # bytes: an input/output error with less space than this is for want of space


def connect(path: Path, key: MasterKey, *, readonly: bool = False) -> apsw.Connection:
    """Open an encrypted file, creating it unless `readonly`.

    Raises:
        MemoryKeyError, StoreError: as `translated`.
    """
    with translated(path, key):
        return _open(path, key, readonly=readonly)


def _open(path: Path, key: MasterKey, *, readonly: bool) -> apsw.Connection:
    if not readonly:
        _make_private(path)
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            _unlock(connection, key)
            if not fetch(connection, "select 1 from sqlite_schema limit 1"):
                connection.pragma("auto_vacuum", 2)  # incremental; can be chosen before the first table only
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", 2)  # full: a commit survives a power cut
            connection.pragma("journal_size_limit", JOURNAL_LIMIT)
            connection.pragma("foreign_keys", 1)
            connection.pragma("secure_delete", 1)  # what is deleted is overwritten
        except BaseException:
            connection.close()
            raise
        return connection
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        _unlock(connection, key)
    except (apsw.CantOpenError, apsw.IOError):
        # A write-ahead log needs a file of shared memory beside it. In a folder that cannot be written, or on a full
        # device, there is none, and nobody else can write either: the file alone is the whole memory, unless a log was
        # left behind.
        connection.close()
        log = path.with_name(path.name + "-wal")
        writable = os.access(path.parent, os.W_OK) and not _nearly_full(path)
        if writable or (log.exists() and log.stat().st_size > 0):
            raise
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"{path.resolve().as_uri()}?immutable=1", flags=flags)
        _unlock(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_private(path: Path) -> None:
    """Make an empty file that nobody else can read; SQLite gives its logs the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return  # not opened here: closing it again would drop SQLite's locks


def _unlock(connection: apsw.Connection, key: MasterKey) -> None:
    # The cipher and the key come before anything that reads the file.
    connection.pragma("cipher", CIPHER)
    connection.pragma("key", key.pragma)
    connection.set_busy_timeout(BUSY_MS)
    connection.pragma("cache_size", -8192)  # KiB
    connection.execute("select count(*) from sqlite_schema").fetchall()


def sql(*parts: str) -> str:
    """A statement from constant parts; values are bound, never put in."""
    return " ".join(parts)


def fetch(connection: apsw.Connection, statement: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    return connection.execute(statement, values).fetchall()


def insert(connection: apsw.Connection, table: str, values: Mapping[str, Any]) -> int:
    """Insert a row; `table` and the columns are constants of this package.

    Returns:
        Its id.
    """
    columns, places = ", ".join(values), ", ".join(f":{column}" for column in values)
    clean = {column: storable(value) if isinstance(value, str) else value for column, value in values.items()}
    connection.execute(f"insert into {table}({columns}) values({places})", clean)
    return connection.last_insert_rowid()


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Write in one transaction that holds the write lock from its beginning; an exception takes all of it back."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:  # SQLite has already rolled some errors back
            connection.execute("rollback")
        raise


@contextmanager
def snapshot(connection: apsw.Connection) -> Iterator[None]:
    """Read several times from one state of the memory, whatever is written meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("begin")
    try:
        yield
    finally:
        connection.execute("rollback")


@contextmanager
def translated(path: Path, key: MasterKey | None = None) -> Iterator[None]:
    """Turn errors of SQLite and of the operating system into ours, each one sentence with its remedy.

    Raises:
        MemoryKeyError: not a database of ours with this key.
        DiskFullError: no space is left.
        StoreError: anything else that is wrong with the file.
    """
    try:
        yield
    except apsw.NotADBError as error:
        if key is not None and key.proven:
            raise StoreError(
                path,
                f"“{path}” is damaged or belongs to another memory, as the right key does not fit. {offer(path.parent)}",
            ) from error
        raise MemoryKeyError(
            f"“{path}” cannot be opened with {key.words if key else 'this key'}: give the key that it was made with, "
            "or move the file away if it is not a memory of reflectworld."
        ) from error
    except apsw.FullError as error:
        raise disk_full(path) from error
    except apsw.CorruptError as error:
        raise StoreError(path, f"“{path}” is damaged. {offer(path.parent)}") from error
    except (apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise read_only(path) from error
    except apsw.BusyError as error:
        seconds = BUSY_MS // 1000
        raise StoreError(
            path,
            f"Another program has been writing to “{path}” for more than {seconds} s; try again when it has finished.",
        ) from error
    except apsw.CantOpenError as error:
        raise StoreError(path, f"“{path}” cannot be opened: {_reason(path)}.") from error
    except apsw.IOError as error:
        if _nearly_full(path):
            raise disk_full(path) from error
        raise StoreError(
            path, f"The device failed while “{path}” was read or written; check it. What was stored before is kept."
        ) from error
    except (apsw.ConnectionClosedError, apsw.CursorClosedError) as error:
        raise StoreError(path, "The memory is closed; open it again to read.") from error
    except apsw.Error as error:
        raise StoreError(path, f"“{path}” could not be used ({error}); what was stored before is kept.") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(path) from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise read_only(path) from error
        raise StoreError(path, f"“{error.filename or path}” cannot be used: {error.strerror or error}.") from error


def disk_full(path: Path) -> DiskFullError:
    """The error for a device without space."""
    return DiskFullError(
        path, f"No space is left on the device of “{path.parent}”; free some and go on: what was stored before is kept."
    )


def read_only(path: Path) -> StoreError:
    """The error for a place that cannot be written."""
    return StoreError(
        path,
        f"“{path}” cannot be written; make it and its folder writable for you, or point REFLECTWORLD_HOME at a folder"
        " that is.",
    )


def _reason(path: Path) -> str:
    if path.is_dir():
        return "it is a folder; move it away"
    if not path.parent.is_dir():
        return f"the folder “{path.parent}” does not exist"
    if path.exists() and not os.access(path, os.R_OK):
        return "you may not read it; change its owner or its mode"
    return "its folder must be readable and, for a memory in use, writable for you"


def _nearly_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < NEARLY_FULL
    except OSError:
        return False
