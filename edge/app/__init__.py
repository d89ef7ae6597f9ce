"""The composition root: builds the rooms and owns what runs in them."""

from edge.app.rooms import Rooms, build_text_embedder, open_rooms
from edge.app.watch import Watch, WatchReport

__all__ = ["Rooms", "Watch", "WatchReport", "build_text_embedder", "open_rooms"]
