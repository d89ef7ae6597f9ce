"""Samples: what was offered to galleries is kept, and galleries made again from it are the same to the bit."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.identity import GalleryFold, Identifier
from edge.memory import Store, samples
from edge.settings import IdentitySettings
from edge.types.drafts import GalleryWrite, SampleDraft
from edge.types.records import Modality
from tests.identity_support import direction, draft, near, segment, track, voice
from tests.memory_support import FACE_MODEL, picture, vector
from tests.memory_support import segment as drafted

ROOM = IdentitySettings(face_slots=3, voice_slots=2)


def rows_of_galleries(store: Store) -> list[tuple[object, ...]]:
    """Galleries with what they rest on and the pictures that they show."""
    return store.rows(
        "select g.entity, g.modality, g.embedder, g.slot, hex(g.embedding), g.quality, g.count, g.observation, r.sample,"
        " (select json_group_array(source_kind || source) from (select * from provenance p where p.item_kind = 'gallery'"
        " and p.item = g.id order by p.source_kind, p.source))"
        " from gallery g left join crop r on r.gallery = g.id order by 1, 2, 3, 4"
    )


def made_again(store: Store) -> None:
    fold = GalleryFold(samples.voices(store.connection(), store.user))
    with store.reading() as connection:
        samples.feed(connection, store.user, fold)
    store.transact(lambda memory: samples.write_galleries(memory, store.user, fold.slots()))


def test_a_sample_comes_back_whole(tmp_path: Path) -> None:
    face = SampleDraft(-1, Modality.FACE, FACE_MODEL, vector(1), 61.5, "a1", 8, 0.25, 0.4, picture(3, 112, 112))
    first = dataclasses.replace(face, embedding=vector(2), quality=50.0, crop=None)
    slot = GalleryWrite(
        -1, Modality.FACE, 0, FACE_MODEL, vector(1), 61.5, 2, "a1", face.crop, samples=(0, 1), pictured=1, begun=True
    )
    with Store.open(tmp_path) as store:
        done = store.commit(dataclasses.replace(drafted(0), samples=(first, face), gallery=(slot,)))

        class Fold:
            def add(self, segment: object) -> None:
                self.segment = list(segment)  # type: ignore[call-overload]

            def slots(self) -> list[object]:
                return []

        fold = Fold()
        assert samples.feed(store.connection(), store.user, fold) == 2
        for (number, kept), wanted in zip(fold.segment, (first, face), strict=True):
            for field in dataclasses.fields(SampleDraft):
                value, expected = getattr(kept, field.name), getattr(wanted, field.name)
                if field.name == "embedding":
                    np.testing.assert_array_equal(value, expected)
                elif field.name == "crop":
                    assert (value is None) == (expected is None)
                else:
                    assert value == (done.entities[-1] if field.name == "entity" else expected), (number, field.name)
        (crop,) = store.crops(done.entities[-1])
        pixels = cv2.imdecode(np.frombuffer(crop.jpeg, np.uint8), cv2.IMREAD_COLOR)
        assert np.abs(pixels.astype(int) - face.crop.astype(int)).mean() < 4
        assert (crop.trace, crop.anchors) == (done.trace, ("a1",))
        assert store.integrity() == []
        store.transact(lambda memory: memory.execute("delete from trace"))
        assert store.rows("select id from sample union all select id from crop") == []


visits = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.97, 0.9, 0.75, 0.6]), st.booleans()), max_size=3),
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=2),
    ),
    min_size=1,
    max_size=10,
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(visits)
def test_galleries_made_again_are_the_same_to_the_bit(
    stream: list[tuple[list[tuple[int, float, bool]], list[tuple[int, bool]]]],
) -> None:
    """Live decisions over faces, bodies and voices of four people, against a fold over their samples."""
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        room = Identifier(store, ROOM, user=store.user)
        for turn, (faces, heard) in enumerate(stream):
            tracks = [
                track(
                    f"a{place}",
                    near(direction(who), cosine, 100 * turn + place),
                    place * 3.0,
                    place * 3.0 + 2,
                    body=near(direction(50 + who), 0.9, turn) if dressed else None,
                    norm=60.0 + (turn * 7 + place) % 10,
                )
                for place, (who, cosine, dressed) in enumerate(faces)
            ]
            voices = [
                voice(
                    f"v{place}",
                    near(direction(90 + who), 0.8, 1000 + 10 * turn + place),
                    4.0 + turn % 3,
                    on="a0" if seen and tracks else None,
                )
                for place, (who, seen) in enumerate(heard)
            ]
            said = [("Good.", found.anchor) for found in voices]
            evidence = segment(tracks, voices, said, start=turn * 20.0, end=turn * 20.0 + 10)
            resolution = room.resolve(evidence)
            room.committed(resolution, store.commit(draft(evidence, resolution)))
        before = rows_of_galleries(store)
        made_again(store)
        assert rows_of_galleries(store) == before
        assert store.integrity() == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_thousand_samples_are_folded_again_in_seconds() -> None:
    """A hundred people, 200 sightings each; prints what one fold takes."""
    import time

    chance = np.random.default_rng(0)
    people = chance.normal(size=(100, 512))
    fold = GalleryFold(())
    began = time.perf_counter()
    for number in range(20_000):
        one = people[number % 100] + chance.normal(size=512) * 0.6
        unit = (one / np.linalg.norm(one)).astype(np.float32)
        quality = float(chance.uniform(50, 70))
        fold.add([(number, SampleDraft(number % 100 + 1, Modality.FACE, "f", unit, quality, "a1", 8, 0.2, 0.4))])
    took = time.perf_counter() - began
    print(f"20,000 samples of 100 people: {took:.1f} s")
    assert len(fold.slots()) == 800
