"""Nothing that ended after the moment of a question has any part in what comes back: a property of every way to ask."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from edge.consolidate import Worker, build_handlers
from edge.errors import NotFoundError
from edge.memory import Store
from edge.recall import Answer, Filters, Level, Query, Recall, Result, known_facts
from edge.recall.question.context import read_context
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.recall_data import BERLIN, BagEmbedder, Script, moment, said, seen

EMBEDDER = BagEmbedder()
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking a life takes minutes
BEGIN = moment("2025-01-06T08:00:00")
NAMES = ("Anna", "Ben", "Cleo")
DID = (
    ("drank tea in the kitchen", "cup"), ("repaired a bicycle in the garage", "bicycle"), ("fed the cat", "cat"),
    ("looked for the keys on the sofa", "couch"), ("talked with {other} in the garden", "person"), ("read a book", "book"),
)  # fmt: skip
SAID = ("I work at the bakery.", "I live in Hamburg.", "My favourite colour is green.", "The train leaves at noon.", "")
QUESTIONS = (
    "Where did I last see a cup?", "Who was in the kitchen?", "When did I last see Anna?", "What did Ben say?",
    "How often did I see Cleo?", "Where is Berta?", "Who is mostly with Anna?",
    "Where does Anna work?", "Did anybody feed the cat?", "What did Anna do before drinking tea?", "Who talked in the garden?",
    "What is usual in the hall?", "Did Ben come back?", "How many people were there today?",
)  # fmt: skip
# Answered from stretches of the timeline. Which stretches these are follows the tree as it is today: one that went on after
# the moment of the question is told by its moments. What they tell has to have ended by then.
SUMMARIES = ("What happened today?", "What happened on Monday?")
QUERIES = ("cup in the kitchen", "Anna talked", "bicycle yesterday", "Hamburg train")
FILTERS = (
    Filters(person="Anna"), Filters(thing="cup"), Filters(place="kitchen"), Filters(important=True), Filters(camera="hall"),
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """What happens in one moment."""

    pause: float  # s after the one before
    camera: str
    who: int
    other: int
    did: int
    said: int


EVENTS = st.builds(
    Event,
    st.sampled_from([0.0, 5.0, 60.0, 900.0, 4000.0, 30_000.0, 90_000.0]),
    st.sampled_from(["hall", "kitchen_cam"]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, len(DID) - 1),
    st.integers(0, len(SAID) - 1),
)


class Life:
    """Writes events into a memory, one after another."""

    def __init__(self, store: Store) -> None:
        self.script = Script(store, EMBEDDER)
        self.known: dict[str, int] = {}
        self.now = BEGIN

    def live(self, event: Event, *, stranger: bool = False) -> None:
        start = self.now + event.pause
        self.now = start + 20.0
        names = ["Berta"] if stranger else [NAMES[event.who], NAMES[event.other]]
        keys, new = {}, []
        for name in dict.fromkeys(names):
            keys[name] = self.known.get(name, -len(new) - 1)
            if keys[name] < 0:
                new.append(NewEntity(keys[name], EntityKind.PERSON, name, NameSource.USER))
        who, other = keys[names[0]], keys[names[-1]]
        did, label = DID[event.did]
        text = f"{mention(who)} {did.format(other=mention(other))}."
        ids = self.script.trace(
            start,
            [text],
            camera=event.camera,
            observations=[
                *(seen("person", start, start + 15, text, f"a{i}", key) for i, key in enumerate(keys.values())),
                seen(label, start, start + 15, f"A {label} was in view.", "a9"),
            ],
            utterances=[said(start + 3, SAID[event.said], who)] if SAID[event.said] else [],
            entities=new,
            picture=True,
        )
        for name, key in keys.items():
            self.known.setdefault(name, ids.get(key, key))


def _result(one: Result) -> tuple[object, ...]:
    # A stretch of the timeline is made again when more comes: it has another id then.
    names = (one.id, one.trace) if not one.id.startswith("n") else (one.level.value,)
    return (*names, one.start, one.end, round(one.score, 9), one.text, one.people, one.key_frame)


def _answer(one: Answer) -> tuple[object, ...]:
    cited = tuple(item for item in one.cited if not item.startswith("n"))
    return one.text, one.found, one.start, one.end, one.people, cited, tuple(map(_result, one.evidence)), one.rounds


def _tool(ask: object) -> object:
    try:
        return ask()  # type: ignore[operator]
    except NotFoundError as error:
        return str(error)


def everything(store: Store, at: float) -> dict[str, object]:
    """All that can be asked of a memory as of a moment."""
    recall = Recall(store, EMBEDDER, now=lambda: at + 10_000_000.0, zone=BERLIN)
    tools = recall.tools
    came: dict[str, object] = {question: _answer(recall.ask(question, at)) for question in QUESTIONS}
    for query in QUERIES:
        for level in (Level.TRACE, Level.LINE, Level.UTTERANCE, Level.OBSERVATION, Level.PERSON):
            came[f"{level}: {query}"] = [_result(one) for one in recall.search(level, query, k=8, at=at)]
        ranked = recall.rank(Query(1, at, BERLIN, query, {"A": "tea", "B": "the cat"}), 20)
        came[f"rank: {query}"] = (ranked.rows, ranked.choice)
    for filters in FILTERS:
        came[f"when: {filters}"] = _tool(lambda filters=filters: tools.when(filters, 50, at=at))
        came[f"count: {filters}"] = _tool(lambda filters=filters: tools.count(filters, at=at))
    for name in (*NAMES, "Berta"):
        people = _tool(lambda name=name: tools.who(name, at=at))
        came[f"who: {name}"] = (
            [replace(one, facts=tuple(replace(fact, id="") for fact in one.facts)) for one in people]
            if isinstance(people, list)
            else people
        )
    came["get"] = [
        _tool(lambda item=item: [_result(r) for r in tools.get(item, 3, at=at)]) for item in ("t1", "t2", "o1")
    ]
    with store.reading() as connection:
        context = read_context(connection, store.user, EMBEDDER.key, EMBEDDER.dimensions, at)
    came["context"] = (context.frontier.tolist(), context.now.tolist())
    came["facts"] = sorted(
        (one.subject, one.text, one.importance, one.since, one.until) for one in known_facts(store, at=at, zone=BERLIN)
    )
    return came


def nothing_later(store: Store, at: float, later: Sequence[str]) -> None:
    """Summaries as of a moment tell nothing of what ended later."""
    recall = Recall(store, EMBEDDER, now=lambda: at + 10_000_000.0, zone=BERLIN)
    for question in SUMMARIES:
        answer = recall.ask(question, at)
        assert all(one.end <= at for one in answer.evidence)
        assert all(name not in repr(answer) for name in later)


def holds(events: Sequence[Event], cut: int) -> None:
    """Ask at the end of an event, let the rest of the life follow, ask again as of then."""
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "home") as store:
        life = Life(store)
        for event in events[:cut]:
            life.live(event)
        worker = Worker(store, build_handlers(store))
        assert worker.drain().failed == 0
        at, known = life.now, max(life.known.values())
        before = everything(store, at)
        for event in events[cut:]:
            life.live(event)
        life.live(Event(10.0, "hall", 0, 0, 0, 0), stranger=True)
        assert worker.drain().failed == 0
        after = everything(store, at)
        nothing_later(store, at, ["Berta", *(name for name, who in life.known.items() if who > known)])
    for what, came in before.items():
        assert after[what] == came, what


@given(st.lists(EVENTS, min_size=3, max_size=14), st.data())
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
def test_nothing_later_changes_what_comes_back(events: list[Event], data: st.DataObject) -> None:
    holds(events, data.draw(st.integers(1, len(events) - 1), "cut"))


@pytest.mark.slow
@given(st.lists(EVENTS, min_size=3, max_size=40), st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=PHASES)
def test_nothing_later_changes_what_comes_back_in_longer_lives(events: list[Event], data: st.DataObject) -> None:
    holds(events, data.draw(st.integers(1, len(events) - 1), "cut"))
