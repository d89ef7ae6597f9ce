"""Who is who on the labelled clips: watches them with the real networks and compares the entities with the labels.

`python -m tools.bench.identity` prints, for each clip, which entity was given in each stretch, and:

* entities: how many people the memory holds after the clip;
* B-cubed F1 over (stretch, person): 1.00 when each person is one entity and each entity one person;
* merged: entities that hold more than one person; split: people who became more than one entity;
* small: faces narrower than the gate that were enrolled.

`--stress` cuts the clips into tracks of one second, shuffles them, and lets the resolver find the people again.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from edge.app import Watch, open_rooms
from edge.capture import open_source, segments
from edge.identity import Identifier, Resolution
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.perceive import build_perceiver
from edge.settings import Settings
from edge.types.drafts import CommitDraft, ObservationDraft, TraceDraft
from edge.types.evidence import SegmentEvidence
from edge.types.media import Frame, Mode
from edge.types.records import EntityKind, ObservationRecord

CLIPS = {"grid": "grid_talkers.mp4", "intel": "intel_reappear.mp4"}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A labelled part of a clip."""

    start: float  # s of media time
    end: float
    people: tuple[str, ...]  # from left to right


@dataclass(frozen=True, slots=True)
class Item:
    """One person in one stretch, and what the memory says."""

    stretch: int
    person: str
    entity: int | None
    width: float  # px of the best face, 0: none


def read_timeline(path: Path, clip: str) -> list[Stretch]:
    """The labels of a clip."""
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["file"] == clip]
    return [Stretch(float(row["start_s"]), float(row["end_s"]), tuple(row["identities"].split(";"))) for row in rows]


def middle(seen: ObservationRecord) -> float:
    """Where somebody stands from left (0) to right (1)."""
    return float(np.mean([(box[0] + box[2]) / 2 for _, box in seen.boxes])) if seen.boxes else 0.5


def width_of(seen: ObservationRecord) -> float:
    """Width of the best face, px; 0 without one."""
    face = seen.detail.get("face")
    return float(face["width_px"]) if isinstance(face, dict) else 0.0


def place(stretch: int, label: Stretch, seen: Sequence[ObservationRecord]) -> list[Item]:
    """Match what was seen in a stretch with its people, who are listed from left to right."""
    by_entity: dict[int | None, list[ObservationRecord]] = defaultdict(list)
    for record in seen:
        if record.entity is not None:
            by_entity[record.entity].append(record)
    entities = sorted(
        by_entity, key=lambda entity: (float(np.mean([middle(r) for r in by_entity[entity]])), entity or 0)
    )
    count = len(label.people)
    if len(entities) == count:
        chosen = dict(zip(label.people, entities, strict=True))
    else:
        where = [float(np.mean([middle(r) for r in by_entity[entity]])) for entity in entities]
        cost = np.array([[abs((i + 0.5) / count - x) for x in where] for i in range(count)]).reshape(count, len(where))
        rows, columns = linear_sum_assignment(cost)
        chosen = {label.people[row]: entities[column] for row, column in zip(rows, columns, strict=True)}
    items = []
    for person in label.people:
        entity = chosen.get(person)
        widths = [width_of(record) for record in by_entity.get(entity, ())] if entity is not None else []
        items.append(Item(stretch, person, entity, max(widths, default=0.0)))
    for extra in set(entities) - set(chosen.values()):
        # Somebody who is not there: counted against whoever stands nearest.
        x = float(np.mean([middle(record) for record in by_entity[extra]]))
        items.append(Item(stretch, label.people[min(count - 1, int(x * count))], extra, 0.0))
    return items


def b_cubed(items: Sequence[tuple[str, str]]) -> float:
    """B-cubed F1 of (label, cluster) pairs."""
    precisions, recalls = [], []
    for label, cluster in items:
        same_cluster = [other for other in items if other[1] == cluster]
        same_label = [other for other in items if other[0] == label]
        both = sum(other == (label, cluster) for other in items)
        precisions.append(both / len(same_cluster))
        recalls.append(both / len(same_label))
    precision, recall = float(np.mean(precisions)), float(np.mean(recalls))
    return 2 * precision * recall / (precision + recall)


def merged_and_split(pairs: Iterable[tuple[str, int]]) -> tuple[list[str], list[str]]:
    """Entities with more than one person, and people with more than one entity, in words."""
    of_entity: dict[int, set[str]] = defaultdict(set)
    of_person: dict[str, set[int]] = defaultdict(set)
    for person, entity in pairs:
        of_entity[entity].add(person)
        of_person[person].add(entity)
    merged = [
        f"p{entity}: {', '.join(sorted(people))}" for entity, people in sorted(of_entity.items()) if len(people) > 1
    ]
    split = [
        f"{person}: {', '.join(f'p{e}' for e in sorted(ids))}"
        for person, ids in sorted(of_person.items())
        if len(ids) > 1
    ]
    return merged, split


