"""Choosing the few pictures that are kept of a segment, while it runs and without keeping its frames."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import cv2
import numpy as np

from edge.types.media import Image

_LONGER_PX = 960  # px: candidates are kept no larger than a key frame is stored
_BETTER = 1.1  # a frame must be this much better than the best so far: else the earlier one stays
_ENTRANCES = 4  # candidates kept of moments at which someone appeared


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A frame that may become a key frame."""

    at: float  # UTC POSIX seconds
    image: Image
    tracks: frozenset[int]  # numbers of the tracklets that are seen in it
    value: float  # how well it shows people and things


class KeyFrameChooser:
    """Keeps the best frame, the first frames of people who appear, and the last frame: at most six small pictures."""

    def __init__(self) -> None:
        self._best: Candidate | None = None
        self._last: Candidate | None = None
        self._entrances: list[Candidate] = []

    def offer(self, at: float, image: Image, tracks: Collection[int], value: float, *, entrance: bool) -> None:
        """Consider a frame.

        Args:
            at: UTC POSIX seconds.
            image: (H, W, 3) BGR; held until the next one.
            tracks: what is seen in it.
            value: larger is better.
            entrance: someone is seen for the first time, and it is not the first frame.
        """
        candidate = Candidate(at, image, frozenset(tracks), value)
        better = self._best is None or value > _BETTER * self._best.value
        small = replace(candidate, image=_small(image)) if better or entrance else candidate
        if better:
            self._best = small
        if entrance:
            self._entrances.append(small)
            if len(self._entrances) > _ENTRANCES:
                self._entrances.remove(min(self._entrances, key=lambda kept: (kept.value, -kept.at)))
        self._last = candidate

    def choose(self, most: int, tracks: Collection[int]) -> tuple[Candidate, ...]:
        """The key frames, in order of time.

        Args:
            most: how many at most.
            tracks: numbers that proved to be someone or something: an entrance of none of them is no reason to keep a
                frame.
        """
        if self._best is None or self._last is None:
            return ()
        real = frozenset(tracks)
        chosen = [self._best]
        arrivals = sorted(self._entrances, key=lambda kept: (-len(kept.tracks & real), -kept.value, kept.at))
        for candidate in [*(arrivals[:1]), self._last, *arrivals[1:]]:
            if len(chosen) >= most:
                break
            new_people = candidate.tracks & real
            if any(candidate.at == other.at for other in chosen):
                continue
            if candidate is self._last and any(new_people == other.tracks & real for other in chosen):
                continue  # the end looks like what is kept already
            if candidate is not self._last and not new_people:
                continue
            chosen.append(candidate)
        chosen.sort(key=lambda kept: kept.at)
        return tuple(replace(kept, image=_small(kept.image)) if kept is self._last else kept for kept in chosen)


def _small(image: Image) -> Image:
    height, width = image.shape[:2]
    scale = _LONGER_PX / max(height, width)
    if scale >= 1:
        return image
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
