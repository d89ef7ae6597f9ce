"""From glass to page: how long after somebody appears before the camera their box, and their name, is on the dashboard.

The whole way in one browser on this machine: the phone page encodes and publishes over WebRTC, the service decodes, looks
and tells, the dashboard draws. Everybody shares the processor, so on a device of its own it is quicker.

    python -m tools.bench.glass --times 40
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from pathlib import Path

import numpy as np

from tools.bench.stage import Seen, Stage, staged

NAME = "Eileen"
SCENES = ("beside", "whole")


def rehearsed(stage: Stage) -> None:
    """Have somebody seen and remembered, and name them."""
    stage.dashboard.wait_for_timeout(3000)
    stage.appear("whole", None, 15)
    stage.dashboard.wait_for_timeout(3000)
    stage.leave(None)
    stage.call_them(stage.person(), NAME)


def measured(stage: Stage, times: int, seed: int = 0) -> dict[str, list[Seen]]:
    """Have somebody come and go, at odd moments."""
    odd = random.Random(seed)
    seen: dict[str, list[Seen]] = {scene: [] for scene in SCENES}
    for number in range(times):
        scene = SCENES[number % len(SCENES)]
        seen[scene].append(stage.appear(scene, NAME, want_name=True))
        stage.dashboard.wait_for_timeout(odd.uniform(300, 1300))
        stage.leave(NAME)
        stage.dashboard.wait_for_timeout(odd.uniform(0, 1000))
    return seen


def _row(words: str, values: list[float | None]) -> str:
    there = [value for value in values if value is not None]
    low, high = np.percentile(there, (50, 95)) if there else (np.nan, np.nan)
    missed = f"  {len(values) - len(there)} missed" if len(there) < len(values) else ""
    return f"{words:58} {len(there):4} {low:7.0f} {high:7.0f} {max(there, default=np.nan):7.0f}{missed}"


def _between(seen: list[Seen], begin: str, end: str) -> list[float | None]:
    return [
        None if getattr(one, begin) is None or getattr(one, end) is None else getattr(one, end) - getattr(one, begin)
        for one in seen
    ]


def table(seen: dict[str, list[Seen]]) -> str:
    """The figures."""
    everything = [one for scene in seen.values() for one in scene]
    rows = [f"{'ms':58} {'n':>4} {'p50':>7} {'p95':>7} {'most':>7}"]
    rows.append(_row("shown to the camera → box on the page", _between(everything, "shown", "box")))
    rows += [_row(f"  scene: {scene}", _between(some, "shown", "box")) for scene, some in seen.items()]
    for words, begin, end in (
        ("  shown → the picture that is looked at received", "shown", "received"),
        ("  received → its sight at the page", "received", "told"),
        ("  at the page → drawn", "told", "box"),
    ):
        rows.append(_row(words, _between(everything, begin, end)))
    rows.append(_row("came back → name on the page", _between(everything, "shown", "name")))
    return "\n".join(rows)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=40, help="appearances")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, staged(Path(home)) as stage:
        rehearsed(stage)
        seen = measured(stage, arguments.times)
        status = stage.get("/status")
    print(table(seen))
    load = os.getloadavg()[0]
    print(
        f"loop lag p99 {status['loop_lag_ms']:.1f} ms; load {load:.1f} on {os.cpu_count()} cores, all programs together"
    )


if __name__ == "__main__":
    main()
