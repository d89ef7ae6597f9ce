"""Questions among other text: how much of retrieval is left, with fusion alone, with rules that find the question, with the head.

`python -m tools.bench.noise [--shared DIR] [--home DIR] [--every N]`. The questions and the week are those of
`tools.bench.egolife` (`--home` takes its memory, or makes it). Around each question stands four times its length of other text:
descriptions of packages that the head's training has not seen, or speech of that very home, taken at random from the week itself,
which is the harder noise: it holds questions, and the memory holds it. Signs and capitals are kept or taken away. Then it is told
how often the head knows what asks the memory: on recordings of `--shared` that ask nothing, on the speech of the week, and
on the questions themselves. All of it is reported, nothing is chosen by it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_head, build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store
from edge.recall import Head, Query, Recall, find_question, read_queries, to_line
from edge.recall.question.listening import Listener
from edge.settings import RecallSettings, load_settings
from tools.bench.egolife import run
from tools.head.examples import unpunctuated
from tools.head.talk import package_descriptions

WAYS = (("off", "fusion alone"), ("rules", "rules"), ("find", "head finds"), ("move", "head finds and moves"))
SOURCES = ("packages", "household speech")
PLACES = ("before", "after", "around")
TIMES = 4  # so many words of other text for each word of the question
SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--home", type=Path, help="keep the memory here, or take it from there")
    parser.add_argument("--every", type=int, default=1, help="take every Nth question (default 1: all)")
    parser.add_argument("--ways", default=",".join(way for way, _ in WAYS), help="which of off, rules, find, move")
    options = parser.parse_args()
    evaluation = options.shared / "eval"
    if not (evaluation / "egolife").is_dir():
        parser.error(f"there is no {evaluation / 'egolife'}; set REFLECTWORLD_SHARED or give --shared")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, str(evaluation / "egolife_convert.py"), str(work))
        home = options.home or work / "home"
        settings = load_settings(home)
        catalog = Catalog.load(settings.infer)
        embedder = build_text_embedder(catalog, Runtime(settings.infer))
        head = build_head(catalog, embedder)
        with Store.open(home, settings.memory, user=settings.user) as store:
            replay(store, embedder, DescribedFile(work / "segments.jsonl"))
        with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
            ways = [(way, name) for way, name in WAYS if way in options.ways.split(",")]
            compare(store, embedder, head, evaluation, work, ways, options.every)
            tell_actions(store, embedder, head, options.shared, work)


def compare(
    store: Store,
    embedder: TextEmbedder,
    head: Head,
    evaluation: Path,
    work: Path,
    ways: Sequence[tuple[str, str]],
    every: int,
) -> None:
    lines = (work / "queries.jsonl").read_text(encoding="utf-8").splitlines()[::every]
    (work / "asked.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    queries = [query for _, query in read_queries(work / "asked.jsonl") if not isinstance(query, str)]
    noise = {"packages": paragraphs(), "household speech": speech(store)}
    table = Table(
        box=box.SIMPLE_HEAD, title=f"hit@10 of {len(queries)} questions among {TIMES} × their length of other text, %"
    )
    for column in ("other text", "where", "signs", *(name for _, name in ways), "found exactly"):
        table.add_column(column, justify="left" if column in {"other text", "where", "signs"} else "right")

    def row(source: str, place: str, signs: str, asked: Sequence[Query]) -> None:
        began = time.perf_counter()
        scores = [score(store, embedder, head, way, asked, evaluation, work) for way, _ in ways]
        exact = sum(
            find_question(noisy.question, head).text.strip("?!. ").lower() == clean.question.strip("?!. ").lower()
            for noisy, clean in zip(asked, queries, strict=True)
        )
        table.add_row(source, place, signs, *(f"{one:.1f}" for one in scores), f"{100 * exact / len(asked):.0f} %")
        print(f"{source} {place} {signs}: {scores} ({time.perf_counter() - began:.0f} s)", file=sys.stderr, flush=True)

    row("none", "", "as asked", queries)
    for source in SOURCES:
        for place in PLACES:
            random_ = random.Random(f"{SEED} {source} {place}")
            noisy = [surround(random_, noise[source], query.question, place) for query in queries]
            row(source, place, "kept", [replace(q, question=text) for q, text in zip(queries, noisy, strict=True)])
            bare = [unpunctuated(text.split(), (0, 0))[0] for text in noisy]
            row(source, place, "none", [replace(q, question=text) for q, text in zip(queries, bare, strict=True)])
    Console(width=130).print(table)


def score(
    store: Store, embedder: TextEmbedder, head: Head, way: str, queries: Sequence[Query], evaluation: Path, work: Path
) -> float:
    recall = Recall(store, embedder, RecallSettings(head=way), head=head)
    ranked = work / "ranked.jsonl"
    with ranked.open("wb") as sink:
        for query in queries:
            sink.write(to_line(query, recall.rank(replace(query, choices={}), 10)))
    told = run(sys.executable, str(evaluation / "score.py"), str(work / "asked.jsonl"), str(ranked))
    total = next(line for line in told.splitlines() if line.startswith("ALL"))
    return float(total.partition("hit@10=")[2].split()[0])


# -- other text -----------------------------------------------------------------------------------------------------------


def paragraphs() -> list[str]:
    """Descriptions of packages that training has not seen."""
    return [text for text in package_descriptions(held_out=True) if len(text.split()) >= 12]


def speech(store: Store) -> list[str]:
    """What was said in the week, in order."""
    rows = store.rows("select text from utterance order by start, id", ())
    return [text for (text,) in rows if text.isascii() and text.strip()]


def surround(random_: random.Random, lines: Sequence[str], question: str, place: str) -> str:
    """The question with four times its words of other text, in sentences as they follow each other, cut to length."""
    size = TIMES * len(question.split())
    before = {"before": size, "after": 0, "around": size // 2}[place]

    def piece(count: int) -> str:
        words: list[str] = []
        at = random_.randrange(len(lines))
        while len(words) < count:
            line = lines[at % len(lines)]
            words += (line if line[-1] in ".?!" else f"{line}.").split()
            at += 1
        text = " ".join(words[:count])
        return text if not text or text[-1] in ".?!" else f"{text}."

    return " ".join(part for part in (piece(before), question, piece(size - before)) if part)


# -- what asks the memory -------------------------------------------------------------------------------------------------


def tell_actions(store: Store, embedder: TextEmbedder, head: Head, shared: Path, work: Path) -> None:
    listener = Listener(store, embedder, head, RecallSettings())
    table = Table(box=box.SIMPLE_HEAD, title="what the head makes of inputs")
    for column in ("inputs", "number", "speaks", "searches"):
        table.add_column(column, justify="left" if column == "inputs" else "right")
    lines = speech(store)
    ((at,),) = store.rows("select max(end) from trace", ())
    turn = listener.turn(at)
    for name, texts in (
        ("questions to the memory", asked_questions(work)),
        ("recordings that ask nothing", list(recorded(shared))),
        ("speech of the home, statements", [text for text in lines if "?" not in text][::40]),
        ("speech of the home, questions to people", [text for text in lines if text.endswith("?")][::40]),
    ):
        acts = [act for text in texts if (act := turn.act(text)) is not None]
        if acts:
            speaks, searches = (
                sum(chance > 0.5 for chance in one) / len(acts)
                for one in zip(*((a.speak, a.search) for a in acts), strict=True)
            )
            table.add_row(name, str(len(acts)), f"{speaks:.1%}", f"{searches:.1%}")
    Console(width=110).print(table)


def asked_questions(work: Path) -> list[str]:
    return [json.loads(line)["question"] for line in (work / "queries.jsonl").read_text(encoding="utf-8").splitlines()]


def recorded(shared: Path) -> Iterator[str]:
    """Transcripts of the recordings beside the evaluation, where they are."""
    path = shared / "media" / "speech" / "transcripts.csv"
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            yield from (row["transcript"] for row in csv.DictReader(file))


if __name__ == "__main__":
    main()
