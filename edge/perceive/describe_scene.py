"""What of the evidence of a segment is said at all, and how its parts hang together. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge.perceive.describe_relations import TABLE, Relation, Tie, relations
from edge.perceive.describe_words import PERSON, clean, known_among, most_at_once, others_among
from edge.types.evidence import SegmentEvidence, Track, Utterance, Voice
from edge.types.vocabulary import ANIMALS, VEHICLES, counted

# A thing seen once must be sure; a detector that errs rarely errs twice in a row.
_SURE = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class TableGroup:
    """Those who are at one table, and what stands on it meanwhile."""

    people: tuple[Track, ...]
    things: tuple[Track, ...]
    tables: tuple[Track, ...]
    start: float  # UTC POSIX seconds


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What one speaker says before another does."""

    at: float  # UTC POSIX seconds
    speaker: str  # a mention, or "someone", "a voice", "a person"
    texts: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(self.texts)


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The evidence that is strong enough to be stated."""

    evidence: SegmentEvidence
    names: Mapping[str, str]  # anchor of a person or a voice → mention; nothing for those who are unknown
    people: tuple[Track, ...]  # in order of appearance
    things: tuple[Track, ...]
    weak: tuple[Track, ...]  # perhaps nothing
    relations: tuple[Relation, ...]
    tables: tuple[TableGroup, ...]  # with people at them

    @property
    def standing(self) -> tuple[Relation, ...]:
        """Things on furniture, except on tables that people are at."""
        taken = {thing.anchor for group in self.tables for thing in group.things}
        return tuple(tie for tie in self.relations if tie.tie is Tie.ON and tie.one.anchor not in taken)

    def subject(self, track: Track) -> str:
        """How one track is called."""
        if track.label == PERSON:
            return self.names.get(track.anchor) or counted(PERSON, 1)
        return counted(clean(track.label) or "thing", 1)

    def same(self, track: Track) -> tuple[Track, ...]:
        """The tracks of the same known person; an unknown one is only itself."""
        mine = self.names.get(track.anchor)
        if not mine:
            return (track,)
        return tuple(other for other in self.people if self.names.get(other.anchor) == mine)

    def speaker(self, anchor: str | None) -> str:
        """Whose voice it is: known by the voice, else by the face that is seen speaking."""
        if anchor is None:
            return "someone"
        if anchor in self.names:
            return self.names[anchor]
        voice = next((voice for voice in self.evidence.voices if voice.anchor == anchor), None)
        seen = voice.track if voice is not None else None
        if seen is not None and seen in self.names:
            return self.names[seen]
        if any(track.anchor == seen for track in self.people):
            return counted(PERSON, 1)
        return "someone" if self.people else "a voice"

    def voices_of(self, track: Track) -> tuple[Voice, ...]:
        """The voices that belong to a person who is seen."""
        mine = self.names.get(track.anchor)
        return tuple(
            voice
            for voice in self.evidence.voices
            if (voice.track == track.anchor and self.names.get(voice.anchor) in (None, mine))
            or (mine and self.names.get(voice.anchor) == mine)
        )

    def heard_during(self, track: Track) -> list[Utterance]:
        """What a person who is seen said: all of it, or what fell into this track when they have several."""
        voices = {voice.anchor for voice in self.voices_of(track)}
        mine = [utterance for utterance in self.evidence.utterances if utterance.voice in voices]
        if len(self.same(track)) == 1:
            return mine
        return [utterance for utterance in mine if utterance.start <= track.end and utterance.end >= track.start]

    def turns(self, utterances: Sequence[Utterance]) -> tuple[Turn, ...]:
        """Utterances in order of time, those of one voice in a row put together, without empty ones."""
        found: list[Turn] = []
        last: str | None = None
        for utterance in sorted(utterances, key=lambda item: (item.start, item.end)):
            text = clean(utterance.text)
            if not text:
                continue
            if found and utterance.voice == last:
                found[-1] = Turn(found[-1].at, found[-1].speaker, (*found[-1].texts, text))
            else:
                found.append(Turn(utterance.start, self.speaker(utterance.voice), (text,)))
            last = utterance.voice
        return tuple(found)

    def moves_by_itself(self, track: Track) -> bool:
        """Whether its coming and going is an event, and surely seen: animals and vehicles over several frames."""
        return track.label in ANIMALS | VEHICLES and len(track.boxes) >= 3

    def unrecognised(self, people: Sequence[Track]) -> int:
        """How many unknown people `who` leaves out, as each may be a known one who was not recognised for a while."""
        if not known_among(people, self.names) or others_among(people, self.names):
            return 0
        return most_at_once([track for track in people if track.anchor not in self.names])

    def between_unknown(self, tie: Relation) -> bool:
        """Whether two people are related who are both unknown: nobody can tell which of a crowd they are."""
        people = (tie.one, tie.other)
        return all(track.label == PERSON and track.anchor not in self.names for track in people)

    def told(self, tie: Relation) -> bool:
        """Whether the summary has it, besides tables and what stands on furniture.

        Not what is said already by being at one table, and not what several unknown people have in common ("a person was
        next to a chair", three times): there, the number of the things says more.
        """
        if self.between_unknown(tie) or any(
            tie.one in seat.people and tie.other in seat.people for seat in self.tables
        ):
            return False
        if tie.one.label != PERSON or tie.one.anchor in self.names:
            return True
        alike = {
            other.one.anchor
            for other in self.relations
            if other.tie is tie.tie and other.other.label == tie.other.label and other.one.anchor not in self.names
        }
        return len(alike) == 1


def understand(evidence: SegmentEvidence, names: Mapping[str, str]) -> Scene:
    """Choose what is stated and relate it.

    Args:
        evidence: of one segment.
        names: anchor → mention.
    """
    # By time, then by the number in the anchor: the order of the input changes nothing.
    tracks = sorted(evidence.tracks, key=lambda track: (track.start, len(track.anchor), track.anchor))
    speakers = {voice.track for voice in evidence.voices}
    speaking = {track.anchor for track in tracks if track.label == PERSON} | {voice.anchor for voice in evidence.voices}
    known = {anchor: name for anchor, name in names.items() if name and anchor in speaking}
    people: list[Track] = []
    things: list[Track] = []
    weak: list[Track] = []
    for track in tracks:
        sure = len(track.boxes) >= 2 or track.score >= _SURE
        if track.label == PERSON:
            safe = track.face is not None and track.face.safe
            (people if sure or safe or track.anchor in known or track.anchor in speakers else weak).append(track)
        else:
            (things if sure else weak).append(track)
    ties = relations(people, things)
    return Scene(evidence, known, tuple(people), tuple(things), tuple(weak), ties, _tables(ties))


def _tables(ties: Sequence[Relation]) -> tuple[TableGroup, ...]:
    at = [tie for tie in ties if tie.tie is Tie.AT]
    tables = list({tie.other.anchor: tie.other for tie in at}.values())
    # Tables that are never in view together may be one that was lost for a while.
    parts = [tables] if most_at_once(tables) == 1 else [[table] for table in tables]
    groups: list[TableGroup] = []
    seated: set[str] = set()
    for part in parts:
        anchors = {table.anchor for table in part}
        mine = [tie for tie in at if tie.other.anchor in anchors and tie.one.anchor not in seated]
        if not mine:
            continue
        start, end = min(tie.start for tie in mine), max(tie.end for tie in mine)
        on = [
            tie.one
            for tie in ties
            if tie.tie is Tie.ON and tie.other.label == TABLE and tie.other.anchor in anchors
            if tie.start <= end and start <= tie.end
        ]
        people = tuple({tie.one.anchor: tie.one for tie in mine}.values())
        seated |= {person.anchor for person in people}
        groups.append(TableGroup(people, tuple(on), tuple(part), start))
    return tuple(groups)
