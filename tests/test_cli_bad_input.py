"""Whatever is wrong is said in one sentence with the remedy, ends with a status that is not 0, and leaves a memory that opens."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data

from edge.memory import Store
from edge.memory.database import connect
from edge.memory.keys import obtain_key
from edge.settings import load_settings
from tests.command import Command, Ran, reflectworld

__all__ = ["reflectworld"]


def one_sentence(ran: Ran) -> str:
    """The complaint of a failed command, which must be a single line for people."""
    assert ran.code not in (0, 1), ran
    assert "Traceback" not in ran.err
    lines = [line for line in ran.err.strip().splitlines() if not line.startswith("Note:")]
    assert len(lines) == 1, ran.err
    assert lines[0].startswith("Error: ")
    return lines[0]


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "portrait.jpg"
    cv2.imwrite(str(path), np.ascontiguousarray(skimage.data.astronaut()[..., ::-1]))
    return path


@pytest.fixture
def remembered(home: Path, photo: Path, reflectworld: Command) -> Path:
    """A memory that holds one photograph."""
    ran = reflectworld("watch", str(photo), "--start", "2026-01-05T10:00:00")
    assert ran.code == 0, ran
    return home


def still_opens(home: Path) -> None:
    settings = load_settings(home)
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        assert store.integrity() == []


def test_a_missing_file(home: Path, reflectworld: Command) -> None:
    assert "nowhere.mp4" in one_sentence(reflectworld("watch", "nowhere.mp4"))


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.mp4", b""), ("notes.txt", b"keys are on the table\n" * 40), ("noise.mp4", os.urandom(5000))],
)
def test_a_file_that_is_no_recording(
    home: Path, tmp_path: Path, reflectworld: Command, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert name in one_sentence(reflectworld("watch", str(path)))


def test_a_directory(home: Path, tmp_path: Path, reflectworld: Command) -> None:
    one_sentence(reflectworld("watch", str(tmp_path)))


def test_an_unusable_start(home: Path, photo: Path, reflectworld: Command) -> None:
    assert "2025-01-03T09:12:00" in one_sentence(reflectworld("watch", str(photo), "--start", "teatime"))


def test_reading_before_anything_was_remembered(home: Path, reflectworld: Command) -> None:
    for arguments in (["ask", "where are my keys?"], ["timeline"], ["people", "list"], ["status"]):
        assert "watch" in one_sentence(reflectworld(*arguments))


def test_a_lost_key_is_never_replaced(remembered: Path, reflectworld: Command) -> None:
    key = (remembered / "key").read_bytes()
    (remembered / "key").unlink()
    assert "key" in one_sentence(reflectworld("ask", "who was there?"))
    assert not (remembered / "key").exists()
    (remembered / "key").write_bytes(b"0" * len(key.strip()))
    (remembered / "key").chmod(0o600)
    assert "key" in one_sentence(reflectworld("status"))
    (remembered / "key").write_bytes(key)
    still_opens(remembered)


def test_a_key_that_others_can_read(remembered: Path, reflectworld: Command) -> None:
    (remembered / "key").chmod(0o644)
    assert "chmod 600" in one_sentence(reflectworld("status"))


def test_a_damaged_memory(remembered: Path, reflectworld: Command) -> None:
    (remembered / "memory.db").write_bytes(b"this is not a database" * 400)
    one_sentence(reflectworld("status"))


@pytest.mark.parametrize("question", ["", "   ", "x" * 100_000])
def test_a_question_that_is_none(remembered: Path, reflectworld: Command, question: str) -> None:
    one_sentence(reflectworld("ask", question))
    still_opens(remembered)


@pytest.mark.parametrize("question", ["🐈🛋️?", '"', "a AND (b OR", "NEAR(x y)", "C++ -x: *", "привет, где ключи?"])
def test_a_question_in_odd_signs_is_answered(remembered: Path, reflectworld: Command, question: str) -> None:
    ran = reflectworld("ask", question)
    assert ran.code == 0, ran
    assert ran.out.strip()


def test_an_unknown_person(remembered: Path, reflectworld: Command) -> None:
    one_sentence(reflectworld("people", "show", "Zebedee"))
    one_sentence(reflectworld("people", "name", "p99999", "Zebedee"))


@pytest.mark.parametrize("name", ["", "  ", "a\x00b", "x" * 500])
def test_a_name_that_is_none(remembered: Path, reflectworld: Command, name: str) -> None:
    one_sentence(reflectworld("people", "name", "person 1", name))


def test_a_model_whose_checksum_is_off(
    home: Path, tmp_path: Path, photo: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from edge.infer import Catalog

    catalog = Catalog.load(load_settings().infer)
    source = catalog.get("minilm-l6-v2-int8")
    models = tmp_path / "models"
    shutil.copytree(source.path().parent, models / source.id)
    broken = models / source.id / source.path().name
    broken.chmod(0o644)
    with broken.open("r+b") as file:
        file.seek(1000)
        file.write(b"\xff" * 64)
    monkeypatch.setenv("REFLECTWORLD_INFER__MODELS_DIR", str(models))
    ran = reflectworld("models", "verify")
    assert ran.code != 0
    assert "minilm-l6-v2-int8" in ran.out + ran.err
    ran = reflectworld("watch", str(photo))
    # The rest works: watching says what is missing and goes on.
    assert ran.code == 0, ran
    assert "Note:" in ran.err
    assert "pull" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk(tmp_path: Path, photo: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine does not let a test mount a small disk")
    try:
        home = disk / "home"
        monkeypatch.setenv("REFLECTWORLD_HOME", str(home))
        assert reflectworld("watch", str(photo), "--start", "2026-01-05T10:00:00").code == 0
        (disk / "ballast").write_bytes(b"\0" * (shutil.disk_usage(disk).free - 8192))
        failed = False
        for minute in range(12):
            ran = reflectworld("watch", str(photo), "--start", f"2026-01-05T11:{minute:02}:00")
            if ran.code:
                assert "space" in one_sentence(ran)
                failed = True
                break
        assert failed, "the disk never filled"
        (disk / "ballast").unlink()
        still_opens(home)
        assert reflectworld("ask", "who was there?").code == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_home_that_cannot_be_written(tmp_path: Path, photo: Path, reflectworld: Command) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    one_sentence(reflectworld("watch", str(photo), "--home", str(blocked)))
    one_sentence(reflectworld("watch", str(photo), "--home", "/proc/reflectworld"))


def test_a_memory_of_a_newer_version(remembered: Path, reflectworld: Command) -> None:
    settings = load_settings(remembered)
    connection = connect(remembered / "memory.db", obtain_key(remembered, settings.memory, exists=True))
    connection.pragma("user_version", 9999)
    connection.close()
    assert "newer" in one_sentence(reflectworld("status"))
