"""One decoded picture: looked at small and grey, made into an image only when it is chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import av
import cv2
import numpy as np
from av.video.reformatter import VideoReformatter
from numpy.typing import NDArray

from edge.capture.cuts import Grey
from edge.types.media import Image

CUT_SIZE = (64, 36)  # width, height of the grey picture for cuts
TILE_SIZE = (32, 32)  # width, height of the grey picture for near-duplicates: a cell averages away sensor noise
_SAR_RANGE = (0.2, 5.0)  # sample aspect ratios outside of this are mistakes
# Formats whose first plane is 8-bit luma: it is read where it lies.
_LUMA_FIRST = frozenset(
    ("gray", "nv12", "nv21", *(f"yuv{j}{s}p" for j in ("", "j") for s in ("420", "422", "444", "440", "411")))
)


@dataclass(slots=True, eq=False)
class Picture:
    """A picture on the media clock."""

    content: av.VideoFrame | Image  # as decoded, or already upright BGR
    aspect: float  # sample aspect ratio, width : height of one sample
    time: float  # media s
    duration: float  # s
    index: int  # position in the source
    captured: float  # monotonic s
    faults: int = 0  # packets that could not be decoded since the picture before it
    dropped: int = 0  # frames that a live source dropped since the picture before it
    _cut_grey: Grey | None = field(default=None, repr=False)  # computed once

    @property
    def end(self) -> float:
        """Media time at which it stops being shown, s."""
        return self.time + self.duration

    @property
    def cut_grey(self) -> Grey:
        """(36, 64) grey."""
        if self._cut_grey is None:
            self._cut_grey = self._grey(CUT_SIZE)
        return self._cut_grey

    def tile_grey(self) -> Grey:
        """(32, 32) grey."""
        return self._grey(TILE_SIZE)

    def image(self, max_side: int) -> Image:
        """Upright BGR with square pixels, the longer side at most `max_side` px."""
        if isinstance(self.content, np.ndarray):
            width, height = fitted(self.content.shape[1], self.content.shape[0], 1.0, max_side)
            if (height, width) == self.content.shape[:2]:
                return self.content
            return np.asarray(cv2.resize(self.content, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        frame = self.content
        width, height = fitted(frame.width, frame.height, self.aspect, max_side)
        # A converter of its own: the frame's would be shared by the threads that look at a picture.
        convert = VideoReformatter()
        shaped = convert.reformat(frame, width=width, height=height, format="bgr24", interpolation="AREA", threads=1)
        bgr = shaped.to_ndarray()
        return upright(np.asarray(bgr, dtype=np.uint8), display_matrix(frame))

    def _grey(self, size: tuple[int, int]) -> Grey:
        plane = luma(self.content)
        return np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def luma(content: av.VideoFrame | Image) -> Grey:
    """The brightness of a picture as it lies in memory: (H, W), not turned, samples as stored."""
    if isinstance(content, np.ndarray):
        return np.asarray(cv2.cvtColor(content, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
    if content.format.name in _LUMA_FIRST:
        plane: Any = content.planes[0]
        rows: Grey = np.frombuffer(plane, np.uint8)[: plane.height * plane.line_size].reshape(
            plane.height, plane.line_size
        )
        return rows[:, : plane.width]
    return np.asarray(content.reformat(format="gray8").to_ndarray(), dtype=np.uint8)


def fitted(width: int, height: int, aspect: float, max_side: int | None) -> tuple[int, int]:
    """Width and height with square pixels, the longer side at most `max_side`; nothing is enlarged in height."""
    wide = width * aspect
    scale = min(1.0, max_side / max(wide, height)) if max_side else 1.0
    return max(1, round(wide * scale)), max(1, round(height * scale))


def sane_aspect(aspect: Fraction | None) -> float:
    """A sample aspect ratio to calculate with; 1.0 for one that is absent or absurd."""
    if not aspect:
        return 1.0
    value = float(aspect)
    return value if _SAR_RANGE[0] <= value <= _SAR_RANGE[1] else 1.0


def display_matrix(frame: av.VideoFrame) -> NDArray[np.int32] | None:
    """The (3, 3) matrix, in 16.16 fixed point, that turns the stored picture upright; None if there is none."""
    data: Any = frame.side_data.get("DISPLAYMATRIX")
    if data is None:
        return None
    return np.frombuffer(bytes(data), np.int32).reshape(3, 3)


def turns(matrix: NDArray[np.int32] | None) -> bool:
    """Whether the matrix exchanges width and height."""
    if matrix is None:
        return False
    size = np.abs(matrix[:2, :2].astype(np.int64))
    return bool(size[0, 1] + size[1, 0] > size[0, 0] + size[1, 1])


def upright(image: Image, matrix: NDArray[np.int32] | None) -> Image:
    """Apply a display matrix, to the nearest quarter turn, with its mirroring."""
    if matrix is None:
        return image
    # A row vector (x, y) becomes (a·x + c·y, b·x + d·y) for matrix rows (a, b), (c, d).
    (a, b), (c, d) = matrix[:2, :2].tolist()
    if turns(matrix):
        image = np.swapaxes(image, 0, 1)
        flip_x, flip_y = c < 0, b < 0
    else:
        flip_x, flip_y = a < 0, d < 0
    if flip_x:
        image = image[:, ::-1]
    if flip_y:
        image = image[::-1]
    return np.ascontiguousarray(image)
