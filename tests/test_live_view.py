"""The dashboard's live view as video, in a real browser: it plays, stays, changes camera and comes back."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import pytest

from edge.recall import Recall
from edge.serve import CameraState, CameraStatus, build_app
from edge.serve.peers import PeerLimits
from edge.serve.whep import whep_router
from tests.media import pan, photo
from tests.serve_support import LOCAL, Keys, MemoryService, new_store, serving

CHROMIUM = shutil.which("chromium")
SHOWN = (
    "(() => { const v = document.getElementById('live-video'); return !v.hidden && !v.paused && v.videoWidth > 0; })()"
)
TIME = "document.getElementById('live-video').currentTime"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


class Live(MemoryService):
    """Cameras whose picture moves."""

    pictures: dict[str, bytes]

    def begin(self, *names: str) -> None:
        for name in names:
            self._put(CameraStatus(name, "test:", CameraState.LIVE, fps=2.0, width=320, height=240))

    def run(self, over: threading.Event, shown: dict[str, str]) -> None:
        films = {
            name: [cv2.imencode(".jpg", one)[1].tobytes() for one in pan(photo(name), 40, (320, 240))]
            for name in {"astronaut", "chelsea"}
        }
        number = 0
        while not over.wait(0.05):
            number += 1
            for camera, film in tuple(shown.items()):
                self.pictures[camera] = films[film][number % 40]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    over, shown = threading.Event(), {}
    with new_store(tmp_path / "home") as store:
        service = Live(store, Recall(store))
        service.begin("door", "hall")
        app = build_app(service, Keys(LOCAL), routers=[whep_router(service, Keys(LOCAL), PeerLimits())])
        thread = threading.Thread(target=service.run, args=(over, shown))
        thread.start()
        try:
            with serving(app) as url:
                yield url, shown
        finally:
            over.set()
            thread.join()


def plays(page: Any) -> None:
    """Wait for video, and for its time to go on."""
    until(page, SHOWN)
    before = page.evaluate(TIME)
    until(page, f"{TIME} > {before}")


def until(page: Any, condition: str) -> None:
    """Wait for something: from here, as the page's policy lets nothing be evaluated in it later."""
    deadline = time.monotonic() + 10
    while not page.evaluate(condition):
        assert time.monotonic() < deadline, condition
        page.wait_for_timeout(50)


def test_video_plays_stays_and_changes_camera(live: tuple[str, dict[str, str]]) -> None:
    url, shown = live
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.goto(url)
        # The first picture comes late, as from a camera that is still connecting; no video that does not come is shown.
        time.sleep(2.0)
        assert not page.evaluate(SHOWN)
        shown.update(door="astronaut", hall="chelsea")
        plays(page)
        # It is not given up after a few seconds.
        time.sleep(14.0)
        plays(page)
        # Changing one's mind at once leaves the last choice, and only that, playing.
        for camera in ("hall", "door", "hall"):
            page.locator("#live-camera").select_option(camera)
        plays(page)
        time.sleep(14.0)
        plays(page)
        assert page.locator("#live-camera").input_value() == "hall"
        browser.close()
