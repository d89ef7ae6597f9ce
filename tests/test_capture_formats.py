"""Every container, and what phones, cameras and bad luck do to them."""

from __future__ import annotations

import threading
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.capture import StartFrom, open_source, segments
from edge.settings import CaptureSettings
from edge.types.media import CutReason, Frame, Mode, Segment, SourceInfo, SourceKind
from tests.media import babble, crossing, hold, pan, photo, resized, tone, write_clip

SETTINGS = CaptureSettings()


def watch(
    path: Path | str, settings: CaptureSettings = SETTINGS, start: float | None = 1_700_000_000.0
) -> tuple[SourceInfo, list[Frame], list[Segment]]:
    with open_source(str(path), camera=None, start=start, settings=settings) as source:
        items = list(segments(source, vad=None, settings=settings, mode=Mode.OFFLINE_QUALITY, stop=threading.Event()))
        assert items == [] or isinstance(items[-1], Segment)
        return source.info, [i for i in items if isinstance(i, Frame)], [i for i in items if isinstance(i, Segment)]


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".webm", ".mpg", ".ts", ".avi", ".mov", ".gif"])
def test_every_container_gives_its_whole_length(tmp_path: Path, suffix: str) -> None:
    rate = 48_000 if suffix == ".webm" else 44_100
    sound = None if suffix == ".gif" else tone(3.0, rate=rate)
    clip = write_clip(tmp_path / f"clip{suffix}", pan(photo("astronaut"), 75), sound=sound, sound_rate=rate)
    info, frames, [segment] = watch(clip)
    assert (info.has_video, info.has_audio, info.width, info.height) == (True, sound is not None, 320, 240)
    assert info.kind is SourceKind.FILE
    # A GIF counts hundredths of a second; MPEG streams may begin with a sliver of sound before the first picture.
    assert segment.end - segment.start == pytest.approx(3.0, abs=0.05)
    assert segment.counts.decoded == 75
    assert segment.counts.faults == 0
    assert segment.reason is CutReason.END_OF_SOURCE
    assert segment.first_of_event
    assert 5 <= len(frames) <= 7  # two a second
    assert frames[0].change == 255.0
    assert all(frame.image.shape == (240, 320, 3) for frame in frames)
    if sound is not None:
        assert segment.audio is not None
        spectrum = np.abs(np.fft.rfft(segment.audio[8000:24000]))
        assert int(spectrum.argmax()) == 440
        assert abs(len(segment.audio) / 16_000 - 3.0) < 0.06


def test_three_seconds_are_three_seconds(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "clip.mp4", pan(photo("coffee"), 75), sound=tone(3.0))
    _, _, [segment] = watch(clip)
    assert segment.end - segment.start == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".mp3", ".ogg", ".m4a"])
def test_sound_alone(tmp_path: Path, suffix: str) -> None:
    rate = 48_000 if suffix == ".ogg" else 44_100
    clip = write_clip(tmp_path / f"sound{suffix}", None, sound=tone(3.0, rate=rate), sound_rate=rate)
    info, frames, [segment] = watch(clip)
    assert (info.has_video, info.has_audio, info.width) == (False, True, 0)
    assert frames == []
    assert segment.audio is not None
    assert segment.audio.dtype == np.float32
    assert segment.end - segment.start == pytest.approx(3.0, abs=0.03)
    assert len(segment.audio) / 16_000 == pytest.approx(segment.end - segment.start, abs=0.001)
    assert float(np.sqrt(np.mean(segment.audio[8000:24000] ** 2))) == pytest.approx(0.3 / 2**0.5, rel=0.05)


def corner_clip(path: Path, rotation: float, *, mirrored: bool) -> Path:
    """Red at the top left of the stored picture, green at the top right, blue at the bottom left."""
    picture = np.full((120, 160, 3), 90, np.uint8)
    picture[:40, :40], picture[:40, -40:], picture[-40:, :40] = (0, 0, 255), (0, 255, 0), (255, 0, 0)
    return write_clip(path, hold(picture, 10), rotation=rotation, mirrored=mirrored)


def colours(image: np.ndarray) -> str:
    """The colours of the corners: top left, top right, bottom left, bottom right."""
    names = []
    for patch in (image[5:25, 5:25], image[5:25, -25:-5], image[-25:-5, 5:25], image[-25:-5, -25:-5]):
        mean = patch.reshape(-1, 3).mean(axis=0)
        names.append("bgr"[int(mean.argmax())] if mean.max() > 150 else ".")
    return "".join(names)


