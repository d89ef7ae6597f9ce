"""Object detection: accuracy on labelled COCO pictures and speed, the shipped network against another file of it.

    python -m tools.bench.detection [--other FILE [--decoder NAME]]

AP as COCO defines it (Lin et al. 2014): per class, greedy matching by falling score, precision made monotonic and read
at 101 recalls, mean over the classes that occur; AP50-95 is the mean over IoU .50, .55, … .95. The exit status is 1
when the shipped network misses its floors.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from edge.infer import Catalog, ModelFile, ModelSpec, Runtime
from edge.perceive.objects import ObjectDetector, build_object_detector
from edge.settings import InferSettings
from edge.types.evidence import Box, Detection
from edge.types.media import Image

IOUS = tuple(np.arange(0.5, 1.0, 0.05).round(2).tolist())
RECALLS = np.linspace(0, 1, 101)
MAX_DETECTIONS = 100  # a picture and class, as COCO counts
FLOOR_AP50, FLOOR_PERSON = 0.44, 0.75
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A picture and the boxes that people drew."""

    name: str
    image: Image
    truth: Mapping[str, tuple[Box, ...]]  # class → boxes x1, y1, x2, y2 px; groups ("crowds") are left out


def load(folder: Path) -> list[Labelled]:
    """The pictures of a folder with `instances.json` and `images/`."""
    labels = json.loads((folder / "instances.json").read_text(encoding="utf-8"))
    names = {category["id"]: category["name"] for category in labels["categories"]}
    truth: dict[int, dict[str, list[Box]]] = defaultdict(lambda: defaultdict(list))
    for item in labels["annotations"]:
        if not item["iscrowd"]:
            x, y, wide, high = item["bbox"]
            truth[item["image_id"]][names[item["category_id"]]].append((x, y, x + wide, y + high))
    pictures = []
    for entry in labels["images"]:
        image = cv2.imread(str(folder / "images" / entry["file_name"]), cv2.IMREAD_COLOR)
        boxes = {name: tuple(found) for name, found in truth[entry["id"]].items()}
        pictures.append(Labelled(entry["file_name"], image, boxes))
    return pictures


def overlap(one: Box, other: Box) -> float:
    """Intersection over union of two boxes."""
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    shared = wide * high
    return shared / ((one[2] - one[0]) * (one[3] - one[1]) + (other[2] - other[0]) * (other[3] - other[1]) - shared)


def average_precision(
    truth: Sequence[Sequence[Box]], found: Sequence[Sequence[tuple[float, Box]]], threshold: float
) -> float:
    """AP of one class at one IoU.

    Args:
        truth: true boxes of each picture.
        found: score and box of each detection of each picture.
        threshold: IoU at which a detection is right.
    """
    verdicts: list[tuple[float, bool]] = []
    for boxes, detections in zip(truth, found, strict=True):
        free = list(boxes)
        for score, box in sorted(detections, key=lambda item: -item[0])[:MAX_DETECTIONS]:
            best = max(free, key=lambda other: overlap(box, other), default=None)
            right = best is not None and overlap(box, best) >= threshold
            if right and best is not None:
                free.remove(best)
            verdicts.append((score, right))
    total = sum(len(boxes) for boxes in truth)
    if not verdicts or not total:
        return 0.0
    verdicts.sort(key=lambda item: -item[0])
    right_so_far = np.cumsum([right for _, right in verdicts])
    recall = right_so_far / total
    precision = right_so_far / np.arange(1, len(verdicts) + 1)
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, RECALLS, side="left")
    read: NDArray[np.float64] = np.where(at < len(precision), precision[np.minimum(at, len(precision) - 1)], 0.0)
    return float(read.mean())


def evaluate(pictures: Sequence[Labelled], found: Sequence[Sequence[Detection]]) -> dict[str, tuple[float, float]]:
    """AP50 and AP50-95 of each class that occurs."""
    classes = sorted({name for picture in pictures for name in picture.truth})
    results = {}
    for name in classes:
        truth = [picture.truth.get(name, ()) for picture in pictures]
        mine = [[(item.score, item.box) for item in items if item.label == name] for items in found]
        scores = [average_precision(truth, mine, threshold) for threshold in IOUS]
        results[name] = (scores[0], statistics.fmean(scores))
    return results


