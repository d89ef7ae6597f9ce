"""An export as a folder or a ZIP file: files by name, written once and read with suspicion.

Nothing that is read is ever unpacked into the file system, and no name out of an archive is used as a path unless it has the
form that the exporter gives it.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol

import orjson

from edge.errors import ArchiveError
from edge.memory.files import sync

MANIFEST: Final = "manifest.json"
FORMAT: Final = "reflectworld-export"
VERSION: Final = 1
LINE_BYTES: Final = 16 * 2**20  # no row is longer
PICTURE_BYTES: Final = 32 * 2**20
_MANIFEST_BYTES: Final = 4 * 2**20
_NAME: Final = re.compile(r"manifest\.json|[a-z_]{1,40}\.jsonl|pictures/(frame|crop)/\d{1,16}/\d{1,19}\.jpg")
_RATIO: Final = 300  # JSON Lines of ours shrink 5 to 40 times (measured); zeros about 1000 times
_FREE: Final = 2**20  # what small files may shrink as they like, bytes


def picture_name(table: str, number: int) -> str:
    """Where a picture is; a thousand in a folder."""
    return f"pictures/{table}/{number // 1000}/{number}.jpg"


# -- writing ----------------------------------------------------------------------------------------------------------


class Sink(Protocol):
    """Where an export is written."""

    def put(self, name: str, data: bytes) -> None:
        """Write a small file."""

    def stream(self, name: str) -> Any:
        """A context that gives a file to write to."""


class FolderSink:
    """Into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, data: bytes) -> None:
        """Write a small file."""
        with self.stream(name) as file:
            file.write(data)

    @contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to."""
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            yield file


class ZipSink:
    """Into a ZIP file."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def put(self, name: str, data: bytes) -> None:
        """Write a small file; pictures are compressed already."""
        kind = zipfile.ZIP_STORED if name.endswith(".jpg") else zipfile.ZIP_DEFLATED
        self._archive.writestr(name, data, kind)

    @contextmanager
    def stream(self, name: str) -> Iterator[IO[bytes]]:
        """A file to write to."""
        with self._archive.open(name, "w", force_zip64=True) as file:
            yield file


