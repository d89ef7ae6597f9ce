"""What six months cost: write half a year of days into one memory and compare its last month with its first day.

`python -m tools.bench.months [--shared DIR] [--weeks N] [--home DIR]`. With `--home` the memory is kept; a second run writes the
weeks that are missing, and asks again in the first week and in the last. The days are made of one real week (EgoLife, Yang et al.
2025; its captions and words lie beside the evaluation scripts and are not part of this project): every simulated week holds
the half minutes of the real one with their dates shifted, and from the second week on the days of a week and the hours of a
day are in a shuffled order (a seeded one), so that no two weeks tell the same story. Sentence vectors are made once for each
text of a moment, because making them costs the same in every month; everything else runs as it does in use: the critical commit, the
queue of what is derived from it (gone over at a week's end), and questions. Last, the questions are asked once more of the
whole memory: at the end of its first week, and at its end.

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
from edge.consolidate import Worker, build_handlers
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store
from edge.recall import Recall
from edge.settings import Settings, load_settings

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

    def load(self, path: Path) -> None:
        """Know what an earlier run knew."""
        if path.exists():
            with np.load(path) as stored:
                self._known.update(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def save(self, path: Path) -> None:
        """Let a later run know it, too."""
        known = list(self._known.items())
        np.savez(path, texts=np.array([text for text, _ in known]), vectors=np.stack([vector for _, vector in known]))


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
    plain = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    embedder = Memo(plain)
    vectors = home.with_suffix(".vectors.npz")
    embedder.load(vectors)
    chance = random.Random(1)
    start = datetime(2025, 1, 6)  # a Monday
    table = Table(box=box.SIMPLE_HEAD, title="the same memory, week by week (times in ms, median)")
    for column in (
        "week", "traces", "commit", "derived", "both, × day 1", "question", "p95", "× week 1", "MB", "MB a day",
    ):  # fmt: skip
        table.add_column(column, justify="right")
    first_day = first_question = 0.0
    size = 0
    console = Console(width=120)
    with Store.open(home, settings.memory, user=settings.user) as store:
        worker = Worker(store, build_handlers(store))
        there = store.counts().traces
        for week in range(weeks):
            path = work / "week.jsonl"
            segments = list(simulated_week(days, week, start + timedelta(weeks=week), chance))
            there -= len(segments)
            if there >= 0:
                continue  # an earlier run wrote it
            path.write_text("".join(json.dumps(segment) + "\n" for segment in segments))
            write = written(store, embedder, path)
            began = time.perf_counter()
            worker.drain()
            derive = (time.perf_counter() - began) / len(segments)
            if not week:
                first_day = statistics.median(write[: max(len(write) // 7, 1)]) + derive
                embedder.save(vectors)
            asked = questions(store, plain, settings, start + timedelta(weeks=week + 1))
            first_question = first_question or statistics.median(asked)
            counts = store.counts()
            table.add_row(
                str(week + 1), str(counts.traces), f"{statistics.median(write) * 1000:.2f}", f"{derive * 1000:.2f}",
                f"{(statistics.median(write) + derive) / first_day:.2f}" if first_day else "",
                *milliseconds(asked), f"{statistics.median(asked) / first_question:.2f}", f"{counts.bytes / 1e6:.0f}",
                f"{(counts.bytes - size) / 7e6:.1f}" if size else "",
            )  # fmt: skip
            size = counts.bytes
            print(f"week {week + 1}: {counts.traces} traces, commit {statistics.median(write) * 1000:.2f} ms,"
                  f" derived {derive * 1000:.2f} ms, question {statistics.median(asked) * 1000:.1f} ms",
                  file=sys.stderr, flush=True)  # fmt: skip
    console.print(table)
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        console.print(first_and_last(store, plain, settings, start, weeks))


def first_and_last(store: Store, embedder: TextEmbedder, settings: Settings, start: datetime, weeks: int) -> Table:
    """The whole memory, asked at the end of its first week and at its end, in turns."""
    table = Table(box=box.SIMPLE_HEAD, title=f"{len(QUESTIONS)} questions to {store.counts().traces:,} moments")
    for column in ("asked after week", "p50 ms", "p95 ms", "× week 1"):
        table.add_column(column, justify="right")
    ends = {week: start + timedelta(weeks=week) for week in (1, weeks)}
    times: dict[int, list[float]] = {week: [] for week in ends}
    for _ in range(3):
        for week, end in ends.items():
            times[week] += questions(store, embedder, settings, end)
    for week, each in times.items():
        table.add_row(
            str(week), *milliseconds(each), f"{statistics.median(each) / statistics.median(times[1]):.2f}"
        )  # fmt: skip
    return table


def written(store: Store, embedder: Memo, path: Path) -> list[float]:
    """Write a week; s of each critical commit."""
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
    return times


def questions(store: Store, embedder: TextEmbedder, settings: Settings, at: datetime) -> list[float]:
    """The time of each question asked at a time, s, its vector included; the first round warms up."""
    recall = Recall(store, embedder, settings.recall)
    now = at.replace(tzinfo=UTC).timestamp()
    times = []
    for round_ in range(2):
        for question in QUESTIONS:
            began = time.perf_counter()
            recall.ask(question, now)
            if round_:
                times.append(time.perf_counter() - began)
    return times


def milliseconds(times: Sequence[float]) -> list[str]:
    return [f"{statistics.median(times) * 1000:.1f}", f"{float(np.percentile(times, 95)) * 1000:.1f}"]


if __name__ == "__main__":
    main()
