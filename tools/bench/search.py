"""Search in a memory of any size beside exact search, faiss Flat and HNSW, in one run.

`python -m tools.bench.search [--traces N] [--home DIR]`. The memory is made of real sentences with noise and words of general
English around them (`tools/bench/synthetic.py`); the sentences are captions of EgoLife (Yang et al. 2025), which lie beside the
evaluation scripts (REFLECTWORLD_SHARED), or the lines of `--sentences FILE`. With `--home` it is kept, and a second run only
asks. Three tables are printed:

1. Vectors alone: who finds the nearest moments, how fast, and with how much memory. Of a million moments made of two thousand
   sentences hundreds are nearly as near as the nearest, so that the share of the same ten says less than the cosine that is kept.
2. Questions: words, vectors and age together, as recall ranks them, against the same scores of every moment (exact search).
3. Answers: the time of a reflex answer in a week and in the whole memory.

Exact search is float32 over all stored vectors. faiss is optional (`pip install -e '.[bench]'`); its graph takes minutes to
build for a million moments.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import numpy as np
import psutil
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store, index
from edge.memory.index.blocks import BITS
from edge.recall import Recall, understand
from edge.recall.search import ranking
from edge.recall.search.pool import PROMISING, Pool
from edge.recall.search.searcher import Searcher
from edge.settings import Settings, load_settings
from tools.bench import synthetic
from tools.bench.months import QUESTIONS, Memo

WEEK = 6_223  # moments of the real week
TENS, FIFTIES = 10, 50
_CHUNK = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--traces", type=int, default=161_798, help="moments (default 161798: six months; 1000000: years)"
    )
    parser.add_argument("--home", type=Path, help="keep the memories here")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--sentences", type=Path, help="a text file with one sentence a line, instead of the captions")
    parser.add_argument("--no-faiss", action="store_true", help="leave faiss out: its graph takes minutes to build")
    parser.add_argument("--queries", type=int, default=60, help="queries of the first two tables (default 60)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = options.home or Path(folder)
        home.mkdir(parents=True, exist_ok=True)
        settings = load_settings(home)
        plain = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
        embedder = Memo(plain)
        seed = seeded(home, lambda: sentences(options.shared, options.sentences, Path(folder), parser), embedder)
        large = Memory.of(home, options.traces, seed, embedder.key, settings)
        week = Memory.of(home, WEEK, seed, embedder.key, settings)
        console = Console(width=120)
        asked = queries(seed, embedder, options.queries)
        faiss = None if options.no_faiss else optional_faiss()
        console.print(vectors_alone(large, np.stack([vector for _, vector in asked]), embedder, faiss))
        console.print(questions(large, asked, embedder))
        console.print(answers([week, large], plain, settings))


def sentences(shared: Path, file: Path | None, folder: Path, parser: argparse.ArgumentParser) -> list[str]:
    """Where the words come from."""
    if file is not None:
        return [line for line in file.read_text().splitlines() if line.strip()]
    script = shared / "eval" / "egolife_convert.py"
    if not script.is_file():
        parser.error(f"there is no {script}; set REFLECTWORLD_SHARED, or give --sentences FILE")
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return synthetic.captions(folder / "segments.jsonl")


def seeded(home: Path, source: Callable[[], Sequence[str]], embedder: Memo) -> synthetic.Seed:
    """The seed, kept beside the memories."""
    kept = home / "seed.npz"
    if kept.exists():
        with np.load(kept) as stored:
            return synthetic.Seed(tuple(stored["sentences"].tolist()), stored["vectors"])
    seed = synthetic.seed_of(source(), embedder)
    np.savez(kept, sentences=np.array(seed.sentences), vectors=seed.vectors)
    return seed


def queries(seed: synthetic.Seed, embedder: Memo, count: int) -> list[tuple[str, NDArray[np.float32]]]:
    """Questions: those of `months` and sentences of the seed put as questions."""
    step = max(len(seed.sentences) // count, 1)
    told = [f"When did this happen: {sentence.rstrip('.').lower()}?" for sentence in seed.sentences[7::step]]
    texts = [*QUESTIONS, *told][:count]
    return list(zip(texts, embedder.embed(texts), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A memory and the vectors that are stored in it."""

    home: Path
    vectors: NDArray[np.int8]  # (n, units + 1, d)
    settings: Settings

    @classmethod
    def of(cls, folder: Path, traces: int, seed: synthetic.Seed, embedder: str, settings: Settings) -> Memory:
        """The memory of some size, made if it is not there."""
        home = folder / f"traces-{traces}"
        file = home / "vectors.npy"
        if not file.exists():
            began = time.perf_counter()
            with Store.open(home, settings.memory, user=settings.user) as store:
                vectors = synthetic.write(store, seed, embedder, traces)
                if not synthetic.check(store, range(traces - 20, traces)):
                    raise SystemExit("the moments of this benchmark are not indexed as the product indexes them")
            with Store.open(home, settings.memory, user=settings.user) as store:
                while store.rows("select count(*) from block")[0][0] < traces >> BITS:
                    time.sleep(0.1)  # the writer seals blocks in its quiet moments
            np.save(file, vectors)
            print(f"{traces} moments written in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        return cls(home, np.load(file, mmap_mode="r"), settings)

    @property
    def now(self) -> float:
        """The end of its last moment."""
        last = len(self.vectors) - 1
        days, halves = divmod(last, synthetic.WAKING)
        return synthetic.BEGIN + days * synthetic.DAY_S + (halves + 1) * synthetic.HALF_S


# -- 1: vectors -------------------------------------------------------------------------------------------------------


def vectors_alone(memory: Memory, wanted: NDArray[np.float32], embedder: Memo, faiss: ModuleType | None) -> Table:
    """The nearest whole moments."""
    exact = nearest(memory.vectors[:, 0], wanted)
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"the nearest of {len(memory.vectors):,} moments by their vectors ({len(wanted)} queries)",
    )
    for column in ("index", "p50 ms", "p95 ms", "recall@10", "recall@50", "cosine kept", "MB", "build s"):
        table.add_column(column, justify="left" if column == "index" else "right")

    def row(name: str, find: Callable[[NDArray[np.float32]], NDArray[np.int64]], size: float, build: float) -> None:
        find(wanted[0])
        times, found = [], []
        for query in wanted:
            began = time.perf_counter()
            found.append(find(query))
            times.append(time.perf_counter() - began)
        kept = statistics.mean(
            float((floats[a[:TENS]] @ query).mean() / (floats[b[:TENS]] @ query).mean())
            for a, b, query in zip(found, exact, wanted, strict=True)
        )
        table.add_row(name, *milliseconds(times), *recalls(found, exact), f"{kept:.3f}", f"{size:.0f}", f"{build:.1f}")

    floats = unit(memory.vectors[:, 0])
    row("exact, float32 (numpy)", lambda query: best(floats @ query, FIFTIES), floats.nbytes / 1e6, 0.0)
    if faiss is not None:
        for name, make in (("faiss Flat", flat), ("faiss HNSW, M 16, ef 128", hnsw)):
            before, began = resident(), time.perf_counter()
            faiss.omp_set_num_threads(os.cpu_count() or 1)
            built = make(faiss, floats)
            took = time.perf_counter() - began
            faiss.omp_set_num_threads(1)  # as everything else here
            row(name, partial(searched, built), resident() - before, took)
            del built
    with Store.open(memory.home, memory.settings.memory, user=memory.settings.user, readonly=True) as store:
        before, began = resident(), time.perf_counter()
        with store.reading() as connection:
            columns = store.columns(connection, embedder.key)
            took = time.perf_counter() - began

            bits = index.sign_words

            def ours(query: NDArray[np.float32], cells: int | None) -> NDArray[np.int64]:
                rows: NDArray[np.int64] | slice = slice(0, len(columns.traces))
                if cells is not None and columns.cells is not None:
                    nearest = np.argsort(columns.cells.differing(bits(query)), kind="stable")
                    filled = np.cumsum(np.diff(columns.cells.begins)[nearest])
                    inside = columns.cells.rows(nearest[: int(np.searchsorted(filled, cells)) + 1])
                    outside = [np.arange(*run) for run in columns.cells.outside(0, len(columns.traces))]
                    rows = np.sort(np.concatenate([inside.astype(np.int64), *outside]))
                differ = columns.distances(bits(query), rows)
                few = best(-differ.astype(np.float32), 500)
                few = few if isinstance(rows, slice) else rows[few]
                cosines = index.cosines(
                    connection, query, embedder.key, columns.traces[few], np.zeros(len(few), np.int64)
                )
                return few[best(cosines, FIFTIES)]

            row("ours: all signs, 500 by int8", lambda query: ours(query, None), resident() - before, took)
            row(f"ours: {PROMISING:,} by cells first", lambda query: ours(query, PROMISING), resident() - before, took)
    if faiss is None:
        table.caption = "faiss is not there: `pip install -e '.[bench]'` adds Flat and HNSW."
    else:
        table.caption = "MB of ours: all columns of the memory, not of its vectors alone; build: reading them."
    return table


