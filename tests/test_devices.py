"""Paired devices: their file, their keys, and the commands that list, rename and revoke them."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.cli.pair import May
from edge.errors import NotFoundError, PairingError
from edge.serve.auth import COMMAND, COOKIE, LOCAL, DeviceAuth, key_cookie
from edge.serve.devices import FILE, MAX_DEVICES, NAME_CHARS, Change, DeviceChange, Devices, clean_name
from edge.serve.local import LocalClient, RunFile, ServiceAbsentError, read_run_file, remove_run_file, write_run_file
from edge.serve.protocols import Scope
from tests.command import Command, reflectworld

__all__ = ["reflectworld"]

PHONE = frozenset({Scope.PUBLISH, Scope.ASK})


def test_keys_are_long_kept_as_hashes_and_survive(tmp_path: Path) -> None:
    home = tmp_path / "home"
    device, key = Devices(home).add("Eileen's phone", PHONE)
    assert len(key) == 43  # 256 bits in base64
    file = home / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key not in file.read_text()
    again = Devices(home)
    found = again.by_key(key)
    assert found is not None
    assert (found.id, found.name, found.scopes) == (device.id, "Eileen's phone", PHONE)
    assert again.by_key(key[:-1]) is None
    assert again.by_key("") is None
    assert again.by_key("\ud800") is None


def test_ids_are_never_used_twice_and_names_are_told_apart(tmp_path: Path) -> None:
    devices = Devices(tmp_path)
    first, _ = devices.add("phone", PHONE)
    second, _ = devices.add("Phone", PHONE)
    assert (first.id, second.id, second.name) == ("d1", "d2", "Phone 2")
    devices.revoke("d2")
    third, _ = Devices(tmp_path).add("tablet", PHONE)
    assert third.id == "d3"
    with pytest.raises(PairingError, match="Another device"):
        devices.rename("tablet", "PHONE")
    assert devices.rename("Tablet", "  the  tablet ").name == "the tablet"
    with pytest.raises(NotFoundError, match="devices list"):
        devices.rename("nobody", "x")


def test_revoking_is_heard_at_once_also_from_another_process(tmp_path: Path) -> None:
    serving, command = Devices(tmp_path), Devices(tmp_path)
    device, key = serving.add("phone", PHONE)
    other, other_key = serving.add("tablet", PHONE)
    heard: list[DeviceChange] = []
    stop = serving.changed(heard.append)
    serving.changed(lambda _change: 1 / 0)  # somebody else's fault reaches nobody
    command.revoke(device.id)
    assert serving.by_key(key) is None
    assert [(one.change, one.device.id) for one in heard] == [(Change.REVOKED, device.id)]
    assert serving.by_key(other_key) is not None
    serving.rename(other.id, "slate")
    stop()
    serving.revoke("slate")
    assert [one.change for one in heard] == [Change.REVOKED, Change.RENAMED]
    assert len(serving) == 0


def test_what_two_processes_add_is_all_there(tmp_path: Path) -> None:
    def add(devices: Devices, name: str) -> None:
        for _ in range(10):
            devices.add(name, PHONE)

    threads = [threading.Thread(target=add, args=(Devices(tmp_path), name)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Devices(tmp_path).list()
    assert len({device.id for device in found}) == len({device.name for device in found}) == 30


def test_their_number_is_bounded(tmp_path: Path) -> None:
    devices = Devices(tmp_path)
    device, _ = devices.add("one", PHONE)
    data = orjson.loads((tmp_path / FILE).read_bytes())
    data["devices"] = [{**data["devices"][0], "id": f"d{i}", "sha256": f"{i:064x}"} for i in range(1, MAX_DEVICES + 1)]
    (tmp_path / FILE).write_bytes(orjson.dumps(data))
    with pytest.raises(PairingError, match="revoke"):
        devices.add("more", PHONE)
    assert device.id == "d1"


def test_when_a_device_was_seen_is_kept(tmp_path: Path) -> None:
    devices = Devices(tmp_path)
    device, key = devices.add("phone", PHONE)
    assert devices.list()[0].last_seen is None
    devices.by_key(key)
    devices.save_seen()
    seen = Devices(tmp_path).list()[0].last_seen
    assert seen is not None
    assert seen >= device.created


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"devices": [{"id": 1}], "next": 1}', b'{"next": 2}'])
def test_a_damaged_file_is_said_and_admits_nobody(tmp_path: Path, content: bytes) -> None:
    devices = Devices(tmp_path)
    _, key = devices.add("phone", PHONE)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content)
    assert devices.by_key(key) is None
    assert len(devices) == 0
    for use in (devices.list, lambda: devices.add("x", PHONE), lambda: Devices(tmp_path)):
        with pytest.raises(PairingError, match="damaged"):
            use()
    assert (tmp_path / FILE).read_bytes() == content
    (tmp_path / FILE).write_bytes(whole)
    assert devices.by_key(key) is not None


@given(st.text(max_size=100))
def test_names_are_one_printable_line(name: str) -> None:
    try:
        cleaned = clean_name(name)
    except PairingError:
        return
    assert cleaned.isprintable()
    assert 0 < len(cleaned) <= NAME_CHARS
    assert clean_name(cleaned) == cleaned


def test_who_asks(tmp_path: Path) -> None:
    devices = Devices(tmp_path)
    device, key = devices.add("phone", PHONE)
    auth = DeviceAuth(devices, run_token="s3cret")
    here = {"Host": "localhost:8420"}
    there = {"Host": "reflectworld-hall.local:8421"}

    def who(headers: dict[str, str], cookies: dict[str, str] | None = None, client: str = "192.168.7.9") -> str | None:
        found = auth.authenticate(headers, cookies or {}, client)
        return None if found is None else found.id

    assert who(there) is None
    assert who({**there, "Authorization": f"Bearer {key}"}) == device.id
    assert who({**there, "authorization": f"bearer  {key}"}) == device.id
    assert who(there, {COOKIE: key}) == device.id
    for wrong in ("", "Bearer", f"Basic {key}", f"Bearer {key}x", "Bearer s3cret"):
        assert who({**there, "Authorization": wrong}) is None, wrong
        assert who({**here, "Authorization": wrong}, client="127.0.0.1") in {None, COMMAND.id}
    assert who(here, client="127.0.0.1") == LOCAL.id
    assert who(here, {COOKIE: "old"}, client="127.0.0.1") == LOCAL.id
    assert who(here) is None
    assert who(there, client="127.0.0.1") is None
    assert who({**here, "Authorization": "Bearer s3cret"}, client="::1") == COMMAND.id
    assert who({**here, "Authorization": "Bearer s3cret", "Origin": "https://evil.example"}, client="::1") is None
    found = auth.authenticate({**there, "Authorization": f"Bearer {key}"}, {}, "192.168.7.9")
    assert found is not None
    assert found.may(Scope.ASK)
    assert not found.may(Scope.ADMIN)
    assert not found.local


def test_the_cookie_is_out_of_reach() -> None:
    cookie = key_cookie("k")
    assert cookie.startswith("__Host-")
    for word in ("HttpOnly", "Secure", "SameSite=Strict", "Path=/"):
        assert word in cookie.split("; ")
    assert "Domain" not in cookie


def test_the_run_file_is_private_and_taken_away_by_its_own_run(tmp_path: Path) -> None:
    assert read_run_file(tmp_path) is None
    first = write_run_file(tmp_path, "http://127.0.0.1:1")
    assert stat.S_IMODE((tmp_path / "run.token").stat().st_mode) == 0o600
    second = write_run_file(tmp_path, "http://127.0.0.1:2")
    assert first.token != second.token
    remove_run_file(tmp_path, first)
    assert read_run_file(tmp_path) == second
    remove_run_file(tmp_path, second)
    assert read_run_file(tmp_path) is None
    (tmp_path / "run.token").write_bytes(b"{}")
    with pytest.raises(PairingError, match="reflectworld run"):
        read_run_file(tmp_path)


def test_a_service_that_is_gone_is_said(tmp_path: Path) -> None:
    with LocalClient(RunFile("http://127.0.0.1:9", "t", 1)) as client, pytest.raises(ServiceAbsentError, match="run"):
        client.call("GET", "/api/v1/devices")


def test_devices_are_managed_without_a_service(home: Path, reflectworld: Command) -> None:
    assert "reflectworld pair" in reflectworld("devices", "list").out
    Devices(home).add("phone", PHONE)
    write_run_file(home, "http://127.0.0.1:9")  # of a service that was killed
    listed = orjson.loads(reflectworld("devices", "list", "--json").out)
    assert [(one["id"], one["name"], one["scopes"], one["last_seen"]) for one in listed] == [
        ("d1", "phone", ["ask", "publish"], None)
    ]
    assert reflectworld("devices", "rename", "phone", "Eileen's").out == "d1 is now called Eileen's.\n"
    assert "Eileen's" in reflectworld("devices", "list").out
    ran = reflectworld("devices", "revoke", "EILEEN'S")
    assert (ran.code, ran.out) == (0, "Eileen's (d1) is no longer paired.\n")
    ran = reflectworld("devices", "revoke", "d1")
    assert ran.code == 2
    assert "devices list" in ran.err


def test_pairing_says_to_start_the_service(home: Path, reflectworld: Command) -> None:
    ran = reflectworld("pair")
    assert (ran.code, ran.out) == (2, "")
    assert "reflectworld run" in ran.err
    write_run_file(home, "http://127.0.0.1:9")
    assert "reflectworld run" in reflectworld("pair").err
    assert [one.value for one in May] == [scope.value for scope in Scope]
