"""Providers, networks and sentence vectors."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.errors import InferenceError, ModelDownloadError, ModelError, SettingsError
from edge.infer import Catalog, Network, Runtime, TextEmbedder, pull_models, release_memory
from edge.infer.runtime import CPU, candidates, probe
from edge.settings import InferSettings


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load(InferSettings())


@pytest.fixture(scope="module")
def runtime() -> Runtime:
    return Runtime(InferSettings(threads=1))


@pytest.fixture(scope="module")
def faces(catalog: Catalog, runtime: Runtime) -> Network:
    return runtime.open(catalog.default("faces"))


@pytest.fixture(scope="session")
def embedder() -> TextEmbedder:
    """The sentence embedder; pulled if need be and possible."""
    settings = InferSettings(threads=1)
    catalog = Catalog.load(settings)
    spec = catalog.default("text-embedding")
    if not spec.present:
        try:
            pull_models(catalog, [spec])
        except ModelDownloadError as error:
            pytest.skip(f"the sentence model is not here: {error}")
    return TextEmbedder(spec, Runtime(settings))


# --- providers and threads -------------------------------------------------------------------------------------------


def test_the_cpu_passes_the_probe_and_what_is_not_there_does_not():
    assert probe(CPU).works
    missing = probe(
        "TensorrtExecutionProvider" if "TensorrtExecutionProvider" not in ort.get_available_providers() else "X"
    )
    assert not missing.works
    assert missing.reason


def test_a_wrong_answer_fails_the_probe(monkeypatch: pytest.MonkeyPatch):
    import edge.infer.runtime as module

    monkeypatch.setattr(module, "_PROBE_OUTPUT", module._PROBE_OUTPUT + 1)
    assert probe(CPU).reason == "its answer is wrong"


def test_candidates_are_tried_fastest_first_and_nothing_is_sent_away():
    available = ["AzureExecutionProvider", CPU, "CUDAExecutionProvider", "TensorrtExecutionProvider"]
    assert candidates("auto", available) == ("TensorrtExecutionProvider", "CUDAExecutionProvider", CPU)
    assert candidates("cpu, CUDAExecutionProvider,CPU", available) == (CPU, "CUDAExecutionProvider")
    with pytest.raises(SettingsError, match="“magic” is not in this ONNX Runtime"):
        candidates("magic", available)


def test_a_provider_that_is_compiled_in_but_does_not_work_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, catalog: Catalog
):
    # What a machine without the CUDA libraries looks like: the provider is offered, and sessions fall to the CPU.
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider", CPU])
    runtime = Runtime(InferSettings(threads=1))
    assert runtime.providers == (CPU,)
    assert "CUDA does not work here" in runtime.description
    assert runtime.open(catalog.default("faces")).providers == (CPU,)


def test_no_provider_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    with pytest.raises(InferenceError, match=r"No ONNX Runtime provider works \(CUDA: "):
        Runtime(InferSettings(threads=1))


def test_threads_are_the_settings_or_measured():
    assert Runtime(InferSettings(threads=3)).threads == 3
    measured = Runtime(InferSettings(threads=0))
    assert 1 <= measured.threads <= 4
    assert f"{measured.threads} thread" in measured.description


# --- networks --------------------------------------------------------------------------------------------------------


def test_a_network_says_what_it_takes_and_gives(faces: Network):
    (picture,) = faces.inputs
    assert (picture.name, picture.shape, picture.dtype) == ("input", (None, 3, None, None), np.float32)
    assert [tensor.name for tensor in faces.outputs] == ["loc", "conf", "landmarks"]
    loc, conf, landmarks = faces.run({"input": np.zeros((2, 3, 64, 96), np.float32)})
    assert (loc.shape, conf.shape, landmarks.shape) == ((2, 252, 4), (2, 252, 2), (2, 252, 10))


@pytest.mark.parametrize(
    "feeds",
    [
        {},
        {"other": np.zeros((1, 3, 64, 64), np.float32)},
        {"input": np.zeros((1, 3, 64, 64), np.float64)},
        {"input": np.zeros((3, 64, 64), np.float32)},
        {"input": np.zeros((1, 4, 64, 64), np.float32)},
    ],
)
def test_what_does_not_fit_an_input_is_our_error(faces: Network, feeds: dict[str, np.ndarray]):
    with pytest.raises(InferenceError, match="The network retinaface-mnet025 wants"):
        faces.run(feeds)


def test_a_failure_inside_the_runtime_is_our_error(faces: Network):
    with pytest.raises(InferenceError, match="The network retinaface-mnet025 failed"):
        faces.run({"input": np.zeros((1, 3, 0, 0), np.float32)})


def test_arrays_that_do_not_lie_in_one_piece_are_read_right(faces: Network):
    rng = np.random.default_rng(0)
    picture = rng.random((64, 96, 3), np.float32)
    view = picture.transpose(2, 0, 1)[None]
    assert not view.flags.c_contiguous
    for mine, theirs in zip(faces.run({"input": view}), faces.run({"input": view.copy()}), strict=True):
        assert np.array_equal(mine, theirs)


def test_several_threads_may_run_one_network(faces: Network):
    rng = np.random.default_rng(1)
    pictures = [rng.random((1, 3, 64, 64), np.float32) for _ in range(8)]
    alone = [faces.run({"input": picture})[0] for picture in pictures]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda picture: faces.run({"input": picture})[0], pictures))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


def test_a_network_that_is_open_is_shared(catalog: Catalog, runtime: Runtime, faces: Network):
    assert runtime.open(catalog.default("faces")) is faces
    with pytest.raises(ModelError, match="has no file “x”"):
        runtime.open(catalog.default("faces"), "x")


# --- sentences -------------------------------------------------------------------------------------------------------


def test_sentences_that_mean_the_same_lie_close(embedder: TextEmbedder):
    texts = [
        "A man pours coffee into a cup in the kitchen.",
        "Someone is making himself a hot drink.",
        "The motorcycle stands in the garage.",
        "Where did I leave my keys?",
        "Her keys are on the table beside the door.",
    ]
    vectors = embedder.embed(texts)
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -1)
    assert likeness[0].argmax() == 1
    assert likeness[3].argmax() == 4
    assert embedder.embed([]).shape == (0, 384)


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: TextEmbedder):
    words = [
        "the",
        "man",
        "drinks",
        "coffee",
        "at",
        "a",
        "table",
        "while",
        "his",
        "cat",
        "sleeps",
        "on",
        "red",
        "chairs",
    ]
    pick = random.Random(5)
    texts = [" ".join(pick.choices(words, k=pick.randint(1, 24))) for _ in range(70)]
    together = embedder.embed(texts)
    alone = np.concatenate([embedder.embed([text]) for text in texts])
    assert np.array_equal(together, alone)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\t", "😀" * 50, "x" * 100_000, "a b " * 50_000, "\ud800", "\x00", "喝咖啡", "𝕏" * 9, "e\u0301" * 3000],
)
def test_odd_texts_have_a_unit_vector(embedder: TextEmbedder, text: str):
    vector = embedder.embed([text, "a cup"])[0]
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_has_a_unit_vector(embedder: TextEmbedder, text: str):
    assert np.linalg.norm(embedder.embed([text])[0]) == pytest.approx(1, abs=1e-5)


def test_only_the_first_tokens_of_a_long_text_count(embedder: TextEmbedder):
    long = "coffee " * 400
    one, other, short = embedder.embed([long + "keys", long + "motorcycle", "coffee " * 126])
    assert np.array_equal(one, other)
    assert np.array_equal(one, short)


def test_the_key_names_model_and_weights(embedder: TextEmbedder):
    assert embedder.key == "minilm-l6-v2-int8@8199be6f"


def test_a_network_that_gives_no_direction_is_an_error(embedder: TextEmbedder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Network, "run", lambda self, feeds: [np.zeros((1, 5, 384), np.float32)])
    with pytest.raises(InferenceError, match="without a direction"):
        embedder.embed(["a cup"])


@pytest.mark.slow
def test_memory_stays_flat_over_inputs_of_many_shapes(catalog: Catalog, runtime: Runtime):
    import psutil

    network = runtime.open(catalog.default("faces"))
    process = psutil.Process()

    def run() -> int:
        for height in range(160, 641, 32):
            network.run({"input": np.zeros((1, 3, height, 640), np.float32)})
        release_memory()
        return process.memory_info().rss

    before = run()
    assert [round((run() - before) / 1e6) for _ in range(4)] == pytest.approx([0] * 4, abs=5)  # MB
