"""What each network costs here: time to load, memory, time of a call. Each is measured in a process of its own.

`python -m tools.bench.infer [MODEL …]`. Calls are made on one thread unless `--threads` says otherwise; the resident
memory is what the process grew by, loaded and after the calls, when what was freed has been given back. The last line has
all of them in one process, with inputs of changing shape, as the product has them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from edge.infer import Catalog, ModelSpec, Network, Runtime, TextEmbedder, release_memory
from edge.perceive.speech import Recogniser
from edge.settings import InferSettings

_WORDS = "a man and a woman sit at the table in the kitchen and drink coffee while the cat sleeps on a chair".split()  # noqa: SIM905 - as a sentence it can be read
_ALL = "all together"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="ids; default: the default of every role")
    parser.add_argument("--threads", type=int, default=1, help="threads in one network; 0: measured (default 1)")
    parser.add_argument("--calls", type=int, default=20, help="calls of each network (default 20)")
    options = parser.parse_args()
    settings = InferSettings(threads=options.threads)
    catalog = Catalog.load(settings)
    chosen = [catalog.get(name) for name in options.models] or [spec for spec in catalog.defaults() if spec.present]
    print(Runtime(settings).description)
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("model", "input", "load ms", "loaded MB", "after calls MB", "ms a call (median)", "p95"):
        table.add_column(column, justify="left" if column in {"model", "input"} else "right", no_wrap=column == "model")
    names = [spec.id for spec in chosen]
    for name in [*names, _ALL]:
        for row in _alone(name, names, options.threads, options.calls):
            table.add_row(*row)
    Console(width=120).print(table)


def _alone(name: str, names: list[str], threads: int, calls: int) -> list[tuple[str, ...]]:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        if name == _ALL:
            return pool.apply(measure_all, (names, threads, calls))
        return pool.apply(measure, (name, threads, calls))


def measure(name: str, threads: int, calls: int) -> list[tuple[str, ...]]:
    """One model; one row for each kind of input."""
    settings = InferSettings(threads=threads)
    spec = Catalog.load(settings).get(name)
    runtime = Runtime(settings)
    before, begin = _rss(), time.perf_counter()
    inputs = list(_calls(spec, runtime))
    load, loaded = (time.perf_counter() - begin) * 1e3, _rss() - before
    rows = []
    for label, call in inputs:
        times = _times(call, calls)
        cells = (
            f"{load:.0f}",
            f"{loaded:.0f}",
            f"{_rss() - before:.0f}",
            f"{statistics.median(times):.2f}",
            f"{np.percentile(times, 95):.2f}",
        )
        rows.append((name, label, *cells))
    return rows


def measure_all(names: list[str], threads: int, calls: int) -> list[tuple[str, ...]]:
    """All models in one process."""
    settings = InferSettings(threads=threads)
    catalog, runtime = Catalog.load(settings), Runtime(settings)
    before, begin = _rss(), time.perf_counter()
    inputs = [item for name in names for item in _calls(catalog.get(name), runtime)]
    load, loaded = (time.perf_counter() - begin) * 1e3, _rss() - before
    times = _times(lambda: [call() for _, call in inputs], max(calls // 2, 3))
    cells = (
        f"{load:.0f}",
        f"{loaded:.0f}",
        f"{_rss() - before:.0f}",
        f"{statistics.median(times):.2f}",
        f"{np.percentile(times, 95):.2f}",
    )
    return [(f"{_ALL} ({len(names)})", f"every input once; whole process {_rss():.0f} MB", *cells)]


def _calls(spec: ModelSpec, runtime: Runtime) -> Iterator[tuple[str, Callable[[], object]]]:
    """The inputs that a model is measured on."""
    rng = np.random.default_rng(0)
    if spec.role == "speech":
        yield from _speech(spec, runtime, rng)
    elif spec.role == "text-embedding":
        embedder = TextEmbedder(spec, runtime)
        for count, texts in ((11, 1), (40, 1), (200, 1), (20, 32)):
            batch = [" ".join(rng.choice(_WORDS, count)) for _ in range(texts)]
            yield f"{texts} text{'s' * (texts > 1)} of {count} words", lambda batch=batch: embedder.embed(batch)
    else:
        network = runtime.open(spec)
        for shape in _shapes(spec):
            feeds = _feeds(network, shape, rng)
            yield "×".join(map(str, shape)), lambda feeds=feeds: network.run(feeds)


def _shapes(spec: ModelSpec) -> list[tuple[int, ...]]:
    params = spec.params
    if spec.role == "faces":
        return [(1, 3, 288, 480), (1, 3, 384, 640), (1, 3, 640, 640)]
    if spec.role == "voice-embedding":
        return [(count, params["frames"], params["mels"]) for count in (1, 8)]
    if spec.role == "voice-activity":
        return [(1, params["window"] + 64)]
    width, height = params["input_size"]
    counts = (1,) if spec.role == "objects" else (1, 5)
    return [(count, 3, height, width) if params["layout"] == "nchw" else (count, height, width, 3) for count in counts]


def _feeds(network: Network, shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, Any]:
    feeds: dict[str, Any] = {network.inputs[0].name: rng.random(shape, dtype=np.float32)}
    for tensor in network.inputs[1:]:
        sides = tuple(1 if side is None else side for side in tensor.shape)
        feeds[tensor.name] = np.full(sides, 16_000 if tensor.name == "sr" else 0, dtype=tensor.dtype)
    return feeds


def _speech(spec: ModelSpec, runtime: Runtime, rng: np.random.Generator) -> Iterator[tuple[str, Callable[[], object]]]:
    recogniser = Recogniser(spec, runtime)
    noise = (0.01 * rng.standard_normal(5 * 16_000)).astype(np.float32)
    yield "5 s of faint noise", lambda: recogniser.transcribe(noise)


def _times(call: Callable[[], object], calls: int) -> list[float]:
    call()
    times = []
    for _ in range(calls):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return times


def _rss() -> float:
    release_memory()
    return psutil.Process().memory_info().rss / 1e6


if __name__ == "__main__":
    main()
