"""The Perceiver: frames in, evidence out, with the shipped networks on a real photograph and with scripted detectors."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from skimage import data

from edge.errors import InferenceError
from edge.infer import Catalog, Runtime
from edge.perceive import Perceiver, build_perceiver, describe
from edge.perceive.faces import FoundFace
from edge.perceive.speech import SpeechEvidence, Turn
from edge.settings import InferSettings, PerceiveSettings
from edge.types.evidence import Detection, SegmentEvidence, Track, Utterance, Voice
from edge.types.media import Frame, Image, Segment, Span
from tests.vision_support import (
    ColourEmbedder,
    ScriptedFaces,
    ScriptedObjects,
    astronaut,
    backdrop,
    face_at,
    paste,
    person_around,
    read,
    real_perceiver,
    segment,
    watch,
)


@pytest.fixture(scope="module")
def perceiver() -> Perceiver:
    return real_perceiver()


def people(evidence: SegmentEvidence) -> list[Track]:
    return [track for track in evidence.tracks if track.label == "person"]


def walk(steps: int, *, side: int = 300, first: int = 0, last: int = 660) -> list[Image]:
    """A person who moves through the picture."""
    canvas, person = backdrop(), astronaut(side)
    return [paste(canvas, person, first + (last - first) * i // max(1, steps - 1), 200) for i in range(steps)]


def test_a_person_who_moves_is_one_track_with_a_safe_face(perceiver: Perceiver) -> None:
    evidence = watch(perceiver, walk(10))
    (track,) = people(evidence)
    assert track.anchor in {item.anchor for item in evidence.tracks}
    assert track.face is not None
    assert track.face.safe, track.face.reason
    assert track.face.embedding is not None
    assert np.linalg.norm(track.face.embedding) == pytest.approx(1, abs=1e-4)
    assert track.face.embedder.startswith("mobilefacenet-192d@")
    assert 1 <= len(track.face.shots) <= PerceiveSettings().best_shots
    assert all(shot.crop is not None and shot.crop.shape == (112, 112, 3) for shot in track.face.shots)
    times = [at for at, _ in track.boxes]
    assert times == sorted(set(times))
    assert len(times) >= 8
    lefts = [box[0] for _, box in track.boxes]
    assert lefts[-1] - lefts[0] > 0.5
    assert all(0 <= x1 < x2 <= 1 and 0 <= y1 < y2 <= 1 for _, (x1, y1, x2, y2) in track.boxes)
    assert (track.entered, track.left) == (False, False)
    assert track.start == 1000.0
    assert track.end == evidence.end
    assert track.face.mouth_motion < 1.2, "a photograph does not speak"


def test_a_still_photograph_is_a_person(perceiver: Perceiver) -> None:
    evidence = watch(perceiver, [astronaut()], tail=20.0)
    (track,) = people(evidence)
    assert track.face is not None
    assert track.face.safe
    assert track.face.mouth_motion == 0.0
    assert track.end == evidence.end, "nothing changed to the end"
    (key,) = evidence.key_frames
    assert track.anchor in key.anchors


def test_coming_and_going_is_seen(perceiver: Perceiver) -> None:
    empty, present = backdrop(), paste(backdrop(), astronaut(300), 330, 200)
    evidence = watch(perceiver, [empty] * 4 + [present] * 6 + [empty] * 8, change=20.0)
    (track,) = people(evidence)
    assert (track.entered, track.left) == (True, True)
    assert track.start == pytest.approx(1002.0)
    assert track.end == pytest.approx(1004.5)
    entrance = [key for key in evidence.key_frames if track.anchor in key.anchors]
    assert entrance
    assert len(evidence.key_frames) <= PerceiveSettings().key_frames


def test_someone_who_leaves_and_comes_back_is_one_person(perceiver: Perceiver) -> None:
    empty = backdrop()
    left, right = paste(empty, astronaut(300), 60, 200), paste(empty, astronaut(300), 600, 200)
    evidence = watch(perceiver, [left] * 4 + [empty] * 8 + [right] * 4, change=20.0)
    (track,) = people(evidence)
    assert len({at for at, _ in track.boxes}) == 8


def test_who_comes_in_the_last_frame_is_found_though_nothing_changes_after(perceiver: Perceiver) -> None:
    empty, present = backdrop(), paste(backdrop(), astronaut(300), 330, 200)
    for blanks in (1, 2, 3, 4):
        evidence = watch(perceiver, [empty] * blanks + [present], tail=10.0)
        assert len(people(evidence)) == 1, blanks


def test_things_are_tracks_too(perceiver: Perceiver) -> None:
    cat = np.ascontiguousarray(data.chelsea()[:, :, ::-1])
    for images in ([cat], [cat, np.roll(cat, 4, axis=1), np.roll(cat, 8, axis=1)]):
        evidence = watch(perceiver, images)
        (track,) = [item for item in evidence.tracks if item.label == "cat"]
        assert track.face is None
        assert not people(evidence), "a cat whose face looks like one is no person"


def test_the_same_frames_give_the_same_evidence(perceiver: Perceiver) -> None:
    first, second = (watch(perceiver, walk(6)) for _ in range(2))
    assert [(t.anchor, t.label, t.boxes, t.start, t.end) for t in first.tracks] == [
        (t.anchor, t.label, t.boxes, t.start, t.end) for t in second.tracks
    ]
    one, two = people(first)[0].face, people(second)[0].face
    assert one is not None
    assert two is not None
    assert np.array_equal(one.embedding, two.embedding)  # type: ignore[arg-type]
    assert [key.at for key in first.key_frames] == [key.at for key in second.key_frames]
    assert first.counts == second.counts


def test_a_discarded_segment_leaves_nothing(perceiver: Perceiver) -> None:
    perceiver.see(Frame(astronaut(), 1.0, 0, 0.0, 255.0))
    perceiver.discard()
    evidence = perceiver.close(segment(0.0, 5.0))
    assert evidence.tracks == ()
    assert evidence.key_frames == ()
    assert evidence.counts.object_frames == 0


def test_the_evidence_can_be_described(perceiver: Perceiver) -> None:
    evidence = watch(perceiver, walk(6))
    (track,) = people(evidence)
    assert "{{3}}" in describe(evidence, {track.anchor: "{{3}}"}).text


def test_a_sight_says_what_is_in_view(perceiver: Perceiver) -> None:
    perceiver.discard()
    frames = walk(8, last=400)
    anchors = []
    for index, image in enumerate(frames):
        sight = perceiver.see(Frame(image, float(index) / 2, index, 0.0, 255.0 if index == 0 else 3.0))
        (shown,) = [item for item in sight.in_view if item.label == "person"]
        assert shown.face is not None
        assert shown.box[0] <= shown.face[0]
        assert (sight.width, sight.height) == (960, 540)
        anchors.append(shown.anchor)
    perceiver.discard()
    assert len(set(anchors)) == 1


# -- scripted detectors ---------------------------------------------------------------------------------------------


def coloured(*patches: tuple[tuple[int, int], tuple[int, int, int]], noise: int = 0) -> Image:
    """A picture with textured coloured squares of 100 px, where scripted faces are."""
    image = np.full((480, 640, 3), 90, np.uint8)
    texture = np.random.default_rng(3).integers(-40, 40, (480, 640, 1)).astype(np.int16)
    for (x, y), colour in patches:
        image[max(0, y - 30) : y + 130, max(0, x - 30) : x + 130] = colour
    return np.clip(image + texture + noise, 0, 255).astype(np.uint8)


def scripted(
    faces: dict[int, list[FoundFace]], objects: dict[int, list[Detection]] | None = None, **extra: object
) -> tuple[Perceiver, ScriptedFaces, ScriptedObjects | None]:
    """A Perceiver whose detectors know pictures by the value of their first pixel."""
    finder = ScriptedFaces(lambda image: faces.get(int(image[0, 0, 0]), []))
    detector = ScriptedObjects(lambda image: objects.get(int(image[0, 0, 0]), [])) if objects is not None else None
    perceiver = Perceiver(objects=detector, faces=finder, face_embedder=ColourEmbedder(), **extra)  # type: ignore[arg-type]
    return perceiver, finder, detector


def tagged(image: Image, tag: int) -> Image:
    image[0, 0, 0] = tag
    return image


RED, BLUE = (20, 20, 250), (250, 30, 20)


def test_people_who_cross_keep_their_identities_even_when_boxes_swap() -> None:
    faces, images = {}, []
    for step in range(12):
        a, b = face_at(60 + 40 * step, 150, 80), face_at(500 - 40 * step, 150, 80)
        image = coloured(
            ((int(a.box[0]), 150), RED if step < 6 else BLUE), ((int(b.box[0]), 150), BLUE if step < 6 else RED)
        )
        faces[step + 1] = [a, b] if abs(a.box[0] - b.box[0]) > 90 else []
        images.append(tagged(image, step + 1))
    perceiver, _, _ = scripted(faces)
    evidence = watch(perceiver, images)
    for track in people(evidence):
        assert track.face is not None
        vectors = [shot.embedding for shot in track.face.shots if shot.embedding is not None]
        assert all(float(vector @ vectors[0]) > 0.5 for vector in vectors), "one person a track"
    assert len(people(evidence)) == 2


def test_no_network_sees_a_picture_twice() -> None:
    script = {i: [face_at(100 + i, 100, 80)] for i in range(1, 14)}
    boxes = {i: [person_around(script[i][0])] for i in script}
    perceiver, finder, detector = scripted(script, boxes)
    images = [tagged(coloured(((100 + i, 100), RED)), i) for i in script]
    evidence = watch(perceiver, images)
    assert detector is not None
    assert len(detector.shown) == len(set(detector.shown)) == evidence.counts.object_frames
    assert len(finder.shown) == len(set(finder.shown)) == evidence.counts.face_frames
    assert evidence.counts.object_frames < len(images)
    assert id(images[-1]) in detector.shown, "the last frame is looked at in full"


def test_memory_does_not_grow_with_a_segment() -> None:
    faces = {1: [face_at(100, 100, 80), face_at(400, 100, 80)]}
    perceiver, _, _ = scripted(faces, {1: [person_around(face) for face in faces[1]]})
    sizes = []
    images = [tagged(coloured(((100, 100), RED), ((400, 100), BLUE), noise=noise), 1) for noise in (0, 3)]
    tracemalloc.start()
    for index in range(240):
        image = images[index % 2]
        perceiver.see(Frame(image, index / 2, index, 0.0, 255.0 if index == 0 else 3.0))
        if index in (60, 239):
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[1] - sizes[0] < 1_000_000
    assert len(people(perceiver.close(segment(0.0, 120.0)))) == 2


def test_a_face_on_a_television_is_no_one_in_the_room() -> None:
    shown, there = face_at(400, 120, 60), face_at(80, 150, 90)
    television = Detection("tv", 0.9, (330.0, 60.0, 560.0, 260.0))
    perceiver, _, _ = scripted({1: [shown, there]}, {1: [television, person_around(there)]})
    evidence = watch(perceiver, [tagged(coloured(((400, 120), BLUE), ((80, 150), RED)), 1)] * 3)
    safe = {track.face.safe: track for track in people(evidence) if track.face is not None}
    assert safe[True].boxes[0][1][0] < 0.3
    assert safe[False].face is not None
    assert "screen" in safe[False].face.reason


def test_a_mirror_makes_no_second_person() -> None:
    large, small = face_at(80, 150, 90), face_at(420, 100, 60)
    perceiver, _, _ = scripted({1: [large, small]})
    evidence = watch(perceiver, [tagged(coloured(((80, 150), RED), ((420, 100), RED)), 1)] * 3)
    by_width = sorted(people(evidence), key=lambda t: t.face.shots[0].width if t.face is not None else 0)
    assert by_width[1].face is not None
    assert by_width[1].face.safe
    assert by_width[0].face is not None
    assert "twice" in by_width[0].face.reason


def test_what_the_detector_calls_a_face_and_is_none_is_nobody() -> None:
    perceiver, _, _ = scripted({1: [face_at(80, 150, 90)]})
    evidence = watch(perceiver, [tagged(coloured(((80, 150), (128, 140, 120))), 1)] * 4)  # a weak norm
    assert people(evidence) == []


def test_a_flicker_of_the_detector_is_dropped_and_a_steady_thing_stays() -> None:
    cup = Detection("cup", 0.45, (300.0, 300.0, 360.0, 380.0))
    ghost = Detection("dog", 0.4, (10.0, 10.0, 90.0, 90.0))
    objects = {1: [cup, ghost], 2: [cup], 3: [cup], 4: [cup], 5: [cup]}
    perceiver, _, _ = scripted({}, objects)
    evidence = watch(perceiver, [tagged(coloured(noise=i), i) for i in range(1, 6)], change=20.0)
    assert [track.label for track in evidence.tracks] == ["cup"]


def test_anchors_follow_first_appearance_then_left_to_right() -> None:
    def thing(label: str, x: float) -> Detection:
        return Detection(label, 0.9, (x, 200.0, x + 60, 260.0))

    objects = {1: [thing("vase", 400), thing("cup", 40)], 2: [thing("vase", 400), thing("cup", 40), thing("book", 10)]}
    perceiver, _, _ = scripted({}, objects)
    evidence = watch(perceiver, [tagged(coloured(), 1), tagged(coloured(noise=1), 2)], change=20.0)
    assert [(track.anchor, track.label) for track in evidence.tracks] == [("a1", "cup"), ("a2", "vase"), ("a3", "book")]


class ScriptedSpeech:
    """Says what was heard."""

    def __init__(self, evidence: SpeechEvidence) -> None:
        self.evidence = evidence

    def analyse(self, segment: Segment) -> SpeechEvidence:
        del segment
        return self.evidence


def test_sound_alone_works_and_what_was_heard_goes_through() -> None:
    heard = SpeechEvidence(
        voices=(Voice("v1", 3.0, None, True, "x"),),
        utterances=(Utterance(1.0, 4.0, "Hello there.", "v1"),),
        turns=(Turn(1.0, 4.0, "v1"),),
        refused_words=2,
    )
    perceiver = Perceiver(objects=None, faces=None, face_embedder=None, speech=ScriptedSpeech(heard))
    evidence = perceiver.close(segment(0.0, 6.0, audio=np.zeros(96_000, np.float32), speech=(Span(1.0, 4.0),)))
    assert evidence.utterances == heard.utterances
    assert evidence.voices[0].track is None
    assert evidence.tracks == evidence.key_frames == ()
    assert evidence.counts.speech_seconds == 3.0
    assert evidence.counts.words_refused == 2


def test_a_network_that_fails_costs_its_frame_only() -> None:
    calls = {"left": 1}

    def script(image: Image) -> list[Detection]:
        if calls["left"]:
            calls["left"] -= 1
            raise InferenceError("The network failed. Try again.")
        return [Detection("cup", 0.9, (300.0, 300.0, 360.0, 380.0))]

    perceiver = Perceiver(objects=ScriptedObjects(script), faces=None, face_embedder=None)
    with pytest.raises(InferenceError):
        perceiver.see(Frame(coloured(), 0.0, 0, 0.0, 255.0))
    perceiver.see(Frame(coloured(), 0.5, 1, 0.0, 2.0))
    (track,) = perceiver.close(segment(0.0, 1.0)).tracks
    assert (track.label, track.start) == ("cup", 0.5)


def test_bodies_are_embedded_when_there_is_a_network_for_them() -> None:
    face = face_at(100, 60, 80)
    perceiver, _, _ = scripted({1: [face]}, {1: [person_around(face)]}, bodies=ColourEmbedder())
    evidence = watch(perceiver, [tagged(coloured(((100, 60), RED)), 1)] * 6)
    (track,) = people(evidence)
    assert track.body is not None
    assert track.body_embedder == "colour@test"
    assert 1 <= evidence.counts.bodies_embedded <= 3


def test_missing_models_are_said_in_sentences_and_the_rest_works(tmp_path: Path) -> None:
    bundle = Path(Catalog.load(InferSettings()).default("faces").files[0].location).parent
    shutil.copy(bundle / "catalog.toml", tmp_path / "catalog.toml")
    for name in ("mobilefacenet_192d.onnx", "retinaface_mnet025_op13.onnx"):
        shutil.copy(bundle / name, tmp_path / name)
    settings = InferSettings(models_dir=tmp_path / "pulled")
    perceiver = build_perceiver(Catalog.load(settings, bundle=tmp_path), Runtime(settings), PerceiveSettings())
    assert any(line.startswith("No objects are seen") for line in perceiver.missing)
    assert any("reflectworld models pull" in line for line in perceiver.missing), "the remedy is named"
    (track,) = people(watch(perceiver, [astronaut()]))
    assert track.face is not None
    assert track.face.safe


# -- real clips ----------------------------------------------------------------------------------------------------


def test_two_real_people_cross_and_stay_themselves(shared: Path, perceiver: Perceiver) -> None:
    folder = shared / "media" / "faces" / "us_gov"
    first = read(folder / "obama.jpg", 350)
    second = read(folder / "biden2.jpg", 330)
    alone = {}
    for name, sprite in (("first", first), ("second", second)):
        (track,) = [t for t in people(watch(perceiver, [paste(backdrop(), sprite, 300, 150)])) if t.face is not None]
        assert track.face is not None
        alone[name] = track.face.embedding
    images = [paste(paste(backdrop(), first, 20 + 50 * i, 180), second, 640 - 50 * i, 200) for i in range(13)]
    found = {}
    for track in people(watch(perceiver, images)):
        if track.face is None or track.face.embedding is None:
            continue
        cosines = {name: float(track.face.embedding @ vector) for name, vector in alone.items()}
        name = max(cosines, key=lambda key: cosines[key])
        assert cosines[name] > 0.7
        assert min(cosines.values()) < 0.3
        direction = track.boxes[-1][1][0] - track.boxes[0][1][0]
        assert (direction > 0) == (name == "first")
        found[name] = found.get(name, 0) + 1
    assert found == {"first": 1, "second": 1}
