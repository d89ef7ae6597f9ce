"""Live sources, against a server on this machine that sends with the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.capture import Source, open_source, segments
from edge.settings import CaptureSettings
from edge.types.media import CutReason, Frame, Mode, Segment, SourceKind
from tests.media import babble, pan, photo, write_clip

SETTINGS = CaptureSettings()
Send = Callable[[bytes], None]


@contextmanager
def serving(content_type: str, send: Callable[[Send, threading.Event], None]) -> Iterator[str]:
    """A server whose every answer is what `send` writes; it ends when the test does."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            try:
                send(self.wfile.write, over)
            except (BrokenPipeError, ConnectionResetError):
                return

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/stream"
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def motion_jpeg(write: Send, over: threading.Event) -> None:
    """What an ESP32-CAM sends: 25 pictures a second, then nothing more until the test ends."""
    for picture in pan(photo("astronaut"), 50):
        data = cv2.imencode(".jpg", picture)[1].tobytes()
        write(b"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n" % len(data) + data + b"\r\n")
        if over.wait(0.04):
            return
    over.wait(30)


def paced(clip: Path, seconds: float) -> Callable[[Send, threading.Event], None]:
    """The bytes of a clip, spread over its duration."""

    def send(write: Send, over: threading.Event) -> None:
        data = clip.read_bytes()
        step = max(1, int(len(data) / seconds / 50))
        for begin in range(0, len(data), step):
            write(data[begin : begin + step])
            if over.wait(0.02):
                return

    return send


def reading(source: Source, stop: threading.Event, mode: Mode = Mode.LIVE_LATENCY) -> Iterator[Frame | Segment]:
    return segments(source, vad=None, settings=SETTINGS, mode=mode, stop=stop)


def test_motion_jpeg_and_stopping_while_the_camera_is_mute() -> None:
    stop = threading.Event()
    with serving("multipart/x-mixed-replace; boundary=frame", motion_jpeg) as url:
        before = time.time()
        with open_source(url, camera=None, start=None, settings=SETTINGS) as source:
            assert source.info.kind is SourceKind.HTTP
            assert source.info.duration is None
            assert (source.info.width, source.info.height) == (320, 240)
            assert before - 1 < source.info.start < time.time() + 1
            items = []
            timer = threading.Timer(3.3, stop.set)  # the camera falls silent after 2 s
            timer.start()
            for item in reading(source, stop):
                items.append(item)
            late = time.monotonic()
            timer.join()
    assert time.monotonic() - late < 1.0
    *frames, last = items
    assert isinstance(last, Segment)
    assert last.reason is CutReason.INTERRUPTED
    assert 3 <= len(frames) <= 8
    assert last.counts.decoded + last.counts.dropped >= 45


def test_picture_and_sound_of_a_stream_stay_together(tmp_path: Path) -> None:
    sound = babble(4.0, 48_000)
    clip = write_clip(
        tmp_path / "a.ts", pan(photo("astronaut"), 100, (160, 120)), sound=sound, sound_rate=48_000, audio_codec="mp2"
    )
    with (
        serving("video/mp2t", paced(clip, 3.0)) as url,
        open_source(url, camera="hall", start=100.0, settings=SETTINGS) as source,
    ):
        items = list(reading(source, threading.Event()))
    found = [item for item in items if isinstance(item, Segment)]
    assert found[0].start == 100.0
    assert found[-1].end - 100.0 == pytest.approx(4.0, abs=0.3)
    assert found[-1].reason is CutReason.END_OF_SOURCE
    audio = np.concatenate([s.audio for s in found if s.audio is not None])
    assert len(audio) / 16_000 == pytest.approx(4.0, abs=0.15)
    assert float(np.abs(audio).max()) > 0.1
    assert all(s.audio_faults == 0 for s in found)


def test_a_slow_reader_loses_pictures_but_no_sound(tmp_path: Path) -> None:
    clip = write_clip(
        tmp_path / "a.ts", pan(photo("astronaut"), 150, (160, 120)), sound=babble(6.0, 48_000), sound_rate=48_000,
        audio_codec="mp2",
    )  # fmt: skip
    with (
        serving("video/mp2t", paced(clip, 3.0)) as url,
        open_source(url, camera=None, start=0.0, settings=SETTINGS) as source,
    ):
        found = []
        for item in reading(source, threading.Event()):
            if isinstance(item, Frame):
                time.sleep(0.4)
            else:
                found.append(item)
    assert sum(s.counts.dropped for s in found) > 10
    assert sum(len(s.audio) for s in found if s.audio is not None) / 16_000 == pytest.approx(6.0, abs=0.2)


def test_a_recording_behind_a_link_is_read_whole(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mkv", pan(photo("astronaut"), 75, (160, 120)), sound=babble(3.0))

    def send(write: Send, over: threading.Event) -> None:
        write(clip.read_bytes())

    with (
        serving("video/x-matroska", send) as url,
        open_source(url, camera=None, start=0.0, settings=SETTINGS) as source,
    ):
        assert source.info.duration == pytest.approx(3.0, abs=0.05)
        found = [item for item in reading(source, threading.Event()) if isinstance(item, Segment)]
    assert sum(s.counts.decoded for s in found) == 75
