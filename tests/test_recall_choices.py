"""One of several given answers is chosen by what was seen and heard, whatever their order."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from edge.memory import Store
from edge.recall import Query, Recall
from tests.recall_data import BERLIN, BagEmbedder, Script, moment

QUESTION = "What did we put on the shelf?"
CHOICES = ("A red lamp", "A violin", "Three saucepans", "A bicycle pump")


@pytest.fixture
def recall(home: Path) -> Recall:
    embedder = BagEmbedder()
    with Store.open(home) as store:
        script = Script(store, embedder)
        for place, line in enumerate(
            (
                "A violin lies in its case.",
                "We put three saucepans on the shelf in the kitchen.",
                "Somebody looks for a pump in the cellar.",
                "The saucepans are back.",
                "A cat sleeps on the sofa.",
            )
        ):
            script.trace(moment("2025-01-07T10:00:00") + 600 * place, [line])
    return Recall(Store.open(home, readonly=True), embedder, zone=BERLIN)


def _query(choices: dict[str, str], question: str = QUESTION, at: str = "2025-01-08T10:00:00") -> Query:
    return Query("1", moment(at), BERLIN, question, choices)


def test_what_was_seen_is_chosen_in_any_order(recall: Recall) -> None:
    alone = Recall(recall.store, None, zone=BERLIN)
    for order in permutations(CHOICES):
        chosen = alone.rank(_query(dict(zip("ABCD", order, strict=True))), 10).choice
        assert chosen == "ABCD"[order.index("Three saucepans")]


def test_with_vectors_the_order_says_nothing_either(recall: Recall) -> None:
    chosen = set()
    for order in permutations(CHOICES):
        letter = recall.rank(_query(dict(zip("ABCD", order, strict=True))), 10).choice
        assert letter is not None
        chosen.add(order["ABCD".index(letter)])
    assert len(chosen) == 1
    assert "A red lamp" not in chosen


def test_nothing_is_chosen_from_before_anything_was_seen(recall: Recall) -> None:
    choices = dict(zip("ABCD", CHOICES, strict=True))
    assert recall.rank(_query(choices, at="2025-01-06T10:00:00"), 10).choice is None
    assert recall.rank(_query({}), 10).choice is None
    assert recall.rank(_query({"A": " "}), 10).choice is None


def test_the_ranking_knows_the_choices_only_where_it_is_asked_to(recall: Recall) -> None:
    choices = {"A": "the cellar", "B": "the garage"}
    plain = recall.rank(_query({}, "Where is it?"), 5)
    chosen = recall.rank(_query(choices, "Where is it?"), 5)
    assert chosen.rows == plain.rows
    assert chosen.choice == "A"
    by_choices = recall.rank(_query(choices, "Where is it?"), 5, by_choices=True)
    assert "cellar" in by_choices.rows[0][5]
