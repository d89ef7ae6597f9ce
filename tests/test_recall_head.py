"""The question in an input, and the reflex head on it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.app import build_head, build_text_embedder
from edge.errors import ModelError
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.infer.catalog import bundle_dir
from edge.memory import Store
from edge.recall import Head, Recall, find_question
from edge.recall.question.context import read_context
from edge.recall.question.head import Context, best_span
from edge.settings import InferSettings, RecallSettings
from tests.recall_data import BERLIN, NOW, moment, tell

QUESTION = "Where did I put the red umbrella?"
BEFORE = (
    "This package reads configuration files and merges them with the values of the environment. "
    "It has no dependencies, and it is tested on all supported versions of the interpreter."
)
AFTER = "Shall we order pizza tonight? I am so tired. Could you pass me the water, please? No, the other bottle."


@pytest.fixture(scope="module")
def embedder() -> TextEmbedder:
    catalog = Catalog.load(InferSettings())
    if not catalog.default("text-embedding").present:
        pytest.skip("the text-embedding model is not on this device")
    return build_text_embedder(catalog, Runtime(InferSettings()))


@pytest.fixture(scope="module")
def head(embedder: TextEmbedder) -> Head:
    return build_head(Catalog.load(InferSettings()), embedder)


def nothing(embedder: TextEmbedder) -> Context:
    zeros = np.zeros(embedder.dimensions, np.float32)
    return Context(zeros, zeros)


# -- states of tokens -----------------------------------------------------------------------------------------------------


def test_the_states_of_tokens_give_the_vector_of_the_text_and_lie_where_its_words_are(embedder: TextEmbedder) -> None:
    read = embedder.token_states(QUESTION)
    assert read.states.shape == (len(read.spans), embedder.dimensions)
    assert read.vector is not None
    assert np.array_equal(read.vector, embedder.embed([QUESTION])[0])
    assert [QUESTION[start:end].lower() for start, end in read.spans][:4] == ["where", "did", "i", "put"]


def test_a_text_of_any_length_is_read_in_windows(embedder: TextEmbedder) -> None:
    text = " ".join(f"The cup number {place} stands on the table." for place in range(60))
    read = embedder.token_states(text)
    assert len(read.spans) > 3 * embedder.max_tokens
    assert read.vector is None
    assert (np.abs(read.states).sum(axis=1) > 0).all()
    assert read.spans[-1][1] == len(text)
    assert embedder.token_states("").states.shape == (0, embedder.dimensions)


# -- the best span --------------------------------------------------------------------------------------------------------


scores = st.lists(st.tuples(*[st.floats(-8, 8)] * 3), min_size=1, max_size=9)


@given(scores)
@settings(max_examples=200, deadline=None)
def test_the_best_span_is_the_best_of_all_and_probabilities_add_up(rows: list[tuple[float, float, float]]) -> None:
    inside, start, end = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    n = len(rows)
    every = {(i, j): float(inside[i : j + 1].sum() + start[i] + end[j]) for i in range(n) for j in range(i, n)}
    total = 1.0 + sum(np.exp(value) for value in every.values())
    first, last, best, whole, none = best_span(inside, start, end)
    assert every[first, last] == pytest.approx(max(every.values()), abs=1e-3)
    assert best == pytest.approx(np.exp(every[first, last]) / total, abs=1e-4)
    assert whole == pytest.approx(np.exp(every[0, n - 1]) / total, abs=1e-4)
    assert none == pytest.approx(1.0 / total, abs=1e-4)


# -- finding --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [(BEFORE, ""), ("", BEFORE), (AFTER, ""), ("", AFTER), (BEFORE, AFTER), (AFTER, BEFORE)]
)
def test_the_head_finds_the_question_among_other_text(head: Head, left: str, right: str, lower: bool) -> None:
    text, question = f"{left} {QUESTION} {right}".strip(), QUESTION
    if lower:
        text, question = ("".join(c for c in one.lower() if c not in ".,?") for one in (text, question))
    heard = find_question(text, head)
    assert heard.cut
    assert heard.asks
    assert set(question.split()) <= set(heard.text.split())
    assert len(heard.text.split()) <= len(question.split()) + 2


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        "Hey, could you please tell me when Anna came back from the market yesterday?",
        "While we were cooking the soup in the evening, who opened the window in the hall?",
        "cup on the table in the kitchen",
        "What did Mohan say about the broken heating before the plumber left on Tuesday?",
    ],
)
def test_a_question_that_stands_alone_is_left_as_it_is(head: Head, question: str) -> None:
    for finder in (head, None):
        assert find_question(f"  {question} ", finder).text == question
        assert not find_question(question, finder).cut


def test_rules_find_a_question_when_there_is_no_head() -> None:
    long = f"{BEFORE} {BEFORE} {QUESTION} Thank you very much."
    assert find_question(long).text == QUESTION
    bare = find_question(f"{BEFORE} {BEFORE}".replace(".", "") + " where did I put it")
    assert bare.text == "where did I put it"
    assert not find_question(BEFORE).asks
    assert find_question(BEFORE).text == BEFORE


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_any_input_gives_a_piece_of_it(text: str) -> None:
    heard = find_question(text)
    assert heard.text in " ".join(text.split())


def test_any_input_gives_a_piece_of_it_with_the_head(head: Head) -> None:
    for text in (
        "",
        "?",
        "🦊 🦊",
        "Where " * 700,
        "\ud800 what",
        "a\u0000b " * 20,
        "我的钥匙在哪里 " * 30,
        "...---..." * 50,
    ):
        heard = find_question(text, head)
        assert heard.text in " ".join(text.split())


# -- judging and moving ---------------------------------------------------------------------------------------------------


def test_talk_is_told_from_questions_to_the_memory(head: Head, embedder: TextEmbedder) -> None:
    asks = ("Where did I leave my keys?", "What did Anna say about the train?", "who repaired the motorcycle yesterday",
            "When did I last see the scissors?", "Did Ben water the plants this morning?")  # fmt: skip
    talk = ("Do you want some more tea?", "Pass me the salt, please.", "haha yeah i know what you mean",
            "I am so tired, let's go home.", "What are you doing?", "That was a lovely film.")  # fmt: skip
    for text in asks:
        act = head.act(text, nothing(embedder))
        assert min(act.speak, act.search) > 0.5, text
    for text in talk:
        act = head.act(text, nothing(embedder))
        assert max(act.speak, act.search) < 0.5, text


def test_a_moved_vector_is_a_unit_vector_near_the_question(head: Head, embedder: TextEmbedder) -> None:
    vector = embedder.embed([QUESTION])[0]
    moved = head.moved(vector, nothing(embedder))
    assert np.linalg.norm(moved) == pytest.approx(1.0, abs=1e-5)
    assert 0.5 < float(moved @ vector) < 0.9999


def test_a_head_made_for_another_embedder_says_so(embedder: TextEmbedder, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    catalog = (bundle_dir() / "catalog.toml").read_text(encoding="utf-8")
    (bundle / "catalog.toml").write_text(
        catalog.replace(f'embedder = "{embedder.key}"', 'embedder = "other@1"'), "utf-8"
    )
    shutil.copy(bundle_dir() / "reflex_head.npz", bundle)
    with pytest.raises(ModelError, match="was made for the text-embedding model other@1"):
        build_head(Catalog.load(InferSettings(), bundle=bundle), embedder)
    (bundle / "catalog.toml").write_text(catalog, "utf-8")
    (bundle / "reflex_head.npz").unlink()
    with pytest.raises(ModelError, match="Install the package"):
        build_head(Catalog.load(InferSettings(), bundle=bundle), embedder)


# -- in the memory --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(embedder: TextEmbedder, tmp_path_factory: pytest.TempPathFactory):
    with Store.open(tmp_path_factory.mktemp("memory")) as store:
        tell(store, embedder)
        yield store


def test_an_answer_says_what_was_understood_when_text_was_left_out(
    store: Store, embedder: TextEmbedder, head: Head
) -> None:
    recall = Recall(store, embedder, head=head, now=lambda: NOW, zone=BERLIN)
    plain = recall.ask("Where did I last see a cup?")
    noisy = recall.ask(f"{BEFORE} Where did I last see a cup? {AFTER}")
    assert plain.understood is None
    assert noisy.understood == "Where did I last see a cup?"
    assert (noisy.text, noisy.cited) == (plain.text, plain.cited)
    whole = Recall(store, embedder, RecallSettings(head="off"), head=head, now=lambda: NOW, zone=BERLIN)
    assert whole.ask(f"{BEFORE} Where did I last see a cup? {AFTER}").understood is None


def test_talk_that_was_overheard_is_not_answered(store: Store, embedder: TextEmbedder, head: Head) -> None:
    recall = Recall(store, embedder, head=head, now=lambda: NOW, zone=BERLIN)
    assert recall.ask("Do you want some more tea?", overheard=True).silent
    assert not recall.ask("Do you want some more tea?").silent
    asked = recall.ask("where did I last see a cup", overheard=True)
    assert asked.found
    assert not asked.silent
    without = Recall(store, embedder, now=lambda: NOW, zone=BERLIN)
    assert not without.ask("Do you want some more tea?", overheard=True).silent


def test_the_context_holds_nothing_that_ended_later(store: Store, embedder: TextEmbedder) -> None:
    with store.reading() as connection:
        before = read_context(connection, store.user, embedder.key, embedder.dimensions, moment("2024-01-01T00:00:00"))
    assert not before.frontier.any()
    assert not before.now.any()
