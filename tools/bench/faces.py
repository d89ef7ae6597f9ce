"""Faces: who is accepted as whom, what the gates refuse, whose mouth moves, and what looking costs.

    python -m tools.bench.faces [pairs tracks gates mouths schedule …] [--media FOLDER]

Everything goes through the Perceiver, as a watch does. `pairs` and `tracks` compare the mean of each track's best shots with
that of every other by cosine; `gates` counts the faces that pass on labelled photographs, and on faces enlarged from few
pixels; `schedule` compares the CPU time of the Perceiver with that of every network on 5 frames a second. The exit status is
1 when a pair is decided wrongly, a false face passes, or someone is lost.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from rich.console import Console
from rich.table import Table

from edge.infer import Catalog, Runtime
from edge.perceive import Perceiver, build_perceiver
from edge.settings import IdentitySettings, InferSettings, PerceiveSettings
from edge.types.evidence import FaceEvidence, SegmentEvidence, Track
from edge.types.media import CutReason, Frame, Image, Segment, SegmentCounts

ROOT = Path(__file__).resolve().parents[2]
MATCH = IdentitySettings().face_match
LONGER_PX = 1280  # as capture hands frames on
DUPLICATE = 1.0  # as capture prunes: worst of 8×8 tiles, mean absolute grey difference

Timed = tuple[float, Image]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A face whose person is known."""

    person: str
    where: str
    face: FaceEvidence


def pictures(path: Path, rate: float) -> Iterator[Timed]:
    """Frames of a file at `rate` a second, upright pixels square, not larger than capture makes them."""
    if path.suffix in {".jpg", ".png"}:
        image = cv2.imread(str(path))
        if image is not None:
            yield 0.0, smaller(image)
        return
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        aspect = float(stream.sample_aspect_ratio or 1)
        due = 0.0
        for frame in container.decode(stream):
            at = float(frame.time or 0.0)
            if at + 1e-6 < due:
                continue
            due += 1 / rate
            image = np.asarray(frame.to_ndarray(format="bgr24"), np.uint8)
            if abs(aspect - 1) > 1e-3:
                image = cv2.resize(image, (round(image.shape[1] * aspect), image.shape[0]))
            yield at, smaller(image)


def smaller(image: Any) -> Image:
    scale = LONGER_PX / max(image.shape[:2])
    return np.asarray(resized(image, scale) if scale < 1 else image, np.uint8)


def resized(image: Any, scale: float) -> Image:
    return np.asarray(cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA), np.uint8)


def pruned(frames: Iterable[Timed]) -> Iterator[Timed]:
    """Without near-duplicates, as capture hands them on."""
    last: np.ndarray | None = None
    for at, image in frames:
        grey = cv2.resize(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), (64, 64), interpolation=cv2.INTER_AREA).astype(float)
        if last is not None:
            tiles = np.abs(grey - last).reshape(8, 8, 8, 8).mean(axis=(1, 3))
            if tiles.max() < DUPLICATE:
                continue
        last = grey
        yield at, image


def look(perceiver: Perceiver, frames: Iterable[Timed]) -> SegmentEvidence:
    """One segment of these frames."""
    last, before = 0.0, None
    for index, (at, image) in enumerate(frames):
        grey = cv2.resize(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), (64, 36), interpolation=cv2.INTER_AREA).astype(float)
        change = 255.0 if before is None else float(np.abs(grey - before).mean())
        perceiver.see(Frame(image, at, index, 0.0, change))
        last, before = at, grey
    segment = Segment(
        camera="bench",
        source="0" * 32,
        index=0,
        start=0.0,
        end=last + 0.5,
        reason=CutReason.END_OF_SOURCE,
        first_of_event=True,
        still=False,
        audio=None,
        audio_start=0.0,
        speech=(),
        audio_faults=0,
        counts=SegmentCounts(),
    )
    return perceiver.close(segment)


def faces(evidence: SegmentEvidence) -> list[Track]:
    """People whose face was seen, from left to right."""
    seen = [track for track in evidence.tracks if track.face is not None]
    return sorted(seen, key=lambda track: track.boxes[0][1][0])


