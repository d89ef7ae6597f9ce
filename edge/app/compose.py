"""From a segment, its evidence, the decisions and the words to the one draft that is committed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from edge.identity import Resolution
from edge.perceive import Description
from edge.types.drafts import (
    CommitDraft,
    EntityKey,
    KeyFrameDraft,
    ObservationDraft,
    SourceProgress,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.evidence import SegmentEvidence, Track, Voice
from edge.types.media import CutReason, Mode, Segment, SourceInfo
from edge.types.records import LineDraft, anchored


def progress_after(segment: Segment, info: SourceInfo) -> SourceProgress:
    """How far the source is remembered once this segment is."""
    return SourceProgress(
        source=info,
        position=segment.end - info.start,
        next_segment=segment.index + 1,
        finished=segment.reason is CutReason.END_OF_SOURCE,
    )


def skipped(segment: Segment, info: SourceInfo) -> CommitDraft:
    """The draft of a static and silent segment: nothing but the progress."""
    return CommitDraft(camera=segment.camera, trace=None, progress=progress_after(segment, info))


def compose(
    segment: Segment,
    info: SourceInfo,
    evidence: SegmentEvidence,
    resolution: Resolution,
    description: Description,
    mode: Mode,
) -> CommitDraft:
    """The critical commit of one segment, without its text vectors."""
    spans = _spans(evidence, resolution)
    observations = tuple(_seen(track, resolution, description, spans) for track in evidence.tracks) + tuple(
        _heard(voice, evidence, resolution, description, spans)
        for voice in evidence.voices
        # A voice whose owner is seen is part of that observation.
        if voice.track is None and resolution.assigned.get(voice.anchor) is not None
    )
    return CommitDraft(
        camera=segment.camera,
        progress=progress_after(segment, info),
        trace=TraceDraft(
            start=segment.start,
            end=segment.end,
            text=anchored(description.text, _anchors(spans)),
            mode=mode,
            reason=segment.reason,
            lines=tuple(replace(line, text=_at(line, spans)) for line in description.lines),
            counts=segment.counts,
            detail={"dated": info.dated, **_trace_detail(segment, evidence)},
        ),
        entities=resolution.entities,
        observations=observations,
        utterances=tuple(
            UtteranceDraft(
                start=said.start,
                end=said.end,
                text=said.text,
                speaker=resolution.assigned.get(said.voice) if said.voice else None,
                voice=said.voice,
                confidence=said.confidence * (resolution.confidence.get(said.voice, 1.0) if said.voice else 1.0),
            )
            for said in evidence.utterances
        ),
        decisions=resolution.decisions,
        gallery=resolution.gallery,
        samples=resolution.samples,
        pending=resolution.pending,
        pending_used=resolution.pending_used,
        names=resolution.names,
        as_of=resolution.as_of,
        visual=evidence.visual,
        key_frames=tuple(KeyFrameDraft(frame.at, frame.image, frame.anchors) for frame in evidence.key_frames),
    )


# Which tracks and voices are whose, and from when to when each is seen or heard, UTC POSIX seconds. Texts keep the
# anchors of whom they mention, so that a sighting that turns out to be somebody else's takes its own words along.
_Spans = dict[EntityKey, dict[str, tuple[float, float]]]


def _spans(evidence: SegmentEvidence, resolution: Resolution) -> _Spans:
    spans: _Spans = {}
    for track in evidence.tracks:
        if (who := resolution.assigned.get(track.anchor)) is not None:
            spans.setdefault(who, {})[track.anchor] = (track.start, track.end)
    for voice in evidence.voices:
        if (who := resolution.assigned.get(voice.anchor)) is not None:
            said = [words for words in evidence.utterances if words.voice == voice.anchor]
            start = min((words.start for words in said), default=evidence.start)
            end = max((words.end for words in said), default=evidence.end)
            spans.setdefault(who, {})[voice.anchor] = (start, end)
    return spans


def _anchors(spans: _Spans) -> dict[EntityKey, tuple[str, ...]]:
    return {who: tuple(anchors) for who, anchors in spans.items()}


def _at(line: LineDraft, spans: _Spans) -> str:
    """A line whose mentions name the anchors that are there at its moment, or else all of the person's."""
    there = {
        who: tuple(anchor for anchor, (start, end) in anchors.items() if start <= line.at <= end) or tuple(anchors)
        for who, anchors in spans.items()
    }
    return anchored(line.text, there)


def _own(text: str, anchor: str, who: EntityKey | None, spans: _Spans) -> str:
    """The text of one observation: its own person is meant as this anchor sees them."""
    anchors = _anchors(spans)
    return anchored(text, anchors if who is None else {**anchors, who: (anchor,)})


def _trace_detail(segment: Segment, evidence: SegmentEvidence) -> Mapping[str, object]:
    counts = evidence.counts
    return {
        "first_of_event": segment.first_of_event,
        "still": segment.still,
        "object_frames": counts.object_frames,
        "face_frames": counts.face_frames,
        "faces_embedded": counts.faces_embedded,
        "speech_s": round(counts.speech_seconds, 2),
        "words_refused": counts.words_refused,
        "speech_untranscribed": evidence.speech_untranscribed,
        "other_language": evidence.other_language,
        "audio_faults": segment.audio_faults,
    }


def _seen(track: Track, resolution: Resolution, description: Description, spans: _Spans) -> ObservationDraft:
    detail: dict[str, object] = {"entered": track.entered, "left": track.left}
    if track.face is not None and track.face.shots:
        best = track.face.shots[0]
        detail["face"] = {
            "safe": track.face.safe,
            "reason": track.face.reason,
            "width_px": round(best.width, 1),
            "score": round(best.score, 3),
            "yaw": round(best.yaw, 2),
            "sharpness": round(best.sharpness, 1),
            "norm": round(best.norm, 1),
            "shots": len(track.face.shots),
            "mouth_motion": round(track.face.mouth_motion, 2),
        }
    who = resolution.assigned.get(track.anchor)
    return ObservationDraft(
        anchor=track.anchor,
        label=track.label,
        entity=who,
        start=track.start,
        end=track.end,
        text=_own(description.observations.get(track.anchor, ""), track.anchor, who, spans),
        score=track.score,
        boxes=track.boxes,
        detail=detail,
    )


def _heard(
    voice: Voice, evidence: SegmentEvidence, resolution: Resolution, description: Description, spans: _Spans
) -> ObservationDraft:
    said = [utterance for utterance in evidence.utterances if utterance.voice == voice.anchor]
    who = resolution.assigned.get(voice.anchor)
    return ObservationDraft(
        anchor=voice.anchor,
        label="voice",
        entity=who,
        start=min((utterance.start for utterance in said), default=evidence.start),
        end=max((utterance.end for utterance in said), default=evidence.end),
        text=_own(description.observations.get(voice.anchor, ""), voice.anchor, who, spans),
        score=1.0 if voice.safe else 0.5,
        detail={"speech_s": round(voice.seconds, 2), "safe": voice.safe},
    )
