"""What cannot be watched is refused in one sentence; what is damaged is watched as far as it goes."""

from __future__ import annotations

import os
import socket
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.capture import open_source
from edge.capture.address import parse_address, slug, without_credentials
from edge.capture.timestamps import MediaClock
from edge.errors import SourceError
from edge.settings import CaptureSettings
from edge.types.media import CutReason, SourceKind
from tests.media import pan, photo, tone, write_clip
from tests.test_capture_formats import watch

SETTINGS = CaptureSettings()


def refusal(uri: Path | str, settings: CaptureSettings = SETTINGS) -> str:
    with pytest.raises(SourceError) as caught:
        open_source(str(uri), camera=None, start=None, settings=settings)
    sentence = str(caught.value)
    assert sentence.endswith((".", ")."))
    assert "\n" not in sentence
    assert ": " in sentence  # the remedy follows the colon
    return sentence


def test_what_is_not_there_or_not_a_medium(tmp_path: Path) -> None:
    assert "no file" in refusal(tmp_path / "missing.mp4")
    assert "folder" in refusal(tmp_path)
    (tmp_path / "empty.mp4").touch()
    assert "empty" in refusal(tmp_path / "empty.mp4")
    for name in ("text.mp4", "text.txt", "text.nfo", "text"):
        (tmp_path / name).write_text("This is a shopping list.\n" * 200)
        refusal(tmp_path / name)
    (tmp_path / "random.mp4").write_bytes(np.random.default_rng(1).bytes(100_000))
    refusal(tmp_path / "random.mp4")
    (tmp_path / "picture.jpg").write_bytes(b"\xff\xd8\xff\xe0" + bytes(50))
    refusal(tmp_path / "picture.jpg")
    (tmp_path / "subtitles.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n")
    refusal(tmp_path / "subtitles.srt")


def test_a_clip_without_its_index(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "cut.mp4", pan(photo("rocket"), 50))
    clip.write_bytes(clip.read_bytes()[:-2000])
    assert "cut short" in refusal(clip)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    path = tmp_path / "secret.mp4"
    path.write_bytes(b"x")
    path.chmod(0)
    assert "permission" in refusal(path)


def test_addresses_that_cannot_be_reached() -> None:
    assert "unknown scheme" in refusal("gopher://camera/1")
    assert "names no host" in refusal("rtsp:///stream")
    assert "No source" in refusal("  ")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert "cannot be reached" in refusal(f"rtsp://127.0.0.1:{port}/live")
    assert "cannot be reached" in refusal(f"http://127.0.0.1:{port}/live")
    assert "no camera at usb:97" in refusal("usb:97")


def test_a_camera_that_never_answers_times_out() -> None:
    impatient = SETTINGS.model_copy(update={"connect_s": 1.0})
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert "does not answer" in refusal(f"http://user:secret@127.0.0.1:{mute.getsockname()[1]}/x", impatient)


def test_passwords_never_show() -> None:
    sentence = refusal("rtsp://admin:hunter2@127.0.0.1:9/live")
    assert "hunter2" not in sentence
    assert without_credentials("rtsp://a:b@host/x") == "rtsp://host/x"
    assert without_credentials("rtsp://host/x@y") == "rtsp://host/x@y"


def test_addresses() -> None:
    assert parse_address("usb:2").location == "/dev/video2"
    assert parse_address("/dev/video0").kind is SourceKind.USB
    assert parse_address("file:///tmp/a%20b.mp4").location == "/tmp/a%20b.mp4"
    assert parse_address("RTSP://Cam.local:554/1").kind is SourceKind.RTSP
    assert parse_address("rtsp://front-door.local/1").name == "front-door-local"
    assert parse_address("C: drive 50%.mp4").kind is SourceKind.FILE


@given(st.text())
def test_slugs_are_short_and_plain(text: str) -> None:
    short = slug(text)
    assert 0 < len(short) <= 48
    assert all(letter.isalnum() or letter == "-" for letter in short)


@given(st.text(max_size=60))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        assert parse_address(text).name
    except SourceError as error:
        assert str(error)  # noqa: PT017  # either outcome is right; the sentence must be there


def test_names_with_signs_that_mean_something_elsewhere(tmp_path: Path) -> None:
    for name in ("a:b.mp4", "100%03d.mp4", "concat:x|y.mp4", "ünïcode 🎥.mp4"):
        clip = tmp_path / name
        clip.write_bytes(write_clip(tmp_path / "plain.mp4", pan(photo("rocket"), 10)).read_bytes())
        _, _, [segment] = watch(clip)
        assert segment.counts.decoded == 10


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".ts", ".mpg", ".webm"])
def test_damage_in_the_middle_loses_little(tmp_path: Path, suffix: str) -> None:
    rate = 48_000
    clip = write_clip(
        tmp_path / f"hurt{suffix}", pan(photo("astronaut"), 150), sound=tone(6.0, rate=rate), sound_rate=rate
    )
    data = bytearray(clip.read_bytes())
    random = np.random.default_rng(4)
    for place in random.integers(int(len(data) * 0.4), int(len(data) * 0.5), 40):
        data[place : place + 20] = random.bytes(20)
    clip.write_bytes(data)
    _, frames, found = watch(clip)
    assert sum(segment.counts.decoded for segment in found) > 100
    assert frames[-1].at - found[0].start > 5.0
    assert found[-1].end - found[0].start == pytest.approx(6.0, abs=0.3)