def labels(media: Path) -> dict[str, list[str]]:
    """File → its people from left to right."""
    with (media / "video" / "identities.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return {row["file"]: row["identity"].split(";") for row in rows if not row["identity"].startswith("(")}


def known_faces(perceiver: Perceiver, media: Path, wanted: Callable[[str], bool]) -> tuple[list[Known], list[str]]:
    """The labelled faces of some files, and the files whose people were not all found."""
    found: list[Known] = []
    short: list[str] = []
    for name, people in labels(media).items():
        if not wanted(name):
            continue
        tracks = faces(look(perceiver, pictures(media / name, 2.0)))
        if len(tracks) != len(people):
            short.append(f"{name}: {len(tracks)} faces for {len(people)} people")
            continue
        found += [
            Known(person, Path(name).name, track.face)
            for person, track in zip(people, tracks, strict=True)
            if track.face is not None
        ]
    return found, short


def compare(console: Console, title: str, known: list[Known], short: list[str], *, all_rows: bool) -> bool:
    """Print the cosine of each pair; whether every one is decided rightly at the bound of identity."""
    pairs = []
    for one, two in itertools.combinations(known, 2):
        if one.face.embedding is not None and two.face.embedding is not None and one.where != two.where:
            pairs.append((one.person == two.person, float(one.face.embedding @ two.face.embedding), one, two))
    pairs.sort(key=lambda pair: (not pair[0], pair[1] if pair[0] else -pair[1]))
    same = [cosine for equal, cosine, *_ in pairs if equal]
    different = [cosine for equal, cosine, *_ in pairs if not equal]
    table = Table("people", "first", "second", "cosine", f"at {MATCH:.2f}", title=title)
    shown = pairs if all_rows else [*pairs[: min(len(same), 8)], *pairs[len(same) : len(same) + 8]]
    for equal, cosine, one, two in shown:
        verdict = "accepted" if cosine >= MATCH else "refused"
        right = (cosine >= MATCH) == equal
        who = one.person if equal else f"{one.person} / {two.person}"
        table.add_row(who, one.where, two.where, f"{cosine:.3f}", verdict if right else f"[red]{verdict}[/]")
    console.print(table)
    wrong = sum(cosine < MATCH for cosine in same) + sum(cosine >= MATCH for cosine in different)
    console.print(
        f"same person: {len(same)} pairs, least {min(same):.3f}; different people: {len(different)} pairs, most "
        f"{max(different):.3f}; wrong at {MATCH:.2f}: {wrong}"
    )
    unsafe = [f"{item.person} in {item.where}: {item.face.reason}" for item in known if not item.face.safe]
    for line in [*short, *unsafe]:
        console.print(f"  left out: {line}")
    return wrong == 0


def bench_pairs(console: Console, perceiver: Perceiver, media: Path) -> bool:
    known, short = known_faces(perceiver, media, lambda name: name.startswith("faces/us_gov"))
    return compare(console, "faces/us_gov, every pair", known, short, all_rows=True) and not short


def bench_tracks(console: Console, perceiver: Perceiver, media: Path) -> bool:
    known, short = known_faces(perceiver, media, lambda name: not name.endswith((".jpg", ".png")))
    return compare(console, "tracks of the clips, hardest pairs", known, short, all_rows=False)


def bench_gates(console: Console, perceiver: Perceiver, media: Path) -> bool:
    """Faces on labelled photographs must lie in people; faces enlarged from few pixels should not pass."""
    folder = media / "detection" / "coco_val2017_subset"
    document = json.loads((folder / "instances.json").read_text(encoding="utf-8"))
    people: dict[int, list[list[float]]] = {}
    person = next(category["id"] for category in document["categories"] if category["name"] == "person")
    for item in document["annotations"]:
        if item["category_id"] == person:
            people.setdefault(item["image_id"], []).append(item["bbox"])
    passed = refused = false = 0
    reasons: dict[str, int] = {}
    for entry in document["images"]:
        evidence = look(perceiver, pictures(folder / "images" / entry["file_name"], 1))
        for track in faces(evidence):
            if track.face is None:
                continue
            shot = track.face.shots[0]
            x, y = (shot.box[0] + shot.box[2]) / 2, (shot.box[1] + shot.box[3]) / 2
            boxes = people.get(entry["id"], [])
            inside = any(left <= x <= left + wide and top <= y <= top + high for left, top, wide, high in boxes)
            passed += track.face.safe
            refused += not track.face.safe
            false += track.face.safe and not inside
            if not track.face.safe:
                reason = track.face.reason.split(" (")[0].split(":")[0]
                reasons[reason] = reasons.get(reason, 0) + 1
    console.print(
        f"21 COCO photographs: {passed} faces pass the gates, {refused} are refused; pass outside of people: {false}"
    )
    for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1]):
        console.print(f"  {count:3d} × {reason}")
    table = Table(
        "enlarged from, px wide", "faces", "pass", title="one frame of each clip with a face of 45 px and more"
    )
    sources = [path for path in sorted((media / "video").rglob("*")) if path.suffix in {".mpg", ".gif", ".jpg"}]
    for width in (None, 30, 20, 15):
        count = good = 0
        for path in sources:
            image = next(pictures(path, 1.0))[1]
            tracks = faces(look(perceiver, [(0.0, image)]))
            large = [track.face for track in tracks if track.face is not None and track.face.shots[0].width >= 45]
            if not large:
                continue
            if width is not None:
                scale = width / max(face.shots[0].width for face in large)
                size = image.shape[1::-1]
                image = smaller(cv2.resize(resized(image, scale), size, interpolation=cv2.INTER_CUBIC))
                tracks = faces(look(perceiver, [(0.0, image)]))
                large = [track.face for track in tracks if track.face is not None and track.face.shots[0].width >= 45]
            count += len(large)
            good += sum(face.safe for face in large)
        table.add_row("as it is" if width is None else str(width), str(count), str(good))
    console.print(table)
    return false == 0


