"""From a segment, its evidence, the decisions and the words to the one draft that is committed. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from edge.identity import Resolution
from edge.perceive import Description
from edge.types.drafts import CommitDraft, KeyFrameDraft, ObservationDraft, SourceProgress, TraceDraft, UtteranceDraft
from edge.types.evidence import SegmentEvidence, Track, Voice
from edge.types.media import CutReason, Mode, Segment, SourceInfo


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
    observations = tuple(_seen(track, resolution, description) for track in evidence.tracks) + tuple(
        _heard(voice, evidence, resolution, description)
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
            text=description.text,
            mode=mode,
            reason=segment.reason,
            lines=description.lines,
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
        pending=resolution.pending,
        pending_used=resolution.pending_used,
        names=resolution.names,
        key_frames=tuple(KeyFrameDraft(frame.at, frame.image, frame.anchors) for frame in evidence.key_frames),
    )


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


def _seen(track: Track, resolution: Resolution, description: Description) -> ObservationDraft:
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
    return ObservationDraft(
        anchor=track.anchor,
        label=track.label,
        entity=resolution.assigned.get(track.anchor),
        start=track.start,
        end=track.end,
        text=description.observations.get(track.anchor, ""),
        score=track.score,
        boxes=track.boxes,
        detail=detail,
    )


def _heard(
    voice: Voice, evidence: SegmentEvidence, resolution: Resolution, description: Description
) -> ObservationDraft:
    said = [utterance for utterance in evidence.utterances if utterance.voice == voice.anchor]
    return ObservationDraft(
        anchor=voice.anchor,
        label="voice",
        entity=resolution.assigned.get(voice.anchor),
        start=min((utterance.start for utterance in said), default=evidence.start),
        end=max((utterance.end for utterance in said), default=evidence.end),
        text=description.observations.get(voice.anchor, ""),
        score=1.0 if voice.safe else 0.5,
        detail={"speech_s": round(voice.seconds, 2), "safe": voice.safe},
    )
