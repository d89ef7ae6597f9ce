"""Ribbon-cable cameras of a Raspberry Pi, through picamera2 (which Raspberry Pi OS brings; it is not on PyPI's wheels)."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import numpy as np

from edge.capture.push import PushFeed
from edge.clock import monotonic
from edge.errors import SourceError

_SIZE = (1280, 720)  # width, height, px


class CsiCamera:
    """One camera, opened and running."""

    sound = False

    def __init__(self, number: int) -> None:
        """Open it.

        Args:
            number: 0 for the first connector.

        Raises:
            SourceError: picamera2 is not installed, or there is no such camera.
        """
        shown = f"csi:{number}"
        try:
            library: Any = importlib.import_module("picamera2")
        except ImportError as error:
            raise SourceError(
                shown,
                f"{shown} needs picamera2: `sudo apt install python3-picamera2`, "
                "in an environment made with --system-site-packages.",
            ) from error
        try:
            self._camera = library.Picamera2(number)
            # picamera2 names formats after the order in a register: RGB888 gives B, G, R in memory.
            self._camera.configure(
                self._camera.create_video_configuration(main={"size": _SIZE, "format": "RGB888"}, buffer_count=4)
            )
            self._camera.start()
        except Exception as error:  # the library raises classes of its own that have no common root
            raise SourceError(
                shown,
                f"The camera {shown} cannot be started ({error}): check its cable, and that nothing else uses it.",
            ) from error
        self.size = _SIZE
        self._closed = False

    def make(self, feed: PushFeed, closing: threading.Event) -> None:
        """Push every picture until `closing` is set; the camera sets the pace."""
        while not closing.is_set():
            image = self._camera.capture_array("main")
            feed.push_picture(np.ascontiguousarray(image[:, :, :3], dtype=np.uint8), monotonic())

    def close(self) -> None:
        """Let go of the camera; may be called again."""
        if not self._closed:
            self._closed = True
            self._camera.stop()
            self._camera.close()
