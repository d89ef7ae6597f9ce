"""Still images: a short segment with one picture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from edge.capture.picture import Picture
from edge.clock import monotonic
from edge.errors import SourceError
from edge.types.media import Image

STILL_S = 1.0  # a still image stands for this long, s

_MAX_BYTES = 256 << 20  # larger files are not still images
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM", b"II*\0", b"MM\0*")
_MOVING_SUFFIXES = {".mjpeg", ".mjpg"}  # JPEGs one after the other
_JPEG_END = b"\xff\xd9"
_PNG_END = b"IEND"
_UNSENT_GREY = 128  # what JPEG decoders fill in for rows that never arrived
_WHITE = 255.0


def is_still(path: Path, head: bytes) -> bool:
    """Whether a file that begins with `head` is a still image."""
    if path.suffix.lower() in _MOVING_SUFFIXES:
        return False
    return head.startswith(_MAGIC) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP")


def read_still(path: Path) -> tuple[Image, int]:
    """Decode a still image.

    Orientation of EXIF is applied, grey becomes BGR, transparency is laid on white, 16 bits become 8. The rows of a
    JPEG that never arrived are cut off.

    Returns:
        Upright BGR, and 1 if the file was cut short (else 0).

    Raises:
        SourceError: nothing of it can be decoded.
    """
    if path.stat().st_size > _MAX_BYTES:
        raise SourceError(str(path), f"“{path.name}” is too large for a still image: make it smaller than 256 MB.")
    data = path.read_bytes()
    short = _cut_short(data)
    partial = short and data.startswith(_MAGIC[0])
    if partial:
        # With an end to it the decoder gives what arrived; without, it may give nothing.
        data = data.rstrip(b"\0") + _JPEG_END
    image = _decoded(np.frombuffer(data, np.uint8))
    if image is None:
        raise SourceError(str(path), f"“{path.name}” holds no readable picture: copy it again from where it came.")
    return (_arrived(image) if partial else image), int(short)


def still_pictures(image: Image, faults: int) -> Iterator[Picture]:
    """The one picture of a still image."""
    yield Picture(image, 1.0, 0.0, STILL_S, 0, monotonic(), faults)


def _decoded(buffer: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Image | None:
    try:
        raw = cv2.imdecode(buffer, cv2.IMREAD_UNCHANGED)
        if raw is not None and raw.ndim == 3 and raw.shape[2] == 4:  # BGRA
            scale = {1: 255.0, 2: 65535.0}.get(raw.dtype.itemsize, 1.0)
            part = raw.astype(np.float32) / scale
            alpha = part[:, :, 3:]
            return np.asarray(np.rint((part[:, :, :3] * alpha + (1 - alpha)) * _WHITE), dtype=np.uint8)
        # Only this mode applies the orientation of EXIF.
        image = cv2.imdecode(buffer, cv2.IMREAD_COLOR)
    except cv2.error:
        return None
    return None if image is None else np.asarray(image, dtype=np.uint8)


def _cut_short(data: bytes) -> bool:
    if data.startswith(_MAGIC[0]):
        return _JPEG_END not in data[-64:] and _JPEG_END not in data[len(data) // 2 :]
    if data.startswith(_MAGIC[1]):
        return _PNG_END not in data[-64:]
    return False


def _arrived(image: Image) -> Image:
    """Without the edge rows or columns that never arrived (after turning upright they may lie on any side)."""
    unsent = (image == _UNSENT_GREY).all(axis=2)
    rows = np.flatnonzero(~unsent.all(axis=1))
    columns = np.flatnonzero(~unsent.all(axis=0))
    if not len(rows) or not len(columns):
        return image
    return np.ascontiguousarray(image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1])
