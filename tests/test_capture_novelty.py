"""What is new in a live picture is looked at at once; what always moves is not."""

from __future__ import annotations

import threading
import time

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edge.capture import PushPort, segments
from edge.capture.novelty import Novelty
from edge.perceive.schedule import FaceLook, Schedule
from edge.settings import CaptureSettings
from edge.types.media import Frame, Mode
from tests.media import photo, resized

SETTINGS = CaptureSettings()


def test_somebody_who_appears_between_two_samples_is_seen_at_once() -> None:
    room, somebody = resized(photo("coffee"), 640, 480), resized(photo("astronaut"), 160, 160)
    grain = np.random.default_rng(0).integers(0, 6, (8, 480, 640, 3), np.uint8)
    port, stop = PushPort(SETTINGS), threading.Event()
    port.accept(True)
    publisher = port.publish()
    appeared: list[float] = []

    empty = [np.minimum(room, 249) + one for one in grain]
    taken = [picture.copy() for picture in empty]
    for picture in taken:
        picture[300:460, 460:620] = somebody

    def publish() -> None:
        began, number = time.monotonic(), 0
        while (now := time.monotonic()) < began + 1.8:
            there = now >= began + 1.15  # samples are due at 1.0 and 1.5 s
            if there and not appeared:
                appeared.append(now)
            publisher.push_picture((taken if there else empty)[number % 8], now)
            number += 1
            time.sleep(1 / 30)
        stop.set()

    thread = threading.Thread(target=publish)
    thread.start()
    assert port.wait(5)
    with port.open("hall") as source:
        items = list(segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=stop))
    thread.join()
    frames = [item for item in items if isinstance(item, Frame)]
    new = [frame for frame in frames if frame.news]
    assert len(new) == 1
    assert 0.0 <= new[0].captured - appeared[0] < 0.2
    before = [frame for frame in frames if frame.captured < appeared[0]]
    assert 1 <= len(before) <= 3, "a calm room is looked at twice a second"


@given(st.lists(st.floats(0, 255), max_size=300), st.integers(1, 60))
def test_the_looks_between_samples_are_few_whatever_moves(changes: list[float], fps: int) -> None:
    novelty, between = Novelty(), 0
    for number, change in enumerate(changes):
        at = number / fps
        if number % max(1, fps // 2) == 0:
            novelty.note(at, change, between=False)
        elif novelty.is_urgent(at, change):
            novelty.note(at, change, between=True)
            between += 1
    assert between <= 2 + 0.5 * len(changes) / fps


def test_what_always_moves_is_not_new_but_what_moves_more_is() -> None:
    novelty = Novelty()
    for number in range(20):
        novelty.note(number / 2, 30.0, between=False)
    assert not novelty.is_urgent(9.8, 40.0)
    assert novelty.is_urgent(9.8, 90.0)
    assert not novelty.is_urgent(9.6, 90.0), "a moment after a look"


def test_news_make_every_network_look() -> None:
    schedule = Schedule()
    schedule.note(0.0, objects=True, look=FaceLook.FULL, people=0, faces=0)
    assert not schedule.objects(0.5, 2.0)
    assert schedule.objects(0.5, 2.0, news=True)
    assert schedule.faces(0.5, 0, 2.0) is FaceLook.NONE
    assert schedule.faces(0.5, 0, 2.0, news=True) is FaceLook.FULL
