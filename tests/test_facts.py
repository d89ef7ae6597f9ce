"""Facts: what people say of themselves and what is usual, since when and until when; the same whatever came first."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.errors import NotFoundError
from edge.identity import RULES, merge_people, name_entity, undo
from edge.memory import Store, Target, jobs
from edge.memory.tiers import facts
from edge.memory.tiers.facts import runs as facts_runs
from edge.memory.tiers.facts.runs import Statement, said_runs
from edge.memory.tiers.facts.said import Said, Stance, statements
from edge.recall import Aspect, fact_history, known_facts, profile
from edge.types.records import Kind
from tests.facts_support import BEGIN, DAY_S, Moment, derive, fact_rows, people, write

IS, NOT, WAS = Stance.IS, Stance.NOT, Stance.WAS


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        people(opened, ["Anna", "Tom", None])
        yield opened


def told(store: Store, who: int | None = 1, **more: object) -> list[str]:
    return [one.text for one in known_facts(store, entity=who, history=False, **more) if one.kind != "name"]  # type: ignore[arg-type]


# -- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("I work at the bakery.", [("work", "the bakery", IS)]),
        ("Well, you know, I've been working for Siemens for two years.", [("work", "Siemens", IS)]),
        ("I left the mill and now I work for the city.", [("work", "the mill", NOT), ("work", "the city", IS)]),
        ("I don't work at the zoo anymore, I'm at the airport now.", [("work", "the zoo", NOT), ("work", "the airport", IS)]),
        ("I quit my job.", [("work", "", NOT)]),
        ("I used to work at the harbour.", [("work", "the harbour", WAS)]),
        ("I'm a nurse, and I love jazz.", [("job", "nurse", IS), ("likes", "jazz", IS)]),
        ("I’m actually a software developer.", [("job", "software developer", IS)]),
        ("I'm not a nurse any more.", [("job", "nurse", NOT)]),
        ("I'm a vegetarian.", [("trait", "vegetarian", IS)]),
        ("We moved from Cologne to San Sebastian last year.", [("home", "San Sebastian", IS)]),
        ("I'm from Ghent.", [("origin", "Ghent", IS)]),
        ("I like jazz and hate spinach.", [("likes", "jazz", IS), ("dislikes", "spinach", IS)]),
        ("I don't like spinach.", [("dislikes", "spinach", IS)]),
        ("I no longer like jazz.", [("likes", "jazz", NOT)]),
        ("Sorry, I'm allergic to nuts.", [("allergy", "nuts", IS)]),
        ("My sister is called Maria. My dad's name is Paul.", [("sister", "Maria", IS), ("father", "Paul", IS)]),
        ("My favorite color is dark red.", [("favourite colour", "dark red", IS)]),
        ("My birthday is on the third of May.", [("birthday", "the third of May", IS)]),
        ("I speak Polish.", [("speaks", "Polish", IS)]),
        *(
            (nothing, [])
            for nothing in (
                "Do I work at the mill?", "If I lived in Rome, I would like opera.", "He said I work at the zoo.",
                "She told me that she is a nurse.", "I'm a bit late.", "I'm a big girl.", "I love you.", "I like it here.",
                "I like your shoes.", "I hate to say it.", "I'd love a coffee.", "I'll move to Rome.", "I live in a flat.",
                "I'm from the delivery service.", "I'm at the door.", "I work at night.", "My neighbour works at the zoo.",
                "His sister is called Eva.", "I might move to Oslo.", "“I work at the zoo.”", "I am.", "I", "",
            )
        ),
    ],
)  # fmt: skip
def test_what_people_say_of_themselves(words: str, expected: list[tuple[str, str, Stance]]) -> None:
    assert list(statements(words)) == [Said(*one) for one in expected]


PIECES = st.sampled_from(
    ["I", "I'm", "we", "my", "work", "at", "live", "in", "the", "bakery", "Bonn", "and", "but", "not", "like", "sister", "is",
     "called", "Anna", "a", "nurse", ",", ".", "?", "“", "”", "'", "any more", "now", "because", "since", "job", "{{3}}"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=400), st.lists(PIECES, max_size=60).map(" ".join)))
@settings(max_examples=150, deadline=1000)
def test_whatever_is_said_gives_short_values_or_nothing(words: str) -> None:
    for one in statements(words):
        assert len(one.value.split()) <= 6
        assert one.value in " ".join(words.replace("’", "'").replace("‘", "'").split()) or " " in one.value
        assert one.value or one.stance is NOT


# -- runs -------------------------------------------------------------------------------------------------------------

SAYINGS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.sampled_from(["work", "home", "likes", "dislikes", "sister", "job"]),
        st.sampled_from(["the mill", "Mill", "a zoo", "jazz", ""]),
        st.sampled_from([IS, IS, IS, NOT, WAS]),
    ),
    max_size=12,
)


@given(SAYINGS, st.randoms(use_true_random=False))
def test_in_one_slot_one_thing_holds_at_a_time(said: list[tuple[int, str, str, Stance]], shuffle: object) -> None:
    of = [
        Statement(number, float(at), kind, value, stance if value else NOT)
        for number, (at, kind, value, stance) in enumerate(said)
    ]
    runs = said_runs(of)
    mixed = list(of)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert said_runs(mixed) == runs
    slots: dict[str, list[facts_runs.Run]] = {}
    for run in runs:
        slots.setdefault(facts_runs.slot(run.kind, run.value), []).append(run)
        assert run.start is None or run.end is None or run.start <= run.end
        assert 0.5 <= run.importance < 1
    for of_slot in slots.values():
        assert sum(run.end is None for run in of_slot) <= 1
        dated = sorted((run for run in of_slot if run.start is not None), key=lambda run: (run.start, run.end or 1e9))
        for one, other in itertools.pairwise(dated):
            assert one.end is not None
            assert other.start is not None
            assert one.end <= other.start


# -- the tier ---------------------------------------------------------------------------------------------------------


def test_a_changed_mind_is_dated_history(store: Store) -> None:
    lines = {0: "I work at the bakery.", 3: "I work at a bakery.", 9: "I left the bakery, I work for the city now."}
    write(store, [Moment(day, people=(1,), words=((1, words),)) for day, words in lines.items()])
    derive(store)
    old, new = fact_history(store, known_facts(store, kinds=["work"], history=False)[0].id)
    assert (old.text, old.until, old.since) == ("works at the bakery", BEGIN + 9 * DAY_S + 8 * 3600, BEGIN + 8 * 3600)
    assert (new.text, new.until, new.sources) == ("works at the city", None, ("u3",))
    assert old.importance == pytest.approx(0.6)  # 0.5 + (1 - 0.5) · 0.2: said twice
    assert told(store, at=BEGIN + 5 * DAY_S) == ["works at the bakery"]
    assert told(store, at=BEGIN) == []


def test_habits_and_where_things_are(store: Store) -> None:
    moments = [Moment(day, 7.2, "kitchen", (1, 2), "a table") for day in range(6)]
    moments += [Moment(day, 19.0, "hall", (3,), None) for day in range(6)]
    moments += [Moment(day, 7.2, "hall", (1,), "a shelf") for day in range(6, 20)]
    write(store, moments)
    derive(store)
    assert set(told(store)) == {"is mostly seen by the camera hall", "is usually seen between 6 and 9 o'clock"}
    past = [one for one in known_facts(store, entity=1) if one.until is not None]
    assert {one.text for one in past} == {"is mostly seen by the camera kitchen", "is often with Tom"}
    cup, before = known_facts(store, label="cup")
    assert cup.text == "is usually on a shelf, seen by the camera hall"
    assert (before.text, before.sentence) == (
        "is usually on a table, seen by the camera kitchen",
        "The cup is usually on a table, seen by the camera kitchen.",
    )
    assert before.until is not None
    with_tom = next(one for one in past if one.kind == "company")
    assert with_tom.sources == ("t6", "t5", "t4", "t3", "t2")


def test_weekdays_are_a_habit_when_they_are_few(store: Store) -> None:
    write(store, [Moment(7 * week + day, 18, people=(1,)) for week in range(6) for day in (0, 2)])
    write(store, [Moment(day, 18, people=(2,)) for day in range(40)])
    derive(store)
    assert "is usually seen on Wednesdays and Fridays" in told(store)
    assert not any("days" in text for text in told(store, 2))


def test_every_fifth_observation_consolidates_and_the_present_one_is_no_evidence(store: Store) -> None:
    seen = [Moment(day, people=(1, 2)) for day in range(10)]
    counts = []
    for one in seen:
        write(store, [one])
        derive(store)
        rows = store.rows("select last from fact where kind = 'company' and value = '2'")
        counts.append(None if not rows else rows[0][0] - int(BEGIN // DAY_S))
    assert counts == [None] * 4 + [3] * 5 + [8]
    assert store.rows("select observations from fact_subject where entity = 1") == [(10,)]


def test_what_was_not_seen_for_a_month_holds_no_more(store: Store) -> None:
    write(store, [Moment(day, surface="a table", people=(1,)) for day in range(10)])
    write(store, [Moment(day, people=(1,)) for day in range(10, 60)])
    derive(store)
    (cup,) = known_facts(store, label="cup")
    assert cup.until == BEGIN + 9 * DAY_S
    assert known_facts(store, label="cup", at=BEGIN + 20 * DAY_S)[0].until is None


def test_a_name_is_an_identity_fact_that_no_job_changes(store: Store) -> None:
    write(store, [Moment(day, people=(1,), words=((1, "I work at the mill."),)) for day in range(8)])
    derive(store)
    (name,) = known_facts(store, entity=1, kinds=["name"])
    assert (name.text, name.importance, name.protected, name.aspect) == ("is called Anna", 1.0, True, Aspect.IDENTITY)
    name_entity(store, 1, "Ann")
    (again,) = known_facts(store, entity=1, kinds=["name"])
    assert (again.id, again.text) == (name.id, "is called Ann")
    assert known_facts(store, entity=3, kinds=["name"]) == []
    merge_people(store, 1, 2)
    assert known_facts(store, entity=2) == []
    assert profile(store, 1).by_aspect[Aspect.ATTRIBUTE][0].text == "works at the mill"
    with pytest.raises(NotFoundError):
        profile(store, 99)


# -- whatever came first, was put right, was forgotten ----------------------------------------------------------------

SENTENCES = st.sampled_from(
    [
        "Hm.",
        "Hm.",
        "I work at the mill.",
        "I work at the zoo now.",
        "I quit my job.",
        "I like jazz.",
        "I hate jazz.",
        "I live in Bonn.",
    ]
)
MOMENTS = st.lists(
    st.builds(
        Moment,
        st.integers(0, 14),
        st.integers(16, 40).map(lambda half: half / 2),
        st.sampled_from(["hall", "hall", "kitchen"]),
        st.sampled_from([(1,), (1, 2), (1, 2), (2,), (1, 3)]),
        st.sampled_from([None, "a table", "a shelf", ""]),
        st.one_of(st.just(()), st.tuples(st.tuples(st.sampled_from([1, 2]), SENTENCES))),
    ),
    min_size=6,
    max_size=40,
    unique_by=lambda one: (one.day, one.hour),
)
BOUNDS = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


class Memories:
    """Stores that are emptied instead of being made again: opening one takes longer than an example."""

    def __init__(self, path: Path) -> None:
        self.stores = [Store.open(path / name) for name in ("one", "other")]

    def fresh(self) -> tuple[Store, Store]:
        def empty(memory: apsw.Connection) -> None:
            for table in ("correction", "trace", "fact_subject", "entity", "job", "provenance", "camera", "moved"):
                memory.execute(f"delete from {table}")

        for store in self.stores:
            store.transact(empty)
            people(store, ["Anna", "Tom", "Zoe"])  # who has a name stays when their moments go
        return self.stores[0], self.stores[1]


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memories]:
    made = Memories(tmp_path_factory.mktemp("facts"))
    yield made
    for store in made.stores:
        store.close()


def renamed(store: Store) -> list[tuple[object, ...]]:
    """Facts with traces by their time, which no order of coming changes."""
    starts = {f'"{kind}{number}"': f'"{kind}@{start}"' for kind, number, start in store.rows(
        "select 'utterance', id, start from utterance union all select 'trace', id, start from trace"
    )}  # fmt: skip

    cameras = dict(store.rows("select cast(id as text), name from camera"))

    def change(cell: object) -> object:
        if isinstance(cell, str) and cell.startswith("["):
            return sorted(starts.get(json.dumps(one), one) for one in json.loads(cell))
        return cell

    def place(row: tuple[object, ...]) -> tuple[object, ...]:
        if row[2] != "place":
            return row
        return (*row[:3], re.sub(r"^\d+", lambda number: cameras[number[0]], str(row[3])), *row[4:])

    kept = [place(row) for row in fact_rows(store) if len(row) != 7]
    return sorted((tuple(change(cell) for cell in row) for row in kept), key=repr)


@BOUNDS
@given(MOMENTS, st.randoms(use_true_random=False), st.lists(st.integers(1, 9), max_size=4))
def test_whatever_came_first_the_facts_are_the_same(
    memories: Memories, moments: list[Moment], shuffle: object, batches: list[int]
) -> None:
    one, other = memories.fresh()
    write(one, sorted(moments, key=lambda moment: moment.start))
    derive(one)
    mixed = list(moments)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    for size in batches:
        write(other, mixed[:size])
        derive(other)
        mixed = mixed[size:]
    write(other, mixed)
    derive(other)
    assert renamed(other) == renamed(one)


@BOUNDS
@given(MOMENTS, st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=1, max_size=4))
def test_corrected_and_forgotten_it_is_as_if_it_had_been_right_from_the_start(
    memories: Memories, moments: list[Moment], steps: list[tuple[bool, int]]
) -> None:
    one, other = memories.fresh()
    left = sorted(moments, key=lambda moment: moment.start)
    numbers = write(one, left)
    derive(one)
    for swap, which in steps:
        place = which % len(left)
        if swap:  # who was taken for Anna was person 3
            changed = [Moment(**{**_fields(left[place]), "people": _swapped(left[place].people),
                                 "words": tuple((_swap(who), words) for who, words in left[place].words)})]  # fmt: skip
            _correct(one, numbers[place], changed[0])
            left[place] = changed[0]
        else:
            _forget(one, numbers[place])
            del left[place], numbers[place]
            if not left:
                break
        derive(one)
    write(other, left)
    derive(other)
    assert renamed(one) == renamed(other)


def _fields(moment: Moment) -> dict[str, object]:
    return {name: getattr(moment, name) for name in moment.__dataclass_fields__}


def _swap(who: int) -> int:
    return {1: 3, 3: 1}.get(who, who)


def _swapped(people_in: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(map(_swap, people_in))


def _correct(store: Store, trace: int, _now: Moment) -> None:
    def work(memory: apsw.Connection) -> None:
        for table, column in (("observation", "entity"), ("utterance", "speaker")):
            memory.execute(
                f"update {table} set {column} = case {column} when 1 then 3 when 3 then 1 else {column} end"
                " where trace = ?",
                (trace,),
            )
        memory.execute("delete from participation where trace = ?", (trace,))
        memory.execute(
            "insert or ignore into participation select trace, entity from observation where trace = ?1 and entity is not null"
            " union select trace, speaker from utterance where trace = ?1 and speaker is not null",
            (trace,),
        )
        jobs.enqueue(memory, store.user, jobs.RETRACE, trace)

    store.transact(work)


def _forget(store: Store, trace: int) -> None:
    store.forget(store.forget_plan(Target(items=((Kind.TRACE, trace),))), RULES)


def test_merge_and_undo_take_facts_along(store: Store) -> None:
    write(store, [Moment(day, people=(1, 2), words=((2, "I like jazz."),)) for day in range(8)])
    derive(store)
    before = fact_rows(store)
    record = merge_people(store, 1, 2)
    derive(store)
    assert "likes jazz" in told(store)
    assert not any("often with" in text for text in told(store))
    undo(store, record.id)
    derive(store)
    assert fact_rows(store) == before
    assert facts.EVERY == 5
