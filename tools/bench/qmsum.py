"""Find where in a meeting something was talked about, beside words alone.

`python -m tools.bench.qmsum [--shared DIR] [--meetings 12]`. The data are QMSum (Zhong et al. 2021), which are not part of this
project (REFLECTWORLD_SHARED names the folder). Each turn of a meeting is replayed as a moment of its own, at 2.5 words a second,
in which its speaker says it; each query of a meeting that has relevant spans of turns is asked after its last turn.

*hit@k*: a moment among the first k is in a relevant span. *spans@k*: the share of a query's spans of which one is. *turns@k*: the
share of the first k moments that are relevant. BM25 is SQLite's, over the same turns with the same stemmer, in the same run;
"any" is what k moments drawn at random would give. *who*: the share of queries that name a speaker of the meeting for which all
of the first five moments are that speaker's own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import structlog

from edge.app import build_head, build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.clock import iso
from edge.consolidate import Worker, build_handlers
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.recall import Query, Recall
from edge.settings import load_settings

KS: Final = (1, 5, 10, 20)
BEGIN: Final = 1_700_000_000.0  # UTC POSIX seconds: the meetings have no time of their own
WORDS_PER_S: Final = 2.5
LONGEST_S: Final = 30.0  # no moment is longer

Spans = tuple[tuple[int, int], ...]  # first and last turn of each


@dataclass(frozen=True)
class Asked:
    """A query with what is relevant to it."""

    text: str
    spans: Spans

    @property
    def turns(self) -> frozenset[int]:
        """All relevant turns."""
        return frozenset(turn for first, last in self.spans for turn in range(first, last + 1))


@dataclass
class Scores:
    """Of one way to find turns."""

    hit: list[list[float]] = field(default_factory=list)  # of each query, at each k
    spans: list[list[float]] = field(default_factory=list)
    turns: list[list[float]] = field(default_factory=list)
    who: list[float] = field(default_factory=list)

    def add(self, asked: Asked, found: Sequence[int], speakers: Sequence[str]) -> None:
        """Note what was found for a query, best first."""
        right = asked.turns
        self.hit.append([float(bool(right.intersection(found[:k]))) for k in KS])
        self.spans.append(
            [sum(any(a <= one <= b for one in found[:k]) for a, b in asked.spans) / len(asked.spans) for k in KS]
        )
        self.turns.append([sum(one in right for one in found[:k]) / k for k in KS])
        named = {one for one in set(speakers) if one.lower() in asked.text.lower()}
        if named:
            self.who.append(float(bool(found) and all(speakers[one] in named for one in found[:5])))


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--data", type=Path, help="the file; default: eval/qmsum/val.jsonl of the shared folder")
    parser.add_argument("--meetings", type=int, default=12, help="so many, evenly chosen; 0: all")
    options = parser.parse_args()
    path = options.data or options.shared / "eval" / "qmsum" / "val.jsonl"
    if not path.is_file():
        parser.error(f"there is no {path}; set REFLECTWORLD_SHARED, or give --shared or --data")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    meetings = [json.loads(line) for line in path.read_text().splitlines()]
    if options.meetings:
        meetings = meetings[:: max(1, len(meetings) // options.meetings)][: options.meetings]
    ours, words = Scores(), Scores()
    chance: list[list[float]] = []
    took: list[float] = []
    turns = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, meeting in enumerate(meetings):
            said = meeting["meeting_transcripts"]
            queries = list(queries_of(meeting, len(said)))
            turns += len(said)
            speakers = [turn["speaker"] for turn in said]
            chance += [[1 - (1 - len(one.turns) / len(said)) ** k for k in KS] for one in queries]
            for one, found in zip(queries, by_memory(Path(folder) / f"{number}", said, queries, took), strict=True):
                ours.add(one, found, speakers)
            for one, found in zip(queries, by_words(said, queries), strict=True):
                words.add(one, found, speakers)
    print(f"{len(meetings)} meetings, {turns} turns, {len(ours.hit)} queries; %")
    print(f"{'':24}" + "".join(f"{f'@{k}':>8}" for k in KS))
    for what in ("hit", "spans", "turns"):
        for name, scores in (("this project", ours), ("BM25", words)):
            show(f"{what}: {name}", getattr(scores, what))
    show("hit: any", chance)
    for name, scores in (("this project", ours), ("BM25", words)):
        print(f"who: {name:19}{100 * sum(scores.who) / max(1, len(scores.who)):8.1f} of {len(scores.who)}")
    took.sort()
    if took:
        print(f"ms a query: median {took[len(took) // 2]:.0f}, p95 {took[int(0.95 * (len(took) - 1))]:.0f}")


def show(what: str, rows: Sequence[Sequence[float]]) -> None:
    """Print the means of some queries."""
    means = [100 * sum(row[place] for row in rows) / max(1, len(rows)) for place in range(len(KS))]
    print(f"{what:24}" + "".join(f"{one:8.1f}" for one in means))


def queries_of(meeting: Mapping[str, Any], turns: int) -> Iterator[Asked]:
    """The queries that say where their answer is."""
    for one in meeting["specific_query_list"]:
        spans = [(int(first), min(int(last), turns - 1)) for first, last in one["relevant_text_span"]]
        kept = tuple((first, last) for first, last in spans if 0 <= first <= last)
        if kept:
            yield Asked(str(one["query"]), kept)


def by_memory(
    home: Path, said: Sequence[Mapping[str, str]], queries: Sequence[Asked], took: list[float]
) -> Iterator[list[int]]:
    """The turns that the memory finds, best first."""
    starts: dict[float, int] = {}
    now = BEGIN
    path = home.with_suffix(".jsonl")
    with path.open("w") as sink:
        for place, turn in enumerate(said):
            starts[round(now, 3)] = place
            end = now + min(LONGEST_S, max(1.0, len(turn["content"].split()) / WORDS_PER_S))
            spoken = {"at": iso(now), "speaker": turn["speaker"], "text": turn["content"]}
            line = {"camera": "room", "start": iso(now), "end": iso(end), "captions": [], "utterances": [spoken]}
            sink.write(json.dumps(line) + "\n")
            now = round(end + 0.5, 2)
    settings = load_settings(home)
    catalog = Catalog.load(settings.infer)
    embedder = build_text_embedder(catalog, Runtime(settings.infer))
    with Store.open(home, settings.memory, user=settings.user) as store:
        replay(store, embedder, DescribedFile(path))
        Worker(store, build_handlers(store, embedder)).drain()
        recall = Recall(store, embedder, settings.recall, head=build_head(catalog, embedder))
        for number, one in enumerate(queries):
            began = time.perf_counter()
            ranked = recall.rank(Query(str(number), now + 60, None, one.text, {}), max(KS))
            took.append(1000 * (time.perf_counter() - began))
            places = [starts.get(round(row[2], 3)) for row in ranked.rows]
            yield list(dict.fromkeys(place for place in places if place is not None))


def by_words(said: Sequence[Mapping[str, str]], queries: Sequence[Asked]) -> Iterator[list[int]]:
    """BM25 over the turns, as SQLite has it."""
    connection = apsw.Connection(":memory:")
    connection.execute("create virtual table turn using fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')")
    connection.executemany(
        "insert into turn(rowid, text) values(?, ?)",
        [(place, f"{turn['speaker']} {turn['content']}") for place, turn in enumerate(said)],
    )
    for one in queries:
        terms = " OR ".join(f'"{word}"' for word in dict.fromkeys(re.findall(r"\w+", one.text.lower())))
        sql = "select rowid from turn where turn match ? order by bm25(turn) limit ?"
        yield [place for (place,) in connection.execute(sql, (terms, max(KS)))]


if __name__ == "__main__":
    main()
