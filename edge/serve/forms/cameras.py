"""Cameras."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form


class Camera(Form):
    """A camera as it is now."""

    name: str
    uri: str
    state: str = Field(description="connecting, live, stalled, failed, paused or ended")
    detail: str
    since: str | None
    last_frame: str | None
    fps: float
    width: int
    height: int
    segments: int
    dropped: int
    enabled: bool
    paused: bool
    pushed: bool


class NewCamera(Form):
    """A camera to add."""

    name: str = Field(min_length=1, max_length=64)
    uri: str = Field(min_length=1, max_length=2000, description="rtsp://…, http://…, /dev/video0, a file, test:")