def flat(faiss: ModuleType, floats: NDArray[np.float32]) -> Any:
    made = faiss.IndexFlatIP(floats.shape[1])
    made.add(floats)
    return made


def hnsw(faiss: ModuleType, floats: NDArray[np.float32]) -> Any:
    made = faiss.IndexHNSWFlat(floats.shape[1], 16, faiss.METRIC_INNER_PRODUCT)
    made.hnsw.efConstruction, made.hnsw.efSearch = 64, 128
    made.add(floats)
    return made


def searched(built: Any, query: NDArray[np.float32]) -> NDArray[np.int64]:
    found: NDArray[np.int64] = built.search(query[None], FIFTIES)[1][0]
    return found


def optional_faiss() -> ModuleType | None:
    try:
        import faiss
    except ImportError:
        return None
    return faiss


# -- 2: questions -----------------------------------------------------------------------------------------------------


def questions(memory: Memory, asked: Sequence[tuple[str, NDArray[np.float32]]], embedder: Memo) -> Table:
    """The ranking of recall against the same scores of every moment."""
    table = Table(
        box=box.SIMPLE_HEAD,
        title=f"questions to {len(memory.vectors):,} moments ({len(asked)}): words, vectors and age",
    )
    for column in ("search", "p50 ms", "p95 ms", "recall@10", "recall@50"):
        table.add_column(column, justify="left" if column == "search" else "right")
    times, found, exact, slow = [], [], [], []
    settings = memory.settings
    with Store.open(memory.home, settings.memory, user=settings.user, readonly=True) as store:
        searcher = Searcher(store, embedder)
        for text, query in asked:
            question = understand(text, memory.now, None, [])
            with store.reading() as connection:
                columns = store.columns(connection, embedder.key)
                for again in range(2):
                    began = time.perf_counter()
                    through = index.visible(connection, columns, index.Filter(store.user, before=memory.now))
                    corpus = index.corpus_of(columns, through)
                    concepts = searcher.concepts(connection, question)

                    def prior(places: NDArray[np.int64], corpus: index.Corpus = corpus) -> ranking.Scores:
                        return ranking.recency(corpus.ends[places], memory.now)

                    pool = Pool(connection, corpus, columns, concepts, prior, query, embedder.key, FIFTIES)
                    order = pool.best(FIFTIES)
                    if again:
                        times.append(time.perf_counter() - began)
                found.append(order)
                began = time.perf_counter()
                exact.append(best(exact_scores(memory, pool, concepts, prior, query, connection, columns), FIFTIES))
                slow.append(time.perf_counter() - began)
    table.add_row("exact, every moment", *milliseconds(slow), "1.000", "1.000")
    table.add_row("ours", *milliseconds(times), *recalls(found, exact))
    return table