def bench_mouths(console: Console, perceiver: Perceiver, media: Path) -> bool:
    """Motion of mouths beside that of upper faces, at 2 frames a second."""
    table = Table("clip", "track", "speaks", "mouth motion", title="mouth motion over upper-face motion")
    talking: list[float] = []
    silent: list[float] = []
    speaking = 1.15  # the bound at which a voice is tied to a face
    for path in sorted((media / "video").rglob("*")):
        if path.suffix not in {".mpg", ".gif", ".mp4"} or path.parent.name == "nasa":
            continue
        speaks = {"grid": True, "intel": False}.get(path.parent.name) if path.stem != "selfie_woman_20s" else False
        for track in faces(look(perceiver, pictures(path, 2.0))):
            motion = track.face.mouth_motion if track.face is not None else 0.0
            if motion > 0:
                (talking if speaks else silent if speaks is False else []).append(motion)
            says = {True: "yes", False: "no", None: "not labelled"}[speaks]
            table.add_row(path.name, track.anchor, says, f"{motion:.2f}" if motion else "unknown")
    console.print(table)
    over = sum(motion > speaking for motion in talking)
    console.print(
        f"talkers: {over} of {len(talking)} above {speaking}, least {min(talking):.2f}; silent faces: most {max(silent):.2f}"
    )
    return over >= 0.8 * len(talking) and max(silent) < speaking


def bench_schedule(console: Console, perceiver: Perceiver, media: Path) -> bool:
    """CPU time of the Perceiver against every network on every frame at 5 frames/s, and whom each finds."""
    every = seconds = 0.0
    lost: list[str] = []
    length = 0.0
    for name in ("derived/grid_talkers.mp4", "derived/intel_reappear.mp4", "video/egoblur/selfie_woman_20s.mp4"):
        frames = list(pictures(media / name, 5.0))
        length += frames[-1][0] + 0.2
        began = time.process_time()
        reference = [track for frame in frames for track in faces(look(perceiver, [frame]))]
        every += time.process_time() - began
        began = time.process_time()
        chosen = list(pruned(pictures_at(frames, 2.0)))
        found = []
        for piece in pieces(chosen):
            found += faces(look(perceiver, piece))
        seconds += time.process_time() - began
        mine = [track.face.embedding for track in found if track.face is not None and track.face.embedding is not None]
        for track in reference:
            vector = track.face.embedding if track.face is not None else None
            if vector is not None and not any(float(vector @ other) >= MATCH for other in mine):
                lost.append(f"{name} at {track.start:.1f} s")
    table = Table("schedule", "CPU s", "of real time", title=f"{length:.0f} s of clips, decoding left out")
    table.add_row("every network, 5 frames/s, every face embedded", f"{every:.1f}", f"{every / length:.3f}")
    table.add_row(
        "Perceiver, 2 frames/s without near-duplicates, best shots", f"{seconds:.1f}", f"{seconds / length:.3f}"
    )
    console.print(table)
    console.print(f"ratio {every / seconds:.1f}; safe faces of single frames that no track resembles: {len(lost)}")
    for line in lost[:8]:
        console.print(f"  {line}")
    return not lost


def pictures_at(frames: list[Timed], rate: float) -> Iterator[Timed]:
    due = 0.0
    for at, image in frames:
        if at + 1e-6 >= due:
            due += 1 / rate
            yield at, image


def pieces(frames: list[Timed]) -> Iterator[list[Timed]]:
    """Cut where the picture changes as a whole, as capture does."""
    piece: list[Timed] = []
    for at, image in frames:
        if piece:
            small = [
                cv2.resize(cv2.cvtColor(i, cv2.COLOR_BGR2GRAY), (64, 36)).astype(float) for i in (piece[-1][1], image)
            ]
            if float(np.abs(small[0] - small[1]).mean()) > 14:
                yield piece
                piece = []
        piece.append((at, image))
    if piece:
        yield piece


BENCHES = {
    "pairs": bench_pairs,
    "tracks": bench_tracks,
    "gates": bench_gates,
    "mouths": bench_mouths,
    "schedule": bench_schedule,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*BENCHES, []], help="which tables to print; default: all")
    parser.add_argument(
        "--media", type=Path, help="folder of the evaluation media; default: media in REFLECTWORLD_SHARED"
    )
    arguments = parser.parse_args()
    media = arguments.media or Path(os.environ.get("REFLECTWORLD_SHARED", ROOT.parent / "shared")) / "media"
    console = Console(width=120)
    if not media.is_dir():
        console.print(f"The evaluation media are not at {media}. Set REFLECTWORLD_SHARED, or give --media.")
        return 2
    settings = InferSettings()
    perceiver = build_perceiver(Catalog.load(settings), Runtime(settings), PerceiveSettings(), speech=False)
    right = [BENCHES[part](console, perceiver, media) for part in arguments.parts or BENCHES]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
