"""What all reading parts of the store stand on: one pair of read connections a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from edge.errors import StoreError
from edge.memory.database import connect, fetch, snapshot, sql, translated
from edge.memory.drafts import storable, to_json
from edge.memory.files import FRAMES_FILE as FRAMES_FILE
from edge.memory.files import MEMORY_FILE as MEMORY_FILE
from edge.memory.keys import MasterKey
from edge.types.records import mentioned, render

UNKNOWN = "someone"  # who is mentioned and no longer known
AMONG = "in (select value from json_each(?))"
LARGEST_ID = 2**63 - 1  # of SQLite

Rows = list[tuple[Any, ...]]


class Reader:
    """Reads from any thread; each has connections of its own, so that reading never waits for writing."""

    def __init__(self, home: Path, key: MasterKey, user: str) -> None:
        self.home = home
        self.user = user
        self._key = key
        self._local = threading.local()
        self._opened: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._closed = False

    def rows(self, statement: str, values: Iterable[object] = ()) -> Rows:
        """Run one reading statement on memory.db.

        Raises:
            StoreError: it cannot be read.
        """
        with translated(self.home / MEMORY_FILE, self._key):
            return fetch(self.connection(), statement, _storable(values))

    def connection(self) -> apsw.Connection:
        """This thread's read-only connection to memory.db, for the search indexes."""
        return self._connection(MEMORY_FILE)

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Read several times from one state of the memory, whatever is written meanwhile."""
        connection = self.connection()
        with translated(self.home / MEMORY_FILE, self._key), snapshot(connection):
            yield connection

    def titles(self, entities: Iterable[int] | None = None) -> dict[int, str]:
        """How entities are called now, by id; without `entities`, all of this user's. Unknown ids are left out.

        Who is part of somebody else now is called as they are.
        """
        title = "coalesce(s.name, iif(s.kind = 'voice', 'voice ', 'person ') || s.number)"
        one = "from entity e join entity s on s.id = coalesce(e.merged_into, e.id) where e.user = ?"
        everybody = sql("select e.id,", title, one)
        if entities is None:
            return dict(self.rows(everybody, (self.user,)))
        wanted = sorted({number for number in entities if 0 < number <= LARGEST_ID})
        if not wanted:
            return {}
        return dict(self.rows(sql(everybody, "and e.id", AMONG), (self.user, to_json(wanted))))

    def _rendered(self, texts: Iterable[str]) -> list[str]:
        """Stored texts with the titles put in."""
        texts = list(texts)
        titles = self.titles(number for text in texts if "{{" in text for number in mentioned(text))
        return [render(text, lambda number: titles.get(number, UNKNOWN)) if "{{" in text else text for text in texts]

    def _jpeg(self, table: str, number: int) -> bytes | None:
        with translated(self.home / FRAMES_FILE, self._key):
            connection = self._connection(FRAMES_FILE)
            found = fetch(connection, f"select jpeg from {table} where id = ?", (number,))  # noqa: S608 -- constants
        return bytes(found[0][0]) if found else None

    def _connection(self, file: str) -> apsw.Connection:
        mine: dict[str, apsw.Connection] = self._local.__dict__.setdefault("connections", {})
        if self._closed:
            raise StoreError(self.home / file, "The memory is closed; open it again to read.")
        if file not in mine:
            mine[file] = connect(self.home / file, self._key, readonly=True)
            with self._lock:
                self._opened.append(mine[file])
        return mine[file]

    def _close_readers(self) -> None:
        with self._lock:
            self._closed = True
            for connection in self._opened:
                # A thread that reads at this moment keeps its connection, which closes when the thread lets go of it.
                with suppress(apsw.ThreadingViolationError):
                    connection.close()
            self._opened.clear()


def _storable(values: Iterable[object]) -> tuple[object, ...]:
    return tuple(storable(value) if isinstance(value, str) else value for value in values)