def exact_scores(
    memory: Memory,
    pool: Pool,
    concepts: Sequence[ranking.Concept],
    prior: Callable[[NDArray[np.int64]], ranking.Scores],
    query: NDArray[np.float32],
    connection: apsw.Connection,
    columns: index.Columns,
) -> NDArray[np.float32]:
    """The score of every moment, with exact cosines and nothing left out."""
    count = len(memory.vectors)
    words = np.zeros(count, np.float64)
    mean = float(columns.lengths.mean())
    for concept in concepts:
        often = np.zeros(count, np.float32)
        for term in concept.terms:
            rows, counts = index.postings(connection, columns, term, 0, count)
            often[rows] += counts
        weight = concept.weight * ranking.rarity(count, float((often > 0).sum()))
        words += weight * ranking.saturation(often, ranking.length_norm(columns.lengths, mean))
    whole, units = unit_cosines(memory.vectors, query)
    usual, usual_best = pool.moments
    by_words, by_whole = ranking.standardise(words), ranking.standardise(whole, *usual)
    for at in range(0, count, _CHUNK):  # what short moments borrow from those beside them
        places = np.arange(at, min(at + _CHUNK, count))
        beside = pool.beside(places)
        words[places] = pool.with_borrowed(places, by_words[places], by_words[beside], beside)
        whole[places] = pool.with_borrowed(places, by_whole[places], by_whole[beside], beside)
    scores = ranking.WORDS * words + ranking.WHOLE * whole + ranking.BEST * ranking.standardise(units, *usual_best)
    return np.asarray(scores + prior(np.arange(count)), np.float32)


