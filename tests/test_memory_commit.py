"""The critical commit: whole or not at all, forward only, with a provenance for every row."""

from __future__ import annotations

import dataclasses
import statistics
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.errors import StoreError
from edge.memory import Store
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
from edge.types.media import Mode
from edge.types.records import EntityKind, Modality, NameSource, Outcome
from tests.memory_support import CAMERA, FACE_MODEL, START, picture, segment, source, vector

TABLES = (
    "camera", "source", "trace", "line", "entity", "observation", "utterance", "decision", "gallery", "pending",
    "name_claim", "name_history", "key_frame", "crop", "provenance", "embedder", "entity_number", "words", "embedding",
)  # fmt: skip


@pytest.fixture
def store(home: Path):
    with Store.open(home) as store:
        yield store


def dump(store: Store) -> dict[str, list]:
    return {table: store.rows(f"select * from {table}") for table in TABLES}


BAD = {
    "a NaN in a face": {"gallery": (GalleryWrite(-1, Modality.FACE, 0, "m", np.full(4, np.nan, np.float32), 1.0, 1, "a1"),)},
    "a zero face": {"gallery": (GalleryWrite(-1, Modality.FACE, 0, "m", np.zeros(4, np.float32), 1.0, 1, "a1"),)},
    "an infinite vector": {"vector": np.full(384, np.inf, np.float32)},
    "a matrix": {"pending": (PendingWrite("a1", Modality.FACE, "m", np.ones((2, 2), np.float32), 1.0, START),)},
    "an empty vector": {"pending": (PendingWrite("a1", Modality.FACE, "m", np.ones(0, np.float32), 1.0, START),)},
    "a face of another length": {"gallery": (GalleryWrite(-1, Modality.FACE, 0, FACE_MODEL, vector(1, 191), 1.0, 1, "a1"),)},
    "a text of another length": {"vector": vector(1, 383), "line_vectors": ()},
    "vectors of lines alone": {"vector": None},
    "an entity that nobody makes": {"entities": ()},
    "an entity that is not there": {"observations": (ObservationDraft("a1", "person", 99, START, START, "", 0.5),)},
    "two entities with one key": {"entities": (NewEntity(-1, EntityKind.PERSON), NewEntity(-1, EntityKind.VOICE))},
    "a positive key": {"entities": (NewEntity(1, EntityKind.PERSON), NewEntity(-1, EntityKind.PERSON))},
    "a name nobody said": {"names": (NameClaim(-1, "Ann", NameSource.SELF, 1, False),)},
    "time backwards": {"trace": TraceDraft(START + 30, START, "", Mode.OFFLINE_QUALITY, None)},
    "no time": {"trace": TraceDraft(float("nan"), START, "", Mode.OFFLINE_QUALITY, None)},
    "a picture without size": {"key_frames": (KeyFrameDraft(START, np.zeros((0, 4, 3), np.uint8)),)},
    "a grey picture": {"key_frames": (KeyFrameDraft(START, np.zeros((4, 4), np.uint8)),)},
    "a picture of fractions": {"key_frames": (KeyFrameDraft(START, np.zeros((4, 4, 3), np.float32)),)},
    "nothing that is something": {"trace": None},
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_draft_that_cannot_be_written_leaves_nothing(store: Store, what: str) -> None:
    store.commit(segment(0, info=source("0" * 32)))
    before = dump(store)
    with pytest.raises(StoreError):
        store.commit(dataclasses.replace(segment(1), **BAD[what]))
    assert dump(store) == before
    assert store.commit(segment(1)).trace == 2  # and the next one has the next ids
    assert store.integrity() == []


def test_a_source_goes_forward_only(store: Store) -> None:
    info = source()
    store.commit(segment(0))
    store.commit(segment(3, who=1))
    for again in (0, 2, 3):
        with pytest.raises(StoreError, match=r"remembered up to 120\.0 s already"):
            store.commit(segment(again, who=1))
    skipped = CommitDraft(CAMERA, None, SourceProgress(info, 150.0, 5))
    assert store.commit(skipped).trace is None
    assert store.source(CAMERA, info.fingerprint, info.start).position == 150.0
    with pytest.raises(StoreError, match="remembered up to"):
        store.commit(CommitDraft(CAMERA, None, SourceProgress(info, 149.0, 5)))
    store.commit(CommitDraft(CAMERA, None, SourceProgress(info, 150.0, 5, finished=True)))  # only says that it is done
    assert store.source(CAMERA, info.fingerprint, info.start).finished
    # The same file at another time or another camera is another source.
    assert store.source(CAMERA, info.fingerprint, info.start + 1) is None
    assert store.commit(segment(0, who=1, info=source(camera="door"))).trace == 3


def test_the_first_commit_of_an_image_is_at_zero(store: Store) -> None:
    draft = dataclasses.replace(segment(0), progress=SourceProgress(source(), 0.0, 1, True))
    store.commit(draft)
    with pytest.raises(StoreError, match="already"):
        store.commit(dataclasses.replace(segment(0, who=1), progress=SourceProgress(source(), 0.0, 1, True)))


def test_a_slot_that_is_written_again_keeps_its_place_and_its_newest_face(store: Store) -> None:
    store.commit(segment(0))
    (first,) = store.galleries(Modality.FACE)
    again = GalleryWrite(1, Modality.FACE, 0, FACE_MODEL, vector(99), 77.0, 2, "a1", picture(9, 112, 112))
    store.commit(dataclasses.replace(segment(1, who=1), gallery=(again,)))
    (slot,) = store.galleries(Modality.FACE)
    assert (slot.id, slot.quality, slot.count) == (first.id, 77.0, 2)
    np.testing.assert_array_equal(slot.embedding, vector(99))
    assert [face.trace for face in store.crops(1)] == [2]
    origins = "select source from provenance where item_kind = 'gallery' and item = ? order by source"
    assert store.rows(origins, (slot.id,)) == [(1,), (3,)]  # both sightings are in the mean
    store.commit(dataclasses.replace(segment(2, who=1), gallery=(dataclasses.replace(again, count=1, crop=None),)))
    assert store.rows(origins, (slot.id,)) == [(5,)]  # begun anew
    assert [face.trace for face in store.crops(1)] == [2]  # the last picture there is
    # The face that was replaced leaves frames.db as well.
    deadline = time.monotonic() + 10
    while store.rows("select * from discarded") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert store.rows("select * from discarded") == []
    assert store.integrity() == []


def test_numbers_of_people_and_voices_count_apart(store: Store) -> None:
    kinds = (EntityKind.PERSON, EntityKind.VOICE, EntityKind.PERSON, EntityKind.NAMED, EntityKind.VOICE)
    entities = tuple(NewEntity(-i, kind) for i, kind in enumerate(kinds, 1))
    done = store.commit(dataclasses.replace(segment(0), entities=entities))
    titles = [store.entity(done.entities[-i]).title for i in range(1, 6)]
    assert titles == ["person 1", "voice 1", "person 2", "person 3", "voice 2"]
    assert len(set(titles)) == 5


# -- provenance -------------------------------------------------------------------------------------------------------

DERIVED = {
    "trace": "trace",
    "observation": "observation",
    "utterance": "utterance",
    "decision": "decision",
    "gallery": "gallery",
    "pending": "pending",
    "key_frame": "key_frame",
    "crop": "crop",
    "name_claim": "name_claim",
    "entity": "entity",
}


@st.composite
def drafts(draw: st.DrawFn) -> list[CommitDraft]:
    """A few segments with any mixture of contents; people of one segment come back in later ones."""
    out: list[CommitDraft] = []
    known = 0
    for i in range(draw(st.integers(1, 4))):
        base = segment(i)
        new = draw(st.integers(0, 3))
        kinds = draw(st.lists(st.sampled_from(EntityKind), min_size=new, max_size=new))
        keys = [-k for k in range(1, new + 1)] + list(range(1, known + 1))
        some = st.one_of(st.none(), st.sampled_from(keys)) if keys else st.none()
        number = st.integers(0, 3)
        observations = tuple(
            ObservationDraft(f"a{n}", "person", draw(some), base.trace.start, base.trace.end, "", 0.5)
            for n in range(draw(number))
        )
        utterances = tuple(
            UtteranceDraft(base.trace.start, base.trace.end, "Hello.", draw(some), "v1") for _ in range(draw(number))
        )
        anchors = st.sampled_from(["a0", "a1", "a2", "v1"])
        out.append(
            dataclasses.replace(
                base,
                trace=dataclasses.replace(base.trace, text="Something.", lines=()),
                entities=tuple(NewEntity(-k, kind) for k, kind in enumerate(kinds, 1)),
                observations=observations,
                utterances=utterances,
                decisions=tuple(
                    DecisionDraft(draw(anchors), draw(st.sampled_from(Outcome)), draw(some), "So.", {})
                    for _ in range(draw(number))
                ),
                gallery=tuple(
                    GalleryWrite(
                        draw(st.sampled_from(keys)), Modality.FACE, draw(number), FACE_MODEL, vector(n), 1.0,
                        draw(st.integers(1, 3)), draw(anchors), picture(n) if draw(st.booleans()) else None,
                    )
                    for n in range(draw(number) if keys else 0)
                ),
                pending=tuple(
                    PendingWrite(draw(anchors), Modality.FACE, FACE_MODEL, vector(n), 1.0, base.trace.end + draw(number) * 20)
                    for n in range(draw(number))
                ),
                names=tuple(
                    NameClaim(draw(st.sampled_from(keys)), "Ann", NameSource.SELF, 0, draw(st.booleans()))
                    for _ in range(draw(number) if keys and utterances else 0)
                ),
                key_frames=tuple(KeyFrameDraft(base.trace.start, picture(n), ("a0",)) for n in range(draw(number))),
                line_vectors=(),
            )
        )  # fmt: skip
        known += new
    return out


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(segments=drafts())
def test_every_row_leads_back_to_its_source(
    tmp_path_factory: pytest.TempPathFactory, segments: list[CommitDraft]
) -> None:
    with Store.open(tmp_path_factory.mktemp("home")) as store:
        for draft in segments:
            store.commit(draft)
        edges: dict[tuple[str, int], set[tuple[str, int]]] = {}
        for kind, item, source_kind, origin in store.rows("select * from provenance"):
            edges.setdefault((kind, item), set()).add((source_kind, origin))
        there = {
            (kind, number)
            for kind, table in (DERIVED | {"source": "source"}).items()
            for (number,) in store.rows(f"select id from {table}")
        }
        assert set(edges) <= there, "provenance of a row that is not there"
        assert {end for ends in edges.values() for end in ends} <= there, "a row that is not there as an origin"
        for item in there:
            reached, frontier = set(), {item}
            while frontier:
                reached |= frontier
                frontier = {end for start in frontier for end in edges.get(start, ())} - reached
            assert any(kind == "source" for kind, _ in reached), f"{item} leads nowhere: {reached}"
        assert store.integrity() == []


# -- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_commit_costs_the_same_after_twenty_thousand(home: Path) -> None:
    """Median of 300 commits at the beginning and at the end; pictures are left out, since they cost the same anyhow."""
    took: list[float] = []
    with Store.open(home) as store:
        store.commit(segment(0))
        for i in range(1, 20_000):
            draft = dataclasses.replace(segment(i, who=1, crop=False), key_frames=())
            began = time.perf_counter()
            store.commit(draft)
            took.append(time.perf_counter() - began)
    first, last = statistics.median(took[100:400]), statistics.median(took[-300:])
    print(f"commit: {first * 1e3:.2f} ms at the beginning, {last * 1e3:.2f} ms after 20,000: ratio {last / first:.2f}")
    assert last / first <= 1.2


def test_what_cannot_be_put_into_words_of_a_file_is_refused(store: Store) -> None:
    draft = segment(0)
    for detail in ({"x": object()}, {"x": "\ud800"}):
        with pytest.raises(StoreError, match=r"was not written: .*\.$"):
            store.commit(dataclasses.replace(draft, trace=dataclasses.replace(draft.trace, detail=detail)))
    odd = dataclasses.replace(draft, camera="\udcff", progress=SourceProgress(source(), 30.0, 1))
    assert store.trace(store.commit(odd).trace).camera == "?"
    assert store.integrity() == []
