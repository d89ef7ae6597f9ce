"""The server: a JSON API, live events, and the pages to see and steer the device with."""

from __future__ import annotations

from edge.serve.access import requires
from edge.serve.http import build_app
from edge.serve.listen import server_config
from edge.serve.peers import PeerLimits
from edge.serve.phone import phone_router
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
from edge.serve.whep import whep_router
from edge.serve.whip import whip_router

__all__ = [
    "Auth",
    "CameraState",
    "CameraStatus",
    "Device",
    "EventLike",
    "EventsLike",
    "Fill",
    "PeerLimits",
    "Problem",
    "PushSourceLike",
    "Scope",
    "ServiceLike",
    "Vitals",
    "build_app",
    "phone_router",
    "problem",
    "requires",
    "server_config",
    "whep_router",
    "whip_router",
]
