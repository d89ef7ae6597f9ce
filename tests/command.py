"""Runs the command line inside the test's process, as a shell would see it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from edge.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Ran]


@pytest.fixture
def reflectworld(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """`reflectworld(*arguments)`: its exit status and what it printed."""

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["reflectworld", *arguments])
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        seen = capfd.readouterr()
        return Ran(code, seen.out, seen.err)

    return run
