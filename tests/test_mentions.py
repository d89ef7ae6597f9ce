"""Mentions of people in stored texts: written, read, and following who it turned out to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.types.records import anchored, attributed, mention, mentioned, render, renumbered

WHO = {3: "Ann", 4: "Bob", 7: "Cleo"}
ANCHORS = st.sampled_from(["a1", "a2", "a3", "v1", "x.y-z_0"])
MENTIONS = st.builds(lambda key, anchors: mention(key, *anchors), st.integers(-9, 99), st.lists(ANCHORS, max_size=3))
TEXTS = st.lists(MENTIONS | st.text(max_size=12), max_size=8).map("".join)


def titled(text: str) -> str:
    return render(text, lambda who: WHO.get(who, f"person {who}"))


def moved(text: str, moves: dict[tuple[int, str | None], int | None]) -> str:
    return attributed(text, lambda who, anchor: moves.get((who, anchor), who))


def test_a_mention_is_read_with_or_without_its_anchors() -> None:
    assert mention(3) == "{{3}}"
    assert mention(3, "a1", "v1", "a1") == "{{3:a1+v1}}"
    assert mention(3, "a b", "{") == "{{3}}"  # what no anchor can be is left out
    assert titled("so {{3}} met {{4:a2}}. {{7:a1+v1}} left.") == "so Ann met Bob. Cleo left."
    assert mentioned("{{4:a2}} {{3}} {{4}}") == (4, 3)
    assert renumbered("{{-1:a1}} and {{5}}", {-1: 8, 5: 5}.__getitem__) == "{{8:a1}} and {{5}}"


def test_anchors_are_put_on_mentions_that_have_none() -> None:
    assert anchored("{{3}}, {{4:a9}} and {{7}}", {3: ["a1", "v1"], 4: ["a2"]}) == "{{3:a1+v1}}, {{4:a9}} and {{7}}"


@pytest.mark.parametrize(
    ("text", "moves", "expected"),
    [
        ("{{3:a1}} sat down.", {(3, "a1"): 7}, "{{7:a1}} sat down."),
        ("{{3}} sat down.", {(3, None): 7}, "{{7}} sat down."),
        ("{{3}} sat down.", {(3, "a1"): 7}, "{{3}} sat down."),
        ("{{3:a1+a2}} sat.", {(3, "a2"): 7}, "{{3:a1}} and {{7:a2}} sat."),
        ("{{3:a1+a2+a3}} sat.", {(3, "a2"): 7}, "{{3:a1+a3}} and {{7:a2}} sat."),
        ("{{3:a1}} and {{4:a2}} sat.", {(4, "a2"): 3}, "{{3:a1+a2}} sat."),
        ("{{3:a1}}, {{4:a2}} and {{7:a3}} sat.", {(4, "a2"): 3}, "{{3:a1+a2}} and {{7:a3}} sat."),
        ("{{3:a1}}, {{4:a2}} and one other person", {(4, "a2"): 3}, "{{3:a1+a2}} and one other person"),
        ("{{3:a1}} met {{4:a2}}", {(4, "a2"): 3}, "{{3:a1}} met {{3:a2}}"),
        ("Then {{3:a1}} left. {{3:a1}} waved.", {(3, "a1"): None}, "Then someone left. Someone waved."),
    ],
)
def test_a_text_follows_who_it_turned_out_to_be(
    text: str, moves: dict[tuple[int, str | None], int | None], expected: str
) -> None:
    assert moved(text, moves) == expected


@given(TEXTS)
def test_what_nobody_corrected_stays_to_the_letter(text: str) -> None:
    assert attributed(text, lambda who, _: who) == text
    assert renumbered(text, lambda who: who) == text


@given(TEXTS, st.dictionaries(st.integers(-9, 99), st.integers(100, 103)))
def test_after_a_correction_only_the_new_ones_are_mentioned(text: str, moves: dict[int, int]) -> None:
    found = mentioned(attributed(text, lambda who, _: moves.get(who, who)))
    assert set(found) == {moves.get(who, who) for who in mentioned(text)}
