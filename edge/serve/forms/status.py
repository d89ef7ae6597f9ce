"""The health of the device and of its memory."""

from __future__ import annotations

from pydantic import Field

from edge.serve.forms.base import Form
from edge.serve.forms.cameras import Camera
from edge.serve.forms.timeline import Working


class Channel(Form):
    """A bounded channel."""

    items: int
    bound: int
    dropped: int


class Memory(Form):
    """How much is remembered."""

    traces: int
    observations: int
    utterances: int
    entities: int
    key_frames: int
    first: str | None
    last: str | None
    bytes: int
    free_bytes: int
    cameras: list[str] = Field(description="whose moments are remembered, also of those that are gone")


class Jobs(Form):
    """What is still made of memories."""

    waiting: dict[str, int] = Field(description="how many, by kind")
    aside: dict[str, int] = Field(description="how many failed too often, by kind")


class You(Form):
    """Who asks."""

    id: str
    name: str
    scopes: list[str]
    local: bool


class Status(Form):
    """How the device is."""

    device: str
    version: str
    now: str
    started: str
    uptime_s: float
    memory: Memory
    jobs: Jobs
    working: list[Working]
    cpu_percent: float = Field(description="of one core, of this process, since it was last asked")
    load: list[float] = Field(description="of the device: 1, 5, 15 minutes; runnable tasks")
    cores: int
    rss_bytes: int
    temperature_c: float | None
    loop_lag_ms: float
    loop_stalls: int
    channels: dict[str, Channel]
    missing: list[str]
    networks: str
    cameras: list[Camera]
    you: You
