"""What can happen to a camera while the service watches it: each fault on a real service, with the time until it is live again.

Traffic stays on loopback and in namespaces that are made here.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import av
import cv2
import pytest

from edge.app import camera_config
from edge.memory import Store
from edge.serve.peers import PeerLimits
from edge.settings import load_settings
from tests.live_support import CameraServer, Running, running, settings_with
from tests.media import pan, photo, write_clip
from tests.netns import Cable, cable, call_inside
from tests.test_capture_live import serving
from tests.webrtc_support import BINDINGS, KEY, Photographs, Server, certificate_files, client, served


@dataclass(frozen=True)
class Outcome:
    """How a fault went."""

    fault: str
    lasted: float  # s
    recovered: float  # s from its end until the camera was live with a new picture
    before: int  # moments that were remembered before it
    kept: bool  # whether these are there unchanged afterwards
    after: int  # moments in the end


@contextmanager
def watched(home: Path, url: str, **capture: object) -> Iterator[Running]:
    """A service that watches one camera, live."""
    settings = settings_with(
        home, **{"stall_s": 1.0, "connect_s": 2.0, "segment_max_s": 4.0, "segment_min_s": 2.0, **capture}
    )
    with running(settings, camera_config("porch", url)) as run:
        run.wait(lambda: run.state("porch") == "live", 20)
        yield run


def texts(home: Path) -> dict[int, str]:
    settings = load_settings(home)
    with Store.open(home, settings.memory, readonly=True) as store:
        return {trace.id: trace.text for trace in store.traces(limit=1000)}


def through(
    fault: str, home: Path, run: Running, begin: Callable[[], None], end: Callable[[], None], lasts: float
) -> Outcome:
    """Let a fault happen to a camera that has been remembered, and wait until it is live again."""
    run.wait(lambda: run.of("moment"), 20)
    before = texts(home)
    began = time.monotonic()
    begin()
    time.sleep(lasts)
    end()
    ended = time.time()
    lasted = time.monotonic() - began

    def live_again() -> bool:
        camera = run.service.cameras[0]
        return camera.state.value == "live" and camera.last_frame is not None and camera.last_frame > ended

    recovered = run.wait(live_again, 30)
    moments = len(run.of("moment"))
    run.wait(lambda: len(run.of("moment")) > moments, 20)  # it is remembered again, too
    after = texts(home)
    return Outcome(fault, lasted, recovered, len(before), all(after.get(k) == v for k, v in before.items()), len(after))


# -- cameras over HTTP ----------------------------------------------------------------------------------------------------


def restart(home: Path) -> Outcome:
    with CameraServer() as server, watched(home, server.url) as run:
        return through("HTTP camera restarted", home, run, server.down, server.up, 3.0)


def stall(home: Path) -> Outcome:
    with CameraServer() as server, watched(home, server.url) as run:
        return through(
            "camera falls silent",
            home,
            run,
            lambda: setattr(server, "mute", True),
            lambda: setattr(server, "mute", False),
            4.0,
        )


def garbage(home: Path) -> Outcome:
    with CameraServer() as server, watched(home, server.url) as run:
        return through(
            "camera sends garbage",
            home,
            run,
            lambda: setattr(server, "garbage", True),
            lambda: setattr(server, "garbage", False),
            4.0,
        )


def resolution(home: Path) -> Outcome:
    """The picture's size changes in mid-stream, and back."""
    with CameraServer() as server, watched(home, server.url) as run:
        usual = server.pictures
        other = [cv2.imencode(".jpg", picture)[1].tobytes() for picture in pan(photo("astronaut"), 50, (640, 480))]
        return through(
            "resolution changes",
            home,
            run,
            lambda: setattr(server, "pictures", other),
            lambda: setattr(server, "pictures", usual),
            2.0,
        )


