"""Pure parts of recall: occasions and ranking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.memory.index import Corpus
from edge.recall.answer.occasions import Seen, occasions
from edge.recall.search.ranking import (
    K1,
    best_first,
    cosines_of_signs,
    length_norm,
    rarity,
    recency,
    saturation,
    standardise,
    with_neighbours,
)


def _corpus(spans: list[tuple[float, float]], cameras: list[int] | None = None) -> Corpus:
    n = len(spans)
    return Corpus(
        np.arange(1, n + 1),
        np.full(n, 10.0, np.float32),
        np.array([a for a, _ in spans], float),
        np.array([b for _, b in spans], float),
        np.array(cameras or [1] * n, np.int32),
        slice(0, n),
    )


def _row(n: int, gap: float = 0.0) -> Corpus:
    return _corpus([(i * (20 + gap), i * (20 + gap) + 20) for i in range(n)])


def _seen(corpus: Corpus, *traces: int) -> list[Seen]:
    return [Seen(t, float(corpus.starts[t - 1]), float(corpus.ends[t - 1])) for t in traces]


def test_neighbouring_segments_are_one_occasion_and_a_segment_without_ends_it() -> None:
    corpus = _row(6)
    found = occasions(_seen(corpus, 1, 2, 4, 5, 6), corpus)
    assert [one.traces for one in found] == [(1, 2), (4, 5, 6)]
    assert (found[1].start, found[1].end) == (60.0, 120.0)


def test_a_gap_in_the_recording_ends_an_occasion() -> None:
    assert len(occasions(_seen(_row(3, gap=29), 1, 2, 3), _row(3, gap=29))) == 1
    assert len(occasions(_seen(_row(3, gap=31), 1, 2, 3), _row(3, gap=31))) == 3


def test_two_cameras_at_the_same_time_are_one_occasion() -> None:
    corpus = _corpus([(0, 20), (10, 30), (100, 120)], [1, 2, 2])
    assert [one.traces for one in occasions(_seen(corpus, 1, 2, 3), corpus)] == [(1, 2), (3,)]


@given(st.sets(st.integers(1, 30)), st.randoms())
def test_occasions_keep_every_sighting_once_whatever_their_order(traces: set[int], random) -> None:
    corpus = _row(30)
    seen = _seen(corpus, *traces)
    random.shuffle(seen)
    found = occasions(seen, corpus)
    assert [trace for one in found for trace in one.traces] == sorted(traces)
    runs = sum(trace - 1 not in traces for trace in traces)
    assert len(found) == runs


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    assert rarity(100, 1) > rarity(100, 50) > rarity(100, 100) > 0


@given(st.floats(0, 50), st.floats(0, 50), st.integers(1, 400))
def test_a_word_counts_more_the_oftener_and_the_shorter_the_text_and_never_without_end(
    one: float, other: float, length: int
) -> None:
    few, many = sorted((one, other))
    short, long = np.array([0.5]), np.array([0.5 + length])
    assert saturation(few, short) <= saturation(many, short) <= K1 + 1
    assert saturation(many, long) <= saturation(many, short)


def test_nothing_visible_has_no_scores() -> None:
    assert not len(length_norm(_corpus([]).lengths, 1.0))
    assert not len(best_first(np.zeros(0), 5))


def test_what_has_no_vector_is_neither_raised_nor_lowered() -> None:
    values = standardise(np.array([1.0, 3.0, np.nan]))
    assert values.tolist() == [-1.0, 1.0, 0.0]
    assert standardise(np.full(3, np.nan)).tolist() == [0.0, 0.0, 0.0]
    assert standardise(np.full(3, 2.0)).tolist() == [0.0, 0.0, 0.0]


def test_the_newer_comes_first_and_equals_keep_that_order() -> None:
    corpus = _row(3)
    prior = recency(corpus.ends, 60.0)
    assert prior[0] < prior[1] < prior[2] == 0.0
    assert best_first(np.zeros(3), 2).tolist() == [2, 1]


def test_signs_that_agree_in_all_or_none_are_the_ends_of_the_cosine() -> None:
    assert cosines_of_signs(384)[[0, 192, 384]] == pytest.approx([1.0, 0.0, -1.0], abs=1e-9)


@given(st.integers(1, 60), st.integers(1, 60), st.randoms())
def test_neighbours_come_behind_the_best_ten_and_nothing_twice(n: int, k: int, random) -> None:
    order = list(range(n))
    random.shuffle(order)
    beside = lambda place, step: place + step if 0 <= place + step < n else None  # noqa: E731
    found = with_neighbours(np.array(order), beside, k).tolist()
    assert found[:10] == order[: min(10, k)]
    assert len(found) == len(set(found)) == min(n, k)
    if n > 10 and k > 10:
        near = {p + s for p in order[:10] for s in (-1, 1) if 0 <= p + s < n} - set(order[:10])
        assert set(found[10 : 10 + len(near)]) <= near


def test_who_leaves_and_comes_back_comes_twice_though_the_segments_follow_each_other() -> None:
    corpus = _corpus([(0, 10), (10, 20)])
    away = [Seen(1, 0.0, 4.0, gone=True), Seen(2, 11.0, 20.0)]
    assert [(one.start, one.end) for one in occasions(away, corpus)] == [(0.0, 4.0), (11.0, 20.0)]
    edge = [Seen(1, 0.0, 9.5, gone=True), Seen(2, 10.0, 20.0)]
    assert [(one.start, one.end) for one in occasions(edge, corpus)] == [(0.0, 20.0)]
    stayed = [Seen(1, 0.0, 4.0), Seen(2, 11.0, 20.0)]
    assert len(occasions(stayed, corpus)) == 1
