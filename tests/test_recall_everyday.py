"""What people ask in passing: greetings, summaries, lists, the first and the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.memory import Store
from edge.recall import Recall
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource
from tests.recall_data import BERLIN, BagEmbedder, Script, moment, said, seen

DAY = "2025-01-07T"


@pytest.fixture
def recall(home: Path) -> Recall:
    embedder = BagEmbedder()
    with Store.open(home) as store:
        script = Script(store, embedder)
        at = [moment(f"{DAY}{hour:02d}:00:00") for hour in range(9, 16)]
        script.trace(at[0], ["A dog runs in."], observations=[seen("dog", at[0], at[0] + 5, "A dog runs in.", "a1")])
        ids = script.trace(
            at[1], ["Ruth came in."], entities=[NewEntity(-1, EntityKind.PERSON, name="Ruth", name_source=NameSource.SELF)],
            observations=[seen("person", at[1], at[1] + 5, "Ruth came in.", "a1", -1)],
        )  # fmt: skip
        assert ids
        script.trace(at[2], ["A view with nothing recognised."])
        cups = [seen("cup", at[3], at[3] + 5, "A cup stands there.", f"a{i}") for i in (1, 2)]
        script.trace(at[3], ["Two cups stand there."], observations=cups, utterances=[said(at[3], "Where is my tea?")])
        for hour in at[4:]:
            script.trace(hour, ["A view with nothing recognised."])
    return Recall(Store.open(home, readonly=True), embedder, zone=BERLIN, now=lambda: moment(f"{DAY}20:00:00"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hello", "Hello."), ("Hi there!", "Hello."), ("thank you so much", "You are welcome."), ("Goodbye.", "Goodbye."),
        ("What can you do?", "Ask me"), ("Who are you?", "I am the memory"),
    ],
)  # fmt: skip
def test_courtesy_is_returned_and_cites_nothing(recall: Recall, text: str, said: str) -> None:
    answer = recall.ask(text)
    assert answer.text.startswith(said)
    assert not answer.found
    assert not answer.cited
    assert not answer.notes


@pytest.mark.parametrize("text", ["Who said hello?", "Hello, where is the dog?", "Did somebody say thank you?"])
def test_a_question_with_a_greeting_in_it_is_a_question(recall: Recall, text: str) -> None:
    assert "Ask me" not in recall.ask(text).text


@pytest.mark.parametrize(
    "text",
    ["Summarise the day.", "Give me a summary of today", "Recap my day", "How was my day?", "What happened today?"],
)
def test_a_day_is_told_without_the_moments_that_tell_nothing(recall: Recall, text: str) -> None:
    answer = recall.ask(text)
    assert answer.found
    assert "dog" in answer.text
    assert "nothing recognised" not in answer.text


def test_the_first_and_the_latest_are_told_as_asked(recall: Recall) -> None:
    first = recall.ask("What did you see first?").text
    assert first.index("dog") < first.index("Ruth") < first.index("cups")
    assert "nothing recognised" not in recall.ask("What happened?").text


def test_things_are_listed_with_how_many_there_were_at_one_time(recall: Recall) -> None:
    for text in ("List the objects you saw.", "What things did you see today?"):
        answer = recall.ask(text)
        assert answer.found
        assert "two cups" in answer.text.lower()
        assert "a dog" in answer.text.lower()
        assert "person" not in answer.text
    assert not recall.ask("List the objects you saw.", moment(f"{DAY}08:00:00")).found
    nothing = recall.ask("Which objects did you see between 14:00 and 15:30?")
    assert not nothing.found
    assert "no things" in nothing.text


def test_everybody_is_listed_and_somebody_is_found(recall: Recall) -> None:
    assert "Ruth" in recall.ask("List everybody I met.").text
    last = recall.ask("When did you last see a person?")
    assert last.found
    assert "10:00" in last.text


def test_what_is_found_and_not_counted_says_so(recall: Recall) -> None:
    answer = recall.ask("How often was there talk of tea?")
    assert answer.found
    assert answer.text.startswith("I cannot count that.")
    assert "tea" in answer.text
