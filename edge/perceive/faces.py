"""Finding faces: RetinaFace boxes, five landmarks, and the aligned crop that an embedding network takes.

Decoding after Deng et al., “RetinaFace: Single-stage Dense Face Localisation in the Wild” (2019), with the anchors of
the MobileNet-0.25 model: two square priors a cell at strides 8, 16 and 32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import ModelSpec, Network, Runtime
from edge.perceive.geometry import clip, similarity
from edge.types.evidence import Box
from edge.types.media import Image

Floats = NDArray[np.float32]

CROP_SIZE = 112  # px, side of an aligned face

# Where the five landmarks lie in an aligned crop of 112 px: the template that ArcFace networks are trained with
# (Deng et al., “ArcFace”, 2019; the reference code's `arcface_src`).
TEMPLATE: Floats = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]], np.float32
)
_DETAIL_PX = 70.0  # px of face width at which detail is measured
_DETAIL_MARGIN = 0.15  # of the box, on each side
_MAX_FACES = 200  # before suppression: bounds the work on a noisy picture


@dataclass(frozen=True, slots=True, eq=False)
class FoundFace:
    """A face in one picture."""

    box: Box
    landmarks: Floats  # (5, 2) px: eyes, nose, corners of the mouth; left before right as in the picture
    score: float  # 0..1


class FaceFinder(Protocol):
    """What the Perceiver needs of a face detector."""

    def detect(self, image: Image, *, within: Box | None = None, half: bool = False) -> tuple[FoundFace, ...]:
        """The faces of a picture, best score first.

        `within`: only this part of it is looked at, px; `half`: only large ones are wanted, and half the scale will do.
        """
        ...


class RetinaFaceDetector:
    """A RetinaFace network behind `FaceFinder`.

    Args:
        spec: catalogue entry; parameters `strides`, `prior_sizes`, `variances`, `nms_iou`, `colour` (`bgr` or `rgb`),
            `mean` and `std` (in that order, for pixels 0..255).
        runtime: opens the network.
        threshold: least score that is returned, 0..1.
        input_px: the longer side of the picture is scaled to this before the network sees it.
    """

    def __init__(self, spec: ModelSpec, runtime: Runtime, *, threshold: float, input_px: int) -> None:
        params = spec.params
        self._network: Network = runtime.open(spec)
        self._input = self._network.inputs[0].name
        self._threshold = threshold
        self._input_px = input_px
        self._strides = tuple(int(stride) for stride in params["strides"])
        self._sizes = tuple(tuple(int(size) for size in row) for row in params["prior_sizes"])
        self._variances = (float(params["variances"][0]), float(params["variances"][1]))
        self._nms_iou = float(params["nms_iou"])
        self._rgb = params["colour"] == "rgb"
        self._mean = np.asarray(params["mean"], np.float32)
        self._std = np.asarray(params["std"], np.float32)
        self._plain = bool((self._std == 1).all())

    def detect(self, image: Image, *, within: Box | None = None, half: bool = False) -> tuple[FoundFace, ...]:
        """The faces of a picture, best score first.

        Args:
            image: (H, W, 3) BGR.
            within: look at this part of it only, px, at the scale of the whole: the cost goes with the area.
            half: scale the picture to half the sides: a quarter of the cost, and small faces are lost.

        Raises:
            InferenceError: the network failed.
        """
        left, top, part = 0, 0, image
        longer = self._input_px // 2 if half else self._input_px
        if within is not None:
            # The part begins where a cell of the network does, so that it sees the same as in the whole picture.
            scale = longer / max(image.shape[:2])
            cell = self._strides[-1] / scale
            left, top = (round(math.floor(max(edge, 0.0) / cell) * cell) for edge in within[:2])
            part = image[top : math.ceil(within[3]), left : math.ceil(within[2])]
            if not part.size:
                return ()
            longer = max(1, round(max(part.shape[:2]) * scale))
        canvas, scale = fit(part, longer, self._strides[-1], self._mean[::-1] if self._rgb else self._mean)
        pixels = canvas[:, :, ::-1] if self._rgb else canvas
        feed = np.ascontiguousarray(pixels.transpose(2, 0, 1)).astype(np.float32)[None]
        feed -= self._mean[:, None, None]
        if not self._plain:
            feed /= self._std[:, None, None]
        outputs = self._network.run({self._input: feed})
        by_width = {output.shape[-1]: output[0] for output in outputs}
        cells = priors(canvas.shape[0], canvas.shape[1], self._strides, self._sizes)
        found = decode(
            by_width[4],
            by_width[2],
            by_width[10],
            cells,
            variances=self._variances,
            threshold=self._threshold,
            nms_iou=self._nms_iou,
            scale=scale,
        )
        return tuple(_moved(face, left, top) for face in found) if left or top else found


def _moved(face: FoundFace, dx: float, dy: float) -> FoundFace:
    x1, y1, x2, y2 = face.box
    shift = np.array([dx, dy], np.float32)
    return FoundFace((x1 + dx, y1 + dy, x2 + dx, y2 + dy), face.landmarks + shift, face.score)


def build_face_detector(spec: ModelSpec, runtime: Runtime, *, threshold: float, input_px: int) -> FaceFinder:
    """The face detector of a catalogue entry, chosen by its decoder.

    Raises:
        ModelError: its files are absent, or its decoder is none for faces.
    """
    if spec.decoder != "retinaface":
        raise ModelError(
            spec.id, f"The model “{spec.id}” cannot find faces: its decoder must be “retinaface”, not “{spec.decoder}”."
        )
    return RetinaFaceDetector(spec, runtime, threshold=threshold, input_px=input_px)


def fit(image: Image, longer_px: int, multiple: int, fill: Floats) -> tuple[Image, float]:
    """Scale a picture to a longer side and pad right and below, no more than the strides need.

    A 640×360 picture becomes 640×384 and costs 20 ms, where a 640 square costs 33 ms (measured, one thread).

    Returns:
        The canvas and the scale, canvas px per picture px.
    """
    height, width = image.shape[:2]
    scale = longer_px / max(height, width)
    new_w, new_h = max(1, round(width * scale)), max(1, round(height * scale))
    method = cv2.INTER_AREA if scale < 0.5 else cv2.INTER_LINEAR
    small = image if (new_w, new_h) == (width, height) else cv2.resize(image, (new_w, new_h), interpolation=method)
    below, right = -new_h % multiple, -new_w % multiple
    colour = [float(round(float(value))) for value in fill]
    canvas = cv2.copyMakeBorder(small, 0, below, 0, right, cv2.BORDER_CONSTANT, value=colour)
    return canvas.astype(np.uint8, copy=False), scale


@lru_cache(maxsize=8)
def priors(height: int, width: int, strides: tuple[int, ...], sizes: tuple[tuple[int, ...], ...]) -> Floats:
    """The anchors of an input: (n, 4) px, centre x, centre y, width, height, in the order of the network's rows."""
    rows = []
    for stride, sides in zip(strides, sizes, strict=True):
        cells_y, cells_x = -(-height // stride), -(-width // stride)
        grid_y, grid_x = np.mgrid[:cells_y, :cells_x]
        centres = np.stack([(grid_x + 0.5) * stride, (grid_y + 0.5) * stride], axis=-1).reshape(-1, 1, 2)
        square = np.array([[side, side] for side in sides], np.float64)[None]
        shape = (cells_y * cells_x, len(sides), 2)
        rows.append(
            np.concatenate([np.broadcast_to(centres, shape), np.broadcast_to(square, shape)], -1).reshape(-1, 4)
        )
    result = np.concatenate(rows).astype(np.float32)
    result.setflags(write=False)
    return result


def decode(
    loc: Floats,
    conf: Floats,
    landmarks: Floats,
    cells: Floats,
    *,
    variances: tuple[float, float],
    threshold: float,
    nms_iou: float,
    scale: float,
) -> tuple[FoundFace, ...]:
    """Turn the three heads of RetinaFace into faces.

    Args:
        loc: (n, 4) offsets of centre and logarithmic size, in priors.
        conf: (n, 2) background and face, after softmax.
        landmarks: (n, 10) offsets, in priors.
        cells: (n, 4) px, from `priors`.
        variances: of centres and of sizes.
        threshold: least score, 0..1.
        nms_iou: of two boxes that overlap more, the better stays.
        scale: network px per picture px.

    Returns:
        Faces in px of the picture, best score first, without doubles. Rows that are not finite are left out.
    """
    keep = np.flatnonzero(conf[:, 1] >= threshold)
    if not len(keep):
        return ()
    scores = conf[keep, 1]
    order = np.argsort(-scores, kind="stable")[:_MAX_FACES]
    keep, scores = keep[order], scores[order]
    prior = cells[keep]
    middle = prior[:, :2] + loc[keep, :2] * variances[0] * prior[:, 2:]
    half = prior[:, 2:] * np.exp(np.clip(loc[keep, 2:] * variances[1], -8, 8)) / 2
    boxes = np.concatenate([middle - half, middle + half], axis=1) / scale
    points = (prior[:, None, :2] + landmarks[keep].reshape(-1, 5, 2) * variances[0] * prior[:, None, 2:]) / scale
    sound = np.isfinite(boxes).all(axis=1) & np.isfinite(points).all(axis=(1, 2)) & (boxes[:, 2] - boxes[:, 0] >= 1)
    boxes, points, scores = boxes[sound], points[sound], scores[sound]
    return tuple(
        FoundFace(
            box=(float(boxes[i, 0]), float(boxes[i, 1]), float(boxes[i, 2]), float(boxes[i, 3])),
            landmarks=points[i].astype(np.float32),
            score=float(scores[i]),
        )
        for i in suppress(boxes, scores, nms_iou)
    )


def suppress(boxes: NDArray[np.floating[Any]], scores: NDArray[np.floating[Any]], limit: float) -> list[int]:
    """Greedy non-maximum suppression: the indices that stay, best first; of two that overlap more than `limit` one."""
    order = np.argsort(-scores, kind="stable")
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    kept: list[int] = []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(int(best))
        low = np.maximum(boxes[best, :2], boxes[rest, :2])
        high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
        shared = np.prod(np.clip(high - low, 0, None), axis=1)
        order = rest[shared / (areas[best] + areas[rest] - shared + 1e-9) <= limit]
    return kept


def align(image: Image, landmarks: Floats, size: int = CROP_SIZE) -> Image:
    """Cut a face out so that its landmarks lie on the ArcFace template.

    A face much larger than the crop is scaled down by area first: sampling it directly would alias, and the crop's
    sharpness would depend on how near the person stands.

    Args:
        image: (H, W, 3) BGR.
        landmarks: (5, 2) px.
        size: side of the crop, px.

    Returns:
        (size, size, 3) BGR; black where the picture does not reach.

    Raises:
        ValueError: the landmarks coincide.
    """
    target = TEMPLATE * np.float32(size / CROP_SIZE)
    matrix = similarity(landmarks, target)
    zoom = float(np.hypot(matrix[0, 0], matrix[1, 0]))  # crop px per picture px
    if zoom < 0.5:
        corners = np.array([[0, 0], [size, 0], [0, size], [size, size]], np.float64)
        linear = np.linalg.inv(matrix[:, :2])
        around = (corners - matrix[:, 2]) @ linear.T
        x1, y1 = np.clip(np.floor(around.min(axis=0)), 0, None).astype(int)
        x2, y2 = np.minimum(np.ceil(around.max(axis=0)).astype(int) + 1, (image.shape[1], image.shape[0]))
        if x2 - x1 >= 2 and y2 - y1 >= 2:
            part = image[y1:y2, x1:x2]
            shrunk_w, shrunk_h = max(1, round((x2 - x1) * zoom)), max(1, round((y2 - y1) * zoom))
            image = cv2.resize(part, (shrunk_w, shrunk_h), interpolation=cv2.INTER_AREA).astype(np.uint8)
            factor = np.array([shrunk_w / (x2 - x1), shrunk_h / (y2 - y1)])
            moved = (landmarks.astype(np.float64) - (x1, y1) + 0.5) * factor - 0.5
            matrix = similarity(moved.astype(np.float32), target)
    return cv2.warpAffine(image, matrix, (size, size), flags=cv2.INTER_LINEAR).astype(np.uint8, copy=False)


def sharpness(crop: Image) -> float:
    """Variance of the Laplacian of the grey crop. It grows with contrast: compare it with a low bound only."""
    return float(cv2.Laplacian(cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY), cv2.CV_32F).var())