@contextmanager
def writing(target: Path) -> Iterator[Sink]:
    """Write an export: a ZIP file where the name ends so, else a folder. It is there whole or not at all.

    Raises:
        ArchiveError: there is something of this name already.
        OSError: it cannot be written.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise ArchiveError(f"“{target}” is there already; give the name of a new folder or of a new .zip file.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        if target.suffix.lower() == ".zip":
            descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w+b") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
                    yield ZipSink(archive)
                file.flush()
                os.fsync(file.fileno())
        else:
            part.mkdir(mode=0o700)
            yield FolderSink(part)
        part.replace(target)
        sync(target.parent)
    finally:
        if part.is_dir():
            shutil.rmtree(part)
        else:
            part.unlink(missing_ok=True)


# -- reading ----------------------------------------------------------------------------------------------------------


class Archive:
    """An export that is read. Raises ArchiveError with one sentence for whatever is wrong with it."""

    def __init__(self, path: Path, archive: zipfile.ZipFile | None) -> None:
        self._path = path
        self._archive = archive
        self._members: dict[str, zipfile.ZipInfo] = {}
        if archive is not None:
            for member in archive.infolist():
                if member.filename in self._members:
                    raise self.wrong(f"has two files of the name {member.filename[:60]}")
                self._members[member.filename] = member
        self.manifest = self._manifest()

    def wrong(self, what: str) -> ArchiveError:
        """The error for this export; `what` goes on from its name."""
        return ArchiveError(f"“{self._path}” {what}; nothing of it was imported. Export again, or take another copy.")

    def rows(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a file of JSON Lines."""
        for number, line in enumerate(self._lines(name), 1):
            try:
                row = orjson.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise self.wrong(f"has a line that is no row ({name}, line {number})")
            yield row

    def check(self) -> None:
        """Read all files of rows and compare them with the manifest."""
        for name, said in self.files.items():
            digest, rows, size = hashlib.sha256(), 0, 0
            for line in self._lines(name):
                digest.update(line)
                rows += 1
                size += len(line)
                if not line.endswith(b"\n"):
                    raise self.wrong(f"was cut off ({name} ends in the middle of a line)")
            if (rows, size, digest.hexdigest()) != (said["rows"], said["bytes"], said["sha256"]):
                raise self.wrong(f"is not what was exported ({name} differs from the manifest)")

    def picture(self, name: str, sha256: str) -> bytes:
        """A picture, as it was exported."""
        with self._reading(name) as file:
            data = file.read(PICTURE_BYTES + 1)
        if hashlib.sha256(data).hexdigest() != sha256 or not data.startswith(b"\xff\xd8") or len(data) > PICTURE_BYTES:
            raise self.wrong(f"has a picture that is not what was exported ({name})")
        return data

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """What the manifest says of each file of rows."""
        found: dict[str, dict[str, Any]] = self.manifest["files"]
        return found

    def _manifest(self) -> dict[str, Any]:
        with self._reading(MANIFEST) as file:
            data = file.read(_MANIFEST_BYTES + 1)
        strange = ArchiveError(
            f"“{self._path}” is no export of reflectworld; name a folder or a .zip that `reflectworld export` wrote."
        )
        if len(data) > _MANIFEST_BYTES:
            raise strange
        try:
            found = orjson.loads(data)
            ours = found["format"] == FORMAT
            version, _ = int(found["version"]), int(found["schema"])
            right = all(
                _NAME.fullmatch(name)
                and name.endswith(".jsonl")
                and isinstance(said["rows"], int)
                and isinstance(said["bytes"], int)
                and isinstance(said["sha256"], str)
                for name, said in found["files"].items()
            )
            right = right and isinstance(found["filter"], dict) and isinstance(found["sequences"], dict)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise strange from None
        if not ours:
            raise strange
        if version > VERSION:
            raise ArchiveError(
                f"“{self._path}” was written by a newer reflectworld; update with `pip install -U reflectworld-edge`."
            )
        if not right:
            raise self.wrong("has a manifest that makes no sense")
        result: dict[str, Any] = found
        return result

    def _lines(self, name: str) -> Iterator[bytes]:
        left = int(self.files[name]["bytes"])
        with self._reading(name) as file:
            while line := file.readline(LINE_BYTES + 1):
                left -= len(line)
                if left < 0:
                    raise self.wrong(f"is not what was exported ({name} is longer than the manifest says)")
                if len(line) > LINE_BYTES:
                    raise self.wrong(f"has a line that is too long ({name})")
                yield line

    @contextmanager
    def _reading(self, name: str) -> Iterator[IO[bytes]]:
        if not _NAME.fullmatch(name):
            raise self.wrong(f"names a file that it cannot have ({name[:60]})")
        try:
            with self._open(name) as file:
                yield file
        except (OSError, KeyError) as error:
            raise self.wrong(f"lacks a file ({name})") from error
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
            raise self.wrong(f"is damaged ({name} cannot be unpacked)") from error

    def _open(self, name: str) -> IO[bytes]:
        if self._archive is None:
            path = self._path
            for part in Path(name).parts:
                path /= part
                if path.is_symlink():
                    raise self.wrong(f"has a link in it ({name})")
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
        member = self._members[name]
        if member.file_size > _FREE and member.file_size > _RATIO * member.compress_size:
            raise self.wrong(f"has a file that would unpack to {member.file_size / 1e6:.0f} MB ({name})")
        return self._archive.open(member)


@contextmanager
def reading(path: Path) -> Iterator[Archive]:
    """Read an export.

    Raises:
        ArchiveError: it is none, or damaged.
    """
    if path.is_dir():
        yield Archive(path, None)
        return
    try:
        archive = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise ArchiveError(f"There is no “{path}”; name a folder or a .zip that `reflectworld export` wrote.") from None
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ArchiveError(f"“{path}” is no export or damaged; export again, or take another copy.") from error
    with archive:
        yield Archive(path, archive)
