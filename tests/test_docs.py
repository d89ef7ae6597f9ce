"""What the documentation says is there is there, and the other way round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from edge.cli import app
from edge.settings import Settings
from tests.conftest import ROOT
from tools.docs import TARGET, settings_page


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children:
        for name, child in children.items():
            yield from commands(child, (*path, name))
    else:
        yield path, command


def test_the_settings_page_is_the_settings() -> None:
    assert TARGET.read_text() == settings_page(), "run `python -m tools.docs`"


def test_every_setting_says_what_it_is() -> None:
    for room in Settings.model_fields.values():
        for name, field in getattr(room.annotation, "model_fields", {}).items():
            assert field.description, name


def test_every_command_is_in_the_readme_and_explains_itself() -> None:
    readme = (ROOT / "README.md").read_text()
    for path, command in commands(typer.main.get_command(app)):
        assert f"reflectworld {path[0]}" in readme or f"; reflectworld {path[0]}" in readme, path
        assert command.help, path
        for parameter in command.params:
            assert getattr(parameter, "help", None), (path, parameter.name)


def test_every_json_form_is_documented() -> None:
    page = (ROOT / "docs" / "json.md").read_text()
    for path, command in commands(typer.main.get_command(app)):
        if any("--json" in parameter.opts for parameter in command.params):
            assert re.search(rf"^## `{' '.join(path)}\b.*--json", page, re.MULTILINE), path


def test_the_documents_speak_of_nothing_on_one_machine() -> None:
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        assert not re.search(r"/(work|home|root)/", page.read_text()), page
