"""The phone page: what it is served as, what its modules do, and (slow) the whole of it in a real Chromium."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import httpx
import numpy as np
import pytest
from fastapi import FastAPI

from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.perceive import build_dictation
from edge.recall import Recall
from edge.serve import CameraState, CameraStatus, Device, build_app
from edge.serve.api_voice import read_recording
from edge.serve.peers import PeerLimits
from edge.serve.phone import phone_router
from edge.serve.whep import whep_router
from edge.serve.whip import whip_router
from edge.settings import PerceiveSettings
from edge.types.media import Samples
from tests.media import babble, photo, resized
from tests.recall_data import BagEmbedder, tell
from tests.serve_support import LOCAL, Keys, MemoryService, call
from tests.speech_support import recordings, runtime, sound_catalog
from tests.webrtc_support import Pushed, Server

__all__ = ["recordings", "runtime", "sound_catalog"]

STATIC = Path(__file__).resolve().parent.parent / "edge" / "serve" / "static"
CHROMIUM = shutil.which("chromium")
NODE = shutil.which("node")


@dataclass
class PushedService(MemoryService):
    """A service on a real store whose cameras are pushed."""

    sources: dict[str, Pushed] = field(default_factory=dict)

    def push_source(self, camera: str, device: Device | None = None) -> Pushed:
        self._cameras.setdefault(camera, CameraStatus(camera, "push:", CameraState.LIVE, pushed=True))
        return self.sources.setdefault(camera, Pushed())

    def latest_jpeg(self, camera: str) -> bytes | None:
        latest = self.sources[camera].latest
        return None if latest is None else cv2.imencode(".jpg", latest.to_ndarray(format="bgr24"))[1].tobytes()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("phone") / "home") as store:
        tell(store, BagEmbedder())
        yield store


def service_on(store: Store) -> PushedService:
    return PushedService(store, Recall(store, BagEmbedder()))


def app_of(service: PushedService) -> FastAPI:
    keys, limits = Keys(LOCAL), PeerLimits(linger_s=0.5)
    routers = [whip_router(service, keys, limits), whep_router(service, keys, limits), phone_router(keys)]
    return build_app(service, keys, routers=routers)


# -- what is served ---------------------------------------------------------------------------------------------------


def test_the_page_is_served_to_those_who_may_publish(store: Store) -> None:
    app = app_of(service_on(store))
    page = call(app, "GET", "/phone")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    worker = call(app, "GET", "/phone/sw.js")
    assert worker.headers["content-type"].startswith("text/javascript")
    assert worker.headers["service-worker-allowed"] == "/phone"
    for path in ("/phone", "/phone/sw.js", "/phone/manifest.webmanifest"):
        assert call(app, "GET", path, headers={"Authorization": "Bearer phone"}).status_code == 200
        assert call(app, "GET", path, headers={"Authorization": "Bearer reader"}).status_code == 403
        assert call(app, "GET", path, headers={"Authorization": "Bearer guessed"}).status_code == 401


def test_the_page_obeys_the_strictest_policy() -> None:
    page = (STATIC / "phone.html").read_text()
    assert not re.search(r"<style|style=|\son[a-z]+=|javascript:|<script(?![^>]*\bsrc=)", page)
    assert not re.search(r"(?:src|href)=\"(?!/)", page)  # nothing from elsewhere
    for rule in ("playsinline", "muted", "viewport-fit=cover", 'crossorigin="use-credentials"'):
        assert rule in page
    for module in STATIC.glob("js/phone*.js"):
        text = module.read_text()
        assert "// @ts-check" in text
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
        assert "SpeechRecognition" not in text  # browsers send what is said to a server


def test_all_that_the_page_names_exists(store: Store) -> None:
    app = app_of(service_on(store))
    page = (STATIC / "phone.html").read_text()
    worker = (STATIC / "js" / "phone-sw.js").read_text()
    shell = re.findall(r"'(/[^']+)',", worker.partition("SHELL = [")[2].partition("]")[0])
    manifest = call(app, "GET", "/phone/manifest.webmanifest").json()
    icons = [one["src"] for one in manifest["icons"]]
    assert len(shell) >= 8
    for path in {*re.findall(r"(?:src|href)=\"(/[^\"]+)\"", page), *shell, *icons, manifest["start_url"]}:
        assert call(app, "GET", path).status_code == 200, path
    modules = [path.stem for path in (STATIC / "js").glob("phone*.js") if path.stem != "phone-sw"]
    assert {f"/static/js/{name}.js" for name in modules} < set(shell)
    assert not any(path.startswith(("/api", "/whip", "/whep")) for path in shell)
    for one in manifest["icons"]:
        image = cv2.imread(str(STATIC / one["src"].removeprefix("/static/")))
        assert one["sizes"] == f"{image.shape[1]}x{image.shape[0]}"
    used = {name for module in modules for name in re.findall(r"element\('([a-z-]+)'\)", _script(module))}
    assert used <= set(re.findall(r"\bid=\"([a-z-]+)\"", page))


def _script(name: str) -> str:
    return (STATIC / "js" / f"{name}.js").read_text()


# -- what its modules do ----------------------------------------------------------------------------------------------


def evaluated(module: str, expression: str) -> Any:
    """The value of an expression over a module `m`, by Node."""
    if NODE is None:
        pytest.skip("Node.js is not installed")
    source = base64.b64encode(_script(module).encode()).decode()
    code = f"const m = await import('data:text/javascript;base64,{source}'); console.log(JSON.stringify({expression}));"
    done = subprocess.run([NODE, "--input-type=module", "-e", code], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_constrained_baseline_is_preferred() -> None:
    codecs = [
        {"mimeType": "video/VP8"},
        {"mimeType": "video/rtx"},
        {"mimeType": "video/H264", "sdpFmtpLine": "packetization-mode=1;profile-level-id=640c1f"},
        {"mimeType": "video/H264", "sdpFmtpLine": "packetization-mode=0;profile-level-id=42e01f"},
        {"mimeType": "video/H264", "sdpFmtpLine": "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f"},
    ]  # fmt: skip
    order = evaluated("phone-link", f"m.preferred({json.dumps(codecs)})")
    assert order == [codecs[4], codecs[0], codecs[1], codecs[2], codecs[3]]


def test_only_a_voice_of_the_phone_itself_reads() -> None:
    far = {"localService": False, "lang": "en-US", "default": True}
    near = {"localService": True, "lang": "en-GB", "default": False}
    french = {"localService": True, "lang": "fr-FR", "default": True}
    assert evaluated("phone-voice", f"m.localVoice({json.dumps([far, french, near])}, 'en-US')") == near
    assert evaluated("phone-voice", f"m.localVoice({json.dumps([far, french])}, 'en-US')") is None


def test_a_spoken_question_is_sent_as_a_file_that_the_device_reads() -> None:
    sent = evaluated("phone-dictation", "[...new Uint8Array(m.wav([0, 0.5, -1, 2]))]")
    assert read_recording(bytes(sent)).tolist() == pytest.approx([0, 0.5, -1, 1], abs=1e-4)


def test_what_is_in_view_in_words() -> None:
    boxes = [{"label": label, "name": name} for label, name in
             [("person", "Anna"), ("cup", None), ("person", None), ("person", None), ("person", "Anna")]]  # fmt: skip
    assert evaluated("phone-memory", f"m.inView({json.dumps({'in_view': boxes})})") == "Anna, cup, person ×2"
    assert evaluated("phone-memory", "m.clock('nonsense')") == ""


# -- in a real browser ------------------------------------------------------------------------------------------------


def camera_file(path: Path) -> Path:
    """Six seconds of photographs for Chromium's fake camera."""
    width, height = 480, 360
    with path.open("wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F20:1 Ip A1:1 C420mpeg2\n".encode())
        for number in range(120):
            image = resized(photo(("astronaut", "coffee", "chelsea")[number // 40]), width, height)
            moved = np.ascontiguousarray(np.roll(image, number % 40, axis=1))
            file.write(b"FRAME\n" + cv2.cvtColor(moved, cv2.COLOR_BGR2YUV_I420).tobytes())
    return path


def microphone_file(path: Path, sound: Samples | None = None) -> Path:
    sound = babble(10.0) if sound is None else sound
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes((np.repeat(sound, 3) * 32767).astype(np.int16).tobytes())
    return path


@contextmanager
def browser(tmp_path: Path, sound: Samples | None = None) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    args = [
        "--no-sandbox",
        "--use-fake-device-for-media-stream",
        "--use-fake-ui-for-media-stream",
        f"--use-file-for-fake-video-capture={camera_file(tmp_path / 'camera.y4m')}",
        f"--use-file-for-fake-audio-capture={microphone_file(tmp_path / 'microphone.wav', sound)}",
        "--disable-gpu",
        "--mute-audio",
    ]
    with playwright.sync_playwright() as running:
        one = running.chromium.launch(executable_path=CHROMIUM, headless=True, args=args)
        try:
            yield one
        finally:
            one.close()


def until(page: Any, condition: Callable[[], Any], seconds: float, what: str) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s: {what}"
        page.wait_for_timeout(50)
    return time.monotonic() - began


def shot(page: Any, name: str) -> None:
    """A picture of the page for people to look at, where one is wanted."""
    folder = os.environ.get("REFLECTWORLD_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.mark.slow
def test_a_phone_publishes_shows_asks_pauses_and_comes_back_after_a_restart(store: Store, tmp_path: Path) -> None:
    first = service_on(store)
    with browser(tmp_path) as chromium:
        context = chromium.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2, has_touch=True)
        page = context.new_page()
        wrong: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        with Server(app_of(first)) as server:
            page.goto(f"{server.url}/phone?camera=hall")
            shot(page, "phone-start")
            page.get_by_role("button", name="Start").click()
            assert until(page, lambda: first.sources.get("hall") and first.sources["hall"].pictures, 5, "pictures") < 5
            hall = first.sources["hall"]
            until(page, lambda: page.locator("#state").inner_text() == "Live", 5, "live")
            until(page, lambda: sum(map(len, hall.sound)) > 2 * 16_000, 6, "sound")
            assert float(np.abs(np.concatenate(hall.sound)).max()) > 0.02
            assert hall.latest.to_ndarray(format="bgr24").std() > 30

            at = time.time()
            first.events.publish("moment", "attic", {"trace": "t8", "text": "Elsewhere.", "start": at, "end": at})
            first.events.publish(
                "moment", "hall", {"trace": "t9", "text": "Anna drank a coffee.", "start": at - 5, "end": at}
            )
            seen = [{"anchor": "a1", "label": "person", "name": "Anna", "score": 0.9, "box": [0, 0, 1, 1]}]
            first.events.publish("sight", "hall", {"width": 480, "height": 360, "in_view": seen})
            first.events.publish(
                "notice", None, {"id": "a3", "text": "You have left your cup."}
            )  # comes twice, is shown once
            until(page, lambda: page.locator("#moments li").count() == 1, 3, "the moment")
            assert "Anna drank a coffee." in page.locator("#moments").inner_text()
            assert page.locator("#in-view").inner_text() == "In view: Anna"
            assert page.locator("#notices").inner_text() == "You have left your cup."
            shot(page, "phone-portrait")
            text = "She said: <b>more</b>."
            first.events.publish("moment", "hall", {"trace": "t10", "text": text, "start": at, "end": at})
            until(page, lambda: text in page.locator("#moments li").first.inner_text(), 3, "the next moment, as text")
            page.get_by_label("Question to the memory").fill("who repaired a motorcycle?")
            page.get_by_role("button", name="Ask", exact=True).click()
            until(page, lambda: "motorcycle" in page.locator("#answer-text").inner_text(), 5, "the answer")
            assert (
                page.locator("#answer-picture").evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
            )
            shot(page, "phone-answer")
            page.set_viewport_size({"width": 844, "height": 390})
            shot(page, "phone-landscape")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            for name in ("Stop", "Mute", "Pause remembering"):
                box = page.get_by_role("button", name=name).bounding_box()
                assert box["height"] >= 48, name
                assert box["y"] + box["height"] <= 390, name
            page.set_viewport_size({"width": 390, "height": 844})

            page.get_by_role("button", name="Mute").click()
            page.wait_for_timeout(600)
            heard = len(hall.sound)
            page.wait_for_timeout(600)
            assert len(hall.sound) == heard  # nothing is sent, not even silence
            page.get_by_role("button", name="Unmute").click()
            until(page, lambda: len(hall.sound) > heard, 3, "sound again")

            page.get_by_role("button", name="Pause remembering").click()
            until(page, lambda: page.locator("body").get_attribute("data-state") == "paused", 3, "paused")
            assert first.cameras[0].paused
            shown = len(hall.pictures)
            page.wait_for_timeout(5000)  # longer than a peer without a heartbeat would live
            assert len(hall.pictures) == shown
            assert hall.ends == 0
            page.get_by_role("button", name="Remember again").click()
            until(page, lambda: len(hall.pictures) > shown and not first.cameras[0].paused, 3, "pictures again")

            # Paused and resumed by somebody else, on the dashboard for example.
            assert httpx.post(f"{server.url}/api/v1/cameras/hall/pause").status_code == 200
            until(page, lambda: page.locator("body").get_attribute("data-state") == "paused", 3, "paused from afar")
            assert httpx.post(f"{server.url}/api/v1/cameras/hall/resume").status_code == 200
            until(page, lambda: page.locator("body").get_attribute("data-state") == "live", 3, "live from afar")
            assert not wrong
            port = server.port
        until(page, lambda: page.locator("body").get_attribute("data-state") in {"lost", "connecting"}, 5, "lost")

        second = service_on(store)
        with Server(app_of(second), port) as server:
            until(page, lambda: second.sources.get("hall") and second.sources["hall"].pictures, 10, "back")
            until(page, lambda: page.locator("body").get_attribute("data-state") == "live", 3, "live again")
            back = {"trace": "t10", "text": "Back.", "start": time.time(), "end": time.time()}

            def told() -> bool:
                second.events.publish("moment", "hall", back)  # until the stream is there again
                return "Back." in page.locator("#moments").inner_text()

            until(page, told, 6, "events again")

            # The page that is loaded anew goes on by itself, and the shell opens without the device.
            count = len(second.sources["hall"].pictures)
            page.reload()
            until(page, lambda: len(second.sources["hall"].pictures) > count + 20, 8, "after a reload")
            until(page, lambda: page.evaluate("caches.keys()") == ["phone-shell-1"], 5, "the shell")
            assert page.get_by_role("button", name="Stop").is_visible()
            page.get_by_role("button", name="Stop").click()
            until(page, lambda: second.sources["hall"].ends, 3, "ended")
            port = server.port
        page.goto(f"http://127.0.0.1:{port}/phone?camera=hall")
        assert page.get_by_role("button", name="Start").is_visible()


@pytest.mark.slow
def test_a_question_is_asked_by_voice_only_while_the_button_says_so(
    store: Store, tmp_path: Path, sound_catalog: Catalog, runtime: Runtime, recordings: dict[str, Samples]
) -> None:
    service = service_on(store)
    service.hears = build_dictation(sound_catalog, runtime, PerceiveSettings()).words
    with browser(tmp_path, recordings["two_cities"]) as chromium, Server(app_of(service)) as server:
        page = chromium.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2).new_page()
        wrong: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: asked.append(sent.url) if sent.url.endswith("/ask/voice") else None)
        page.goto(f"{server.url}/phone?camera=hall")
        words = page.locator("#listening-words")
        button = page.get_by_role("button", name="Ask by voice")

        # By the keyboard, as a screen reader does: once to begin, once to ask.
        button.focus()
        page.keyboard.press("Enter")
        until(page, lambda: words.inner_text().startswith("Listening"), 12, "listening")
        page.wait_for_timeout(4500)
        shot(page, "phone-listening")
        assert button.count() == 0
        page.get_by_role("button", name="Stop and ask").press("Enter")
        until(page, lambda: "best of times" in page.locator("#question-shown").inner_text().lower(), 30, "heard")
        assert page.locator("#answer-text").inner_text() not in {"", "Looking…"}
        assert not words.is_visible()
        shot(page, "phone-heard")

        # Held, like a walkie-talkie.
        box = button.bounding_box()
        page.mouse.move(box["x"] + 20, box["y"] + 20)
        page.mouse.down()
        until(page, lambda: "let go" in words.inner_text(), 12, "held")
        page.wait_for_timeout(3000)
        page.mouse.up()
        until(page, lambda: len(asked) == 2, 12, "asked")
        until(page, lambda: page.locator("#answer-text").inner_text() != "Looking…", 30, "answered")

        # Begun and given up: nothing leaves the phone. And what a camera only overhears is no question.
        button.click()
        until(page, lambda: "tap again" in words.inner_text(), 12, "tapped")
        page.keyboard.press("Escape")
        assert not words.is_visible()
        page.get_by_role("button", name="Start").click()
        until(
            page,
            lambda: service.sources.get("hall") and sum(map(len, service.sources["hall"].sound)) > 32_000,
            9,
            "sound",
        )
        assert len(asked) == 2

        # The memory does not hear the question either.
        button.click()
        until(page, lambda: words.inner_text().startswith("Listening"), 12, "listening")
        page.wait_for_timeout(700)
        heard = len(service.sources["hall"].sound)
        page.wait_for_timeout(700)
        assert len(service.sources["hall"].sound) == heard
        page.get_by_role("button", name="Cancel").click()
        until(page, lambda: len(service.sources["hall"].sound) > heard, 8, "sound again")
        assert len(asked) == 2
        assert not wrong
