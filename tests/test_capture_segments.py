"""Where segments end, and that a run which goes on where another stopped gives the same."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest

from edge.capture import VoiceActivityLike, open_source, segments, worth_analysing
from edge.settings import CaptureSettings
from edge.types.media import CutReason, Frame, Mode, Segment, SegmentCounts, Span
from tests.media import babble, hold, hush, pan, photo, resized, tone, write_clip

START = 1_700_000_000.123
SETTINGS = CaptureSettings()
SHORT = CaptureSettings(segment_max_s=6.0, segment_min_s=2.0)


@dataclass(frozen=True)
class Change:
    at_sample: int
    speaking: bool


class LoudVoice:
    """A detector with the manners of the real one that takes loud sound for speech: pauses under .4 s do not end it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._rest = np.zeros(0, np.float32)
        self._heard = 0
        self._quiet_from: int | None = None
        self._ended: int | None = None
        self.speaking = False

    @property
    def silence_s(self) -> float:
        return 0.0 if self.speaking or self._ended is None else (self._heard - self._ended) / 16_000

    def feed(self, samples: np.ndarray) -> Sequence[Change]:
        pending = np.concatenate((self._rest, samples))
        whole = len(pending) // 512 * 512
        self._rest = pending[whole:]
        changes = []
        for window in pending[:whole].reshape(-1, 512):
            loud = float(np.abs(window).max()) > 0.02
            if loud and not self.speaking:
                self.speaking = True
                changes.append(Change(self._heard, True))
            if not loud and self._quiet_from is None:
                self._quiet_from = self._heard
            self._quiet_from = None if loud else self._quiet_from
            self._heard += 512
            if self.speaking and self._quiet_from is not None and self._heard - self._quiet_from >= 6400:
                self.speaking, self._ended = False, self._quiet_from
                changes.append(Change(self._quiet_from, False))
        return changes

    def finish(self) -> Sequence[Change]:
        return [Change(self._heard, False)] if self.speaking else []


def play(
    path: Path,
    *,
    vad: VoiceActivityLike | None = None,
    settings: CaptureSettings = SETTINGS,
    resume_at: float = 0.0,
    next_segment: int = 0,
    stop: threading.Event | None = None,
) -> Iterator[Frame | Segment]:
    with open_source(str(path), camera="lab", start=START, settings=settings) as source:
        yield from segments(
            source,
            vad=vad,
            settings=settings,
            mode=Mode.OFFLINE_QUALITY,
            resume_at=resume_at,
            next_segment=next_segment,
            stop=stop or threading.Event(),
        )


def cut(path: Path, **options: object) -> list[Segment]:
    return [item for item in play(path, **options) if isinstance(item, Segment)]  # type: ignore[arg-type]


def spans(found: list[Segment]) -> list[tuple[float, float, str]]:
    return [(round(s.start - START, 2), round(s.end - START, 2), s.reason.value) for s in found]


# -- the picture decides --------------------------------------------------------------------------------------------


def test_scenes(tmp_path: Path) -> None:
    scenes = chain(pan(photo("astronaut"), 60), pan(photo("coffee"), 40), pan(photo("astronaut"), 50))
    found = cut(write_clip(tmp_path / "scenes.mp4", scenes))
    assert spans(found) == [(0.0, 2.4, "scene_cut"), (2.4, 4.0, "scene_cut"), (4.0, 6.0, "end_of_source")]
    assert [s.counts.decoded for s in found] == [60, 40, 50]
    assert [s.index for s in found] == [0, 1, 2]
    assert [s.first_of_event for s in found] == [True, False, False]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_flash_is_no_cut(tmp_path: Path, length: int) -> None:
    frames = list(pan(photo("astronaut"), 60))
    frames[30 : 30 + length] = [np.full_like(frames[0], 255)] * length
    assert spans(cut(write_clip(tmp_path / "flash.mp4", frames))) == [(0.0, 2.4, "end_of_source")]