def leap(home: Path, seconds: float = 3600.0) -> Outcome:
    """The camera's clock leaps an hour ahead in mid-stream, and back."""
    offset = [0.0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "piece.ts"

        def send(write: Callable[[bytes], object], over: threading.Event) -> None:
            number, began = 0, time.monotonic()
            while not over.is_set():
                stamps = [100.0 + offset[0] + number + step / 25 for step in range(25)]
                piece = write_clip(path, pan(photo("astronaut"), 25, (160, 120)), stamps=stamps)
                write(piece.read_bytes())
                number += 1
                over.wait(max(0.0, began + number - time.monotonic()))

        with serving("video/mp2t", send) as url, watched(home, url, stall_s=2.0) as run:
            return through(
                "clock leaps an hour, and back",
                home,
                run,
                lambda: offset.__setitem__(0, seconds),
                lambda: offset.__setitem__(0, 0.0),
                5.0,
            )


# -- RTSP ---------------------------------------------------------------------------------------------------------------


class RtspServer:
    """GStreamer's RTSP server in a process of its own, in a namespace if one is given."""

    def __init__(self, address: str, namespace: str | None = None) -> None:
        self._address = address
        self._namespace = namespace
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._process: subprocess.Popen[str] | None = None
        self.url = f"rtsp://{address}:{self._port}/live"
        self.up()

    def up(self) -> None:
        """Start it; the test skips where it cannot be."""
        lead = ["ip", "netns", "exec", self._namespace] if self._namespace else []
        script = Path(__file__).with_name("rtsp_server.py")
        self._process = subprocess.Popen(
            [*lead, BINDINGS, str(script), self._address, str(self._port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "listening":
            self.down()
            pytest.skip("GStreamer's RTSP server or its bindings are not installed")

    def down(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
            self._process = None


@contextmanager
def rtsp_server(address: str = "127.0.0.1", namespace: str | None = None) -> Iterator[RtspServer]:
    if not Path(BINDINGS).exists() or (namespace and shutil.which("ip") is None):
        pytest.skip("there is no system Python with GStreamer's bindings")
    server = RtspServer(address, namespace)
    try:
        yield server
    finally:
        server.down()


def rtsp_restart(home: Path) -> Outcome:
    with rtsp_server() as server, watched(home, server.url) as run:
        return through("RTSP server killed and restarted", home, run, server.down, server.up, 3.0)


def _across(wire: Cable, work: Callable[[], Outcome]) -> Outcome:
    """Work with the service in the namespace on this side of a cable."""
    return call_inside(wire.here, work, 120)


def cut(home: Path, seconds: float = 20.0) -> Outcome:
    """The cable between the service and an RTSP camera is pulled."""
    with cable() as wire, rtsp_server(wire.there_address, wire.there) as server:

        def work() -> Outcome:
            with watched(home, server.url) as run:
                return through(f"network cut for {seconds:.0f} s, RTSP", home, run, *_pulled(wire), seconds)

        return _across(wire, work)


def _pulled(wire: Cable) -> tuple[Callable[[], None], Callable[[], None]]:
    return lambda: _link(wire.here, "down"), lambda: _link(wire.here, "up")


def _link(namespace: str, state: str) -> None:
    subprocess.run(["ip", "-n", namespace, "link", "set", "wire0", state], check=True, capture_output=True)


# -- publishers ---------------------------------------------------------------------------------------------------------


@contextmanager
def taking(home: Path, host: str = "127.0.0.1") -> Iterator[tuple[Running, Server]]:
    """A service that is published to, with the limits that it has in earnest."""
    settings = settings_with(home, stall_s=1.0, segment_max_s=4.0, segment_min_s=2.0)
    with running(settings) as run, served(run.service, PeerLimits(), host) as server:
        yield run, server


class Publisher:
    """A publisher in a process of its own, in a namespace if one is given."""

    def __init__(self, command: Sequence[str], namespace: str | None = None) -> None:
        self._command = [*(["ip", "netns", "exec", namespace] if namespace else []), *command]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def up(self) -> None:
        """Start it."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """SIGKILL: it says no word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _phone(url: str) -> list[str]:
    return [sys.executable, "-m", "tests.phone_publisher", url, "porch"]


def killed_phone(home: Path) -> Outcome:
    """The process that publishes is killed, and started again."""
    with taking(home) as (run, server), Publisher(_phone(server.url)) as phone:
        return through("phone killed and started again", home, run, phone.kill, phone.up, 8.0)


def killed_encoder(home: Path) -> Outcome:
    """As that, with FFmpeg's WHIP muxer, which has no heartbeat."""
    if "whip" not in av.formats_available:
        pytest.skip("this build of FFmpeg has no WHIP muxer")
    with taking(home) as (run, server), tempfile.TemporaryDirectory() as folder:
        pair = [str(path) for path in certificate_files(Path(folder))]
        command = [sys.executable, "-m", "tests.ffmpeg_publisher", f"{server.url}/whip/porch", KEY, "60", *pair]
        with Publisher(command) as encoder:
            return through("FFmpeg killed and started again", home, run, encoder.kill, encoder.up, 3.0)


def cut_phone(home: Path, seconds: float = 20.0) -> Outcome:
    """A phone is out of reach for a while, and comes back by itself."""
    with cable() as wire:

        def work() -> Outcome:
            with taking(home, wire.here_address) as (run, server), Publisher(_phone(server.url), wire.there):
                return through(f"network cut for {seconds:.0f} s, WebRTC", home, run, *_pulled(wire), seconds)

        return _across(wire, work)


def bad_link(home: Path) -> Outcome:
    """A phone publishes while a tenth of all datagrams is lost, both ways."""

    async def publish(run: Running, url: str) -> Outcome:
        async with client(url) as phone:
            phone.add(Photographs()).heartbeat()
            await phone.begin("/whip/porch")
            lead = asyncio.to_thread(
                through, "10 % of datagrams lost", home, run, lambda: phone.lossy(0.1), lambda: phone.lossy(0.0), 10.0
            )
            return await lead

    with taking(home) as (run, server):
        return asyncio.run(publish(run, server.url))


FAULTS: tuple[Callable[[Path], Outcome], ...] = (
    restart,
    stall,
    garbage,
    resolution,
    leap,
    rtsp_restart,
    cut,
    killed_phone,
    killed_encoder,
    cut_phone,
    bad_link,
)
LONGEST_S = 10.0  # until it is live again
