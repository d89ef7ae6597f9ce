"""An object detector: a network, the decoder that its catalogue entry names, and what was refused on the way."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edge.errors import ModelError
from edge.infer import ModelSpec, Network, Runtime
from edge.perceive.objects.boxes import finish
from edge.perceive.objects.decode import DECODERS, DecoderSpec, Layout
from edge.perceive.objects.preprocess import Preprocessing, as_bgr, prepare
from edge.types.evidence import Detection, Vector
from edge.types.media import Image
from edge.types.vocabulary import COCO_LABELS


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What one run on a picture gave."""

    detections: tuple[Detection, ...]
    scene: Vector | None  # unit vector of the whole picture; None: the network gives none, or the picture was empty


class ObjectDetector(Protocol):
    """Finds objects in a picture."""

    @property
    def refused(self) -> int:
        """Rows of network output dropped so far because they could not be detections (no numbers, huge boxes, …)."""
        ...

    def detect(self, image: Image) -> tuple[Detection, ...]:
        """The objects of a picture, best first, boxes in px of it and inside it."""
        ...


@runtime_checkable
class SceneDetector(Protocol):
    """An object detector that tells in the same run what the picture looks like as a whole."""

    @property
    def scene_key(self) -> str:
        """Names what makes the vectors: those of different keys are never compared; "": there are none."""
        ...

    def look(self, image: Image) -> Look:
        """The objects of a picture, as `ObjectDetector.detect`, and the picture as a whole."""
        ...


class NetworkObjectDetector:
    """An object detector that runs one network; thread-safe as the network is."""

    def __init__(
        self,
        network: Network,
        model_id: str,
        decoder: DecoderSpec,
        preprocessing: Preprocessing,
        layout: Layout,
        labels: tuple[str, ...],
        suppress_at: float | None,
        scene_key: str = "",
        scene_centre: NDArray[np.float32] | None = None,
    ) -> None:
        self._network = network
        self._model_id = model_id
        self._decoder = decoder
        self._preprocessing = preprocessing
        self._layout = layout
        self._labels = labels
        self._suppress_at = suppress_at
        self._input = network.inputs[0].name
        self._dtype = network.inputs[0].dtype
        self._refused = 0
        self.scene_key = scene_key
        self._scene_centre = scene_centre
        self._lock = threading.Lock()

    @property
    def refused(self) -> int:
        """Rows of network output dropped so far because they could not be detections."""
        return self._refused

    def detect(self, image: Image) -> tuple[Detection, ...]:
        """The objects of a picture, best first.

        Args:
            image: (H, W, 3) BGR; grey pictures and pictures with alpha are taken, too.

        Returns:
            At most 100 detections with boxes in px of `image`, inside it; nothing for a picture without pixels.

        Raises:
            ModelError: the network's outputs are not what its decoder reads.
            InferenceError: the network failed.
        """
        return self.look(image).detections

    def look(self, image: Image) -> Look:
        """The objects of a picture and what it looks like as a whole; arguments and errors as those of `detect`."""
        if image.size == 0:
            return Look((), None)
        tensor, placement = prepare(as_bgr(image), self._preprocessing)
        outputs = self._network.run({self._input: tensor.astype(self._dtype, copy=False)})
        scene = None if self._scene_centre is None else describe_scene(outputs.pop(), self._scene_centre)
        try:
            candidates = self._decoder.decode(outputs, self._layout)
        except ValueError as error:
            shapes = ", ".join(str(output.shape) for output in outputs)
            raise ModelError(
                self._model_id,
                f"The model “{self._model_id}” gave outputs of {shapes}, which its decoder cannot read ({error}); "
                "correct the decoder, input or labels of its catalogue entry.",
            ) from error
        size = (self._layout.width, self._layout.height)
        found = finish(candidates, placement, size, len(self._labels), self._suppress_at)
        with self._lock:
            self._refused += found.refused
        detections = tuple(
            Detection(self._labels[index], float(score), (float(box[0]), float(box[1]), float(box[2]), float(box[3])))
            for box, score, index in zip(found.boxes, found.scores, found.classes, strict=True)
        )
        return Look(detections, scene)