def test_each_frame_lies_in_its_segment_and_the_first_is_chosen(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", chain(pan(photo("astronaut"), 63), pan(photo("rocket"), 77)))
    pending: list[Frame] = []
    for item in play(clip):
        if isinstance(item, Frame):
            pending.append(item)
        else:
            assert pending[0].at == item.start
            assert pending[0].change == 255.0
            assert all(item.start <= frame.at < item.end for frame in pending)
            assert item.counts.chosen == len(pending)
            pending = []
    assert pending == []


def test_a_slow_change_ends_a_segment_once_it_is_long_enough(tmp_path: Path) -> None:
    bright, dark = resized(photo("coffee"), 160, 120), resized(photo("astronaut"), 160, 120)
    weights = np.clip((np.arange(150) - 20) / 60, 0, 1)
    fade = [np.rint(bright * (1 - weight) + dark * weight).astype(np.uint8) for weight in weights]
    found = cut(write_clip(tmp_path / "fade.mp4", fade), settings=SHORT)
    assert found[0].reason is CutReason.VISUAL_CHANGE
    assert 2.0 <= found[0].end - START < 4.0


def test_no_segment_is_longer_than_allowed(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "long.mkv", hold(resized(photo("coffee"), 160, 120), 650), fps=10)
    assert spans(cut(clip)) == [(0.0, 30.0, "max_length"), (30.0, 60.0, "max_length"), (60.0, 65.0, "end_of_source")]


def test_a_gap_begins_a_new_event(tmp_path: Path) -> None:
    stamps = [*(n / 10 for n in range(20)), *(100 + n / 10 for n in range(20))]
    clip = write_clip(tmp_path / "gap.mkv", pan(photo("coffee"), 40, (160, 120)), stamps=stamps)
    found = cut(clip)
    assert len(found) == 2
    assert found[0].end - START == pytest.approx(2.0, abs=0.1)
    assert found[1].start - START == pytest.approx(100.0)
    assert [s.first_of_event for s in found] == [True, True]


# -- the sound decides ----------------------------------------------------------------------------------------------


def test_the_end_of_speech_ends_a_segment(tmp_path: Path) -> None:
    sound = np.concatenate((hush(1.0), tone(3.0), hush(2.5), tone(1.0), hush(1.0)))
    found = cut(write_clip(tmp_path / "talk.wav", None, sound=sound), vad=LoudVoice(), settings=SHORT)
    assert [s.reason for s in found] == [CutReason.SPEECH_END, CutReason.END_OF_SOURCE]
    assert found[0].end - START == pytest.approx(5.0, abs=0.15)
    said = [(round(span.start - START, 1), round(span.end - START, 1)) for s in found for span in s.speech]
    assert said == [(1.0, 4.0), (6.5, 7.5)]


def test_words_stay_whole_where_a_segment_must_end(tmp_path: Path) -> None:
    beats = np.concatenate([np.concatenate((tone(0.55), hush(0.15)))] * 20)  # 14 s, never .4 s of silence
    found = cut(write_clip(tmp_path / "beats.wav", None, sound=beats), vad=LoudVoice(), settings=SHORT)
    assert found[0].reason is CutReason.MAX_LENGTH
    for segment in found[:-1]:
        assert segment.audio is not None
        assert 4.5 <= segment.end - segment.start <= 6.0
        assert float(np.abs(segment.audio[-200:]).max()) < 0.01
        assert segment.end == pytest.approx(segment.audio_start + len(segment.audio) / 16_000, abs=0.01)


def test_a_scene_cut_amid_a_word_moves_only_the_sound(tmp_path: Path) -> None:
    sound = np.concatenate((tone(1.9), hush(0.05), tone(2.05)))
    scenes = chain(pan(photo("astronaut"), 52), pan(photo("coffee"), 48))
    one, other = cut(write_clip(tmp_path / "word.mkv", scenes, sound=sound), vad=LoudVoice())
    assert one.end == other.start == pytest.approx(START + 2.08)
    assert one.audio is not None
    assert len(one.audio) / 16_000 == pytest.approx(1.925, abs=0.02)
    assert other.audio_start == pytest.approx(START + len(one.audio) / 16_000)


def test_every_sample_belongs_to_one_segment(tmp_path: Path) -> None:
    sound = babble(20.0)
    scenes = chain(
        *(pan(photo(name), 100, (160, 120)) for name in ("astronaut", "coffee", "rocket", "chelsea", "astronaut"))
    )
    clip = write_clip(tmp_path / "talk.mkv", scenes, sound=sound)
    found = cut(clip, vad=LoudVoice(), settings=SHORT)
    assert len(found) >= 5
    joined = np.concatenate([s.audio for s in found if s.audio is not None])
    assert np.abs(joined - sound).max() < 1e-4
    for one, other in pairwise(found):
        assert one.audio is not None
        assert one.audio_start + len(one.audio) / 16_000 == pytest.approx(other.audio_start, abs=1e-6)
        assert one.end == other.start


def test_without_a_detector_audible_sound_counts_as_speech(tmp_path: Path) -> None:
    [loud] = cut(write_clip(tmp_path / "loud.wav", None, sound=tone(2.0)))
    [silent] = cut(write_clip(tmp_path / "silent.wav", None, sound=hush(2.0)))
    assert len(loud.speech) == 1
    assert silent.speech == ()


# -- going on -------------------------------------------------------------------------------------------------------


def essence(item: Frame | Segment) -> tuple[object, ...]:
    """Everything but the moment at which a frame was decoded."""
    if isinstance(item, Frame):
        return (item.at, item.index, item.change, item.image.shape, item.image.tobytes())
    audio = None if item.audio is None else item.audio.tobytes()
    return (
        item.index, item.start, item.end, item.reason, item.first_of_event, item.still, audio, item.audio_start,
        item.speech, item.audio_faults, item.counts,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("suffix", "audio_codec", "rate"),
    [
        (".mp4", "aac", 44_100),
        pytest.param(".mkv", "libmp3lame", 22_050, marks=pytest.mark.slow),
        (".mpg", "mp2", 44_100),
        (".webm", "libopus", 48_000),
        (".flac", "flac", 44_100),
        pytest.param(".mp3", "libmp3lame", 44_100, marks=pytest.mark.slow),
        pytest.param(".ts", "aac", 48_000, marks=pytest.mark.slow),
        (".gif", None, 0),
    ],
)
def test_a_resumed_run_is_bit_identical(tmp_path: Path, suffix: str, audio_codec: str | None, rate: int) -> None:
    names = ("astronaut", "coffee", "rocket", "chelsea")
    scenes = chain(*(pan(photo(name), 28, (128, 96), noise=3.0) for name in names))
    pictures = None if suffix in (".flac", ".mp3") else scenes
    sound = None if audio_codec is None else babble(22.6, rate)
    clip = write_clip(
        tmp_path / f"clip{suffix}", pictures, fps=5, sound=sound, sound_rate=rate, audio_codec=audio_codec, key_every=25,
        video_codec="mpeg2video" if suffix == ".mpg" else None,
    )  # fmt: skip
    settings = CaptureSettings(segment_max_s=7.0, segment_min_s=2.0)
    whole = list(play(clip, vad=LoudVoice(), settings=settings))
    ends = [place for place, item in enumerate(whole) if isinstance(item, Segment)]
    assert len(ends) >= 4
    for place in (ends[0], ends[len(ends) // 2], ends[-2]):
        boundary = whole[place]
        assert isinstance(boundary, Segment)
        rest = play(
            clip, vad=LoudVoice(), settings=settings, resume_at=boundary.end - START, next_segment=boundary.index + 1
        )
        assert [essence(item) for item in rest] == [essence(item) for item in whole[place + 1 :]]


def test_stopping_closes_the_segment_and_going_on_loses_nothing(tmp_path: Path) -> None:
    sound = babble(8.0)
    clip = write_clip(tmp_path / "stop.mp4", pan(photo("astronaut"), 200), sound=sound)
    stop = threading.Event()
    items = []
    for item in play(clip, vad=LoudVoice(), stop=stop):
        items.append(item)
        if len(items) == 4:
            stop.set()
            began = time.monotonic()
    assert time.monotonic() - began < 1.0
    part = items[-1]
    assert isinstance(part, Segment)
    assert part.reason is CutReason.INTERRUPTED
    assert all(part.start <= item.at < part.end for item in items[:-1] if isinstance(item, Frame))
    rest = [
        item
        for item in play(clip, vad=LoudVoice(), resume_at=part.end - START, next_segment=1)
        if isinstance(item, Segment)
    ]
    assert rest[0].index == 1
    assert rest[0].start == pytest.approx(part.end, abs=1e-6)
    assert part.counts.decoded + sum(s.counts.decoded for s in rest) == 200
    [unbroken] = cut(clip, vad=LoudVoice())
    pieces = [s.audio for s in (part, *rest) if s.audio is not None]
    assert unbroken.audio is not None
    assert np.array_equal(np.concatenate(pieces), unbroken.audio)


def test_stopping_before_the_first_frame_gives_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert list(play(write_clip(tmp_path / "a.mp4", pan(photo("rocket"), 25)), stop=stop)) == []


def test_resuming_at_the_end_gives_nothing(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", pan(photo("rocket"), 25), sound=tone(1.0))
    [segment] = cut(clip)
    assert list(play(clip, resume_at=segment.end - START, next_segment=1)) == []


def test_position_follows_the_media_time(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", pan(photo("rocket"), 75))
    with open_source(str(clip), camera=None, start=START, settings=SETTINGS) as source:
        seen = [
            source.position
            for _ in segments(source, vad=None, settings=SETTINGS, mode=Mode.LIVE_LATENCY, stop=threading.Event())
        ]
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(3.0)


# -- which segments may be skipped ----------------------------------------------------------------------------------


def segment(**changes: object) -> Segment:
    values: dict[str, object] = {
        "camera": "c", "source": "0" * 32, "index": 3, "start": 0.0, "end": 30.0, "reason": CutReason.MAX_LENGTH,
        "first_of_event": False, "still": True, "audio": None, "audio_start": 0.0, "speech": (), "audio_faults": 0,
        "counts": SegmentCounts(),
    }  # fmt: skip
    return Segment(**{**values, **changes})  # type: ignore[arg-type]


def test_only_still_and_silent_segments_may_be_skipped() -> None:
    assert not worth_analysing(segment())
    for guard in ({"first_of_event": True}, {"speech": (Span(1.0, 2.0),)}, {"audio_faults": 1}, {"still": False}):
        assert worth_analysing(segment(**guard))


@pytest.mark.parametrize("name", ["grid_talkers.mp4", "intel_reappear.mp4"])
def test_scenes_of_real_clips(shared: Path, name: str) -> None:
    with (shared / "media/derived/timelines.csv").open(newline="") as file:
        begins = sorted(float(row["start_s"]) for row in csv.DictReader(file) if row["file"] == name)
    cuts = [s.end - START for s in cut(shared / "media/derived" / name) if s.reason is CutReason.SCENE_CUT]
    assert cuts == pytest.approx(begins[1:], abs=0.1)
