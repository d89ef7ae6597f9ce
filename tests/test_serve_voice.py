"""A spoken question: what may be sent, that it is heard by the real recogniser, and who may ask."""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator

import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.perceive import build_dictation
from edge.recall import Recall
from edge.serve import build_app
from edge.serve.api_voice import MAX_BYTES, read_recording
from edge.serve.problems import Problem
from edge.settings import PerceiveSettings
from edge.types.media import SAMPLE_RATE, Samples
from tests.recall_data import BagEmbedder, tell
from tests.serve_support import LOCAL, Keys, MemoryService, call
from tests.speech_support import recordings, runtime, sound_catalog

__all__ = ["recordings", "runtime", "sound_catalog"]

PATH = "/api/v1/ask/voice"
WAV = {"Content-Type": "audio/wav"}


def recorded(samples: Samples, rate: int = SAMPLE_RATE, channels: int = 1) -> bytes:
    """A WAV file, as the phone page makes them."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())
    return out.getvalue()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryService]:
    with Store.open(tmp_path_factory.mktemp("voice") / "home") as store:
        tell(store, BagEmbedder())
        yield MemoryService(store, Recall(store, BagEmbedder()))


@pytest.fixture
def app(service: MemoryService) -> FastAPI:
    service.hears = None
    return build_app(service, Keys(LOCAL))


def test_real_speech_becomes_the_question_that_is_answered(
    app: FastAPI,
    service: MemoryService,
    sound_catalog: Catalog,
    runtime: Runtime,
    recordings: dict[str, Samples],
) -> None:
    service.hears = build_dictation(sound_catalog, runtime, PerceiveSettings()).words
    speech = recordings["two_cities"][: 6 * SAMPLE_RATE]
    answer = call(app, "POST", PATH, content=recorded(speech), headers=WAV)
    assert answer.status_code == 200, answer.text
    assert "best of times" in answer.json()["question"].lower()
    assert answer.json()["answer"]
    typed = call(app, "POST", "/api/v1/ask", json={"question": answer.json()["question"]}).json()
    assert typed["answer"] == answer.json()["answer"]
    silence = call(app, "POST", PATH, content=recorded(np.zeros(2 * SAMPLE_RATE, np.float32)), headers=WAV)
    assert (silence.status_code, silence.json()["type"].rsplit(":", 1)[-1].rsplit("/", 1)[-1]) == (
        422,
        "not-understood",
    )


def test_what_is_asked_aloud_is_answered_as_what_is_typed(app: FastAPI, service: MemoryService) -> None:
    heard: list[int] = []

    def hears(samples: Samples) -> str:
        heard.append(len(samples))
        return "Who repaired a motorcycle?"

    service.hears = hears
    answer = call(app, "POST", PATH, content=recorded(np.zeros(8000, np.float32)), headers=WAV).json()
    typed = call(app, "POST", "/api/v1/ask", json={"question": "Who repaired a motorcycle?"}).json()
    assert heard == [8000]
    assert (answer["question"], answer["answer"], answer["found"]) == (typed["question"], typed["answer"], True)


def test_what_cannot_be_heard_is_refused(app: FastAPI, service: MemoryService) -> None:
    quiet = np.zeros(SAMPLE_RATE, np.float32)
    assert call(app, "POST", PATH, content=recorded(quiet), headers=WAV).status_code == 503  # no recogniser
    service.hears = lambda _samples: "never asked"
    assert call(app, "POST", PATH, content=recorded(quiet), headers={"Content-Type": "audio/mp4"}).status_code == 415
    for data in (b"", b"RIFF", recorded(quiet)[:30], recorded(quiet, 48_000), recorded(np.zeros(800), channels=2)):
        refused = call(app, "POST", PATH, content=data, headers=WAV)
        assert refused.status_code == 422, data[:20]
        assert "16 kHz" in refused.json()["detail"]
    long = recorded(np.zeros(round(20.05 * SAMPLE_RATE), np.float32))
    assert call(app, "POST", PATH, content=long, headers=WAV).status_code == 422
    assert call(app, "POST", PATH, content=bytes(MAX_BYTES + 1), headers=WAV).status_code == 413
    assert call(app, "POST", "/api/v1/ask", content=bytes(MAX_BYTES - 1), headers=WAV).status_code == 413
    # A device that may only publish is a camera: it gives no orders.
    phone = {**WAV, "Authorization": "Bearer phone"}
    assert call(app, "POST", PATH, content=recorded(quiet), headers=phone).status_code == 403
    assert (
        call(app, "POST", PATH, content=recorded(quiet), headers={**WAV, "Authorization": "Bearer x"}).status_code
        == 401
    )


def test_it_is_described(app: FastAPI) -> None:
    said = call(app, "GET", "/api/openapi.json").json()["paths"][PATH]["post"]
    assert said["requestBody"]["content"]["audio/wav"]["schema"]["maxLength"] == MAX_BYTES
    assert "200" in said["responses"]


@given(st.binary(max_size=300), st.integers(0, 60))
@settings(deadline=None, max_examples=200)
def test_no_file_breaks_the_reader(junk: bytes, keep: int) -> None:
    whole = recorded(np.zeros(40, np.float32))
    for data in (junk, whole[:keep] + junk, junk[:4] + whole[4:keep] + junk):
        try:
            samples = read_recording(data)
        except Problem:  # anything else breaks the test
            continue
        assert samples.dtype == np.float32
        assert np.abs(samples).max(initial=0.0) <= 1.0
