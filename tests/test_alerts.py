"""Everyday rules over a week: nothing repeats inside its cool-down, and every alert has a true ground in what was told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from edge.notify import understand
from edge.notify.program import Alert
from edge.notify.signals import Scene, Text, match
from tools.bench import alerts

SHARED = Path(os.environ.get("REFLECTWORLD_SHARED", Path(__file__).parents[2] / "shared"))
PHONE, DOG, CAT, SOMEBODY, ANNA, KNIFE, CUP = (
    "tell me when the phone is on the table",
    "tell me when the dog is on the sofa",
    "tell me when the cat is on the sofa",
    "tell me when somebody is in the kitchen",
    "tell me when Anna is in the kitchen",
    "tell me when there is a knife",
    "tell me when I am holding a cup",
)
LEAVES = "tell me when Anna leaves"


def met(rule: str, line: str) -> bool:
    program = understand(rule, 1.7e9)
    assert isinstance(program, Alert)
    told = Text(line, line)
    return match(program.condition, Scene(1, "t1", "hall", ((0.0, told),), (), (), {1: "Anna", 2: "Ben"})) is not None


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (PHONE, "I took the phone, and put it on the table."),
        (PHONE, "I put the phone and the cup on the table."),
        (PHONE, "The phone, a cup and a spoon were on the table."),
        (PHONE, "I put my phone on the round wooden table."),
        (DOG, "The dog ran in and jumped on the sofa."),
        (DOG, "The cat and the dog were on the sofa."),
        (CAT, "The cat and the dog were on the sofa."),
        (SOMEBODY, "I turned left, walked forward, and walked into the kitchen."),
        (SOMEBODY, "They are all cooking in the kitchen."),
        (ANNA, "Anna and Ben were in the kitchen."),
        (KNIFE, "I took the knife."),
        (CUP, "I picked up the cup."),
        (LEAVES, "Anna stood up and left."),
    ],
)
def test_what_a_sentence_tells_is_seen(rule: str, line: str) -> None:
    assert met(rule, line)


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        (PHONE, "I looked at the phone while Ben sat on the table."),
        (PHONE, "I took the phone and Ben sat on the table."),
        (PHONE, "I need to put the phone on the table."),
        (PHONE, "There is no phone on the table."),
        (DOG, "The dog barked and Anna sat on the sofa."),
        (SOMEBODY, "I want to go into the kitchen."),
        (SOMEBODY, "Nobody was in the kitchen."),
        (ANNA, "Anna talked while Ben was in the kitchen."),
        (ANNA, "I asked about Anna in the kitchen."),
        (KNIFE, "I looked for a knife."),
        (KNIFE, "We talked about whether the kitchen knife is sharp."),
        (KNIFE, "I want a knife."),
        (CUP, "I watched and Ben took a cup."),
        (LEAVES, "I glanced to Anna's left."),
        (LEAVES, "Anna turned left."),
        (LEAVES, "Ben was on the left of Anna, on the left side."),
    ],
)
def test_what_is_somebody_elses_sought_supposed_or_denied_is_not(rule: str, line: str) -> None:
    assert not met(rule, line)


def test_a_week_makes_no_noise(tmp_path: Path) -> None:
    """One of a generated life; the reading of the captions is not the matcher's."""
    result = alerts.run(tmp_path / "home", alerts.generated(every_s=7200))
    assert result.repeated == 0
    assert {row.text: row.false for row in result.rows if row.false} == {}
    assert {row.text: row.missed for row in result.rows if row.missed} == {}
    told = {row.text: len(row.sent) for row in result.rows}
    assert all(told.values()), told
    assert told["If nobody was in the kitchen by 10, tell me"] >= 1
    assert told["Remind me to give her the keys when I see Lucia"] == 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_week_of_a_real_life_makes_no_noise(tmp_path: Path) -> None:
    week = alerts.egolife(SHARED, tmp_path)
    if not week:
        pytest.skip("there is no EgoLife beside the checkout")
    result = alerts.run(tmp_path / "home", week)
    assert result.repeated == 0
    assert {row.text: row.false for row in result.rows if row.false} == {}
    assert sum(len(row.sent) for row in result.rows) > 50
