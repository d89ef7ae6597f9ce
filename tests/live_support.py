"""A service that runs in a thread of the test, and a camera server that can die, fall silent and come back."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import cv2

from edge.app import CameraConfig, Event, Service, open_service
from edge.settings import CaptureSettings, Settings, load_settings
from tests.media import pan, photo


def settings_with(home: Path, **capture: Any) -> Settings:
    """The defaults with some settings of capture changed."""
    settings = load_settings(home)
    changed = CaptureSettings(**{**settings.capture.model_dump(), **capture})
    return settings.model_copy(update={"capture": changed})


class Running:
    """A running service, steered from the test's thread."""

    def __init__(self, service: Service, cameras: Sequence[CameraConfig]) -> None:
        self.service = service
        self.seen: list[Event] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(cameras,), name="service")
        self._thread.start()
        assert self._started.wait(10)
        assert self.failure is None, self.failure

    def _run(self, cameras: Sequence[CameraConfig]) -> None:
        async def listen(service: Service) -> None:
            self.loop = asyncio.get_running_loop()
            events = service.events.subscribe(10_000)
            self._started.set()
            async for event in events:
                self.seen.append(event)

        try:
            asyncio.run(self.service.run([("listen", listen)], cameras=cameras))
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.failure = error
        finally:
            self._started.set()

    def call(self, work: Any) -> Any:
        """Run a coroutine of the service."""
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def states(self, camera: str) -> list[str]:
        """The states that a camera went through."""
        return [str(e.data["state"]) for e in tuple(self.seen) if e.kind == "camera" and e.camera == camera]

    def of(self, kind: str) -> list[Event]:
        """The events of one kind."""
        return [e for e in tuple(self.seen) if e.kind == kind]

    def state(self, camera: str) -> str:
        """The present state."""
        return next(c.state.value for c in self.service.cameras if c.name == camera)

    def wait(self, what: Callable[[], Any], seconds: float = 10.0) -> float:
        """Wait until something is true; how long it took, s."""
        began = time.monotonic()
        while not what():
            assert time.monotonic() - began < seconds, (self.service.cameras, self.seen[-5:])
            time.sleep(0.02)
        return time.monotonic() - began

    def stop(self) -> float:
        """End it; how long it took, s."""
        began = time.monotonic()
        if self.loop is not None and self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.service.stop)
        self._thread.join(20)
        assert not self._thread.is_alive()
        assert self.failure is None, self.failure
        return time.monotonic() - began


@contextmanager
def running(settings: Settings, *cameras: CameraConfig) -> Iterator[Running]:
    """A service with some cameras."""
    with open_service(settings) as service:
        run = Running(service, cameras)
        try:
            yield run
        finally:
            run.stop()


class CameraServer:
    """What an ESP32-CAM sends (multipart MJPEG at 25 pictures a second), with faults on demand."""

    def __init__(self) -> None:
        self.pictures = [cv2.imencode(".jpg", picture)[1].tobytes() for picture in pan(photo("astronaut"), 150)]
        self.mute = False
        self.garbage = False
        self.sent = 0
        self.last_sent = 0.0  # UTC
        self._port = 0
        self._over = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/stream"

    def up(self) -> None:
        """Listen, at the same port as before."""
        outer, over = self, threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
                self.end_headers()
                try:
                    outer.send(self.wfile.write, over)
                except OSError:
                    return

            def log_message(self, *_: object) -> None:
                return

        self._over = over
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def send(self, write: Callable[[bytes], object], over: threading.Event) -> None:
        while not over.wait(0.04):
            if self.mute:
                continue
            data = b"\x00garbage" * 200 if self.garbage else self.pictures[self.sent % len(self.pictures)]
            write(b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(data) + data + b"\r\n")
            self.sent += 1
            self.last_sent = time.time()

    def down(self) -> None:
        """Die: connections break, and nobody listens any more."""
        self._over.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
