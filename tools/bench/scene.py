"""What scene memory finds unusual, in a household that code lives: how much of what was put in, and how often for nothing.

`python -m tools.bench.scene [--days N] [--seeds N]`. Four cameras and a pair of glasses count hours of habits with chance in them
(`tools.bench.household`, written down before anything was measured with it). From the fifth week on something unusual happens
now and then: somebody in the kitchen at three in the night, a thing that was never there, a crowd, nobody home on an evening. Each day
is judged by the days before it. *Found* is what was put in and noticed on its day at its camera; the rest of what is noticed
is *for nothing*, though a habit that changes half way, a visitor and a detector's mistakes are among it.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter

from rich import box
from rich.console import Console
from rich.table import Table

from edge.memory.tiers.scene.baseline import unusual
from tools.bench.household.life import BEGIN, Life, live

QUIET_DAYS = 28


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    total: Counter[str] = Counter()
    by_kind: Counter[tuple[str, bool]] = Counter()
    table = Table(
        "seed", "put in", "found", "for nothing", "a camera and week", "ms a day", box=box.SIMPLE_HEAD,
        title=f"{asked.days} days of five cameras, judged from day {QUIET_DAYS} on",
    )  # fmt: skip
    for seed in range(1, asked.seeds + 1):
        life = live(asked.days, seed, quiet_days=QUIET_DAYS)
        began = time.perf_counter()
        scored = judge(life, by_kind)
        days = len(life.slots) * (asked.days - QUIET_DAYS)
        scored["days"] = days
        total.update(scored)
        table.add_row(str(seed), *_row(scored), f"{(time.perf_counter() - began) * 1000 / days:.1f}")
    table.add_row("all", *_row(total), "", style="bold")
    console = Console(width=110)
    console.print(table)
    kinds = sorted({kind for kind, _ in by_kind})
    console.print({kind: f"{by_kind[kind, True]} of {by_kind[kind, True] + by_kind[kind, False]}" for kind in kinds})


def judge(life: Life, by_kind: Counter[tuple[str, bool]]) -> Counter[str]:
    """Count what is noticed on each day."""
    scored: Counter[str] = Counter()
    for camera, slots in life.slots.items():
        for day in range(BEGIN + QUIET_DAYS, BEGIN + life.days):
            noticed = unusual(slots, day)
            put_in = [one for one in life.odd if (one.camera, one.day) == (camera, day)]
            told = set()
            for one in put_in:
                hours = {day * 24 + hour for hour in one.hours}
                fits = [place for place, found in enumerate(noticed)
                        if hours & set(range(found.first - 1, found.last + 2)) and found.what == one.what]  # fmt: skip
                by_kind[one.kind, bool(fits)] += 1
                scored["put in"] += 1
                scored["found"] += bool(fits)
                told.update(fits)
            scored["for nothing"] += sum(
                1
                for place, found in enumerate(noticed)
                if place not in told and not _of(found.first, found.last, put_in)
            )
    return scored


def _of(first: int, last: int, put_in: list) -> bool:  # type: ignore[type-arg]
    """Whether it is another side of something that was put in: the light, the noise."""
    return any(set(range(first - 1, last + 2)) & {one.day * 24 + hour for hour in one.hours} for one in put_in)


def _row(scored: Counter[str]) -> list[str]:
    weeks = scored["days"] / 7
    return [
        str(scored["put in"]), f"{100 * scored['found'] / max(1, scored['put in']):.0f} %", str(scored["for nothing"]),
        f"{scored['for nothing'] / weeks:.2f}",
    ]  # fmt: skip


if __name__ == "__main__":
    main()