def describe_scene(features: NDArray[Any], centre: NDArray[np.float32]) -> Vector | None:
    """A map of features as a unit vector: of each quarter of the picture the direction of its mean from the centre.

    Args:
        features: (1, c, h, w).
        centre: (c,) mean over pictures of all kinds.

    Returns:
        (4·c,); None: it tells nothing.
    """
    _, _, height, width = features.shape
    middle, centre_column = height // 2, width // 2
    parts = []
    for rows in (slice(0, middle), slice(middle, height)):
        for columns in (slice(0, centre_column), slice(centre_column, width)):
            part = features[0, :, rows, columns].mean(axis=(1, 2), dtype=np.float32) - centre
            parts.append(part / max(float(np.linalg.norm(part)), 1e-9))
    whole = np.concatenate(parts)
    length = float(np.linalg.norm(whole))
    return (whole / length).astype(np.float32) if np.isfinite(length) and length > 0 else None


def build_object_detector(spec: ModelSpec, runtime: Runtime, threshold: float) -> ObjectDetector:
    """Open the network of a catalogue entry with the decoder that the entry names.

    Args:
        spec: role `objects`. Its params: `input_size` [width, height] px, unless the network fixes it; `resize`
            letterbox | stretch; `pad` centre | corner and `pad_value`; `colour` rgb | bgr; `layout` nchw | nhwc; `mean`
            and `std`; `labels` (COCO's 80 by default); `strides`; `nms_iou`; `taps` [a map of features] and
            `scene_centre` (its mean over pictures of all kinds), for what a picture looks like as a whole.
        runtime: opens the network.
        threshold: score from which a detection counts, 0..1.

    Raises:
        ModelError: the decoder is not known, a parameter cannot be used, or the model's file is missing.
    """
    decoder = DECODERS.get(spec.decoder)
    if decoder is None:
        known = ", ".join(DECODERS)
        raise ModelError(
            spec.id,
            f"The model “{spec.id}” names the decoder “{spec.decoder}”, which finds no objects. "
            f"Those that do are {known}; correct its catalogue entry.",
        )
    network = runtime.open(spec)
    try:
        preprocessing = Preprocessing.from_params(spec.params, _fixed_size(network, spec.params.get("layout")))
        labels = tuple(str(label) for label in spec.params.get("labels") or COCO_LABELS)
        strides = tuple(int(stride) for stride in spec.params.get("strides") or (8, 16, 32))
        overlap = spec.params.get("nms_iou", decoder.suppress_at)
        suppress_at = None if overlap is None else float(overlap)
        scene_centre = _scene_centre(network, spec.params.get("taps"), spec.params.get("scene_centre"))
    except (TypeError, ValueError) as error:
        raise ModelError(
            spec.id, f"The model “{spec.id}” cannot be used: {error}. Correct the params of its catalogue entry."
        ) from error
    layout = Layout(preprocessing.width, preprocessing.height, len(labels), threshold, strides)
    scene_key = "" if scene_centre is None else f"{spec.key}/scene"
    return NetworkObjectDetector(
        network, spec.id, decoder, preprocessing, layout, labels, suppress_at, scene_key, scene_centre
    )


def _scene_centre(network: Network, taps: Sequence[str] | None, centre: Sequence[float] | None) -> Any:
    """The centre of the map of features that is tapped; None: there is none."""
    if not taps:
        return None
    shape = network.outputs[-1].shape
    values = np.asarray(centre or (), np.float32)
    if len(taps) != 1 or len(shape) != 4 or values.shape != (shape[1],):
        raise ValueError(
            "“taps” must name one map of features, and “scene_centre” give a number for each of its channels"
        )
    return values


def _fixed_size(network: Network, layout: object) -> tuple[int, int] | None:
    """Width and height that the network's input is fixed to; None where any size does."""
    shape = network.inputs[0].shape
    if len(shape) != 4:
        raise ValueError(f"its input {network.inputs[0].describe()} is not a picture")
    height, width = shape[1:3] if layout == "nhwc" else shape[2:4]
    return None if width is None or height is None else (width, height)
