"""A disk that fails at every write, and kills in the middle of everything that writes: see `tests.store_faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store_faults import ACTIONS, fail_everywhere, kill_often


def test_a_commit_on_a_failing_disk_is_there_or_not(tmp_path: Path) -> None:
    report = fail_everywhere(tmp_path, stride=29, only=("a commit",))
    assert report.points["a commit"] > 8
    assert report.failed > 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ACTIONS)
def test_whatever_writes_on_a_failing_disk_is_done_or_not(tmp_path: Path, name: str) -> None:
    report = fail_everywhere(tmp_path, only=(name,), stride=5)
    assert report.failed > 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thirty_kills_in_the_middle_of_everything(tmp_path: Path) -> None:
    world = kill_often(tmp_path, 30, seed=3)
    assert len(world.done) > 5
