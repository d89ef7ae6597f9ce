"""A disk that fails when it is told to: a virtual file system of SQLite under the encrypting one."""

from __future__ import annotations

from collections.abc import Iterator
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
    # The encrypting file system is made over another one when it is first asked for by this name.
    apsw.Connection(":memory:", vfs=f"multipleciphers-{_NAME}").close()
    apsw.set_default_vfs(f"multipleciphers-{_NAME}")
    try:
        yield disk
    finally:
        disk.disarm()
        apsw.set_default_vfs(usual)
