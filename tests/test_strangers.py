"""People without a name: enrolled, only with consent, or not at all; and how long they stay known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from edge.app.keeping import expire_strangers
from edge.identity import Identifier, Resolution, resolve
from edge.memory import Store
from edge.serve import build_app
from edge.settings import IdentitySettings
from edge.types.evidence import SegmentEvidence
from edge.types.records import EntityKind, Modality, NameSource, Outcome
from tests.command import Command, reflectworld
from tests.forget_support import scene
from tests.identity_support import T0, direction, draft, known, near, segment, track, voice, waits
from tests.serve_support import LOCAL, Keys, call, service_on

__all__ = ["reflectworld"]

NONE = IdentitySettings(strangers="none")
CONSENT = IdentitySettings(strangers="consent", consent_days=3)
ANN, BEN = 1, 2  # seeds of faces; 40 and 41 beyond them of voices
DAY = 86_400.0

# Somebody in a segment: a seed (3 and 4 are never known), how like them, seen or heard, what they say.
sights = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, 4]),
        st.sampled_from([0.97, 0.9, 0.62, 0.56, 0.5]),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["Hello there.", "I am Carla.", "Hello Ann.", ""]),
    ),
    max_size=3,
)


def evidence_of(people: list[tuple[int, float, bool, bool, str]], start: float = 0.0) -> SegmentEvidence:
    tracks, voices, said = [], [], []
    for place, (seed, cosine, visible, speaks, words) in enumerate(people):
        if visible:
            body = near(direction(70 + seed), 0.95, place)
            face = near(direction(seed), cosine, place)
            tracks.append(track(f"a{place}", face, start, start + 5, x=0.1 + 0.3 * place, body=body))
        if speaks:
            sound = near(direction(40 + seed), cosine, 9 + place)
            voices.append(voice(f"v{place}", sound, 5.0, on=f"a{place}" if visible else None))
            if words:
                said.append((words, f"v{place}"))
    return segment(tracks, voices, said, start=start, end=start + 10)


@given(sights, st.booleans())
@hypothesis_settings(max_examples=150)
def test_under_none_no_vector_of_an_unnamed_person_is_ever_written(
    people: list[tuple[int, float, bool, bool, str]], ben_agreed: bool
) -> None:
    state = known(
        {1: [direction(ANN)], 2: [direction(BEN)]},
        {1: [direction(41)], 2: [direction(42)]},
        names={1: ("Ann", NameSource.USER)},
        waiting=[waits(7, near(direction(3), 0.9, 1)), waits(8, near(direction(43), 0.9, 1), Modality.VOICE)],
        agreed=frozenset({2} if ben_agreed else ()),
    )
    evidence = evidence_of(people)
    usual, kept = resolve(evidence, state, IdentitySettings()), resolve(evidence, state, NONE)
    welcome = {1, 2} if ben_agreed else {1}
    welcome |= {claim.entity for claim in kept.names if claim.accepted}
    assert kept.entities == ()
    assert {one.entity for one in kept.samples} <= welcome
    assert {one.entity for one in kept.gallery} <= welcome
    assert all(kept.assigned.get(one.anchor) in welcome for one in kept.pending)
    assert all(who is None or who > 0 for who in kept.assigned.values())
    assert all(one.entity is None or one.entity > 0 for one in kept.decisions)
    # Who has a name is decided about and learned as ever.
    assert {a for a, who in kept.assigned.items() if who} == {a for a, who in usual.assigned.items() if who and who > 0}
    mine = [(one.entity, one.slot, one.embedding.tobytes()) for one in usual.gallery if one.entity in welcome]
    assert [(one.entity, one.slot, one.embedding.tobytes()) for one in kept.gallery] == mine
    for slot in kept.gallery:
        for place in slot.samples:
            assert kept.samples[place].entity == slot.entity


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


def live(store: Store, settings: IdentitySettings, evidence: SegmentEvidence) -> Resolution:
    identifier = Identifier(store, settings, user=store.user)
    resolution = identifier.resolve(evidence)
    identifier.committed(resolution, store.commit(draft(evidence, resolution)))
    return resolution


def age(store: Store) -> None:
    """Let everything have come into the memory when it happened."""
    store.transact(lambda memory: memory.execute("update trace set ingested = end") and None)


def vectors_of(store: Store) -> set[int]:
    rows = store.rows("select entity from sample union select entity from gallery")
    return {who for (who,) in rows}


def test_a_stranger_is_seen_and_not_known(store: Store) -> None:
    done = live(store, NONE, evidence_of([(3, 0.97, True, True, "I am Carla.")]))
    assert store.entities() == []
    assert done.decisions[0].outcome is Outcome.UNSAFE
    assert "not enrolled" in done.decisions[0].reason
    assert store.rows("select count(*) from observation")[0][0] == 1
    assert vectors_of(store) == set()
    assert store.rows("select count(*) from pending") == [(0,)]


def test_who_is_named_is_still_known_and_who_is_not_expires(store: Store) -> None:
    for place, seed in enumerate((1, 2)):
        live(store, IdentitySettings(), evidence_of([(seed, 0.97, True, False, "")], start=20.0 * place))
    ann, ben = (one.id for one in store.entities(EntityKind.PERSON))
    store.set_name(ann, "Ann")
    assert vectors_of(store) == {ann, ben}
    assert expire_strangers(store, NONE) == 1
    assert vectors_of(store) == {ann}
    assert store.crops(ben) == []
    assert store.integrity() == []
    again = live(store, NONE, evidence_of([(1, 0.9, True, False, ""), (2, 0.97, True, False, "")], start=60.0))
    assert set(again.assigned.values()) == {ann, None}
    assert store.entity(ben).sightings == 1


def test_an_agreed_stranger_stays_known(store: Store) -> None:
    for place, seed in enumerate((1, 2)):
        live(store, CONSENT, evidence_of([(seed, 0.97, True, False, "")], start=20.0 * place))
    first, second = (one.id for one in store.entities())
    age(store)
    store.agree(first)
    assert store.agreed() == {first}
    assert expire_strangers(store, CONSENT, now=T0 + 2 * DAY) == 0
    assert expire_strangers(store, CONSENT, now=T0 + 4 * DAY) == 1
    assert vectors_of(store) == {first}
    known_again = live(store, CONSENT, evidence_of([(1, 0.95, True, False, "")], start=4 * DAY))
    assert set(known_again.assigned.values()) == {first}
    new_again = live(store, CONSENT, evidence_of([(2, 0.95, True, False, "")], start=5 * DAY))
    assert new_again.entities
    assert second not in new_again.assigned.values()


def test_who_was_not_seen_for_long_expires_if_so_wished(store: Store) -> None:
    live(store, IdentitySettings(), evidence_of([(1, 0.97, True, True, "")]))
    live(store, IdentitySettings(), evidence_of([(2, 0.97, True, True, "")], start=9 * DAY))
    # What was recorded long ago and is watched today leaves as much time.
    assert expire_strangers(store, IdentitySettings(stranger_days=5), now=T0 + 10 * DAY) == 0
    assert expire_strangers(store, CONSENT, now=T0 + 10 * DAY) == 0
    age(store)
    assert expire_strangers(store, IdentitySettings(), now=T0 + 900 * DAY) == 0
    assert expire_strangers(store, IdentitySettings(stranger_days=5), now=T0 + 10 * DAY) == 1
    assert vectors_of(store) == {store.entities()[1].id}


def test_somebody_is_allowed_on_the_command_line_and_over_the_api(home: Path, reflectworld: Command) -> None:
    with Store.open(home) as opened:
        opened.commit(scene(0, [-1]))
        opened.commit(scene(1, [-2]))
    assert json.loads(reflectworld("people", "allow", "p1", "--json").out)["id"] == "p1"
    assert reflectworld("people", "allow", "p9").code == 2
    with Store.open(home) as opened:
        app: FastAPI = build_app(service_on(opened), Keys(LOCAL))
        assert call(app, "POST", "/api/v1/people/p2/allow").json()["id"] == "p2"
        assert opened.agreed() == {1, 2}
