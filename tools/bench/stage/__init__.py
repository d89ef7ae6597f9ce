"""A stage for the whole service: `reflectworld run` in a process of its own, and one browser with two real pages.

The phone page publishes what a canvas shows in place of a camera, and stamps when somebody appears on it; the dashboard
stamps when it has drawn a box. Both read one clock, so the difference is the time from glass to page.
"""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
from skimage import data

from edge.infer import Catalog, pull_models
from edge.settings import InferSettings

_HERE = Path(__file__).parent
_START_S = 60.0  # the networks are loaded by then, s
CAMERA = "glass"


def speech_file(path: Path) -> Path:
    """A recording of speech for the browser's microphone, 48 kHz."""
    catalog = Catalog.load(InferSettings())
    spec = catalog.get("two-cities-speech")
    if not spec.present:
        pull_models(catalog, [spec])
    with wave.open(str(spec.path(spec.files[0].name)), "rb") as recording:
        rate, channels = recording.getframerate(), recording.getnchannels()
        samples = np.frombuffer(recording.readframes(recording.getnframes()), np.int16)[::channels]
    places = np.arange(0, len(samples), rate / 48_000)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes(np.interp(places, np.arange(len(samples)), samples).astype(np.int16).tobytes())
    return path


def _url(picture: np.ndarray) -> str:
    coded = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 92])[1]
    return "data:image/jpeg;base64," + base64.b64encode(coded.tobytes()).decode()


@dataclass
class Seen:
    """What became of one appearance; UTC ms."""

    shown: float
    received: float | None  # the service had that picture
    told: float | None  # the page had the sight
    box: float | None
    name: float | None


class Stage:
    """The running service and the two pages. Made by `staged`."""

    def __init__(self, url: str, service: subprocess.Popen[bytes], phone: Any, dashboard: Any) -> None:
        self.url = url
        self.service = service
        self.phone = phone
        self.dashboard = dashboard

    def show(self, scene: str) -> float:
        """Have the camera see `empty`, `beside` (somebody at the side of the room) or `whole`; since when, UTC ms."""
        return float(self.phone.evaluate("scene => window.stage.show(scene)", scene))

    def appear(self, scene: str, name: str | None, patience_s: float = 6.0, *, want_name: bool = False) -> Seen:
        """Have somebody appear, and wait for the box (and the name)."""
        shown = self.show(scene)
        until = time.monotonic() + patience_s
        while True:
            found = self.dashboard.evaluate("([at, name]) => window.stage.since(at, name)", [shown, name])
            done = found["box"] is not None and (found["name"] is not None or not want_name)
            if done or time.monotonic() > until:
                told = found["told"] or [None, None]
                return Seen(shown, told[1], told[0], found["box"], found["name"])
            self.dashboard.wait_for_timeout(50)

    def leave(self, name: str | None, quiet_s: float = 1.5, patience_s: float = 20.0) -> None:
        """Have nobody in view, and wait until no box was drawn for a while."""
        since = self.show("empty")
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            last = max(since, self.dashboard.evaluate("name => window.stage.last(name)", name))
            if time.time() * 1000 - last > quiet_s * 1000:
                return
            self.dashboard.wait_for_timeout(100)
        raise RuntimeError("The box of somebody who has left stays on the dashboard.")

    def person(self, patience_s: float = 60.0) -> str:
        """The id of the first person that is remembered by a face."""

        def known() -> Any:
            return next((one for one in self.get("/people")["items"] if one["face"] is not None), None)

        return str(self.wait(known, patience_s)["id"])

    def call_them(self, person: str, name: str) -> None:
        """Name somebody."""
        answer = httpx.put(f"{self.url}/api/v1/people/{person}/name", json={"name": name}, timeout=30)
        answer.raise_for_status()

    def get(self, path: str) -> Any:
        """What the API says."""
        return httpx.get(f"{self.url}/api/v1{path}", timeout=30).raise_for_status().json()

    def wait(self, what: Callable[[], Any], patience_s: float) -> Any:
        """Wait for something to be true."""
        until = time.monotonic() + patience_s
        while not (found := what()):
            if time.monotonic() > until:
                raise RuntimeError(f"It did not come within {patience_s:.0f} s.")
            self.dashboard.wait_for_timeout(200)
        return found


@contextmanager
def staged(home: Path, *, size: tuple[int, int] = (1280, 800)) -> Iterator[Stage]:
    """A stage on a new memory; the phone publishes and the dashboard is live.

    Args:
        home: an empty folder.
        size: of the dashboard, px.

    Raises:
        RuntimeError: there is no Chromium, or the service did not start.
    """
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise RuntimeError("This needs Chromium; install your system's package `chromium`.")
    arguments = [
        "--no-sandbox",
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-audio-capture={speech_file(home / 'speech.wav')}",
        "--disable-gpu",
        "--mute-audio",
        "--disable-background-timer-throttling",
        "--disable-renderer-backgrounding",
        "--disable-backgrounding-occluded-windows",
    ]
    with served(home) as (url, service), sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, headless=True, args=arguments)
        try:
            yield _opened(url, service, browser, size)
        finally:
            browser.close()


@contextmanager
def served(home: Path, *more: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """`reflectworld run` on a free port of this device; gives the address and the process.

    Args:
        home: a folder; the memory is in `memory` in it.
        *more: further arguments of the command.
        **environment: further variables.

    Raises:
        RuntimeError: it did not start.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "edge", "run", "--home", str(home / "memory"), "--port", str(port), *more]
    url = f"http://127.0.0.1:{port}"
    with (home / "service.log").open("wb") as log:
        service = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})
        try:
            _started(url, service, home / "service.log")
            yield url, service
        finally:
            service.terminate()
            service.wait(15)


def _started(url: str, service: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            httpx.get(f"{url}/api/v1/status", timeout=5).raise_for_status()
        except httpx.HTTPError:
            if service.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"The service did not start: {log.read_text()[-2000:]}") from None
            time.sleep(0.2)
        else:
            return


def _opened(url: str, service: subprocess.Popen[bytes], browser: Any, size: tuple[int, int]) -> Stage:
    phone = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
    phone.add_init_script(path=_HERE / "camera.js")
    phone.goto(f"{url}/phone?camera={CAMERA}")
    photographs: Any = data
    pictures = {"room": _url(photographs.coffee()), "person": _url(photographs.astronaut())}
    phone.evaluate("urls => window.stage.load(urls)", pictures)
    phone.get_by_role("button", name="Start").click()
    dashboard = browser.new_context(viewport={"width": size[0], "height": size[1]}).new_page()
    dashboard.add_init_script(path=_HERE / "dashboard.js")
    phone.wait_for_selector("body[data-state=live]", timeout=20_000)
    dashboard.goto(url)
    dashboard.wait_for_selector(".pill[data-state=live]", timeout=20_000)
    stage = Stage(url, service, phone, dashboard)
    stage.wait(lambda: dashboard.evaluate("window.stage.told.length"), 20)
    return stage
