"""Forgetting in a memory in which every table has something: nothing is left anywhere, and the rest holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from edge.identity import RULES
from edge.memory import Store, Target
from edge.memory.upkeep import exporting, importing
from edge.memory.upkeep.plans import Plan
from edge.settings import MemorySettings
from edge.types.records import Kind
from tests.forget_support import evidence_of, leftovers, raw_pages
from tests.full_memory import NAME, SECRETS, START, Cast, empty_tables, fill, vectors, work
from tests.store_faults import derived, state, unlike


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Cast]:
    home = tmp_path_factory.mktemp("lived") / "home"
    cast = fill(home)
    with Store.open(home, readonly=True) as store:
        assert empty_tables(store) == ["forgotten"], "fill these in tests/full_memory.py, so that forgetting is tested"
    return home, cast


@pytest.fixture
def home(lived: tuple[Path, Cast], tmp_path: Path) -> Path:
    return Path(shutil.copytree(lived[0], tmp_path / "home"))


def forget(store: Store, target: Target) -> Plan:
    planned = store.forget_plan(target)
    store.forget(planned, RULES)
    return planned


def counted(store: Store) -> dict[str, int]:
    """What a preview counts, as it is."""
    return {
        what: store.rows(f"select count(*) from {table}")[0][0]
        for what, table in (
            ("people or voices", "entity where merged_into is null"),
            ("moments", "trace"),
            ("sightings", "observation"),
            ("spoken sentences", "utterance"),
            ("pictures", "key_frame"),
            ("faces and voices", "sample"),
            ("rules", "rule"),
            ("messages", "alert"),
            ("questions", "answer"),
        )
    }


def needles(store: Store, cast: Cast) -> tuple[list[str], list[bytes]]:
    words = [*NAME.split(), *SECRETS, f"scarf{cast.anna % 97}.", f"{{{{{cast.anna}}}}}", f"{{{{{cast.anna}:"]
    return words, [*evidence_of(store, cast.anna), *vectors(store, cast.anna)]


def test_nothing_of_a_person_is_left_in_any_tier(home: Path, lived: tuple[Path, Cast]) -> None:
    cast = lived[1]
    with Store.open(home) as store:
        strings, blobs = needles(store, cast)
        assert (
            len({one.rpartition(" in ")[2] for one in leftovers(home, strings, blobs) if " in a row of " in one}) > 25
        )
        before = counted(store)
        planned = forget(store, Target(person=cast.anna))
        assert leftovers(home, strings, blobs) == []
        after = counted(store)
        shown = dict(planned.counts)
        assert {what: before[what] - after[what] for what in after} == {what: shown[what] for what in after}
        work(store)
        assert store.integrity() == []
        assert store.entity(cast.marta).name == "Marta"
        assert any(one.name == "Cleo" for one in store.entities()), "who is only spoken of stays"
    assert leftovers(home, strings, blobs) == []


@pytest.mark.parametrize(
    "target",
    [
        lambda cast: Target(camera="kitchen"),
        lambda cast: Target(camera="attic"),
        lambda cast: Target(since=START + 40.0 * 2160 * 8, until=START + 40.0 * 2160 * 10),
        lambda cast: Target(until=START + 40.0 * 2160 * 6),
        lambda cast: Target(since=START + 40.0 * 2160 * 12.9),
        lambda cast: Target(person=cast.third),
        lambda cast: Target(everything=True),
    ],
    ids=[
        "camera",
        "a camera that is not kept",
        "days",
        "days that are not kept",
        "the latest",
        "a stranger",
        "everything",
    ],
)
def test_what_was_shown_goes_and_the_rest_is_whole(
    home: Path, lived: tuple[Path, Cast], target: Callable[[Cast], Target]
) -> None:
    with Store.open(home) as store:
        before = counted(store)
        planned = forget(store, target(lived[1]))
        after = counted(store)
        shown = dict(planned.counts)
        assert {what: before[what] - after[what] for what in after} == {what: shown[what] for what in after}
        assert not planned.empty
        if planned.target.camera == "attic":
            noted = "select at from fact_statement where source = 'model' and at < ?"
            assert store.rows(noted, (START + 40.0 * 2160 * 6,)) == [], "what a model noted there"
        assert store.integrity() == []
        work(store)
        assert store.integrity() == []
        if planned.target.everything:
            pages = raw_pages(home)["memory.db"]
            assert not [word for word in (*NAME.split(), *SECRETS, "Marta", "kettle") if word.encode() in pages]
            assert after == dict.fromkeys(after, 0)


@pytest.mark.parametrize(
    "what",
    [
        "person",
        "sightings",
        pytest.param("camera", marks=pytest.mark.slow),
        pytest.param("days", marks=pytest.mark.slow),
    ],
)
def test_what_is_derived_is_as_if_it_had_never_been(tmp_path: Path, what: str) -> None:
    home = tmp_path / "home"
    cast = fill(home, fading=False)
    with Store.open(home) as store:
        seen = store.observations(entity=cast.anna, limit=3)
        target = {
            "person": Target(person=cast.anna),
            "camera": Target(camera="kitchen"),
            "days": Target(since=START + 40.0 * 2160 * 8, until=START + 40.0 * 2160 * 10),
            "sightings": Target(items=tuple((Kind.OBSERVATION, one.id) for one in seen)),
        }[what]
        forget(store, target)
        work(store)
    exporting.export(home, MemorySettings(), tmp_path / "left")
    with Store.open(home) as forgot, Store.open(tmp_path / "never") as never:
        never.upkeep(lambda files: importing.load(tmp_path / "left", files, never.user))
        work(never)
        base, again = state(forgot), state(never)
        assert base == again, {
            table: [row for row in (*base[table], *again[table]) if (row in base[table]) != (row in again[table])][:4]
            for table in base
            if base[table] != again[table]
        }
        one, other = derived(forgot), derived(never)
        assert one == other, unlike(one, other)
