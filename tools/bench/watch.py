"""Speed, CPU and memory of `watch`, against running every network on five frames a second.

    python -m tools.bench.watch [--minutes 5] [--hour]

Makes a 640×480, 25 fps clip with sound (the demo's photographs and speech, repeated), watches it as a user would in a process
of its own, and measures that process. The comparison runs the object detector, the face detector and the face and body
embedders on five frames a second of the same clip in one thread, as a program without a schedule would, with the same speech.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import av
import psutil

from edge.app import open_rooms
from edge.infer import Catalog
from edge.settings import load_settings
from tools.demo.clip import compose

COMMAND = Path(sys.executable).with_name("reflectworld")


def speech_folder() -> Path:
    """Where the demo's recordings are."""
    return Catalog.load(load_settings().infer).get("two-cities-speech").path("two_cities.wav").parent


def repeated(clip: Path, out: Path, seconds: float) -> None:
    """The clip again and again without re-encoding, until it lasts `seconds`."""
    with av.open(str(clip)) as probe:
        length = float(probe.duration / av.time_base)
    times = max(1, round(seconds / length))
    with av.open(str(out), "w") as target:
        streams: dict[int, av.stream.Stream] = {}
        for turn in range(times):
            with av.open(str(clip)) as source:
                for packet in source.demux():
                    if packet.dts is None:
                        continue
                    if packet.stream.index not in streams:
                        streams[packet.stream.index] = target.add_stream_from_template(packet.stream)
                    shift = round(turn * length / packet.time_base)
                    packet.pts += shift
                    packet.dts += shift
                    packet.stream = streams[packet.stream.index]
                    target.mux(packet)


def watch(clip: Path, home: Path) -> dict[str, float]:
    """Watch in a process of its own; wall and CPU seconds, resident memory over time."""
    env = {**os.environ, "REFLECTWORLD_HOME": str(home)}
    process = subprocess.Popen(
        [str(COMMAND), "watch", str(clip), "--json", "--start", "2026-01-01T09:00:00"], env=env, stdout=subprocess.PIPE
    )
    proc, rss, done = psutil.Process(process.pid), [], threading.Event()
    cpu = [0.0]

    def sample() -> None:
        while not done.wait(0.5):
            try:
                rss.append(proc.memory_info().rss / 1e6)
                times = proc.cpu_times()
                cpu[0] = times.user + times.system
            except psutil.NoSuchProcess:
                return

    sampler = threading.Thread(target=sample)
    sampler.start()
    report = json.loads(process.communicate()[0])
    done.set()
    sampler.join()
    if process.returncode:
        raise SystemExit(f"watch failed with status {process.returncode}")
    half = rss[len(rss) // 4 :] or rss
    return {
        "media_s": report["position_s"],
        "wall_s": report["elapsed_s"],
        "cpu_s": cpu[0],
        "peak_mb": max(rss),
        "early_mb": sum(half[: max(1, len(half) // 4)]) / max(1, len(half) // 4),
        "late_mb": sum(half[-max(1, len(half) // 4) :]) / max(1, len(half) // 4),
        "people": len(report["people"]),
        "segments": report["segments"],
        "decoded": report["frames"]["decoded"],
        "looked_at": report["frames"]["looked_at"],
    }


def everything(clip: Path, home: Path) -> dict[str, float]:
    """CPU seconds of running every network on five frames a second (speech as in the product), and the faces found."""
    settings = load_settings(home)
    with open_rooms(settings) as rooms:
        parts = rooms.perceiver.parts
        speech, voice = parts.speech, rooms.voice_activity
        began_cpu, faces, frames = time.process_time(), 0, 0
        sound = []
        next_at = 0.0
        resampler = av.AudioResampler(format="flt", layout="mono", rate=16_000)
        with av.open(str(clip)) as container:
            for packet in container.demux():
                for item in packet.decode():
                    if isinstance(item, av.AudioFrame):
                        sound += [part.to_ndarray()[0] for part in resampler.resample(item)]
                        continue
                    at = float(item.pts * item.time_base)
                    if at + 1e-6 < next_at:
                        continue
                    next_at = at + 0.2
                    image = item.to_ndarray(format="bgr24")
                    people = parts.objects.detect(image) if parts.objects else ()
                    found = parts.faces.detect(image)
                    faces += len(found)
                    frames += 1
                    if found:
                        parts.face_embedder.embed(image, found)
                    if parts.bodies is not None:
                        parts.bodies.embed(image, [p.box for p in people if p.label == "person"])
        visual = time.process_time() - began_cpu
        del speech, voice, sound
    return {"cpu_s": visual, "faces": faces, "frames": frames}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="length of the clip")
    parser.add_argument("--skip-everything", action="store_true", help="leave the comparison out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        clip, long = Path(folder) / "clip.mp4", Path(folder) / "long.mp4"
        compose(clip, speech_folder())
        repeated(clip, long, arguments.minutes * 60)
        ours = watch(long, Path(folder) / "home")
        print(f"{'watch, 640×480 at 25 fps with sound, everything on':58s}{ours['media_s']:9.0f} s of media")
        print(f"{'  speed':58s}{ours['media_s'] / ours['wall_s']:9.1f} × real time")
        print(f"{'  CPU':58s}{ours['cpu_s'] / ours['media_s']:9.3f} s a second of media")
        print(f"{'  resident memory, peak':58s}{ours['peak_mb']:9.0f} MB")
        print(
            f"{'  resident memory, last quarter − first after warm-up':58s}{ours['late_mb'] - ours['early_mb']:9.1f} MB"
        )
        print(f"{'  frames decoded → looked at':58s}{ours['decoded']:9.0f} → {ours['looked_at']:.0f}")
        print(f"{'  people':58s}{ours['people']:9.0f}")
        if not arguments.skip_everything:
            every = everything(long, Path(folder) / "home2")
            print(
                f"{'every network on 5 frames a second: CPU':58s}{every['cpu_s'] / ours['media_s']:9.3f} s a second of media"
            )
            print(f"{'  ratio to watch':58s}{every['cpu_s'] / ours['cpu_s']:9.1f} ×")


if __name__ == "__main__":
    main()
