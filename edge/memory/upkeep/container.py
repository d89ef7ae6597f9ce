"""A backup is one file: a head, then both databases, page by page, each page encrypted and authenticated under a random key.

Head (16 KiB): 8 bytes `RWBACKUP`, the length of a JSON document (4 bytes, little-endian), the document, zeros. The document
says what is in the file and keeps its key wrapped: under the key of the memory (`memory`, with what `key.json` says, so
that a passphrase is enough), and under a passphrase of its own (`passphrase`) if one was given. A check value under the key
of the file covers the rest, so that what the head says is as sure as the pages.

The two databases are read and written where they lie, through a virtual file system of SQLite.
"""

# ruff: noqa: N802, D102 -- the methods of files are SQLite's, with its names

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import orjson

from edge.errors import ArchiveError, BackupError
from edge.memory.database import CIPHER
from edge.memory.keys import KEY_BYTES, SCRYPT_N_MAX, SCRYPT_R_MAX, stretched
from edge.memory.wraps import unwrap, wrap

MAGIC: Final = b"RWBACKUP"
HEAD: Final = 16_384  # bytes, a multiple of every page size
VERSION: Final = 1
_BY_KEY: Final = "reflectworld backup by the memory's key"
_BY_PASSPHRASE: Final = "reflectworld backup by passphrase"  # noqa: S105 -- the name of a purpose
_LATEST: Final = 1e11  # UTC POSIX seconds
_VFS: Final = "reflectworld-region"


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a backup says."""

    created: float  # UTC POSIX seconds
    program: str
    schema: tuple[int, int]  # of both files
    counts: Mapping[str, int]  # rows by table
    regions: Mapping[str, tuple[int, int]]  # file name -> offset and length, bytes
    wraps: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Secret:
    """The key of one backup."""

    key: bytes

    @property
    def pragma(self) -> str:
        """In the form for SQLite."""
        return f"raw:{self.key.hex()}"

    def __repr__(self) -> str:
        return "Secret()"


def new_secret() -> Secret:
    """A key for a new backup."""
    return Secret(secrets.token_bytes(KEY_BYTES))


def wraps_of(
    secret: Secret, memory_key: bytes, record: Mapping[str, Any] | None, passphrase: str | None
) -> dict[str, Any]:
    """How the key of a backup can be had later."""
    record = {name: value for name, value in record.items() if name != "former"} if record else None
    kept: dict[str, Any] = {"memory": {"key": wrap(memory_key, secret.key, _BY_KEY), "record": record}}
    if passphrase:
        salt = secrets.token_bytes(16)
        kept["passphrase"] = {
            "salt": salt.hex(),
            "n": 2**15,
            "r": 8,
            "p": 1,
            "key": wrap(stretched(passphrase, salt), secret.key, _BY_PASSPHRASE),
        }
    return kept


def by_key(head: Head, memory_key: bytes) -> Secret | None:
    """The key of a backup by that of the memory; None: it is another one."""
    return _opened(memory_key, _text(head.wraps, "memory", "key"), _BY_KEY)


def by_passphrase(head: Head, passphrase: str) -> Secret | None:
    """The key of a backup by its own passphrase; None: it is wrong, or there is none."""
    kept = head.wraps.get("passphrase")
    if not isinstance(kept, dict):
        return None
    try:
        n, r, p = (int(kept[name]) for name in ("n", "r", "p"))
        salt = bytes.fromhex(kept["salt"])
    except (KeyError, TypeError, ValueError):
        return None
    if not (1 < n <= SCRYPT_N_MAX and n & (n - 1) == 0 and 0 < r <= SCRYPT_R_MAX and 0 < p <= SCRYPT_R_MAX):
        return None
    return _opened(stretched(passphrase, salt, n, r, p), _text(head.wraps, "passphrase", "key"), _BY_PASSPHRASE)


def write_head(descriptor: int, head: Head, secret: Secret) -> None:
    """Write the head.

    Raises:
        BackupError, OSError: it cannot be written.
    """
    content = _content(head)
    data = orjson.dumps({**content, "check": _check(content, secret)})
    whole = (MAGIC + len(data).to_bytes(4, "little") + data).ljust(HEAD, b"\0")
    if len(whole) > HEAD or os.pwrite(descriptor, whole, 0) != HEAD:
        raise BackupError("The head of the backup could not be written whole; try again.")


def read_head(path: Path) -> Head:
    """Read what a backup says of itself; `check_head` tells whether that is so.

    Raises:
        ArchiveError: it is no backup, or a newer one.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        whole = file.read(HEAD)
        size = os.fstat(file.fileno()).st_size
    if whole[:8] != MAGIC or len(whole) < HEAD:
        raise ArchiveError(f"“{path}” is no backup of reflectworld; name a file that `reflectworld backup` wrote.")
    try:
        data = orjson.loads(whole[12 : 12 + int.from_bytes(whole[8:12], "little")])
        version = int(data["version"])
        if version <= VERSION:
            head = Head(
                float(data["created"]),
                str(data["program"]),
                (int(data["schema"][0]), int(data["schema"][1])),
                {str(name): int(count) for name, count in data["counts"].items()},
                {str(name): (int(start), int(length)) for name, (start, length) in data["regions"].items()},
                dict(data["wraps"]),
            )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise damaged(path) from error
    if version > VERSION:
        raise ArchiveError(
            f"“{path}” was written by a newer reflectworld; update with `pip install -U reflectworld-edge`."
        )
    if not 0 <= head.created < _LATEST or any(
        start < HEAD or length < 0 or start + length > size for start, length in head.regions.values()
    ):
        raise damaged(path)
    return head


