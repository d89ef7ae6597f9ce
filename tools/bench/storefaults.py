"""Lets the store fail in every way and looks at what is left.

    python -m tools.bench.storefaults [--kills 200] [--stride 1] [--seed 1]

*Kills.* A process commits, works on jobs, names, corrects, forgets, imports, exports, makes backups and takes new keys, in
random order, and is killed (SIGKILL) at random moments. After each kill the memory is opened and examined: everything that
was said to be done is there, what was under way is done or not, backups and exports are whole. In the end all that was
derived is compared with what a memory derives that has the same base and was never killed.

*Disk.* Each action is done on a disk that fails at its n-th operation, for all n: once, or for good, for want of space or
otherwise; see `tests.store_faults.fail_everywhere`.

*Copies.* Time and size of a backup, an export and an import, against those of the memory.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import structlog

from edge.memory import Store
from edge.memory.upkeep import backup, exporting, importing
from edge.memory.upkeep.restore import restore
from edge.settings import MemorySettings
from tests.memory_support import segment
from tests.store_faults import World, fail_everywhere, kill_often, state

SETTINGS = MemorySettings()


def main() -> None:
    """Print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stride", type=int, default=1, help="every how manieth operation of the disk fails; 0: none")
    parser.add_argument("--segments", type=int, default=600, help="of the memory that is copied; 0: none")
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))  # failures are meant
    if arguments.kills:
        kills(arguments.kills, arguments.seed)
    if arguments.stride:
        disk(arguments.stride)
    if arguments.segments:
        copies(arguments.segments)


def kills(count: int, seed: int) -> None:
    """Kill, and print what was hit."""
    began = time.monotonic()

    def tell(done: int, world: World) -> None:
        if done % 25 == 0:
            print(f"  {done} kills, {len(world.committed)} segments, {time.monotonic() - began:.0f} s", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        world = kill_often(Path(folder), count, seed, tell)
    print(
        f"{count} SIGKILLs: each time the memory opened and was whole; nothing that was said to be done was lost, and what"
    )
    print("was derived in the end is what a memory derives that was never killed")
    print(f"  {'':10}{'done':>8}{'killed in':>12}")
    for name in sorted(set(world.done) | set(world.killed_in)):
        print(f"  {name:10}{world.done[name]:8}{world.killed_in[name]:12}")


def disk(stride: int) -> None:
    """Let the disk fail, and print where."""
    with tempfile.TemporaryDirectory() as folder:
        report = fail_everywhere(Path(folder), stride=stride)
    total = sum(report.points.values())
    print(f"{total} faults of the disk, {report.failed} of which an action noticed: done or not, never in between")
    for name, points in report.points.items():
        print(f"  {name:28}{points:8}")


def copies(segments: int) -> None:
    """Make copies, and print their size and time."""
    noise = np.random.default_rng(1).integers(0, 255, (240, 320, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        home, other, third = (Path(folder) / name for name in ("home", "other", "third"))
        with Store.open(home) as store:
            for i in range(segments):
                store.commit(segment(i, who=1 if i else None, frame=np.roll(noise, i, axis=1)))
        made = backup.make(home, SETTINGS, Path(folder) / "copy")
        began = time.monotonic()
        restore(made.path, third, SETTINGS, key_file=home / "key")
        restored = time.monotonic() - began
        began = time.monotonic()
        exported = exporting.export(home, SETTINGS, Path(folder) / "export")
        wrote = time.monotonic() - began
        began = time.monotonic()
        with Store.open(other) as store:
            store.upkeep(lambda files: importing.load(exported.path, files, store.user))
        read = time.monotonic() - began
        rows = [
            ("memory", made.memory_bytes, None),
            ("backup (copied, read back)", made.bytes, made.copy_s + made.verify_s),
            ("restore (checked, copied)", made.bytes, restored),
            ("export to a folder", exported.bytes, wrote),
            ("import", exported.bytes, read),
        ]
        print(f"{segments} segments with a picture of {made.memory_bytes / segments / 1000:.0f} kB each")
        for name, size, seconds in rows:
            speed = "" if seconds is None else f"{seconds:8.2f} s{size / seconds / 1e6:8.0f} MB/s"
            print(f"  {name:28}{size / 1e6:8.1f} MB{size / made.memory_bytes:7.2f} ×{speed}")
        print(f"  after restore: {same(home, third)}; after export and import: {same(home, other)}")


def same(one: Path, other: Path) -> str:
    """Whether two memories are row by row the same, in words."""
    states = []
    for home in (one, other):
        with Store.open(home) as store:
            states.append(state(store))
    differ: Iterable[str] = [table for table in states[0] if states[0][table] != states[1][table]]
    return f"{sum(map(len, states[0].values()))} rows, " + (
        f"DIFFERENT in {', '.join(differ)}" if differ else "all equal"
    )


if __name__ == "__main__":
    main()