def watch(clip: Path, home: Path) -> tuple[list[ObservationRecord], Store]:
    """Watch a clip into a new memory."""
    settings = Settings(home=home)
    with open_rooms(settings) as rooms:
        for line in rooms.missing:
            print(f"  {line}")
        Watch(rooms, str(clip), camera="bench", start=0.0).run()
    store = Store.open(home, settings.memory, user=settings.user, readonly=True)
    return store.observations(label="person", limit=100_000, newest_first=False), store


@dataclass(frozen=True, slots=True)
class Result:
    """How the people of a clip were told apart."""

    people: int  # entities of that kind
    voices: int
    f1: float  # B-cubed, over those who were enrolled
    merged: list[str]
    split: list[str]
    small: int  # faces below the gate that were enrolled
    items: list[Item]
    seen: list[int]  # observations of people in each stretch

    @property
    def fine(self) -> bool:
        """Nobody merged, nobody split, nothing small enrolled."""
        return not (self.merged or self.split or self.small)


def bench_clip(name: str, shared: Path, *, verbose: bool = False) -> Result:
    """Watch one clip and print how its people were told apart."""
    clip = shared / "media" / "derived" / CLIPS[name]
    labels = read_timeline(shared / "media" / "derived" / "timelines.csv", CLIPS[name])
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        seen, store = watch(clip, Path(folder))
        with store:
            entities = store.entities()
            decisions = store.decisions(limit=100_000) if verbose else []
    took = time.perf_counter() - began
    items: list[Item] = []
    counts = []
    for index, label in enumerate(labels):
        # What is seen for a moment at the edge of a stretch belongs to its neighbour.
        inside = [
            r for r in seen if min(r.end, label.end) - max(r.start, label.start) > 0.5 * max(r.end - r.start, 1e-6)
        ]
        counts.append(len(inside))
        items += place(index, label, inside)
    gate = Settings().perceive.face_min_width_px
    people = [entity for entity in entities if entity.kind is EntityKind.PERSON]
    merged, split = merged_and_split((item.person, item.entity) for item in items if item.entity is not None)
    known = [item for item in items if item.entity is not None]
    small = [item for item in known if 0 < item.width < gate]
    score = b_cubed([(item.person, f"p{item.entity}") for item in known]) if known else 0.0
    print(f"\n{CLIPS[name]} ({took:.1f} s)")
    print(f"  {'stretch':>15}  {'seen':>4}  person = entity (best face, px)")
    for index, label in enumerate(labels):
        parts = [
            f"{item.person} = {f'p{item.entity} ({item.width:.0f})' if item.entity else 'unknown'}"
            for item in items
            if item.stretch == index
        ]
        print(f"  {label.start:6.2f} – {label.end:6.2f}  {counts[index]:>4}  {'; '.join(parts)}")
    labelled = len({person for label in labels for person in label.people})
    voices = len(entities) - len(people)
    print(f"  entities: {len(people)} people, {voices} voices; labelled people: {labelled}")
    print(f"  B-cubed F1 of those enrolled: {score:.2f}")
    print(f"  merged: {'; '.join(merged) or 'none'}")
    print(f"  split: {'; '.join(split) or 'none'}")
    print(f"  small faces enrolled (< {gate:.0f} px): {len(small)}")
    for decision in reversed(decisions):
        print(f"    {decision.anchor:>4} {decision.outcome.value:8} {decision.reason} {decision.evidence}")
    return Result(len(people), voices, score, merged, split, len(small), items, counts)


# -- stress ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Second:
    """What perception found in one second of a clip, and who is in it."""

    evidence: SegmentEvidence
    people: dict[str, str]  # anchor of a track with a safe face -> label


