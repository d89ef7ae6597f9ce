"""The Perceiver: frames of the open segment in, one by one; at its end scored evidence out.

Each network sees a picture once. What is kept of a frame is boxes and small crops, so memory does not grow with a
segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edge.perceive.bodies import body_crop, body_quality
from edge.perceive.embed import Embedder, mean_vector
from edge.perceive.faces import FaceFinder, FoundFace, align
from edge.perceive.gates import SEEN_TWICE, is_no_face
from edge.perceive.geometry import normalise
from edge.perceive.keyframes import KeyFrameChooser
from edge.perceive.mouth import compare
from edge.perceive.objects import ObjectDetector
from edge.perceive.shots import embed_shots, face_evidence, keep_shot, make_shot, shot_quality, usable
from edge.perceive.sightings import PERSON, Sighting, body_look, face_look, gather
from edge.perceive.speech import SpeechEvidence
from edge.perceive.stitch import one_class, split, stitch, usable_mean
from edge.perceive.tracking import BodyCrop, Tracker, Tracklet
from edge.perceive.voices import Face, Listener, tie
from edge.settings import PerceiveSettings
from edge.types.evidence import (
    Box,
    Detection,
    FaceEvidence,
    KeyFrame,
    NormBox,
    PerceptionCounts,
    SegmentEvidence,
    Track,
    Vector,
)
from edge.types.media import Frame, Image, Segment, Span

_BODY_CROPS = 3  # kept a track
_FLICKER_FRAMES = 3  # what is seen in one frame of at least so many needs the score below
_FLICKER_SCORE = 0.6
_EDGE_S = 1.0  # who appears or goes within this of the segment's ends was not seen coming or going
_MIRROR = 0.7  # cosine of two faces in view at one time: the same person twice (different people: mean .05; measured)
_MIRROR_FRAMES = 2


@dataclass(frozen=True, slots=True)
class InView:
    """One person or object on the present frame."""

    anchor: (
        str  # holds while the segment is open; at its end the anchors are given anew, without what proved to be nothing
    )
    label: str
    score: float
    box: Box  # px; the face's box when only that is seen
    face: Box | None  # px


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """What is on a frame now, for a live view."""

    at: float  # UTC POSIX seconds
    width: int  # px
    height: int  # px
    in_view: tuple[InView, ...]
    detections: tuple[Detection, ...]
    faces: tuple[FoundFace, ...]


class Perceiver:
    """Turns frames and sound of one source into evidence. Not thread-safe: one thread calls it.

    Args:
        objects: object detector; None: people are found by their faces alone.
        faces: face detector; None: people have no faces.
        face_embedder: needs `faces`; None: no face can be known again.
        bodies: appearance embedder; None: bodies stay unembedded.
        speech: None: sound is not listened to.
        settings: what counts as evidence.
        missing: sentences on what could not be built, for people.
    """

    def __init__(
        self,
        *,
        objects: ObjectDetector | None,
        faces: FaceFinder | None,
        face_embedder: Embedder | None,
        bodies: Embedder | None = None,
        speech: Listener | None = None,
        settings: PerceiveSettings | None = None,
        missing: Sequence[str] = (),
    ) -> None:
        self._objects = objects
        self._faces = faces
        self._face_embedder = face_embedder
        self._bodies = bodies
        self._speech = speech
        self._settings = settings or PerceiveSettings()
        self.missing = tuple(missing)
        self._start()

    def _start(self) -> None:
        self._tracker = Tracker()
        self._chooser = KeyFrameChooser()
        self._sizes: list[tuple[int, int]] = []  # width and height of each frame that was looked at
        self._face_frames: list[int] = []  # frames that the face detector saw
        self._object_frames = 0
        self._face_wanted = True

    def discard(self) -> None:
        """Forget the open segment."""
        self._start()

    def see(self, frame: Frame) -> Sight:
        """Look at one frame of the open segment.

        Args:
            frame: later than those before.

        Returns:
            What is on it.

        Raises:
            InferenceError: a network failed; the frame leaves no trace.
        """
        image = frame.image
        height, width = image.shape[:2]
        detections = self._objects.detect(image) if self._objects is not None else ()
        look = self._look_for_faces(detections)
        faces = self._faces.detect(image) if look and self._faces is not None else ()
        crops = {id(face): crop for face in faces if (crop := _aligned(image, face)) is not None}
        faces = tuple(face for face in faces if id(face) in crops)
        sightings = [_with_looks(s, image, crops) for s in gather(detections, faces, width, height)]
        known = len(self._tracker.tracklets)
        tracklets = self._tracker.update(frame.at, sightings, faces_looked=look)
        self._object_frames += self._objects is not None
        self._sizes.append((width, height))
        if look:
            self._face_frames.append(self._tracker.frame)
            self._face_wanted = any(s.label == PERSON and s.body is None for s in sightings)
        value = 0.0
        for sighting, tracklet in zip(sightings, tracklets, strict=True):
            value += self._remember(frame.at, image, sighting, tracklet, crops)
        arrived = any(t.number >= known and t.label == PERSON for t in tracklets) and self._tracker.frame > 0
        self._chooser.offer(frame.at, image, [t.number for t in tracklets], value, entrance=arrived)
        return Sight(
            frame.at,
            width,
            height,
            tuple(
                InView(f"a{t.number + 1}", s.label, s.score, s.box, s.face.box if s.face is not None else None)
                for s, t in zip(sightings, tracklets, strict=True)
            ),
            tuple(detections),
            faces,
        )

    def _look_for_faces(self, detections: Sequence[Detection]) -> bool:
        """Whether faces are worth a look: a body is in view, or a face without one was; else on every other frame."""
        if self._faces is None:
            return False
        if self._objects is None or self._face_wanted or any(d.label == PERSON for d in detections):
            return True
        return (self._tracker.frame + 1) % 2 == 0

    def _remember(
        self, at: float, image: Image, sighting: Sighting, tracklet: Tracklet, crops: dict[int, Image]
    ) -> float:
        """Keep what is worth keeping of a sighting; returns how much it makes its frame worth as a key frame."""
        if sighting.label != PERSON:
            return 0.3 * sighting.score
        value = 0.4 * sighting.score
        if sighting.face is not None:
            crop = crops[id(sighting.face)]
            shot = make_shot(at, sighting.face, image, crop)
            keep_shot(tracklet.shots, shot)
            large = shot.width >= self._settings.face_min_width_px  # in a smaller one the mouth is a few pixels
            if tracklet.last_crop is not None and large:
                tracklet.moves.append(compare(tracklet.last_crop, (at, crop)))
            tracklet.last_crop = (at, crop) if large else None
            value += shot_quality(shot)
        else:
            tracklet.last_crop = None
        if self._bodies is not None and sighting.body is not None:
            worth = body_quality(sighting.body, sighting.score, image.shape[1], image.shape[0])
            if len(tracklet.bodies) < _BODY_CROPS or worth > min(body.quality for body in tracklet.bodies):
                cut = body_crop(image, sighting.body, self._bodies.size)
                if cut is not None:
                    tracklet.bodies.append(BodyCrop(at, worth, cut))
                    tracklet.bodies.sort(key=lambda body: (-body.quality, body.at))
                    del tracklet.bodies[_BODY_CROPS:]
        return value

    def close(self, segment: Segment) -> SegmentEvidence:
        """End the open segment; the next frame begins another.

        Args:
            segment: the one whose frames were seen; it may have none.

        Raises:
            InferenceError: a network failed; the segment's state is dropped all the same.
        """
        try:
            return self._conclude(segment)
        finally:
            self._start()

    def _conclude(self, segment: Segment) -> SegmentEvidence:
        people = [t for t in self._tracker.tracklets if t.label == PERSON]
        things = [t for t in self._tracker.tracklets if t.label != PERSON]
        embedded = 0
        if self._face_embedder is not None:
            embedded = embed_shots(people, self._face_embedder, self._settings, _risky(people))
        people = self._sort_out(people)
        kept = one_class([t for t in [*people, *things] if not self._is_nothing(t)])
        kept.sort(key=lambda t: (t.seen[0].frame, t.seen[0].box, t.number))
        bodies, bodies_embedded = self._body_vectors(kept)
        faces = self._face_evidence(kept)
        tracks = tuple(
            self._track(f"a{index + 1}", tracklet, segment, faces.get(tracklet.number), bodies.get(tracklet.number))
            for index, tracklet in enumerate(kept)
        )
        heard = self._listen(segment, kept, tracks)
        return SegmentEvidence(
            camera=segment.camera,
            start=segment.start,
            end=segment.end,
            tracks=tracks,
            voices=heard.voices,
            utterances=heard.utterances,
            key_frames=self._key_frames(kept),
            speech_untranscribed=heard.untranscribed,
            other_language=heard.other_language,
            counts=PerceptionCounts(
                object_frames=self._object_frames,
                face_frames=len(self._face_frames),
                faces_embedded=embedded,
                bodies_embedded=bodies_embedded,
                speech_seconds=sum(span.end - span.start for span in segment.speech),
                words_refused=heard.refused_words,
            ),
        )

    def _sort_out(self, people: Sequence[Tracklet]) -> list[Tracklet]:
        """Cut tracklets that went over to another person, join those of one person."""
        fresh = iter(range(len(self._tracker.tracklets), 10**9))
        parts = [part for t in people for part in split(t, usable(t, self._settings), fresh)]
        means = {}
        for part in parts:
            mean = usable_mean(usable(part, self._settings))
            if mean is not None:
                means[part.number] = mean
        return stitch(parts, means)

    def _is_nothing(self, tracklet: Tracklet) -> bool:
        """Whether a tracklet is the flicker of a detector: unsure and seen once among several frames, or no face."""
        by_face_alone = all(seen.body is None for seen in tracklet.seen)
        if tracklet.label == PERSON and by_face_alone:
            if is_no_face(tracklet.shots, self._settings):
                return True
            looked, least = len(self._face_frames), self._settings.face_min_score
        else:
            looked, least = len(self._sizes), _FLICKER_SCORE
        face = any(shot.score >= self._settings.face_min_score for shot in tracklet.shots)
        return len(tracklet.seen) == 1 and looked >= _FLICKER_FRAMES and tracklet.seen[0].score < least and not face

    def _body_vectors(self, kept: Sequence[Tracklet]) -> tuple[dict[int, Vector], int]:
        if self._bodies is None:
            return {}, 0
        crops = [(tracklet.number, body.image) for tracklet in kept for body in tracklet.bodies]
        by_track: dict[int, list[Vector]] = {}
        for (number, _), (vector, _norm) in zip(crops, self._bodies.embed([crop for _, crop in crops]), strict=True):
            by_track.setdefault(number, []).append(vector)
        means = {number: mean for number, vectors in by_track.items() if (mean := mean_vector(vectors)) is not None}
        return means, len(crops)

    def _face_evidence(self, kept: Sequence[Tracklet]) -> dict[int, FaceEvidence]:
        key = self._face_embedder.key if self._face_embedder is not None else ""
        people = [t for t in kept if t.label == PERSON]
        faces = {t.number: face for t in people if (face := face_evidence(t, key, self._settings)) is not None}
        safe = sorted(
            (t for t in people if t.number in faces and faces[t.number].safe),
            key=lambda t: (-max(shot.width for shot in t.shots), t.number),
        )
        for index, smaller in enumerate(safe):
            if any(_twice(smaller, larger, faces) for larger in safe[:index]):
                faces[smaller.number] = replace(faces[smaller.number], safe=False, reason=SEEN_TWICE)
        return faces

    def _track(
        self, anchor: str, tracklet: Tracklet, segment: Segment, face: FaceEvidence | None, body: Vector | None
    ) -> Track:
        first, last = tracklet.seen[0], tracklet.seen[-1]
        looked = self._frames_for(tracklet)
        before = any(frame < first.frame for frame in looked)
        after = any(frame > last.frame for frame in looked)
        # Frames that differ by nothing are not handed on, so who is on the last one stays to the end.
        end = last.at if after else max(last.at, segment.end)
        return Track(
            anchor=anchor,
            label=tracklet.label,
            start=first.at,
            end=end,
            boxes=self._boxes(tracklet),
            score=float(np.mean([seen.score for seen in tracklet.seen])),
            face=face,
            body=body,
            body_embedder=self._bodies.key if self._bodies is not None and body is not None else "",
            entered=before and first.at - segment.start > _EDGE_S,
            left=after and segment.end - last.at > _EDGE_S,
        )

    def _frames_for(self, tracklet: Tracklet) -> Sequence[int]:
        """The frames in which a tracklet would have been seen."""
        by_face_alone = all(seen.body is None for seen in tracklet.seen)
        return self._face_frames if by_face_alone else range(len(self._sizes))

    def _boxes(self, tracklet: Tracklet) -> tuple[tuple[float, NormBox], ...]:
        """Boxes over time: of the body, and where only the face was found, of the body where it must be."""
        both = [seen for seen in tracklet.seen if seen.body is not None and seen.face is not None]
        boxes = []
        for seen in tracklet.seen:
            box = seen.box
            if seen.body is None and seen.face is not None and both:
                near = min(both, key=lambda other: (abs(other.frame - seen.frame), other.frame))
                box = _moved(near.body, near.face, seen.face)
            width, height = self._sizes[seen.frame]
            boxes.append((seen.at, normalise(box, width, height)))
        return tuple(boxes)

    def _listen(self, segment: Segment, kept: Sequence[Tracklet], tracks: Sequence[Track]) -> SpeechEvidence:
        if self._speech is None:
            return SpeechEvidence()
        heard = self._speech.analyse(segment)
        turns: dict[str, list[Span]] = {}
        for turn in heard.turns:
            turns.setdefault(turn.voice, []).append(Span(turn.start, turn.end))
        faces = [
            Face(track.anchor, track.start, track.end, tracklet.moves)
            for track, tracklet in zip(tracks, kept, strict=True)
            if track.label == PERSON
        ]
        return replace(heard, voices=tie(heard.voices, turns, faces))

    def _key_frames(self, kept: Sequence[Tracklet]) -> tuple[KeyFrame, ...]:
        anchors = {t.number: f"a{index + 1}" for index, t in enumerate(kept)}
        frames = []
        for candidate in self._chooser.choose(self._settings.key_frames, anchors):
            seen = [anchors[t.number] for t in kept if any(s.at == candidate.at for s in t.seen)]
            frames.append(KeyFrame(candidate.at, candidate.image, tuple(seen)))
        return tuple(frames)


def _aligned(image: Image, face: FoundFace) -> Image | None:
    try:
        return align(image, face.landmarks)
    except ValueError:
        return None  # landmarks in one point are no face


def _with_looks(sighting: Sighting, image: Image, crops: dict[int, Image]) -> Sighting:
    if sighting.label != PERSON:
        return sighting
    return replace(
        sighting,
        look=body_look(image, sighting.body) if sighting.body is not None else None,
        face_look=face_look(crops[id(sighting.face)]) if sighting.face is not None else None,
    )


def _risky(people: Sequence[Tracklet]) -> set[int]:
    """Tracklets that may hold two people: others were in view, or a link between frames was weak."""
    return {t.number for t in people if t.weak or len(people) > 1}


def _twice(a: Tracklet, b: Tracklet, faces: dict[int, FaceEvidence]) -> bool:
    first, second = faces[a.number].embedding, faces[b.number].embedding
    if first is None or second is None or float(first @ second) < _MIRROR:
        return False
    together = {seen.frame for seen in a.seen if seen.face} & {seen.frame for seen in b.seen if seen.face}
    shorter = min(len(a.seen), len(b.seen))
    return len(together) >= min(_MIRROR_FRAMES, shorter)


def _moved(body: Box | None, from_face: Box | None, to_face: Box) -> Box:
    """A body's box, shifted and scaled as its face was."""
    if body is None or from_face is None:
        return to_face
    scale = (to_face[2] - to_face[0]) / max(from_face[2] - from_face[0], 1e-6)
    left, top = body[0] - from_face[0], body[1] - from_face[1]
    x, y = to_face[0] + left * scale, to_face[1] + top * scale
    return x, y, x + (body[2] - body[0]) * scale, y + (body[3] - body[1]) * scale
