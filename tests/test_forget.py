"""Forgetting: what goes, that it is gone from every file, and that the rest stands as if it had been so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from edge.errors import NotFoundError, UserError
from edge.identity import RULES, merge_people, not_this_person, split_person, undo
from edge.memory import Store, jobs
from edge.memory.tiers import experience, procedural
from edge.memory.tiers.procedural import RuleKind
from edge.memory.upkeep.plans import Target
from edge.types.drafts import NameClaim
from edge.types.records import CorrectionKind, Kind, NameSource
from tests.forget_support import START, everything, evidence_of, leftovers, raw_pages, scene

ANNA = "Zebulonia Quirke"  # a name that nothing else holds
SECRET = "My passphrase is xylophone"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


def life(store: Store, moments: int = 24) -> tuple[int, int, int]:
    """Three people who meet, talk and speak of each other."""
    rng = random.Random(5)
    ids: list[int] = []
    for number in range(3):
        made = store.commit(scene(number, [-number - 1], ["Good morning to everybody here."]))
        ids.append(made.entities[-number - 1])
    said = ["Where is the blue kettle now?", "I saw Zebulonia yesterday.", "The train leaves at nine.", ""]
    for number in range(3, moments):
        there = rng.sample(ids, rng.choice((1, 2, 2, 3)))
        words = [SECRET if who == ids[0] and number % 3 == 0 else rng.choice(said) for who in there]
        store.commit(scene(number, there, words, camera=rng.choice(("hall", "kitchen"))))
    store.rebuild_galleries(RULES)
    store.set_name(ids[0], ANNA)
    store.set_name(ids[1], "Marta")
    return ids[0], ids[1], ids[2]


def forget(store: Store, target: Target) -> str:
    planned = store.forget_plan(target)
    store.forget(planned, RULES)
    return planned.text


def test_nothing_of_a_forgotten_person_is_left_in_the_home_folder(store: Store, tmp_path: Path) -> None:
    anna, marta, third = life(store)
    with_rule = store.transact(
        lambda memory: procedural.add_rule(
            memory, store.user, RuleKind.ALERT, "tell me when Zebulonia is back", created=1.0
        )
    )
    assert with_rule
    merge_people(store, anna, store.commit(scene(40, [-9], ["That is me too."])).entities[-9])
    split_person(
        store, marta, [(Kind.TRACE, 3 + next(n for n in range(9) if marta in store.trace(4 + n).entities) + 1)]
    )
    strings = ["Zebulonia", "Quirke", "xylophone", f"scarf{anna % 97}."]
    blobs = evidence_of(store, anna)
    assert len(blobs) > 20
    assert leftovers(tmp_path, strings, blobs)
    text = forget(store, Target(person=anna))
    assert "1 person" in text
    assert leftovers(tmp_path, strings, blobs) == []
    assert store.integrity() == []
    with pytest.raises(NotFoundError):
        store.entity(anna)
    assert store.entity(marta).name == "Marta"
    assert store.entity(third).sightings > 0


def test_others_keep_what_is_theirs(store: Store) -> None:
    anna, marta, _ = life(store)
    both = next(t for t in store.traces(limit=100) if {anna, marta} <= set(t.entities))
    mine = store.rows("select id, embedding from sample where entity = ?", (marta,))
    forget(store, Target(person=anna))
    after = store.trace(both.id)
    assert "Marta" in after.text
    assert "omeone" in after.text
    assert set(after.entities) == set(both.entities) - {anna}
    assert after.key_frames == ()
    assert "A cup was on the table." in [line.text for line in after.lines]
    assert not any(one.speaker == anna for one in after.utterances)
    assert store.rows("select id, embedding from sample where entity = ?", (marta,)) == mine
    assert store.crops(marta)
    with store.reading() as connection:
        waiting = {(job.kind, job.key) for job in jobs.all_jobs(connection, store.user, limit=1000)}
    assert ("embed", str(both.id)) in waiting


def test_a_name_that_others_said_is_taken_out_of_their_words(store: Store) -> None:
    anna, marta, _ = life(store)
    draft = scene(50, [marta], ["Zebulonia’s coat and ZEBULONIA again, zebulonias not."])
    trace = store.commit(draft).trace
    assert trace is not None
    forget(store, Target(person=anna))
    words = store.trace(trace).utterances[0].text
    assert words == "[forgotten]’s coat and [forgotten] again, zebulonias not."
    assert "[forgotten]’s coat" in store.trace(trace).text


def test_a_forgotten_person_is_new_when_they_come_back(store: Store) -> None:
    anna, _, _ = life(store)
    forget(store, Target(person=anna))
    again = store.commit(scene(60, [-1])).entities[-1]
    assert again > anna
    assert store.entity(again).name is None


def test_a_span_goes_with_those_who_were_only_there(store: Store, tmp_path: Path) -> None:
    anna, marta, _ = life(store)
    late = store.commit(scene(100, [marta, -4], ["", "Only for a moment, flibbertigibbet."]))
    blobs = evidence_of(store, late.entities[-4])
    planned = store.forget_plan(Target(since=START + 40 * 100 - 1))
    assert planned.people == (late.entities[-4],)
    assert dict(planned.counts)["moments"] == 1
    store.forget(planned, RULES)
    assert leftovers(tmp_path, ["flibbertigibbet"], blobs) == []
    assert store.entity(marta).last_seen < START + 40 * 100
    assert store.entity(anna).name == ANNA
    assert store.integrity() == []


def test_a_name_that_was_learned_in_what_goes_goes_with_it(store: Store) -> None:
    first = store.commit(scene(0, [-1], ["Hello there my friends."]))
    who = first.entities[-1]
    draft = scene(1, [who], ["I am Zebulonia."])
    store.commit(type(draft)(**{**_fields(draft), "names": (NameClaim(who, "Zebulonia", NameSource.SELF, 0, True),)}))
    assert store.entity(who).name == "Zebulonia"
    forget(store, Target(since=START + 39))
    assert store.entity(who).name is None
    assert store.name_history(who) == []
    assert store.name_claims(who) == []


def _fields(draft: object) -> dict[str, object]:
    return {name: getattr(draft, name) for name in draft.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_camera_goes_with_all_that_it_saw(store: Store) -> None:
    life(store)
    forget(store, Target(camera="kitchen"))
    assert {one.camera for one in store.traces(limit=100)} == {"hall"}
    assert store.rows("select name from camera") == [("hall",)]
    assert store.integrity() == []
    with pytest.raises(NotFoundError, match="kitchen"):
        store.forget_plan(Target(camera="kitchen"))


def test_single_items_go_and_their_moments_stay(store: Store) -> None:
    anna, marta, _ = life(store)
    made = store.commit(scene(70, [anna, marta], ["Where is it?", "The wombat ate the marmalade today."]))
    assert made.trace is not None
    forget(store, Target(items=((Kind.UTTERANCE, made.utterances[1]),)))
    after = store.trace(made.trace)
    assert "marmalade" not in after.text
    assert not any("marmalade" in line.text for line in after.lines)
    assert [one.text for one in after.utterances] == ["Where is it?"]
    assert set(after.entities) == {anna, marta}
    forget(store, Target(items=((Kind.OBSERVATION, made.observations[2]),)))  # the cup
    assert "cup" not in store.trace(made.trace).text
    forget(store, Target(items=((Kind.OBSERVATION, made.observations[0]),)))
    after = store.trace(made.trace)
    assert after.key_frames == ()
    assert not any(one.anchor == "a1" for one in store.observations(trace=made.trace))
    forget(store, Target(items=((Kind.TRACE, made.trace),)))
    with pytest.raises(NotFoundError):
        store.trace(made.trace)
    assert store.integrity() == []


def test_a_picture_goes_by_itself(store: Store, tmp_path: Path) -> None:
    made = store.commit(scene(0, [-1]))
    picture = store.key_frame(made.key_frames[0]).jpeg
    forget(store, Target(items=((Kind.KEY_FRAME, made.key_frames[0]),)))
    assert leftovers(tmp_path, [], [picture]) == []


@pytest.mark.parametrize(
    ("item", "error", "words"),
    [
        ((Kind.TRACE, 999), NotFoundError, "t999"),
        ((Kind.ENTITY, 1), UserError, "forget person p1"),
        ((Kind.CORRECTION, 1), UserError, "undo c1"),
        ((Kind.DECISION, 1), UserError, "moment"),
    ],
)
def test_what_cannot_be_forgotten_is_said(
    store: Store, item: tuple[Kind, int], error: type[Exception], words: str
) -> None:
    life(store, 4)
    with pytest.raises(error, match=words):
        store.forget_plan(Target(items=(item,)))


def test_everything_goes(store: Store, tmp_path: Path) -> None:
    anna, _, _ = life(store)
    blobs = evidence_of(store, anna)
    forget(store, Target(everything=True))
    counts = everything(store)
    left = {
        name: number
        for name, number in counts.items()
        if number and not name.startswith(("words", "sqlite", "migration", "identity_state", "index_state"))
    }
    assert set(left) <= {"timeline_clock", "forgotten", "embedder", "text_embedder", "job"}
    assert leftovers(tmp_path, ["Zebulonia", "Marta", "kettle", "xylophone"], blobs) == []
    assert store.integrity() == []
    assert store.commit(scene(80, [-1])).trace is not None


def test_what_changed_since_it_was_shown_is_not_forgotten(store: Store) -> None:
    anna, _, _ = life(store)
    planned = store.forget_plan(Target(person=anna))
    store.commit(scene(90, [anna]))
    with pytest.raises(UserError, match="look again"):
        store.forget(planned, RULES)
    assert store.entity(anna).name == ANNA


def test_a_name_that_somebody_else_has_stays(store: Store) -> None:
    anna, marta, third = life(store)
    store.set_name(anna, "Will Marta")
    store.set_name(third, "Will")
    made = store.commit(scene(91, [marta], ["Will Marta and Will and Marta will come."])).trace
    assert made is not None
    planned = store.forget_plan(Target(person=anna))
    store.forget(planned, RULES)
    assert store.trace(made).utterances[0].text == "[forgotten] and Will and Marta will come."


def test_corrections_that_stay_can_still_be_undone(store: Store, tmp_path: Path) -> None:
    anna, marta, third = life(store)
    seen = [one.id for one in store.traces(limit=100) if marta in one.entities][:2]
    before = {one.id: one.text for one in store.traces(limit=100)}
    not_this_person(store, marta, [(Kind.TRACE, seen[0])], third)
    forget(store, Target(person=anna))
    undo(store)
    assert f"{{{{{anna}".encode() not in raw_pages(tmp_path)["memory.db"]
    assert "Marta" in store.trace(seen[0]).text
    assert store.integrity() == []
    assert before[seen[0]].count("Marta") == store.trace(seen[0]).text.count("Marta")


def test_what_was_corrected_away_from_somebody_is_not_theirs(store: Store) -> None:
    anna, _, _ = life(store)
    trace = next(one.id for one in store.traces(limit=100) if set(one.entities) == {anna})
    record = not_this_person(store, anna, [(Kind.TRACE, trace)])
    assert record.other is not None
    forget(store, Target(person=anna))
    assert store.trace(trace).entities == (record.other,)
    assert store.corrections() == [one for one in store.corrections() if one.kind is CorrectionKind.NAME]
    assert store.rows("select 1 from moved") == []
    assert store.integrity() == []


def test_waiting_evidence_near_to_somebody_goes(store: Store) -> None:
    from edge.types.drafts import PendingWrite
    from edge.types.records import Modality
    from tests.forget_support import FACES
    from tests.identity_support import direction, near

    anna, marta, _ = life(store)
    draft = scene(92, [marta])
    waits = tuple(
        PendingWrite("a1", Modality.FACE, FACES, near(direction(who), 0.55, 3), 60.0, START + 1e6) for who in (1, 2)
    )
    store.commit(type(draft)(**{**_fields(draft), "pending": waits}))
    forget(store, Target(person=anna))
    left = [np.frombuffer(blob, "<f4") for (blob,) in store.rows("select embedding from pending")]
    assert len(left) == 1
    assert float(left[0] @ direction(2)) > 0.5


def test_copies_of_rows_that_moved_between_pages_go_too(store: Store, tmp_path: Path) -> None:
    chance = random.Random(3)

    def live(memory: apsw.Connection) -> list[int]:
        asked = [
            experience.note_answer(
                memory, store.user, at=START + number, question=f"vermilion{number:03} " + "and so on " * chance.randrange(40),
                found=True, route={}, cited=[],
            )
            for number in range(400)
        ]  # fmt: skip
        for number in chance.sample(asked, 300):  # they grow, so that pages are parted
            memory.execute("update answer set route = ? where id = ?", ("x" * chance.randrange(600), number))
        gone = asked[::3]
        for number in gone:
            experience.remove_answers(memory, [number])
        return [number - asked[0] for number in gone]

    gone = store.transact(live)
    store.upkeep(lambda files: files.memory.execute("pragma wal_checkpoint(truncate)").fetchall())

    def left() -> list[int]:
        pages = raw_pages(tmp_path)["memory.db"]
        return [number for number in gone if f"vermilion{number:03}".encode() in pages]

    assert left()
    rule = store.transact(
        lambda memory: procedural.add_rule(memory, store.user, RuleKind.ALERT, "tell me when it rains", created=1.0)
    )
    forget(store, Target(items=((Kind.RULE, rule),)))
    assert not left()
    assert store.integrity() == []
