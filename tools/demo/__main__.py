"""`make demo`: fetch the models, compose the clip, watch it, ask five questions, leave the memory for more.

Every step is a `reflectworld` command that anyone can type; the demo prints each before it runs it.
"""

from __future__ import annotations

import datetime as dt
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from edge.infer import Catalog
from edge.settings import load_settings
from tools.demo.clip import compose

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "demo-memory"
CLIP = ROOT / ".cache" / "demo" / "clip.mp4"
COMMAND = Path(sys.executable).with_name("reflectworld")

QUESTIONS = (
    "Who did I see yesterday?",
    "Where did I last see the cup?",
    "When did Eileen come back?",
    "How many times did I see the cat?",
    "What was said about the best of times?",
    "Did I see a dog?",
)


def reflectworld(*arguments: str) -> None:
    """Run one command of the product as a user would."""
    print(f"\n\033[1m$ reflectworld {shlex.join(arguments)}\033[0m", flush=True)
    done = subprocess.run([str(COMMAND), *arguments], env={**os.environ, "REFLECTWORLD_HOME": str(HOME)}, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Run the demo."""
    reflectworld("models", "pull", "--optional")
    speech = Catalog.load(load_settings().infer).get("two-cities-speech").path("two_cities.wav").parent
    began = time.monotonic()
    seconds = compose(CLIP, speech)
    print(f"\nComposed {CLIP.relative_to(ROOT)}: {seconds:.0f} s of photographs and speech.")
    shutil.rmtree(HOME, ignore_errors=True)
    yesterday = dt.datetime.combine(dt.date.today() - dt.timedelta(days=1), dt.time(17, 0))
    reflectworld("watch", str(CLIP.relative_to(ROOT)), "--camera", "glasses", "--start", yesterday.isoformat())
    reflectworld("people", "list")
    reflectworld("people", "name", "person 1", "Eileen")
    for question in QUESTIONS:
        reflectworld("ask", question)
    print(
        f"\nThat took {time.monotonic() - began:.0f} s. The memory stays in {HOME.relative_to(ROOT)}; ask it more:\n"
        f'  REFLECTWORLD_HOME={HOME.relative_to(ROOT)} {os.path.relpath(COMMAND, ROOT)} ask "What did I see after the cat?"\n'
        f"  REFLECTWORLD_HOME={HOME.relative_to(ROOT)} {os.path.relpath(COMMAND, ROOT)} timeline"
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
