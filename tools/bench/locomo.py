"""Find the turns of long conversations that answer questions about them, beside words alone.

`python -m tools.bench.locomo [--shared DIR] [--without PART]…`. The data are LoCoMo (Maharana et al. 2024), which is not part of
this project (REFLECTWORLD_SHARED names the folder). Each turn is replayed as a moment of its own, in which its speaker says it and
shows the picture that is described; each question is asked after the last turn. *recall@k* is the share of a question's evidence among
the first k moments, averaged over questions. BM25 is SQLite's, over the same turns with the same stemmer, in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_head, build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.clock import iso
from edge.consolidate import Worker, build_handlers
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.recall import Query
from edge.settings import load_settings
from tools.bench.without import PARTS, Without

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
KS = (5, 10, 20, 50)
TURN_S = 20.0
PUBLISHED = "BM25 over turns, all ten conversations: 51.3, 58.8, 65.4, 71.0; multi-hop at 10: 25.6"

Scores = dict[str, list[list[float]]]  # by category, of each question its recall at each k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--data", type=Path, help="the file; default: eval/locomo/locomo_dev.json of the shared folder")
    parser.add_argument("--homes", type=Path, help="keep the memories here; a second run only asks")
    parser.add_argument("--without", choices=PARTS, action="append", default=[], help="leave this out of retrieval")
    asked = parser.parse_args()
    path = asked.data or asked.shared / "eval" / "locomo" / "locomo_dev.json"
    if not path.is_file():
        parser.error(f"there is no {path}; set REFLECTWORLD_SHARED, or give --shared or --data")
    samples = json.loads(path.read_text())
    ours: Scores = defaultdict(list)
    words: Scores = defaultdict(list)
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(samples):
            turns = list(turns_of(sample["conversation"]))
            home = (asked.homes or Path(folder)) / f"{number}"
            remember(home, turns, Path(folder) / "segments.jsonl")
            ask(home, sample["qa"], turns, asked.without, ours, took)
            by_words(sample["qa"], turns, words)
    show(ours, words, took, asked.without, len(samples))


def turns_of(conversation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Turns with ids, speakers, words and times, in their order."""
    sessions = sorted(int(match[1]) for key in conversation if (match := re.fullmatch(r"session_(\d+)", key)))
    for session in sessions:
        start = datetime.strptime(conversation[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").timestamp()
        for place, turn in enumerate(conversation[f"session_{session}"]):
            yield {**turn, "start": start + place * TURN_S}


def remember(home: Path, turns: Sequence[Mapping[str, Any]], segments: Path) -> None:
    """Replay a conversation, and derive what is derived."""
    with segments.open("w") as sink:
        for turn in turns:
            start, speaker = turn["start"], turn["speaker"]
            shown = turn.get("blip_caption")
            captions = [{"at": iso(start + 1), "text": f"{speaker} shows a picture: {shown}."}] if shown else []
            said = [{"at": iso(start + 1), "speaker": speaker, "text": turn["text"]}]
            line = {
                "camera": "chat",
                "start": iso(start),
                "end": iso(start + TURN_S),
                "captions": captions,
                "utterances": said,
            }
            sink.write(json.dumps(line) + "\n")
    settings = load_settings(home)
    embedder = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    with Store.open(home, settings.memory, user=settings.user) as store:
        replay(store, embedder, DescribedFile(segments))
        Worker(store, build_handlers(store, embedder)).drain()


def ask(
    home: Path, questions: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]], without: Sequence[str],
    scores: Scores, took: list[float],
) -> None:  # fmt: skip
    settings = load_settings(home)
    catalog = Catalog.load(settings.infer)
    embedder = build_text_embedder(catalog, Runtime(settings.infer))
    at = turns[-1]["start"] + 2 * TURN_S
    ids = {turn["start"]: turn["dia_id"] for turn in turns}
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        recall = Without(store, embedder, settings.recall, head=build_head(catalog, embedder), without=without)
        for number, one in enumerate(questions):
            began = time.perf_counter()
            ranked = recall.rank(Query(str(number), at, None, str(one["question"]), {}), max(KS))
            took.append((time.perf_counter() - began) * 1000)
            found = [ids[round(row[2], 3)] for row in ranked.rows]
            _score(one, found, scores)


def by_words(questions: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]], scores: Scores) -> None:
    """BM25 over the turns, as SQLite has it."""
    connection = apsw.Connection(":memory:")
    connection.execute("create virtual table turn using fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')")
    connection.executemany(
        "insert into turn(rowid, text) values(?, ?)",
        [
            (place, f"{turn['speaker']} {turn['text']} {turn.get('blip_caption') or ''}")
            for place, turn in enumerate(turns)
        ],
    )
    for one in questions:
        terms = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", str(one["question"]).lower())))
        rows = connection.execute(
            "select rowid from turn where turn match ? order by bm25(turn) limit ?", (terms, max(KS))
        )
        _score(one, [turns[place]["dia_id"] for (place,) in rows], scores)


def _score(one: Mapping[str, Any], found: Sequence[str], scores: Scores) -> None:
    gold = set(re.findall(r"D\d+:\d+", " ".join(one.get("evidence") or [])))
    if gold:
        row = [len(gold.intersection(found[:k])) / len(gold) for k in KS]
        scores[CATEGORIES[one["category"]]].append(row)
        scores["all"].append(row)


def show(ours: Scores, words: Scores, took: Sequence[float], without: Sequence[str], conversations: int) -> None:
    left_out = f", without {', '.join(without)}" if without else ""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"evidence recall over {conversations} conversations, %{left_out} (BM25 beside it, same run)",
    )
    table.add_column("questions")
    table.add_column("n", justify="right")
    for k in KS:
        table.add_column(f"@{k}", justify="right")
        table.add_column("BM25", justify="right", style="dim")
    for name in (*CATEGORIES.values(), "all"):
        cells = []
        for place in range(len(KS)):
            for scores in (ours, words):
                cells.append(f"{100 * sum(row[place] for row in scores[name]) / max(1, len(scores[name])):.1f}")
        table.add_row(name, str(len(ours[name])), *cells, style="bold" if name == "all" else "")
    console = Console(width=110)
    console.print(table)
    ordered = sorted(took)
    console.print(
        f"ms a question: median {ordered[len(ordered) // 2]:.0f}, p95 {ordered[int(0.95 * (len(ordered) - 1))]:.0f}"
    )
    console.print(f"published: {PUBLISHED}")


if __name__ == "__main__":
    main()
