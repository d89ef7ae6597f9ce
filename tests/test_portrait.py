"""What is known of a person, counted from what the memory holds now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.errors import NotFoundError
from edge.memory import Store
from edge.recall import facts_about
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.recall_data import BERLIN, Script, moment, said, seen


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


def life(store: Store) -> tuple[int, int]:
    """Anna in the kitchen at eight on four days, with Tom on three; once in the hall."""
    script = Script(store)
    first = moment("2026-11-02T08:10")
    new = [
        NewEntity(-1, EntityKind.PERSON, "Anna", NameSource.USER),
        NewEntity(-2, EntityKind.PERSON, "Tom", NameSource.USER),
    ]
    ids = script.trace(
        first,
        [f"{mention(-1)} and {mention(-2)} sat."],
        camera="kitchen",
        entities=new,
        observations=[
            seen("person", first, first + 9, f"{mention(-1)} sat.", "a1", -1),
            seen("person", first, first + 9, f"{mention(-2)} sat.", "a2", -2),
        ],
    )
    anna, tom = ids[-1], ids[-2]
    for day in range(1, 4):
        at = first + day * 86_400
        who = [seen("person", at, at + 9, f"{mention(anna)} sat.", "a1", anna)]
        if day < 3:
            who.append(seen("person", at, at + 9, f"{mention(tom)} sat.", "a2", tom))
        script.trace(at, [f"{mention(anna)} sat."], camera="kitchen", observations=who)
    at = first + 4 * 86_400 + 36_000
    script.trace(
        at, ["Somebody came."], camera="hall", observations=[seen("person", at, at + 9, "She came.", "a1", anna)]
    )
    return anna, tom


def test_habits_and_company(store: Store) -> None:
    anna, tom = life(store)
    assert [fact.text for fact in facts_about(store, anna, BERLIN)] == [
        "is mostly seen by the camera kitchen (4 of 5 moments)",
        "is usually seen between 6 and 9 o'clock (4 of 5 days)",
        "is often with Tom (3 of 5 moments)",
    ]
    assert facts_about(store, anna, BERLIN)[2].sources == ("t3", "t2", "t1")
    assert [fact.text for fact in facts_about(store, tom, BERLIN)][-1] == "is often with Anna (3 of 3 moments)"


def test_what_people_say_of_themselves_and_when_it_changed(store: Store) -> None:
    anna, _ = life(store)
    at = moment("2026-11-10T12:00")
    words = [
        "I work at the bakery.",
        "Do I work at the mill?",
        "If I lived in Rome, I would like opera.",
        "He said I work at the zoo.",
        "I don't like spinach.",
        "I love dancing, and I'm allergic to nuts.",
        "I work for the city now.",
        "I live in Bonn",
    ]
    for day, sentence in enumerate(words):
        Script(store).trace(at + day * 86_400, ["Talk."], utterances=[said(at + day * 86_400, sentence, anna)])
    found = {fact.text: fact for fact in facts_about(store, anna, BERLIN)}
    spoken = [
        text for text in found if not text.startswith("is mostly") and "often" not in text and "usually" not in text
    ]
    assert set(spoken) == {
        "works at the city", "works at the bakery", "lives in Bonn", "likes dancing", "is allergic to nuts",
    }  # fmt: skip
    assert found["works at the bakery"].until == at + 6 * 86_400  # history, dated
    assert found["works at the city"].until is None
    assert list(found)[-1] == "works at the bakery"


def test_facts_follow_a_correction(store: Store) -> None:
    from edge.identity import merge_people, undo

    anna, tom = life(store)
    record = merge_people(store, anna, tom)
    assert not any("often with" in fact.text for fact in facts_about(store, anna, BERLIN))
    undo(store, record.id)
    assert any("often with Tom" in fact.text for fact in facts_about(store, anna, BERLIN))
    with pytest.raises(NotFoundError):
        facts_about(store, 999, BERLIN)