def detail(image: Image, box: Box) -> float:
    """Fine over coarse contrast of a face: variance of the Laplacian over that of the gradient, at 70 px of width.

    A face that was enlarged from few pixels has its width and its contrast, and no detail. Measured: 200 faces of the
    evaluation media that are 30 px and wider lie at .93 and above, 99 % of them at 1.0 and above when recompressed at
    CRF 34; enlarged from 25 px they lie at .85 and below, and 95 % of the strangers of scikit-image's LFW pictures (19 px
    wide) at .75 and below.

    Args:
        image: (H, W, 3) BGR.
        box: px; its outer parts, where hair and background are, are left out.

    Returns:
        0 when the box holds no picture.
    """
    left, top, right, bottom = box
    dx, dy = _DETAIL_MARGIN * (right - left), _DETAIL_MARGIN * (bottom - top)
    inner = clip((left + dx, top + dy, right - dx, bottom - dy), image.shape[1], image.shape[0])
    x1, y1, x2, y2 = (round(value) for value in inner)
    if x2 - x1 < 4 or y2 - y1 < 4:
        return 0.0
    grey = cv2.cvtColor(np.ascontiguousarray(image[y1:y2, x1:x2]), cv2.COLOR_BGR2GRAY)
    scale = _DETAIL_PX / (right - left)
    if scale < 1:
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    fine = float(cv2.Laplacian(grey, cv2.CV_32F).var())
    coarse = sum(float(cv2.Sobel(grey, cv2.CV_32F, dx, 1 - dx, scale=0.125).var()) for dx in (0, 1))
    return fine / coarse if coarse > 1e-6 else 0.0


def yaw(landmarks: Floats) -> float:
    """How far a head is turned: the nose's offset along the eye line from the eyes' middle, over half the eye distance.

    0 is frontal, 1 puts the nose below an eye; measured along the eye line, so that a tilted head does not count as
    turned.
    """
    left, right, nose = (
        landmarks[0].astype(np.float64),
        landmarks[1].astype(np.float64),
        landmarks[2].astype(np.float64),
    )
    axis = right - left
    length = float(np.hypot(axis[0], axis[1]))
    if length < 1e-6:
        return 9.0  # both eyes in one point: as far from frontal as it gets
    return float(abs(np.dot(nose - (left + right) / 2, axis / length)) / (length / 2))
