"""Backup, restore and a new key: consistent while others write, whole or not there, and never between two keys."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import stat
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.app.health import diagnose
from edge.app.work import build_worker
from edge.clock import utc_now
from edge.errors import ArchiveError, BackupError, MemoryKeyError, StoreError, StoreVersionError, UserError
from edge.memory import Store, jobs, keys
from edge.memory.keys import KeySource
from edge.memory.migrations import Migrations
from edge.memory.upkeep import backup, container, offers, swap
from edge.memory.upkeep.rekey import rekey
from edge.memory.upkeep.restore import restore
from edge.settings import MemorySettings, Settings
from tests import full_memory
from tests.command import Command, reflectworld
from tests.memory_support import picture, segment

__all__ = ["reflectworld"]

SETTINGS = MemorySettings()


@pytest.fixture(autouse=True)
def no_secrets_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REFLECTWORLD_PASSPHRASE", "REFLECTWORLD_BACKUP_PASSPHRASE", "CREDENTIALS_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "backups").mkdir()
    return tmp_path / "backups"


def fill(home: Path, first: int = 0, last: int = 3) -> None:
    with Store.open(home) as store:
        for i in range(first, last):
            store.commit(segment(i, who=1 if i else None, frame=picture(i, 320, 240)))


def seen(home: Path) -> list[tuple[float, bytes]]:
    """Each moment with its picture."""
    with Store.open(home) as store:
        assert store.integrity() == []
        traces = store.traces(limit=1000, newest_first=False)
        return [(trace.start, store.key_frame(trace.key_frames[0]).jpeg) for trace in traces]


# -- backup -----------------------------------------------------------------------------------------------------------


def test_a_backup_brings_everything_back_and_puts_aside_what_is_there(home: Path, folder: Path) -> None:
    fill(home)
    before = seen(home)
    made = backup.make(home, SETTINGS, folder)
    assert made.counts["trace"] == 3
    assert made.bytes == made.path.stat().st_size < 1.2 * made.memory_bytes
    fill(home, 3, 5)
    with pytest.raises(UserError, match="add --yes"):
        restore(made.path, home, SETTINGS)
    assert len(seen(home)) == 5
    back = restore(made.path, home, SETTINGS, replace=True)
    assert seen(home) == before
    assert back.aside is not None
    shutil.copy(home / "key", back.aside / "key")
    assert len(seen(back.aside)) == 5


def test_nothing_of_the_memory_can_be_read_in_a_backup_and_nobody_else_may_open_it(home: Path, folder: Path) -> None:
    fill(home)
    path = backup.make(home, SETTINGS, folder, passphrase="five words").path
    data = path.read_bytes()
    for words in (b"SQLite", b"Sentence", b"JFIF", b"trace(", (home / "key").read_bytes().strip(), b"five words"):
        assert words not in data.replace(b'"trace"', b"")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in folder.iterdir()] == [path.name]


def write_on(home: str, said: Connection) -> None:
    with Store.open(Path(home)) as store:
        i = 3
        while not said.poll():
            store.commit(segment(i, who=1, frame=picture(i, 320, 240)))
            said.send(i)
            i += 1


def test_backups_made_while_another_process_writes_are_whole_and_in_one_state(home: Path, folder: Path) -> None:
    fill(home)
    children = multiprocessing.get_context("spawn")
    ours, theirs = children.Pipe()
    child = children.Process(target=write_on, args=(str(home), theirs), daemon=True)
    child.start()
    try:
        assert ours.poll(60)
        done = ours.recv()
        for _ in range(2):
            while ours.poll():
                done = ours.recv()
            made = backup.make(home, SETTINGS, folder)
            assert made.counts["trace"] >= done + 1
            assert made.counts["key_frame"] == made.counts["trace"]
            assert made.counts["pictures"] >= made.counts["key_frame"] + made.counts["crop"]
        with pytest.raises(StoreError, match=r"has the memory in .* open"):
            restore(made.path, home, SETTINGS, replace=True)
        with pytest.raises(StoreError, match=r"has the memory in .* open"):
            rekey(home, SETTINGS, KeySource.FILE)
    finally:
        ours.send("enough")
        child.join(30)
    other = home.parent / "other"
    restore(made.path, other, SETTINGS, key_file=home / "key")
    assert len(seen(other)) == made.counts["trace"]


def test_a_backup_that_is_cut_off_or_changed_is_refused_and_nothing_is_touched(home: Path, folder: Path) -> None:
    fill(home)
    path = backup.make(home, SETTINGS, folder).path
    whole = path.read_bytes()
    before = seen(home)
    head = container.read_head(path)
    flips = [9, 40, container.HEAD - 1, *(start + length // 2 for start, length in head.regions.values())]
    broken = [whole[: len(whole) // 2], whole[:100], b"", b"RWBACKUP", whole[:-1]]
    for place in flips:
        data = bytearray(whole)
        data[place] ^= 1
        broken.append(bytes(data))
    count = whole.replace(b'"trace":3', b'"trace":4', 1)
    assert count != whole
    broken.append(count)
    for data in broken:
        path.write_bytes(data)
        if (
            data
            == bytes(whole[: container.HEAD - 1]) + bytes([whole[container.HEAD - 1] ^ 1]) + whole[container.HEAD :]
        ):
            continue  # padding says nothing
        with pytest.raises(ArchiveError) as caught:
            restore(path, home, SETTINGS, replace=True)
        assert 20 < len(str(caught.value)) < 300
    assert seen(home) == before
    assert not list(home.glob("before-restore-*"))
    assert not (home / swap.PART).exists()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    document=st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["version", "created", "program", "schema", "counts", "regions", "wraps", "memory.db"]),
                inner,
                max_size=7,
            )
        ),
        max_leaves=12,
    ),
    rest=st.binary(max_size=40),
)
def test_a_head_of_anything_is_refused_in_one_sentence(folder: Path, document: object, rest: bytes) -> None:
    path = folder / "x.rwbackup"
    data = json.dumps(document).encode()
    path.write_bytes((container.MAGIC + len(data).to_bytes(4, "little") + data + rest).ljust(container.HEAD, b"\0"))
    with pytest.raises(ArchiveError, match=r"damaged|newer"):
        restore(path, folder / "home", SETTINGS)


def test_a_full_device_leaves_no_backup_and_says_so(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    real, left = os.pwrite, [0]

    def write(descriptor: int, data: bytes, offset: int) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", write)
    tried = 0
    for at in range(0, 10_000, 23):
        left[0] = at
        try:
            backup.make(home, SETTINGS, folder)
        except BackupError as error:
            tried += "space" in str(error)
        else:
            break
        assert not list(folder.iterdir())
    assert tried > 3
    assert len(seen(home)) == 3


def test_what_opens_a_backup(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    before = seen(home)
    path = backup.make(home, SETTINGS, folder, passphrase="five words").path
    other = home.parent / "other"
    with pytest.raises(ArchiveError, match=r"key file of its memory \(--key-file\) or with its own passphrase"):
        restore(path, other, SETTINGS)
    with pytest.raises(ArchiveError, match="does not fit"):
        restore(path, other, SETTINGS, passphrase="wrong")
    assert not (other / "memory.db").exists()
    restore(path, other, SETTINGS, passphrase="five words")
    assert seen(other) == before
    assert (other / "key").read_bytes() != (home / "key").read_bytes()
    third = home.parent / "third"
    restore(path, third, SETTINGS, key_file=home / "key")
    assert seen(third) == before
    assert (third / "key").read_bytes() == (home / "key").read_bytes()
    monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", "of the memory")
    fourth = home.parent / "fourth"
    fill(fourth)
    of_fourth = backup.make(fourth, SETTINGS, folder).path
    shutil.rmtree(fourth)
    restore(of_fourth, fourth, SETTINGS)
    assert seen(fourth) == before
    assert not (fourth / "key").exists()
    monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", "another")
    with pytest.raises(ArchiveError, match="opens with the passphrase of its memory"):
        restore(of_fourth, home.parent / "fifth", SETTINGS)


def test_older_backups_go_and_nothing_else_does(home: Path, folder: Path) -> None:
    fill(home)
    (folder / "reflectworld-20200101T000000Z.rwbackup").write_text("not one of ours")
    (folder / "mine.txt").write_text("mine")
    (folder / ".x.rwbackup.0123abcd.rwbackup.part").write_text("left by a kill")
    names = [backup.make(home, SETTINGS, folder, keep=2).path.name for _ in range(4)]
    left = {path.name for path in folder.iterdir()}
    assert left == {"mine.txt", "reflectworld-20200101T000000Z.rwbackup", *names[-2:]}
    with pytest.raises(BackupError, match="is there already"):
        backup.make(home, SETTINGS, folder / names[-1])
    with pytest.raises(BackupError, match="cannot be written"):
        backup.make(home, SETTINGS, folder / "nowhere" / "x")


def test_a_backup_of_a_newer_program_is_refused(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    path = backup.make(home, SETTINGS, folder).path
    older = Migrations(0x52574D31)
    monkeypatch.setattr("edge.memory.upkeep.restore.MEMORY", older)
    with pytest.raises(StoreVersionError, match="newer reflectworld"):
        restore(path, home, SETTINGS, replace=True)
    monkeypatch.undo()
    assert len(seen(home)) == 3


# -- kills between two memories ---------------------------------------------------------------------------------------


class Killed(BaseException):
    """Nothing of this process goes on."""


@pytest.fixture
def killing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """From the given operation on files of the operating system on, none works, cleaning up neither."""
    left = [10**9]
    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync", "ftruncate"):
        real = getattr(os, name)

        def step(*arguments: object, _real: object = real, **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return _real(*arguments, **more)  # type: ignore[operator]

        monkeypatch.setattr(os, name, step)
    yield left
    left[0] = 10**9


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 8])
def test_a_kill_at_any_step_of_a_new_key_leaves_the_old_or_the_new(
    home: Path, killing: list[int], monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(keys, "SCRYPT_N", 2**8)  # what is tried here is not the stretching
    fill(home)
    before = seen(home)
    kept = home.parent / "kept"
    shutil.copytree(home, kept)
    outcomes = []
    for at in range(0, 200, stride):
        shutil.rmtree(home)
        shutil.copytree(kept, home)
        killing[0] = at
        try:
            rekey(home, SETTINGS, KeySource.PASSPHRASE, passphrase="new words")
        except Killed:
            ended = False
        else:
            ended = True
        killing[0] = 10**9
        opened = []
        for words in (None, "new words"):
            monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", words) if words else monkeypatch.delenv(
                "REFLECTWORLD_PASSPHRASE", raising=False
            )
            try:
                assert seen(home) == before
                opened.append(words)
            except MemoryKeyError:
                pass
        assert len(opened) == 1, at
        assert {path.name for path in home.iterdir()} <= {"memory.db", "frames.db", "key", "key.json", "lock"}
        outcomes.append(opened[0])
        monkeypatch.delenv("REFLECTWORLD_PASSPHRASE", raising=False)
        if ended:
            break
    assert len(outcomes) * stride > 15
    assert outcomes == sorted(outcomes, key=lambda words: words is not None)  # old, then new, once
    assert outcomes[0] is None
    assert outcomes[-1] == "new words"
    assert not (home / "key").exists()


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_a_kill_at_any_step_of_a_restore_leaves_the_one_or_the_other(
    home: Path, folder: Path, killing: list[int], stride: int
) -> None:
    fill(home)
    path = backup.make(home, SETTINGS, folder).path
    fill(home, 3, 4)
    kept = home.parent / "kept"
    shutil.copytree(home, kept)
    counts = []
    for at in range(0, 200, stride):
        shutil.rmtree(home)
        shutil.copytree(kept, home)
        killing[0] = at
        try:
            restore(path, home, SETTINGS, replace=True)
            ended = True
        except Killed:
            ended = False
        killing[0] = 10**9
        counts.append(len(seen(home)))
        if ended:
            break
    assert counts == sorted(counts, reverse=True)
    assert set(counts) == {3, 4}


# -- a new key --------------------------------------------------------------------------------------------------------


def test_a_new_key_opens_all_and_the_old_one_nothing_but_older_backups_here(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    before = seen(home)
    old = (home / "key").read_bytes()
    path = backup.make(home, SETTINGS, folder).path
    done = rekey(home, SETTINGS, KeySource.FILE)
    assert done.removed is None
    assert (home / "key").read_bytes() != old
    assert seen(home) == before
    rekey(home, SETTINGS, KeySource.PASSPHRASE, passphrase="new words")
    with pytest.raises(MemoryKeyError, match="set REFLECTWORLD_PASSPHRASE"):
        Store.open(home)
    monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", "new words")
    assert seen(home) == before
    restore(path, home, SETTINGS, replace=True)  # of two keys ago
    assert seen(home) == before
    rekey(home, SETTINGS, KeySource.FILE)
    monkeypatch.delenv("REFLECTWORLD_PASSPHRASE")
    assert seen(home) == before
    with pytest.raises(MemoryKeyError, match="cannot be empty"):
        rekey(home, SETTINGS, KeySource.PASSPHRASE, passphrase="")
    assert seen(home) == before


def test_a_key_file_elsewhere_is_replaced_where_it_is(home: Path, tmp_path: Path) -> None:
    elsewhere = MemorySettings(key_file=tmp_path / "stick" / "memory.key")
    with Store.open(home, elsewhere) as store:
        store.commit(segment(0))
    old = (tmp_path / "stick" / "memory.key").read_bytes()
    rekey(home, elsewhere, KeySource.FILE)
    assert (tmp_path / "stick" / "memory.key").read_bytes() != old
    with Store.open(home, elsewhere, readonly=True) as store:
        assert store.counts().traces == 1
    assert not (home / "key").exists()


# -- damage, and what is done of itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["memory.db", "frames.db"])
def test_a_torn_page_is_noticed_at_the_start_and_the_newest_backup_is_offered(
    home: Path, folder: Path, name: str
) -> None:
    fill(home, 0, 6)
    path = backup.make(home, SETTINGS, folder).path
    whole = (home / name).read_bytes()
    torn = bytearray(whole)
    last = len(whole) // 4096 - 1  # where the newest rows are
    for page in (1, 2, last) if name == "memory.db" else (2, 3, last):
        torn[page * 4096 + 2048 : page * 4096 + 4096] = bytes(2048)
    (home / name).write_bytes(torn)
    with pytest.raises(StoreError) as caught:
        Store.open(home)
    assert f"`reflectworld restore {path} --yes`" in str(caught.value)
    restore(path, home, SETTINGS, replace=True)
    assert len(seen(home)) == 6


def test_damage_that_the_start_does_not_touch_is_found_by_reading_all(home: Path, folder: Path) -> None:
    with Store.open(home) as store:
        for i in range(6):
            store.commit(segment(i, who=1 if i else None, frame=picture(i, 960, 720)))
    every = Settings(home=home)
    path = backup.make(home, SETTINGS, folder).path
    data = bytearray((home / "frames.db").read_bytes())
    pages = len(data) // 4096
    data[pages // 2 * 4096 + 100] ^= 1
    (home / "frames.db").write_bytes(data)
    with Store.open(home) as store:
        assert store.glance() == []
        worker = build_worker(store, every, None, purpose="test")
        store.transact(lambda memory: jobs.ensure(memory, store.user, "examine", "", 0.0))
        worker.drain()
        with store.reading() as connection:
            left = [one for one in jobs.all_jobs(connection, store.user) if one.kind == "examine"]
            assert [one.due > utc_now() + 80_000 for one in left] == [True]  # tomorrow's
    for deep, name in ((False, "examined"), (True, "memory")):
        found = {check.name: check for check in diagnose(every, deep=deep)}
        assert not found[name].ok
        assert "frames.db" in found[name].detail
    assert str(path) in found["memory"].remedy


def test_the_service_makes_backups_of_itself(home: Path, folder: Path) -> None:
    fill(home)
    every = Settings(home=home, memory=MemorySettings(backup_folder=folder, backup_keep=1))
    with Store.open(home) as store:
        for _ in range(2):
            worker = build_worker(store, every, None, purpose="test")
            store.transact(lambda memory: memory.execute("delete from job where kind = 'backup'"))
            store.transact(lambda memory: jobs.ensure(memory, store.user, "backup", "", 0.0))
            worker.drain()
    assert len(list(folder.iterdir())) == 1
    assert offers.newest(home) is not None
    shutil.rmtree(folder)
    with Store.open(home) as store:
        store.transact(lambda memory: memory.execute("update job set due = 0 where kind = 'backup'"))
        worker = build_worker(store, every, None, purpose="test")
        worker.drain()
        with store.reading() as connection:
            (job,) = [one for one in jobs.all_jobs(connection, store.user) if one.kind == "backup"]
        assert not job.failed
        assert job.attempts == 0  # a folder that is not plugged in is no failure


# -- the commands -----------------------------------------------------------------------------------------------------


def test_the_commands(home: Path, folder: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECTWORLD_HOME", str(home))
    fill(home)
    assert reflectworld("backup", str(folder), "--keep", "2").code == 0
    (path,) = folder.iterdir()
    assert reflectworld("export", str(folder / "x.zip"), "--json").code == 0
    assert "3 moments were there already" in reflectworld("import", str(folder / "x.zip")).out
    refused = reflectworld("restore", str(path))
    assert refused.code == 2
    assert "add --yes" in refused.err
    assert reflectworld("restore", str(path), "--yes", "--json").code == 0
    assert reflectworld("rekey").code == 2
    monkeypatch.setenv("REFLECTWORLD_NEW_PASSPHRASE", "new words")
    assert "opens with the passphrase now" in reflectworld("rekey", "--passphrase").out
    assert reflectworld("status").code == 4
    monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", "new words")
    assert "in order: 3 moments" in reflectworld("doctor").out
    for words in (("backup", str(folder / "nowhere" / "x")), ("restore", str(folder / "absent")), ("import", "absent")):
        ran = reflectworld(*words)
        assert ran.code in (2, 3)
        assert len(ran.err.splitlines()) == 1


def test_every_table_comes_back_and_outlives_a_new_key(tmp_path: Path) -> None:
    home, other = tmp_path / "full", tmp_path / "other"
    full_memory.fill(home)
    before = every_row(home)
    assert {"block_cells", "posting", "graph_kept", "faded", "visual", "answer"} <= {
        name for name in before if before[name]
    }
    made = backup.make(home, SETTINGS, tmp_path / "copies")
    restore(made.path, other, SETTINGS, key_file=home / "key")
    assert every_row(other) == before
    rekey(home, SETTINGS, KeySource.FILE)
    assert every_row(home) == before


def every_row(home: Path) -> dict[str, list[tuple[object, ...]]]:
    """All of all tables of a memory that rest on their own bytes, but for the queue, which works on."""
    with Store.open(home, readonly=True) as store:
        tables = [
            name
            for (name,) in store.rows("select name from sqlite_schema where type = 'table' and rootpage > 0")
            if name != "job"
        ]
        return {name: sorted(store.rows(f'select * from "{name}"'), key=repr) for name in tables}
