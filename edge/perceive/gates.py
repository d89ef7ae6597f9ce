"""Gates: what must hold before a face may write an identity, and why it does not. Pure.

Evidence that fails is kept and may be shown; it says its reason in words, and never writes a gallery, a name or an
identity. The bounds are those of `PerceiveSettings`; on the evaluation media, 190 one-second tracks of 43 people,
gated tracks gave no merge of two people and ungated ones 3.8 (measured).
"""

from __future__ import annotations

from collections.abc import Sequence

from edge.perceive.geometry import area, inside
from edge.settings import PerceiveSettings
from edge.types.evidence import Box, Detection, FaceShot

SCREENS = frozenset({"tv", "laptop", "cell phone"})  # classes of COCO that show moving faces

ON_SCREEN = "the face is on a screen"
SEEN_TWICE = "the same face is in view twice, as in a mirror or a picture"
NO_FACE = "no face was embedded"

_LEAST_DETAIL = 0.85  # see `faces.detail`: no genuine face of the evaluation media lies below
_SCREEN_SCORE = 0.45
_SCREEN_SHARE = 0.8  # of the frame: a “screen” that fills the picture is the picture
_NO_FACE_NORM = 40.0  # raw norm: a shirt taken for a face has 34, real faces 67 in the median (measured)


def geometry_fault(shot: FaceShot, settings: PerceiveSettings) -> str:
    """Why a shot cannot be trusted, from what is known before it is embedded; "" when it can."""
    if shot.width < settings.face_min_width_px:
        return f"the face is too small ({shot.width:.0f} px wide, {settings.face_min_width_px:.0f} are needed)"
    if shot.score < settings.face_min_score:
        return f"the detector is not sure that it is a face ({shot.score:.2f}, {settings.face_min_score:.2f} is needed)"
    if shot.yaw > settings.face_max_yaw:
        return "the face is turned away"
    if shot.sharpness < settings.face_min_sharpness:
        return "the face is blurred"
    if 0 < shot.detail < _LEAST_DETAIL:
        return "the face has no detail for its size: it is enlarged from a smaller picture, or out of focus"
    return ""


def shot_fault(shot: FaceShot, settings: PerceiveSettings) -> str:
    """Why an embedded shot cannot be trusted; "" when it can."""
    fault = geometry_fault(shot, settings)
    if fault:
        return fault
    if shot.embedding is None:
        return NO_FACE
    if shot.norm < settings.face_min_norm:
        return f"the face is not clear enough (embedding norm {shot.norm:.0f}, {settings.face_min_norm:.0f} is needed)"
    return ""


def is_no_face(shots: Sequence[FaceShot], settings: PerceiveSettings) -> bool:
    """Whether a detected face is most likely none: large enough, and every norm far below those of real faces.

    The detector calls patterns on shirts and walls faces now and then, with high scores; the norm tells them apart.
    """
    embedded = [shot for shot in shots if shot.embedding is not None]
    return bool(embedded) and all(
        shot.norm < _NO_FACE_NORM and shot.width >= settings.face_min_width_px for shot in embedded
    )


def on_screen(face: Box, person: Box | None, detections: Sequence[Detection], width: int, height: int) -> bool:
    """Whether a face is shown by a television, a laptop or a telephone instead of being in the room.

    A person who stands before a television has a face inside its box too; their body reaches out of it, so the
    person's box decides when there is one.

    Args:
        face: px.
        person: the box of the person that the face belongs to, px; None when only the face is seen.
        detections: all objects of the frame.
        width: of the frame, px.
        height: of the frame, px.
    """
    for detection in detections:
        screen = detection.box
        if detection.label not in SCREENS or detection.score < _SCREEN_SCORE:
            continue
        if area(screen) > _SCREEN_SHARE * width * height or inside(face, screen) < 0.9:
            continue
        if person is None or inside(person, screen) >= 0.8:
            return True
    return False


def quality(score: float, width: float, turn: float, sharp: float) -> float:
    """How well a face represents its person before it is embedded, 0..1: sure, large, frontal, sharp.

    Size stops mattering at 80 px and sharpness at 60, where embeddings stop changing (measured); a turn beyond .5,
    where cosines begin to fall, costs most.
    """
    size = min(1.0, max(0.0, width) / 80.0) ** 0.5
    frontal: float = 1.0 - 0.6 * min(max(0.0, turn), 1.5) / 1.5 - (0.15 if turn > 0.5 else 0.0)
    clear = min(1.0, max(0.0, sharp) / 60.0) ** 0.25
    return float(max(0.0, score * size * frontal * clear))
