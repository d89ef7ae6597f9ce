"""Faces of the open segment, for the live view: who seems to be there now, before the segment's evidence is whole.

Nothing is decided or kept by it: the evidence of a segment is the same whether anybody looked or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from edge.perceive.embed import Embedder
from edge.perceive.gates import geometry_fault, shot_fault
from edge.perceive.shots import shot_quality
from edge.perceive.tracking import Tracklet
from edge.settings import PerceiveSettings
from edge.types.evidence import Vector

_AT_ONCE = 2  # faces that are embedded for one frame, at most: each takes as long as a detector on a small device
_BETTER = 1.15  # a face is embedded anew when it is better than the last by this factor


@dataclass(frozen=True, slots=True)
class _Known:
    quality: float
    vector: Vector | None  # None: the face was not clear enough


@dataclass(slots=True)
class Glimpses:
    """One segment's faces as far as they are embedded."""

    embedder: Embedder
    settings: PerceiveSettings
    _known: dict[int, _Known] = field(default_factory=dict)  # by number of the tracklet

    def of(self, people: Sequence[Tracklet]) -> dict[int, Vector]:
        """The faces of people that are good enough to be known by.

        Args:
            people: tracklets that are in view.

        Returns:
            Number of the tracklet → unit vector.

        Raises:
            InferenceError: the network failed.
        """
        left = _AT_ONCE
        for tracklet in people:
            good = [s for s in tracklet.shots if s.crop is not None and not geometry_fault(s, self.settings)]
            if not good or not left:
                continue
            best = max(good, key=lambda shot: (shot_quality(shot), shot.at))
            worth, known = shot_quality(best), self._known.get(tracklet.number)
            if best.crop is None or (known is not None and worth < known.quality * _BETTER):
                continue
            left -= 1
            ((vector, norm),) = self.embedder.embed([best.crop])
            usable = not shot_fault(replace(best, embedding=vector, norm=norm), self.settings)
            if usable or known is None:
                self._known[tracklet.number] = _Known(worth, vector if usable else None)
        return {
            tracklet.number: known.vector
            for tracklet in people
            if (known := self._known.get(tracklet.number)) is not None and known.vector is not None
        }
