"""The server: a JSON API, live events, and the pages to see and steer the device with."""

from __future__ import annotations

from edge.serve.access import requires
from edge.serve.http import build_app
from edge.serve.listen import server_config
from edge.serve.problems import Problem, problem
from edge.serve.protocols import (
    Auth,
    CameraState,
    CameraStatus,
    Device,
    EventLike,
    EventsLike,
    Fill,
    PushSourceLike,
    Scope,
    ServiceLike,
    Vitals,
)

__all__ = [
    "Auth",
    "CameraState",
    "CameraStatus",
    "Device",
    "EventLike",
    "EventsLike",
    "Fill",
    "Problem",
    "PushSourceLike",
    "Scope",
    "ServiceLike",
    "Vitals",
    "build_app",
    "problem",
    "requires",
    "server_config",
]
