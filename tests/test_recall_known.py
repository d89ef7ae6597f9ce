"""Questions about what is known of people and things, answered from facts with what they rest on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from edge.memory import Store
from edge.recall import Recall
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.facts_support import BEGIN, DAY_S, derive
from tests.recall_data import BERLIN, Script, said, seen

HOUR_S = 3600.0
NAMES = ["Anna", "Tom", "Zoe"]
NOW = BEGIN + 30 * DAY_S

WORDS = [
    (1, "I work at the mill."),
    (1, "My sister is called Lena."),
    (1, "I like jazz and hate spinach."),
    (1, "I'm allergic to nuts."),
    (1, "My favourite colour is green."),
    (2, "I'm a carpenter."),
    (2, "I live in Bonn."),
    (2, "I love jazz."),
    (2, "I speak Dutch."),
    (1, "I work at the bakery now."),
    (2, "My birthday is on the third of May."),
]


@pytest.fixture(scope="module")
def recall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recall]:
    with Store.open(tmp_path_factory.mktemp("known") / "home") as store:
        script = Script(store)
        names = [NewEntity(-who, EntityKind.PERSON, name, NameSource.USER) for who, name in enumerate(NAMES, 1)]
        seen_at(script, BEGIN + 8 * HOUR_S, (-1, -2, -3), names)
        for day in range(1, 20):
            seen_at(script, BEGIN + day * DAY_S + 8 * HOUR_S, (1, 2))
        for day, (who, words) in enumerate(WORDS):
            at = BEGIN + day * DAY_S + 12 * HOUR_S
            script.trace(at, ["Talk."], camera="kitchen", utterances=[said(at, words, who)])
        seen_at(script, BEGIN + 25 * DAY_S + 8 * HOUR_S, (3,))
        derive(store)
        yield Recall(store, now=lambda: NOW, zone=BERLIN)


def seen_at(script: Script, at: float, who: tuple[int, ...], entities: list[NewEntity] | None = None) -> None:
    there = [seen("person", at, at + 9, f"{mention(one)} sat.", f"a{place}", one) for place, one in enumerate(who)]
    cup = seen("cup", at, at + 9, "A cup was on a shelf, in the middle of the view.", "a9")
    script.trace(at, ["Somebody sat."], camera="hall", entities=entities or [], observations=[*there, cup])


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where does Anna work?", "Anna works at the bakery (said on 10 January 2025 at 13:00)"),
        ("Where did Anna work before?", "Anna works at the mill: from 1 January"),
        ("Where does Tom live?", "Tom lives in Bonn"),
        ("What does Tom do for a living?", "Tom is a carpenter"),
        ("What does Tom do?", "Tom is a carpenter"),
        ("What does Anna like?", "Anna likes jazz"),
        ("What does Anna hate?", "Anna dislikes spinach"),
        ("Does Anna like jazz?", "Yes. Anna likes jazz"),
        ("Does Anna like spinach?", "No. Anna dislikes spinach"),
        ("Is Anna allergic to nuts?", "Yes. Anna is allergic to nuts"),
        ("What is Anna allergic to?", "Anna is allergic to nuts"),
        ("What is Anna's favourite colour?", "Anna has green as favourite colour"),
        ("Who is Anna's sister?", "Anna has a sister called Lena"),
        ("What is the name of Anna's sister?", "Anna has a sister called Lena"),
        ("When is Tom's birthday?", "Tom has a birthday on the third of May"),
        ("What languages does Tom speak?", "Tom speaks Dutch"),
        ("Who works at the bakery?", "Anna works at the bakery"),
        ("Who worked at the mill?", "Anna works at the mill: from 1 January"),
        ("Who likes jazz?", "Tom likes jazz (said on 8 January 2025 at 13:00). Anna likes jazz"),
        ("Who lives in Bonn?", "Tom lives in Bonn"),
        ("Who is Anna usually with?", "Anna is often with Tom."),
        ("When is Anna usually here?", "Anna is usually seen between"),
        ("Where is the cup usually?", "The cup is usually on a shelf, seen by the camera hall."),
        (
            "Who is Tom?",
            "Tom has a birthday on the third of May, speaks Dutch, lives in Bonn, is a carpenter, is often with Anna and likes jazz. You",
        ),
        ("What do you know about Anna?", "Anna works at the bakery"),
        ("Tell me about Zoe", "You last saw Zoe on Sunday at 09:00"),
    ],
)
def test_what_is_known_answers(recall: Recall, question: str, text: str) -> None:
    answer = recall.ask(question)
    assert answer.text.startswith(text), answer.text
    assert answer.found
    assert answer.rounds == 1
    assert {item[0] for item in answer.cited} <= set("fptuok")
    assert answer.evidence


@pytest.mark.parametrize(
    "question",
    [
        "Does Tom like opera?",
        "Where does Zoe work?",
        "Who works at the zoo?",
        "Who is Tom's sister?",
    ],
)
def test_what_is_not_known_is_not_made_up(recall: Recall, question: str) -> None:
    answer = recall.ask(question)
    assert not answer.found, answer.text


def test_a_question_of_then_is_answered_by_what_was_known_then(recall: Recall) -> None:
    then = recall.ask("Where does Anna work?", at=BEGIN + 5 * DAY_S)
    assert then.text.startswith("Anna works at the mill (said")
    assert all(one.start < BEGIN + 5 * DAY_S for one in then.evidence)
    assert not recall.ask("Where does Tom live?", at=BEGIN + 5 * DAY_S).found
