"""Composes the demo's clip from photographs that scikit-image ships and speech that the Moonshine wheel ships.

Nothing is drawn: each scene is a photograph under a slowly moving virtual camera; in one of them the portrait slides out of
the picture and comes back, as someone who leaves and returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import skimage
from numpy.typing import NDArray

WIDTH, HEIGHT, FPS, RATE = 640, 480, 25, 16_000
Picture = NDArray[np.uint8]
Sound = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scene:
    """A stretch of the clip."""

    seconds: float
    draw: Callable[[float], Picture]  # progress 0..1 -> RGB picture
    speech: tuple[str, float, float] | None = None  # recording, from s, to s


def _photo(name: str) -> Picture:
    path = Path(skimage.__file__).parent / "data" / name
    picture = cv2.imread(str(path), cv2.IMREAD_COLOR)
    if picture is None:
        raise FileNotFoundError(
            f"scikit-image's photograph {name} is missing; reinstall it with `pip install scikit-image`."
        )
    return np.ascontiguousarray(picture[..., ::-1])


def _camera(
    name: str, zoom: tuple[float, float], pan: tuple[float, float], tilt: float = 0.0
) -> Callable[[float], Picture]:
    """A virtual camera over a photograph: zoom from … to (1 fills the frame), pan from … to and tilt (-1..1)."""
    photo = _photo(name)
    height, width = photo.shape[:2]
    fill = min(width / WIDTH, height / HEIGHT)

    def draw(progress: float) -> Picture:
        scale = fill / (zoom[0] + (zoom[1] - zoom[0]) * progress)
        shift = pan[0] + (pan[1] - pan[0]) * progress
        view_w, view_h = WIDTH * scale, HEIGHT * scale
        left = (width - view_w) / 2 * (1 + shift)
        top = (height - view_h) / 2 * (1 + tilt)
        move = np.array([[scale, 0, left], [0, scale, top]], np.float64)
        return cv2.warpAffine(photo, move, (WIDTH, HEIGHT), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)

    return draw


def _leave_and_return(portrait: str, wall: str) -> Callable[[float], Picture]:
    """The portrait stands before a wall, slides out of the picture, stays away and comes back."""
    person = cv2.resize(_photo(portrait), (HEIGHT, HEIGHT), interpolation=cv2.INTER_AREA)
    background = cv2.resize(_photo(wall), (WIDTH, WIDTH), interpolation=cv2.INTER_AREA)[:HEIGHT]

    def draw(progress: float) -> Picture:
        away = float(np.interp(progress, (0.0, 0.25, 0.4, 0.6, 0.75, 1.0), (0.0, 0.05, 1.0, 1.0, 0.05, 0.0)))
        left = round(80 + away * (WIDTH - 80))
        picture = background.copy()
        seen = min(HEIGHT, WIDTH - left)
        if seen > 0:
            picture[:, left : left + seen] = person[:, :seen]
        return picture

    return draw


SCENES = (
    Scene(9.0, _camera("astronaut.png", (1.0, 1.15), (0.0, 0.1), tilt=-1.0), ("two_cities.wav", 0.7, 8.55)),
    Scene(6.0, _camera("coffee.png", (1.0, 1.2), (-0.3, 0.2))),
    Scene(6.0, _camera("chelsea.png", (1.0, 1.1), (-0.6, 0.6))),
    Scene(14.0, _leave_and_return("astronaut.png", "brick.png")),
    Scene(10.0, _camera("motorcycle_left.png", (1.0, 1.1), (-0.2, 0.2)), ("beckett.wav", 0.0, 9.1)),
    Scene(6.0, _camera("rocket.jpg", (1.0, 1.2), (0.0, 0.0))),
    Scene(6.0, _camera("chelsea.png", (1.1, 1.0), (0.6, -0.2))),
)


def _speech(path: Path, start: float, end: float) -> Sound:
    """A stretch of a recording, mono at RATE; quiet at its ends."""
    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        chunks = [part.to_ndarray()[0] for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    sound = np.concatenate(chunks)[round(start * RATE) : round(end * RATE)].astype(np.float32)
    fade = np.linspace(0, 1, min(800, len(sound)), dtype=np.float32)
    sound[: len(fade)] *= fade
    sound[-len(fade) :] *= fade[::-1]
    return sound


def _soundtrack(speech_folder: Path) -> Sound:
    track = np.zeros(round(sum(scene.seconds for scene in SCENES) * RATE), np.float32)
    at = 0.0
    for scene in SCENES:
        if scene.speech is not None:
            name, start, end = scene.speech
            sound = _speech(speech_folder / name, start, end)
            first = round((at + 0.4) * RATE)
            track[first : first + len(sound)] += sound[: len(track) - first]
        at += scene.seconds
    return track


def _pictures() -> Iterator[Picture]:
    for scene in SCENES:
        frames = round(scene.seconds * FPS)
        for number in range(frames):
            yield scene.draw(number / max(1, frames - 1))


def compose(path: Path, speech_folder: Path) -> float:
    """Write the clip (MP4, H.264 and AAC) and return its length in seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        video = container.add_stream("libx264", rate=FPS, options={"preset": "veryfast", "crf": "20"})
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        audio = container.add_stream("aac", rate=RATE, layout="mono")
        sound = _soundtrack(speech_folder)
        step, sent = RATE // FPS, 0
        for number, picture in enumerate(_pictures()):
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, FPS)
            container.mux(video.encode(frame))
            part = av.AudioFrame.from_ndarray(sound[None, sent : sent + step], format="fltp", layout="mono")
            part.sample_rate, part.pts, part.time_base = RATE, sent, Fraction(1, RATE)
            container.mux(audio.encode(part))
            sent += step
        container.mux(video.encode())
        container.mux(audio.encode())
    return sum(scene.seconds for scene in SCENES)
