"""What is known of a person, from what was committed to what people read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.errors import NotFoundError
from edge.identity import merge_people, undo
from edge.memory import Store
from edge.recall import Aspect, profile
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.facts_support import derive
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


def known(store: Store, person: int) -> list[str]:
    derive(store)
    return [fact.text for fact in profile(store, person, zone=BERLIN).facts if fact.until is None]


def test_a_person_is_told_by_aspects_with_their_best_face_and_what_it_rests_on(store: Store) -> None:
    anna, tom = life(store)
    derive(store)
    found = profile(store, anna, zone=BERLIN)
    assert (found.title, found.face) == ("Anna", None)
    assert [fact.text for fact in found.by_aspect[Aspect.IDENTITY]] == ["is called Anna"]
    assert {fact.text for fact in found.by_aspect[Aspect.HABIT]} == {
        "is mostly seen by the camera kitchen",
        "is usually seen between 7 and 10 o'clock",
    }
    (with_tom,) = found.by_aspect[Aspect.RELATION]
    assert (with_tom.text, with_tom.sources) == ("is often with Tom", ("t3", "t2", "t1"))
    assert known(store, tom) == ["is called Tom"]  # three moments are too few to say what is usual


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
    derive(store)
    found = profile(store, anna, zone=BERLIN)
    assert {fact.text for fact in found.by_aspect[Aspect.ATTRIBUTE]} == {
        "works at the city", "lives in Bonn", "is allergic to nuts",
    }  # fmt: skip
    assert {fact.text for fact in found.by_aspect[Aspect.PREFERENCE]} == {"likes dancing", "dislikes spinach"}
    before = next(fact for fact in found.past if fact.text == "works at the bakery")  # history, dated
    assert (before.since, before.until) == (at, at + 6 * 86_400)
    then = profile(store, anna, at=at + 86_400, zone=BERLIN).by_aspect[Aspect.ATTRIBUTE]
    assert [fact.text for fact in then] == ["works at the bakery"]


def test_what_is_known_follows_a_correction(store: Store) -> None:
    anna, tom = life(store)
    assert "is often with Tom" in known(store, anna)
    record = merge_people(store, anna, tom)
    assert not any("often with" in text for text in known(store, anna))
    undo(store, record.id)
    assert "is often with Tom" in known(store, anna)
    with pytest.raises(NotFoundError):
        profile(store, 999, zone=BERLIN)
