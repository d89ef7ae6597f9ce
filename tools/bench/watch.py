"""Speed, CPU and memory of `watch`, against running every network on five frames a second.

    python -m tools.bench.watch [--minutes 5] [CLIP …]

Makes a 640×480, 25 fps clip with sound (the demo's photographs and speech, repeated), watches it as a user would in a process
of its own, and measures that process. Then it compares the CPU time of the picture networks, decoding left out: every network on five
frames a second, each frame by itself, against the product's way (two a second, near-duplicates left out, best shots only).
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

from edge.capture import open_source, segments
from edge.infer import Catalog, Runtime
from edge.perceive import build_perceiver
from edge.settings import load_settings
from edge.types.evidence import SegmentEvidence
from edge.types.media import CutReason, Frame, Mode, Segment, SegmentCounts
from tools.demo.clip import compose

COMMAND = Path(sys.executable).with_name("reflectworld")


def speech_folder() -> Path:
    """Where the demo's recordings are."""
    return Catalog.load(load_settings().infer).get("two-cities-speech").path("two_cities.wav").parent


def repeated(clip: Path, out: Path, seconds: float) -> None:
    """The clip again and again without re-encoding, until it lasts `seconds`."""
    with av.open(str(clip)) as probe:
        times = max(1, round(seconds / (probe.duration / av.time_base)))
    playlist = out.with_suffix(".txt")
    playlist.write_text(f"file '{clip}'\n" * times)
    with av.open(str(playlist), format="concat", options={"safe": "0"}) as source, av.open(str(out), "w") as target:
        streams = {stream.index: target.add_stream_from_template(stream) for stream in source.streams}
        last: dict[int, int] = {}
        for packet in source.demux():
            index = packet.stream.index
            # The sound of a turn reaches some samples into the next: those packets are left out.
            if packet.dts is not None and packet.dts > last.get(index, packet.dts - 1):
                last[index] = packet.dts
                packet.stream = streams[index]
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


def looked_at(clip: Path, rate: float | None) -> tuple[float, int]:
    """CPU seconds of the picture networks, and how many people they tell apart.

    Args:
        clip: what is looked at.
        rate: every network on this many frames a second, each frame by itself; None: as the product does it.
    """
    settings = load_settings()
    perceiver = build_perceiver(Catalog.load(settings.infer), Runtime(settings.infer), settings.perceive, speech=False)
    capture = settings.capture
    if rate is not None:
        capture = capture.model_copy(update={"sample_fps": rate, "duplicate_threshold": 0.0})
    spent, people = 0.0, []
    with open_source(str(clip), camera=None, start=0.0, settings=capture) as source:
        stream = segments(source, vad=None, settings=capture, mode=Mode.OFFLINE_QUALITY, stop=threading.Event())
        for item in stream:
            began = time.process_time()
            evidence: SegmentEvidence | None = None
            if isinstance(item, Frame):
                perceiver.see(item)
                if rate is not None:
                    evidence = perceiver.close(segment_of(item))
            elif rate is None:
                evidence = perceiver.close(item)
            spent += time.process_time() - began
            for track in evidence.tracks if evidence else ():
                face = track.face
                if face is None or not face.safe or face.embedding is None:
                    continue
                if not any(float(face.embedding @ known) >= settings.identity.face_match for known in people):
                    people.append(face.embedding)
    return spent, len(people)


def segment_of(frame: Frame) -> Segment:
    """A segment that holds one frame."""
    return Segment(
        camera="bench",
        source="",
        index=0,
        start=frame.at,
        end=frame.at + 0.2,
        reason=CutReason.MAX_LENGTH,
        first_of_event=True,
        still=False,
        audio=None,
        audio_start=frame.at,
        speech=(),
        audio_faults=0,
        counts=SegmentCounts(chosen=1),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="*", type=Path, help="further clips for the comparison of picture networks")
    parser.add_argument("--minutes", type=float, default=5.0, help="length of the clip")
    parser.add_argument("--skip-comparison", action="store_true", help="leave the comparison out")
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
        if not arguments.skip_comparison:
            for name, path in [("the clip", clip), *((path.name, path) for path in arguments.clips)]:
                every, everyone = looked_at(path, 5.0)
                mine, people = looked_at(path, None)
                title = f"picture networks on {name}: every one, 5 frames a second"
                print(f"{title:58s}{every:9.1f} s CPU, {everyone} people")
                print(f"{'  as the product looks':58s}{mine:9.1f} s CPU, {people} people: {every / mine:.1f} × less")


if __name__ == "__main__":
    main()
