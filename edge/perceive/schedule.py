"""Which networks look at a frame: all at what may be new, less at what goes on as it was. Pure.

The object detector looks at every frame while someone is in view whose face is not seen, or the picture changes as a
whole; else at every other one. Faces are looked for whenever people are in view; when all that are known are large,
on a picture of half the sides, and in full again when a body appears that has none of these faces, and every few
seconds. The last frame of a segment is always looked at by both (the Perceiver makes up for it when it closes).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

_NEW_PICTURE = 15.0  # mean absolute grey difference to the frame before, 0..255; a scene cut is above 10
_FRESH_S = 1.0  # an older look at objects says little of now
_FULL_S = 3.0  # faces that are small, and have no body that is seen, are found this late at most
# px of the smaller input: faces of this width and more are found there, too, and their embeddings have a cosine of .95 and
# more to those of the full input (measured: 36 faces of GRID, Intel and EgoBlur; 10th percentile)
_NEAR_PX = 48.0


class FaceLook(Enum):
    """How faces are looked for."""

    NONE = 0
    NEAR = 1  # on a picture of half the sides: a quarter of the cost
    FULL = 2


class Schedule:
    """Decides frame by frame.

    Args:
        near_px: longer side of the face detector's smaller input, px.
    """

    def __init__(self, near_px: float) -> None:
        self._near_px = near_px
        self._objects_at: float | None = None  # UTC POSIX seconds of the last looks
        self._full_at: float | None = None
        self._light = True  # the frame before was not looked at for objects
        self._people = 0
        self._faces: tuple[float, ...] = ()  # widths of the faces in the last look, px

    def objects(self, at: float, change: float) -> bool:
        """Whether the object detector looks at a frame.

        Args:
            at: UTC POSIX seconds.
            change: `Frame.change`.
        """
        due = self._objects_at is None or at - self._objects_at > _FRESH_S
        return due or self._light or change >= _NEW_PICTURE or len(self._faces) < self._people

    def faces(self, at: float, bodies: int | None, longer_px: int) -> FaceLook:
        """How faces are looked for on a frame.

        Args:
            at: UTC POSIX seconds.
            bodies: people that the object detector found on it; None: it did not look.
            longer_px: longer side of the frame.
        """
        large = bool(self._faces) and min(self._faces) * self._near_px / longer_px >= _NEAR_PX
        fresh = self._full_at is not None and at - self._full_at <= _FULL_S
        if bodies is None:
            if not self._people:
                return FaceLook.NONE
            return FaceLook.NEAR if large else FaceLook.FULL
        return FaceLook.NEAR if large and fresh and bodies <= len(self._faces) else FaceLook.FULL

    def note(self, at: float, *, objects: bool, look: FaceLook, people: int, faces: Sequence[float]) -> None:
        """Take in what a frame brought.

        Args:
            at: UTC POSIX seconds.
            objects: the object detector looked.
            look: how faces were looked for.
            people: how many are in view.
            faces: widths of the faces that were found, px.
        """
        self._light = not objects
        if objects:
            self._objects_at = at
        if look is FaceLook.FULL:
            self._full_at = at
        if objects or look is not FaceLook.NONE:
            self._people = people
        if look is not FaceLook.NONE:
            self._faces = tuple(faces)
