"""From a picture to the tensor that a detector wants, and the way back for its boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edge.types.media import Image


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What the catalogue says about the input of a detector."""

    width: int  # px of the network's input
    height: int  # px
    letterbox: bool  # keep the aspect and fill up; False: stretch
    centred: bool = True  # letterbox: the picture stands in the middle; False: at the top left (YOLOX)
    pad_value: int = 114  # grey value that fills up, 0..255
    rgb: bool = False  # channel order of the network
    channels_last: bool = False
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)  # values are (v − mean) / std, in the network's order of colours
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)

    @classmethod
    def from_params(cls, params: Mapping[str, Any], size: tuple[int, int] | None = None) -> Preprocessing:
        """Read it from a catalogue entry's params.

        Args:
            params: as `build_object_detector` lists them.
            size: width and height in px that the network itself fixes; goes before `input_size`.

        Raises:
            ValueError: a value is missing or cannot be used; the message names it.
        """
        width, height = size if size is not None else _size(params.get("input_size"))
        resize = _choice(params, "resize", "letterbox", ("letterbox", "stretch"))
        return cls(
            width=width,
            height=height,
            letterbox=resize == "letterbox",
            centred=_choice(params, "pad", "centre", ("centre", "corner")) == "centre",
            pad_value=round(_number(params, "pad_value", 114.0)),
            rgb=_choice(params, "colour", "rgb", ("rgb", "bgr")) == "rgb",
            channels_last=_choice(params, "layout", "nchw", ("nchw", "nhwc")) == "nhwc",
            mean=_triple(params, "mean", 0.0),
            std=_triple(params, "std", 1.0),
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the picture came to lie on the network's input."""

    width: int  # px of the picture
    height: int
    scale_x: float  # px of the input for one px of the picture
    scale_y: float
    left: int  # px of the input
    top: int

    def to_image(self, boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """Boxes (n, 4) in px of the input → px of the picture, not clipped."""
        offset = np.array([self.left, self.top, self.left, self.top], np.float32)
        scale = np.array([self.scale_x, self.scale_y, self.scale_x, self.scale_y], np.float32)
        return ((boxes - offset) / scale).astype(np.float32)


def as_bgr(picture: NDArray[Any]) -> Image:
    """Any picture as (H, W, 3) uint8 BGR: grey is repeated, alpha is left out.

    Raises:
        ValueError: it has another number of channels or dimensions.
    """
    if picture.dtype != np.uint8:
        picture = np.clip(np.nan_to_num(picture), 0, 255).astype(np.uint8)
    if picture.ndim == 2:
        picture = picture[:, :, None]
    if picture.ndim != 3 or picture.shape[2] not in (1, 2, 3, 4):
        raise ValueError(f"a picture has the shape (height, width, 1 to 4), not {picture.shape}")
    if picture.shape[2] <= 2:
        return np.ascontiguousarray(np.repeat(picture[:, :, :1], 3, axis=2))
    return np.ascontiguousarray(picture[:, :, :3])


def prepare(picture: Image, spec: Preprocessing) -> tuple[NDArray[np.float32], Placement]:
    """A picture → tensor (1, 3, height, width), or (1, height, width, 3), and where it lies in it.

    Args:
        picture: (H, W, 3) BGR with H, W ≥ 1.
        spec: from the catalogue.
    """
    high, wide = picture.shape[:2]
    if spec.letterbox:
        ratio = min(spec.width / wide, spec.height / high)
        new_wide = min(spec.width, max(1, round(wide * ratio)))
        new_high = min(spec.height, max(1, round(high * ratio)))
        left, top = ((spec.width - new_wide) // 2, (spec.height - new_high) // 2) if spec.centred else (0, 0)
    else:
        new_wide, new_high, left, top = spec.width, spec.height, 0, 0
    resized = cv2.resize(picture, (new_wide, new_high), interpolation=cv2.INTER_LINEAR)
    if (new_wide, new_high) != (spec.width, spec.height):
        canvas = np.full((spec.height, spec.width, 3), spec.pad_value, np.uint8)
        canvas[top : top + new_high, left : left + new_wide] = resized
        resized = canvas
    if spec.rgb:
        resized = resized[:, :, ::-1]
    tensor = (resized.astype(np.float32) - np.asarray(spec.mean, np.float32)) / np.asarray(spec.std, np.float32)
    placement = Placement(wide, high, new_wide / wide, new_high / high, left, top)
    return np.ascontiguousarray((tensor if spec.channels_last else tensor.transpose(2, 0, 1))[None]), placement


def _size(value: Any) -> tuple[int, int]:
    sides = list(value or ())
    if len(sides) != 2 or not all(isinstance(side, int) and 32 <= side <= 4096 for side in sides):
        raise ValueError("“input_size” must be [width, height] in px, 32 to 4096 each")
    return sides[0], sides[1]


def _choice(params: Mapping[str, Any], key: str, default: str, choices: tuple[str, ...]) -> str:
    value = str(params.get(key, default)).lower()
    if value not in choices:
        raise ValueError(f"“{key}” must be {' or '.join(choices)}, not “{value}”")
    return value


def _number(params: Mapping[str, Any], key: str, default: float) -> float:
    try:
        return float(params.get(key, default))
    except TypeError as error:
        raise ValueError(f"“{key}” must be a number") from error


def _triple(params: Mapping[str, Any], key: str, default: float) -> tuple[float, float, float]:
    try:
        one, two, three = (float(number) for number in params.get(key, (default,) * 3))
    except (TypeError, ValueError) as error:
        raise ValueError(f"“{key}” must be three numbers, in the network's order of colours") from error
    if key == "std" and 0 in (one, two, three):
        raise ValueError("“std” must not hold a zero")
    return one, two, three
