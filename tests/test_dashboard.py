"""The dashboard in a real browser on a real server, with a memory made by watching the demo's clip."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from edge.memory import Store
from edge.recall import Recall
from edge.serve import CameraState, CameraStatus, build_app
from edge.settings import load_settings
from edge.types.records import EntityKind
from tests.serve_support import LOCAL, Keys, MemoryService, serving
from tests.test_watch import clip, watched

__all__ = ["clip", "watched"]

CHROMIUM = shutil.which("chromium")
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
SIGHT = {
    "width": 640,
    "height": 480,
    "in_view": [
        {"anchor": "a1", "label": "person", "name": "Eileen", "score": 0.9, "box": [0.3, 0.1, 0.75, 0.98]},
        {"anchor": "a2", "label": "cup", "name": None, "score": 0.8, "box": [0.05, 0.6, 0.2, 0.8]},
    ],
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


@pytest.fixture
def running(watched: Path, tmp_path: Path) -> Iterator[tuple[str, MemoryService]]:
    home = tmp_path / "home"
    shutil.copytree(watched, home)
    settings = load_settings(home)
    with Store.open(home, settings.memory) as store:
        service = MemoryService(store, Recall(store))
        service._cameras["glasses"] = CameraStatus(
            "glasses", "rtsp://192.168.1.20/stream", CameraState.LIVE, fps=2.0, width=640, height=480, segments=4
        )
        oldest = store.traces(newest_first=False)[0]
        service.pictures["glasses"] = store.key_frame(oldest.key_frames[0]).jpeg
        with serving(build_app(service, Keys(LOCAL))) as url:
            yield url, service


@contextmanager
def page_of(url: str, size: str, scheme: str, *, away: bool = False, gone: str = "/whep/") -> Iterator[Any]:
    """A page that fails the test for whatever goes wrong in it.

    Args:
        url: of the page.
        size: of the screen.
        scheme: light or dark.
        away: the server may be not there.
        gone: what may be not there on the server.
    """
    playwright = pytest.importorskip("playwright.sync_api")
    wide, high = SIZES[size]
    wrong: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=["--no-sandbox", "--disable-gpu", "--mute-audio"]
        )
        page = browser.new_context(viewport={"width": wide, "height": high}, color_scheme=scheme).new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        # A device without WebRTC answers /whep with 404: the page shows pictures one by one then.
        page.on(
            "console",
            lambda said: (
                wrong.append(f"{said.text} {said.location['url']}")
                if said.type == "error"
                and "/whep/" not in said.location["url"]
                and gone not in said.location["url"]
                and not (away and "ERR_" in said.text)
                else None
            ),
        )
        page.goto(url)
        page.wait_for_selector(".pill[data-state=live]")
        yield page
        browser.close()
    assert wrong == []


def no_sideways(page: Any) -> None:
    wide, seen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= seen


def test_what_is_remembered_is_seen_filtered_named_and_asked(
    running: tuple[str, MemoryService], tmp_path: Path
) -> None:
    url, service = running
    store = service.store
    with page_of(url, "desktop", "light") as page:
        page.wait_for_selector("#live-picture:not([hidden])")
        service.events.publish("sight", "glasses", SIGHT)
        page.get_by_text("Eileen, cup").wait_for()

        # Newest first, and only what fits the filter.
        shown = page.locator(".moment")
        page.wait_for_selector(".moment")
        assert shown.first.get_attribute("data-id") == f"t{store.traces(limit=1)[0].id}"
        page.get_by_role("combobox", name="Thing").fill("motorcycle")
        page.wait_for_selector(f".moment >> nth={len(store.traces(label='motorcycle'))}", state="detached")
        assert shown.count() == len(store.traces(label="motorcycle"))
        page.get_by_role("combobox", name="Thing").fill("")

        # A day to scrub by the keyboard.
        day = page.locator(".daybreak").first.get_attribute("data-day")
        page.locator("input[name=day]").fill(day)
        page.locator("#day-preview b").wait_for()
        last = page.locator("#day-preview").inner_text()
        page.get_by_role("slider", name="Time of the day").focus()
        page.keyboard.press("Home")
        assert page.locator("#day-preview").inner_text() != last

        # Named once, called so everywhere, without loading the page again.
        page.locator("#people-list button", has_text="person 1").click()
        page.locator("#new-name").fill("Eileen <b>Collins</b>")
        page.keyboard.press("Enter")
        page.locator("#person-title", has_text="Eileen <b>Collins</b>").wait_for()
        page.locator(".moment .chip", has_text="Eileen <b>Collins</b>").first.wait_for()
        person = next(one for one in store.entities(EntityKind.PERSON))
        assert person.name == "Eileen <b>Collins</b>"
        page.get_by_role("button", name="Everybody").click()
        assert page.evaluate("document.activeElement.dataset.id") == f"p{person.id}"

        # An answer opens the picture that it cites, and the focus comes back.
        page.get_by_role("textbox", name="Your question").fill("When was the cat seen?")
        page.keyboard.press("Enter")
        cited = page.get_by_role("button", name="Open the picture that it rests on")
        cited.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open] figure img")
        assert "cat" in page.locator("#viewer-body").inner_text()
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Open the picture that it rests on"

        # What is new comes by itself.
        service.events.publish("camera", "glasses", {"state": "paused", "detail": ""})
        page.get_by_role("button", name="Pause", exact=True).click()
        page.get_by_role("button", name="Resume").wait_for()
        no_sideways(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_it_fits_every_screen(running: tuple[str, MemoryService], tmp_path: Path, size: str, scheme: str) -> None:
    url, service = running
    with page_of(url, size, scheme) as page:
        page.wait_for_selector("#live-picture:not([hidden])")
        service.events.publish("sight", "glasses", SIGHT)
        page.get_by_text("Eileen, cup").wait_for()
        picture = tmp_path / "shot.png"
        page.screenshot(path=str(picture))
        assert picture.stat().st_size > 20_000
        no_sideways(page)
        if size == "phone":
            for part in ("moments", "ask", "people", "device", "live"):
                page.locator(f".tabs a[href='#{part}']").click()
                box = page.locator(f"#{part}").bounding_box()
                assert box is not None
                assert box["width"] == 390
                no_sideways(page)
            assert page.locator("main > * > .panel:visible, main > .panel:visible").count() == 1


def test_a_page_comes_back_after_the_server_did(running: tuple[str, MemoryService]) -> None:
    _, service = running
    with serving(build_app(service, Keys(LOCAL))) as url:
        opened = page_of(url, "phone", "light", away=True)
        page = opened.__enter__()
    page.wait_for_selector(".pill:not([data-state=live])")
    with serving(build_app(service, Keys(LOCAL)), port=int(url.rsplit(":", 1)[1])):
        page.wait_for_selector(".pill[data-state=live]", timeout=15_000)
        service.events.publish("sight", "glasses", SIGHT)
        page.get_by_text("Eileen, cup").wait_for()
        opened.__exit__(None, None, None)


def test_the_description_is_a_page(running: tuple[str, MemoryService]) -> None:
    url, _ = running
    with page_of(url, "desktop", "light") as page:
        page.goto(f"{url}/api/docs")
        page.get_by_text("/api/v1/moments/{moment}", exact=True).wait_for()


def sightings(store: Store) -> dict[int, int]:
    return {one.id: one.sightings for one in store.entities()}


def poll(page: Any, what: Callable[[], bool]) -> None:
    """Wait for something that the page does on the device."""
    for _ in range(100):
        if what():
            return
        page.wait_for_timeout(50)
    raise AssertionError(page.locator("#toast").inner_text())


def test_who_is_who_is_put_right_and_rules_are_kept(running: tuple[str, MemoryService], tmp_path: Path) -> None:
    url, service = running
    store = service.store
    with page_of(url, "desktop", "light", gone="/faces/") as page:  # whom an undo takes away
        page.locator("#people-list button", has_text="person 1").click()
        page.locator("#person-title", has_text="person 1").wait_for()
        before = sightings(store)

        # "Not them" asks once more, and then the sighting is somebody else's.
        first = page.locator("#person .row").first.get_by_role("button", name="Not person 1")
        first.click()
        page.locator("#person .row").first.get_by_role("button", name="Not person 1").get_by_text("Sure?").click()
        poll(page, lambda: len(sightings(store)) == len(before) + 1)
        assert sum(sightings(store).values()) == sum(before.values())

        # It stands in the history, and is taken back.
        page.locator("#person summary", has_text="Put right").click()
        page.locator("#person").get_by_role("button", name="Undo").click()
        poll(page, lambda: sightings(store) == before)

        # A rule in plain words, and word of what met it.
        page.locator("#rule-text").fill("tell me when the cat is on the sofa")
        page.keyboard.press("Enter")
        page.locator("#rules-list li", has_text="tell me when the cat is on the sofa").wait_for()
        service.events.publish(
            "notice", None, {"id": "a1", "text": "A cat was on a sofa.", "rule": "r1", "ground": ["t1"]}
        )
        page.locator("#toast", has_text="A cat was on a sofa.").wait_for()
        page.screenshot(path=tmp_path / "rules.png")
        page.locator("#rules-list").get_by_role("button", name="Remove").click()
        page.locator("#rules-list li", has_text="Nothing yet").wait_for()
        no_sideways(page)


def test_it_is_paused_and_what_is_forgotten_is_shown_first_and_then_gone(
    running: tuple[str, MemoryService], tmp_path: Path
) -> None:
    url, service = running
    store = service.store
    with page_of(url, "desktop", "light", gone="/moments/") as page:
        pause = page.locator("#pause-all")
        pause.click()
        poll(page, lambda: service.paused is not None)
        page.get_by_role("button", name="Remember again").click()
        poll(page, lambda: service.paused is None)

        # A moment, from its own dialog: nothing goes before it is confirmed.
        traces = [one.id for one in store.traces()]
        page.locator("#moment-list .moment .thumb").first.click()
        page.get_by_role("button", name="Forget this moment…").click()
        page.locator("#forget-preview", has_text="for good").wait_for()
        page.screenshot(path=tmp_path / "forget.png")
        assert [one.id for one in store.traces()] == traces
        page.get_by_role("button", name="Forget for good").click()
        poll(page, lambda: len(store.traces()) == len(traces) - 1)
        page.locator("#viewer").wait_for(state="hidden")

        # A person, from their page.
        page.locator("#people-list button", has_text="person 1").click()
        page.get_by_role("button", name="Forget person 1…").click()
        page.get_by_role("button", name="Forget for good").click()
        poll(page, lambda: all(one.title != "person 1" for one in store.entities()))

        # All of a camera, chosen in the dialog.
        page.get_by_role("button", name="Forget…", exact=True).click()
        assert page.locator("#forget-sure").is_disabled()
        page.get_by_label("all of a camera").check()
        page.locator("#forget-camera").select_option("glasses")
        page.get_by_role("button", name="Forget for good").click()
        poll(page, lambda: not store.traces())
        no_sideways(page)
