"""Who is seen speaking: ties the voices of a segment to the faces whose mouths move meanwhile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from edge.perceive.mouth import MouthMove, mouth_motion
from edge.perceive.speech import SpeechEvidence
from edge.types.evidence import Voice
from edge.types.media import Segment, Span

SPEAKING = 1.15  # mouth motion over upper-face motion: talkers lie above it (1.18 and more), silent faces below (1.01; measured)
_CLEARLY = 1.35  # times the next face's motion
_COVER = 0.8  # share of a voice's speech during which its face is in view
_VISIBLE = 0.2  # share of a voice's speech that makes a person a candidate


class Listener(Protocol):
    """What the Perceiver needs of the speech side."""

    def analyse(self, segment: Segment) -> SpeechEvidence:
        """Listen to the sound of a segment."""
        ...


@dataclass(frozen=True, slots=True)
class Face:
    """A person who may be speaking."""

    anchor: str
    start: float  # UTC POSIX seconds in view
    end: float
    moves: Sequence[MouthMove]


def tie(voices: Sequence[Voice], turns: Mapping[str, Sequence[Span]], faces: Sequence[Face]) -> tuple[Voice, ...]:
    """Set `Voice.track` where the pictures support it, and only there.

    A voice belongs to a face when its speech lies within the face's presence, and that face is the only person in
    view and its mouth moves, or its mouth clearly moves most of all. One face speaks with one voice: of two the
    longer one keeps it.

    Args:
        voices: of a segment.
        turns: anchor of a voice → when it speaks.
        faces: all people in view, also those whose mouths could not be judged.
    """
    chosen: dict[str, str] = {}
    for voice in sorted(voices, key=lambda v: (-v.seconds, v.anchor)):
        track = _speaker(turns.get(voice.anchor, ()), faces)
        if track is not None and track not in chosen.values():
            chosen[voice.anchor] = track
    return tuple(replace(voice, track=chosen.get(voice.anchor)) for voice in voices)


def _speaker(spans: Sequence[Span], faces: Sequence[Face]) -> str | None:
    total = sum(span.end - span.start for span in spans)
    if total <= 0:
        return None
    covers = {face.anchor: _shared(face, spans) / total for face in faces}
    visible = [face for face in faces if covers[face.anchor] >= _VISIBLE]
    if not visible:
        return None
    motions = sorted(((mouth_motion(face.moves, spans), face.anchor) for face in visible), reverse=True)
    most, anchor = motions[0]
    if most < SPEAKING or covers[anchor] < _COVER:
        return None
    if len(motions) > 1:
        following = motions[1][0]
        if any(motion == 0 for motion, _ in motions[1:]) or most < _CLEARLY * following:
            return None
    return anchor


def _shared(face: Face, spans: Sequence[Span]) -> float:
    return sum(max(0.0, min(face.end, span.end) - max(face.start, span.start)) for span in spans)
