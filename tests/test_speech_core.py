"""The pure cores of speech: pieces, times of sentences, which words are kept, clustering, mel spectra, normalised text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.perceive.speech.diarise import TRUSTED, cluster, quietest
from edge.perceive.speech.melspec import mel_filters, mel_power
from edge.perceive.speech.recognise import level, to_words
from edge.perceive.speech.turns import (
    NOBODY,
    Piece,
    Unit,
    merge_turns,
    pieces,
    place_sentences,
    split_sentences,
    widen,
)
from edge.perceive.speech.words import Hypothesis, Verdict, Word, clarity, confidence, judge, mean_logprob, without_loop
from tools.bench.speech_text import normalise

SURE, GUESS = -0.05, -1.2


def said(text: str, logprob: float = SURE, *, ended: bool = True) -> Hypothesis:
    return Hypothesis(tuple(Word(word, logprob, 1) for word in text.split()), ended)


@st.composite
def _units(draw: st.DrawFn) -> tuple[Unit, ...]:
    at, units = draw(st.integers(0, 5000)), []
    for _ in range(draw(st.integers(1, 12))):
        end = at + draw(st.integers(1, 60_000))
        units.append(Unit(at, end, draw(st.integers(-1, 2))))
        at = end + draw(st.integers(0, 40_000))
    return tuple(units)


# --- pieces and turns ------------------------------------------------------------------------------------------------


@given(_units(), st.integers(0, 30_000), st.integers(1_000, 100_000))
def test_pieces_hold_all_speech_of_one_speaker_within_the_limit(units: tuple[Unit, ...], join: int, longest: int):
    found = pieces(units, join, longest)
    assert sum(u.end - u.begin for p in found for u in p.units) == sum(u.end - u.begin for u in units)
    for piece in found:
        assert len({unit.speaker for unit in piece.units}) == 1
        assert 0 < piece.end - piece.begin <= longest
        assert all(0 <= two.begin - one.end < max(join, 1) for one, two in pairwise(piece.units))
    assert all(one.end <= two.begin for one, two in pairwise(found))


def test_a_change_of_voice_and_a_long_pause_part_pieces():
    units = [Unit(0, 10, 0), Unit(12, 20, 0), Unit(20, 30, 1), Unit(30, 40, 0), Unit(90, 99, 0)]
    assert pieces(units, join=15, longest=1000) == (
        Piece((units[0], units[1])),
        Piece((units[2],)),
        Piece((units[3],)),
        Piece((units[4],)),
    )


@given(_units(), st.integers(0, 30_000))
def test_turns_cover_the_units_and_never_mix_voices(units: tuple[Unit, ...], fill: int):
    turns = merge_turns(units, fill)
    assert all(one.end <= two.begin for one, two in pairwise(turns))
    for unit in units:
        assert [t.speaker for t in turns if t.begin <= unit.begin and unit.end <= t.end] == [unit.speaker]
    for one, two in pairwise(turns):
        assert one.speaker != two.speaker or two.begin - one.end > fill


@given(
    st.lists(st.tuples(st.integers(-2000, 90_000), st.integers(-2000, 90_000)), max_size=12),
    st.integers(0, 8_000),
    st.integers(1, 80_000),
)
def test_widened_bursts_stay_apart_and_inside(raw: list[tuple[int, int]], by: int, length: int):
    bursts = [(min(pair), max(pair)) for pair in raw]
    wide = widen(bursts, by, length)
    assert all(0 <= begin < end <= length for begin, end in wide)
    assert all(one[1] <= two[0] for one, two in pairwise(wide))
    for begin, end in bursts:
        if 0 <= begin < end <= length:
            assert any(a <= begin and end <= b for a, b in wide)


# --- sentences -------------------------------------------------------------------------------------------------------


def test_sentences_end_at_stops_but_not_at_titles_and_initials():
    words = said("Mr. Hale met J. Smith. Did he? “Yes.” And then").words
    texts = [" ".join(word.text for word in sentence) for sentence in split_sentences(words)]
    assert texts == ["Mr. Hale met J. Smith.", "Did he?", "“Yes.”", "And then"]


@given(
    _units(),
    st.lists(st.lists(st.text("abcdefg", min_size=1, max_size=9), min_size=1, max_size=8), max_size=9),
    st.integers(0, 40_000),
)
def test_sentences_keep_all_words_and_rise_inside_the_piece(units: tuple[Unit, ...], texts: list[list[str]], snap: int):
    sentences = [tuple(Word(text, SURE, 1) for text in sentence) for sentence in texts]
    placed = place_sentences(sentences, units, snap)
    assert [w for one in placed for w in one.words] == [w for sentence in sentences for w in sentence]
    assert all(units[0].begin <= one.begin < one.end <= units[-1].end for one in placed)
    assert all(one.end <= two.begin for one, two in pairwise(placed))


def test_a_sentence_ends_at_the_pause_near_its_share_of_time():
    units = [Unit(1000, 2000, 0), Unit(5000, 6200, 0)]
    first, second = split_sentences(said("aaaaa bbbbb. ccccc ddddd.").words)
    placed = place_sentences([first, second], units, snap=300)
    assert [(one.begin, one.end) for one in placed] == [(1000, 2000), (5000, 6200)]


# --- words -----------------------------------------------------------------------------------------------------------


def test_sure_words_are_kept():
    judgement = judge(said("My name is Alice."), 1.5)
    assert (judgement.verdict, judgement.refused) == (Verdict.KEPT, 0)
    assert confidence(judgement.words) == pytest.approx(np.exp(SURE))


@pytest.mark.parametrize("text", ["You", "10.", "♪♪ ♪", "...", ""])
def test_what_is_said_to_silence_is_nothing(text: str):
    judgement = judge(said(text), 1.0)
    assert (judgement.verdict, judgement.words) == (Verdict.NOTHING, ())


def test_guessed_sentences_are_another_language_and_brief_guesses_unclear():
    guessed = judge(said("Putin Morgan the greatest in the poet", GUESS), 4.0)
    assert (guessed.verdict, guessed.words, guessed.refused) == (Verdict.FOREIGN, (), 7)
    assert judge(said("Yeah what", GUESS), 0.6).verdict is Verdict.UNCLEAR


def test_being_sure_of_a_repetition_is_no_clarity():
    first = said("the first one is", GUESS).words
    again = said("the first one is the first one is the first", SURE).words
    assert clarity([*first, *again]) == pytest.approx((4 * GUESS + SURE) / 5)  # "is the" is new, the rest is not
    assert judge(Hypothesis((*first, *again), ended=True), 4.0).verdict is Verdict.FOREIGN


def test_one_word_for_a_long_sound_is_nothing():
    assert judge(said("Okay"), 9.0).verdict is Verdict.NOTHING


def test_a_loop_is_cut_off():
    stuck = said("We met here. I will not. I will not. I will not.", ended=False)
    judgement = judge(stuck, 5.0)
    assert [word.text for word in judgement.words] == ["We", "met", "here."]
    assert judgement.refused == 9
    assert judge(said("you have to " * 5, ended=False), 5.0).verdict is Verdict.FOREIGN
    ended = judge(said("Go on now go on now go on now go on now please"), 5.0)
    assert [word.text for word in ended.words] == ["Go", "on", "now", "please"]
    assert ended.refused == 9


def test_people_may_repeat_themselves():
    for text in ("no no no no no", "Do you hear me? Yes. Do you hear me? Yes.", "it was the best it was the worst"):
        assert judge(said(text), 3.0).refused == 0


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=40), st.booleans())
def test_cutting_loops_keeps_order_and_is_final(texts: list[str], ended: bool):
    hypothesis = Hypothesis(tuple(Word(text, SURE, 1) for text in texts), ended)
    kept = without_loop(hypothesis)
    rest = iter(hypothesis.words)
    assert all(any(word is other for other in rest) for word in kept)  # a subsequence
    assert mean_logprob(kept) == (pytest.approx(SURE) if kept else 0.0)
    if not ended:
        assert without_loop(Hypothesis(kept, ended)) == kept


def test_tokens_become_words_with_their_probabilities():
    tokens = ["▁Al".encode(), b"ice", b",", "▁caf".encode(), b"\xc3", b"\xa9"]
    assert to_words(tokens, [-1.0, -2.0, -0.5, -0.25, -0.25, -0.5]) == (Word("Alice,", -3.5, 3), Word("café", -1.0, 3))


# --- voices ----------------------------------------------------------------------------------------------------------


@given(st.permutations(range(9)), st.integers(0, 2**16))
def test_two_bundles_of_directions_are_two_voices(order: list[int], seed: int):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(64, 2)))[0].T
    truth = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1])[list(order)]
    vectors = basis[truth] + rng.normal(size=(9, 64)) * 0.03
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    lengths = [TRUSTED] * 8 + [TRUSTED // 4]  # the last one may join, never found a voice
    labels = cluster(vectors, lengths, 0.68)
    assert {(t, label) for t, label in zip(truth, labels, strict=True)} == {
        (0, labels[list(truth).index(0)]),
        (1, labels[list(truth).index(1)]),
    }
    assert labels[list(truth).index(0)] != labels[list(truth).index(1)]


def test_a_short_part_that_resembles_nobody_is_nobodys():
    vectors = np.eye(3, dtype=np.float32)[[0, 0, 1]]
    labels = cluster(vectors, [TRUSTED, TRUSTED, TRUSTED // 2], 0.68)
    assert labels[0] == labels[1] != NOBODY
    assert labels[2] == NOBODY


def test_the_quietest_moment_is_found():
    samples = np.ones(16_000, dtype=np.float32)
    samples[9_000:10_000] = 0.0
    assert 9_000 <= quietest(samples, 2_000, 14_000) <= 10_000
    assert quietest(samples, 15_999, 15_999) == 15_999


# --- sound -----------------------------------------------------------------------------------------------------------


def test_a_tone_lies_in_the_mel_band_around_it():
    # Slaney's scale has 15 mels below 1 kHz and 27 between it and 6.4 kHz: 45.245 up to 8 kHz, shared by 41 steps.
    step = (15 + 27 * np.log(8.0) / np.log(6.4)) / 41
    for hertz in (300.0, 900.0):
        t = np.arange(16_000) / 16_000
        mels = mel_power(np.sin(2 * np.pi * hertz * t).astype(np.float32))
        assert mels.shape == (101, 40)
        assert abs(int(mels[50].argmax()) + 1 - hertz / (200 / 3) / step) <= 1
    area = mel_filters().sum(axis=0) * 40.0  # Hz a bin
    assert np.allclose(area[25:], 1.0, atol=0.1)


@given(st.integers(0, 900))
def test_mel_spectra_have_a_frame_every_hop(count: int):
    assert mel_power(np.zeros(count, dtype=np.float32)).shape == (1 + count // 160, 40)


def test_loudness_and_offset_do_not_reach_the_recogniser():
    samples = np.sin(np.arange(4000) / 9).astype(np.float32)
    for other in (samples * 1e-3, samples * 40 + 3):
        assert np.allclose(level(other), level(samples), atol=1e-3)
    assert not level(np.full(10, 0.3, dtype=np.float32)).any()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Chapter I, Mrs. Lynde’s well-dressed", "chapter one missus lyndes well dressed"),
        ("Bin blue at F2 now.", "bin blue at f two now"),
        ("1,998 of 21%", "one thousand nine hundred ninety eight of twenty one percent"),
        ("100 and 0", "one hundred and zero"),
    ],
)
def test_texts_are_made_comparable(text: str, expected: str):
    assert normalise(text) == expected
