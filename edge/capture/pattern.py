"""The test source: a camera that moves over a scene made in code, with a short tone every second.

It needs no screen, no device and no network, and never looks the same twice within a minute.
"""

from __future__ import annotations

import threading

import cv2
import numpy as np

from edge.capture.push import PushFeed
from edge.clock import monotonic
from edge.types.media import SAMPLE_RATE, Image, Samples

_FPS = 25
_SIZE = (640, 480)  # width, height of the picture, px
_SCENE = (1280, 960)  # width, height of what the camera moves over, px
_ROUND_S = 60.0  # the camera comes back after this, s
_TONE_HZ, _TONE_S, _LEVEL = 440.0, 0.2, 0.1
_RANDOM_SEED = 20


class Pattern:
    """Makes the test pattern."""

    sound = True
    size = _SIZE

    def __init__(self) -> None:
        self._scene = _scene()

    def make(self, feed: PushFeed, closing: threading.Event) -> None:
        """Push with the clock until `closing` is set."""
        began, number, sent = monotonic(), 0, 0
        while not closing.wait(max(0.0, began + number / _FPS - monotonic())):
            now = monotonic()
            upto = round((now - began) * SAMPLE_RATE)
            feed.push_sound(tone(sent, upto), began + sent / SAMPLE_RATE)
            sent = upto
            feed.push_picture(self.picture(number / _FPS), now)
            number += 1

    def picture(self, at: float) -> Image:
        """The picture at a second: (480, 640, 3) BGR."""
        turn = 2 * np.pi * at / _ROUND_S
        (width, height), (wide, high) = _SIZE, _SCENE
        left = round((wide - width) * (0.5 + 0.49 * np.sin(turn)))
        top = round((high - height) * (0.5 + 0.49 * np.sin(2 * turn)))
        image = self._scene[top : top + height, left : left + width].copy()
        centre = (round(width * (0.5 + 0.3 * np.cos(7 * turn))), round(height * (0.55 + 0.25 * np.sin(11 * turn))))
        cv2.circle(image, centre, 42, (36, 92, 214), -1, cv2.LINE_AA)
        cv2.circle(image, (centre[0] - 12, centre[1] - 14), 10, (150, 190, 245), -1, cv2.LINE_AA)
        words = f"{int(at) // 3600:02}:{int(at) // 60 % 60:02}:{at % 60:05.2f}"
        cv2.putText(image, words, (16, height - 20), cv2.FONT_HERSHEY_SIMPLEX, 1.0, (250, 250, 250), 2, cv2.LINE_AA)
        return image

    def close(self) -> None:
        """Nothing is held."""


def tone(begin: int, end: int) -> Samples:
    """Samples begin..end of a tone that sounds at the beginning of every second."""
    at = np.arange(begin, end) / SAMPLE_RATE
    sounding = np.mod(at, 1.0) < _TONE_S
    return np.asarray(_LEVEL * np.sin(2 * np.pi * _TONE_HZ * at) * sounding, np.float32)


def _scene() -> Image:
    """A landscape: sky, hills in the haze, a meadow with texture at all scales."""
    random = np.random.default_rng(_RANDOM_SEED)
    wide, high = _SCENE
    texture = np.zeros((high, wide), np.float32)
    for cells in (4, 8, 16, 32, 64, 128, 256):
        grain = random.normal(0, 1, (cells * 3 // 4, cells)).astype(np.float32)
        texture += cv2.resize(grain, (wide, high), interpolation=cv2.INTER_CUBIC) / np.sqrt(cells)
    rows = np.linspace(0, 1, high, dtype=np.float32)[:, None, None]
    sky = np.array([225, 185, 140], np.float32) * (1 - rows) + np.array([235, 225, 210], np.float32) * rows
    scene = sky + 12 * texture[:, :, None]
    columns = np.arange(wide)
    for depth, colour in enumerate(((176, 170, 150), (120, 132, 104), (62, 110, 78))):
        phase = random.uniform(0, 2 * np.pi, 3)
        ridge = sum(
            np.sin(columns * (order + 1) * (depth + 1) / 190 + phase[order]) / (order + 1) for order in range(3)
        )
        line = high * (0.38 + 0.17 * depth) + 34 * ridge
        below = np.arange(high)[:, None] > line[None, :]
        ground = np.array(colour, np.float32) + (14 + 10 * depth) * texture[:, :, None]
        scene = np.where(below[:, :, None], ground, scene)
    return np.clip(scene, 0, 255).astype(np.uint8)
