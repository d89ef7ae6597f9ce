"""Keys: every source, what is refused, and that none is ever made for a memory that exists."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from edge.errors import MemoryKeyError, StoreError
from edge.memory import Store
from edge.settings import MemorySettings
from tests.memory_support import segment


@pytest.fixture(autouse=True)
def no_key_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REFLECTWORLD_PASSPHRASE", raising=False)
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def fill(home: Path, **how: object) -> None:
    with Store.open(home, **how) as store:
        store.commit(segment(0))


def traces(home: Path, **how: object) -> int:
    with Store.open(home, readonly=True, **how) as store:
        return store.counts().traces


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_file_is_made_for_its_owner_alone_and_opens_the_memory(home: Path) -> None:
    fill(home)
    assert mode(home) == 0o700
    assert len(bytes.fromhex((home / "key").read_text().strip())) == 32
    assert {path.name: mode(path) for path in home.iterdir() if path.is_file()} == dict.fromkeys(
        ["key", "key.json", "lock", "memory.db", "frames.db"], 0o600
    )
    assert traces(home) == 1


def test_nothing_of_the_memory_is_readable_in_its_files(home: Path) -> None:
    fill(home)
    secret = (home / "key").read_text().strip()
    for name in ("memory.db", "frames.db", "key.json"):
        data = (home / name).read_bytes()
        assert b"table" not in data
        assert b"Sentence 0" not in data
        assert b"JFIF" not in data
        assert b"SQLite format 3" not in data
        assert secret.encode() not in data
        assert bytes.fromhex(secret) not in data


def test_two_memories_have_different_keys(home: Path) -> None:
    fill(home / "a")
    fill(home / "b")
    assert (home / "a" / "key").read_bytes() != (home / "b" / "key").read_bytes()


@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_use_is_refused_with_the_command_that_helps(home: Path, open_to: int) -> None:
    fill(home)
    (home / "key").chmod(open_to)
    with pytest.raises(MemoryKeyError, match=r"chmod 600 .*key"):
        Store.open(home)
    (home / "key").chmod(0o600)
    assert traces(home) == 1


def test_a_missing_key_is_never_replaced_by_a_new_one(home: Path) -> None:
    fill(home)
    kept = (home / "key").read_bytes()
    (home / "key").unlink()
    for readonly in (False, True):
        with pytest.raises(MemoryKeyError, match="is missing; put it back"):
            Store.open(home, readonly=readonly)
        assert not (home / "key").exists()
    (home / "key").write_bytes(kept)
    (home / "key").chmod(0o600)
    assert traces(home) == 1


def test_another_key_is_told_from_damage(home: Path) -> None:
    fill(home)
    (home / "key").write_text("00" * 32)
    with pytest.raises(MemoryKeyError, match="another key"):
        Store.open(home)
    (home / "key.json").unlink()  # without the check value the cipher itself refuses
    with pytest.raises(MemoryKeyError, match="give the key that it was made with"):
        Store.open(home, readonly=True)


@pytest.mark.parametrize("content", [b"", b"not a key", b"ab" * 31, b"\xff" * 31])
def test_a_file_that_holds_no_key_is_refused(home: Path, content: bytes) -> None:
    fill(home)
    (home / "key").write_bytes(content)
    with pytest.raises(MemoryKeyError, match="does not hold a key"):
        Store.open(home)


def test_the_key_file_may_lie_elsewhere(home: Path, tmp_path: Path) -> None:
    settings = MemorySettings(key_file=tmp_path / "stick" / "memory.key")
    fill(home, settings=settings)
    assert not (home / "key").exists()
    assert mode(tmp_path / "stick" / "memory.key") == 0o600
    assert traces(home, settings=settings) == 1
    with pytest.raises(MemoryKeyError, match="is missing"):
        Store.open(home)


def test_a_folder_in_place_of_the_key_is_refused(home: Path) -> None:
    fill(home)
    (home / "key").unlink()
    (home / "key").mkdir()
    with pytest.raises(MemoryKeyError, match="is not a key file"):
        Store.open(home)


def test_a_passphrase_opens_what_it_made_and_leaves_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home, passphrase="correct horse é")
    assert not (home / "key").exists()
    assert b"horse" not in (home / "key.json").read_bytes()
    assert traces(home, passphrase="correct horse é") == 1
    monkeypatch.setenv("REFLECTWORLD_PASSPHRASE", "correct horse é")
    assert traces(home) == 1


def test_a_wrong_or_absent_passphrase_is_said(home: Path) -> None:
    fill(home, passphrase="one")
    with pytest.raises(MemoryKeyError, match="passphrase is wrong"):
        Store.open(home, passphrase="two")
    with pytest.raises(MemoryKeyError, match="set REFLECTWORLD_PASSPHRASE"):
        Store.open(home)
    assert traces(home, passphrase="one") == 1


def test_the_same_passphrase_makes_different_keys(home: Path) -> None:
    fill(home / "a", passphrase="one")
    fill(home / "b", passphrase="one")
    for name in ("memory.db", "frames.db"):
        (home / "a" / name).write_bytes((home / "b" / name).read_bytes())
    with pytest.raises(StoreError, match="belongs to another memory"):
        traces(home / "a", passphrase="one")


def test_a_passphrase_without_its_salt_is_said(home: Path) -> None:
    fill(home, passphrase="one")
    (home / "key.json").unlink()
    with pytest.raises(MemoryKeyError, match="put it back from a copy"):
        Store.open(home, passphrase="one")


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"source":"moon","check":"","salt":"","n":1,"r":1,"p":1}'])
def test_a_damaged_key_record_is_said(home: Path, content: bytes) -> None:
    fill(home)
    (home / "key.json").write_bytes(content)
    with pytest.raises(MemoryKeyError, match="is damaged"):
        Store.open(home)


def test_a_memory_with_a_key_file_says_so_to_a_passphrase(home: Path) -> None:
    fill(home)
    with pytest.raises(MemoryKeyError, match=r"opens with its key file.*unset REFLECTWORLD_PASSPHRASE"):
        Store.open(home, passphrase="one")


def test_a_systemd_credential_comes_before_the_key_file_and_after_the_passphrase(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "reflectworld-key").write_text("5a" * 32 + "\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    fill(home)
    assert not (home / "key").exists()
    assert traces(home) == 1
    with pytest.raises(MemoryKeyError, match="opens with the systemd credential"):
        Store.open(home, passphrase="one")
    monkeypatch.delenv("CREDENTIALS_DIRECTORY")
    with pytest.raises(MemoryKeyError, match="opens with the systemd credential"):
        Store.open(home)


def test_raw_bytes_are_a_key_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reflectworld-key").write_bytes(bytes(range(32)))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    fill(home)
    (tmp_path / "reflectworld-key").write_text(bytes(range(32)).hex())
    assert traces(home) == 1


def test_a_key_never_shows_itself(home: Path) -> None:
    fill(home)
    secret = (home / "key").read_text().strip()
    with Store.open(home, readonly=True) as store:
        assert secret not in repr(vars(store))
