"""`search --like`: moments that look like another one, or like a picture in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np

from edge.errors import NotFoundError, SourceError
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.perceive import build_scene_embedder
from edge.recall import Filters, Result, like, similar
from edge.settings import Settings
from edge.types.records import Kind, parse_id


def look_alikes(store: Store, settings: Settings, what: str, filters: Filters, k: int) -> list[Result]:
    """The moments that look most like something.

    Args:
        store: the memory.
        settings: all.
        what: id of a moment or of a key frame, or the path of a picture.
        filters: what may be looked at.
        k: how many.

    Raises:
        NotFoundError: there is no such moment, camera or file.
        SourceError: the file is no picture.
        ModelError: pictures cannot be compared for want of the network.
    """
    try:
        kind, number = parse_id(what)
    except ValueError:
        return _like_file(store, settings, Path(what), filters, k)
    if kind is Kind.KEY_FRAME:
        shown = store.key_frame(number).trace
        if shown is None:
            raise NotFoundError(what, f"{what} belongs to no moment; give the id of a moment, such as t12.")
        return similar(store, shown, filters, k)
    if kind is not Kind.TRACE:
        raise NotFoundError(what, f"{what} is neither a moment nor a picture; give an id such as t12 or k4, or a file.")
    return similar(store, number, filters, k)


def _like_file(store: Store, settings: Settings, path: Path, filters: Filters, k: int) -> list[Result]:
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise NotFoundError(
            str(path),
            f"“{path}” is neither the id of a moment (t12) nor a picture that can be read ({error.strerror}).",
        ) from error
    picture: Any = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if picture is None:
        raise SourceError(str(path), f"“{path}” is no picture; give a JPEG, PNG or WebP file.")
    embedder = build_scene_embedder(Catalog.load(settings.infer), Runtime(settings.infer), settings.perceive)
    return like(store, embedder.embed(picture), embedder.key, filters, k)
