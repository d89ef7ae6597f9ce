"""Kills a watch at random moments and looks at what is left.

    python -m tools.bench.kills [--kills 50] [--seed 1] [CLIP]

Each round starts `reflectworld watch` on the same clip and memory, sends SIGKILL after a random time, then opens the memory,
checks its integrity and counts what is in it; nothing that was committed may be missing. In the end the clip is watched to its end
and the memory is compared, row by row, with that of a run that was never killed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from edge.memory import Store
from edge.settings import load_settings
from tools.bench.snapshot import snapshot
from tools.bench.watch import COMMAND, speech_folder
from tools.demo.clip import compose

START = "2026-01-01T09:00:00+00:00"


def command(clip: Path) -> list[str]:
    """The watch that is killed."""
    return [str(COMMAND), "watch", str(clip), "--camera", "kills", "--start", START]


def check(home: Path) -> int:
    """How many moments are there; stops the run when the memory is not whole."""
    settings = load_settings(home)
    if not (home / "memory.db").exists():
        return 0
    with Store.open(home, settings.memory, user=settings.user) as store:
        problems = store.integrity()
        if problems:
            raise SystemExit(f"the memory is damaged: {problems}")
        return store.counts().traces


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", nargs="?", type=Path, help="default: the demo's clip")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    dice = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        clip = arguments.clip or Path(folder) / "clip.mp4"
        if arguments.clip is None:
            compose(clip, speech_folder())
        whole, killed = Path(folder) / "whole", Path(folder) / "killed"
        began = time.monotonic()
        subprocess.run(
            command(clip), env={**os.environ, "REFLECTWORLD_HOME": str(whole)}, check=True, stdout=subprocess.DEVNULL
        )
        length = time.monotonic() - began
        before, done, finished = 0, 0, 0
        while done < arguments.kills:
            process = subprocess.Popen(
                command(clip),
                env={**os.environ, "REFLECTWORLD_HOME": str(killed)},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # Most of the start-up is loading networks; aim between its end and the end of the clip.
            try:
                process.wait(dice.uniform(0.2, 1.0) * length * 0.6)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
                done += 1
            else:
                # It reached the end: begin again with an empty memory, so that every kill hits a running watch.
                if snapshot(killed) != snapshot(whole):
                    sys.exit("a resumed run gave another memory than one that was never killed")
                finished += 1
                shutil.rmtree(killed)
                before = 0
                continue
            now = check(killed)
            if now < before:
                raise SystemExit(f"moments were lost: {before} before, {now} after")
            before = now
        subprocess.run(
            command(clip), env={**os.environ, "REFLECTWORLD_HOME": str(killed)}, check=True, stdout=subprocess.DEVNULL
        )
        same = snapshot(killed) == snapshot(whole)
        print(
            f"kills {done}, whole runs in between {finished}, memory opened and whole each time, nothing committed was lost"
        )
        print(
            f"after the last resume the memory is {'the same as' if same else 'DIFFERENT from'} that of a run never killed"
        )
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main()
