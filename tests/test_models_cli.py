"""`reflectworld models`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from edge.cli.models import app
from edge.errors import ModelError
from edge.infer import Catalog
from edge.settings import InferSettings


@pytest.fixture
def models_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models"
    monkeypatch.setenv("REFLECTWORLD_INFER__MODELS_DIR", str(path))
    return path


def run(*words: str):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def detector(tmp_path: Path) -> Path:
    """The bundled detector under another name, as a user's file."""
    source = Catalog.load(InferSettings()).get("nanodet-m-416-int8").path()
    path = tmp_path / "own detector.onnx"
    path.write_bytes(source.read_bytes())
    return path


def test_list_names_every_model_and_its_json_has_a_stable_form(models_dir: Path):
    listed = run("list")
    assert listed.exit_code == 0
    document = json.loads(run("list", "--json").stdout)
    assert document["models_dir"] == str(models_dir)
    for entry in document["models"]:
        assert entry["id"] in listed.stdout
        assert entry.keys() == {
            *("id", "role", "decoder", "default", "present", "user", "key", "size"),
            *("licence", "provenance", "measured", "files"),
        }
        for file in entry["files"]:
            assert file.keys() == {"name", "path", "present", "sha256", "size", "source"}
    here = {entry["id"] for entry in document["models"] if entry["present"]}
    assert here == {"nanodet-m-416-int8", "retinaface-mnet025", "mobilefacenet-192d", "resemblyzer-256d", "reflex-head"}


def test_pull_of_what_is_there_says_so(models_dir: Path):
    result = run("pull", "retinaface-mnet025", "resemblyzer-256d")
    assert result.exit_code == 0
    assert "Nothing to do" in result.stdout
    assert isinstance(run("pull", "nix").exception, ModelError)


def test_verify_passes_and_then_finds_the_damage(models_dir: Path, detector: Path):
    assert run("verify").exit_code == 0
    assert run("add", str(detector), "--role", "objects", "--decoder", "nanodet", "--id", "own").exit_code == 0
    document = json.loads(run("verify", "--json").stdout)
    assert document["ok"] is True
    assert {"model": "own", "file": "own_detector.onnx"}.items() <= document["files"][0].items()
    (models_dir / "own" / "own_detector.onnx").write_bytes(b"damaged")
    result = run("verify", "--json")
    assert isinstance(result.exception, ModelError)
    assert "models add FILE" in str(result.exception)
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert [file["model"] for file in document["files"] if file["state"] == "damaged"] == ["own"]


def test_an_added_model_is_listed_and_becomes_the_default(models_dir: Path, detector: Path):
    result = run("add", str(detector), "--role", "objects", "--decoder", "nanodet", "--licence", "Apache-2.0")
    assert "Added own-detector as objects (nanodet, input 416×416 px). It is now the default" in result.stdout
    entries = {entry["id"]: entry for entry in json.loads(run("list", "--json").stdout)["models"]}
    assert entries["own-detector"]["default"] is True
    assert entries["own-detector"]["user"] is True
    assert entries["nanodet-m-416-int8"]["default"] is False
    shy = run("add", str(detector), "--role", "objects", "--decoder", "nanodet", "--id", "shy", "--no-default")
    assert "stays as it was" in shy.stdout


@pytest.mark.parametrize(
    ("size", "says"), [("big", "not an input size"), ("1x2x3", "not an input size"), ("0", "cannot be")]
)
def test_an_input_size_that_is_none(models_dir: Path, detector: Path, size: str, says: str):
    result = run("add", str(detector), "--role", "faces", "--input-size", size)
    assert isinstance(result.exception, ModelError)


@pytest.mark.parametrize("command", ["list", "pull", "verify", "add"])
def test_every_command_has_help(command: str):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.stdout
