"""The service under live input: how late boxes and moments are, how late the loop is, and what memory it takes.

`reflectworld run` in a process of its own; a publisher in another sends a clip with people and speech over and over, by
WebRTC, 640×480 at 30 pictures a second; this one listens to the events and looks at the figures.

    python -m tools.bench.live --minutes 30

How late a box is on the page, in a real browser: `python -m tools.bench.glass`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil

from edge.clock import parse_instant
from edge.infer import Catalog, pull_models
from edge.settings import InferSettings
from tools.bench.stage import served
from tools.bench.stage.publisher import prepared
from tools.demo.clip import compose

CAMERA = "bench"
_EVERY_S = 5.0  # between looks at the figures, s
_WARM_S = 300.0  # memory counts from here on, s; of a short run: from its middle


@dataclass
class Figures:
    """What was seen of one run."""

    sights: list[float] = field(default_factory=list)  # s from receipt to the event
    moments: list[float] = field(default_factory=list)  # s from the end of the segment
    resident: list[tuple[float, int]] = field(default_factory=list)  # s since the beginning, bytes
    lags: list[float] = field(default_factory=list)  # ms, the 99th percentile of the minute before
    busy: list[float] = field(default_factory=list)  # % of one core, of the service
    stalls: int = 0
    oldest: float = 0.0  # s
    dropped: int = 0


def default_clip(folder: Path) -> Path:
    """The clip of the demo: people, things, speech."""
    catalog = Catalog.load(InferSettings())
    speech = catalog.get("two-cities-speech")
    if not speech.present:
        pull_models(catalog, [speech])
    compose(folder / "clip.mp4", speech.path(speech.files[0].name).parent)
    return folder / "clip.mp4"


def listen(url: str, figures: Figures, over: threading.Event) -> None:
    """Note events until the service ends."""
    try:
        _follow(url, figures, over)
    except httpx.HTTPError:
        if not over.is_set():
            raise


def _follow(url: str, figures: Figures, over: threading.Event) -> None:
    with httpx.stream("GET", f"{url}/api/v1/events", timeout=httpx.Timeout(30, read=60)) as stream:
        kind = ""
        for line in stream.iter_lines():
            if over.is_set():
                return
            name, _, value = line.partition(": ")
            if name == "event":
                kind = value
            elif name == "data" and kind in {"sight", "moment"}:
                data, now = json.loads(value), time.time()
                if kind == "sight":
                    figures.sights.append(now - float(data["captured"]))
                else:
                    end = data["end"]
                    figures.moments.append(now - (end if isinstance(end, float | int) else parse_instant(end)))


def look(url: str, process: psutil.Process, began: float, figures: Figures) -> None:
    """Take the figures of now."""
    text = httpx.get(f"{url}/metrics", timeout=30).raise_for_status().text

    def figure(name: str) -> float:
        found = re.search(rf"^{name}(?:\{{[^}}]*\}})? ([-+.e\d]+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    figures.resident.append((time.monotonic() - began, process.memory_info().rss))
    figures.busy.append(process.cpu_percent())
    if time.monotonic() - began > 60:  # the first minute holds the start
        figures.lags.append(1000 * figure("reflectworld_loop_lag_seconds"))
    figures.stalls = int(figure("reflectworld_loop_stalls_total"))
    figures.oldest = figure("reflectworld_camera_oldest_seconds")
    figures.dropped = int(figure("reflectworld_camera_dropped_total"))


@contextmanager
def publishing(url: str, clip: Path, seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    """The publisher, in a process of its own."""
    command = [sys.executable, "-m", "tools.bench.stage.publisher", f"{url}/whip/{CAMERA}", str(clip), str(seconds)]
    publisher = subprocess.Popen(command)
    try:
        yield publisher
    finally:
        publisher.terminate()
        publisher.wait(15)


def measured(home: Path, clip: Path, seconds: float) -> Figures:
    """Run it.

    Raises:
        RuntimeError: the service or the publisher ended too early.
    """
    figures, over = Figures(), threading.Event()
    with served(home) as (url, service), publishing(url, clip, seconds) as publisher:
        listener = threading.Thread(target=listen, args=(url, figures, over), daemon=True)
        listener.start()
        process, began = psutil.Process(service.pid), time.monotonic()
        while publisher.poll() is None:
            time.sleep(_EVERY_S)
            if service.poll() is not None:
                raise RuntimeError(f"The service ended: {(home / 'service.log').read_text()[-2000:]}")
            look(url, process, began, figures)
            if len(figures.resident) % 12 == 0:
                at, size = figures.resident[-1]
                lag = f", loop lag p99 {figures.lags[-1]:.1f} ms" if figures.lags else ""
                print(f"{at / 60:4.0f} min: {size / 1e6:.0f} MB{lag}, {len(figures.moments)} moments", file=sys.stderr)
        if publisher.returncode:
            raise RuntimeError("The publisher failed; its own words are above.")
        time.sleep(3)
        look(url, process, began, figures)
        over.set()
    return figures


def table(figures: Figures) -> str:
    """The figures, with what is wanted."""
    rows = [f"{'':50} {'n':>6} {'p50':>8} {'p95':>8} {'most':>8}"]
    for words, values in (
        ("picture received → its boxes published, s", figures.sights),
        ("segment ended → searchable, s (p95 wanted: 3)", figures.moments),
    ):
        low, high = np.percentile(values, (50, 95)) if values else (np.nan, np.nan)
        rows.append(f"{words:50} {len(values):6} {low:8.3f} {high:8.3f} {max(values, default=np.nan):8.3f}")
    middle, worst = (np.median(figures.lags), max(figures.lags)) if figures.lags else (np.nan, np.nan)
    rows.append(
        f"loop lag p99 of a minute: {middle:.1f} ms usually, {worst:.1f} ms in the worst (wanted: 50); "
        f"{figures.stalls} stalls over 200 ms, those of the start with them"
    )
    rows.append(
        f"oldest picture that was looked at: {figures.oldest:.3f} s (wanted: 0.5); {figures.dropped} dropped instead"
    )
    last = figures.resident[-1][0]
    warm = min(_WARM_S, last / 2)
    tail = [size for at, size in figures.resident if at >= warm]
    few = max(1, len(tail) // 6)  # a sixth at either end: single looks are noisy
    growth = (float(np.median(tail[-few:])) - float(np.median(tail[:few]))) / 1e6
    rows.append(
        f"memory: {tail[-1] / 1e6:.0f} MB, {growth:+.1f} MB from minute {warm / 60:.1f} to {last / 60:.1f} (wanted: 20)"
    )
    shown = figures.resident[:: max(1, len(figures.resident) // 15)]
    rows.append("  over time, MB: " + " ".join(f"{size / 1e6:.0f}" for _, size in shown))
    load = os.getloadavg()[0]
    rows.append(
        f"the service took {np.median(figures.busy):.0f} % of a core; load {load:.1f} on {os.cpu_count()} cores"
    )
    return "\n".join(rows)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, nargs="?", help="a video with people and speech; default: the demo's")
    parser.add_argument("--minutes", type=float, default=3.0, help="how long to publish")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        clip = prepared(arguments.clip or default_clip(home), home / "sent.mp4")
        print(table(measured(home, clip, 60 * arguments.minutes)))


if __name__ == "__main__":
    main()
