"""Paired devices: their names, scopes and the hashes of their keys, in `devices.json`.

A key has 256 random bits, so one round of SHA-256 is enough to keep it: there is nothing to guess that a slower hash
would make dearer. The file is looked at anew when it changes, so what another process revokes acts here too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from edge.clock import iso, utc_now
from edge.errors import NotFoundError, PairingError
from edge.serve.private import write_private
from edge.serve.protocols import Scope

FILE: Final = "devices.json"
KEY_BYTES: Final = 32
NAME_CHARS: Final = 60
MAX_DEVICES: Final = 100

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PairedDevice:
    """A device that holds a key. Times are UTC POSIX seconds."""

    id: str  # d1, d2, …: never used twice
    name: str
    scopes: frozenset[Scope]
    created: float
    last_seen: float | None
    digest: str  # SHA-256 of its key, hex


class Change(StrEnum):
    """What happened to a device."""

    PAIRED = "paired"
    RENAMED = "renamed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class DeviceChange:
    """One change, as those hear it who asked for it."""

    change: Change
    device: PairedDevice
    found: bool = False  # another process made it, and this one has come upon it


Listener = Callable[[DeviceChange], None]
_Stamp = tuple[int, int, int]


class Devices:
    """The paired devices of one home. Safe for threads.

    Args:
        home: the folder of the memory.

    Raises:
        PairingError: the file is damaged.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        self._mutex = threading.RLock()
        self._devices: dict[str, PairedDevice] = {}
        self._by_digest: dict[str, str] = {}
        self._next = 1
        self._stamp: _Stamp | None = None
        self._damage: PairingError | None = None
        self._seen: dict[str, float] = {}
        self._listeners: dict[int, Listener] = {}
        self._listener = 0
        self._refresh()

    def changed(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change, at once, in the thread that made or found it.

        Returns:
            Call it to hear no more.
        """
        with self._mutex:
            self._listener += 1
            number = self._listener
            self._listeners[number] = listener

        def stop() -> None:
            with self._mutex:
                self._listeners.pop(number, None)

        return stop

    def list(self) -> tuple[PairedDevice, ...]:
        """All of them, in the order of pairing."""
        with self._mutex:
            self._refresh()
            return tuple(self._with_seen(device) for device in self._devices.values())

    def __len__(self) -> int:
        with self._mutex:
            self._refresh_or_nobody()
            return len(self._devices)

    def by_key(self, key: str) -> PairedDevice | None:
        """Whose key it is; None: nobody's (any more).

        Looking the hash up tells nothing by its time: whoever could choose hashes would have to invert SHA-256.
        """
        digest = _digest(key)
        with self._mutex:
            self._refresh_or_nobody()
            found = self._by_digest.get(digest)
            if found is None:
                return None
            self._seen[found] = utc_now()
            return self._devices[found]

    def add(self, name: str, scopes: frozenset[Scope]) -> tuple[PairedDevice, str]:
        """Pair a device.

        Returns:
            It, and its key, which is not kept and cannot be had again.

        Raises:
            PairingError: the name cannot be one, or there are too many devices.
            OSError: the file cannot be written.
        """
        key = secrets.token_urlsafe(KEY_BYTES)
        with self._changing():
            if len(self._devices) >= MAX_DEVICES:
                raise PairingError(
                    f"{MAX_DEVICES} devices are paired already; revoke one with `reflectworld devices revoke`."
                )
            device = PairedDevice(
                f"d{self._next}", self._free_name(clean_name(name)), scopes, utc_now(), None, _digest(key)
            )
            self._write({**self._devices, device.id: device}, self._next + 1)
        self._tell(DeviceChange(Change.PAIRED, device))
        return device, key

    def revoke(self, which: str) -> PairedDevice:
        """Take a device's key away, by its id or name.

        Raises:
            NotFoundError: there is none.
            OSError: the file cannot be written.
        """
        with self._changing():
            device = self._find(which)
            self._write({id_: one for id_, one in self._devices.items() if id_ != device.id}, self._next)
        self._tell(DeviceChange(Change.REVOKED, device))
        return device

    def rename(self, which: str, name: str) -> PairedDevice:
        """Call a device otherwise.

        Raises:
            NotFoundError: there is none.
            PairingError: the name cannot be one, or another device has it.
            OSError: the file cannot be written.
        """
        with self._changing():
            device = self._find(which)
            wanted = clean_name(name)
            if any(one.name.casefold() == wanted.casefold() and one.id != device.id for one in self._devices.values()):
                raise PairingError(f"Another device is called “{wanted}”; give another name.")
            renamed = replace(device, name=wanted)
            self._write({**self._devices, device.id: renamed}, self._next)
        self._tell(DeviceChange(Change.RENAMED, renamed))
        return renamed

    def save_seen(self) -> None:
        """Write when the devices were last seen: now and then, and at the end. Waits for the disk.

        Raises:
            OSError: the file cannot be written.
        """
        with self._mutex:
            if not self._seen:
                return
        with self._changing():
            self._write(self._devices, self._next)

    def _find(self, which: str) -> PairedDevice:
        if which in self._devices:
            return self._devices[which]
        for device in self._devices.values():
            if device.name.casefold() == which.strip().casefold():
                return device
        raise NotFoundError(which, f"No device “{which[:60]}” is paired; `reflectworld devices list` shows which are.")

    def _free_name(self, name: str) -> str:
        taken = {device.name.casefold() for device in self._devices.values()}
        number = 1
        free = name
        while free.casefold() in taken:
            number += 1
            free = f"{name[: NAME_CHARS - 4]} {number}"
        return free

    def _with_seen(self, device: PairedDevice) -> PairedDevice:
        seen = self._seen.get(device.id)
        return device if seen is None else replace(device, last_seen=max(seen, device.last_seen or seen))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock of threads and of processes, on what the file says now."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._mutex:
            descriptor = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                self._refresh()
                yield
            finally:
                os.close(descriptor)

    def _write(self, devices: Mapping[str, PairedDevice], following: int) -> None:
        kept = {id_: self._with_seen(device) for id_, device in devices.items()}
        data = {"version": 1, "next": following, "devices": [_to_json(device) for device in kept.values()]}
        write_private(self._path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
        self._take(kept, following)
        self._seen.clear()
        self._stamp = self._look()
        self._damage = None

    def _take(self, devices: dict[str, PairedDevice], following: int) -> None:
        self._devices = devices
        self._by_digest = {device.digest: device.id for device in devices.values()}
        self._next = following

    def _look(self) -> _Stamp | None:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return None
        return state.st_mtime_ns, state.st_size, state.st_ino

    def _refresh(self) -> None:
        """Take what the file says now; while it is damaged, nobody is known.

        Raises:
            PairingError: it is damaged.
        """
        stamp = self._look()
        if stamp != self._stamp:
            before = self._devices
            self._damage = None
            devices: dict[str, PairedDevice] = {}
            following = self._next
            if stamp is not None:
                try:
                    devices, following = _read(self._path)
                except PairingError as error:
                    self._damage = error
            self._take(devices, following)
            self._stamp = stamp
            for device in before.values():
                if devices.get(device.id) is None or devices[device.id].digest != device.digest:
                    self._tell(DeviceChange(Change.REVOKED, device, found=True))
        if self._damage is not None:
            raise self._damage

    def _refresh_or_nobody(self) -> None:
        """For whoever must go on: a damaged file is said once and admits nobody."""
        before = self._damage
        try:
            self._refresh()
        except PairingError as error:
            if error is not before:
                _log.error("paired devices are unknown", error=str(error))

    def _tell(self, change: DeviceChange) -> None:
        with self._mutex:
            listeners = tuple(self._listeners.values())
        for listener in listeners:
            try:
                listener(change)
            except Exception:  # noqa: BLE001 -- one listener's fault must not keep the others from a revocation
                _log.exception("a listener failed", change=change.change, device=change.device.id)


def clean_name(name: str) -> str:
    """A name as it is kept: one line, printable, white space in order.

    Raises:
        PairingError: nothing is left, or it is too long.
    """
    cleaned = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    if not cleaned or len(cleaned) > NAME_CHARS:
        raise PairingError(f"A device's name has 1 to {NAME_CHARS} characters; give another one.")
    return cleaned


def device_json(device: PairedDevice) -> dict[str, Any]:
    """The documented form of a device (docs/json.md)."""
    return {
        "id": device.id,
        "name": device.name,
        "scopes": sorted(device.scopes),
        "paired": iso(device.created),
        "last_seen": iso(device.last_seen) if device.last_seen is not None else None,
    }


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def _to_json(device: PairedDevice) -> dict[str, Any]:
    return {
        "id": device.id,
        "name": device.name,
        "scopes": sorted(device.scopes),
        "created": device.created,
        "last_seen": device.last_seen,
        "sha256": device.digest,
    }


def _read(path: Path) -> tuple[dict[str, PairedDevice], int]:
    try:
        data = orjson.loads(path.read_bytes())
        devices = [
            PairedDevice(
                str(one["id"]),
                str(one["name"]),
                frozenset(Scope(scope) for scope in one["scopes"]),
                float(one["created"]),
                None if one["last_seen"] is None else float(one["last_seen"]),
                str(one["sha256"]),
            )
            for one in data["devices"]
        ]
        return {device.id: device for device in devices}, int(data["next"])
    except (ValueError, KeyError, TypeError) as error:
        raise PairingError(f"“{path}” is damaged; put a copy back, or remove it and pair the devices again.") from error