def time_alternately(
    detectors: Sequence[ObjectDetector], pictures: Sequence[Labelled], rounds: int
) -> list[list[float]]:
    """Milliseconds a picture for each detector, taken in turns so that a busy machine is busy for all."""
    spent: list[list[float]] = [[] for _ in detectors]
    for _ in range(rounds):
        for picture in pictures:
            for times, detector in zip(spent, detectors, strict=True):
                begin = time.perf_counter()
                detector.detect(picture.image)
                times.append((time.perf_counter() - begin) * 1e3)
    return spent


def file_spec(path: Path, decoder: str, catalog: Catalog) -> ModelSpec:
    """A network file that is in no catalogue, with the parameters of its decoder."""
    base = catalog.default("objects")
    shared = dict(catalog.decoders[decoder].params)
    if isinstance(shared.get("labels"), str):
        shared["labels"] = catalog.labels[shared["labels"]]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    file = ModelFile(path.name, digest, path.stat().st_size, base.files[0].source, path)
    return replace(base, id=path.stem, decoder=decoder, files=(file,), params=shared)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; the status says whether the floors are met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("REFLECTWORLD_SHARED", ROOT.parent / "shared"))
    parser.add_argument(
        "--media",
        type=Path,
        default=shared / "media/detection/coco_val2017_subset",
        help="folder with instances.json and images/",
    )
    parser.add_argument("--model", help="id of the shipped network (default: the catalogue's first for objects)")
    parser.add_argument(
        "--other", type=Path, help="another ONNX file to compare with, e.g. the network before quantisation"
    )
    parser.add_argument("--decoder", help="decoder of the other file (default: that of the shipped network)")
    parser.add_argument("--threshold", type=float, default=0.01, help="score from which detections are counted for AP")
    parser.add_argument(
        "--speed-threshold", type=float, default=0.38, help="score while speed is measured: that of the product"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds over the pictures for the speed")
    parser.add_argument("--classes", action="store_true", help="AP50 of each class, too")
    options = parser.parse_args(arguments)
    console = Console(width=120)
    if not (options.media / "instances.json").is_file():
        console.print(f"There are no labelled pictures at {options.media}; set REFLECTWORLD_SHARED or --media.")
        return 2
    settings = InferSettings()
    catalog, runtime = Catalog.load(settings), Runtime(settings)
    shipped = catalog.get(options.model) if options.model else catalog.default("objects")
    specs = [shipped]
    if options.other:
        specs.append(file_spec(options.other, options.decoder or shipped.decoder, catalog))
    pictures = load(options.media)
    results = []
    for spec in specs:
        detector = build_object_detector(spec, runtime, options.threshold)
        results.append(evaluate(pictures, [detector.detect(picture.image) for picture in pictures]))
    timed = [build_object_detector(spec, runtime, options.speed_threshold) for spec in specs]
    time_alternately(timed, pictures[:3], 1)
    spent = time_alternately(timed, pictures, options.rounds)
    table = Table(title=f"{len(pictures)} labelled COCO pictures, {runtime.description}")
    for heading in (
        "network",
        "AP50",
        "AP50-95",
        "person AP50",
        "person AP50-95",
        "ms a picture",
        "times the shipped one's",
    ):
        table.add_column(heading, justify="left" if heading == "network" else "right")
    for spec, result, times in zip(specs, results, spent, strict=True):
        ratio = statistics.median(mine / base for mine, base in zip(times, spent[0], strict=True))
        person = result.get("person", (0.0, 0.0))
        mean = [statistics.fmean(values) for values in zip(*result.values(), strict=True)]
        table.add_row(
            spec.id, *(f"{value:.3f}" for value in (*mean, *person)), f"{statistics.median(times):.1f}", f"{ratio:.2f}"
        )
    console.print(table)
    if options.classes:
        for name in sorted(results[0], key=lambda name: -results[0][name][0]):
            console.print(f"  {name:16}" + "".join(f"{result[name][0]:8.3f}" for result in results))
    ap50 = statistics.fmean(value for value, _ in results[0].values())
    person_ap50 = results[0]["person"][0]
    met = ap50 >= FLOOR_AP50 and person_ap50 >= FLOOR_PERSON
    verdict = "met" if met else "MISSED"
    console.print(
        f"Floors AP50 ≥ {FLOOR_AP50}, person AP50 ≥ {FLOOR_PERSON}: {verdict} ({ap50:.3f}, {person_ap50:.3f})."
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
