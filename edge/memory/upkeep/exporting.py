"""Exporting: all that a memory rests on, as rows of JSON Lines and pictures. docs/export.md describes the form.

The rows are read in one state of both files while others write, and go out one by one: working memory does not grow with
what is exported, but for 16 bytes a trace.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw
import orjson

from edge import __version__
from edge.clock import iso, utc_now
from edge.errors import BackupError, NotFoundError
from edge.memory.database import fetch, translated
from edge.memory.files import MEMORY_FILE
from edge.memory.keys import obtain_key
from edge.memory.schema import MEMORY
from edge.memory.upkeep import archive, swap
from edge.memory.upkeep.archive import Sink
from edge.memory.upkeep.pages import paired
from edge.memory.upkeep.tables import BASE, Table, provenance_scope
from edge.settings import MemorySettings
from edge.types.records import DEFAULT_USER, mentioned

Progress = Callable[[int, int], None]

_PICTURES: Final = "pictures.jsonl"
_TRACES: Final = (
    "insert into trace_in select t.id from trace t join camera c on c.id = t.camera where +c.user = :user"
    " and (:since is null or t.end > :since) and (:until is null or t.start < :until)"
    " and (:camera is null or c.name = :camera)"
)
_PEOPLE: Final = (
    "insert or ignore into entity_in"
    " select entity from observation where trace in trace_in and entity is not null"
    " union select speaker from utterance where trace in trace_in and speaker is not null"
    " union select entity from decision where trace in trace_in and entity is not null"
    " union select entity from sample where trace in trace_in union select origin from moved where trace in trace_in"
)


@dataclass(frozen=True, slots=True)
class ExportFilter:
    """What is exported; all without a bound."""

    since: float | None = None  # UTC POSIX seconds: moments that end later
    until: float | None = None  # moments that begin earlier
    camera: str | None = None
    pictures: bool = True

    @property
    def whole(self) -> bool:
        """Whether all moments go out."""
        return self.since is None and self.until is None and self.camera is None


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was exported."""

    path: Path
    rows: Mapping[str, int]  # by table
    pictures: int
    bytes: int  # of all files, unpacked


def export(
    home: Path,
    settings: MemorySettings,
    target: Path,
    wanted: ExportFilter | None = None,
    *,
    user: str = DEFAULT_USER,
    progress: Progress = lambda _done, _total: None,
) -> ExportReport:
    """Export a memory; others may write meanwhile. What is written is not encrypted.

    Args:
        home: the folder of the memory.
        settings: where the key file is.
        target: a new folder, or a new file whose name ends with .zip.
        wanted: what of it.
        user: whose.
        progress: called with tables done and tables there are.

    Raises:
        NotFoundError: there is no memory, or no such camera.
        MemoryKeyError: its key is absent or wrong.
        ArchiveError: the target is there already.
        BackupError: it cannot be written.
        StoreError: the memory cannot be read.
    """
    wanted = wanted or ExportFilter()
    with translated(home / MEMORY_FILE):
        swap.settle(home)
    if not (home / MEMORY_FILE).exists():
        raise NotFoundError(str(home), f"There is no memory in “{home}”: nothing can be exported.")
    with translated(home / MEMORY_FILE):
        key = obtain_key(home, settings, exists=True)
        with paired(home, key) as (memory, frames):
            MEMORY.check(memory, home / MEMORY_FILE)
            if wanted.camera is not None and not fetch(
                memory, "select 1 from camera where user = ? and name = ?", (user, wanted.camera)
            ):
                raise NotFoundError(wanted.camera, f"Nothing is remembered of a camera “{wanted.camera[:60]}”.")
            try:
                with archive.writing(target) as sink:
                    return _Export(memory, frames, sink, wanted, user, target).run(progress)
            except OSError as error:
                raise BackupError(
                    f"“{target}” cannot be written ({error.strerror or error}); choose another place, or free some space."
                ) from error


