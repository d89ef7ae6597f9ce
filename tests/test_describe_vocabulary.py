"""The words for classes: what the describer writes, recall finds again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.infer import Catalog
from edge.settings import InferSettings
from edge.types.vocabulary import COCO_LABELS, counted, everyday, labels_for, number, plural


def test_the_classes_are_those_of_the_catalogue() -> None:
    assert Catalog.load(InferSettings()).labels["coco80"] == COCO_LABELS


@pytest.mark.parametrize("label", COCO_LABELS)
def test_every_word_that_is_written_leads_back_to_its_class(label: str) -> None:
    for word in (label, everyday(label), plural(label), everyday(label).upper()):
        assert label in labels_for(word)


@pytest.mark.parametrize(
    ("word", "labels"),
    [
        ("couch", ("couch",)),
        ("Sofas", ("couch",)),
        ("phone", ("cell phone",)),
        ("mobile  phones", ("cell phone",)),
        ("bike", ("bicycle",)),
        ("people", ("person",)),
        ("women", ("person",)),
        ("knives", ("knife",)),
        ("pets", ("cat", "dog")),
        ("fruit", ("banana", "apple", "orange")),
        ("glasses", ()),
        ("wine glasses", ("wine glass",)),
        ("mice", ("mouse",)),
        ("justice", ()),
        ("", ()),
    ],
)
def test_what_people_ask_with(word: str, labels: tuple[str, ...]) -> None:
    assert labels_for(word) == labels


@pytest.mark.parametrize(
    ("label", "count", "text"),
    [
        ("cup", 1, "a cup"),
        ("cup", 2, "two cups"),
        ("umbrella", 1, "an umbrella"),
        ("unicycle", 1, "a unicycle"),
        ("person", 12, "twelve people"),
        ("person", 13, "13 people"),
        ("scissors", 1, "a pair of scissors"),
        ("skis", 2, "two pairs of skis"),
        ("broccoli", 1, "some broccoli"),
        ("sheep", 3, "three sheep"),
        ("knife", 2, "two knives"),
        ("bus", 4, "four buses"),
        ("tv", 1, "a television"),
        ("mouse", 2, "two computer mice"),
        ("fox", 2, "two foxes"),
        ("berry", 2, "two berries"),
    ],
)
def test_counting(label: str, count: int, text: str) -> None:
    assert counted(label, count) == text


@given(st.text(max_size=30), st.integers(-5, 10**6))
def test_any_label_and_number_have_words(label: str, count: int) -> None:
    assert counted(label, count)
    assert number(count)
    assert isinstance(labels_for(label), tuple)
