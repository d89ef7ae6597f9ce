"""Which networks look at a frame: all at what may be new, less at what goes on as it was. Pure.

The object detector looks at every frame while someone is in view whose face is not seen, or the picture changes as a
whole, or a live one shows something new in a part; else at every third. Faces are looked for whenever people are in view:
around the known ones, and in the whole picture again when a body appears that has none of these faces, and every few
seconds. Where nobody is seen, a face without a body is looked for now and then. The last frame of a segment is always
looked at by both (the Perceiver makes up for it when it closes).
"""

from __future__ import annotations

from enum import Enum

_NEW_PICTURE = 15.0  # mean absolute grey difference to the frame before, 0..255; a scene cut is above 10
_FRESH_S = 1.0  # an older look at objects says little of now
_LIGHT_LOOKS = 2  # frames in a row that only faces are looked for on
_EMPTY_S = 2.0  # a face whose body the object detector does not see is found this late at most
_FULL_S = 3.0  # faces that are small, and have no body that is seen, are found this late at most


class FaceLook(Enum):
    """How faces are looked for."""

    NONE = 0
    AROUND = 1  # around those that were seen in the last look
    FULL = 2


class Schedule:
    """Decides frame by frame."""

    def __init__(self) -> None:
        self._objects_at: float | None = None  # UTC POSIX seconds of the last looks
        self._full_at: float | None = None
        self._light = _LIGHT_LOOKS  # frames in a row that were not looked at for objects
        self._people = 0
        self._faces = 0  # how many the last look found

    def objects(self, at: float, change: float, *, news: bool = False) -> bool:
        """Whether the object detector looks at a frame.

        Args:
            at: UTC POSIX seconds.
            change: `Frame.change`.
            news: `Frame.news`.
        """
        if self._objects_at is None or news or change >= _NEW_PICTURE or self._faces < self._people:
            return True
        return self._light >= _LIGHT_LOOKS or at - self._objects_at > _FRESH_S * _LIGHT_LOOKS

    def faces(self, at: float, bodies: int | None, change: float, *, news: bool = False) -> FaceLook:
        """How faces are looked for on a frame.

        Args:
            at: UTC POSIX seconds.
            bodies: people that the object detector found on it; None: it did not look.
            change: `Frame.change`.
            news: `Frame.news`.
        """
        if news:
            return FaceLook.FULL
        same = self._full_at is not None and at - self._full_at <= _FULL_S and change < _NEW_PICTURE
        if bodies is None:
            if not self._people:
                return FaceLook.NONE
            return FaceLook.AROUND if self._faces and same else FaceLook.FULL
        empty = not bodies and not self._people and change < _NEW_PICTURE
        if empty and self._full_at is not None and at - self._full_at <= _EMPTY_S:
            return FaceLook.NONE
        return FaceLook.AROUND if same and self._faces > 0 and bodies <= self._faces else FaceLook.FULL

    def note(self, at: float, *, objects: bool, look: FaceLook, people: int, faces: int) -> None:
        """Take in what a frame brought.

        Args:
            at: UTC POSIX seconds.
            objects: the object detector looked.
            look: how faces were looked for.
            people: how many are in view.
            faces: how many were found.
        """
        self._light = 0 if objects else self._light + 1
        if objects:
            self._objects_at = at
        if look is FaceLook.FULL:
            self._full_at = at
        if objects or look is not FaceLook.NONE:
            self._people = people
        if look is not FaceLook.NONE:
            self._faces = faces
