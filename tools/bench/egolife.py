"""Replay a week of one person's life and find the evidence for questions about it, against plain baselines.

`python -m tools.bench.egolife [--shared DIR] [--home DIR] [--without PART… | --ablate]`. The data are EgoLife (Yang et al.
2025), converted and scored by the scripts that lie beside them; they are not part of this project (REFLECTWORLD_SHARED names
their folder). With `--home`, the memory is kept and a second run only asks; `--ablate` asks once with all and once without each
part. *With the choices*, the answers to choose from are looked for, too. Last, 40 questions written by hand say how often an
answer is given or refused: 20 about what happens in that week, 20 about what does not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_head, build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.clock import parse_instant
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.recall import Recall, read_queries, to_line
from edge.settings import load_settings
from tools.bench.without import PARTS, Without

# Of the evaluation's README: the same 250 questions and scorer, question text only.
BASELINES = {
    "BM25 over clips": (9.6, 23.6, 30.4, 38.4, 47.2, 38.0, 45.2),
    "MiniLM over clips": (7.6, 21.6, 27.6, 32.8, 43.6, 32.4, 40.8),
    "MiniLM, best line": (7.6, 18.8, 27.6, 37.6, 52.0, 35.2, 45.2),
    "all three, rank fusion": (11.2, 28.4, 34.8, 44.4, 53.6, 42.8, 55.2),
}
OURS = "this memory"
MEASURES = ("hit@1", "hit@5", "hit@10", "hit@20", "hit@50", "near@5", "near@10")
THERE = (
    "Where did we eat breakfast?", "Who played the guitar?", "What did we buy at the supermarket?", "Who cut the cake?",
    "Where is the whiteboard?", "Did Katrina dance?", "When did Shure cook?", "What did Alice say about flowers?",
    "Who washed the dishes?", "Is there a dog?", "Who opened the fridge?", "What did Lucia say about dancing?",
    "Who put on makeup?", "When did we order coffee?", "Where did I put my phone?", "Who sang a song?",
    "Did Tasha use a hair dryer?", "Who assembled the hard drives?", "Did we make pizza?", "What did Jake say about the camera?",
)  # fmt: skip
NOT_THERE = (
    "Where is the submarine?", "Who fed the crocodile?", "What did Katrina say about quantum physics?",
    "Did we visit the Eiffel Tower?", "When did I buy the horse?", "Is there a violin in the attic?",
    "Who won the chess tournament?", "What did the dentist tell me?", "Did Alice play the saxophone?",
    "Where did I park the motorcycle?", "Which church did we get married in?", "How did the rocket explode?",
    "Who repaired the washing machine?", "When did the plane land in Tokyo?", "Did somebody break the window with a hammer?",
    "What colour was the parrot?", "Who gave me the passport?", "Where is my wallet with the foreign coins?",
    "Did Tasha swim across the lake?", "What did Lucia say about her dissertation?",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--home", type=Path, help="keep the memory here")
    parser.add_argument("--k", type=int, default=50, help="results a question (default 50)")
    parser.add_argument("--without", choices=PARTS, action="append", default=[], help="leave this out of retrieval")
    parser.add_argument("--ablate", action="store_true", help="ask once with everything and once without each part")
    options = parser.parse_args()
    evaluation = options.shared / "eval"
    if not (evaluation / "egolife").is_dir():
        parser.error(f"there is no {evaluation / 'egolife'}; set REFLECTWORLD_SHARED or give --shared")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, str(evaluation / "egolife_convert.py"), str(work))
        ways = [[], *([part] for part in PARTS)] if options.ablate else [options.without]
        bench(evaluation, work, options.home or work / "home", options.k, ways)


def bench(evaluation: Path, work: Path, home: Path, k: int, ways: list[list[str]]) -> None:
    settings = load_settings(home)
    catalog = Catalog.load(settings.infer)
    embedder = build_text_embedder(catalog, Runtime(settings.infer))
    head = build_head(catalog, embedder)
    file = DescribedFile(work / "segments.jsonl")
    began = time.perf_counter()
    with Store.open(home, settings.memory, user=settings.user) as store:
        report = replay(store, embedder, file)
        took = time.perf_counter() - began
        size = store.counts().bytes
    print(
        f"replay: {report.segments} segments in {took:.0f} s ({report.resumed} were there), {size / 1e6:.0f} MB on disk"
    )
    queries = [query for _, query in read_queries(work / "queries.jsonl") if not isinstance(query, str)]
    measured: dict[str, str] = {}
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        for without in ways:
            recall = Without(store, embedder, settings.recall, head=head, without=without)
            recall.rank(queries[0], k)  # warm
            for by_choices in (False,) if without else (False, True):
                ranked = work / "ranked.jsonl"
                with ranked.open("wb") as sink:
                    for query in queries:
                        sink.write(to_line(query, recall.rank(query, k, by_choices=by_choices)))
                name = "with the choices" if by_choices else f"without {', '.join(without)}" if without else OURS
                scorer = (str(evaluation / "score.py"), str(work / "queries.jsonl"), str(ranked))
                measured[name] = run(sys.executable, *scorer)
        show(measured, len(queries))
        if OURS in measured:
            answers(Without(store, embedder, settings.recall, head=head))


def answers(recall: Recall) -> None:
    at = parse_instant("2025-01-09T09:00:00")
    given = sum(recall.ask(question, at).found for question in THERE)
    refused = sum(not recall.ask(question, at).found for question in NOT_THERE)
    print(f"answers: given to {given} of {len(THERE)} questions about what is there,")
    print(f"         refused to {refused} of {len(NOT_THERE)} about what is not")


def show(measured: Mapping[str, str], queries: int) -> None:
    table = Table(box=box.SIMPLE_HEAD, title=f"evidence of {queries} questions, % (same data, same scorer)")
    for column in ("retriever", *MEASURES, "choice"):
        table.add_column(column, justify="left" if column == "retriever" else "right")
    for name, values in BASELINES.items():
        table.add_row(name, *(f"{value:.1f}" for value in values), "")
    for name, scored in measured.items():
        total = next(line for line in scored.splitlines() if line.startswith("ALL"))
        ours = dict(part.split("=") for part in total.replace("= ", "=").split() if "=" in part)
        table.add_row(name, *(ours.get(measure, "") for measure in (*MEASURES, "mc")), style="bold")
    Console(width=110).print(table)
    print(next(iter(measured.values())))


def run(*command: str) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        raise SystemExit(done.returncode)
    return done.stdout


if __name__ == "__main__":
    main()
