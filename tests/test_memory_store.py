"""What goes into the memory comes out of it: every field of a draft, people and their names, and every way to ask."""

from __future__ import annotations

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cv2
import numpy as np
import pytest

from edge.errors import NotFoundError, StoreError, UserError
from edge.memory import Store
from edge.settings import MemorySettings
from edge.types.drafts import (
    CommitDraft,
    DecisionDraft,
    GalleryWrite,
    KeyFrameDraft,
    NameClaim,
    NewEntity,
    ObservationDraft,
    PendingWrite,
    SourceProgress,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.media import SegmentCounts
from edge.types.records import EntityKind, LineDraft, Modality, NameSource, render
from tests.memory_support import (
    CAMERA,
    FACE_MODEL,
    SEGMENT_S,
    START,
    TEXT_MODEL,
    picture,
    replayed,
    segment,
    source,
)


@pytest.fixture
def store(home: Path):
    with Store.open(home) as store:
        yield store


def shown(text: str, title: str = "person 1") -> str:
    return render(text, lambda _: title)


def same_picture(jpeg: bytes, image: np.ndarray) -> bool:
    back = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    return back.shape == image.shape and float(np.abs(back.astype(int) - image.astype(int)).mean()) < 4


# -- every field of a draft -------------------------------------------------------------------------------------------

APART = object()  # a field that is looked at in another way than by comparing
PARTS = {
    "trace",
    "progress",
    "entities",
    "observations",
    "utterances",
    "decisions",
    "gallery",
    "pending",
    "names",
    "key_frames",
}
BY_THEIR_OWN_TESTS = {"vector", "line_vectors", "word_signs", "pending_used"}  # below
BY_THEIR_OWN_TESTS |= {"samples", "as_of"}  # in test_samples.py
BY_THEIR_OWN_TESTS |= {"visual"}  # in test_visual.py


def test_a_segment_comes_back_whole(store: Store) -> None:
    draft = segment(0)
    done = store.commit(draft)
    person = store.entity(done.entities[-1])
    checked = _trace(store, draft, done) | _progress(store, draft) | _parts(store, draft, done, person.id)
    assert (store.trace(done.trace).camera, store.trace(done.trace).embedder) == (draft.camera, draft.embedder)
    assert person.user == draft.user
    checked |= {(CommitDraft, name) for name in PARTS | BY_THEIR_OWN_TESTS | {"camera", "embedder", "user"}}
    everything = {
        (kind, field.name)
        for kind in (
            CommitDraft,
            TraceDraft,
            LineDraft,
            SourceProgress,
            NewEntity,
            ObservationDraft,
            UtteranceDraft,
            DecisionDraft,
            GalleryWrite,
            PendingWrite,
            NameClaim,
            KeyFrameDraft,
        )
        for field in dataclasses.fields(kind)
    }
    assert everything - checked == set(), "a field of a draft is not looked at after it was stored"


def _trace(store: Store, draft: CommitDraft, done) -> set:
    assert draft.trace is not None
    record = store.trace(done.trace)
    assert record.text == shown(draft.trace.text)
    assert [(line.at, line.text) for line in record.lines] == [
        (line.at, shown(line.text)) for line in draft.trace.lines
    ]
    same = {"start", "end", "mode", "reason", "counts", "detail"}
    for name in same:
        assert getattr(record, name) == getattr(draft.trace, name)
    assert record.counts == SegmentCounts(750, 40, 20, 1, 2)
    assert record.entities == (1,)
    return {(TraceDraft, name) for name in same | {"text", "lines"}} | {(LineDraft, "at"), (LineDraft, "text")}


def _progress(store: Store, draft: CommitDraft) -> set:
    progress = draft.progress
    assert progress is not None
    info = progress.source
    record = store.source(info.camera, info.fingerprint, info.start)
    assert record is not None
    assert (record.camera, record.uri, record.fingerprint, record.start, record.duration) == (
        info.camera,
        info.uri,
        info.fingerprint,
        info.start,
        info.duration,
    )
    assert (record.position, record.next_segment, record.finished) == (30.0, 1, False)
    assert store.sources() == [record]
    assert store.cameras() == [CAMERA]
    return {(SourceProgress, name) for name in ("source", "position", "next_segment", "finished")}


def _parts(store: Store, draft: CommitDraft, done, person: int) -> set:
    checked = set()

    def look(kind: type, record: object, wanted: object, names: dict[str, object]) -> None:
        for field in dataclasses.fields(kind):
            expected = names.get(field.name, getattr(wanted, field.name))
            if expected is not APART:
                value = getattr(record, field.name)
                if isinstance(expected, np.ndarray):
                    np.testing.assert_array_equal(value, expected)
                else:
                    assert value == expected, (kind, field.name)
            checked.add((kind, field.name))

    entity = store.entity(person)
    assert entity.number == 1
    assert (entity.first_seen, entity.last_seen, entity.sightings) == (START + 2, START + 20, 1)
    look(NewEntity, entity, draft.entities[0], {"key": APART})
    for record, wanted in zip(store.observations(newest_first=False), draft.observations, strict=True):
        look(
            ObservationDraft,
            record,
            wanted,
            {"entity": wanted.entity and person, "text": shown(wanted.text)},
        )
        assert record.id in done.observations
    for record, wanted in zip(store.utterances(), draft.utterances, strict=True):
        look(UtteranceDraft, record, wanted, {"speaker": person, "speaker_name": "person 1"})
        assert (record.id,) == done.utterances
    for record, wanted in zip(store.decisions(trace=done.trace), draft.decisions, strict=True):
        look(DecisionDraft, record, wanted, {"entity": person})
    for record, wanted in zip(store.galleries(Modality.FACE), draft.gallery, strict=True):
        look(
            GalleryWrite,
            record,
            wanted,
            dict.fromkeys(("anchor", "crop", "samples", "pictured", "begun"), APART) | {"entity": person},
        )
        (face,) = store.crops(person)
        assert same_picture(face.jpeg, wanted.crop)
        assert (face.anchors, face.trace, face.at) == ((wanted.anchor,), done.trace, START + 2)
    for record, wanted in zip(store.pending(START), draft.pending, strict=True):
        look(PendingWrite, record, wanted, {"anchor": APART})
        assert record.observation == done.observations[0]
        assert (record.trace, record.camera, record.at) == (done.trace, CAMERA, START)
    for record, wanted in zip(store.name_claims(person), draft.names, strict=True):
        look(NameClaim, record, wanted, {"entity": person, "utterance": done.utterances[0]})
        assert record.at == draft.utterances[0].start
    for number, wanted in zip(done.key_frames, draft.key_frames, strict=True):
        frame = store.key_frame(number)
        look(KeyFrameDraft, frame, wanted, {"image": APART})
        assert same_picture(frame.jpeg, wanted.image)
        assert (frame.trace, frame.width, frame.height) == (done.trace, 64, 48)
    return checked


def test_the_vectors_of_the_texts_reach_the_index(store: Store) -> None:
    draft = segment(0)
    store.commit(draft)
    rows = store.rows(
        "select e.unit, e.vector from embedding e join text_embedder m on m.id = e.embedder where m.key = ?",
        (TEXT_MODEL,),
    )
    stored = {unit: np.frombuffer(blob, np.int8).astype(np.float32) for unit, blob in rows}
    for unit, wanted in enumerate((draft.vector, *draft.line_vectors)):
        assert float(stored[unit] @ wanted / np.linalg.norm(stored[unit])) > 0.99
    assert store.rows("select bits from word_signs") == [(draft.word_signs,)]


def test_evidence_that_was_used_or_has_expired_is_gone(store: Store) -> None:
    store.commit(segment(0))
    (waiting,) = store.pending(START)
    assert store.pending(START + 100) == []  # expired for who asks now
    assert store.pending(START, camera="door") == []
    store.commit(dataclasses.replace(segment(1, who=1), pending_used=(waiting.id,), pending=()))
    assert store.pending(START) == []
    store.commit(segment(2, who=1))
    (waiting,) = store.pending(START)
    store.commit(segment(9, who=1))  # starts after the expiry of what waits
    assert [kept.trace for kept in store.pending(START)] == [4]


# -- people and names -------------------------------------------------------------------------------------------------


def test_a_name_reaches_all_texts_already_stored(store: Store) -> None:
    store.commit(segment(0))
    store.commit(segment(1, who=1))
    store.set_name(1, "  Zoë \n Müller ")
    assert store.trace(1).text.startswith("Zoë Müller at a table")
    assert store.trace(2).lines[0].text == "Zoë Müller sits down."
    assert {seen.text for seen in store.observations(entity=1)} == {"Zoë Müller smiles."}
    assert {said.speaker_name for said in store.utterances(speaker=1)} == {"Zoë Müller"}
    assert store.titles() == {1: "Zoë Müller"}
    assert store.clear_name(1).title == "person 1"
    assert store.trace(1).text.startswith("Person 1 at")
    assert [(change.old_name, change.new_name, change.new_source) for change in store.name_history(1)] == [
        (None, "Zoë Müller", NameSource.USER),
        ("Zoë Müller", None, NameSource.NONE),
    ]


def test_names_keep_their_authority(store: Store) -> None:
    def heard(i: int, name: str, by: NameSource, who: int | None = 1) -> CommitDraft:
        draft = segment(i, who=who)
        return dataclasses.replace(draft, names=(NameClaim(who or -1, name, by, 0, True),))

    for i, (name, by, expected) in enumerate(
        [
            ("Ann", NameSource.ADDRESSED, "Ann"),
            ("Anna", NameSource.SELF, "Anna"),
            ("Bob", NameSource.ADDRESSED, "Anna"),  # lower: kept as a claim, changes nothing
            ("Hanna", NameSource.SELF, "Hanna"),
        ]
    ):
        store.commit(heard(i, name, by, who=1 if i else None))
        assert store.entity(1).name == expected
    store.set_name(1, "Eve")
    store.commit(heard(5, "Carol", NameSource.SELF))
    assert (store.entity(1).name, store.entity(1).name_source) == ("Eve", NameSource.USER)
    with pytest.raises(UserError, match="was named by you"):
        store.set_name(1, "Dan", NameSource.SELF)
    assert [claim.name for claim in store.name_claims(1)] == ["Ann", "Anna", "Bob", "Hanna", "Carol"]
    assert [change.new_name for change in store.name_history(1)] == ["Ann", "Anna", "Hanna", "Eve"]
    assert [change.claim for change in store.name_history(1)] == [1, 2, 4, None]


@pytest.mark.parametrize(
    "name", ["", "  \n", "x" * 101, "a\x00b", "a\ud800", "{{3}}", "person 4", "Voice 2", "\x1b[31m"]
)
def test_what_is_no_name_is_refused(store: Store, name: str) -> None:
    store.commit(segment(0))
    with pytest.raises(UserError):
        store.set_name(1, name)
    assert store.entity(1).name is None


@pytest.mark.parametrize("name", ["李雷", "O'Brien; drop table entity", 'Ann "the" AND (Lee', "👩‍🚀", "%_", "x" * 100])
def test_any_name_a_person_may_have_is_kept_and_found(store: Store, name: str) -> None:
    store.commit(segment(0))
    assert store.set_name(1, name).name == name
    assert [person.id for person in store.find_entities(name)] == [1]
    assert name[1:] in store.trace(1).text  # at the start of a sentence, with a capital


def test_people_are_found_by_any_of_their_names(store: Store) -> None:
    for i in range(3):
        store.commit(segment(i))
    store.commit(
        dataclasses.replace(
            replayed(4),
            entities=(NewEntity(-1, EntityKind.VOICE), NewEntity(-2, EntityKind.NAMED, "Tasha", NameSource.SELF)),
        )
    )
    store.set_name(1, "Zoë Müller")
    store.set_name(2, "Zoe")

    def found(text: str) -> list[int]:
        return [person.id for person in store.find_entities(text)]

    assert found("zoe muller") == found("ZOË  MÜLLER") == found("müller") == found("p1") == found(" P1 ") == [1]
    assert found("zoe") == [2]  # a whole name comes before a part of one
    assert found("person 3") == found("Person #3") == [3]
    assert found("person 1") == [1]  # what they were called before they had a name
    assert found("voice 1") == [4]
    assert found("tasha") == [5]
    assert found("") == found("t1") == found("p99") == found("nobody") == found("person 77") == []
    assert [person.id for person in store.entities(EntityKind.VOICE)] == [4]
    assert [person.title for person in store.entities()] == ["Zoë Müller", "Zoe", "person 3", "voice 1", "Tasha"]


def test_whoever_is_not_there_is_said(store: Store) -> None:
    for ask in (
        lambda: store.entity(1),
        lambda: store.entity(10**30),
        lambda: store.trace(1),
        lambda: store.key_frame(1),
        lambda: store.neighbours(1),
        lambda: store.set_name(1, "Ann"),
        lambda: store.clear_name(1),
    ):
        with pytest.raises(NotFoundError):
            ask()
    assert store.sightings(1) == store.crops(1) == store.name_history(1) == store.decisions(entity=1) == []


def test_sightings_have_their_start_and_end(store: Store) -> None:
    store.commit(segment(0))
    store.commit(segment(1))
    store.commit(segment(2, who=1))
    assert [(seen.start - START, seen.end - START, seen.trace, seen.camera) for seen in store.sightings(1)] == [
        (2, 20, 1, CAMERA),
        (62, 80, 3, CAMERA),
    ]
    person = store.entity(1)
    assert (person.first_seen - START, person.last_seen - START, person.sightings) == (2, 80, 2)


# -- asking -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def full(store: Store) -> Store:
    """Ten segments: the even ones in the hall with person 1, the odd ones at the door with person 2."""
    door = source("d" * 32, camera="door")
    for i in range(10):
        store.commit(segment(i, who=None if i < 2 else 1 + i % 2, info=door if i % 2 else None))
    return store


def ids(records) -> list[int]:
    return [record.id for record in records]


def test_traces_are_asked_by_time_place_and_who(full: Store) -> None:
    assert ids(full.traces()) == list(range(10, 0, -1))
    assert ids(full.traces(newest_first=False, limit=3)) == [1, 2, 3]
    assert ids(full.traces(camera="door")) == [10, 8, 6, 4, 2]
    assert ids(full.traces(entity=1, limit=2)) == [9, 7]
    assert ids(full.traces(label="cup", limit=1)) == [10]
    assert full.traces(label="dog") == full.traces(camera="cellar") == full.traces(entity=9) == []
    # A span takes what overlaps it; its ends do not touch.
    assert ids(full.traces(since=START + 30, until=START + 60)) == [2]
    assert ids(full.traces(since=START + 29, until=START + 61)) == [3, 2, 1]


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_follow_each_other_without_gaps(full: Store, newest_first: bool) -> None:
    pages: list[int] = []
    last = None
    while page := full.traces(limit=3, before_id=last, newest_first=newest_first):
        pages += ids(page)
        last = page[-1].id
    assert pages == (list(range(10, 0, -1)) if newest_first else list(range(1, 11)))


def test_neighbours_are_those_of_the_same_camera(full: Store) -> None:
    assert ids(full.neighbours(5, 1)) == [3, 5, 7]
    assert ids(full.neighbours(1, 2)) == [1, 3, 5]
    assert ids(full.neighbours(10, 99)) == [2, 4, 6, 8, 10]
    assert ids(full.neighbours(5, 0)) == [5]
    assert ids(full.traces_by_id([3, 99, 1, 3])) == [3, 1]


def test_observations_and_utterances_are_asked_alike(full: Store) -> None:
    assert [seen.trace for seen in full.observations(entity=2, limit=2)] == [10, 8]
    assert {seen.label for seen in full.observations(trace=4)} == {"person", "cup"}
    assert [seen.trace for seen in full.observations(label="cup", since=START + 30, until=START + 60)] == [2]
    assert [said.text for said in full.utterances(speaker=1, newest_first=False, limit=2)] == [
        "Sentence 0.",
        "Sentence 2.",
    ]
    assert [said.trace for said in full.utterances(since=START + 64.5, until=START + 65)] == [3]
    assert full.people_between(START + 60, START + 95) == [
        (1, "hall", START + 62, START + 80),
        (2, "door", START + 92, START + 110),
    ]
    assert full.people_between(START + 81, START + 91) == []
    assert [made.trace for made in full.decisions(entity=1)] == [9, 7, 5, 3, 1]
    assert [slot.slot for slot in full.galleries(Modality.FACE, FACE_MODEL) if slot.entity == 1] == [0, 2, 4, 6]
    assert full.galleries(Modality.VOICE) == full.galleries(Modality.FACE, "other") == []


def test_counts_say_how_much_there_is(full: Store) -> None:
    counts = full.counts()
    assert (counts.traces, counts.observations, counts.utterances, counts.entities, counts.key_frames) == (
        10,
        20,
        10,
        2,
        10,
    )
    assert (counts.first, counts.last) == (START, START + 10 * SEGMENT_S)
    assert counts.bytes > 10_000
    assert full.integrity() == []


def test_users_do_not_see_each_other(home: Path) -> None:
    with Store.open(home, user="ann") as ann, Store.open(home, user="bob") as bob:
        mine = ann.commit(dataclasses.replace(segment(0), user="ann"))
        theirs = bob.commit(dataclasses.replace(segment(0), user="bob"))
        assert mine.trace != theirs.trace
        assert (
            [person.title for person in ann.entities()] == [person.title for person in bob.entities()] == ["person 1"]
        )
        assert ids(bob.traces()) == [theirs.trace]
        with pytest.raises(NotFoundError):
            bob.trace(mine.trace)
        with pytest.raises(NotFoundError):
            bob.key_frame(mine.key_frames[0])
        assert bob.crops(mine.entities[-1]) == bob.sightings(mine.entities[-1]) == []
        with pytest.raises(StoreError, match="user “ann” was not written into the memory of “bob”"):
            bob.commit(dataclasses.replace(segment(1), user="ann"))
        assert bob.commit(segment(1)).trace == theirs.trace + 1  # nobody named: whose memory it is
        assert bob.counts().traces == 2
        with pytest.raises(StoreError, match="knows no entity"):
            bob.commit(dataclasses.replace(segment(2, who=mine.entities[-1]), user="bob"))


# -- hostile and odd content ------------------------------------------------------------------------------------------

ODD = [
    "",
    "\x00",
    "a\x00b",
    "\ud800",
    "'; drop table trace; --",
    "{{99999999999999999999999}}",
    "{{-7}}",
    "{{7}}",
    "😀" * 999,
    "‮evil",
    "x" * 100_000,
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_is_kept_and_harms_nothing(store: Store, text: str) -> None:
    draft = segment(0)
    done = store.commit(
        dataclasses.replace(
            draft,
            trace=dataclasses.replace(
                draft.trace, text=text, lines=(LineDraft(START, text),), detail={"text": "é", "n": [1, None]}
            ),
            utterances=(UtteranceDraft(START, START + 1, text, None, None, text or None),),
            observations=(dataclasses.replace(draft.observations[0], text=text, label=text or "person"),),
            decisions=(dataclasses.replace(draft.decisions[0], reason=text),),
        )
    )
    expected = shown(text.encode("utf-8", "replace").decode(), "someone")
    trace = store.trace(done.trace)
    assert trace.text == trace.lines[0].text == expected
    assert store.utterances()[0].text == text.encode("utf-8", "replace").decode()  # as it was said
    assert store.integrity() == []


def test_a_mention_in_a_name_is_not_followed(store: Store) -> None:
    store.commit(segment(0))
    store.commit(
        dataclasses.replace(replayed(1), entities=(NewEntity(-1, EntityKind.NAMED, "{{1}}", NameSource.SELF),))
    )
    assert store.titles() == {1: "person 1", 2: "{{1}}"}
    store.commit(dataclasses.replace(replayed(2), trace=dataclasses.replace(replayed(2).trace, text="{{2}} waves.")))
    assert store.trace(3).text == "{{1}} waves."


def test_pictures_are_scaled_to_the_setting(home: Path) -> None:
    with Store.open(home, MemorySettings(key_frame_max_px=160)) as store:
        done = store.commit(segment(0, frame=picture(1, 640, 480)))
        frame = store.key_frame(done.key_frames[0])
        assert (frame.width, frame.height) == (160, 120)
        assert same_picture(frame.jpeg, cv2.resize(picture(1, 640, 480), (160, 120), interpolation=cv2.INTER_AREA))


# -- opening, closing, threads ----------------------------------------------------------------------------------------


def test_a_memory_that_is_not_there_cannot_be_read(home: Path) -> None:
    with pytest.raises(NotFoundError, match="start one with `reflectworld watch"):
        Store.open(home, readonly=True)
    assert not home.exists()


def test_a_file_in_place_of_the_home_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match="set REFLECTWORLD_HOME to a folder"):
        Store.open(tmp_path / "home")
    with pytest.raises(StoreError):
        Store.open(tmp_path / "home" / "below")


def test_a_reader_cannot_write_and_a_closed_store_can_nothing(home: Path) -> None:
    store = Store.open(home)
    store.commit(segment(0))
    with Store.open(home, readonly=True) as reader:
        assert reader.counts().traces == 1
        with pytest.raises(StoreError, match="for reading only"):
            reader.commit(segment(1, who=1))
        with pytest.raises(StoreError, match="cannot be written"):
            reader.rows("delete from trace")
    store.close()
    store.close()
    for use in (
        lambda: store.commit(segment(1, who=1)),
        store.counts,
        lambda: store.titles(),
        lambda: store.data_version(),
    ):
        with pytest.raises(StoreError, match="is closed"):
            use()


def test_threads_read_while_one_writes(home: Path) -> None:
    """Every reader sees whole segments only, and never fewer than before."""
    failures: list[str] = []
    stop = threading.Event()
    with Store.open(home) as store, Store.open(home, readonly=True) as other:
        store.commit(segment(0))

        def read(reader: Store) -> None:
            seen = 0
            while not stop.is_set():
                traces = reader.traces(limit=1000)
                if len(traces) < seen:
                    failures.append("traces went away")
                seen = len(traces)
                for trace in traces[:3]:
                    if (
                        len(trace.lines) != 2
                        or len(trace.utterances) != 1
                        or len(trace.key_frames) != 1
                        or trace.entities != (1,)
                    ):
                        failures.append(f"half a segment: {trace}")
                    if not reader.key_frame(trace.key_frames[0]).jpeg:
                        failures.append("no picture")

        threads = [threading.Thread(target=read, args=(reader,)) for reader in (store, store, other)]
        for thread in threads:
            thread.start()
        for i in range(1, 40):
            store.commit(segment(i, who=1))
        stop.set()
        for thread in threads:
            thread.join()
        assert failures == []
        assert other.counts().traces == 40


def test_a_reader_is_told_when_the_memory_is_closed_under_it(home: Path) -> None:
    store = Store.open(home)
    store.commit(segment(0))
    reading, closed = threading.Event(), threading.Event()

    def read() -> None:
        with store.reading() as connection:
            for _ in connection.execute("select text from line"):
                reading.set()
                assert closed.wait(30)

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        assert reading.wait(30)
        store.close()
        closed.set()
        with pytest.raises(StoreError, match="is closed"):
            reader.result(30)
    with Store.open(home) as again:
        assert again.integrity() == []


def test_the_data_version_tells_of_other_hands_only(home: Path) -> None:
    with Store.open(home) as store, Store.open(home) as other, Store.open(home, readonly=True) as reader:
        store.commit(segment(0))
        before = store.data_version(), other.data_version(), reader.data_version()
        store.commit(segment(1, who=1))
        assert store.data_version() == before[0]
        assert other.data_version() != before[1]
        assert reader.data_version() != before[2]
        before = store.data_version()
        other.set_name(1, "Ann")
        after = store.data_version()
        assert after != before
        store.set_name(1, "Eve")
        assert store.data_version() != after
        assert store.data_version() == store.data_version()


def test_work_that_is_claimed_cannot_be_claimed_twice(home: Path) -> None:
    with Store.open(home) as store, Store.open(home) as other:
        assert store.claims() == []
        with store.claim("camera hall", "reflectworld watch a.mp4"):
            assert [words.startswith("`reflectworld watch a.mp4` (pid ") for words in other.claims()] == [True]
            with (
                pytest.raises(
                    StoreError, match=r"`reflectworld watch a.mp4` \(pid \d+\) is at it already \(camera hall\)"
                ),
                other.claim("camera hall", "reflectworld watch b.mp4"),
            ):
                pytest.fail("claimed twice")
            with other.claim("camera door", "reflectworld watch c.mp4"):
                assert len(store.claims()) == 2
        with other.claim("camera hall", "reflectworld watch b.mp4"):
            pass
        assert store.claims() == []


def test_two_writers_on_one_home_mix_nothing_up(home: Path) -> None:
    """Two processes' worth of stores: ids come from the database, the second of two equal sources is refused."""
    with Store.open(home) as one, Store.open(home) as two:
        first = one.commit(segment(0))
        second = two.commit(segment(0, info=source("e" * 32, camera="door")))
        assert (first.trace, first.entities[-1], second.trace, second.entities[-1]) == (1, 1, 2, 2)
        with pytest.raises(StoreError, match=r"is remembered up to 30\.0 s already"):
            two.commit(segment(0))
        done = []
        threads = [
            threading.Thread(
                target=lambda s=s, w=w, f=f: done.extend(
                    s.commit(segment(i, who=w, info=f)).trace for i in range(1, 15)
                )
            )
            for s, w, f in ((one, 1, source()), (two, 2, source("e" * 32, camera="door")))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == list(range(3, 31))
        assert {trace.entities for trace in one.traces(camera="hall")} == {(1,)}
        assert {trace.entities for trace in one.traces(camera="door")} == {(2,)}
        assert one.integrity() == []
