"""Face shots: which are kept while a segment runs, which are embedded at its end, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from edge.perceive.embed import Embedder
from edge.perceive.faces import FoundFace, detail, sharpness, yaw
from edge.perceive.gates import NO_FACE, ON_SCREEN, geometry_fault, quality, shot_fault
from edge.perceive.mouth import mouth_motion
from edge.perceive.stitch import usable_mean
from edge.perceive.tracking import Tracklet
from edge.settings import PerceiveSettings
from edge.types.evidence import FaceEvidence, FaceShot
from edge.types.media import Image

CANDIDATES = 10  # crops kept a track while its segment runs: 380 kB


def make_shot(at: float, face: FoundFace, image: Image, crop: Image) -> FaceShot:
    """A shot that is not embedded yet.

    Args:
        at: UTC POSIX seconds.
        face: in px of the frame.
        image: the frame, (H, W, 3) BGR.
        crop: (112, 112, 3) aligned.
    """
    return FaceShot(
        at=at,
        box=face.box,
        landmarks=face.landmarks,
        score=face.score,
        width=face.box[2] - face.box[0],
        sharpness=sharpness(crop),
        yaw=yaw(face.landmarks),
        norm=0.0,
        embedding=None,
        crop=crop,
        detail=detail(image, face.box),
    )


def shot_quality(shot: FaceShot) -> float:
    """How well a shot represents its person, 0..1; see `gates.quality`."""
    return quality(shot.score, shot.width, shot.yaw, shot.sharpness)


def keep_shot(shots: list[FaceShot], shot: FaceShot, most: int = CANDIDATES) -> None:
    """Add a shot to the candidates of a track, in order of time; of too many the least useful goes.

    The better half stays for its quality; of the others the one goes whose neighbours in time are nearest: two people
    who were followed as one can be told apart only while both are among the candidates.
    """
    shots.append(shot)
    if len(shots) <= most:
        return
    ranked = sorted(range(len(shots)), key=lambda index: (-shot_quality(shots[index]), index))
    crowded = min(ranked[most // 2 :], key=lambda index: (_room(shots, index), shot_quality(shots[index]), index))
    del shots[crowded]


def _room(shots: Sequence[FaceShot], index: int) -> float:
    """Seconds between the neighbours of a shot; endless for the first and the last."""
    return shots[index + 1].at - shots[index - 1].at if 0 < index < len(shots) - 1 else math.inf


def to_embed(tracklet: Tracklet, settings: PerceiveSettings, *, risky: bool) -> list[int]:
    """Which candidates of a track are worth an embedding, as indices.

    Args:
        tracklet: of a person.
        settings: the gates and the number of best shots.
        risky: other people were in view, so the track may have gone over to one of them: all good candidates are
            wanted.

    Returns:
        The best that pass the gates; when none does, the best that is large enough, because its norm tells whether it
        is a face at all.
    """
    ranked = sorted(range(len(tracklet.shots)), key=lambda index: (-shot_quality(tracklet.shots[index]), index))
    good = [index for index in ranked if not geometry_fault(tracklet.shots[index], settings)]
    if good:
        return good if risky else good[: settings.best_shots]
    return [index for index in ranked if tracklet.shots[index].width >= settings.face_min_width_px][:1]


def embed_shots(tracklets: Sequence[Tracklet], embedder: Embedder, settings: PerceiveSettings, risky: set[int]) -> int:
    """Embed the shots that are worth it, in place.

    Args:
        tracklets: of people.
        embedder: of faces.
        settings: the gates and the number of best shots.
        risky: numbers of tracklets whose good candidates are all wanted.

    Returns:
        How many were embedded.

    Raises:
        InferenceError: the network failed.
    """
    wanted = [
        (tracklet, index)
        for tracklet in tracklets
        for index in to_embed(tracklet, settings, risky=tracklet.number in risky)
    ]
    crops = [crop for tracklet, index in wanted if (crop := tracklet.shots[index].crop) is not None]
    for (tracklet, index), (vector, norm) in zip(wanted, embedder.embed(crops), strict=True):
        tracklet.shots[index] = replace(tracklet.shots[index], embedding=vector, norm=norm)
    return len(wanted)


def usable(tracklet: Tracklet, settings: PerceiveSettings) -> list[FaceShot]:
    """The embedded shots that pass all gates, best first."""
    good = [shot for shot in tracklet.shots if not shot_fault(shot, settings)]
    return sorted(good, key=lambda shot: (-shot_quality(shot), shot.at))


def face_evidence(tracklet: Tracklet, embedder: str, settings: PerceiveSettings) -> FaceEvidence | None:
    """What the shots of a track come to; None when no face was seen.

    Args:
        tracklet: of a person, its shots embedded.
        embedder: key of the embedding model; "" without one.
        settings: the gates and the number of best shots.
    """
    if not tracklet.shots:
        return None
    good = usable(tracklet, settings)[: settings.best_shots]
    rest = sorted(tracklet.shots, key=lambda shot: (shot.embedding is None, -shot_quality(shot), shot.at))
    shots = [*good, *(shot for shot in rest if all(shot is not kept for kept in good))][: settings.best_shots]
    embedding = usable_mean(good)
    shown = [seen for seen in tracklet.seen if seen.face is not None]
    if shown and 2 * sum(seen.screen for seen in shown) >= len(shown):
        reason = ON_SCREEN
    elif embedding is not None:
        reason = ""
    else:
        reason = (shot_fault(shots[0], settings) if embedder else NO_FACE) or NO_FACE
    return FaceEvidence(
        shots=tuple(shots),
        embedding=embedding,
        safe=not reason,
        reason=reason,
        embedder=embedder,
        mouth_motion=mouth_motion(tracklet.moves),
    )
