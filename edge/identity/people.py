"""Who is seen: from the faces of one segment to decisions about its people. Pure: same input, same output.

Invariants (each has a property test):

* only a safe face decides: an unsafe one, or a person without one, gets nobody, writes nothing and leaves nothing
  waiting;
* a match needs `face_match` (mean of the best three slots, each track represented by the mean of its best shots) and
  `face_margin` over the second candidate; between `face_pending` and `face_match` nothing is decided;
* two tracks that are seen at the same time never get one entity; the better one has it and the other is a contradiction
  (a mirror, a screen); tracks apart in time may share one, also a new one;
* nobody is seen by two cameras at once: such a match is a contradiction, refused and recorded;
* the body is a weak witness: it shifts a face's score by its small weight while it is fresh, and never speaks alone;
* the outcome depends neither on the order of tracks nor on their anchors;
* vectors of different embedders are never compared.

Doubtful evidence waits. It is decided when a later sighting agrees with it: together they match somebody (the mean
over more shots separates same from different better: measured), or, alike three times and still unlike anybody, they
are somebody new. To split one person in two can be put right by a merge; two people in one gallery spoil each other,
so doubt never merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from edge.identity.galleries import GalleryEditor, usable
from edge.identity.sights import Person, Sight, Sights
from edge.identity.state import GalleryState, Waiting, mean_unit
from edge.settings import IdentitySettings
from edge.types.drafts import DecisionDraft, EntityKey, NewEntity, PendingWrite, SampleDraft
from edge.types.evidence import FaceEvidence, SegmentEvidence, Track
from edge.types.records import EntityKind, Modality, Outcome, mention

ALIKE_TO_BE_NEW = 3  # sightings in the doubtful band that agree with each other before they are somebody new
NO_LIMIT = 2.0  # a cosine that nothing reaches
SHOWN_CANDIDATES = 3  # in a decision's evidence
_MANY_WAITING = 8  # at most this many waiting sightings are joined with a new one


@dataclass(slots=True, eq=False)
class People:
    """Decisions about the people who were seen."""

    entities: list[NewEntity] = field(default_factory=list)
    assigned: dict[str, EntityKey | None] = field(default_factory=dict)
    confidence: dict[str, float] = field(default_factory=dict)
    decisions: list[DecisionDraft] = field(default_factory=list)
    pending: list[PendingWrite] = field(default_factory=list)
    pending_used: list[int] = field(default_factory=list)
    count: int = 0  # how many different people are seen, known or not


def resolve_people(
    evidence: SegmentEvidence, state: GalleryState, settings: IdentitySettings, editor: GalleryEditor
) -> People:
    """Decide who the people of a segment are; galleries learn in `editor`."""
    return _Resolver(evidence, state, settings, editor).run()


class _Resolver:
    def __init__(
        self, evidence: SegmentEvidence, state: GalleryState, settings: IdentitySettings, editor: GalleryEditor
    ) -> None:
        self.evidence = evidence
        self.state = state
        self.settings = settings
        self.editor = editor
        self.sights = Sights(evidence, state, settings, editor)
        self.result = People()
        self.used: set[int] = set()

    def run(self) -> People:
        people = self.sights.people()
        self._assign(people)
        known = [person for person in people if person.outcome is Outcome.SAME]
        # The best face is heard first: of one person seen twice at once, the reflection is the worse picture.
        for person in sorted((p for p in people if p.outcome is None), key=lambda p: -p.quality):
            self._judge_open(person, known)
            if person.outcome in (Outcome.SAME, Outcome.NEW):
                known.append(person)
        for person in people:
            self._conclude(person)
        decided = {track.anchor for person in people for track in person.tracks}
        unsafe = [track for track in self.sights.tracks if track.anchor not in decided]
        for track in unsafe:
            self._unsafe(track)
        self.result.count = len(people) + len(unsafe)
        self.result.pending_used = sorted(self.used)
        return self.result

    # -- known people ------------------------------------------------------------------------------------------------

    def _assign(self, people: list[Person]) -> None:
        """Give entities to people, one to one, so that the sum of the scores is largest; settle what is clear."""
        match, margin = self.settings.face_match, self.settings.face_margin
        edges: dict[tuple[int, EntityKey], float] = {}
        for row, person in enumerate(people):
            top = person.ranked[0][1] if person.ranked else -1.0
            for entity, score in person.ranked:
                if score < match or score < top - margin:
                    break
                if self.sights.elsewhere(person.tracks, entity) is None:
                    edges[row, entity] = score
        columns = sorted({entity for _, entity in edges})
        given: dict[int, EntityKey] = {}
        if columns:
            gain = np.zeros((len(people), len(columns)))
            for (row, entity), score in edges.items():
                gain[row, columns.index(entity)] = score
            from scipy.optimize import linear_sum_assignment  # takes half a second, and most commands follow nobody

            for row, column in zip(*linear_sum_assignment(-gain), strict=True):
                if gain[row, column] > 0:
                    given[int(row)] = columns[int(column)]
        # First those who are clear by themselves; then what they take away from others who are in view with them.
        for row, person in enumerate(people):
            self._settle(person, given.get(row), set())
        for row, person in enumerate(people):
            if person.outcome is None:
                taken = {other.entity for other in people if other.outcome is Outcome.SAME and other.meets(person)}
                self._settle(person, given.get(row), taken)

    def _settle(self, person: Person, entity: EntityKey | None, taken: set[EntityKey | None]) -> None:
        match = self.settings.face_match
        if not person.ranked or person.ranked[0][1] < match:
            return
        top, score = person.ranked[0]
        barred = {who for who, value in person.ranked if value >= match and self._barred(person, who)}
        if entity is not None:
            own = person.score(entity)
            rivals = [item for item in person.ranked if item[0] != entity and item[0] not in taken | barred]
            person.margin = own - max((value for _, value in rivals), default=-1.0)
            usual = self.settings.face_margin
            if all(own - value >= self.state.margin(entity, who, usual) for who, value in rivals):
                person.outcome, person.entity = Outcome.SAME, entity
                person.reason = f"The face matches {mention(entity)} ({own:.2f}) and nobody else comes near."
        elif top in barred:
            person.outcome = Outcome.CONFLICT
            camera = self.sights.elsewhere(person.tracks, top)
            where = f"whom the camera “{camera}” sees at the same time"
            person.reason = f"The face matches {mention(top)} ({score:.2f}), {where}."
        elif top in taken:
            person.outcome = Outcome.CONFLICT
            person.reason = f"The face matches {mention(top)} ({score:.2f}), who is seen elsewhere in the same picture."

    def _barred(self, person: Person, entity: EntityKey) -> bool:
        return self.sights.elsewhere(person.tracks, entity) is not None

    # -- doubtful and new people -------------------------------------------------------------------------------------

    def _judge_open(self, person: Person, known: list[Person]) -> None:
        """Decide about somebody who matches nobody clearly."""
        settings = self.settings
        near = max(
            ((float(person.vector @ other.vector), other) for other in known if other.embedder == person.embedder),
            key=lambda item: item[0],
            default=(-1.0, None),
        )
        twice = max(
            (
                float(person.vector @ other.vector)
                for other in known
                if other.embedder == person.embedder and other.meets(person)
            ),
            default=-1.0,
        )
        if twice >= settings.face_match:
            person.outcome = Outcome.CONFLICT
            person.reason = f"The same face ({twice:.2f}) is seen elsewhere in the same picture."
            return
        top, score = person.ranked[0] if person.ranked else (0, -1.0)
        alike = self._alike(person)
        if score >= settings.face_pending:
            if self._together_match(person, top, alike, known):
                return
            stranger = score < settings.face_match and len(alike) + 1 >= ALIKE_TO_BE_NEW
            if not stranger or near[0] >= settings.face_pending:
                person.outcome = Outcome.PENDING
                person.reason = (
                    f"The face is near to {mention(top)} ({score:.2f}) and to a second person."
                    if score >= settings.face_match
                    else f"The face resembles {mention(top)} ({score:.2f}), too little to be sure."
                )
                return
            person.reason = (
                f"The same face was seen {len(alike) + 1} times and never matched anybody (best {score:.2f})."
            )
        elif near[0] >= settings.face_pending:
            person.outcome = Outcome.PENDING
            person.reason = f"The face resembles another one of this segment ({near[0]:.2f}), too little to be sure."
            return
        else:
            person.reason = "The face is clear and resembles nobody known."
        person.outcome = Outcome.NEW
        person.entity = -(len(self.result.entities) + 1)
        self.result.entities.append(NewEntity(person.entity, EntityKind.PERSON))
        person.joined = alike

    def _alike(self, person: Person) -> list[Waiting]:
        """Waiting faces that are this person's."""
        found = []
        for row in self.state.waiting:
            if row.modality is not Modality.FACE or row.embedder != person.embedder or row.id in self.used:
                continue
            vector = usable(row.embedding)
            if vector is None or vector.size != person.vector.size or row.expires <= self.evidence.end:
                continue
            cosine = float(vector @ person.vector)
            if cosine >= self.settings.face_match:
                found.append((-cosine, row.id, row))
        return [row for _, _, row in sorted(found, key=lambda item: item[:2])[:_MANY_WAITING]]

    def _together_match(self, person: Person, top: EntityKey, alike: list[Waiting], known: list[Person]) -> bool:
        """Whether this sighting and the waiting ones that agree with it match `top` together."""
        gallery = self.state.galleries.get((Modality.FACE, person.embedder))
        if not alike or gallery is None:
            return False
        tracks = person.tracks
        if self.sights.elsewhere(tracks, top) is not None or any(p.entity == top and p.meets(person) for p in known):
            return False
        vectors = [person.vector, *(row.embedding for row in alike)]
        singly = float(np.mean([gallery.score(top, vector) for vector in vectors]))
        ranked = gallery.ranked(mean_unit(vectors))
        second = ranked[1][1] if len(ranked) > 1 else -1.0
        settings = self.settings
        usual = settings.face_margin
        clear = all(ranked[0][1] - value >= self.state.margin(top, who, usual) for who, value in ranked[1:])
        if ranked[0][0] != top or ranked[0][1] < settings.face_match or not clear:
            return False
        if singly < (settings.face_match + settings.face_pending) / 2:
            return False
        person.outcome, person.entity, person.joined = Outcome.SAME, top, alike
        person.margin = ranked[0][1] - second
        person.reason = (
            f"Together with {len(alike)} earlier sighting(s) the face matches {mention(top)} ({ranked[0][1]:.2f})."
        )
        return True

    # -- writing -----------------------------------------------------------------------------------------------------

    def _conclude(self, person: Person) -> None:
        outcome = person.outcome or Outcome.PENDING
        if outcome is Outcome.SAME and not person.joined:
            person.joined = [row for row in self._alike(person) if self._belongs(row, person.entity)]
        learned: dict[str, str] = {}
        if outcome in (Outcome.SAME, Outcome.NEW) and person.entity is not None:
            self.used.update(row.id for row in person.joined)
            for sight in person.sights:
                learned[sight.track.anchor] = self._learn(sight, person.entity)
        elif outcome is Outcome.PENDING:
            self._wait(person)
        for sight in person.sights:
            anchor = sight.track.anchor
            self.result.assigned[anchor] = person.entity
            if person.entity is not None:
                known = person.score(person.entity)
                self.result.confidence[anchor] = min(1.0, max(known, 0.5)) if outcome is Outcome.SAME else 1.0
            evidence = self._evidence(sight, person, learned.get(anchor))
            self.result.decisions.append(DecisionDraft(anchor, outcome, person.entity, person.reason, evidence))

    def _belongs(self, row: Waiting, entity: EntityKey | None) -> bool:
        gallery = self.state.galleries.get((Modality.FACE, row.embedder))
        ranked = gallery.ranked(row.embedding) if gallery is not None else []
        return not ranked or ranked[0][0] == entity or ranked[0][1] < self.settings.face_pending

    def _learn(self, sight: Sight, entity: EntityKey) -> str:
        settings = self.settings
        track = sight.track
        if sight.body is not None:
            self.editor.learn(
                SampleDraft(
                    entity,
                    Modality.BODY,
                    track.body_embedder,
                    sight.body,
                    quality=track.score,
                    anchor=track.anchor,
                    slots=1,
                    ema=settings.ema,
                    limit=NO_LIMIT,
                )
            )
        return self.editor.learn(
            SampleDraft(
                entity,
                Modality.FACE,
                sight.face.embedder,
                sight.vector,
                quality=sight.quality,
                anchor=track.anchor,
                slots=settings.face_slots,
                ema=settings.ema,
                limit=settings.face_pending,
                crop=sight.face.shots[0].crop if sight.face.shots else None,
            )
        )

    def _wait(self, person: Person) -> None:
        best = max(person.sights, key=lambda sight: sight.quality)
        expires = self.evidence.end + self.settings.pending_s
        self.result.pending.append(
            PendingWrite(best.track.anchor, Modality.FACE, person.embedder, person.vector, person.quality, expires)
        )

    def _evidence(self, sight: Sight, person: Person, learned: str | None) -> dict[str, object]:
        settings = self.settings
        found: dict[str, object] = {
            "modality": Modality.FACE.value,
            "embedder": sight.face.embedder,
            "candidates": shown(person.ranked),
            "thresholds": {
                "match": settings.face_match,
                "margin": settings.face_margin,
                "pending": settings.face_pending,
            },
            "gates": gates(sight.face),
        }
        if person.margin is not None:
            found["margin"] = round(person.margin, 4)
        if len(person.sights) > 1:
            found["with"] = [other.track.anchor for other in person.sights if other is not sight]
        if sight.body is not None:
            found["body"] = {"embedder": sight.track.body_embedder, "weight": settings.body_weight}
        if person.joined:
            found["earlier"] = [row.id for row in person.joined]
        if learned is not None:
            found["gallery"] = learned
        return found

    def _unsafe(self, track: Track) -> None:
        """Somebody without a face that can be trusted: a possibility may be shown, nothing is written."""
        face = track.face
        found: dict[str, object] = {}
        if face is None:
            reason = "No face was seen."
        else:
            why = face.reason or ("there is no usable embedding" if face.safe else "it does not pass the gates")
            reason = f"The face cannot be trusted: {why}."
            found = {"modality": Modality.FACE.value, "embedder": face.embedder, "gates": gates(face)}
            vector = usable(face.embedding)
            gallery = self.state.galleries.get((Modality.FACE, face.embedder))
            if vector is not None and gallery is not None:
                found["possible"] = shown(gallery.ranked(vector))
        self.result.assigned[track.anchor] = None
        self.result.decisions.append(DecisionDraft(track.anchor, Outcome.UNSAFE, None, reason, found))


def gates(face: FaceEvidence) -> dict[str, object]:
    """What tells how far a face can be trusted, as JSON values."""
    found: dict[str, object] = {"safe": face.safe, "reason": face.reason, "shots": len(face.shots)}
    if face.shots:
        best = face.shots[0]
        for name in ("score", "width", "sharpness", "yaw", "norm"):
            found[name] = round(float(getattr(best, name)), 3)
    return found


def shown(ranked: Sequence[tuple[EntityKey, float]]) -> list[dict[str, object]]:
    """The first candidates with their scores, as JSON values."""
    return [{"entity": entity, "score": round(score, 4)} for entity, score in ranked[:SHOWN_CANDIDATES]]