def unit_cosines(
    vectors: NDArray[np.int8], query: NDArray[np.float32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Cosines of whole moments and of their nearest units."""
    whole, units = np.zeros(len(vectors)), np.zeros(len(vectors))
    for at in range(0, len(vectors), _CHUNK):
        part = vectors[at : at + _CHUNK].astype(np.float32)
        cosines = (part @ query) / np.linalg.norm(part, axis=2)
        whole[at : at + _CHUNK], units[at : at + _CHUNK] = cosines[:, 0], cosines[:, 1:].max(axis=1)
    return whole, units


# -- 3: answers -------------------------------------------------------------------------------------------------------


def answers(memories: Sequence[Memory], embedder: TextEmbedder, settings: Settings) -> Table:
    """Whole reflex answers, with the time that the vector of the question takes."""
    table = Table(box=box.SIMPLE_HEAD, title=f"{len(QUESTIONS)} reflex answers, vectors of questions included")
    for column in ("moments", "first ms", "p50 ms", "p95 ms", "× the week", "MB of the process's columns"):
        table.add_column(column, justify="right")
    with ExitStack() as open_ones:
        asked: list[tuple[Memory, Recall, list[float], float, float]] = []
        for memory in memories:
            store = open_ones.enter_context(Store.open(memory.home, settings.memory, user=settings.user, readonly=True))
            recall = Recall(store, embedder, settings.recall, now=partial(_now, memory))
            before, began = resident(), time.perf_counter()
            recall.ask(QUESTIONS[0])
            asked.append((memory, recall, [], time.perf_counter() - began, resident() - before))
        for round_ in range(4):
            for question in QUESTIONS:
                for _, recall, times, _, _ in asked:  # in turns: what else the machine does falls on all alike
                    began = time.perf_counter()
                    recall.ask(question)
                    if round_:
                        times.append(time.perf_counter() - began)
    week = statistics.median(asked[0][2])
    for memory, _, times, first, size in asked:
        table.add_row(
            f"{len(memory.vectors):,}", f"{first * 1000:.0f}", *milliseconds(times),
            f"{statistics.median(times) / week:.2f}", f"{size:.0f}",
        )  # fmt: skip
    return table


# -- pieces -----------------------------------------------------------------------------------------------------------


def _now(memory: Memory) -> float:
    return memory.now


def unit(vectors: NDArray[np.int8]) -> NDArray[np.float32]:
    values = vectors.astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return values


def nearest(vectors: NDArray[np.int8], wanted: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    scores = [(unit(vectors[at : at + _CHUNK]) @ wanted.T) for at in range(0, len(vectors), _CHUNK)]
    return [best(column, FIFTIES) for column in np.concatenate(scores).T]


def best(scores: NDArray[np.float32] | NDArray[np.float64], k: int) -> NDArray[np.int64]:
    k = min(k, len(scores))
    among = np.argpartition(scores, len(scores) - k)[len(scores) - k :]
    return among[np.argsort(-scores[among], kind="stable")]


def recalls(found: Sequence[NDArray[np.int64]], exact: Sequence[NDArray[np.int64]]) -> list[str]:
    shares = []
    for k in (TENS, FIFTIES):
        shares.append(
            statistics.mean(
                len(set(a[:k].tolist()) & set(b[:k].tolist())) / k for a, b in zip(found, exact, strict=True)
            )
        )
    return [f"{share:.3f}" for share in shares]


def milliseconds(times: Sequence[float]) -> list[str]:
    return [f"{statistics.median(times) * 1000:.1f}", f"{float(np.percentile(times, 95)) * 1000:.1f}"]


def resident() -> float:
    """MB of working memory of this process."""
    return float(psutil.Process().memory_info().rss) / 1e6


if __name__ == "__main__":
    main()
