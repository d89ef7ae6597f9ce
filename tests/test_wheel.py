"""The wheel works where it is installed: its catalogue and its starter weights come along."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(ROOT)], check=True, capture_output=True
    )
    return next(out.glob("*.whl"))


def test_the_wheel_holds_the_catalogue_the_weights_and_their_licences(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "edge/_models/catalog.toml" in names
    assert sum(name.startswith("edge/_models/") and name.endswith(".onnx") for name in names) == 4
    assert any("licences" in name for name in names)
    assert "edge/reason/prompts/repair.md" in names
    assert not any(name.startswith(("tests/", "tools/", "models/")) for name in names)


def test_an_installed_wheel_watches_a_photograph(wheel: Path, tmp_path: Path) -> None:
    import cv2
    import numpy as np
    import skimage.data

    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    photo = tmp_path / "portrait.jpg"
    cv2.imwrite(str(photo), np.ascontiguousarray(skimage.data.astronaut()[..., ::-1]))
    environment = {**os.environ, "PYTHONPATH": str(site), "REFLECTWORLD_HOME": str(tmp_path / "home")}

    def run(*arguments: str) -> str:
        where = [sys.executable, "-c", "import edge; print(edge.__file__)"]
        found = subprocess.run(where, env=environment, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert found.startswith(str(site))
        done = subprocess.run(
            [sys.executable, "-m", "edge", *arguments],
            env=environment,
            cwd=tmp_path,
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("watch", str(photo), "--start", "2026-01-05T10:00:00")
    assert "person 1" in run("people", "list")
    assert "person" in run("ask", "who did I see?").lower()
