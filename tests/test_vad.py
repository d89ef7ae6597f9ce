"""Voice activity: the machine around the network, and the network on real speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edge.infer import SpeechChange, VoiceActivity, speech_spans
from edge.types.media import SAMPLE_RATE, Samples
from tests.speech_support import activity, recordings, runtime, sound_catalog

__all__ = ["activity", "recordings", "runtime", "sound_catalog"]

WINDOW = 512


class Loudness:
    """Stands for the network: the probability of a window is its mean, and the state counts windows."""

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        assert feeds["input"].shape == (1, 576)
        return [np.array([[feeds["input"][0, 64:].mean()]], dtype=np.float32), feeds["state"] + 1]


def sound(probabilities: list[float]) -> Samples:
    return np.repeat(np.asarray(probabilities, dtype=np.float32), WINDOW)


def seconds(windows: int) -> float:
    return windows * WINDOW / SAMPLE_RATE


def test_speech_is_dated_to_where_it_began_and_ended():
    vad = VoiceActivity(Loudness(), min_speech_s=seconds(4), min_silence_s=seconds(10))
    changes = vad.feed(sound([0.0] * 5 + [0.9] * 20 + [0.0] * 20))
    assert changes == (SpeechChange(5 * WINDOW, speaking=True), SpeechChange(25 * WINDOW, speaking=False))
    assert not vad.speaking
    assert vad.silence_s == pytest.approx(seconds(20))


def test_a_click_is_no_speech_and_a_short_pause_no_end():
    vad = VoiceActivity(Loudness(), min_speech_s=seconds(4), min_silence_s=seconds(10))
    assert vad.feed(sound([0.9] * 3 + [0.0] * 30)) == ()
    (begin,) = vad.feed(sound([0.9] * 8 + [0.0] * 9 + [0.9] * 8))
    assert begin == SpeechChange(33 * WINDOW, speaking=True)
    assert vad.speaking
    assert vad.silence_s == 0.0


def test_between_the_two_thresholds_nothing_changes():
    vad = VoiceActivity(Loudness(), threshold=0.5, min_speech_s=seconds(2), min_silence_s=seconds(4))
    assert vad.feed(sound([0.4] * 50)) == ()  # not loud enough to begin
    assert [change.speaking for change in vad.feed(sound([0.6] * 4 + [0.4] * 50))] == [True]  # loud enough to go on


def test_silence_stands_still_while_a_sound_may_become_speech():
    vad = VoiceActivity(Loudness(), min_speech_s=seconds(6), min_silence_s=seconds(10))
    assert vad.silence_s == 0.0  # nobody has spoken
    vad.feed(sound([0.9] * 10 + [0.0] * 15))
    before = vad.silence_s
    assert before == pytest.approx(seconds(15))
    vad.feed(sound([0.9] * 5))
    assert not vad.speaking
    assert vad.silence_s == before
    vad.feed(sound([0.9]))
    assert vad.speaking
    assert vad.silence_s == 0.0


def test_the_end_of_a_stream_closes_open_speech():
    vad = VoiceActivity(Loudness(), min_speech_s=seconds(2), min_silence_s=seconds(10))
    assert len(vad.feed(sound([0.9] * 9)[:-100])) == 1
    assert [change.speaking for change in vad.finish()] == [False]
    samples = sound([0.9] * 9)[:-100]
    assert speech_spans(vad, samples) == ((0, len(samples)),)


def test_sound_that_is_no_number_is_silence():
    vad = VoiceActivity(Loudness(), min_speech_s=seconds(2))
    vad.feed(np.full(WINDOW * 4, np.nan, dtype=np.float32))
    vad.feed(np.full(WINDOW * 4, np.inf, dtype=np.float32))
    assert [change.speaking for change in vad.feed(sound([0.9] * 4))] == [True]


@given(
    probabilities=st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9]), max_size=120),
    cuts=st.lists(st.integers(1, 3000), min_size=1, max_size=20),
)
def test_changes_do_not_depend_on_the_chunks(probabilities: list[float], cuts: list[int]):
    samples = sound(probabilities)
    whole = VoiceActivity(Loudness())
    expected = whole.feed(samples) + whole.finish()
    parts = VoiceActivity(Loudness())
    parts.feed(np.ones(777, dtype=np.float32))
    parts.reset()
    changes = tuple(change for chunk in _chunks(samples, cuts) for change in parts.feed(chunk)) + parts.finish()
    assert changes == expected
    assert [change.speaking for change in changes] == [i % 2 == 0 for i in range(len(changes))]
    assert all(one.at_sample < two.at_sample for one, two in pairwise(changes))


def _chunks(samples: Samples, cuts: list[int]) -> Iterator[Samples]:
    at = turn = 0
    while at < len(samples):
        size = cuts[turn % len(cuts)]
        yield samples[at : at + size]
        at, turn = at + size, turn + 1


def test_real_speech_is_found_the_same_in_any_chunks(activity: VoiceActivity, recordings: dict[str, Samples]):
    samples = recordings["beckett"]
    spans = speech_spans(activity, samples)
    assert len(spans) == 6  # six short phrases
    assert 0.35 < sum(end - begin for begin, end in spans) / len(samples) < 0.65
    for sizes in ([160], [1, 700, 333, 4000]):
        changes = [change for chunk in _chunks(samples, sizes) for change in activity.feed(chunk)]
        changes += activity.finish()
        activity.reset()
        assert tuple(change.at_sample for change in changes[::2]) == tuple(begin for begin, _ in spans)


def test_noise_and_tones_are_no_speech(activity: VoiceActivity):
    rng = np.random.default_rng(3)
    t = np.arange(6 * SAMPLE_RATE) / SAMPLE_RATE
    chord = 0.1 * (np.sin(2 * np.pi * 261 * t) + np.sin(2 * np.pi * 329 * t) + np.sin(2 * np.pi * 392 * t))
    for samples in (np.zeros(len(t)), rng.normal(size=len(t)) * 0.1, chord):
        assert speech_spans(activity, samples.astype(np.float32)) == ()


def test_speech_on_an_offset_is_heard(activity: VoiceActivity, recordings: dict[str, Samples]):
    plain = speech_spans(activity, recordings["beckett"])
    shifted = speech_spans(activity, recordings["beckett"] + np.float32(0.1))
    assert len(shifted) == len(plain)
