"""The types of the pages' scripts, by TypeScript where it is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "edge" / "serve" / "static" / "js"
WORKER = "phone-sw.js"
CHECK = [
    "--noEmit",
    "--checkJs",
    "--allowJs",
    "--strict",
    "--target",
    "es2022",
    "--module",
    "es2022",
    "--moduleResolution",
    "node",
]
# `AbortSignal.timeout` cannot be declared beside the declarations of a compiler that does not know it.
UNKNOWN = re.compile(r"Property 'timeout' does not exist on type '\{ new \(\): AbortSignal")


def test_every_script_asks_to_be_checked() -> None:
    scripts = sorted(SCRIPTS.rglob("*.js"))
    assert len(scripts) > 15
    assert [path.name for path in scripts if not path.read_text().startswith("// @ts-check")] == []


@pytest.mark.slow
@pytest.mark.parametrize("worker", [False, True])
def test_the_types_of_all_scripts_fit(worker: bool) -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("TypeScript is not installed (Debian: node-typescript)")
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    old = int(re.findall(r"\d+", said)[0]) < 5
    scripts = [path for path in SCRIPTS.rglob("*.js") if (path.name == WORKER) is worker]
    library = "es2022,webworker" if worker else "es2022,dom,dom.iterable"
    newer = [str(Path(__file__).with_name("browser.d.ts"))] if old and not worker else []
    done = subprocess.run(
        [compiler, *CHECK, "--lib", library, *newer, *map(str, scripts)], capture_output=True, text=True, timeout=120
    )
    wrong = [line for line in done.stdout.splitlines() if not (old and UNKNOWN.search(line))]
    assert wrong == []
