"""What the timeline tree costs over months, and how large the global state gets.

`python -m tools.bench.timeline [--days N] [--hours N] [--segments FILE]`. Days of half minutes are written into one memory and
gone over day by day, as the queue does it at a day's end; then one more hour segment by segment, as in live use. Texts are
sentences about everyday things from a seeded generator, or the captions of described segments (`reflectworld replay` reads the
same form) in a seeded order. Compared inside one run: the last week with the first, live with live, and the nodes of the
global state after months with those after one hour.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import apsw
from rich import box
from rich.console import Console
from rich.table import Table

from edge.consolidate import Worker, build_handlers
from edge.memory import Store, jobs
from edge.memory.tiers import timeline

BEGIN = 1_735_689_600.0  # 2025-01-01T00:00Z
DAY_S = 86_400.0
SEGMENT_S = 30.0
WHO = ("I", "A woman", "Two men", "A child", "Somebody")
DOES = (
    "carry",
    "clean",
    "fold",
    "look at",
    "move",
    "open",
    "paint",
    "put down",
    "repair",
    "search for",
    "wash",
    "wrap",
)
WHAT = "basket bicycle book bottle box coat cup guitar key lamp letter plant plate radio rope shoe table towel".split()  # noqa: SIM905
WHERE = ("in the kitchen", "in the garden", "on the stairs", "by the window", "in the hall", "on the street")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=182)
    parser.add_argument("--hours", type=int, default=4, help="watched a day; 16 for a whole one")
    parser.add_argument("--segments", type=Path, help="JSON Lines of described segments, for their captions")
    parser.add_argument("--home", type=Path, help="where the memory is made; default: a folder that goes away")
    asked = parser.parse_args()
    chance = random.Random(1)
    told = captions(asked.segments) if asked.segments else [sentence(chance) for _ in range(5000)]
    with tempfile.TemporaryDirectory() as folder:
        bench(asked.home or Path(folder) / "home", asked.days, asked.hours, told, chance)


def sentence(chance: random.Random) -> str:
    what, where = chance.choice(WHAT), chance.choice(WHERE)
    return f"{chance.choice(WHO)} {chance.choice(DOES)} the {what} {where}."


def captions(path: Path) -> list[str]:
    with path.open() as lines:
        return [caption["text"] for line in lines for caption in json.loads(line)["captions"]]


def bench(home: Path, days: int, hours: int, told: Sequence[str], chance: random.Random) -> None:
    with Store.open(home) as store:
        worker = Worker(store, build_handlers(store))
        first_live = live(store, worker, -DAY_S, 120, told, chance)
        hour = size(store)
        each, sizes = [], []
        for day in range(days):
            starts = [day * DAY_S + 8 * 3600 + i * SEGMENT_S for i in range(hours * 120)]
            write(store, starts, told, chance)
            began = time.process_time()
            worker.drain()
            each.append((time.process_time() - began) / len(starts))
            sizes.append(size(store))
        last_live = live(store, worker, days * DAY_S, 120, told, chance, sizes)
        print_table(store, days, hour, sizes, each, (first_live, last_live))


def write(store: Store, starts: Sequence[float], told: Sequence[str], chance: random.Random) -> None:
    def work(memory: apsw.Connection) -> None:
        memory.execute("insert or ignore into camera(user, name, created) values(?, 'glasses', 0)", (store.user,))
        for start in starts:
            memory.execute(
                "insert into trace(camera, start, end, text, mode, counts, detail, ingested)"
                " select id, ?, ?, ?, 'offline_quality', '{}', '{}', 0 from camera",
                (BEGIN + start, BEGIN + start + SEGMENT_S, " ".join(chance.choices(told, k=6))),
            )
            number = memory.last_insert_rowid()
            jobs.enqueue(memory, store.user, jobs.TRACE, number, priority=jobs.AT_ONCE)

    store.transact(work)


def live(
    store: Store, worker: Worker, begin: float, count: int, told: Sequence[str], chance: random.Random,
    sizes: list[int] | None = None,
) -> float:  # fmt: skip
    """Segment by segment; the median seconds of processor time that going over one takes."""
    times = []
    for i in range(count):
        write(store, [begin + i * SEGMENT_S], told, chance)
        began = time.process_time()  # of all threads; what the disk takes is not the tree's
        worker.step()
        times.append(time.process_time() - began)
        if sizes is not None:
            sizes.append(size(store))
    return statistics.median(times)


def size(store: Store) -> int:
    with store.reading() as connection:
        return len(timeline.frontier(connection, store.user))


def print_table(
    store: Store, days: int, hour: int, sizes: Sequence[int], each: Sequence[float], lived: tuple[float, float]
) -> None:
    with store.reading() as connection:
        began = time.perf_counter()
        timeline.frontier(connection, store.user)
        state_s = time.perf_counter() - began
        began = time.perf_counter()
        month = timeline.descend(connection, store.user, BEGIN + 59 * DAY_S, BEGIN + 90 * DAY_S, 12)
        month_s = time.perf_counter() - began
    ((traces,),) = store.rows("select count(*) from trace")
    ((nodes,),) = store.rows("select count(*) from node")
    week = statistics.median(each[:7])
    table = Table(box=box.SIMPLE_HEAD, title=f"{traces} half minutes over {days} days")
    for column in ("", "value", "against", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    rows = (
        ("processor ms a segment, last week (of a day's queue)", f"{statistics.median(each[-7:]) * 1000:.2f}",
         f"first week {week * 1000:.2f}", f"{statistics.median(each[-7:]) / week:.2f}"),
        ("processor ms a segment, live, last hour", f"{lived[1] * 1000:.2f}", f"first hour {lived[0] * 1000:.2f}",
         f"{lived[1] / lived[0]:.2f}"),
        ("nodes of the global state, most of all days", str(max(sizes)), f"after one hour {hour}", f"{max(sizes) / hour:.2f}"),
        ("nodes of the global state, median", str(statistics.median(sizes)), f"after one hour {hour}",
         f"{statistics.median(sizes) / hour:.2f}"),
        ("nodes of the tree", str(nodes), f"half minutes {traces}", f"{nodes / traces:.3f}"),
        ("ms to read the global state", f"{state_s * 1000:.1f}", "", ""),
        ("ms to cover a month", f"{month_s * 1000:.1f}", f"{len(month)} nodes", ""),
    )  # fmt: skip
    for row in rows:
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
