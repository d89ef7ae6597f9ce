"""What breaks underneath: full, read-only and damaged devices. Each time one sentence, and a memory that opens again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edge.errors import DiskFullError, MemoryKeyError, ReflectWorldError, StoreError
from edge.memory import Store
from edge.memory.frames import remove_orphans
from tests.memory_support import picture, segment


def small_device(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a small device cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A device of 3 MiB."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        pytest.skip("mounting a small device needs root on Linux")
    yield from small_device(tmp_path / "device", "3m")


def noise(i: int) -> np.ndarray:
    return np.random.default_rng(i).integers(0, 255, (200, 300, 3), dtype=np.uint8)


def commit_until_full(store: Store, first: int) -> int:
    """Commit segments until the device is full; the number of the one that did not fit."""
    for i in range(first, 500):
        try:
            store.commit(segment(i, who=1, frame=noise(i)))
        except DiskFullError:
            return i
    pytest.fail("the device never became full")


def fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


def write_one(home: Path) -> None:
    with Store.open(home) as store:
        store.commit(segment(1, who=1, frame=noise(1)))


def test_a_full_device_keeps_what_it_has_and_goes_on_later(device: Path) -> None:
    home = device / "home"
    ballast = device / "ballast"
    ballast.write_bytes(bytes(500_000))
    with Store.open(home) as store:
        store.commit(segment(0))
        full_at = commit_until_full(store, 1)
        assert store.counts().traces == full_at  # reading goes on
        with pytest.raises(DiskFullError, match=r"what was stored before is kept\.$") as caught:
            store.commit(segment(full_at, who=1, frame=noise(full_at)))
        assert caught.value.exit_code == 6
        ballast.unlink()
        store.commit(segment(full_at, who=1, frame=noise(full_at)))  # and so does writing, without opening again
    with Store.open(home) as store:
        assert store.counts().traces == full_at + 1
        assert store.integrity() == []


def test_a_memory_on_a_full_device_can_be_read(device: Path) -> None:
    home = device / "home"
    with Store.open(home) as store:
        store.commit(segment(0))
    fill_up(device / "ballast")
    with Store.open(home, readonly=True) as store:
        assert store.trace(1).text
        assert store.integrity() == []
    with pytest.raises(DiskFullError), Store.open(home) as store:
        store.commit(segment(1, who=1, frame=noise(1)))
    with pytest.raises(DiskFullError):
        Store.open(device / "new" / "home")
    (device / "ballast").unlink()
    with Store.open(home) as store:
        store.commit(segment(1, who=1))
        assert store.integrity() == []


def test_a_read_only_device_can_be_read_and_says_that_it_cannot_be_written(device: Path) -> None:
    home = device / "home"
    with Store.open(home) as store:
        store.commit(segment(0))
    subprocess.run(["mount", "-o", "remount,ro", str(device)], check=True)
    with Store.open(home, readonly=True) as store:
        assert store.trace(1).text
        assert store.key_frame(1).jpeg
        assert store.claims() == []
        assert store.integrity() == []
    for place in (home, device / "new"):
        with pytest.raises(StoreError, match="cannot be written; make it and its folder writable"):
            Store.open(place)


@pytest.mark.parametrize("name", ["memory.db", "frames.db"])
@pytest.mark.parametrize("where", ["first page", "everywhere", "cut off"])
def test_damage_is_said_and_never_written_over(home: Path, name: str, where: str) -> None:
    with Store.open(home) as store:
        for i in range(12):
            store.commit(segment(i, who=1 if i else None, frame=picture(i, 640, 480)))
    path = home / name
    whole = path.read_bytes()
    broken = bytearray(whole)
    if where == "cut off":
        del broken[len(broken) // 2 // 4096 * 4096 :]
    else:
        pages = [0] if where == "first page" else range(1, len(whole) // 4096)
        for page in pages:
            broken[page * 4096 + 200 : page * 4096 + 240] = os.urandom(40)
    path.write_bytes(broken)
    said = []
    try:
        with Store.open(home, readonly=True) as store:
            said += store.integrity()
            for trace in store.traces(limit=100):
                for frame in trace.key_frames:
                    assert store.key_frame(frame).jpeg
    except (StoreError, MemoryKeyError) as error:
        said.append(str(error))
    assert said, "damage went unnoticed"
    assert all(len(text) > 20 for text in said)
    path.write_bytes(whole)
    for log in home.glob("*-wal"):
        log.unlink()
    with Store.open(home) as store:
        assert store.integrity() == []


@pytest.mark.parametrize("table", ["trace", "words", "provenance"])
def test_rows_that_are_missing_are_noticed(home: Path, table: str) -> None:
    with Store.open(home) as store:
        store.commit(segment(0))
        store._write(lambda files: files.memory.execute(f"pragma foreign_keys = 0; delete from {table}").fetchall())
        assert store.integrity() != []


def test_a_missing_file_of_pictures_is_said(home: Path) -> None:
    with Store.open(home) as store:
        store.commit(segment(0))
    (home / "frames.db").unlink()
    with pytest.raises(StoreError, match=r"frames\.db” cannot be opened"):
        Store.open(home, readonly=True)
    with Store.open(home) as store:
        assert any("pictures" in problem for problem in store.integrity())
        with pytest.raises(ReflectWorldError, match="no longer stored"):
            store.key_frame(1)


def test_a_picture_without_its_row_is_removed(home: Path) -> None:
    """What a kill between the two files leaves behind."""
    with Store.open(home) as store:
        store.commit(segment(0))

        def orphan(files) -> None:
            for table in ("frame", "crop"):
                files.frames.execute(f"insert into {table}(id, jpeg) values(2, x'ff'), (7, x'ff')")

        store._write(orphan)
    with Store.open(home) as store:
        assert store._write(
            lambda files: files.frames.execute(
                "select (select max(id) from frame), (select max(id) from crop)"
            ).fetchall()
        ) == [(1, 1)]
        store._write(orphan)
        done = store.commit(segment(1, who=1, frame=picture(5)))  # the id of an orphan gets its own picture
        assert len(store.key_frame(done.key_frames[0]).jpeg) > 100
        assert store._write(lambda files: remove_orphans(files.memory, files.frames)) == 2
        assert store.integrity() == []
