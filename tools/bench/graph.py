"""What the graph costs and what it brings: writing, walking, and questions that need more than one moment.

`python -m tools.bench.graph [--segments N] [--edges N …] [--home DIR]`. Three parts, each compared inside one run:

* writing: the processor time that the triples of a moment take, the last thousand of a long life against the first;
* walking: Personalized PageRank over random graphs of rising size whose degrees follow a power law;
* recall: a generated life of some days with questions whose answers are known by the way they were made, ranked with the
  graph at several weights and without it. With `--home` also sentences of a memory that exists, asked for again with one of
  their words left out: what the graph costs where nothing is related.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import apsw
from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.app.replay import replay
from edge.capture import DescribedFile
from edge.consolidate import Worker, build_handlers
from edge.errors import ReflectWorldError
from edge.infer import Catalog, Runtime
from edge.memory import Store, StoredTrace, index
from edge.memory.tiers import graph
from edge.memory.tiers.graph import Key
from edge.recall import Embedder, Known, understand
from edge.recall.search.graph import Nearness
from edge.recall.search.searcher import Searcher
from edge.settings import load_settings

BEGIN = 1_735_689_600.0  # 2025-01-01T00:00Z
DAY_S = 86_400.0
SEGMENT_S = 30.0
NAMES = ("Anna", "Boris", "Clara", "David", "Elena", "Felix", "Greta", "Hugo", "Irene", "Jonas", "Karla", "Leon")
THINGS = """
    drill hammer ladder violin kettle basket lantern blanket puzzle saw bucket broom teapot tripod wrench notebook candle rope
    shovel thermos suitcase umbrella vase clock camera telescope radio pillow helmet whistle map globe easel stapler hourglass
    compass paddle kite harmonica typewriter
