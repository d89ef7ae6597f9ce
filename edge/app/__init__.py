"""The composition root: builds the rooms and owns what runs in them."""

from edge.app.cameras import CameraBook, CameraConfig, camera_config
from edge.app.events import Event, Events
from edge.app.forgetting import forget
from edge.app.pauses import Pause, PauseBook
from edge.app.rooms import Rooms, build_head, build_text_embedder, open_rooms
from edge.app.service import Service, open_service
from edge.app.watch import Watch, WatchReport

__all__ = [
    "CameraBook",
    "CameraConfig",
    "Event",
    "Events",
    "Pause",
    "PauseBook",
    "Rooms",
    "Service",
    "Watch",
    "WatchReport",
    "build_head",
    "build_text_embedder",
    "camera_config",
    "forget",
    "open_rooms",
    "open_service",
]
