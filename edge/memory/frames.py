"""Pictures: how they are encoded, and how frames.db is kept in step with memory.db.

A picture is written before the row that refers to it is committed, and removed after the row is gone, so that a row
without its picture never exists, and a picture without its row is either overwritten by the next commit (ids are given
out by memory.db, and those of a transaction that was not committed are given out again) or removed when the memory is
next opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import cv2
import numpy as np

from edge.errors import StoreError
from edge.memory.database import fetch, transaction
from edge.types.drafts import CommitDraft
from edge.types.media import Image

CROP_QUALITY: Final = 90
DISCARD_BATCH: Final = 64  # pictures removed in one transaction


@dataclass(frozen=True, slots=True)
class Jpeg:
    """An encoded picture."""

    data: bytes
    width: int  # px
    height: int


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a draft, encoded."""

    frames: tuple[Jpeg, ...]  # as CommitDraft.key_frames
    crops: tuple[Jpeg | None, ...]  # as CommitDraft.gallery; None for those that show the crop of a sample
    samples: tuple[Jpeg | None, ...] = ()  # as CommitDraft.samples


def encode(image: Image, *, max_px: int, quality: int) -> Jpeg:
    """Scale a picture down to `max_px` on its longer side if it is larger, and encode it.

    Args:
        image: (H, W, 3) uint8, BGR.
        max_px: px.
        quality: of the JPEG, 0..100.

    Raises:
        StoreError: not a picture.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
        raise StoreError(
            "frames.db",
            f"A picture of shape {image.shape} and type {image.dtype} cannot be kept; its segment was not written.",
        )
    height, width = image.shape[:2]
    scale = max_px / max(height, width)
    if scale < 1:
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
        pixels: Any = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    else:
        pixels = np.ascontiguousarray(image)
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise StoreError(
            "frames.db", f"A picture of {width}×{height} px could not be encoded; its segment was not written."
        )
    return Jpeg(data.tobytes(), width, height)


def encode_draft(draft: CommitDraft, *, max_px: int, quality: int) -> Pictures:
    """Encode all pictures of a draft. Raises as `encode`."""

    def crop(image: Image | None) -> Jpeg | None:
        return None if image is None else encode(image, max_px=max_px, quality=CROP_QUALITY)

    return Pictures(
        tuple(encode(frame.image, max_px=max_px, quality=quality) for frame in draft.key_frames),
        tuple(None if slot.pictured is not None else crop(slot.crop) for slot in draft.gallery),
        tuple(crop(sample.crop) for sample in draft.samples),
    )


def put(frames: apsw.Connection, key_frames: Sequence[tuple[int, Jpeg]], crops: Sequence[tuple[int, Jpeg]]) -> None:
    """Write pictures under the ids that memory.db gave them, in one transaction."""
    if not key_frames and not crops:
        return
    with transaction(frames):
        frames.executemany(
            "insert or replace into frame(id, jpeg) values(?, ?)", [(number, jpeg.data) for number, jpeg in key_frames]
        )
        frames.executemany(
            "insert or replace into crop(id, jpeg) values(?, ?)", [(number, jpeg.data) for number, jpeg in crops]
        )


def remove_orphans(memory: apsw.Connection, frames: apsw.Connection) -> int:
    """Remove pictures whose row was never committed: those with an id that memory.db has not given out yet.

    Returns:
        How many there were.
    """
    removed = 0
    with transaction(memory):  # nobody else can be between a picture and its row
        given = dict(fetch(memory, "select name, seq from sqlite_sequence where name in ('key_frame', 'crop')"))
        with transaction(frames):
            for table, sequence in (("frame", "key_frame"), ("crop", "crop")):
                frames.execute(f"delete from {table} where id > ?", (given.get(sequence, 0),))  # noqa: S608 -- constants
                removed += frames.changes()
    return removed


def remove_discarded(memory: apsw.Connection, frames: apsw.Connection) -> bool:
    """Remove some pictures whose rows are gone.

    Returns:
        Whether there were any.
    """
    gone = fetch(memory, "select kind, picture from discarded limit ?", (DISCARD_BATCH,))
    if not gone:
        return False
    with transaction(frames):
        for kind, picture in gone:
            table = "frame" if kind == "frame" else "crop"
            frames.execute(f"delete from {table} where id = ?", (picture,))  # noqa: S608 -- constants
    with transaction(memory):
        memory.executemany("delete from discarded where kind = ? and picture = ?", gone)
    return True
