"""Real clips, made when a test runs: scikit-image's photographs in motion, with sound, in any container.

clip = write_clip(tmp_path / "a.mp4", pan(photo("astronaut"), 75), sound=tone(3.0))
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import skimage.data

from edge.types.media import Image

RATE = 16_000  # Hz, of the sounds made here unless told otherwise

_VIDEO_CODECS = {
    ".mp4": "libx264",
    ".mov": "libx264",
    ".mkv": "libx264",
    ".ts": "libx264",
    ".avi": "mpeg4",
    ".webm": "libvpx-vp9",
    ".mpg": "mpeg1video",
    ".gif": "gif",
}
_AUDIO_CODECS = {
    ".mp4": "aac",
    ".mov": "aac",
    ".m4a": "aac",
    ".mkv": "flac",
    ".ts": "aac",
    ".avi": "mp2",
    ".webm": "libopus",
    ".mpg": "mp2",
    ".wav": "pcm_s16le",
    ".flac": "flac",
    ".mp3": "libmp3lame",
    ".ogg": "libopus",
}
_OPTIONS = {
    "libx264": {"preset": "ultrafast", "crf": "20", "bf": "2"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "crf": "20", "b": "0"},
    "mpeg1video": {"b": "2000000"},
    "mpeg4": {"b": "2000000"},
}


# -- pictures -------------------------------------------------------------------------------------------------------


def photo(name: str, width: int | None = None) -> Image:
    """A photograph that scikit-image ships, BGR: astronaut (a woman's face), chelsea (a cat), coffee, rocket, …"""
    loaded = np.asarray(getattr(skimage.data, name)())
    if loaded.ndim == 2:
        loaded = np.repeat(loaded[:, :, None], 3, axis=2)
    bgr = np.ascontiguousarray(loaded[:, :, 2::-1])
    return bgr if width is None else resized(bgr, width, round(bgr.shape[0] * width / bgr.shape[1]))


def resized(image: Image, width: int, height: int) -> Image:
    """Any size."""
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def hold(image: Image, count: int) -> Iterator[Image]:
    """The same picture again and again."""
    for _ in range(count):
        yield image


def pan(
    image: Image, count: int, size: tuple[int, int] = (320, 240), zoom: float = 1.3, noise: float = 0.0
) -> Iterator[Image]:
    """A camera that moves gently over a photograph: `count` frames of `size` (width, height)."""
    width, height = size
    scale = zoom * max(width / image.shape[1], height / image.shape[0])
    large = resized(image, math.ceil(image.shape[1] * scale), math.ceil(image.shape[0] * scale))
    random = np.random.default_rng(7)
    for number in range(count):
        phase = 2 * math.pi * number / 150
        left = round((large.shape[1] - width) * (0.5 + 0.4 * math.sin(phase)))
        top = round((large.shape[0] - height) * (0.5 + 0.4 * math.cos(phase)))
        frame = large[top : top + height, left : left + width]
        yield noisy(frame, noise, random) if noise else frame.copy()


def crossing(
    background: Image, thing: Image, count: int, size: tuple[int, int] = (320, 240), noise: float = 0.0
) -> Iterator[Image]:
    """A thing (a small photograph) that moves from left to right in front of a background that stands still."""
    scene = resized(background, *size)
    random = np.random.default_rng(11)
    high, wide = thing.shape[:2]
    for number in range(count):
        left = round((size[0] - wide) * number / max(1, count - 1))
        frame = scene.copy()
        top = size[1] - high
        frame[top : top + high, left : left + wide] = thing
        yield noisy(frame, noise, random) if noise else frame


def noisy(image: Image, sigma: float, random: np.random.Generator) -> Image:
    """The picture with a sensor's noise."""
    grain = random.normal(0, sigma, image.shape).astype(np.float32)
    return np.clip(image.astype(np.float32) + grain, 0, 255).astype(np.uint8)


# -- sounds ---------------------------------------------------------------------------------------------------------


def tone(seconds: float, hertz: float = 440.0, level: float = 0.3, rate: int = RATE) -> np.ndarray:
    """(n,) float32."""
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def hush(seconds: float, rate: int = RATE) -> np.ndarray:
    """(n,) float32 of silence."""
    return np.zeros(round(seconds * rate), np.float32)


def babble(seconds: float, rate: int = RATE, seed: int = 3) -> np.ndarray:
    """(n,) float32 that never repeats: voiced bursts with short pauses between them, like syllables."""
    random = np.random.default_rng(seed)
    count = round(seconds * rate)
    times = np.arange(count) / rate
    pitch = 120 + 30 * np.sin(2 * np.pi * 0.7 * times)
    voice = sum(np.sin(2 * np.pi * order * np.cumsum(pitch) / rate) / order for order in range(1, 12))
    envelope = np.clip(np.sin(2 * np.pi * 2.3 * times + 1.0) * 2, 0, 1)
    return (0.1 * voice * envelope + random.normal(0, 0.001, count)).astype(np.float32)


# -- clips ----------------------------------------------------------------------------------------------------------


def write_clip(
    path: Path,
    pictures: Iterable[Image] | None,
    *,
    fps: float = 25.0,
    sound: np.ndarray | None = None,
    sound_rate: int = RATE,
    sound_from: float = 0.0,
    stamps: Sequence[float] | None = None,
    video_codec: str | None = None,
    audio_codec: str | None = None,
    aspect: Fraction | None = None,
    rotation: float | None = None,
    mirrored: bool = False,
    key_every: int = 12,
    metadata: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """Write a clip.

    Args:
        path: its suffix chooses container and codecs.
        pictures: BGR, one size; None: sound only.
        fps: frames a second.
        sound: (n,) or (n, channels) float32; None: silent film.
        sound_rate: Hz.
        sound_from: when the sound begins, s.
        stamps: the time of each picture, s; None: evenly spaced.
        video_codec: instead of the container's usual one.
        audio_codec: instead of the container's usual one.
        aspect: sample aspect ratio.
        rotation: of the display matrix, degrees counter-clockwise.
        mirrored: the display matrix mirrors horizontally, too.
        key_every: distance of key frames.
        metadata: tags of the container.
        options: of the container's muxer.
    """
    suffix = path.suffix.lower()
    with av.open(str(path), "w", options=options or {}) as container:
        container.metadata.update(metadata or {})
        frames = iter(pictures) if pictures is not None else iter(())
        first = next(frames, None)
        video = audio = None
        if first is not None:
            video = container.add_stream(
                video_codec or _VIDEO_CODECS[suffix], rate=Fraction(fps).limit_denominator(1001)
            )
            video.height, video.width = first.shape[:2]
            video.pix_fmt = _pixel_format(video.codec_context.codec.name, first)
            video.codec_context.gop_size = key_every
            if stamps is not None:
                video.codec_context.time_base = Fraction(1, 1000)
            video.codec_context.thread_count = 1
            video.options = dict(_OPTIONS.get(video.codec_context.codec.name, {}))
            if aspect is not None:
                video.codec_context.sample_aspect_ratio = aspect
            if rotation is not None:
                video.set_display_rotation(rotation, hflip=mirrored)
        if sound is not None:
            channels = 1 if sound.ndim == 1 else sound.shape[1]
            audio = container.add_stream(audio_codec or _AUDIO_CODECS[suffix], rate=sound_rate)
            audio.layout = {1: "mono", 2: "stereo", 6: "5.1"}[channels]
        _mux(container, video, audio, first, frames, fps, stamps, sound, sound_rate, sound_from)
    return path


def _pixel_format(codec: str, first: Image) -> str:
    if codec == "gif":
        return "rgb8"
    # Odd sizes need full colour resolution.
    return "yuv444p" if codec == "libx264" and (first.shape[0] % 2 or first.shape[1] % 2) else "yuv420p"


def _mux(container, video, audio, first, frames, fps, stamps, sound, sound_rate, sound_from) -> None:
    """Pictures and sound, interleaved by time."""
    sounds = _sound_frames(sound, sound_rate, sound_from) if audio is not None else iter(())
    block = next(sounds, None)
    base = Fraction(1, 90_000)
    number, picture = 0, first
    while picture is not None:
        at = stamps[number] if stamps is not None else number / fps
        while block is not None and block.pts / sound_rate <= at:
            container.mux(audio.encode(block))
            block = next(sounds, None)
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), "bgr24")
        frame.pts, frame.time_base = round(at / base), base
        container.mux(video.encode(frame))
        number, picture = number + 1, next(frames, None)
    while block is not None:
        container.mux(audio.encode(block))
        block = next(sounds, None)
    for stream in (video, audio):
        if stream is not None:
            container.mux(stream.encode())


def _sound_frames(sound: np.ndarray, rate: int, begin: float) -> Iterator[av.AudioFrame]:
    channels = sound[:, None] if sound.ndim == 1 else sound
    layout = {1: "mono", 2: "stereo", 6: "5.1"}[channels.shape[1]]
    packed = np.clip(np.round(channels * 32767), -32768, 32767).astype(np.int16)
    for start in range(0, len(packed), 1024):
        part = np.ascontiguousarray(packed[start : start + 1024].reshape(1, -1))
        frame = av.AudioFrame.from_ndarray(part, "s16", layout)
        frame.sample_rate = rate
        frame.pts = start + round(begin * rate)
        frame.time_base = Fraction(1, rate)
        yield frame