@pytest.mark.parametrize(
    ("rotation", "mirrored", "expected", "shape"),
    [
        (0, False, "rgb.", (120, 160)),
        (90, False, "g.rb", (160, 120)),  # turned counter-clockwise: the right side comes to the top
        (-90, False, "br.g", (160, 120)),
        (180, False, ".bgr", (120, 160)),
        (0, True, "gr.b", (120, 160)),
    ],
)
def test_rotation_of_phones(
    tmp_path: Path, rotation: float, mirrored: bool, expected: str, shape: tuple[int, int]
) -> None:
    info, [frame, *_], _ = watch(corner_clip(tmp_path / "turned.mp4", rotation, mirrored=mirrored))
    assert frame.image.shape[:2] == shape
    assert (info.height, info.width) == shape
    assert colours(frame.image) == expected


def test_samples_that_are_not_square(tmp_path: Path) -> None:
    face = resized(photo("astronaut"), 240, 240)
    squeezed = resized(face, 120, 240)
    clip = write_clip(tmp_path / "wide.mp4", hold(squeezed, 10), aspect=Fraction(2, 1))
    info, [frame, *_], _ = watch(clip)
    assert (info.width, info.height) == (240, 240)
    assert frame.image.shape == (240, 240, 3)
    assert np.abs(frame.image.astype(int) - face).mean() < 8


def test_large_pictures_are_scaled_down(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "large.mp4", hold(resized(photo("coffee"), 900, 600), 5))
    info, [frame, *_], _ = watch(clip, CaptureSettings(max_side_px=300))
    assert (info.width, info.height) == (900, 600)
    assert frame.image.shape == (200, 300, 3)


def test_odd_sizes(tmp_path: Path) -> None:
    picture = resized(photo("chelsea"), 321, 241)
    info, [frame, *_], _ = watch(write_clip(tmp_path / "odd.mp4", hold(picture, 5)))
    assert (info.width, info.height) == (321, 241)
    assert np.abs(frame.image.astype(int) - picture).mean() < 6


def test_variable_frame_rate(tmp_path: Path) -> None:
    stamps = [0.0, 0.04, 0.5, 0.54, 0.58, 2.0, 2.9, 3.0]
    clip = write_clip(tmp_path / "variable.mkv", pan(photo("rocket"), 8), stamps=stamps)
    _, frames, [segment] = watch(clip)
    assert [round(frame.at - 1_700_000_000.0, 2) for frame in frames] == [0.0, 0.5, 2.0, 2.9, 3.0][: len(frames)]
    assert segment.counts.decoded == 8
    assert segment.end - segment.start == pytest.approx(3.04, abs=0.02)


def test_negative_and_late_first_stamps_are_media_time_zero(tmp_path: Path) -> None:
    for begin in (-1.5, 7.25):
        stamps = [begin + number / 25 for number in range(50)]
        clip = write_clip(
            tmp_path / "shifted.mkv", pan(photo("rocket"), 50), stamps=stamps, options={"avoid_negative_ts": "disabled"}
        )
        _, frames, [segment] = watch(clip)
        assert frames[0].at == segment.start == 1_700_000_000.0
        assert segment.end - segment.start == pytest.approx(2.0, abs=0.01)


def test_sound_that_begins_later_keeps_its_place(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "late.mkv", pan(photo("rocket"), 75), sound=tone(2.0), sound_from=1.0)
    _, _, [segment] = watch(clip)
    assert segment.audio is not None
    assert float(np.abs(segment.audio[: 16_000 - 400]).max()) == 0.0
    assert float(np.abs(segment.audio[16_000:16_800]).max()) > 0.25
    assert segment.audio_start == segment.start


def test_sound_in_anti_phase_is_heard(tmp_path: Path) -> None:
    one = babble(3.0)
    clip = write_clip(tmp_path / "anti.mkv", pan(photo("rocket"), 75), sound=np.stack((one, -one), axis=1))
    _, _, [segment] = watch(clip)
    assert segment.audio is not None
    assert np.corrcoef(np.abs(segment.audio[: len(one)]), np.abs(one[: len(segment.audio)]))[0, 1] > 0.99


def test_stereo_is_the_mean_of_both(tmp_path: Path) -> None:
    left, right = tone(2.0, 300.0), tone(2.0, 500.0)
    clip = write_clip(tmp_path / "stereo.flac", None, sound=np.stack((left, right), axis=1))
    _, _, [segment] = watch(clip)
    assert segment.audio is not None
    assert np.abs(segment.audio - (left + right) / 2).max() < 0.001


def test_the_largest_picture_stream_is_watched(shared: Path) -> None:
    info, _, _ = watch(shared / "media/video/nasa/nasa_13013.mp4")
    assert (info.width, info.height) == (480, 270)


def test_a_picture_that_stands_still_is_pruned_and_a_small_mover_is_not(tmp_path: Path) -> None:
    coffee = resized(photo("coffee"), 320, 240)
    random = np.random.default_rng(5)
    grain = [np.clip(coffee + random.normal(0, 4, coffee.shape), 0, 255).astype(np.uint8) for _ in range(75)]
    _, frames, [segment] = watch(write_clip(tmp_path / "still.mp4", grain))
    assert len(frames) == 1
    assert segment.still
    assert segment.counts.pruned == 5
    mouse = resized(photo("chelsea"), 20, 14)
    _, frames, [segment] = watch(write_clip(tmp_path / "mouse.mp4", crossing(coffee, mouse, 75, noise=4)))
    assert len(frames) >= 5
    assert not segment.still


