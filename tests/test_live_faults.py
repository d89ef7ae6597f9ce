"""Cameras come back after whatever happened to them, and nothing that was remembered is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live_faults import FAULTS, LONGEST_S, Outcome


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_camera_comes_back_and_nothing_is_lost(fault: Callable[[Path], Outcome], tmp_path: Path) -> None:
    outcome = fault(tmp_path / "home")
    assert outcome.before >= 1
    assert outcome.kept
    assert outcome.after > outcome.before
    assert outcome.recovered <= LONGEST_S, outcome
