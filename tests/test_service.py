"""The service with real pictures: several cameras, faults of a camera, publishers, back-pressure and its end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import structlog

from edge.app import Watch, camera_config, open_rooms
from edge.app.pulse import Pulse, task_name
from edge.errors import NotFoundError, StoreError, UserError
from edge.memory import Store
from edge.memory.tiers import timeline
from edge.perceive import Perceiver
from edge.serve import Fill
from edge.settings import load_settings
from edge.types.media import CutReason
from tests.command import Command, reflectworld
from tests.conftest import ROOT
from tests.live_support import CameraServer, running, settings_with
from tests.media import babble, pan, photo, tone, write_clip

__all__ = ["reflectworld"]


def memory(home: Path) -> Store:
    settings = load_settings(home)
    return Store.open(home, settings.memory, user=settings.user, readonly=True)


def content(home: Path) -> dict[str, list[object]]:
    """What is remembered of each camera, without the numbers that depend on the order of commits."""
    found: dict[str, list[object]] = {}
    with memory(home) as store:
        for trace in store.traces(newest_first=False):
            seen = [
                (o.label, o.start, o.end, o.text, o.boxes, o.entity is not None)
                for o in store.observations(trace=trace.id, newest_first=False)
            ]
            said = [(u.start, u.end, u.text) for u in trace.utterances]
            row = (trace.start, trace.end, trace.text, trace.reason, trace.counts, seen, said, len(trace.key_frames))
            found.setdefault(trace.camera, []).append(row)
    return found


def told(store: Store) -> set[str]:
    """The cameras of which the timeline tells."""
    with store.reading() as connection:
        return {node.camera for node in timeline.nodes_of_level(connection, store.user, "event") if node.text}


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("clips")
    day = {"creation_time": "2026-01-05T08:00:00Z"}
    night = {"creation_time": "2026-01-06T20:00:00Z"}
    return {
        "hall": write_clip(
            folder / "hall.mp4", pan(photo("astronaut"), 125, (480, 360)), sound=babble(5.0), metadata=day
        ),
        "yard": write_clip(folder / "yard.mp4", pan(photo("chelsea"), 75, (480, 360)), sound=tone(3.0), metadata=night),
    }


def test_two_files_at_once_give_the_memory_of_two_watches(clips: dict[str, Path], tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for name, path in clips.items():
        with open_rooms(load_settings(alone)) as rooms:
            Watch(rooms, str(path), camera=name).run()
    with running(load_settings(together), *(camera_config(name, str(path)) for name, path in clips.items())) as run:
        run.wait(lambda: all(run.state(name) == "ended" for name in clips), 60)
        assert {event.camera for event in run.of("moment")} == set(clips)
        # What is derived follows by itself, while the service runs.
        run.wait(
            lambda: (
                not run.service.store.rows("select 1 from job where kind in ('trace', 'timeline')")
                and told(run.service.store) == set(clips)
            ),
            20,
        )
        assert [event.data["title"] for event in run.of("person")] == ["person 1"]
        sights = [e for e in run.of("sight") if e.camera == "hall"]
        boxes = [seen["box"] for e in sights for seen in e.data["in_view"]]  # type: ignore[attr-defined]
        assert boxes
        assert all(0 <= edge <= 1 for box in boxes for edge in box)
    assert content(together) == content(alone)
    assert set(content(alone)) == set(clips)
    # Watched to their ends: another run adds nothing.
    before = content(together)
    with running(load_settings(together), camera_config("hall", str(clips["hall"]))) as run:
        run.wait(lambda: run.state("hall") == "ended", 10)
    assert content(together) == before


def test_a_camera_that_dies_falls_silent_and_comes_back(tmp_path: Path) -> None:
    settings = settings_with(tmp_path / "home", stall_s=1.0, connect_s=2.0)
    with CameraServer() as server, running(settings, camera_config("porch", server.url)) as run:
        run.wait(lambda: run.state("porch") == "live")
        time.sleep(1.0)
        server.down()
        died = server.last_sent
        run.wait(lambda: run.state("porch") == "failed", 4)
        run.wait(lambda: len(run.of("moment")) == 1)
        # Nothing of what it sent before is lost: media time may lie behind by what opening took.
        assert float(str(run.of("moment")[0].data["end"])) > died - 1.0
        run.wait(lambda: "reached" in run.service.cameras[0].detail, 3)
        server.up()
        assert run.wait(lambda: run.state("porch") == "live") < 10
        server.mute = True
        run.wait(lambda: run.state("porch") == "stalled", 3)
        server.mute = False
        run.wait(lambda: run.state("porch") == "live", 3)
        server.garbage = True
        run.wait(lambda: run.state("porch") in {"stalled", "failed"}, 6)
        server.garbage = False
        assert run.wait(lambda: run.state("porch") == "live") < 10
        time.sleep(0.7)
        assert run.stop() < 5
        states = run.states("porch")
        assert states[:2] == ["live", "failed"]
        assert "stalled" in states
    with memory(tmp_path / "home") as store:
        traces = store.traces(newest_first=False)
    assert len(traces) >= 3
    assert all(one.end <= other.start for one, other in pairwise(traces))
    assert traces[-1].reason is CutReason.INTERRUPTED


@pytest.mark.slow
def test_a_publisher_comes_goes_and_is_taken_over_from(tmp_path: Path) -> None:
    pictures = list(pan(photo("astronaut"), 40))

    def publish(source: object, seconds: float) -> None:
        began = time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            source.push_picture(pictures[int((now - began) * 20) % 40], now)  # type: ignore[attr-defined]
            source.push_sound(tone(0.05), now - 0.05)  # type: ignore[attr-defined]
            time.sleep(0.05)

    with running(settings_with(tmp_path / "home", stall_s=1.0)) as run:
        phone = run.service.push_source("phone")
        run.wait(lambda: run.state("phone") == "connecting", 2)
        publish(phone, 1.0)
        assert run.state("phone") == "live"
        assert run.service.latest_jpeg("phone")[:2] == b"\xff\xd8"  # type: ignore[index]
        phone.close()
        run.wait(lambda: run.state("phone") == "ended" and len(run.of("moment")) == 1)
        again = run.service.push_source("phone")
        publish(phone, 0.3)  # whoever left or was taken over from is not listened to
        assert run.state("phone") == "ended"
        publish(again, 1.0)
        run.wait(lambda: run.state("phone") == "live", 1)
        run.call(run.service.pause_camera("phone"))
        run.wait(lambda: run.state("phone") == "paused" and len(run.of("moment")) == 2)
        publish(again, 0.3)
        assert run.service.latest_jpeg("phone") is None
        run.call(run.service.resume_camera("phone"))
        publish(again, 1.0)
        run.wait(lambda: run.state("phone") == "live", 2)
        time.sleep(1.3)  # the phone slept
        assert run.state("phone") == "stalled"
        run.wait(lambda: len(run.of("moment")) == 3)
        publish(again, 0.5)
        run.wait(lambda: run.state("phone") == "live", 2)
        with pytest.raises(UserError, match="name"):
            run.service.push_source("../../etc")
        with pytest.raises(NotFoundError, match="phone"):
            run.service.latest_jpeg("nobody")
    with memory(tmp_path / "home") as store:
        traces = store.traces(newest_first=False)
    assert len(traces) >= 4
    assert all(one.end <= other.start for one, other in pairwise(traces))
    # It is kept: the next run waits for it.
    with running(load_settings(tmp_path / "home")) as run:
        assert [camera.name for camera in run.service.cameras] == ["phone"]
        assert run.service.cameras[0].pushed


@pytest.mark.slow
def test_slow_perception_drops_old_pictures_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ages: list[float] = []
    see = Perceiver.see

    def slow(self: Perceiver, frame: object) -> object:
        ages.append(time.monotonic() - frame.captured)  # type: ignore[attr-defined]
        time.sleep(0.35)
        return see(self, frame)  # type: ignore[arg-type]

    monkeypatch.setattr(Perceiver, "see", slow)
    with running(settings_with(tmp_path / "home", sample_fps=20.0), camera_config("test", "test:")) as run:
        time.sleep(2.5)

        def fill() -> Fill:
            return run.service.vitals.channels["frames:test"]

        run.wait(lambda: 0 < fill().items <= fill().bound, 3)
        assert fill().dropped > 10
        run.stop()
        assert run.service.cameras[0].dropped > 10
    assert len(ages) > 5
    assert max(ages) < 0.55
    with memory(tmp_path / "home") as store:
        assert sum(trace.counts.dropped for trace in store.traces()) == run.service.cameras[0].dropped


@pytest.mark.slow
def test_people_are_named_in_the_live_view(tmp_path: Path) -> None:
    with CameraServer() as server, running(settings_with(tmp_path), camera_config("door", server.url)) as run:
        run.wait(lambda: any(seen["label"] == "person" for e in run.of("sight") for seen in e.data["in_view"]))  # type: ignore[attr-defined]
        time.sleep(4.0)
        run.call(run.service.pause_camera("door"))
        run.wait(lambda: run.of("person"))
        entity = int(str(run.of("person")[0].data["id"])[1:])
        run.call(run.service.name_person(entity, "Eileen"))
        assert run.of("person")[-1].data["name"] == "Eileen"
        before = len(run.of("sight"))
        run.call(run.service.resume_camera("door"))

        def named() -> bool:
            sights = run.of("sight")[before:]
            return any(seen["name"] == "Eileen" for e in sights for seen in e.data["in_view"])  # type: ignore[attr-defined]

        assert run.wait(named, 10) < 5


def test_only_one_service_runs_on_a_memory(tmp_path: Path) -> None:
    with (
        running(load_settings(tmp_path)),
        pytest.raises(StoreError, match="reflectworld run"),
        running(load_settings(tmp_path)),
    ):
        pass


def test_a_camera_that_is_missing_does_not_disturb_the_others(tmp_path: Path) -> None:
    absent = camera_config("absent", str(tmp_path / "nothing.mp4"))
    with running(settings_with(tmp_path / "home"), absent, camera_config("test", "test:")) as run:
        run.wait(lambda: run.state("absent") == "failed" and run.state("test") == "live")
        assert "no file" in next(c.detail for c in run.service.cameras if c.name == "absent")
        run.call(run.service.remove_camera("absent"))
        assert [c.name for c in run.service.cameras] == ["test"]
        with pytest.raises(UserError, match="already"):
            run.call(run.service.add_camera("test", "test:"))
        phone = run.service.push_source("phone")
        assert not phone.removed
        run.call(run.service.remove_camera("phone"))
        assert phone.removed  # who publishes it is to learn so
        assert not run.service.push_source("phone").removed
        run.wait(lambda: run.of("sight"))


def test_who_holds_up_the_loop_is_named() -> None:
    async def block() -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.4)  # noqa: ASYNC251 - that is the fault

    async def main() -> Pulse:
        pulse = Pulse()
        beating = asyncio.create_task(pulse.run())
        await asyncio.create_task(block(), name="careless")
        await asyncio.sleep(0.1)
        beating.cancel()
        return pulse

    with structlog.testing.capture_logs() as logs:
        pulse = asyncio.run(main())
    assert pulse.stalls == 1
    assert pulse.percentile(1.0) > 0.3
    assert pulse.percentile(0.5) < 0.1
    stalled = [entry for entry in logs if entry["event"] == "loop.stalled"]
    assert stalled[0]["task"] == "careless"
    assert stalled[0]["milliseconds"] > 250
    assert stalled[0]["where"].startswith("tests/test_service.py:")
    assert " block" in stalled[0]["where"]


def test_a_task_without_a_name_is_told_by_what_it_runs() -> None:
    async def nameless() -> None:
        return

    async def main() -> tuple[str, str]:
        one, other = asyncio.create_task(nameless()), asyncio.create_task(nameless(), name="named")
        await asyncio.wait({one, other})
        return task_name(one), task_name(other)

    first, second = asyncio.run(main())
    assert (first.rpartition(".")[2], second) == ("nameless", "named")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_command_serves_steers_and_ends_in_order(home: Path, reflectworld: Command) -> None:
    port = free_port()
    assert reflectworld("cameras", "add", "test:", "--name", "garden").code == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "edge", "run", "--port", str(port), "--camera", "pattern=test:"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    try:
        began = time.monotonic()
        while True:
            assert process.poll() is None
            assert time.monotonic() - began < 60
            try:
                answer = httpx.get(f"http://127.0.0.1:{port}/api/v1/cameras")
                if all(one["state"] == "live" for one in answer.json()["items"]):
                    break
            except httpx.HTTPError:
                pass
            time.sleep(0.1)
        listed = json.loads(reflectworld("cameras", "list", "--json").out)
        assert {one["name"]: one["state"] for one in listed} == {"garden": "live", "pattern": "live"}
        assert reflectworld("cameras", "pause", "garden").code == 0
        shot = home / "shot.jpg"
        assert reflectworld("cameras", "snapshot", "pattern", "--out", str(shot)).code == 0
        assert shot.read_bytes()[:2] == b"\xff\xd8"
        assert "no camera" in reflectworld("cameras", "pause", "nobody").err
        status = reflectworld("status").out
        assert "pattern is live" in status
        assert "garden is paused" in status
        ended = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, noise = process.communicate(timeout=10)
        assert time.monotonic() - ended < 5
        assert process.returncode == 0, noise.decode()
        assert b"Traceback" not in noise, noise.decode()
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert not (home / "run.token").exists()
    with memory(home) as store:
        latest = store.traces(camera="pattern")[0]
        assert latest.reason is CutReason.INTERRUPTED
        assert time.time() - latest.end < 10
    (left,) = json.loads(reflectworld("cameras", "list", "--json").out)
    assert (left["name"], left["paused"]) == ("garden", True)
