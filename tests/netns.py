"""Two network namespaces joined by one cable, made and removed by a test; threads that live in one of them."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Cable:
    """Names of the namespaces and the private address of each."""

    here: str
    there: str
    here_address: str = "10.231.77.1"
    there_address: str = "10.231.77.2"


@contextmanager
def cable() -> Iterator[Cable]:
    """Two namespaces; the test skips where they cannot be made."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    mark = secrets.token_hex(3)
    made = Cable(f"rwt{mark}a", f"rwt{mark}b")
    names = []
    try:
        for name in (made.here, made.there):
            try:
                _ip("netns", "add", name)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
            names.append(name)
        _ip("link", "add", "wire0", "netns", made.here, "type", "veth", "peer", "name", "wire0", "netns", made.there)
        for name, address in ((made.here, made.here_address), (made.there, made.there_address)):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "wire0")
            for device in ("lo", "wire0"):
                _ip("-n", name, "link", "set", device, "up")
            # What is sent to all goes out here: mDNS needs it where there is no default route.
            _ip("-n", name, "route", "add", "224.0.0.0/4", "dev", "wire0")
        yield made
    finally:
        for name in names:
            _ip("netns", "delete", name)


def inside(namespace: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Make a thread's body run in a namespace; threads that it starts are there too."""

    def wrap(body: Callable[[], None]) -> Callable[[], None]:
        def moved() -> None:
            with Path(f"/run/netns/{namespace}").open() as file:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            body()

        return moved

    return wrap


def call_inside(namespace: str, call: Callable[[], T], patience_s: float = 60.0) -> T:
    """Call something in a namespace, and give what it gives."""
    result: dict[str, Any] = {}

    def body() -> None:
        try:
            result["value"] = call()
        except BaseException as error:  # noqa: BLE001 -- it is raised where it was called
            result["error"] = error

    thread = threading.Thread(target=inside(namespace)(body))
    thread.start()
    thread.join(patience_s)
    assert not thread.is_alive()
    if "error" in result:
        raise result["error"]
    value: T = result["value"]
    return value


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
