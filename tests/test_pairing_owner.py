"""Who may invite from a page: the account of the service, and nobody else of this device."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cv2
import httpx
import numpy as np
import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st

from edge.serve.owner import same_owner, socket_owner
from tests.serve_support import serving
from tools.bench.stage import served

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
ASK = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"


def asking() -> FastAPI:
    app = FastAPI()
    app.state.hub = type("Hub", (), {"close_soon": lambda self: None})()

    @app.get("/owner")
    def owner(request: Request) -> bool:
        return same_owner(request.scope)

    return app


def test_the_system_says_whose_a_connection_is() -> None:
    with serving(asking()) as url:
        assert httpx.get(f"{url}/owner").json() is True
        if os.getuid() == 0 and shutil.which("python3"):
            # As another account; it has no right to this environment, but to the system's Python.
            done = subprocess.run(
                ["/usr/bin/python3", "-c", ASK, f"{url}/owner"], user=65534, capture_output=True, text=True, cwd="/"
            )
            assert done.stdout.strip() == "false", done.stderr


def test_a_connection_from_elsewhere_has_no_owner_here() -> None:
    assert not same_owner({"client": ("192.0.2.7", 50_000), "server": ("127.0.0.1", 8420)})
    assert not same_owner({"client": None, "server": ("127.0.0.1", 8420)})
    assert not same_owner({"client": ("testclient", 50_000), "server": ("testserver", 80)})


def line(local: str, remote: str, state: str, uid: int) -> str:
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 1 1 0"


def test_addresses_are_read_as_linux_writes_them() -> None:
    if sys.byteorder != "little":
        pytest.skip("the examples are of a little-endian machine")
    here, there = ("127.0.0.1", 0xC001), ("127.0.0.1", 8420)
    v4 = line("0100007F:C001", "0100007F:20E4", "01", 1000)
    mapped = line("0000000000000000FFFF00000100007F:C001", "0000000000000000FFFF00000100007F:20E4", "01", 1000)
    assert socket_owner([HEAD, v4], here, there) == 1000
    assert socket_owner([HEAD, mapped], here, there) == 1000
    v6 = line("00000000000000000000000001000000:C001", "00000000000000000000000001000000:20E4", "01", 7)
    assert socket_owner([HEAD, v6], ("::1", 0xC001), ("::1", 8420)) == 7
    # The server's own end of it, a socket that is closed, and two accounts that claim one address say nothing.
    assert socket_owner([line("0100007F:20E4", "0100007F:C001", "01", 0)], here, there) is None
    assert socket_owner([v4.replace(" 01 ", " 06 ")], here, there) is None
    assert socket_owner([v4, mapped.replace(" 1000 ", " 1001 ")], here, there) is None


@given(st.lists(st.text(max_size=80), max_size=5), st.ip_addresses().map(str), st.integers(0, 65535))
def test_no_table_breaks_it(lines: list[str], address: str, port: int) -> None:
    assert socket_owner(lines, (address, port), ("::1", 1)) is None


def _scanned(page: Any) -> str:
    """What a phone's camera reads from the screen."""
    picture = cv2.imdecode(np.frombuffer(page.locator("#pairing-code").screenshot(), np.uint8), cv2.IMREAD_COLOR)
    return str(cv2.QRCodeDetector().detectAndDecode(picture)[0])


@pytest.mark.slow
def test_a_phone_is_paired_from_the_dashboard(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    shots = os.environ.get("REFLECTWORLD_SCREENSHOTS")
    with (
        served(tmp_path, "--host", "127.0.0.1", REFLECTWORLD_SERVE__LAN_PORT="0") as (url, _service),
        playwright.sync_playwright() as started,
    ):
        browser = started.chromium.launch(executable_path=chromium, headless=True, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(url)
        page.wait_for_selector(".pill[data-state=live]")
        page.get_by_role("button", name="Pair a phone").click()
        page.wait_for_selector("#pairing[open]")
        page.get_by_text("Scan this with the phone").wait_for()
        if shots:
            page.screenshot(path=f"{shots}/dashboard-pairing.png")
        link = urlsplit(_scanned(page))
        assert link.path == "/pair"
        token = dict(part.split("=", 1) for part in link.fragment.split("&"))["token"]
        print_shown = page.locator("#pairing-print").inner_text().replace(":", "").lower()
        with socket.create_connection(("127.0.0.1", link.port or 0)) as bare:
            context = ssl._create_unverified_context()
            with context.wrap_socket(bare, server_hostname=link.hostname) as secured:
                assert sha256(secured.getpeercert(binary_form=True) or b"").hexdigest() == print_shown
        answer = httpx.post(
            f"https://127.0.0.1:{link.port}/pair",
            json={"token": token, "name": "Eileen's phone"},
            headers={"Host": link.netloc},
            verify=False,
        )
        assert answer.status_code == 201, answer.text
        page.get_by_text("Paired: Eileen's phone").wait_for()
        assert not page.locator("#pairing-code").is_visible()
        page.get_by_role("button", name="Close").click()

        # An invitation ends with its dialog.
        page.get_by_role("button", name="Pair a phone").click()
        page.get_by_text("Scan this with the phone").wait_for()
        page.keyboard.press("Escape")
        until = time.monotonic() + 5
        while httpx.get(f"{url}/api/v1/pairing").json()["stage"] == "open":
            assert time.monotonic() < until
            page.wait_for_timeout(50)

        # A page invites phones, nobody who may rule.
        refused = httpx.post(f"{url}/api/v1/pairing", json={"scopes": ["admin"]})
        assert (refused.status_code, refused.json()["type"].rsplit("pairing-", 1)[-1]) == (403, "scope")
        browser.close()