class _Export:
    """One export under way."""

    def __init__(
        self,
        memory: apsw.Connection,
        frames: apsw.Connection,
        sink: Sink,
        wanted: ExportFilter,
        user: str,
        target: Path,
    ) -> None:
        self.memory = memory
        self.frames = frames
        self.sink = sink
        self.wanted = wanted
        self.target = target
        self.values = {
            "user": user,
            "since": wanted.since,
            "until": wanted.until,
            "camera": wanted.camera,
            "whole": int(wanted.whole),
        }
        self.files: dict[str, dict[str, Any]] = {}

    def run(self, progress: Progress) -> ExportReport:
        self._choose()
        tables = [table for table in BASE if self.wanted.pictures or table.picture is None]
        for done, table in enumerate(tables):
            progress(done, len(tables))
            self._table(table)
        pictures, size = self._pictures() if self.wanted.pictures else (0, 0)
        manifest = {
            "format": archive.FORMAT,
            "version": archive.VERSION,
            "program": __version__,
            "schema": int(self.memory.pragma("user_version")),
            "user": self.values["user"],
            "created": iso(utc_now()),
            "filter": {
                "since": self.wanted.since,
                "until": self.wanted.until,
                "camera": self.wanted.camera,
                "pictures": self.wanted.pictures,
            },
            "sequences": dict(fetch(self.memory, "select name, seq from sqlite_sequence order by name")),
            "files": self.files,
            "pictures": {"count": pictures, "bytes": size},
        }
        self.sink.put(archive.MANIFEST, orjson.dumps(manifest, option=orjson.OPT_INDENT_2))
        progress(len(tables), len(tables))
        rows = {name.removesuffix(".jsonl"): said["rows"] for name, said in self.files.items() if name != _PICTURES}
        written = sum(said["bytes"] for said in self.files.values()) + size
        return ExportReport(self.target, rows, pictures, written)

    def _choose(self) -> None:
        """Note which cameras, sources, traces and people go out."""
        memory = self.memory
        for name in ("camera_in", "source_in", "trace_in", "entity_in"):
            memory.execute(f"create temp table {name}(id integer primary key)")
        memory.execute(_TRACES, self.values)
        cameras = (
            "insert into camera_in select id from camera where user = :user and (:camera is null or name = :camera)"
        )
        memory.execute(cameras, self.values)
        memory.execute(
            "insert or ignore into source_in select source from trace where id in trace_in and source is not null"
        )
        if self.wanted.whole:
            memory.execute("insert or ignore into source_in select id from source where camera in camera_in")
            memory.execute("insert into entity_in select id from entity where user = ?", (self.values["user"],))
            return
        memory.execute(_PEOPLE)
        for table in BASE:
            for column in table.texts if table.name in ("trace", "line", "observation", "decision") else ():
                texts = f"select x.{column} from {table.name} x where {table.scope} and x.{column} like '%{{{{%'"
                for (text,) in memory.execute(texts, self.values):
                    people = [(one,) for one in mentioned(str(text))]
                    memory.executemany("insert or ignore into entity_in select id from entity where id = ?", people)
        memory.execute(
            "insert or ignore into entity_in with recursive up(id) as (select merged_into from entity where id in entity_in"
            " union select merged_into from entity join up on entity.id = up.id)"
            " select id from up where id is not null"
        )

    def _table(self, table: Table) -> None:
        scope = table.scope or provenance_scope(self.wanted.pictures)
        rows = self.memory.execute(f"select x.* from {table.name} x where {scope} order by {table.order}", self.values)
        self._write(f"{table.name}.jsonl", rows, self._columns(table.name))

    def _columns(self, table: str) -> list[str]:
        return [name for (name,) in fetch(self.memory, "select name from pragma_table_info(?) order by cid", (table,))]

    def _write(self, name: str, rows: Any, columns: list[str]) -> None:
        digest, count, size = hashlib.sha256(), 0, 0
        with self.sink.stream(name) as file:
            for row in rows:
                line = orjson.dumps(dict(zip(columns, map(_value, row), strict=True))) + b"\n"
                file.write(line)
                digest.update(line)
                count += 1
                size += len(line)
        self.files[name] = {"rows": count, "bytes": size, "sha256": digest.hexdigest()}

    def _pictures(self) -> tuple[int, int]:
        """Write the list of the pictures, then the pictures; each is read twice and none is kept.

        Returns:
            How many, and their bytes.
        """
        self._write(_PICTURES, self._listed(), ["table", "id", "bytes", "sha256"])
        written = 0
        for table, number, data in self._jpegs():
            self.sink.put(archive.picture_name(table, number), data)
            written += len(data)
        return int(self.files[_PICTURES]["rows"]), written

    def _listed(self) -> Iterator[tuple[str, int, int, str]]:
        for table, number, data in self._jpegs():
            yield table, number, len(data), hashlib.sha256(data).hexdigest()

    def _jpegs(self) -> Iterator[tuple[str, int, bytes]]:
        for table in BASE:
            if table.picture is None:
                continue
            sql = f"select x.id from {table.name} x where {table.scope} order by x.id"
            for (number,) in self.memory.execute(sql, self.values):
                jpeg = fetch(self.frames, f"select jpeg from {table.picture} where id = ?", (number,))
                if jpeg:  # else: of a damaged memory
                    yield table.picture, int(str(number)), bytes(jpeg[0][0])


def _value(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
