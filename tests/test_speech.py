"""Speech analysis on real speech: words, times, voices, and what must not become words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import jiwer
import numpy as np
import pytest

from edge.errors import InferenceError, ModelError
from edge.infer import Catalog, Runtime, VoiceActivity
from edge.perceive.speech import Recogniser, SpeechAnalyser, SpeechEvidence, VoicePrinter, build_speech
from edge.settings import InferSettings, PerceiveSettings
from edge.types.evidence import Voice
from edge.types.media import SAMPLE_RATE, Samples, Span
from tests.speech_support import (
    START,
    TWO_CITIES,
    TWO_CITIES_S,
    activity,
    analyser,
    recordings,
    runtime,
    segment,
    sound_catalog,
)
from tools.bench.speech_text import normalise

__all__ = ["activity", "analyser", "recordings", "runtime", "sound_catalog"]

Hear = Callable[[Samples], SpeechEvidence]


@pytest.fixture(scope="module")
def hear(analyser: SpeechAnalyser, activity: VoiceActivity) -> Hear:
    return lambda samples: analyser.analyse(segment(samples, activity))


@pytest.fixture(scope="module")
def cities(hear: Hear, recordings: dict[str, Samples]) -> SpeechEvidence:
    return hear(recordings["two_cities"][: round(TWO_CITIES_S * SAMPLE_RATE)])


@pytest.fixture(scope="module")
def dialogue(hear: Hear, recordings: dict[str, Samples]) -> SpeechEvidence:
    return hear(recordings["endgame_nagg_nell"])


def text(evidence: SpeechEvidence) -> str:
    return normalise(" ".join(utterance.text for utterance in evidence.utterances))


def same(one: SpeechEvidence, two: SpeechEvidence) -> bool:
    def numbers(voice: Voice) -> object:
        embedding = None if voice.embedding is None else voice.embedding.tobytes()
        return voice.anchor, voice.seconds, voice.safe, embedding

    return (
        one.utterances == two.utterances
        and one.turns == two.turns
        and [numbers(voice) for voice in one.voices] == [numbers(voice) for voice in two.voices]
    )


# --- words -----------------------------------------------------------------------------------------------------------


def test_read_speech_becomes_its_words(cities: SpeechEvidence):
    assert jiwer.wer(TWO_CITIES, text(cities)) < 0.08
    assert cities.refused_words == 0
    assert not cities.untranscribed
    assert not cities.other_language
    assert min(utterance.confidence for utterance in cities.utterances) > 0.6


def test_each_sentence_has_its_time(cities: SpeechEvidence):
    assert len(cities.utterances) >= 6
    for one, two in pairwise(cities.utterances):
        assert START <= one.start < one.end <= two.start < two.end <= START + TWO_CITIES_S
    # Where the reader begins these sentences, by ear.
    for words, second in (
        ("best of times", 1.2),
        ("age of wisdom", 4.6),
        ("epoch of belief", 8.8),
        ("season of light", 13.5),
    ):
        (found,) = [utterance for utterance in cities.utterances if words in utterance.text]
        assert found.start - START == pytest.approx(second, abs=0.8)


def test_the_same_sound_gives_the_same_evidence(hear: Hear, recordings: dict[str, Samples]):
    samples = recordings["beckett"]
    assert same(hear(samples), hear(samples.copy()))


def test_quiet_shifted_and_broken_sound_gives_the_same_words(
    analyser: SpeechAnalyser, activity: VoiceActivity, hear: Hear, recordings: dict[str, Samples]
):
    samples = recordings["beckett"]
    plain = segment(samples, activity)
    words = text(analyser.analyse(plain))
    assert words.startswith("ever tried ever failed")
    quiet = analyser.analyse(replace(plain, audio=samples * np.float32(0.003)))
    shifted = analyser.analyse(replace(plain, audio=samples + np.float32(0.2)))
    holed = samples.copy()
    holed[100:200] = np.nan
    for evidence in (quiet, shifted, analyser.analyse(replace(plain, audio=holed))):
        assert jiwer.wer(words, text(evidence)) < 0.1
        assert [voice.anchor for voice in evidence.voices] == ["v1"]


@pytest.mark.parametrize("kind", ["silence", "white", "pink", "chord", "hum", "empty"])
def test_no_words_on_sounds_that_are_no_speech(analyser: SpeechAnalyser, kind: str):
    count = 6 * SAMPLE_RATE
    rng = np.random.default_rng(5)
    t = np.arange(count) / SAMPLE_RATE
    spectrum = np.fft.rfft(rng.normal(size=count))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    sounds = {
        "silence": np.zeros(count),
        "white": rng.normal(size=count) * 0.1,
        "pink": np.fft.irfft(spectrum),
        "chord": 0.1 * (np.sin(2 * np.pi * 261 * t) + np.sin(2 * np.pi * 392 * t)),
        "hum": 0.05 * np.sin(2 * np.pi * 50 * t),
        "empty": np.zeros(0),
    }
    samples = sounds[kind].astype(np.float32)
    everything = (Span(START, START + count / SAMPLE_RATE),)  # as if the detector had been fooled
    evidence = analyser.analyse(segment(samples, everything))
    assert evidence.utterances == ()
    assert not evidence.other_language


def test_speech_backwards_is_no_english(hear: Hear, recordings: dict[str, Samples]):
    evidence = hear(recordings["two_cities"][: 16 * SAMPLE_RATE][::-1].copy())
    assert len(text(evidence).split()) <= 3
    assert evidence.refused_words >= 10
    assert evidence.other_language


def test_a_segment_without_sound_or_speech_says_nothing(analyser: SpeechAnalyser, recordings: dict[str, Samples]):
    beckett = segment(recordings["beckett"], (Span(START, START + 1),))
    outside = (Span(START + 900, START + 901),)
    for quiet in (replace(beckett, speech=()), replace(beckett, audio=None), replace(beckett, speech=outside)):
        evidence = analyser.analyse(quiet)
        assert (evidence.voices, evidence.utterances, evidence.turns) == ((), (), ())
        assert not evidence.untranscribed


# --- voices ----------------------------------------------------------------------------------------------------------


def test_one_reader_is_one_voice(cities: SpeechEvidence):
    (voice,) = cities.voices
    assert voice.safe
    assert voice.embedding is not None
    assert np.linalg.norm(voice.embedding) == pytest.approx(1.0, abs=1e-5)
    assert 18 < voice.seconds < TWO_CITIES_S
    assert {utterance.voice for utterance in cities.utterances} == {"v1"}


def test_a_dialogue_is_two_voices_in_turn(dialogue: SpeechEvidence):
    assert [voice.anchor for voice in dialogue.voices] == ["v1", "v2"]
    assert all(voice.safe for voice in dialogue.voices)
    assert [turn.voice for turn in dialogue.turns] == ["v1", "v2"] * 7
    said = {voice: " ".join(u.text.lower() for u in dialogue.utterances if u.voice == voice) for voice in ("v1", "v2")}
    assert "do you hear me" in said["v1"]
    assert "good story" in said["v2"]
    assert "good story" not in said["v1"]


def test_voices_change_without_a_pause(hear: Hear, recordings: dict[str, Samples]):
    reader = recordings["two_cities"][round(29.3 * SAMPLE_RATE) : round(33.8 * SAMPLE_RATE)]
    other = recordings["endgame_nagg_nell"][round(4.9 * SAMPLE_RATE) : round(8.1 * SAMPLE_RATE)]
    evidence = hear(np.concatenate([reader, other, reader]))
    assert [turn.voice for turn in evidence.turns] == ["v1", "v2", "v1"]
    assert evidence.turns[1].start - START == pytest.approx(4.5, abs=0.6)
    assert evidence.turns[1].end - START == pytest.approx(7.7, abs=0.6)


def test_a_voice_resembles_itself_in_another_segment_and_no_other(
    hear: Hear, recordings: dict[str, Samples], cities: SpeechEvidence, dialogue: SpeechEvidence
):
    later = hear(recordings["two_cities"][round(30 * SAMPLE_RATE) : round(38 * SAMPLE_RATE)])
    vectors = [
        evidence.voices[number].embedding
        for evidence, number in ((later, 0), (cities, 0), (dialogue, 0), (dialogue, 1))
    ]
    again, reader, one, two = (vector for vector in vectors if vector is not None)
    assert float(again @ reader) > 0.8
    assert max(float(again @ one), float(again @ two), float(one @ two)) < 0.7


# --- what is missing or fails ----------------------------------------------------------------------------------------


def test_without_the_speech_model_voices_are_told_apart(
    tmp_path: Path, runtime: Runtime, activity: VoiceActivity, recordings: dict[str, Samples]
):
    bare = build_speech(Catalog.load(InferSettings(models_dir=tmp_path)), runtime, PerceiveSettings())
    (sentence,) = bare.missing
    assert "reflectworld models pull moonshine-tiny-en" in sentence
    evidence = bare.analyse(segment(recordings["beckett"], activity))
    assert evidence.untranscribed
    assert evidence.utterances == ()
    assert [voice.anchor for voice in evidence.voices] == ["v1"]


class Failing:
    """A network that fails."""

    key = "failing"

    def transcribe(self, samples: Samples) -> None:
        raise InferenceError("The network failed. Try again.")

    def embed(self, samples: Samples, windows: object) -> None:
        raise InferenceError("The network failed. Try again.")


def test_a_failing_network_costs_its_part_only(
    sound_catalog: Catalog, runtime: Runtime, activity: VoiceActivity, recordings: dict[str, Samples]
):
    heard = segment(recordings["beckett"], activity)
    printer = VoicePrinter(sound_catalog.default("voice-embedding"), runtime)
    wordless = SpeechAnalyser(Failing(), printer).analyse(heard)  # type: ignore[arg-type]
    assert wordless.untranscribed
    assert len(wordless.voices) == 1
    recogniser = Recogniser(sound_catalog.default("speech"), runtime)
    voiceless = SpeechAnalyser(recogniser, Failing()).analyse(heard)  # type: ignore[arg-type]
    assert voiceless.voices == voiceless.turns == ()
    assert {utterance.voice for utterance in voiceless.utterances} == {None}
    assert not voiceless.untranscribed


def test_a_model_of_another_form_is_refused(sound_catalog: Catalog, runtime: Runtime):
    with pytest.raises(ModelError, match="mel bands"):
        VoicePrinter(sound_catalog.default("voice-activity"), runtime)
