"""Migrations: from nothing, from every older version, cut off in the middle, and from the future."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from edge.errors import MemoryKeyError, StoreError, StoreVersionError
from edge.memory import Store
from edge.memory.database import connect, translated
from edge.memory.keys import obtain_key
from edge.memory.migrations import Migrations
from edge.memory.schema import FRAMES, MEMORY
from edge.settings import MemorySettings
from tests.memory_support import segment


def open_file(home: Path, name: str = "memory.db") -> apsw.Connection:
    return connect(home / name, obtain_key(home, MemorySettings(), exists=(home / "memory.db").exists()))


def recorded(connection: apsw.Connection) -> list[tuple[int, str]]:
    return connection.execute("select id, name from migration order by id").fetchall()


def test_a_new_memory_has_every_step_recorded(home: Path) -> None:
    with Store.open(home):
        pass
    for name, migrations in (("memory.db", MEMORY), ("frames.db", FRAMES)):
        connection = open_file(home, name)
        assert recorded(connection) == [(step.number, step.name) for step in migrations.steps]
        assert connection.pragma("user_version") == migrations.version
        assert connection.pragma("application_id") == migrations.application
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("auto_vacuum") == 2
        connection.close()


@pytest.mark.parametrize("version", range(MEMORY.version + 1))
def test_a_memory_of_any_older_version_is_brought_up_to_date(home: Path, version: int) -> None:
    home.mkdir()
    older = Migrations(MEMORY.application)
    for step in MEMORY.steps[:version]:
        older.register(step.name)(step.apply)
    connection = open_file(home)
    older.migrate(connection, home / "memory.db")
    assert connection.pragma("user_version") == version
    connection.close()
    with Store.open(home) as store:
        store.commit(segment(0))
        assert store.integrity() == []
    connection = open_file(home)
    assert recorded(connection) == [(step.number, step.name) for step in MEMORY.steps]
    connection.close()


def test_a_reader_brings_an_older_memory_up_to_date(home: Path) -> None:
    with Store.open(home) as store:
        store.commit(segment(0))
    connection = open_file(home, "frames.db")
    connection.execute("drop table crop; drop table frame; drop table migration")
    connection.pragma("user_version", 0)
    connection.pragma("application_id", 0)
    connection.close()
    with Store.open(home, readonly=True) as store:
        assert store.counts().traces == 1
        assert store.integrity() == [
            "frames.db: 1 pictures (key_frame) are missing.",
            "frames.db: 1 pictures (crop) are missing.",
        ]


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("name", ["memory.db", "frames.db"])
def test_a_memory_of_the_future_is_left_alone(home: Path, name: str, readonly: bool) -> None:
    with Store.open(home) as store:
        store.commit(segment(0))
    connection = open_file(home, name)
    connection.pragma("user_version", 99)
    connection.close()
    with pytest.raises(StoreVersionError, match=r"newer .*99.*pip install -U") as caught:
        Store.open(home, readonly=readonly)
    assert caught.value.exit_code == 5
    connection = open_file(home, name)
    connection.pragma("user_version", (MEMORY if name == "memory.db" else FRAMES).version)
    connection.close()
    with Store.open(home, readonly=readonly) as store:
        assert store.integrity() == []


def test_a_database_of_another_program_is_left_alone(home: Path) -> None:
    home.mkdir()
    connection = open_file(home)
    connection.execute("create table theirs(x)")
    connection.close()
    with pytest.raises(MemoryKeyError, match="database of another program"):
        Store.open(home)
    connection = open_file(home)
    assert connection.execute("select name from sqlite_schema").fetchall() == [("theirs",)]
    connection.close()


@pytest.mark.parametrize("content", [b"not a database, but a text", b"SQLite format 3\x00" + bytes(4080), bytes(4096)])
def test_a_file_that_is_no_memory_is_left_alone(home: Path, content: bytes) -> None:
    home.mkdir()
    (home / "key").write_text("ab" * 32)
    (home / "key").chmod(0o600)
    (home / "memory.db").write_bytes(content)
    for readonly in (False, True):
        with pytest.raises((MemoryKeyError, StoreError)):
            Store.open(home, readonly=readonly)
    assert (home / "memory.db").read_bytes() == content


def test_a_step_that_fails_leaves_the_version_before(home: Path) -> None:
    home.mkdir()
    steps = Migrations(7)
    broken = True

    @steps.register("one")
    def _one(connection: apsw.Connection) -> None:
        connection.execute("create table one(x)")

    @steps.register("two")
    def _two(connection: apsw.Connection) -> None:
        connection.execute("create table two(x)")
        if broken:
            connection.execute("insert into nowhere values(1)")

    connection = open_file(home)
    with pytest.raises(StoreError), translated(home):
        steps.migrate(connection, home)
    assert connection.pragma("user_version") == 1
    assert recorded(connection) == [(1, "one")]
    broken = False
    assert steps.migrate(connection, home) == ("two",)
    assert recorded(connection) == [(1, "one"), (2, "two")]
    assert steps.migrate(connection, home) == ()
    connection.close()


def test_many_may_open_a_new_memory_at_once(home: Path) -> None:
    def use(_: int) -> int:
        with Store.open(home) as store:
            return store.counts().traces

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(use, range(8))) == [0] * 8
    with Store.open(home) as store:
        assert store.integrity() == []
