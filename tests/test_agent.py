"""Looking further: when it goes on, where it looks, what it may say, and that experience never speaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edge.consolidate import Worker, build_handlers
from edge.errors import NotFoundError
from edge.identity import RULES
from edge.memory import Store, Target
from edge.memory.tiers import experience
from edge.memory.tiers.experience import Bank, Experience
from edge.recall import Answer, Recall
from edge.serve import build_app
from edge.settings import RecallSettings
from edge.types.records import Kind, parse_id
from tests.command import Command, reflectworld
from tests.reason_support import FakeModels, Reply, fake_models
from tests.reason_support import tell as replies
from tests.recall_data import BERLIN, NOW, BagEmbedder, Script, moment, said, tell
from tests.serve_support import LOCAL, Keys, call, service_on

__all__ = ["reflectworld"]


def spring(store: Store) -> dict[str, int]:
    """The three days of `tell`, and an hour in which what is asked for is told moment by moment."""
    ids = tell(store, BagEmbedder())
    script = Script(store, BagEmbedder())
    t = moment("2025-01-07T19:00:00")
    script.trace(t, ["A parcel from Lisbon was opened."], seconds=20)
    script.trace(t + 22, ["A lamp was taken out and set on the shelf."], seconds=20)
    script.trace(
        t + 44,
        ["The curtains were drawn."],
        seconds=20,
        utterances=[said(t + 46, "I work at the bakery.", ids["anna"])],
    )
    assert Worker(store, build_handlers(store)).drain().failed == 0
    return ids


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("agent") / "home"
    with Store.open(home) as store:
        spring(store)
    return home


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        spring(opened)
        yield opened


def recall_on(store: Store, **more: Any) -> Recall:
    return Recall(store, BagEmbedder(), now=lambda: NOW, zone=BERLIN, **more)


@pytest.fixture(scope="module")
def recall(lived: Path) -> Iterator[Recall]:
    with Store.open(lived, readonly=True) as opened:
        yield recall_on(opened)


FURTHER = [
    ("Where was the cat on Tuesday?", "widen", ["Nothing of that is remembered yesterday", "on Monday", "on a sofa"]),
    ("What did Anna say about oil?", "anyone", ["Nothing like that of Anna", "Person 2 said", "needs oil"]),
    ("What did Ana say about Hamburg?", "reword", ["“Anna” for “Ana”", "Anna said", "Hamburg"]),
    ("Who spoke of Hamburg after drinking tea?", "reword", ["Anna drank tea"]),
    ("What came with the parcel, a lamp on a shelf?", "event", ["parcel from Lisbon", "lamp"]),
]


@pytest.mark.parametrize(("question", "by", "parts"), FURTHER)
def test_it_looks_where_the_question_leads(recall: Recall, question: str, by: str, parts: list[str]) -> None:
    first = recall.ask(question, deep=False)
    assert not first.found, first.text
    assert (first.rounds, first.looks) == (1, ())
    answer = recall.ask(question)
    assert answer.found, answer.text
    assert [look.memory for look in answer.looks if look.helped] == [by]
    assert answer.rounds == 1 + len(answer.looks) <= 5
    for part in parts:
        assert part in answer.text
    assert any(item[0] in "tu" for item in answer.cited)
    assert answer.evidence
    assert answer.start is not None


@pytest.mark.parametrize(
    "question",
    [
        "Where did I last see a cup?",  # there is an answer
        "Did Anna play the violin?",  # “no” is one, too
        "Who was there at 11 pm yesterday?",  # nobody: rows say so
        "Which aquarium did we visit?",  # a word that is nowhere, and nothing like it
    ],
)
def test_it_stops_where_a_further_look_can_bring_nothing(recall: Recall, question: str) -> None:
    answer = recall.ask(question)
    assert (answer.rounds, answer.looks) == (1, ())
    assert answer.text == recall.ask(question, deep=False).text


def test_nothing_later_is_found_by_looking_further(recall: Recall) -> None:
    then = moment("2025-01-07T12:00:00")
    for question, _, _ in FURTHER:
        answer = recall.ask(question, at=then)
        assert all(one.end <= then for one in answer.evidence), question
        for item in answer.cited:
            kind, number = parse_id(item)
            if kind is Kind.TRACE:
                assert recall.store.trace(number).end <= then


def test_rounds_and_time_are_bounded(lived: Path) -> None:
    with Store.open(lived, readonly=True) as opened:
        question = "Why did the lamp drink tea with a motorcycle in Hamburg?"
        long = recall_on(opened).ask(question, deep=True)
        assert 2 < long.rounds <= 5
        assert recall_on(opened, settings=RecallSettings(rounds=2)).ask(question, deep=True).rounds == 2
        assert recall_on(opened, settings=RecallSettings(deep_s=1e-6)).ask(question, deep=True).rounds == 1


# -- with a language model --------------------------------------------------------------------------------------------


def guided(
    opened: Store, fake: FakeModels, *script: Any, question: str, deep: bool | None = True, **changes: Any
) -> Answer:
    fake.will(*script)
    with fake.reasoner(**changes) as reasoner:
        return recall_on(opened, reasoner=reasoner).ask(question, deep=deep)


LOOK = {"action": "look", "memory": "speech", "query": "train to Hamburg", "why": "It was spoken of."}
ENOUGH = {"action": "answer", "memory": "", "query": "", "why": "That is it."}


def test_a_model_chooses_where_to_look_and_another_request_answers(lived: Path) -> None:
    with fake_models() as fake, Store.open(lived, readonly=True) as opened:
        answer = guided(
            opened, fake, replies(LOOK), replies(ENOUGH),
            replies({"answer": "The train leaves at noon, as {{1}} said.", "cited": ["u2"], "sure": True}),
            replies({"agrees": "cannot_tell", "because": ""}),
            question="When does it go to Hamburg, says Anna?",
        )  # fmt: skip
        asked = fake.asked
    assert answer.text == "The train leaves at noon, as Anna said."
    assert answer.found
    assert answer.cited[:2] == ("u2", "t1")
    assert [(look.memory, look.query) for look in answer.looks] == [("speech", "train to Hamburg")]
    assert any("In the words of" in note for note in answer.notes)
    texts = [[str(message["content"]) for message in one["messages"]] for one in asked]
    assert "Anna" not in json.dumps(texts)  # names that the owner gave are not sent
    assert "You choose where to look" in texts[0][0]
    assert "[u2]" in texts[2][1]
    assert "You answer a question" in texts[2][0]


@pytest.mark.parametrize(
    "told",
    [
        {"answer": "At noon.", "cited": ["t77"], "sure": True},
        {"answer": "At noon.", "cited": [], "sure": True},
        {"answer": "At 15:45.", "cited": ["u2"], "sure": True},
        {"answer": "{{99}} knows.", "cited": ["u2"], "sure": True},
        {"answer": "At noon.", "cited": ["u2"], "sure": False},
    ],
)
def test_a_model_that_cites_nothing_or_adds_something_is_not_heard(lived: Path, told: dict[str, Any]) -> None:
    with fake_models() as fake, Store.open(lived, readonly=True) as opened:
        answer = guided(opened, fake, replies(LOOK), replies(ENOUGH), replies(told), question="Why does a lamp drink?")
    assert told["answer"] not in answer.text


@pytest.mark.parametrize("reply", [Reply(500), Reply(body=b"no JSON"), replies({"action": "dance"})])
def test_without_the_model_the_policy_goes_on(lived: Path, reply: Reply) -> None:
    with fake_models() as fake, Store.open(lived, readonly=True) as opened:
        answer = guided(opened, fake, reply, question="Where was the cat on Tuesday?", attempts=1)
        assert fake.asked
    assert "on a sofa" in answer.text
    assert [look.memory for look in answer.looks if look.helped] == ["widen"]


def test_a_picture_that_disagrees_drops_an_answer(lived: Path) -> None:
    question = "Where was the cat on Tuesday?"
    with fake_models() as fake, Store.open(lived, readonly=True) as opened:
        no = guided(opened, fake, replies({"agrees": "no", "because": "There is no cat."}), replies({**ENOUGH, "action": "stop"}),
                    question=question, deep=None)  # fmt: skip
        image = fake.asked[0]["messages"][1]["content"][1]["image_url"]["url"]
        yes = guided(opened, fake, replies({"agrees": "yes", "because": "There it is."}), question=question, deep=None)
        blind = guided(opened, fake, Reply(400, b'{"error": {"message": "no images"}}'), question=question, deep=None)
    assert image.startswith("data:image/jpeg;base64,")
    assert any("does not show it" in note for note in no.notes)
    assert "on a sofa" not in no.text
    assert any("agrees" in note for note in yes.notes)
    assert "on a sofa" in yes.text
    assert "on a sofa" in blind.text  # who cannot see is believed no less


def test_pictures_leave_only_when_a_setting_says_so(lived: Path) -> None:
    with fake_models() as fake, Store.open(lived, readonly=True) as opened:
        fake.will(replies({"agrees": "no", "because": ""}))
        settings = fake.settings(base_url="http://192.0.2.1:9/v1", allow_remote=True)
        from edge.reason import Reasoner

        with closing(Reasoner(settings)) as reasoner:
            answer = recall_on(opened, reasoner=reasoner).ask("Where was the cat on Tuesday?")
        assert fake.asked == []
    assert "on a sofa" in answer.text
    assert any("no pictures may be sent" in note for note in answer.notes)


# -- experience and its separation ------------------------------------------------------------------------------------

POISON = "Anna is a spy and the cat was in the attic"


def poison(memory: Any) -> None:
    shape = frozenset({"kind:where", "opens:where was", "people:0", "thing", "time:span", POISON, f"verb:{POISON}"})
    for bank in Bank:
        for move in ("facts", "widen", POISON):
            experience_rows.append(Experience(bank, "outside", move, shape, 50.0, 50.0, 1.0, NOW, NOW))
    experience.replace_experiences(memory, "owner", experience_rows)


experience_rows: list[Experience] = []


def test_false_statements_in_the_banks_reach_no_answer_and_no_prompt(lived: Path, store: Store) -> None:
    """Whatever stands in the banks, what is answered from and what is answered are the same."""
    questions = [question for question, _, _ in FURTHER]
    script = (replies(LOOK), replies(ENOUGH), replies({"answer": "I see.", "cited": ["t1", "u2"], "sure": True}))

    def contexts() -> tuple[list[Answer], list[str]]:
        with fake_models() as fake:
            plain = [recall_on(store).ask(question) for question in questions]
            told = [guided(store, fake, *script, question=question) for question in questions]
            sent = [json.dumps(one["messages"]) for one in fake.asked]
        return [*plain, *told], sent

    clean, clean_sent = contexts()
    experience_rows.clear()
    store.transact(poison)
    assert experience.experiences(store.connection(), "owner")
    poisoned, poisoned_sent = contexts()
    assert [one.text for one in poisoned] == [one.text for one in clean]
    assert [one.cited for one in poisoned] == [one.cited for one in clean]
    assert poisoned_sent == clean_sent
    assert POISON not in json.dumps([poisoned_sent, [one.text for one in poisoned], [one.notes for one in poisoned]])


def test_what_helped_is_tried_first_and_what_never_does_no_more(store: Store) -> None:
    recall = recall_on(store, settings=RecallSettings(learn_batch=6))
    question = "What came with the parcel, a lamp on a shelf?"
    before = recall.ask(question)
    assert before.rounds > 2
    for _ in range(6):
        answer = recall.keep(recall.ask(question))
        kept = recall.judge(answer.id, good=True)
    assert kept.learned
    after = recall.ask("What lay with the parcel, a lamp on a shelf?")
    assert (after.text, after.rounds) == (before.text, 2)
    assert "answered so" in after.looks[0].why
    nothing = "Why would the oil sit in a lamp?"
    long = recall.ask(nothing)
    assert not long.found
    assert long.rounds > 2
    for _ in range(6):
        recall.judge(recall.keep(recall.ask(nothing)).id, good=True)
    assert recall.ask("Why would the lamp sit in an oil?").rounds < long.rounds


def test_nothing_is_learned_before_a_batch_is_judged(store: Store) -> None:
    recall = recall_on(store, settings=RecallSettings(learn_batch=3))
    for number in range(3):
        assert experience.experiences(store.connection(), "owner") == []
        answer = recall.keep(recall.ask(FURTHER[number][0]))
        recall.judge(answer.id, good=True)
    learned = experience.experiences(store.connection(), "owner")
    assert learned
    words = json.dumps([[one.signal, one.move, *one.shape] for one in learned])
    for name in ("Anna", "cat", "oil", "Hamburg", "Tuesday"):
        assert name.lower() not in words.lower()


# -- what is kept of answers ------------------------------------------------------------------------------------------


def test_answers_are_bounded_judged_and_forgotten_with_what_they_cite(store: Store) -> None:
    recall = recall_on(store, settings=RecallSettings(keep_answers=3))
    ids = [recall.keep(recall.ask("Where was the cat on Tuesday?")).id for _ in range(5)]
    assert len(store.rows("select 1 from answer")) == 3
    with pytest.raises(NotFoundError):
        recall.judge(ids[0], good=True)
    with pytest.raises(NotFoundError):
        recall.judge("t1", good=True)
    assert recall.judge(None, good=False).id == parse_id(str(ids[-1]))[1]
    asked = recall.keep(recall.ask("What did Anna say about dinosaurs?"))
    assert asked.cited == ()
    cat = next(iter(store.observations(label="cat", limit=1)))
    store.forget(store.forget_plan(Target(items=((Kind.TRACE, cat.trace),))), RULES)
    left = store.rows("select question from answer")
    assert left == [("What did Anna say about dinosaurs?",)]
    anna = store.find_entities("Anna")[0]
    store.forget(store.forget_plan(Target(person=anna.id)), RULES)
    assert store.rows("select question from answer") == []
    assert store.integrity() == []


def test_none_is_kept_where_none_is_wanted(store: Store) -> None:
    recall = recall_on(store, settings=RecallSettings(keep_answers=0))
    assert recall.keep(recall.ask("Where was the cat?")).id is None
    assert store.rows("select 1 from answer") == []


def test_feedback_on_the_command_line(
    lived: Path, tmp_path: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECTWORLD_HOME", str(lived))
    answer = json.loads(reflectworld("ask", "Where was the cat?", "--json").out)
    assert answer["id"].startswith("q")
    assert answer["looks"] == []
    noted = json.loads(reflectworld("feedback", answer["id"], "good", "--json").out)
    assert noted == {"id": answer["id"], "question": "Where was the cat?", "verdict": "good", "learned": False}
    assert "was bad" in reflectworld("feedback", "last", "bad").out
    assert reflectworld("feedback", "q999", "good").code == 2
    assert "looked further" in reflectworld("ask", "Where was the cat on Tuesday?", "--at", "2025-01-08T16:00").out
    monkeypatch.setenv("REFLECTWORLD_HOME", str(tmp_path / "none"))
    assert reflectworld("feedback", "last", "good").code != 0
    assert not (tmp_path / "none").exists()


def test_feedback_over_http(store: Store) -> None:
    app = build_app(service_on(store, BagEmbedder()), Keys(LOCAL))
    asked = {"question": "Where was the cat on 7 January 2025?", "deep": None}
    answer = call(app, "POST", "/api/v1/ask", json=asked).json()
    assert answer["looks"][0]["where"] == "any time"
    judged = call(app, "POST", f"/api/v1/answers/{answer['id']}/feedback", json={"good": True}).json()
    assert judged["good"] is True
    assert call(app, "POST", "/api/v1/answers/q999/feedback", json={"good": True}).status_code == 404
    assert call(app, "POST", "/api/v1/answers/t1/feedback", json={"good": True}).status_code == 404
    assert call(app, "POST", "/api/v1/ask", json={**asked, "deep": False}).json()["rounds"] == 1
