"""Who is in view with a face that can be trusted: scored candidates, and which tracks are one person.

A segment often holds several tracks of one person: they go behind something and come back, or the scene is cut. Tracks
apart in time are joined by average linkage over the cosine of their faces, or because both clearly match the same
entity. Tracks that are in view together, or that clearly match different entities, are never joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edge.identity.galleries import GalleryEditor, usable
from edge.identity.state import GalleryState, Waiting, mean_unit
from edge.settings import IdentitySettings
from edge.types.drafts import EntityKey
from edge.types.evidence import FaceEvidence, SegmentEvidence, Track, Vector
from edge.types.records import Modality, Outcome

PERSON = "person"
_TOUCHING_BOXES = 0.3  # mean overlap with another person's box at which a body is not this person's alone

Ranked = list[tuple[EntityKey, float]]  # best first


@dataclass(slots=True, eq=False)
class Sight:
    """One track with a safe face."""

    track: Track
    face: FaceEvidence
    vector: Vector
    body: Vector | None
    ranked: Ranked
    certain: EntityKey | None = None  # whom it clearly matches on its own

    @property
    def quality(self) -> float:
        """How good the best shot is: the norm of its embedding, less when the face is turned."""
        best = self.face.shots[0] if self.face.shots else None
        return 0.0 if best is None else best.norm * (1.0 - min(best.yaw, 3.0) / 3.0)


@dataclass(slots=True, eq=False)
class Person:
    """Tracks, apart in time, that are one person, and what is decided about them."""

    sights: list[Sight]
    vector: Vector
    ranked: Ranked
    outcome: Outcome | None = None
    entity: EntityKey | None = None
    reason: str = ""
    margin: float | None = None
    joined: list[Waiting] = field(default_factory=list)

    @property
    def embedder(self) -> str:
        """Of the faces."""
        return self.sights[0].face.embedder

    @property
    def tracks(self) -> list[Track]:
        """In the order of time."""
        return [sight.track for sight in self.sights]

    @property
    def quality(self) -> float:
        """Of the best sight."""
        return max(sight.quality for sight in self.sights)

    def meets(self, other: Person) -> bool:
        """Whether both are in view at the same time."""
        return any(together(one, two) for one in self.tracks for two in other.tracks)

    def score(self, entity: EntityKey) -> float:
        """How well an entity matches, -1 if it is no candidate."""
        return next((score for who, score in self.ranked if who == entity), -1.0)


def together(one: Track, other: Track) -> bool:
    """Whether two tracks are in view at the same time."""
    return max(one.start, other.start) <= min(one.end, other.end)


class Sights:
    """The sights of one segment, with their candidates."""

    def __init__(
        self, evidence: SegmentEvidence, state: GalleryState, settings: IdentitySettings, editor: GalleryEditor
    ) -> None:
        self._camera = evidence.camera
        self._state = state
        self._settings = settings
        self._editor = editor
        # An order that does not depend on anchors, so that decisions do not either.
        self.tracks = sorted((track for track in evidence.tracks if track.label == PERSON), key=_canonical)

    def people(self) -> list[Person]:
        """Everybody with a safe face, each once."""
        sights = [sight for track in self.tracks if (sight := self._sight(track)) is not None]
        return [self._person(group) for group in self._linked(sights)]

    def elsewhere(self, tracks: Sequence[Track], entity: EntityKey) -> str | None:
        """The other camera that sees the entity at the time of these tracks."""
        for seen in self._state.elsewhere:
            if seen.entity != entity or seen.camera == self._camera:
                continue
            if any(max(seen.start, track.start) <= min(seen.end, track.end) for track in tracks):
                return seen.camera
        return None

    def _sight(self, track: Track) -> Sight | None:
        face = track.face
        vector = usable(face.embedding) if face is not None and face.safe else None
        if face is None or vector is None:
            return None
        body = usable(track.body) if track.body_embedder and not _crowded(track, self.tracks) else None
        ranked = self._rank(vector, face.embedder, track, body)
        return Sight(track, face, vector, body, ranked, self._certain(track, ranked))

    def _rank(self, vector: Vector, embedder: str, track: Track, body: Vector | None) -> Ranked:
        gallery = self._state.galleries.get((Modality.FACE, embedder))
        ranked = gallery.ranked(vector) if gallery is not None else []
        if body is None:
            return ranked
        pending, weight = self._settings.face_pending, self._settings.body_weight
        for place, (entity, score) in enumerate(ranked):
            if score < pending:
                break
            known = self._state.entities.get(entity)
            if known is None or abs(track.start - known.last_seen) > self._settings.body_fresh_s:
                continue
            bodily = self._editor.score((Modality.BODY, track.body_embedder), entity, body)
            if bodily is not None:
                # Other clothes may bring doubt; they alone never make somebody another person.
                ranked[place] = (entity, max(pending, (1 - weight) * score + weight * bodily))
        return sorted(ranked, key=lambda item: (-item[1], item[0]))

    def _certain(self, track: Track, ranked: Ranked) -> EntityKey | None:
        if not ranked:
            return None
        entity, score = ranked[0]
        usual = self._settings.face_margin
        clear = score >= self._settings.face_match and all(
            score - value >= self._state.margin(entity, who, usual) for who, value in ranked[1:]
        )
        return entity if clear and self.elsewhere([track], entity) is None else None

    def _linked(self, sights: list[Sight]) -> list[list[Sight]]:
        """Groups of sights that are one person: agglomerative, average linkage."""
        count = len(sights)
        links = np.full((count, count), -1.0)
        for i in range(count):
            for j in range(i + 1, count):
                links[i, j] = links[j, i] = _link(sights[i], sights[j])
        groups = [[index] for index in range(count)]
        while True:
            best, pair = self._settings.face_match, None
            for a in range(len(groups)):
                for b in range(a + 1, len(groups)):
                    block = links[np.ix_(groups[a], groups[b])]
                    names = {sights[index].certain for index in groups[a] + groups[b]} - {None}
                    alike = float(block.mean())
                    allowed = len(names) <= 1 and block.min() > -1.0
                    if allowed and (alike > best or (pair is None and alike == best)):
                        best, pair = alike, (a, b)
            if pair is None:
                return [[sights[index] for index in sorted(group)] for group in groups]
            groups[pair[0]] += groups.pop(pair[1])

    def _person(self, sights: list[Sight]) -> Person:
        first = sights[0]
        if len(sights) == 1:
            return Person(sights, first.vector, first.ranked)
        vector = mean_unit([sight.vector for sight in sights])
        scores = dict(self._rank(vector, first.face.embedder, first.track, first.body))
        for sight in sights:
            if sight.certain is not None:
                scores[sight.certain] = max(scores[sight.certain], sight.ranked[0][1])
        return Person(sights, vector, sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _link(one: Sight, other: Sight) -> float:
    """How alike two sights are; -1: they cannot be one person, whoever they match."""
    if together(one.track, other.track) or one.face.embedder != other.face.embedder:
        return -1.0
    alike = float(one.vector @ other.vector)
    if one.certain is not None and one.certain == other.certain:
        alike = max(alike, min(one.ranked[0][1], other.ranked[0][1]))
    return max(alike, -0.999)


def _canonical(track: Track) -> tuple[float, float, bytes, tuple[tuple[float, tuple[float, ...]], ...], str]:
    """An order of tracks that does not depend on their anchors, as long as anything else tells them apart."""
    face = track.face.embedding if track.face is not None else None
    return (track.start, track.end, b"" if face is None else face.tobytes(), track.boxes, track.anchor)


def _crowded(track: Track, tracks: Sequence[Track]) -> bool:
    """Whether another person's box covers much of this one's: then the body embedding is of both."""
    mine = dict(track.boxes)
    for other in tracks:
        if other is track:
            continue
        shared = [_overlap(mine[at], box) for at, box in other.boxes if at in mine]
        if shared and float(np.mean(shared)) > _TOUCHING_BOXES:
            return True
    return False


def _overlap(one: Sequence[float], other: Sequence[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = width * height
    areas = (one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1])
    return both / max(areas - both, 1e-9)
