"""The pairing page in a real browser, over the device's own TLS; and what a revocation does to peers."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from edge.serve.devices import Devices
from edge.serve.peers import Owner, Peer, PeerLimits
from edge.serve.protocols import Device, Scope
from tests.pairing_support import HOST, running

CHROMIUM = shutil.which("chromium")


def test_a_revocation_ends_the_peers_of_its_device_only(tmp_path: Path) -> None:
    async def run() -> None:
        devices = Devices(tmp_path)
        owner = Owner(PeerLimits())
        owner.hear(devices)
        why: dict[str, str] = {}
        peers = {}
        for name in ("phone", "tablet"):
            paired, _ = devices.add(name, frozenset({Scope.PUBLISH}))
            peer = Peer(Device(paired.id, name, paired.scopes), name, PeerLimits(), needs_media=True)

            async def gone(words: str, name: str = name) -> None:
                why[name] = words

            owner.adopt(peer, gone)
            peers[name] = peer
        await asyncio.to_thread(devices.rename, "phone", "old phone")
        await asyncio.to_thread(devices.revoke, "old phone")
        async with asyncio.timeout(2):
            while not why:  # noqa: ASYNC110 -- the test looks on from outside
                await asyncio.sleep(0.02)
        assert why == {"phone": "its key was revoked"}
        assert peers["phone"].closed
        assert not peers["tablet"].closed
        await owner.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_browser_pairs_and_stays_paired(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with running(tmp_path, lan_host="127.0.0.1") as service, playwright.sync_playwright() as chromium:
        with service.owner() as owner:
            url = owner.call("POST", "/api/v1/pairing", {})["url"]
            fingerprint = service.access.certificates.ensure(service.access.addresses())
        rules = f"MAP {HOST} 127.0.0.1"
        browser = chromium.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=["--no-sandbox", f"--host-resolver-rules={rules}"]
        )
        phone = browser.new_context(
            viewport={"width": 390, "height": 844}, device_scale_factor=2, ignore_https_errors=True
        )
        page = phone.new_page()
        wrong: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.wait_for_selector("#form:not([hidden])")
        assert page.url == f"https://{HOST}:{service.lan_port}/pair", "the token left the address bar"
        assert page.inner_text("#fingerprint") == fingerprint.groups
        shot(page, "pair-phone")
        page.fill("#name", "Eileen's phone")
        page.click("#pair")
        page.wait_for_selector("#done:not([hidden])")
        assert page.inner_text("#called") == "Eileen's phone"
        assert page.is_visible("#publish")
        page.click("summary >> text=OBS")
        key = page.inner_text("#key")
        assert service.access.devices.by_key(key) is not None
        shot(page, "pair-phone-done")
        assert page.evaluate("document.cookie") == "", "out of reach of scripts"
        assert page.evaluate("fetch('/secret').then((answer) => answer.json())") == {"secret": "where the cup is"}
        assert page.evaluate("localStorage.length") == 0
        assert not any("token" in one.partition("#")[0] for one in asked)
        assert wrong == []
        page.goto(f"https://{HOST}:{service.lan_port}/secret")
        assert "cup" in page.content()
        # Another browser has nothing, and the used code says so.
        other = browser.new_context(viewport={"width": 1280, "height": 800}, ignore_https_errors=True).new_page()
        answer = other.goto(url)
        assert answer is not None
        assert answer.status == 401
        assert "Not paired" in other.inner_text("h1")
        with service.owner() as owner:
            second = owner.call("POST", "/api/v1/pairing", {})["url"]
            other.goto("about:blank")
            other.goto(second)
            other.wait_for_selector("#form:not([hidden])")
            shot(other, "pair-desktop")
            owner.call("DELETE", "/api/v1/pairing")
            other.fill("#name", "late")
            other.click("#pair")
            other.wait_for_selector("#status:not([hidden])")
            assert "over" in other.inner_text("#status")
            owner.call("DELETE", "/api/v1/devices/d1")
        browser.close()


def shot(page: Any, name: str) -> None:
    """A picture of the page for people to look at, where one is wanted."""
    folder = os.environ.get("REFLECTWORLD_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=True)