def labelled_media(media: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """Clips and photographs with who is in them, from left to right."""
    with (media / "video" / "identities.csv").open(encoding="utf-8") as file:
        rows = [(row["file"], row["identity"]) for row in csv.DictReader(file)]
    return [(media / name, tuple(people.split(";"))) for name, people in rows if not people.startswith("(")]


def perceive_seconds(media: Path) -> list[Second]:
    """Run the networks once over all labelled media, a second at a time."""
    settings = Settings()
    capture = settings.capture.model_copy(update={"segment_max_s": 1.01, "segment_min_s": 1.0, "sample_fps": 5.0})
    catalog, runtime = Catalog.load(settings.infer), Runtime(settings.infer)
    perceiver = build_perceiver(catalog, runtime, settings.perceive, speech=False)
    found = []
    for path, people in labelled_media(media):
        source = open_source(str(path), camera="bench", start=0.0, settings=capture)
        stop = threading.Event()
        for item in segments(source, vad=None, settings=capture, mode=Mode.OFFLINE_QUALITY, stop=stop):
            if isinstance(item, Frame):
                perceiver.see(item)
                continue
            evidence = perceiver.close(item)
            safe = [track for track in evidence.tracks if track.face is not None and track.face.safe]
            where = [float(np.mean([(box[0] + box[2]) / 2 for _, box in track.boxes])) for track in safe]
            wanted = [(place + 0.5) / len(people) for place in range(len(people))]
            cost = np.abs(np.subtract.outer(where, wanted)).reshape(len(where), len(wanted))
            rows, columns = linear_sum_assignment(cost)
            labels = {safe[row].anchor: people[column] for row, column in zip(rows, columns, strict=True)}
            if labels:
                found.append(Second(evidence, labels))
    return found


def moved(evidence: SegmentEvidence, by: float) -> SegmentEvidence:
    """The same evidence at another time."""
    tracks = tuple(replace(track, start=track.start + by, end=track.end + by) for track in evidence.tracks)
    return replace(evidence, start=evidence.start + by, end=evidence.end + by, tracks=tracks, key_frames=())


def bench_stress(shared: Path, shuffles: int) -> bool:
    """Shuffle one-second tracks and let the resolver find the people again, in a new memory each time."""
    seconds = perceive_seconds(shared / "media")
    labels = {label for second in seconds for label in second.people.values()}
    tracks = sum(len(second.people) for second in seconds)
    print(f"\nstress: {tracks} tracks of one second, {len(labels)} people, {shuffles} shuffles")
    print(
        f"  {'shuffle':>7}  {'F1':>5}  {'entities':>8}  {'merged':>6}  {'split':>5}  {'unknown':>7}  {'ms a segment':>12}"
    )
    fine = True
    for seed in range(shuffles):
        order = np.random.default_rng(seed).permutation(len(seconds))
        pairs: list[tuple[str, str]] = []
        took = 0.0
        with (
            tempfile.TemporaryDirectory() as folder,
            Store.open(Path(folder), Settings().memory, user="owner") as store,
        ):
            room = Identifier(store, Settings().identity, user="owner")
            for turn, index in enumerate(order):
                second = seconds[index]
                evidence = moved(second.evidence, turn * 60.0 - second.evidence.start)
                began = time.perf_counter()
                resolution = room.resolve(evidence)
                took += time.perf_counter() - began
                committed = store.commit(draft_of(evidence, resolution))
                room.committed(resolution, committed)
                for anchor, label in second.people.items():
                    key = resolution.assigned[anchor]
                    entity = f"p{committed.entities[key]}" if key is not None else f"unknown {turn} {anchor}"
                    pairs.append((label, entity))
            entities = len(store.entities())
        known = [(label, int(entity[1:])) for label, entity in pairs if entity.startswith("p")]
        merged, split = merged_and_split(known)
        fine = fine and not merged
        unknown = len(pairs) - len(known)
        print(
            f"  {seed:>7}  {b_cubed(pairs):>5.3f}  {entities:>8}  {len(merged):>6}  {len(split):>5}  {unknown:>7}"
            f"  {1000 * took / len(order):>12.2f}"
        )
        for line in merged:
            print(f"           merged {line}")
        for line in split:
            print(f"           split {line}")
    return fine


def draft_of(evidence: SegmentEvidence, resolution: Resolution) -> CommitDraft:
    """What the identities of a segment write, without description, sound and pictures."""
    return CommitDraft(
        camera=evidence.camera,
        trace=TraceDraft(evidence.start, evidence.end, "", Mode.OFFLINE_QUALITY, None),
        entities=resolution.entities,
        observations=tuple(
            ObservationDraft(t.anchor, t.label, resolution.assigned.get(t.anchor), t.start, t.end, "", t.score)
            for t in evidence.tracks
        ),
        decisions=resolution.decisions,
        gallery=resolution.gallery,
        samples=resolution.samples,
        pending=resolution.pending,
        pending_used=resolution.pending_used,
    )


def main() -> None:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("REFLECTWORLD_SHARED", ROOT.parent / "shared"))
    parser.add_argument("--shared", type=Path, default=default, help="folder of the evaluation media")
    parser.add_argument("--clip", choices=sorted(CLIPS), action="append", help="only this clip")
    parser.add_argument("--verbose", action="store_true", help="print every decision")
    parser.add_argument("--stress", action="store_true", help="shuffled tracks of one second instead of the clips")
    parser.add_argument("--shuffles", type=int, default=5, help="orders that the stress tries")
    options = parser.parse_args()
    if not (options.shared / "media" / "derived").is_dir():
        sys.exit(f"The evaluation media are not at {options.shared}; give their folder with --shared.")
    if options.stress:
        sys.exit(0 if bench_stress(options.shared, options.shuffles) else 1)
    results = [bench_clip(name, options.shared, verbose=options.verbose) for name in options.clip or CLIPS]
    sys.exit(0 if all(result.fine for result in results) else 1)


if __name__ == "__main__":
    main()
