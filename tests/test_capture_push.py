"""What is pushed in, made in code, or comes from a ribbon-cable camera; and clocks of cameras that leap."""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.capture import PushFeed, PushPort, open_source, segments
from edge.errors import SourceError
from edge.settings import CaptureSettings
from edge.types.media import CutReason, Frame, Mode, Segment, SourceKind
from tests.media import babble, pan, photo, tone, write_clip
from tests.test_capture_live import paced, serving

SETTINGS = CaptureSettings()
GREY = np.full((48, 64, 3), 90, np.uint8)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
@settings(deadline=None, max_examples=50)
def test_pushed_pictures_never_go_back_in_time(stamps: list[float]) -> None:
    feed = PushFeed(0.0, SETTINGS, sound=False)
    got = []
    for stamp in stamps:
        feed.push_picture(GREY, stamp)
        picture = feed.pull_picture()
        assert picture is not None
        got.append(picture)
    assert all(one.time < other.time for one, other in pairwise(got))
    assert all(picture.time >= 0 for picture in got)
    feed.finish()
    assert feed.pictures_ended


def test_the_slot_keeps_the_latest_pictures_and_counts_the_others() -> None:
    feed = PushFeed(0.0, SETTINGS, sound=False)
    for number in range(30):
        feed.push_picture(GREY, number / 30)
    taken = []
    while (picture := feed.pull_picture()) is not None:
        taken.append(picture)
    assert taken[-1].time == pytest.approx(29 / 30, abs=1e-4)
    assert len(taken) + feed.dropped == 30
    assert sum(picture.dropped for picture in taken) == feed.dropped > 20


def test_pushed_sound_is_whole_and_gaps_stay_gaps() -> None:
    began = time.monotonic() - 10.0
    feed = PushFeed(began, SETTINGS)
    assert feed.sound is not None
    whole = babble(2.0)
    jitter = np.random.default_rng(1).uniform(-0.03, 0.03, 100)
    for number, late in enumerate(jitter):
        feed.push_sound(whole[number * 320 : (number + 1) * 320], began + number * 0.02 + late)
    feed.push_sound(np.array([np.nan, 9.0, -9.0], np.float32), began + 3.0)
    assert feed.sound.reach(32_000) >= 32_000
    assert np.abs(feed.sound.window(0, 32_000) - whole).max() < 1e-6
    feed.sound.reach(48_003)
    assert not feed.sound.window(32_000, 48_000).any()
    assert feed.sound.window(48_000, 48_003).tolist() == [0.0, 1.0, -1.0]
    assert feed.sound.next_heard(48_003) is None
    # A publisher that sends no sound is silent: pictures need not wait for it.
    assert feed.sound.reach(16_000 * 9) >= 16_000 * 9
    assert feed.sound.heard_until(48_003, 16_000 * 9) is None
    feed.finish()
    assert feed.sound.ended


def test_pictures_of_a_muted_publisher_do_not_wait_for_sound() -> None:
    feed = PushFeed(time.monotonic(), SETTINGS)
    assert feed.sound is not None
    feed.push_sound(tone(0.1), time.monotonic())
    time.sleep(0.7)
    now = time.monotonic()
    feed.push_picture(GREY, now)
    picture = feed.pull_picture()
    assert picture is not None
    # All of the silence before the picture is known, but for a moment.
    known = feed.sound.reach(round(picture.time * 16_000)) / 16_000
    assert picture.time - 0.1 < known <= picture.time + 0.1
    # And sound that comes again is taken whole.
    feed.push_sound(tone(0.5), time.monotonic() - 0.02)
    feed.finish()
    end = feed.sound.reach(16_000 * 10)
    heard = feed.sound.window(0, end)
    assert np.abs(heard[-8000:]).max() > 0.29
    assert np.count_nonzero(np.abs(heard) > 0.01) > 0.9 * 0.6 * 16_000, "the first tenth and the half second"


def test_a_publisher_that_comes_takes_over() -> None:
    port = PushPort(SETTINGS)
    first = port.publish()
    first.push_picture(GREY, time.monotonic())
    assert not port.wait(0.01), "nothing is taken while it is not wanted"
    port.accept(True)
    first.push_picture(GREY, time.monotonic())
    assert port.wait(0.01)
    source = port.open("phone")
    assert source.info.kind is SourceKind.PUSH
    second = port.publish()
    first.close()
    feed = source.feed(Mode.LIVE_LATENCY, 0.0, lambda: False)
    second.push_picture(GREY, time.monotonic())
    assert feed.pull_picture() is not None
    assert feed.pull_picture() is not None
    assert not feed.pictures_ended
    second.close()
    assert feed.pictures_ended
    assert not port.wait(0.01)
    source.close()


def test_the_test_picture_moves_and_sounds() -> None:
    stop = threading.Event()
    threading.Timer(2.3, stop.set).start()
    with open_source("test:", camera=None, start=1000.0, settings=SETTINGS) as source:
        assert source.live
        items = list(segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=stop))
    *frames, last = items
    assert isinstance(last, Segment)
    assert last.reason is CutReason.INTERRUPTED
    assert 4 <= len(frames) <= 8  # two a second, and what is new at once
    assert last.counts.decoded > 40
    assert not last.still
    assert last.audio is not None
    assert 0.05 < float(np.abs(last.audio).max()) <= 0.11
    seen = [frame for frame in frames if isinstance(frame, Frame)]
    assert all(1000.0 <= frame.at < 1003.0 for frame in seen)
    assert all(one.image.shape == (480, 640, 3) for one in seen)


