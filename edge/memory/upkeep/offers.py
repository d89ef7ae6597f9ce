"""Where the last backups of a memory are, so that one can be offered when the memory turns out to be damaged."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import orjson
import structlog

from edge.memory.files import write_private

log = structlog.get_logger(__name__)

NOTES: Final = "backups.json"  # in the home
_KEPT: Final = 20


def note(home: Path, path: Path, created: float) -> None:
    """Note that a backup was made (UTC POSIX seconds)."""
    noted = [one for one in _noted(home) if one[1] != path.resolve()]
    noted.append((created, path.resolve()))
    data = [{"created": at, "path": str(where)} for at, where in sorted(noted)[-_KEPT:]]
    try:
        write_private(home / NOTES, orjson.dumps(data))
    except OSError as error:  # such as on a full device, where a backup is worth most: it is made all the same
        log.warning("backup.not_noted", path=str(path), error=str(error))


def newest(home: Path) -> tuple[float, Path] | None:
    """When the newest backup was made that is still there, and where it is; None: none is known."""
    return next((one for one in sorted(_noted(home), reverse=True) if one[1].is_file()), None)


def offer(home: Path) -> str:
    """What to do about a damaged memory: one sentence."""
    found = newest(home)
    if found is None:
        return "Restore a backup with `reflectworld restore FILE --yes`, and keep a copy of the folder before that."
    at = datetime.fromtimestamp(found[0], UTC).astimezone()
    return f"The backup of {at:%Y-%m-%d %H:%M} is brought back by `reflectworld restore {found[1]} --yes`."


def _noted(home: Path) -> list[tuple[float, Path]]:
    try:
        return [(float(one["created"]), Path(str(one["path"]))) for one in orjson.loads((home / NOTES).read_bytes())]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # without the notes there is nothing to offer
