"""Corrections of what was seen and heard in real media, with the real networks."""

from __future__ import annotations

from pathlib import Path

import pytest

from edge.app import Watch, open_rooms
from edge.identity import merge_people, not_this_person
from edge.memory import Store
from edge.settings import load_settings
from edge.types.media import Mode
from edge.types.records import EntityKind, Kind
from tests.corrections_support import differences, dump

START = 1_767_600_000.0


def watch(home: Path, clip: Path, camera: str, start: float) -> None:
    with open_rooms(load_settings(home)) as rooms:
        Watch(rooms, str(clip), camera=camera, start=start, mode=Mode.OFFLINE_QUALITY).run()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_people_who_were_merged_are_split_again_and_both_found_afterwards(shared: Path, home: Path) -> None:
    clip = shared / "media" / "derived" / "intel_reappear.mp4"
    watch(home, clip, "hall", START)
    with Store.open(home) as store:
        people = [one for one in store.entities() if one.kind is EntityKind.PERSON]
        first, second = people[:2]
        before = dump(store)
        theirs = [one.id for one in store.observations(entity=second.id)]
        merge_people(store, first.id, second.id)
        assert [one.id for one in store.entities() if one.kind is EntityKind.PERSON] == [
            one.id for one in people if one != second
        ]
        assert store.entity(first.id).sightings == first.sightings + second.sightings
        moved = not_this_person(store, first.id, [(Kind.OBSERVATION, number) for number in theirs])
        assert differences(dump(store), before) == {}  # the same but for an id
        apart = {first.id, moved.other}
    watch(home, clip, "door", START + 86_400.0)
    with Store.open(home) as store:
        again = {one.entity for one in store.observations(label="person", since=START + 80_000.0)} - {None}
        assert again == {one.id for one in people if one != second} | {moved.other}
        for one in (first.id, moved.other):
            assert store.entity(one).sightings == 2 * (first if one == first.id else second).sightings
        assert apart <= again
        assert store.integrity() == []
