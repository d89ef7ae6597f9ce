"""Who is heard: from the voices of one segment to decisions about their owners. Pure: same input, same output.

Invariants (each has a property test):

* a voice whose owner is seen speaking is theirs, unless it is the voice of another person: that is a contradiction, and
  nothing is written;
* a person's voice gallery is written only from a safe voice that the pictures support (`Voice.track`), and then only
  when nobody else could have spoken (one person, one voice) or when the same voice was seen to be theirs in an
  earlier segment;
* a voice that nobody is seen to own never writes a person's gallery, even when it matches;
* a voice alone becomes somebody (`EntityKind.VOICE`) only when it is safe, resembles nobody, nobody known who is in
  view may be its owner, and there is enough of it or it was heard before;
* a short voice is attributed only at a higher similarity and a lower confidence, and writes nothing;
* persons come before voices: what matches a person is never given to a voice. That a voice is the voice of a person
  who was met later is noted in the decision (`possible_same`); to join them is a correction, and the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edge.identity.galleries import GalleryEditor, usable
from edge.identity.people import People, shown
from edge.identity.sights import PERSON
from edge.identity.state import GalleryState, Waiting
from edge.settings import IdentitySettings
from edge.types.drafts import DecisionDraft, EntityKey, NewEntity, PendingWrite, SampleDraft
from edge.types.evidence import SegmentEvidence, Track, Vector, Voice
from edge.types.records import EntityKind, Modality, Outcome, mention

SHORT_VOICE_EXTRA = 0.05  # a short voice must match by this much more
SHORT_VOICE_CONFIDENCE = 0.5
LINKED_CONFIDENCE = 0.9
ALIKE_TO_BE_NEW = 3  # sightings in the doubtful band that agree with each other before they are somebody new
MOUTH_SPEAKS = 1.0  # mouth motion above this suggests speaking; 0 is unknown

_Ranked = list[tuple[EntityKey, float]]


@dataclass(slots=True, eq=False)
class Voices:
    """Decisions about the voices that were heard."""

    entities: list[NewEntity] = field(default_factory=list)
    assigned: dict[str, EntityKey | None] = field(default_factory=dict)
    confidence: dict[str, float] = field(default_factory=dict)
    decisions: list[DecisionDraft] = field(default_factory=list)
    pending: list[PendingWrite] = field(default_factory=list)
    pending_used: list[int] = field(default_factory=list)
    sure: set[str] = field(default_factory=set)  # anchors that are certain enough for a name


@dataclass(slots=True, eq=False)
class _Heard:
    """One voice and what is known about it."""

    voice: Voice
    vector: Vector | None
    people: _Ranked  # persons by score
    others: _Ranked  # voices without a person by score
    note: dict[str, object] = field(default_factory=dict)

    @property
    def ranked(self) -> _Ranked:
        return sorted(self.people + self.others, key=lambda item: (-item[1], item[0]))


def resolve_voices(
    evidence: SegmentEvidence,
    state: GalleryState,
    settings: IdentitySettings,
    editor: GalleryEditor,
    people: People,
) -> Voices:
    """Decide whose the voices of a segment are, once its people are decided; galleries learn in `editor`."""
    return _Resolver(evidence, state, settings, editor, people).run()


class _Resolver:
    def __init__(
        self,
        evidence: SegmentEvidence,
        state: GalleryState,
        settings: IdentitySettings,
        editor: GalleryEditor,
        people: People,
    ) -> None:
        self.evidence = evidence
        self.state = state
        self.settings = settings
        self.editor = editor
        self.people = people
        self.tracks: Mapping[str, Track] = {t.anchor: t for t in evidence.tracks if t.label == PERSON}
        self.result = Voices()
        self.used: set[int] = set()
        self.created: list[tuple[EntityKey, str, Vector, Voice]] = []

    def run(self) -> Voices:
        for voice in sorted(self.evidence.voices, key=_canonical):
            heard = self._hear(voice)
            owner = self.people.assigned.get(voice.track) if voice.track is not None else None
            if owner is not None:
                self._seen_speaking(heard, owner)
            else:
                self._unseen(heard)
        self.result.pending_used = sorted(self.used)
        return self.result

    def _hear(self, voice: Voice) -> _Heard:
        vector = usable(voice.embedding)
        gallery = self.state.galleries.get((Modality.VOICE, voice.embedder))
        ranked = gallery.ranked(vector) if gallery is not None and vector is not None else []
        kinds = self.state.entities
        others = [item for item in ranked if item[0] in kinds and kinds[item[0]].kind is EntityKind.VOICE]
        persons = [item for item in ranked if item not in others]
        return _Heard(voice, vector, persons, others)

    # -- the owner is seen speaking ----------------------------------------------------------------------------------

    def _seen_speaking(self, heard: _Heard, owner: EntityKey) -> None:
        match = self.settings.voice_match
        scores = dict(heard.people)
        own = scores.pop(owner, None)
        rival, score = max(scores.items(), key=lambda item: (item[1], -item[0]), default=(0, -1.0))
        if score >= match and score > (-1.0 if own is None else own):
            heard.note["refused"] = {"owner_seen": owner if owner > 0 else heard.voice.track, "owner_heard": rival}
            self._decide(
                heard,
                Outcome.CONFLICT,
                None,
                f"One person is seen speaking, with the voice of {mention(rival)} ({score:.2f}).",
            )
            return
        if heard.others and heard.others[0][1] >= match:
            alike = [entity for entity, value in heard.others if value >= match]
            heard.note["possible_same"] = [entity for entity in alike if not self.state.told_apart(entity, owner)]
        heard.note["gallery"] = self._learn_owner(heard, owner, own)
        self.result.sure.add(heard.voice.anchor)
        self._decide(heard, Outcome.SAME, owner, "This person is seen speaking.", LINKED_CONFIDENCE)

    def _learn_owner(self, heard: _Heard, owner: EntityKey, own: float | None) -> str:
        voice, vector = heard.voice, heard.vector
        if vector is None or not voice.safe:
            return "refused: too little clean speech"
        if own is not None:
            return (
                self._learn(heard, owner)
                if own >= self.settings.voice_match
                else "refused: not like their voice so far"
            )
        alike = [row for row in self._alike(voice, vector) if row.entity == owner]
        alone = self.people.count == 1 and len(self.evidence.voices) == 1
        if alike or alone:
            self.used.update(row.id for row in alike)
            return self._learn(heard, owner)
        # It hangs on the person's track, so that the waiting row leads back to them.
        self._wait(heard, voice.track or voice.anchor)
        return "waiting: seen to be theirs once"

    # -- nobody is seen speaking, or somebody unknown ----------------------------------------------------------------

    def _unseen(self, heard: _Heard) -> None:
        voice, settings = heard.voice, self.settings
        if heard.vector is None:
            self._decide(heard, Outcome.UNSAFE, None, "There is too little speech to tell voices apart.")
            return
        need = settings.voice_match + (0.0 if voice.safe else SHORT_VOICE_EXTRA)
        for candidates in (heard.people, heard.others):
            if candidates and candidates[0][1] >= need:
                self._matched(heard, candidates)
                return
        if not voice.safe:
            self._decide(
                heard, Outcome.UNSAFE, None, f"There is too little clean speech ({voice.seconds:.1f} s) to decide."
            )
            return
        self._nobody_known(heard)

    def _matched(self, heard: _Heard, candidates: _Ranked) -> None:
        voice, settings = heard.voice, self.settings
        entity, score = candidates[0]
        margin = score - (candidates[1][1] if len(candidates) > 1 else -1.0)
        heard.note["margin"] = round(margin, 4)
        usual = settings.face_margin
        if any(score - value < self.state.margin(entity, who, usual) for who, value in candidates[1:]):
            if voice.safe:
                self._wait(heard, voice.anchor)
            self._decide(
                heard, Outcome.PENDING, None, f"The voice is too near to a second one to decide ({score:.2f})."
            )
            return
        if voice.track is not None and entity in self.people.assigned.values():
            self._decide(
                heard,
                Outcome.CONFLICT,
                None,
                f"Somebody else is seen speaking with the voice of {mention(entity)} ({score:.2f}).",
            )
            return
        known = self.state.entities.get(entity)
        if voice.safe and known is not None and known.kind is EntityKind.VOICE:
            heard.note["gallery"] = self._learn(heard, entity)
        else:
            heard.note["gallery"] = (
                "refused: nobody is seen speaking" if voice.safe else "refused: too little clean speech"
            )
        if voice.safe:
            self.result.sure.add(voice.anchor)
            self._decide(heard, Outcome.SAME, entity, f"The voice matches {mention(entity)} ({score:.2f}).", score)
        else:
            reason = f"The voice is short and matches {mention(entity)} well ({score:.2f})."
            self._decide(heard, Outcome.SAME, entity, reason, SHORT_VOICE_CONFIDENCE)

    def _nobody_known(self, heard: _Heard) -> None:
        voice, settings = heard.voice, self.settings
        vector = heard.vector
        assert vector is not None  # noqa: S101 -- for the type checker: the caller has looked
        if voice.track is not None:
            self._decide(heard, Outcome.UNSAFE, None, "Somebody unknown is seen speaking.")
            return
        twin = next((made for made in self.created if self._one_voice(made, voice, vector)), None)
        if twin is not None:
            heard.note["gallery"] = self._learn(heard, twin[0])
            self._decide(heard, Outcome.NEW, twin[0], "It is the same new voice as another part of this segment.")
            return
        owner = self._possible_owner(voice)
        if owner is not None:
            heard.note["possible_owner"] = owner
            self._decide(
                heard,
                Outcome.UNSAFE,
                None,
                "Somebody in view may be the one who speaks, and the pictures do not say so.",
            )
            return
        alike = [row for row in self._alike(voice, vector) if row.entity is None]
        best = heard.ranked[0][1] if heard.ranked else -1.0
        doubtful = best >= settings.voice_pending
        if doubtful and len(alike) + 1 < ALIKE_TO_BE_NEW:
            self._wait(heard, voice.anchor)
            self._decide(
                heard,
                Outcome.PENDING,
                None,
                f"The voice resembles one that is known ({best:.2f}), too little to be sure.",
            )
        elif voice.seconds >= settings.voice_new_s or alike:
            self._create(heard, vector, alike)
        else:
            self._wait(heard, voice.anchor)
            self._decide(
                heard,
                Outcome.PENDING,
                None,
                f"An unknown voice spoke for {voice.seconds:.1f} s, too short to be kept as somebody.",
            )

    def _create(self, heard: _Heard, vector: Vector, alike: Sequence[Waiting]) -> None:
        key = -(len(self.people.entities) + len(self.result.entities) + 1)
        self.result.entities.append(NewEntity(key, EntityKind.VOICE))
        self.editor.created(key, EntityKind.VOICE)
        self.created.append((key, heard.voice.embedder, vector, heard.voice))
        self.used.update(row.id for row in alike)
        if alike:
            heard.note["earlier"] = [row.id for row in alike]
        heard.note["gallery"] = self._learn(heard, key)
        self.result.sure.add(heard.voice.anchor)
        reason = f"A voice that resembles nobody known was heard for {heard.voice.seconds:.1f} s"
        self._decide(heard, Outcome.NEW, key, reason + (", and before." if alike else "."))

    def _possible_owner(self, voice: Voice) -> str | None:
        """The anchor of somebody known in view who may be speaking."""
        known = sorted(anchor for anchor in self.tracks if self.people.assigned.get(anchor) is not None)
        if (
            self.people.count == 1
            and len(self.evidence.voices) == 1
            and voice.seconds < self.settings.voice_new_s
            and known
        ):
            # The mouth of the only person in view says little over so short a time.
            return known[0]
        for anchor in known:
            face = self.tracks[anchor].face
            motion = face.mouth_motion if face is not None else 0.0
            if motion == 0.0 or motion > MOUTH_SPEAKS:
                return anchor
        return None

    def _one_voice(self, made: tuple[EntityKey, str, Vector, Voice], voice: Voice, vector: Vector) -> bool:
        _, embedder, other, first = made
        if embedder != voice.embedder or other.size != vector.size:
            return False
        return float(other @ vector) >= self.settings.voice_match and not self._overlap(first.anchor, voice.anchor)

    def _overlap(self, one: str, other: str) -> bool:
        mine = [said for said in self.evidence.utterances if said.voice == one]
        theirs = [said for said in self.evidence.utterances if said.voice == other]
        return any(max(a.start, b.start) < min(a.end, b.end) for a in mine for b in theirs)

    # -- common ------------------------------------------------------------------------------------------------------

    def _alike(self, voice: Voice, vector: Vector) -> list[Waiting]:
        found = []
        for row in self.state.waiting:
            if row.modality is not Modality.VOICE or row.embedder != voice.embedder or row.id in self.used:
                continue
            other = usable(row.embedding)
            if other is None or other.size != vector.size or row.expires <= self.evidence.end:
                continue
            cosine = float(other @ vector)
            if cosine >= self.settings.voice_match:
                found.append((-cosine, row.id, row))
        return [row for _, _, row in sorted(found, key=lambda item: item[:2])]

    def _learn(self, heard: _Heard, entity: EntityKey) -> str:
        vector = heard.vector
        assert vector is not None  # noqa: S101 -- for the type checker: the callers have looked
        settings = self.settings
        return self.editor.learn(
            SampleDraft(
                entity,
                Modality.VOICE,
                heard.voice.embedder,
                vector,
                quality=heard.voice.seconds,
                anchor=heard.voice.track or heard.voice.anchor,
                slots=settings.voice_slots,
                ema=settings.ema,
                limit=settings.voice_match,
            )
        )

    def _wait(self, heard: _Heard, anchor: str) -> None:
        vector = heard.vector
        assert vector is not None  # noqa: S101 -- for the type checker: the callers have looked
        expires = self.evidence.end + self.settings.pending_s
        voice = heard.voice
        self.result.pending.append(PendingWrite(anchor, Modality.VOICE, voice.embedder, vector, voice.seconds, expires))

    def _decide(
        self, heard: _Heard, outcome: Outcome, entity: EntityKey | None, reason: str, confidence: float = 1.0
    ) -> None:
        voice = heard.voice
        self.result.assigned[voice.anchor] = entity
        if entity is not None:
            self.result.confidence[voice.anchor] = min(1.0, confidence)
        found: dict[str, object] = {
            "modality": Modality.VOICE.value,
            "embedder": voice.embedder,
            "candidates": shown(heard.ranked),
            "thresholds": {
                "match": self.settings.voice_match,
                "pending": self.settings.voice_pending,
                "new_s": self.settings.voice_new_s,
                "margin": self.settings.face_margin,
            },
            "gates": {"safe": voice.safe, "seconds": round(voice.seconds, 2)},
            "seen_speaking": voice.track,
            **heard.note,
        }
        self.result.decisions.append(DecisionDraft(voice.anchor, outcome, entity, reason, found))


def _canonical(voice: Voice) -> tuple[float, bytes, str]:
    """An order of voices that does not depend on their anchors; the longest is heard first."""
    return (-voice.seconds, b"" if voice.embedding is None else voice.embedding.tobytes(), voice.anchor)
