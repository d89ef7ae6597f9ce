"""Events to those who listen, the book of cameras, waits between attempts, and live channels."""

from __future__ import annotations

import asyncio
import random
import stat
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app import CameraBook, Event, Events, camera_config
from edge.app.backoff import Backoff
from edge.app.channel import Channel
from edge.errors import NotFoundError, SettingsError, SourceError, UserError
from edge.types.media import CutReason, Frame, Mode, Segment, SegmentCounts


def test_events_from_threads_reach_all_in_order_and_the_slow_lose_the_oldest() -> None:
    async def main() -> None:
        events = Events()
        quick, slow = events.subscribe(1000), events.subscribe(3)
        threads = [
            threading.Thread(
                target=lambda name=name: [events.publish(Event("sight", name, data={"n": n})) for n in range(50)]
            )
            for name in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        got = [await anext(quick) for _ in range(100)]
        for name in ("a", "b"):
            assert [event.data["n"] for event in got if event.camera == name] == list(range(50))
        assert slow.fill == 3
        assert slow.dropped == 97
        assert events.fill == (3, 97)
        events.publish(Event("moment"))
        kinds = [(await anext(slow)).kind for _ in range(3)]
        assert kinds == ["sight", "sight", "moment"]
        slow.close()
        with pytest.raises(StopAsyncIteration):
            await anext(slow)
        assert events.fill == (1, 98), "what a listener lost stays counted"
        waiting = asyncio.ensure_future(_rest(quick))
        await asyncio.sleep(0)
        events.close()
        assert [event.kind for event in await waiting] == ["moment"]

    asyncio.run(main())


async def _rest(listener: object) -> list[Event]:
    return [event async for event in listener]  # type: ignore[attr-defined]


def test_a_listener_whose_loop_has_ended_is_forgotten() -> None:
    events = Events()

    async def listen() -> None:
        events.subscribe()

    asyncio.run(listen())
    events.publish(Event("moment"))
    events.publish(Event("moment"))
    assert events.fill[0] == 0


def test_cameras_are_kept_in_a_file_that_only_the_owner_reads(tmp_path: Path) -> None:
    book = CameraBook(tmp_path)
    book.add(camera_config("porch", "rtsp://me:secret@10.0.0.7/live"))
    book.add(camera_config(None, "usb:0"))
    book.pause("porch", paused=True)
    again = {camera.name: camera for camera in CameraBook(tmp_path)}
    assert set(again) == {"porch", "usb-0"}
    assert again["porch"].paused
    assert again["porch"].uri == "rtsp://me:secret@10.0.0.7/live"
    assert "secret" not in again["porch"].shown_uri
    assert stat.S_IMODE((tmp_path / "cameras.toml").stat().st_mode) == 0o600
    with pytest.raises(UserError, match="porch"):
        book.add(camera_config("porch", "test:"))
    book.remove("porch")
    with pytest.raises(NotFoundError, match="usb-0"):
        CameraBook(tmp_path).remove("porch")


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "-x", "x" * 65, "a\nb"])
def test_a_camera_has_a_plain_name(name: str) -> None:
    with pytest.raises(UserError):
        camera_config(name, "test:")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(SourceError):
        camera_config("x", "gopher://hall")


@pytest.mark.parametrize(
    "text", ["[[camera]\n", '[[camera]]\nname = "a"\n', '[[camera]]\nname = 3\nuri = "test:"\n', "camera = 7\n"]
)
def test_a_damaged_book_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "cameras.toml").write_text(text)
    with pytest.raises(SettingsError, match=r"cameras\.toml"):
        CameraBook(tmp_path)


@given(st.integers(0, 2**32), st.integers(1, 2000))
def test_waits_grow_and_stay_within_bounds(seed: int, tries: int) -> None:
    backoff = Backoff(0.5, 3.0, random.Random(seed))
    waits = [backoff.next() for _ in range(min(tries, 100))]
    assert all(0.375 <= wait <= 3.0 for wait in waits)
    assert all(wait >= 2.25 for wait in waits[3:])
    backoff.reset()
    assert backoff.next() <= 0.5


def frame(age: float = 0.0) -> Frame:
    return Frame(np.zeros((2, 2, 3), np.uint8), 0.0, 0, time.monotonic() - age, 0.0)


def segment() -> Segment:
    counts = SegmentCounts(decoded=9)
    return Segment("c", "s", 0, 0.0, 1.0, CutReason.SCENE_CUT, False, False, None, 0.0, (), 0, counts)


def test_a_late_reader_gets_the_newest_frame_and_every_segment() -> None:
    channel = Channel(8, Mode.LIVE_LATENCY, max_age=0.5)
    newest = frame()
    for item in (frame(), frame(), segment(), frame(), frame(), newest):
        channel.put(item)
    assert channel.fill == 6
    assert isinstance(channel.get(), Frame)  # the last of its segment
    closed = channel.get()
    assert isinstance(closed, Segment)
    assert closed.counts.dropped == 1
    assert channel.get() is newest
    channel.put(frame(age=0.6))  # too old, though nothing newer waits
    channel.put(segment())
    closed = channel.get()
    assert isinstance(closed, Segment)
    assert closed.counts.dropped == 3
    assert channel.dropped == 4


def test_a_recording_waits_for_its_reader() -> None:
    channel = Channel(2, Mode.OFFLINE_QUALITY, max_age=0.5)
    items = [frame(age=10), frame(age=9), frame(age=8), segment()]
    writer = threading.Thread(target=lambda: [channel.put(item) for item in items])
    writer.start()
    time.sleep(0.05)
    assert channel.fill == 2
    assert [channel.get() for _ in items] == items
    writer.join()
    assert channel.dropped == 0