def test_start_comes_from_the_container_or_the_file(tmp_path: Path) -> None:
    stamped = write_clip(
        tmp_path / "a.mp4", pan(photo("rocket"), 25), metadata={"creation_time": "2023-05-06T07:08:09.000000Z"}
    )
    with open_source(str(stamped), camera=None, start=None, settings=SETTINGS) as source:
        assert (source.start_from, source.info.start) == (StartFrom.RECORDED, 1_683_356_889.0)
    with open_source(str(stamped), camera=None, start=5.0, settings=SETTINGS) as source:
        assert (source.start_from, source.info.start) == (StartFrom.GIVEN, 5.0)
    plain = write_clip(tmp_path / "b.mp4", pan(photo("rocket"), 25))
    with open_source(str(plain), camera=None, start=None, settings=SETTINGS) as source:
        assert source.start_from is StartFrom.MODIFIED
        assert source.info.start == pytest.approx(plain.stat().st_mtime - 1.0, abs=0.01)


def test_fingerprint_names_the_content_not_the_name(tmp_path: Path) -> None:
    one = write_clip(tmp_path / "Front Door (1).mp4", pan(photo("rocket"), 25))
    other = tmp_path / "renamed.mp4"
    other.write_bytes(one.read_bytes())
    changed = tmp_path / "changed.mp4"
    changed.write_bytes(one.read_bytes()[:-1] + b"x")
    infos = [open_source(str(path), camera=None, start=None, settings=SETTINGS).info for path in (one, other, changed)]
    assert infos[0].fingerprint == infos[1].fingerprint != infos[2].fingerprint
    assert len(infos[0].fingerprint) == 32
    assert infos[0].camera == "front-door-1"
    assert open_source(str(one), camera="Hall", start=None, settings=SETTINGS).info.camera == "Hall"


# -- still images ---------------------------------------------------------------------------------------------------


def exif(orientation: int) -> bytes:
    """An APP1 segment that says nothing but the orientation."""
    tiff = b"II*\0\x08\0\0\0" + b"\x01\0" + b"\x12\x01\x03\0\x01\0\0\0" + bytes([orientation, 0, 0, 0]) + b"\0\0\0\0"
    body = b"Exif\0\0" + tiff
    return b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body


def test_jpeg_with_orientation(tmp_path: Path) -> None:
    picture = np.full((120, 160, 3), 90, np.uint8)
    picture[:40, :40] = (0, 0, 255)
    data = cv2.imencode(".jpg", picture)[1].tobytes()
    path = tmp_path / "phone.jpg"
    path.write_bytes(data[:2] + exif(6) + data[2:])
    info, [frame], [segment] = watch(path)
    assert info.kind is SourceKind.IMAGE
    assert (info.width, info.height) == (120, 160)
    assert colours(frame.image) == ".r.."
    assert segment.end - segment.start == 1.0
    assert segment.still
    assert segment.first_of_event
    assert segment.audio is None


def test_grey_deep_and_transparent_images(tmp_path: Path) -> None:
    coffee = photo("coffee", 200)
    grey = cv2.cvtColor(coffee, cv2.COLOR_BGR2GRAY)
    cv2.imwrite(str(tmp_path / "grey.png"), grey)
    cv2.imwrite(str(tmp_path / "deep.png"), coffee.astype(np.uint16) * 257)
    alpha = np.dstack((coffee, np.full(coffee.shape[:2], 255, np.uint8)))
    alpha[:50] = 0
    cv2.imwrite(str(tmp_path / "alpha.png"), alpha)
    _, [frame], _ = watch(tmp_path / "grey.png")
    assert np.array_equal(frame.image, np.repeat(grey[:, :, None], 3, axis=2))
    _, [frame], _ = watch(tmp_path / "deep.png")
    assert np.abs(frame.image.astype(int) - coffee).max() <= 1
    _, [frame], _ = watch(tmp_path / "alpha.png")
    assert (frame.image[:50] == 255).all()
    assert np.array_equal(frame.image[50:], coffee[50:])


def test_half_a_jpeg_gives_the_half_that_arrived(tmp_path: Path) -> None:
    whole = photo("astronaut")
    data = cv2.imencode(".jpg", whole)[1].tobytes()
    path = tmp_path / "half.jpg"
    path.write_bytes(data[: len(data) // 2])
    _, [frame], [segment] = watch(path)
    assert segment.counts.faults == 1
    height = frame.image.shape[0]
    assert 100 < height < 450
    assert np.abs(frame.image[: height - 20].astype(int) - whole[: height - 20]).mean() < 8
