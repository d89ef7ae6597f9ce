"""The service under live input: how late boxes and moments are, how late the loop is, and what memory it takes.

A publisher sends a clip over and over, in real time, as a phone would: every picture when it is due, and all sound.

    python -m tools.bench.live CLIP --seconds 120
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import psutil

from edge.app import Event, Service, open_service
from edge.clock import monotonic
from edge.settings import load_settings
from edge.types.media import SAMPLE_RATE


def decoded(clip: Path, height: int) -> tuple[list[tuple[float, Any]], np.ndarray]:
    """All pictures with their times, s, and all sound, mono 16 kHz."""
    pictures: list[tuple[float, Any]] = []
    sound: list[np.ndarray] = []
    with av.open(str(clip)) as container:
        resampler = av.AudioResampler("fltp", "mono", SAMPLE_RATE)
        for frame in container.decode():
            if isinstance(frame, av.VideoFrame):
                width = round(frame.width * height / frame.height / 2) * 2
                pictures.append(
                    (float(frame.time or 0.0), frame.reformat(width=width, height=height, format="yuv420p"))
                )
            else:
                sound += [part.to_ndarray()[0] for part in resampler.resample(frame)]
    return pictures, np.concatenate(sound) if sound else np.zeros(0, np.float32)


async def publish(service: Service, clip: Path, seconds: float, height: int) -> None:
    """Send the clip again and again, then stop the service."""
    pictures, sound = await asyncio.to_thread(decoded, clip, height)
    step = pictures[-1][0] / max(1, len(pictures) - 1)
    source = service.push_source("bench")
    began = monotonic()
    lap = began
    while monotonic() - began < seconds:
        heard = 0
        for at, picture in pictures:
            await asyncio.sleep(max(0.0, lap + at - monotonic()))
            upto = min(len(sound), round(at * SAMPLE_RATE))
            source.push_sound(sound[heard:upto], lap + heard / SAMPLE_RATE)
            heard = upto
            source.push_picture(picture, monotonic())
            if monotonic() - began >= seconds:
                break
        lap += pictures[-1][0] + step
    source.close()
    await asyncio.sleep(2)
    service.stop()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clip", type=Path, help="a video with people and speech")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to publish")
    parser.add_argument("--height", type=int, default=480, help="of the pictures sent, px")
    arguments = parser.parse_args()
    sights: list[float] = []
    moments: list[float] = []
    resident: list[tuple[float, int]] = []
    lags: list[float] = []  # ms, each the 99th percentile of a minute
    process = psutil.Process()

    async def listen(service: Service) -> None:
        async for event in service.events.subscribe(1000):
            note(event)
            if resident and resident[-1][0] - resident[0][0] > 60 * (len(lags) + 1):
                lags.append(service.vitals.loop_lag_ms)

    def note(event: Event) -> None:
        now = time.time()
        if event.kind == "sight":
            sights.append(now - float(str(event.data["captured"])))
        elif event.kind == "moment":
            moments.append(now - float(str(event.data["end"])))
        if not resident or now - resident[-1][0] > 1:
            resident.append((now, process.memory_info().rss))

    with tempfile.TemporaryDirectory() as home, open_service(load_settings(Path(home))) as service:

        async def feed(running: Service) -> None:
            await publish(running, arguments.clip, arguments.seconds, arguments.height)

        asyncio.run(service.run([("listen", listen), ("publish", feed)]))
        vitals, (camera,) = service.vitals, service.cameras
    rows = [
        ("picture received → its boxes published, s", sights),
        ("segment ended → searchable, s", moments),
    ]
    print(f"{'':46} {'n':>6} {'p50':>8} {'p95':>8} {'most':>8}")
    for words, values in rows:
        low, high = np.percentile(values, (50, 95)) if values else (np.nan, np.nan)
        print(f"{words:46} {len(values):6} {low:8.3f} {high:8.3f} {max(values, default=np.nan):8.3f}")
    worst = max([*lags, vitals.loop_lag_ms])
    print(
        f"loop lag p99 {vitals.loop_lag_ms:.1f} ms (worst minute {worst:.1f} ms), {vitals.loop_stalls} stalls; {camera.dropped} pictures dropped"
    )
    if len(lags) > 1:
        sizes = [size for _, size in resident[:: max(1, len(resident) // 15)]]
        print("resident over time, MB:", " ".join(f"{size / 1e6:.0f}" for size in sizes))
    tail = [size for at, size in resident if at - resident[0][0] > min(300.0, arguments.seconds / 2)]
    growth = (tail[-1] - tail[0]) / 1e6 if len(tail) > 1 else float("nan")
    print(f"resident {resident[-1][1] / 1e6:.0f} MB, {growth:+.1f} MB in the last {len(tail)} s or so")


if __name__ == "__main__":
    main()
