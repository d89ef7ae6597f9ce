"""What can happen to a camera while the service watches: how long each fault lasts until the camera is live again.

`python -m tools.bench.faults [NAME …]`. A real service watches a camera that fails in one way after another; the faults that
need network namespaces need root, and GStreamer's RTSP server those of RTSP; what cannot be made here is said.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from tests.live_faults import FAULTS, LONGEST_S


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [fault.__name__ for fault in FAULTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these: {', '.join(names)}")
    wanted = parser.parse_args().names or names
    table = Table(box=box.SIMPLE_HEAD, title=f"after each fault, a camera is to be live again within {LONGEST_S:.0f} s")
    for column in ("fault", "lasted, s", "live again after, s", "moments before", "unchanged", "moments in the end"):
        table.add_column(column, justify="left" if column == "fault" else "right")
    for fault in FAULTS:
        if fault.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = fault(Path(folder) / "home")
            except pytest.skip.Exception as reason:
                table.add_row(fault.__name__, f"not here: {reason}", "", "", "", "")
                continue
        values = (
            f"{done.lasted:.1f}",
            f"{done.recovered:.2f}",
            str(done.before),
            "yes" if done.kept else "NO",
            str(done.after),
        )
        table.add_row(done.fault, *values)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