def check_head(path: Path, head: Head, secret: Secret) -> None:
    """See whether the head says what was written.

    Raises:
        ArchiveError: it was changed.
    """
    with path.open("rb") as file:
        whole = file.read(HEAD)
    try:
        data = orjson.loads(whole[12 : 12 + int.from_bytes(whole[8:12], "little")])
        right = hmac.compare_digest(_check(_content(head), secret), data["check"])
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise damaged(path)


def damaged(path: Path) -> ArchiveError:
    """The error for a backup that is not whole."""
    return ArchiveError(f"“{path}” is damaged or was cut off; take another backup.")


# -- the databases in it ----------------------------------------------------------------------------------------------


class Region:
    """A stretch of an open file, as SQLite sees it: a file of its own that nobody else uses."""

    def __init__(self, descriptor: int, start: int, length: int = 0) -> None:
        self.length = length
        self._descriptor = descriptor
        self._start = start

    def xRead(self, amount: int, offset: int) -> bytes:
        return os.pread(self._descriptor, max(0, min(amount, self.length - offset)), self._start + offset)

    def xWrite(self, data: bytes, offset: int) -> None:
        done = 0
        try:
            while done < len(data):
                done += os.pwrite(self._descriptor, data[done:], self._start + offset + done)
        except OSError as error:
            raise apsw.FullError(str(error)) from error
        self.length = max(self.length, offset + len(data))

    def xTruncate(self, size: int) -> None:
        self.length = size

    def xSync(self, flags: int) -> None:
        del flags  # the whole file is synced once it is written

    def xFileSize(self) -> int:
        return self.length

    def xLock(self, level: int) -> None:
        del level

    def xUnlock(self, level: int) -> None:
        del level

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        del op, pointer
        return False

    def xSectorSize(self) -> int:
        return 4096

    def xDeviceCharacteristics(self) -> int:
        return 0

    def xClose(self) -> None:
        return None


class _Regions(apsw.VFS):
    """Opens regions by their name; there is nothing else in it, such as a journal."""

    def __init__(self) -> None:
        super().__init__(_VFS, "unix")
        self.named: dict[str, Region] = {}

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        del flags
        known = name.filename() if isinstance(name, apsw.URIFilename) else name
        try:
            return self.named[str(known)]
        except KeyError:
            raise apsw.CantOpenError(f"no region {known}") from None

    def xAccess(self, pathname: str, flags: int) -> bool:
        del pathname, flags
        return False

    def xDelete(self, filename: str, syncdir: bool) -> None:
        del filename, syncdir

    def xFullPathname(self, name: str) -> str:
        return name


_regions: _Regions | None = None


@contextmanager
def region(descriptor: int, start: int, length: int = 0) -> Iterator[tuple[str, str, Region]]:
    """Make a stretch of a file a database's.

    Args:
        descriptor: of the open file.
        start: bytes.
        length: bytes; 0: it is empty and grows.

    Yields:
        The name to open, the file system to open it with, and the stretch.
    """
    global _regions  # SQLite knows file systems by name, for the whole process
    if _regions is None:
        _regions = _Regions()
    name = secrets.token_hex(8)
    _regions.named[name] = Region(descriptor, start, length)
    try:
        # The encrypting file system lies over whatever is named after its own name.
        yield name, f"multipleciphers-{_VFS}", _regions.named[name]
    finally:
        del _regions.named[name]


@contextmanager
def opened(descriptor: int, head: Head, secret: Secret, file: str) -> Iterator[apsw.Connection]:
    """Read a database where it lies in a backup.

    Args:
        descriptor: of the open backup.
        head: its head.
        secret: its key.
        file: which database.

    Raises:
        apsw.Error: it is damaged.
    """
    start, length = head.regions[file]
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    with (
        region(descriptor, start, length) as (name, vfs, _),
        closing(apsw.Connection(f"file:{name}?immutable=1", flags=flags, vfs=vfs)) as connection,
    ):
        connection.pragma("cipher", CIPHER)
        connection.pragma("key", secret.pragma)
        connection.execute("select count(*) from sqlite_schema").fetchall()
        yield connection


def _content(head: Head) -> dict[str, Any]:
    return {
        "version": VERSION,
        "created": head.created,
        "program": head.program,
        "schema": list(head.schema),
        "counts": dict(head.counts),
        "regions": {name: list(place) for name, place in head.regions.items()},
        "wraps": dict(head.wraps),
    }


def _check(content: Mapping[str, Any], secret: Secret) -> str:
    data = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(data, key=secret.key, digest_size=32, person=b"reflectworld-hed").hexdigest()


def _text(wraps: Mapping[str, Any], kind: str, name: str) -> str:
    kept = wraps.get(kind)
    return str(kept.get(name, "")) if isinstance(kept, dict) else ""


def _opened(outer: bytes, wrapped: str, purpose: str) -> Secret | None:
    key = unwrap(outer, wrapped, purpose)
    return None if key is None or len(key) != KEY_BYTES else Secret(key)
