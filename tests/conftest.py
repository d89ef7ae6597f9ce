"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile("house", deadline=None)
hypothesis.settings.load_profile("house")

ROOT = Path(__file__).resolve().parent.parent


def shared_dir() -> Path:
    """The evaluation media beside the project, or wherever REFLECTWORLD_SHARED points."""
    return Path(os.environ.get("REFLECTWORLD_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The evaluation media; the test skips where they are absent."""
    path = shared_dir()
    if not (path / "media").is_dir():
        pytest.skip(f"the evaluation media are not at {path} (set REFLECTWORLD_SHARED)")
    return path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder for one test."""
    path = tmp_path / "home"
    monkeypatch.setenv("REFLECTWORLD_HOME", str(path))
    return path