""".split()  # noqa: SIM905
PLACES = ("kitchen", "garden", "garage", "attic", "hallway", "library", "bathroom", "balcony", "workshop", "office")
USES = ("uses", "cleans", "repairs", "opens", "moves", "adjusts")
TOPICS = "concert exam recipe holiday invoice wedding election marathon dentist mortgage sculpture avalanche".split()  # noqa: SIM905
FILLER = ("looks around", "stands still for a while", "walks a few steps", "smiles", "nods", "turns around slowly")
WEIGHTS = (0.0, 0.25, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--segments", type=int, default=20_000, help="moments of the life that is written (default 20000)"
    )
    parser.add_argument(
        "--edges", type=int, nargs="*", default=[10_000, 100_000, 1_000_000], help="sizes of random graphs"
    )
    parser.add_argument("--days", type=int, default=10, help="of the life that is asked about (default 10)")
    parser.add_argument("--home", type=Path, help="a memory whose own sentences are asked for")
    parser.add_argument("--parts", nargs="*", default=["writing", "walking", "recall"], help="which parts")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if "writing" in asked.parts:
            writing(Path(folder) / "writing", asked.segments)
        for edges in asked.edges if "walking" in asked.parts else ():
            walking(Path(folder) / f"walking{edges}", edges)
        if "recall" in asked.parts:
            recall(Path(folder), asked.days, asked.home)


# -- writing ----------------------------------------------------------------------------------------------------------


def writing(home: Path, count: int) -> None:
    """Moments one by one, as the queue hands them to the graph."""
    chance = random.Random(1)
    times: list[float] = []
    with Store.open(home) as store:
        store.transact(
            lambda memory: memory.execute("insert into camera(user, name, created) values(?, 'hall', 0)", (store.user,))
        )
        for at in range(0, count, 200):
            numbers = range(at, min(at + 200, count))
            times += store.transact(lambda memory, some=numbers: [one(memory, store.user, n, chance) for n in some])
        with store.reading() as connection:
            size = graph.size(connection, store.user)
    some = min(1000, count // 4)
    first, last = (statistics.median(part) * 1000 for part in (times[200 : some + 200], times[-some:]))
    table = Table(title="Writing: processor time of a moment", box=box.SIMPLE)
    for name in ("moments", "triples", "bonds", "first, ms", "last, ms", "ratio"):
        table.add_column(name, justify="right")
    row = (f"{count:,}", f"{size.triples:,}", f"{size.bonds:,}", f"{first:.2f}", f"{last:.2f}", f"{last / first:.2f}")
    table.add_row(*row)
    Console().print(table)


def one(memory: apsw.Connection, user: str, number: int, chance: random.Random) -> float:
    """Write a moment and its triples; the seconds of processor time for these."""
    start = BEGIN + number * SEGMENT_S
    people = chance.sample(range(1, 40), 3)
    texts = [
        f"{{{{{people[0]}}}}} {chance.choice(USES)} the {chance.choice(THINGS)} in the {chance.choice(PLACES)}.",
        f"{{{{{people[1]}}}}} talks with {{{{{people[2]}}}}} about the {chance.choice(TOPICS)}.",
        f"{{{{{people[2]}}}}} has the {chance.choice(THINGS)} and {chance.choice(FILLER)}.",
    ]
    memory.execute(
        "insert into trace(camera, start, end, text, mode, counts, detail, ingested)"
        " select id, ?, ?, ?, 'offline_quality', '{}', '{}', 0 from camera",
        (start, start + SEGMENT_S, " ".join(texts)),
    )
    trace = StoredTrace(
        memory.last_insert_rowid(), "hall", start, start + SEGMENT_S, " ".join(texts), {},
        tuple((start + 9 * i, text) for i, text in enumerate(texts)), (), (),
    )  # fmt: skip
    began = time.process_time()
    graph.note(memory, trace, user)
    return time.process_time() - began


# -- walking ----------------------------------------------------------------------------------------------------------


def walking(home: Path, edges: int) -> None:
    """A random graph whose degrees follow a power law, and walks from two of its nodes each."""
    chance = random.Random(2)
    nodes = max(100, edges // 10)
    with Store.open(home) as store:
        store.transact(lambda memory: fill(memory, store.user, nodes, edges, chance))
        walks: list[float] = []
        whole: list[float] = []
        with store.reading() as connection:
            for _ in range(50):
                keys = [Key("thing", f"thing{int(nodes * chance.random() ** 3)}") for _ in range(2)]
                began = time.perf_counter()
                near = Nearness(connection, store.user, keys, None)
                walks.append(time.perf_counter() - began)
                near.scores(near.nominated())
                whole.append(time.perf_counter() - began)
    table = Table(title=f"Walking: {edges:,} bonds, {nodes:,} nodes", box=box.SIMPLE)
    for name in ("", "p50, ms", "p95, ms"):
        table.add_column(name, justify="right")
    for name, times in (("walk", walks), ("walk, nominate, score", whole)):
        ordered = sorted(times)
        table.add_row(name, f"{ordered[25] * 1000:.1f}", f"{ordered[47] * 1000:.1f}")
    Console().print(table)


def fill(memory: apsw.Connection, user: str, nodes: int, edges: int, chance: random.Random) -> None:
    memory.execute("insert into camera(user, name, created) values(?, 'hall', 0)", (user,))
    memory.executemany(
        "insert into graph_node(id, user, kind, name) values(?, ?, 'thing', ?)",
        ((number + 1, user, f"thing{number}") for number in range(nodes)),
    )
    memory.executemany(
        "insert into trace(id, camera, start, end, text, mode, counts, detail, ingested)"
        " select ?1, id, ?2, ?2 + 30, '', 'offline_quality', '{}', '{}', 0 from camera",
        ((number + 1, BEGIN + number * SEGMENT_S) for number in range(edges // 15 + 1)),
    )

    def pair(number: int) -> tuple[int, int]:
        one = int(nodes * chance.random() ** 3)
        return one + 1, (one + 1 + int((nodes - 1) * chance.random() ** 3)) % nodes + 1

    memory.executemany(
        "insert or ignore into graph_bond values(?, ?, 'has', ?, 1, 1, 1000, ?, ?)",
        ((n + 1, *pair(n), BEGIN + n // 15 * SEGMENT_S, BEGIN + n // 15 * SEGMENT_S + 30) for n in range(edges)),
    )
    memory.execute(
        "insert into graph_triple select (id - 1) / 15 + 1, id, first, last, cast(first / 3600 as integer) from graph_bond"
    )
    memory.execute(
        "update graph_node set weight = coalesce((select sum(weight) from graph_bond where subject = graph_node.id), 0)"
        " + coalesce((select sum(weight) from graph_bond where object = graph_node.id), 0)"
    )


# -- recall -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about the generated life."""

    kind: str
    text: str
    gold: frozenset[int]  # lines of the file that answer it


