"""What six months cost: write half a year of days into one memory and compare its last month with its first day.

`python -m tools.bench.months [--shared DIR] [--weeks N] [--home DIR]`. The days are made of one real week (EgoLife, Yang et al.
2025; its captions and words lie beside the evaluation scripts and are not part of this project): every simulated week holds
the half minutes of the real one with their dates shifted, and from the second week on the days of a week and the hours of a
day are in a shuffled order (a seeded one), so that no two weeks tell the same story. Sentence vectors are made once for each
text, because making them costs the same in every month; everything else runs as it does in use: the critical commit, the
queue of what is derived from it, and questions.

Ratios inside this one run are what counts: the machine's speed is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store
from edge.recall import Recall
from edge.settings import load_settings

DAY_S = 86_400.0
QUESTIONS = (
    "Where did I leave my keys?", "Who cooked dinner yesterday?", "What did we talk about at breakfast?",
    "When did I last use the hair dryer?", "Who was in the kitchen?", "What did Alice say about the music?",
    "Did somebody open the fridge this morning?", "Where is the red cup?", "How often did we order coffee?",
    "Who played a game with Lucia?", "What did I buy at the supermarket?", "Where did I put my phone?",
    "When did Shure play the guitar?", "Who washed the dishes last?", "What did Jake say about the plan?",
    "Did Katrina dance?", "Who sat on the sofa?", "What was on the table last night?", "When did we go out?",
    "Who talked on the phone?",
)  # fmt: skip


class Memo:
    """A sentence embedder that makes the vector of a text once."""

    def __init__(self, embedder: TextEmbedder) -> None:
        self._embedder = embedder
        self._known: dict[str, NDArray[np.float32]] = {}

    @property
    def key(self) -> str:
        return self._embedder.key

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--weeks", type=int, default=26, help="how many weeks (default 26: six months)")
    parser.add_argument("--home", type=Path, help="keep the memory here")
    parser.add_argument("--every", type=int, default=1, help="take every n-th half minute only, for a quick look")
    options = parser.parse_args()
    evaluation = options.shared / "eval"
    if not (evaluation / "egolife").is_dir():
        parser.error(f"there is no {evaluation / 'egolife'}; set REFLECTWORLD_SHARED or give --shared")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        subprocess.run(
            [sys.executable, str(evaluation / "egolife_convert.py"), str(work)], check=True, capture_output=True
        )
        days = real_days(work / "segments.jsonl", options.every)
        bench(days, work, options.home or work / "home", options.weeks)


def real_days(path: Path, every: int) -> list[list[dict[str, object]]]:
    """The segments of the week by day."""
    days: dict[str, list[dict[str, object]]] = {}
    with path.open() as lines:
        for number, line in enumerate(lines):
            if number % every == 0:
                segment = json.loads(line)
                days.setdefault(segment["start"][:10], []).append(segment)
    return [days[day] for day in sorted(days)]


def simulated_week(
    days: list[list[dict[str, object]]], week: int, start: datetime, chance: random.Random
) -> Iterator[dict[str, object]]:
    """One week as described segments, in the order of time."""
    order = list(range(len(days)))
    if week:
        chance.shuffle(order)
    for place, day in enumerate(order):
        segments = days[day]
        stories = list(range(len(segments)))
        if week:
            # Hours change places: runs of about an hour stay whole, as an hour of a life does.
            runs = [stories[at : at + 120] for at in range(0, len(stories), 120)]
            chance.shuffle(runs)
            stories = [story for run in runs for story in run]
        date = start + timedelta(days=place)
        for slot, story in zip(segments, stories, strict=True):
            yield moved(segments[story], stamp(slot["start"], date) - instant(segments[story]["start"]))


def instant(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def stamp(text: object, date: datetime) -> datetime:
    """The hour of a real segment on a simulated day."""
    at = instant(text)
    return at.replace(year=date.year, month=date.month, day=date.day)


def moved(segment: dict[str, object], by: timedelta) -> dict[str, object]:
    def shifted(items: object) -> list[dict[str, object]]:
        return [{**item, "at": (instant(item["at"]) + by).isoformat()} for item in items]  # type: ignore[attr-defined]

    return {
        **segment,
        "start": (instant(segment["start"]) + by).isoformat(),
        "end": (instant(segment["end"]) + by).isoformat(),
        "captions": shifted(segment["captions"]),
        "utterances": shifted(segment["utterances"]),
    }


def bench(days: list[list[dict[str, object]]], work: Path, home: Path, weeks: int) -> None:
    settings = load_settings(home)
    embedder = Memo(build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer)))
    chance = random.Random(1)
    start = datetime(2025, 1, 6)  # a Monday
    table = Table(box=box.SIMPLE_HEAD, title="the same memory, week by week (times in ms, median)")
    for column in (
        "week",
        "traces",
        "commit",
        "derived",
        "both, × day 1",
        "question",
        "× week 1",
        "MB",
        "MB a day",
        "bounded",
    ):
        table.add_column(column, justify="right")
    first_day = first_question = 0.0
    size = 0
    console = Console(width=120)
    with Store.open(home, settings.memory, user=settings.user) as store:
        for week in range(weeks):
            path = work / "week.jsonl"
            with path.open("w") as sink:
                for segment in simulated_week(days, week, start + timedelta(weeks=week), chance):
                    sink.write(json.dumps(segment) + "\n")
            write, derive = written(store, embedder, path)
            each = [one + other for one, other in zip(write, derive, strict=True)]
            if not week:
                first_day = statistics.median(each[: max(len(each) // 7, 1)])
            now = (start + timedelta(weeks=week + 1)).replace(tzinfo=UTC).timestamp()
            asked = questions(Recall(store, embedder, settings.recall, now=lambda now=now: now))
            first_question = first_question or asked
            counts = store.counts()
            table.add_row(
                str(week + 1), str(counts.traces), f"{statistics.median(write) * 1000:.2f}",
                f"{statistics.median(derive) * 1000:.2f}", f"{statistics.median(each) / first_day:.2f}",
                f"{asked * 1000:.1f}", f"{asked / first_question:.2f}", f"{counts.bytes / 1e6:.0f}",
                f"{(counts.bytes - size) / 7e6:.1f}", "",
            )  # fmt: skip
            size = counts.bytes
            print(f"week {week + 1}: {counts.traces} traces, commit {statistics.median(write) * 1000:.2f} ms,"
                  f" question {asked * 1000:.1f} ms", file=sys.stderr, flush=True)  # fmt: skip
    console.print(table)


def written(store: Store, embedder: Memo, path: Path) -> tuple[list[float], list[float]]:
    """Write a week; s of each critical commit, and of what is derived from each segment."""
    times: list[float] = []
    commit = store.commit

    def timed(draft: object) -> object:
        began = time.perf_counter()
        done = commit(draft)  # type: ignore[arg-type]
        times.append(time.perf_counter() - began)
        return done

    store.commit = timed  # type: ignore[method-assign, assignment]
    try:
        replay(store, embedder, DescribedFile(path, UTC))
    finally:
        store.commit = commit  # type: ignore[method-assign]
    return times, [0.0] * len(times)


def questions(recall: Recall) -> float:
    """The median time of a question, s; the first round warms up."""
    times = []
    for round_ in range(2):
        for question in QUESTIONS:
            began = time.perf_counter()
            recall.ask(question)
            if round_:
                times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
