"""What the tests of sound share: real speech from the catalogue, and segments made of it."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from edge.errors import ModelError
from edge.infer import Catalog, ModelSpec, Runtime, VoiceActivity, pull_models, speech_spans
from edge.perceive.speech import SpeechAnalyser, build_speech
from edge.settings import InferSettings, PerceiveSettings
from edge.types.media import SAMPLE_RATE, CutReason, Samples, Segment, SegmentCounts, Span

START = 1_700_000_000.0  # UTC of the segments

TWO_CITIES = (
    "it was the best of times it was the worst of times it was the age of wisdom it was the age of foolishness it was "
    "the epoch of belief it was the epoch of incredulity it was the season of light it was the season of darkness it "
    "was the spring of hope it was the winter of despair we had everything before us we had nothing before us"
)
TWO_CITIES_S = 24.6  # seconds until the end of those words


def pulled(catalog: Catalog, *roles: str) -> None:
    """Have the models of some roles; the test skips where they cannot be fetched."""
    specs = [model for model in catalog.models if model.role in roles]
    try:
        pull_models(catalog, [spec for spec in specs if not spec.present])
    except ModelError as error:
        pytest.skip(f"models for sound are not here: {error}")


@pytest.fixture(scope="session")
def sound_catalog() -> Catalog:
    catalog = Catalog.load(InferSettings())
    pulled(catalog, "voice-activity", "speech", "voice-embedding", "recordings")
    return catalog


@pytest.fixture(scope="session")
def runtime() -> Runtime:
    return Runtime(InferSettings())


@pytest.fixture(scope="session")
def activity(sound_catalog: Catalog, runtime: Runtime) -> VoiceActivity:
    return VoiceActivity(runtime.open(sound_catalog.default("voice-activity")))


@pytest.fixture(scope="session")
def analyser(sound_catalog: Catalog, runtime: Runtime) -> SpeechAnalyser:
    return build_speech(sound_catalog, runtime, PerceiveSettings())


@pytest.fixture(scope="session")
def recordings(sound_catalog: Catalog) -> dict[str, Samples]:
    spec: ModelSpec = sound_catalog.get("two-cities-speech")
    return {file.name.removesuffix(".wav"): read_sound(spec.path(file.name)) for file in spec.files}


def read_sound(path: Path) -> Samples:
    """A recording as mono samples at 16 kHz."""
    resampler = av.AudioResampler("flt", "mono", SAMPLE_RATE)
    with av.open(str(path)) as container:
        frames = [part for frame in container.decode(audio=0) for part in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float32)


def segment(samples: Samples, speech: tuple[Span, ...] | VoiceActivity) -> Segment:
    """A segment of that sound; with a detector, speech is where it hears some."""
    if isinstance(speech, VoiceActivity):
        spans = speech_spans(speech, samples)
        speech = tuple(Span(START + begin / SAMPLE_RATE, START + end / SAMPLE_RATE) for begin, end in spans)
    return Segment(
        camera="test",
        source="0" * 32,
        index=0,
        start=START,
        end=START + len(samples) / SAMPLE_RATE,
        reason=CutReason.END_OF_SOURCE,
        first_of_event=True,
        still=False,
        audio=samples,
        audio_start=START,
        speech=speech,
        audio_faults=0,
        counts=SegmentCounts(),
    )