def recall(folder: Path, days: int, home: Path | None) -> None:
    rows, questions = life(days, random.Random(3))
    (folder / "life.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = load_settings(folder / "home")
    try:
        embedder: Embedder | None = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    except ReflectWorldError as error:
        Console().print(f"[yellow]{error} Words alone are compared.")
        embedder = None
    with Store.open(folder / "home") as store:
        replay(store, embedder, DescribedFile(folder / "life.jsonl", UTC))
        Worker(store, build_handlers(store)).drain()
        starts = {start: line for line, start in enumerate(BEGIN + row["n"] for row in rows)}
        traces = {starts[start]: number for number, start in store.rows("select id, start from trace")}
        found = {
            weight: [
                rank(store, embedder, one.text, {traces[line] for line in one.gold}, BEGIN + days * DAY_S, weight)
                for one in questions
            ]
            for weight in WEIGHTS
        }
    table = Table(title=f"Recall: {len(rows):,} moments, {len(questions)} questions", box=box.SIMPLE)
    table.add_column("")
    for weight in WEIGHTS:
        table.add_column(f"graph {weight:g}" if weight else "without", justify="right")
    kinds = list(dict.fromkeys(one.kind for one in questions))
    for kind in (*kinds, "all"):
        at = [place for place, one in enumerate(questions) if kind in (one.kind, "all")]
        cells = []
        for weight in WEIGHTS:
            ranks = [found[weight][place] for place in at]
            cells.append(" / ".join(f"{100 * sum(r <= k for r in ranks) / len(ranks):.1f}" for k in (5, 10, 50)))
        table.add_row(f"{kind} ({len(at)})", *cells)
    Console().print(table)
    Console().print("hit@5 / hit@10 / hit@50, %")
    if home is not None:
        own_sentences(home, embedder)


def rank(store: Store, embedder: Embedder | None, text: str, gold: set[int], now: float, weight: float) -> float:
    """The place of the first moment that answers; infinite: beyond fifty."""
    known = [Known(person.id, person.title) for person in store.entities()]
    question = understand(text, now, UTC, known)
    searcher = Searcher(store, embedder, UTC, graph=weight)
    hits = searcher.find(question, index.Filter(store.user, before=now), now, 50).hits
    return next((float(place) for place, hit in enumerate(hits, 1) if hit.trace in gold), float("inf"))


def own_sentences(home: Path, embedder: Embedder | None, count: int = 200) -> None:
    """Sentences of a memory asked for with one word left out, at the end of its time."""
    chance = random.Random(4)
    with Store.open(home, readonly=True) as store:
        titles = store.titles()
        lines = store.rows("select l.trace, l.text from line l where length(l.text) between 30 and 120")
        ((now,),) = store.rows("select max(end) from trace")
        ranks: dict[float, list[float]] = {weight: [] for weight in WEIGHTS}
        for trace, text in chance.sample(lines, min(count, len(lines))):
            words = index_text(text, titles).split()
            del words[chance.randrange(len(words))]
            for weight in WEIGHTS:
                ranks[weight].append(
                    rank(store, embedder, f"When was it that {' '.join(words)}?", {trace}, now, weight)
                )
    table = Table(title=f"Sentences of {home}, a word left out", box=box.SIMPLE)
    for weight in WEIGHTS:
        table.add_column(f"graph {weight:g}" if weight else "without", justify="right")
    table.add_row(
        *(" / ".join(f"{100 * sum(r <= k for r in of) / len(of):.1f}" for k in (5, 10, 50)) for of in ranks.values())
    )
    Console().print(table)


def index_text(text: str, titles: dict[int, str]) -> str:
    from edge.types.records import render

    return render(text.rstrip(".!? "), lambda who: titles.get(who, "someone"))


def life(days: int, chance: random.Random) -> tuple[list[dict[str, object]], list[Asked]]:
    """Described half minutes of a household, and what may be asked about it."""
    friend = {name: chance.choice([other for other in NAMES if other != name]) for name in NAMES}
    rows: list[dict[str, object]] = []
    gives: list[tuple[str, str, str]] = []
    owned: dict[tuple[str, str], list[int]] = {}
    put: dict[tuple[str, str], list[int]] = {}
    used: dict[tuple[str, str], list[int]] = {}
    said: dict[tuple[str, str], list[int]] = {}
    for day in range(days):
        for half in range(120):
            line = len(rows)
            at = day * DAY_S + 8 * 3600 + half * 240
            told, spoken = [], []
            name, other = chance.sample(NAMES, 2)
            thing, place, topic = chance.choice(THINGS), chance.choice(PLACES), chance.choice(TOPICS)
            what = chance.random()
            if what < 0.08:
                told.append(f"{name} gives the {thing} to {other}.")
                gives.append((name, other, thing))
            elif what < 0.3 and gives:
                _, name, thing = chance.choice(gives[-40:])
                told.append(f"{name} puts the {thing} on a shelf in the {place}.")
                put.setdefault((name, thing), []).append(line)
            elif what < 0.55:
                told.append(f"{name} {chance.choice(USES)} the {thing} in the {place}.")
                used.setdefault((name, place), []).append(line)
                owned.setdefault((name, thing), []).append(line)
            elif what < 0.8:
                other = friend[name] if chance.random() < 0.7 else other
                told.append(f"{name} talks with {other}.")
                spoken = [(name, f"Have you heard of the {topic}?"), (other, f"Yes, the {topic} sounds good.")]
                said.setdefault((name, topic), []).append(line)
            else:
                told.append(f"{name} has the {thing} and stands next to {other}.")
                owned.setdefault((name, thing), []).append(line)
            told += [f"{chance.choice(NAMES)} {chance.choice(FILLER)}." for _ in range(chance.randrange(3))]
            rows.append(segment(at, told, spoken))
    return rows, list(questions_about(chance, friend, gives, owned, put, used, said))


def segment(at: float, told: Sequence[str], spoken: Sequence[tuple[str, str]]) -> dict[str, object]:
    def iso(after: float) -> str:
        return datetime.fromtimestamp(BEGIN + at + after, UTC).isoformat()

    return {
        "camera": "house", "n": at, "start": iso(0), "end": iso(SEGMENT_S),
        "captions": [{"at": iso(3 * i), "text": text} for i, text in enumerate(told)],
        "utterances": [{"at": iso(12 + 5 * i), "speaker": who, "text": text} for i, (who, text) in enumerate(spoken)],
    }  # fmt: skip


def questions_about(
    chance: random.Random,
    friend: dict[str, str],
    gives: Sequence[tuple[str, str, str]],
    owned: dict[tuple[str, str], list[int]],
    put: dict[tuple[str, str], list[int]],
    used: dict[tuple[str, str], list[int]],
    said: dict[tuple[str, str], list[int]],
) -> Iterator[Asked]:
    """Of each kind up to forty."""
    given: dict[tuple[str, str], set[str]] = {}
    for name, other, thing in gives:
        given.setdefault((name, other), set()).add(thing)
    bridges = []
    for (name, other), things in sorted(given.items()):
        lines = frozenset(line for thing in things for line in put.get((other, thing), ()))
        if lines:
            bridges.append(Asked("over a thing", f"Where did {other} put what {name} gave away?", lines))
    yield from chance.sample(bridges, min(40, len(bridges)))
    people = [
        Asked("over a person", f"What did the one with whom {name} talks most do in the {place}?", frozenset(lines))
        for name in NAMES
        for place in PLACES
        if (lines := used.get((friend[name], place)))
    ]
    yield from chance.sample(people, min(40, len(people)))
    held = [
        Asked("together", f"Who was with {name} and the {thing}?", frozenset(of))
        for (name, thing), of in sorted(owned.items())
    ]
    yield from chance.sample(held, min(40, len(held)))
    spoke = [
        Asked("said", f"Whom did {name} tell about the {topic}?", frozenset(of))
        for (name, topic), of in sorted(said.items())
    ]
    yield from chance.sample(spoke, min(40, len(spoke)))
    plain = [
        Asked("plain", f"What did {name} do in the {place}?", frozenset(of))
        for (name, place), of in sorted(used.items())
    ]
    yield from chance.sample(plain, min(40, len(plain)))


if __name__ == "__main__":
    main()
