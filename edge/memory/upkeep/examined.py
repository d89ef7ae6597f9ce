"""When a memory was last read whole, and what was found: so that damage is known before it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from edge.memory.files import write_private

FILE: Final = "examined.json"  # in the home


@dataclass(frozen=True, slots=True)
class Examination:
    """One reading of all pages and rows."""

    at: float  # UTC POSIX seconds
    problems: tuple[str, ...]


def note(home: Path, found: Examination) -> None:
    """Keep what was found.

    Raises:
        OSError: it cannot be written.
    """
    write_private(home / FILE, orjson.dumps({"at": found.at, "problems": list(found.problems)}))


def last(home: Path) -> Examination | None:
    """What was found last; None: it was never read whole."""
    try:
        data = orjson.loads((home / FILE).read_bytes())
        return Examination(float(data["at"]), tuple(str(one) for one in data["problems"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
