"""A disk that fails when it is told to: a virtual file system of SQLite under the encrypting one.

What the product writes itself (backups, key files, the exchange of a memory for another) goes through `os`; it fails, too.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import apsw

_NAME = "faulty"


class FaultyDisk(apsw.VFS):
    """Counts what changes files (writes, syncs, truncations, deletions), and fails the one that it is told to."""

    def __init__(self) -> None:
        super().__init__(_NAME, "unix")
        self.done = 0  # operations since `arm`
        self._at = 0
        self._last = 0
        self._error: type[apsw.Error] = apsw.FullError

    def arm(self, at: int, error: type[apsw.Error], *, stays: bool) -> None:
        """Fail the operation of this number from now, 1 being the next; `stays`: and all after it."""
        self.done, self._at, self._error = 0, at, error
        self._last = 10**9 if stays else at

    def disarm(self) -> bool:
        """Work again; whether something failed."""
        failed = 0 < self._at <= self.done
        self._at = self._last = 0
        return failed

    def step(self) -> None:
        """One operation."""
        self.done += 1
        if self._at and self._at <= self.done <= self._last:
            raise self._error

    def xOpen(self, name: Any, flags: list[int]) -> _File:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.step()
        super().xDelete(filename, syncdir)


class _File(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._readonly = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)

    def xLock(self, level: int) -> None:  # noqa: N802
        if self._readonly and level > apsw.SQLITE_LOCK_SHARED:
            raise apsw.BusyError  # SQLite tries it when it closes the last connection, and lives with the refusal
        super().xLock(level)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step()
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step()
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step()
        super().xTruncate(newsize)


@cache
def _disk() -> FaultyDisk:
    """One for the whole process: what lies over it holds on to it for good."""
    return FaultyDisk()


@contextmanager
def faulty_disk() -> Iterator[FaultyDisk]:
    """All databases that are opened inside lie on a faulty disk."""
    disk = _disk()
    usual = apsw.vfs_names()[0]
    plain = {name: getattr(os, name) for name in ("pwrite", "fsync", "ftruncate", "replace", "link")}
    for name, call in plain.items():
        setattr(os, name, _counted(disk, call))
    # The encrypting file system is made over another one when it is first asked for by this name.
    apsw.Connection(":memory:", vfs=f"multipleciphers-{_NAME}").close()
    apsw.set_default_vfs(f"multipleciphers-{_NAME}")
    try:
        yield disk
    finally:
        disk.disarm()
        for name, call in plain.items():
            setattr(os, name, call)
        apsw.set_default_vfs(usual)


def _counted(disk: FaultyDisk, call: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `os` that fails as the disk does."""

    def counted(*arguments: Any, **named: Any) -> Any:
        try:
            disk.step()
        except apsw.FullError as error:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        except apsw.IOError as error:
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from error
        return call(*arguments, **named)

    return counted