class FakeCamera:
    """picamera2 as far as it is used: a photograph that moves."""

    opened = 0
    broken = False

    def __init__(self, number: int) -> None:
        if number > 0:
            raise IndexError("list index out of range")
        type(self).opened += 1
        self._pictures = pan(photo("astronaut"), 10_000, (1280, 720))
        self._running = False

    def create_video_configuration(self, **what: object) -> dict[str, object]:
        assert what["main"] == {"size": (1280, 720), "format": "RGB888"}
        return dict(what)

    def configure(self, _configuration: object) -> None: ...

    def start(self) -> None:
        self._running = True

    def capture_array(self, name: str) -> np.ndarray:
        assert name == "main"
        assert self._running
        if self.broken:
            raise RuntimeError("the cable came off")
        time.sleep(0.03)
        return next(self._pictures)

    def stop(self) -> None:
        self._running = False

    def close(self) -> None:
        type(self).opened -= 1


def test_a_ribbon_cable_camera(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "picamera2", types.SimpleNamespace(Picamera2=FakeCamera))
    stop = threading.Event()
    threading.Timer(1.2, stop.set).start()
    with open_source("csi:0", camera=None, start=None, settings=SETTINGS) as source:
        assert source.info.kind is SourceKind.CSI
        assert (source.info.width, source.info.height) == (1280, 720)
        assert not source.info.has_audio
        items = list(segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=stop))
        assert isinstance(items[-1], Segment)
        assert items[-1].counts.decoded >= 10
        monkeypatch.setattr(FakeCamera, "broken", True)
        assert list(segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=threading.Event())) == []
    assert FakeCamera.opened == 0
    with pytest.raises(SourceError, match="cable"):
        open_source("csi:1", camera=None, start=None, settings=SETTINGS)


def test_without_its_library_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "picamera2", None)
    with pytest.raises(SourceError, match="apt install python3-picamera2"):
        open_source("csi:0", camera=None, start=None, settings=SETTINGS)


def test_a_push_camera_needs_the_service() -> None:
    with pytest.raises(SourceError, match="reflectworld run"):
        open_source("push:", camera=None, start=None, settings=SETTINGS)


@pytest.mark.parametrize("leap", [1800.0, pytest.param(-40.0, marks=pytest.mark.slow)])
def test_a_camera_whose_clock_leaps_does_not_move_ours(tmp_path: Path, leap: float) -> None:
    # One stream whose second half is stamped half an hour later, or earlier than what came before.
    begin = 100.0
    parts = []
    for number, offset in enumerate((begin, begin + 1.6 + leap)):
        stamps = [offset + step / 25 for step in range(40)]
        clip = write_clip(tmp_path / f"{number}.ts", pan(photo("astronaut"), 40, (160, 120)), stamps=stamps)
        parts.append(clip.read_bytes())
    joined = tmp_path / "joined.ts"
    joined.write_bytes(b"".join(parts))
    with (
        serving("video/mp2t", paced(joined, 3.2)) as url,
        open_source(url, camera=None, start=0.0, settings=SETTINGS) as source,
    ):
        items = list(segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=threading.Event()))
    found = [item for item in items if isinstance(item, Segment)]
    assert sum(segment.counts.decoded + segment.counts.dropped for segment in found) >= 70
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert 2.5 < found[-1].end < 5.0


def test_pushed_sound_and_pictures_stay_together() -> None:
    began = time.monotonic()
    feed = PushFeed(began, SETTINGS)
    feed.push_sound(tone(0.5), began)
    feed.push_picture(GREY, began + 0.25)
    picture = feed.pull_picture()
    assert picture is not None
    assert picture.time == pytest.approx(0.25, abs=1e-4)
    assert feed.sound is not None
    assert feed.sound.next_heard(0) == 0


@pytest.mark.slow
def test_a_stream_that_comes_in_pieces_is_read_with_the_clock(tmp_path: Path) -> None:
    playlist = tmp_path / "live.m3u8"
    options = {"hls_time": "1", "hls_list_size": "0", "hls_flags": "omit_endlist"}
    with av.open(str(playlist), "w", format="hls", options=options) as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        stream.codec_context.gop_size = 25
        for picture in pan(photo("astronaut"), 150, (160, 120)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "bgr24")))
        container.mux(stream.encode())
    handler = functools.partial(QuietFiles, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            stop = threading.Event()
            url = f"http://127.0.0.1:{server.server_port}/live.m3u8"
            with open_source(url, camera=None, start=0.0, settings=SETTINGS) as source:
                assert source.live
                threading.Timer(2.5, stop.set).start()
                began = time.monotonic()
                for item in segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=stop):
                    if isinstance(item, Frame):
                        assert item.at == pytest.approx(time.monotonic() - began, abs=0.5)
        finally:
            server.shutdown()
            thread.join()
    assert isinstance(item, Segment)
    assert item.counts.dropped == 0
    assert 40 <= item.counts.decoded <= 75


class QuietFiles(SimpleHTTPRequestHandler):
    """The files of a folder."""

    def log_message(self, *_: object) -> None:
        return
