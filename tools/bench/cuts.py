"""Scene cuts against labels: precision, recall and cost, through capture's public face.

python -m tools.bench.cuts [--shared FOLDER]
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from edge.capture import open_source, segments
from edge.settings import CaptureSettings
from edge.types.media import CutReason, Mode, Segment

TOLERANCE_S = 0.1  # a cut this near a label is that label's


@dataclass(frozen=True, slots=True)
class Score:
    """What was found in one clip."""

    labelled: int
    found: int
    right: int
    frames: int
    cpu_ms: float  # of decoding and cutting, a frame

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.labelled if self.labelled else 1.0


def labelled_cuts(path: Path) -> dict[str, list[float]]:
    """Where scenes begin, by file; the first beginning is no cut."""
    begins: dict[str, list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            begins[row["file"]].append(float(row["start_s"]))
    return {name: sorted(times)[1:] for name, times in begins.items()}


def score(clip: Path, labels: list[float], settings: CaptureSettings) -> Score:
    """Cut one clip and compare."""
    found: list[float] = []
    frames = 0
    began = time.process_time()
    with open_source(str(clip), camera=None, start=0.0, settings=settings) as source:
        for item in segments(source, vad=None, settings=settings, mode=Mode.OFFLINE_QUALITY, stop=threading.Event()):
            if isinstance(item, Segment):
                frames += item.counts.decoded
                if item.reason is CutReason.SCENE_CUT:
                    found.append(item.end)
    cpu_ms = (time.process_time() - began) * 1000 / max(1, frames)
    right = sum(any(abs(cut - label) <= TOLERANCE_S for cut in found) for label in labels)
    return Score(len(labels), len(found), right, frames, cpu_ms)


def main() -> int:
    """Print the table; 1 if a cut was missed or invented."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("REFLECTWORLD_SHARED")
    parser.add_argument("--shared", type=Path, default=default, required=default is None, help="the evaluation media")
    folder = parser.parse_args().shared / "media" / "derived"
    table = Table(title="Scene cuts of real clips against their labels (±0.1 s)")
    for column in ("clip", "labelled", "found", "precision", "recall", "frames", "CPU ms a frame"):
        table.add_column(column, justify="left" if column == "clip" else "right")
    perfect = True
    for name, labels in labelled_cuts(folder / "timelines.csv").items():
        got = score(folder / name, labels, CaptureSettings())
        perfect = perfect and got.precision == got.recall == 1.0
        table.add_row(
            name,
            str(got.labelled),
            str(got.found),
            f"{got.precision:.2f}",
            f"{got.recall:.2f}",
            str(got.frames),
            f"{got.cpu_ms:.2f}",
        )
    Console().print(table)
    return 0 if perfect else 1


if __name__ == "__main__":
    sys.exit(main())
