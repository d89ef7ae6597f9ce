"""The labelled clips, watched with the real networks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.bench.identity import bench_clip


@pytest.mark.slow
def test_ten_talkers_are_ten_people_and_the_one_who_returns_is_found_again(shared: Path) -> None:
    result = bench_clip("grid", shared)
    assert (result.people, result.voices) == (10, 0)
    assert result.f1 == 1.0
    assert result.fine
    returning = [item.entity for item in result.items if item.person == "g2"]
    assert len(returning) == 2
    assert returning[0] == returning[1] is not None


@pytest.mark.slow
def test_people_are_found_again_and_those_too_small_are_seen_and_not_enrolled(shared: Path) -> None:
    result = bench_clip("intel", shared)
    assert result.fine
    found = {
        person: [item.entity for item in result.items if item.person == person] for person in ("intel_W", "intel_M")
    }
    assert [len(found[person]) for person in found] == [3, 2]
    assert all(None not in entities and len(set(entities)) == 1 for entities in found.values())
    small = [item for item in result.items if item.person[6:] in ("D", "E", "c1", "c2", "c3", "c4")]
    assert all(item.entity is None for item in small)
    assert min(result.seen) >= 1
