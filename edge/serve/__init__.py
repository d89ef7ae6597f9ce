"""The server: a JSON API, live events, and the pages to see and steer the device with.

The values that the service and the server exchange are here at once; what needs the web and WebRTC stacks is loaded when it is first
asked for, so that commands which serve nothing start without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from edge.serve.access import requires
    from edge.serve.http import build_app
    from edge.serve.listen import server_config
    from edge.serve.peers import PeerLimits
    from edge.serve.phone import phone_router
    from edge.serve.problems import Problem, problem
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

_LATER = {
    "PeerLimits": "peers",
    "Problem": "problems",
    "build_app": "http",
    "phone_router": "phone",
    "problem": "problems",
    "requires": "access",
    "server_config": "listen",
    "whep_router": "whep",
    "whip_router": "whip",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
