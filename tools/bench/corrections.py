"""What corrections cost: a merge and its undo in a memory of many sightings, and how long commits wait for them.

python -m tools.bench.corrections --traces 5000
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np

from edge.identity import merge_people, not_this_person, undo
from edge.memory import Store
from edge.types.drafts import (
    CommitDraft,
    GalleryWrite,
    NewEntity,
    ObservationDraft,
    SampleDraft,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.media import Mode
from edge.types.records import EntityKind, Kind, LineDraft, Modality, mention

FACES, SIZE = "faces:bench", 512


def _trace(number: int, key: int, vector: np.ndarray, new: bool) -> CommitDraft:
    start = 1_700_000_000.0 + 30.0 * number
    who = mention(key, "a1")
    sample = SampleDraft(key, Modality.FACE, FACES, vector, 60.0, "a1", 8, 0.2, 0.4)
    slot = GalleryWrite(key, Modality.FACE, 0, FACES, vector, 60.0, 1, "a1", samples=(0,))
    return CommitDraft(
        camera="hall",
        trace=TraceDraft(
            start,
            start + 30,
            f"{who} was at a table with two cups and a laptop.",
            Mode.OFFLINE_QUALITY,
            None,
            tuple(LineDraft(start + at, f"{who} moved a cup to the window and sat down again.") for at in range(6)),
        ),
        entities=(NewEntity(key, EntityKind.PERSON),) if new else (),
        observations=(ObservationDraft("a1", "person", key, start, start + 29, f"{who} sat at a table.", 0.9),),
        utterances=(UtteranceDraft(start + 3, start + 6, "I will be back in a minute or two.", key, "v1"),),
        gallery=(slot,) if new else (),
        samples=(sample,),
    )


def _fill(store: Store, traces: int, people: int) -> list[int]:
    chance = np.random.default_rng(0)
    centres = chance.normal(size=(people, SIZE))
    ids: list[int] = []
    for number in range(traces):
        who = number % people
        one = centres[who] + chance.normal(size=SIZE) * 0.6
        vector = (one / np.linalg.norm(one)).astype(np.float32)
        new = who >= len(ids)
        done = store.commit(_trace(number, -1 if new else ids[who], vector, new))
        if new:
            ids.append(done.entities[-1])
    return ids


class _Waiting:
    """Commits small segments all the while, and knows how long the slowest took."""

    def __init__(self, store: Store, draft: CommitDraft) -> None:
        self._store, self._draft = store, draft
        self._stop = threading.Event()
        self.took: list[float] = []
        self._thread = threading.Thread(target=self._run, name="commits")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.perf_counter()
            self._store.commit(replace(self._draft, gallery=(), samples=()))
            self.took.append(time.perf_counter() - began)
            time.sleep(0.01)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=5000, help="segments with one sighting each")
    parser.add_argument("--people", type=int, default=20, help="people whom the sightings are shared among")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        ids = _fill(store, options.traces, options.people)
        share = options.traces // options.people
        print(f"{options.traces} segments with one sighting each, {options.people} people ({share} sightings each)")
        print(f"  {'correction':<34}{'s':>8}{'commits wait, s':>18}")
        draft = _trace(options.traces, ids[2], np.ones(SIZE, np.float32) / np.float32(np.sqrt(SIZE)), new=False)
        last = store.observations(entity=ids[0], limit=1)[0].id
        steps: dict[str, Callable[[], object]] = {
            "one sighting is somebody else": lambda: not_this_person(store, ids[0], [(Kind.OBSERVATION, last)]),
            "undo it": lambda: undo(store),
            f"two people of {share} are one": lambda: merge_people(store, ids[0], ids[1]),
            "undo the merge": lambda: undo(store),
        }
        for name, step in steps.items():
            with _Waiting(store, draft) as waiting:
                began = time.perf_counter()
                step()
                took = time.perf_counter() - began
            print(f"  {name:<34}{took:>8.2f}{max(waiting.took):>18.2f}")


if __name__ == "__main__":
    main()