def test_packets_that_cannot_be_decoded_are_counted(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "hurt.mkv", pan(photo("astronaut"), 150), sound=tone(6.0), audio_codec="aac")
    data = bytearray(clip.read_bytes())
    begin, end = int(len(data) * 0.4), int(len(data) * 0.6)
    data[begin:end] = np.random.default_rng(4).bytes(end - begin)
    clip.write_bytes(data)
    _, _, found = watch(clip)
    assert sum(segment.counts.faults for segment in found) > 0
    assert found[-1].end - found[0].start > 5.5


@pytest.mark.parametrize("suffix", [".mkv", ".ts", ".mpg"])
def test_a_truncated_file_works_as_far_as_it_goes(tmp_path: Path, suffix: str) -> None:
    clip = write_clip(tmp_path / f"cut{suffix}", pan(photo("astronaut"), 150), sound=tone(6.0), audio_codec="mp2")
    data = clip.read_bytes()
    clip.write_bytes(data[: len(data) // 2])
    info, frames, found = watch(clip)
    length = found[-1].end - found[0].start
    assert 2.0 < length < 4.5
    assert len(frames) >= 4
    assert found[-1].reason is CutReason.END_OF_SOURCE
    if info.duration is not None and info.duration > length + 1:
        assert found[-1].counts.faults > 0


def test_a_header_that_lies_about_the_duration(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "lie.mkv", pan(photo("rocket"), 50))
    data = clip.read_bytes()
    place = data.index(b"\x44\x89\x88") + 3  # the element Duration, a float64
    clip.write_bytes(data[:place] + np.array(900_000.0, ">f8").tobytes() + data[place + 8 :])
    info, _, [segment] = watch(clip)
    assert info.duration == pytest.approx(900.0)
    assert segment.end - segment.start == pytest.approx(2.0, abs=0.05)
    assert segment.counts.faults == 1


def test_the_picture_changes_its_size_in_the_middle(tmp_path: Path) -> None:
    one = write_clip(tmp_path / "one.ts", pan(photo("rocket"), 50, (320, 240)))
    other = write_clip(tmp_path / "other.ts", pan(photo("rocket"), 50, (480, 272)))
    both = tmp_path / "both.ts"
    both.write_bytes(one.read_bytes() + other.read_bytes())
    _, frames, found = watch(both)
    assert {frame.image.shape[:2] for frame in frames} == {(240, 320), (272, 480)}
    assert found[-1].end - found[0].start == pytest.approx(4.0, abs=0.1)


# -- the media clock ------------------------------------------------------------------------------------------------


def stamped(raw: list[float | None], step: float = 0.04, duration: float | None = None) -> list[float]:
    clock = MediaClock(next((at for at in raw if at is not None), 0.0), duration)
    return [clock.stamp(at, step, after) for at, after in zip(raw, [*raw[1:], None], strict=True)]


@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=60), st.floats(0.001, 1.0))
def test_the_media_clock_never_goes_back(raw: list[float | None], step: float) -> None:
    times = stamped(raw, step)
    assert all(one < other for one, other in pairwise(times))
    assert all(time >= 0 for time in times)
    assert all(round(time, 5) == time for time in times)


def test_stamps_missing_wrapped_and_spiking() -> None:
    even = [number / 25 for number in range(50)]
    wanted = [round(at, 5) for at in even]
    assert stamped(list(even)) == wanted
    missing = [at if number % 3 else None for number, at in enumerate(even)]
    assert stamped([0.0, *missing[1:]]) == pytest.approx(wanted)
    wrapped = [95443.7 - 1.0 + at if at < 1.0 else at - 1.0 for at in even]  # 33 bits of 90 kHz
    assert stamped(wrapped) == pytest.approx(wanted)
    for wrong in (77.0, -55.0, 1e9):
        spike = [*even[:20], wrong, *even[21:]]
        assert stamped(spike) == pytest.approx(wanted)
    gap = [*even[:25], *(at + 40.0 for at in even[25:])]
    assert stamped(gap) == pytest.approx([*wanted[:25], *(at + 40.0 for at in wanted[25:])])


def test_a_file_named_like_a_home_folder_is_a_file() -> None:
    assert parse_address("~nobody-of-this-name").location == "~nobody-of-this-name"
