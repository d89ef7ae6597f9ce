"""The Perceiver: frames of the open segment in, one by one; at its end scored evidence out.

Each network sees a picture once. What is kept of a frame is boxes and small crops, so memory does not grow with a
segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from edge.perceive.bodies import body_crop, body_quality
from edge.perceive.conclude import Looks, face_evidences, is_animal, is_nothing, risky, sort_out, track
from edge.perceive.embed import Embedder, mean_vector
from edge.perceive.faces import FaceFinder, FoundFace, align
from edge.perceive.geometry import area, clip
from edge.perceive.glimpse import Glimpses
from edge.perceive.keyframes import KeyFrameChooser
from edge.perceive.mouth import compare
from edge.perceive.objects import ObjectDetector, SceneDetector
from edge.perceive.scenes import Views
from edge.perceive.schedule import FaceLook, Schedule
from edge.perceive.shots import embed_shots, keep_shot, make_shot, shot_quality
from edge.perceive.sightings import PERSON, Sighting, body_look, face_look, gather
from edge.perceive.speech import SpeechEvidence
from edge.perceive.stitch import one_class
from edge.perceive.tracking import BodyCrop, Tracker, Tracklet
from edge.perceive.voices import Face, Listener, tie
from edge.settings import PerceiveSettings
from edge.types.evidence import Box, Detection, KeyFrame, PerceptionCounts, SegmentEvidence, Track, Vector
from edge.types.media import Frame, Image, Segment, Span

_BODY_CROPS = 3  # kept a track
_AROUND = 1.2  # widths of a face, on each side, within which it is looked for again
# px of the whole input: half of it is enough for faces of this width, and their embeddings have a cosine of .95 and more to
# those of the whole input (measured: 36 faces of GRID, Intel and EgoBlur; 10th percentile)
_HALF_PX = 96.0
_AROUND_MOST = 0.6  # of the picture; more of it is not worth cutting out
_MOUTH_S = 3.0  # shots further apart say nothing of speaking


@dataclass(frozen=True, slots=True)
class InView:
    """One person or object on the present frame."""

    anchor: str  # holds while the segment is open; at its end anchors are given anew, without what proved to be nothing
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
    in_view: tuple[InView, ...]  # also what goes on as it was and was not looked at anew
    detections: tuple[Detection, ...]  # of this frame; none when the object detector did not look
    faces: tuple[FoundFace, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Glance:
    """A frame and what was found on it so far."""

    at: float
    image: Image
    look: FaceLook
    half: bool  # the faces were found on a picture of half the sides
    faces: tuple[FoundFace, ...]
    crops: dict[int, Image]  # id of a face → aligned crop


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
        self._schedule = Schedule()
        self._tracker = Tracker()
        self._chooser = KeyFrameChooser()
        self._looks = Looks()
        self._views = Views(self._objects.scene_key if isinstance(self._objects, SceneDetector) else "")
        self._object_runs = 0
        self._face_runs = 0
        self._glimpses = None if self._face_embedder is None else Glimpses(self._face_embedder, self._settings)
        self._owed: _Glance | None = None  # the last frame, when it had a light look only
        self._owed_objects = False  # the object detector did not see it

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
        height, width = frame.image.shape[:2]
        detections: tuple[Detection, ...] | None = None
        if self._objects is None or self._schedule.objects(frame.at, frame.change, news=frame.news):
            detections = self._detect(frame.image)
        bodies = None if detections is None else sum(detection.label == PERSON for detection in detections)
        look = self._schedule.faces(frame.at, bodies, frame.change, news=frame.news)
        glance = self._glance(frame.at, frame.image, look)
        if detections is not None or glance.look is not FaceLook.NONE:
            self._take(glance, detections)
        self._schedule.note(
            frame.at,
            objects=detections is not None,
            look=glance.look,
            people=sum(tracklet.label == PERSON for tracklet in self._tracker.in_view),
            faces=len(glance.faces),
        )
        self._owed = glance if detections is None or glance.look is FaceLook.NONE else None
        self._owed_objects = detections is None
        return Sight(frame.at, width, height, self._in_view(), detections or (), glance.faces)

    def faces_now(self) -> dict[str, Vector]:
        """The faces in view that are good enough to be known by, for a live view; the evidence does not depend on it.

        Returns:
            Anchor as in `Sight` → unit vector of `face_embedder`.

        Raises:
            InferenceError: the network failed.
        """
        if self._glimpses is None:
            return {}
        people = [tracklet for tracklet in self._tracker.in_view if tracklet.label == PERSON]
        return {f"a{number + 1}": vector for number, vector in self._glimpses.of(people).items()}

    @property
    def face_embedder(self) -> str:
        """Key of the face embedder; "" without one."""
        return "" if self._face_embedder is None else self._face_embedder.key

    def _detect(self, image: Image) -> tuple[Detection, ...]:
        if self._objects is None:
            return ()
        self._object_runs += 1
        if not isinstance(self._objects, SceneDetector):
            return self._objects.detect(image)
        look = self._objects.look(image)
        if look.scene is not None:
            self._views.add(look.scene)
        return look.detections

    def _glance(self, at: float, image: Image, look: FaceLook) -> _Glance:
        found: tuple[FoundFace, ...] = ()
        if self._faces is None:
            look = FaceLook.NONE
        half = False
        if look is not FaceLook.NONE and self._faces is not None:
            self._face_runs += 1
            within, half = self._around_faces(image) if look is FaceLook.AROUND else (None, False)
            look = FaceLook.AROUND if half or within is not None else FaceLook.FULL
            found = self._faces.detect(image, within=within, half=half)
            if look is FaceLook.AROUND and len(found) < self._known_faces():  # one has gone, or gone far
                look, half = FaceLook.FULL, False
                found = self._faces.detect(image)
        crops = {id(face): crop for face in found if (crop := _aligned(image, face)) is not None}
        return _Glance(at, image, look, half, tuple(face for face in found if id(face) in crops), crops)

    def _known_faces(self) -> int:
        return sum(seen.face is not None for t in self._tracker.in_view if (seen := t.last) is not None)

    def _around_faces(self, image: Image) -> tuple[Box | None, bool]:
        """Where and how the faces in view are looked for again.

        Returns:
            The part of the picture that holds them and where they may have moved (None: it is most of it), and whether all
            are large enough for half the scale.
        """
        height, width = image.shape[:2]
        boxes = [seen.face.box for t in self._tracker.in_view if (seen := t.last) is not None and seen.face is not None]
        if not boxes:
            return None, False
        half = min(x2 - x1 for x1, _, x2, _ in boxes) * self._settings.face_input_px / max(height, width) >= _HALF_PX
        wide = [(_AROUND * (x2 - x1), (x1, y1, x2, y2)) for x1, y1, x2, y2 in boxes]
        left, top = min(box[0] - margin for margin, box in wide), min(box[1] - margin for margin, box in wide)
        right, bottom = max(box[2] + margin for margin, box in wide), max(box[3] + margin for margin, box in wide)
        part = clip((left, top, right, bottom), width, height)
        return (part if area(part) < _AROUND_MOST * width * height else None), half

    def _take(self, glance: _Glance, detections: Sequence[Detection] | None) -> None:
        """Follow what is on a frame, and keep what is worth keeping of it; no detections: nobody looked for objects."""
        at, image = glance.at, glance.image
        height, width = image.shape[:2]
        sightings = [_with_looks(s, image, glance.crops) for s in gather(detections or (), glance.faces, width, height)]
        known = len(self._tracker.tracklets)
        objects, looked = detections is not None, glance.look is not FaceLook.NONE
        tracklets = self._tracker.update(at, sightings, objects_looked=objects, faces_looked=looked)
        self._looks.sizes.append((width, height))
        if objects and self._objects is not None:
            self._looks.objects.append(self._tracker.frame)
        if looked:
            self._looks.faces.append(self._tracker.frame)
        value = 0.0
        for sighting, tracklet in zip(sightings, tracklets, strict=True):
            value += self._remember(glance, sighting, tracklet)
        arrived = any(t.number >= known and t.label == PERSON for t in tracklets) and self._tracker.frame > 0
        self._chooser.offer(at, image, [t.number for t in self._tracker.in_view], value, entrance=arrived)

    def _in_view(self) -> tuple[InView, ...]:
        return tuple(
            InView(f"a{t.number + 1}", t.label, last.score, last.box, last.face.box if last.face is not None else None)
            for t in self._tracker.in_view
            if (last := t.last) is not None
        )

    def _remember(self, glance: _Glance, sighting: Sighting, tracklet: Tracklet) -> float:
        """Keep what is worth keeping of a sighting; returns how much it makes its frame worth as a key frame."""
        at, image = glance.at, glance.image
        if sighting.label != PERSON:
            return 0.3 * sighting.score
        value = 0.4 * sighting.score
        if sighting.face is not None and (not tracklet.shots or tracklet.shots[-1].at < at):
            crop = glance.crops[id(sighting.face)]
            shot = make_shot(at, sighting.face, image, crop)
            keep_shot(tracklet.shots, shot)
            before = tracklet.last_crops.pop(glance.half, None)
            if shot.width >= self._settings.face_min_width_px:  # in a smaller one the mouth is a few pixels
                if before is not None and at - before[0] <= _MOUTH_S:
                    tracklet.moves.append(compare(before, (at, crop)))
                tracklet.last_crops[glance.half] = (at, crop)
            value += shot_quality(shot)
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
            self._settle()
            return self._conclude(segment)
        finally:
            self._start()

    def _settle(self) -> None:
        """Look at the last frame in full if that was put off: what it shows may have been there to the end."""
        owed, self._owed = self._owed, None
        if owed is None:
            return
        detections = self._detect(owed.image) if self._owed_objects else None
        if owed.look is FaceLook.NONE:
            owed = self._glance(owed.at, owed.image, FaceLook.FULL)
        self._take(owed, detections)

    def _conclude(self, segment: Segment) -> SegmentEvidence:
        settings, looks = self._settings, self._looks
        people = [t for t in self._tracker.tracklets if t.label == PERSON]
        things = [t for t in self._tracker.tracklets if t.label != PERSON]
        embedded = 0
        if self._face_embedder is not None:
            embedded = embed_shots(people, self._face_embedder, settings, risky(people))
        people = sort_out(people, settings, len(self._tracker.tracklets))
        people = [t for t in people if not is_animal(t, things, settings)]
        kept = one_class([t for t in [*people, *things] if not is_nothing(t, looks, settings)])
        kept.sort(key=lambda t: (t.seen[0].frame, t.seen[0].box, t.number))
        bodies = self._body_vectors(kept)
        faces = face_evidences(kept, self._face_embedder.key if self._face_embedder is not None else "", settings)
        tracks = tuple(
            track(f"a{index + 1}", t, segment, looks, faces.get(t.number), bodies.get(t.number))
            for index, t in enumerate(kept)
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
                object_frames=self._object_runs,
                face_frames=self._face_runs,
                faces_embedded=embedded,
                bodies_embedded=sum(len(t.bodies) for t in kept),
                speech_seconds=sum(span.end - span.start for span in segment.speech),
                words_refused=heard.refused_words,
            ),
            visual=self._views.evidence,
        )

    def _body_vectors(self, kept: Sequence[Tracklet]) -> dict[int, tuple[Vector, str]]:
        """Tracklet number → mean appearance and the key of its embedder."""
        if self._bodies is None:
            return {}
        crops = [(tracklet.number, body.image) for tracklet in kept for body in tracklet.bodies]
        found: dict[int, list[Vector]] = {}
        for (number, _), (vector, _norm) in zip(crops, self._bodies.embed([crop for _, crop in crops]), strict=True):
            found.setdefault(number, []).append(vector)
        key = self._bodies.key
        return {n: (mean, key) for n, vectors in found.items() if (mean := mean_vector(vectors)) is not None}

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
