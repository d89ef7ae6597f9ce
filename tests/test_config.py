"""The file of settings: whole, read, and its mistakes said with their line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from edge.app.config import config_template, effective
from edge.errors import SettingsError
from edge.settings import Settings, load_settings
from tests.command import Command, reflectworld

__all__ = ["reflectworld"]


def test_the_file_has_every_setting_with_its_description() -> None:
    text = config_template()
    assert tomllib.loads(text) == {room: {} for room in tomllib.loads(text)}
    table = re.split(r"^\[(\w+)\]$", text, flags=re.MULTILINE)
    rooms = {"": table[0], **dict(zip(table[1::2], table[2::2], strict=True))}
    for name, field in Settings.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        for key, setting in (inner or {name: field}).items():
            if key == "home":
                continue
            part = rooms[name if inner else ""]
            assert setting.description, (name, key)
            assert re.search(rf"^# (\(not set\) )?{key} = ", part, re.MULTILINE), (name, key)
            assert setting.description.split()[0] in part


def test_the_defaults_in_the_file_are_the_defaults(tmp_path: Path) -> None:
    text = re.sub(r"^# (\w+ = )", r"\1", config_template(), flags=re.MULTILINE)
    (tmp_path / "config.toml").write_text(text)
    assert load_settings(tmp_path) == Settings(home=tmp_path)
    assert len(tomllib.loads(text)["capture"]) > 10


def test_the_environment_wins_over_the_file_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("[capture]\nsample_fps = 4\nstall_s = 7\n")
    monkeypatch.setenv("REFLECTWORLD_CAPTURE__SAMPLE_FPS", "1")
    settings = load_settings(tmp_path)
    assert settings.capture.sample_fps == 1
    assert settings.capture.stall_s == 7
    assert settings.capture.queue_items == 8
    monkeypatch.setenv("REFLECTWORLD_HOME", str(tmp_path))
    assert load_settings().capture.stall_s == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# a\n[capture]\nsample_fps = 99\n", "Line 3 .*sample_fps.*30"),
        ("[capture]\n\nsampel_fps = 1\n", "Line 3 .*no setting “capture.sampel_fps”"),
        ("user = 'x'\n[captur]\nsample_fps = 1\n", "Line 2 .*no setting “captur”"),
        ("home = '/elsewhere'\n", "Line 1 .*no setting “home”"),
        ("capture.queue_items = 'many'\n", "Line 1 .*queue_items"),
        ("[capture\n", "not TOML.*line 1"),
        ("capture = 3\n", "Line 1 .*capture"),
    ],
)
def test_a_mistake_is_said_with_its_line(tmp_path: Path, text: str, said: str, reflectworld: Command) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(SettingsError, match=said):
        load_settings(tmp_path)
    ran = reflectworld("config", "check", "--home", str(tmp_path))
    assert ran.code == 2
    assert re.search(said, ran.err)
    assert ran.err.count("\n") == 1


def test_a_mistake_of_the_environment_names_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.toml").write_text("[capture]\nsample_fps = 1\n")
    monkeypatch.setenv("REFLECTWORLD_CAPTURE__SAMPLE_FPS", "often")
    with pytest.raises(SettingsError, match="REFLECTWORLD_CAPTURE__SAMPLE_FPS"):
        load_settings(tmp_path)


def test_init_check_and_show(home: Path, reflectworld: Command) -> None:
    assert "defaults hold" in reflectworld("config", "check").out
    assert reflectworld("config", "init").code == 0
    assert "in order" in reflectworld("config", "check").out
    again = reflectworld("config", "init")
    assert again.code == 2
    assert "--force" in again.err
    (home / "config.toml").write_text("user = 'Ada'\n")
    shown = tomllib.loads(reflectworld("config", "show").out)
    assert shown["user"] == "Ada"
    assert shown["capture"]["sample_fps"] == 2.0
    assert tomllib.loads(effective(load_settings(home))) == shown
    assert reflectworld("config", "init", "--force").code == 0
    assert tomllib.loads(reflectworld("config", "show").out)["user"] == "owner"
