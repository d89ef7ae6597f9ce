"""Reading segments that somebody else described already: one JSON object a line.

    {"camera", "start", "end", "captions": [{"at", "text"}], "utterances": [{"at", "speaker" | null, "text"}]}

Times are ISO 8601; one without an offset is local time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from edge.clock import parse_instant
from edge.errors import SourceError

_LONGEST_LINE = 4_000_000  # bytes: a segment of half a minute has a few thousand


@dataclass(frozen=True, slots=True)
class Caption:
    """One sentence about what is seen."""

    at: float  # UTC POSIX seconds
    text: str


@dataclass(frozen=True, slots=True)
class Speech:
    """What somebody says."""

    at: float  # UTC POSIX seconds
    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class DescribedSegment:
    """A segment in words."""

    camera: str
    start: float  # UTC POSIX seconds
    end: float
    captions: tuple[Caption, ...]
    utterances: tuple[Speech, ...]


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is not a described segment."""

    reason: str  # one clause


class _Caption(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    at: str
    text: str


class _Speech(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    at: str
    speaker: str | None = None
    text: str


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    camera: str
    start: str
    end: str
    captions: tuple[_Caption, ...] = ()
    utterances: tuple[_Speech, ...] = ()


class DescribedFile:
    """A file of described segments."""

    def __init__(self, path: Path, zone: tzinfo | None = None) -> None:
        """Look at the file.

        Args:
            path: of the file.
            zone: for times without an offset; None: the device's.

        Raises:
            SourceError: it is absent, empty, a directory, or cannot be read.
        """
        self.path = path
        self._zone = zone
        digest, self.lines = hashlib.sha256(), 0
        try:
            with path.open("rb") as file:
                for line in file:
                    digest.update(line)
                    self.lines += 1
        except FileNotFoundError as error:
            raise SourceError(str(path), f"There is no file “{path}”; give the path of a SEGMENTS.jsonl.") from error
        except IsADirectoryError as error:
            raise SourceError(
                str(path), f"“{path}” is a directory; give the path of a SEGMENTS.jsonl in it."
            ) from error
        except OSError as error:
            raise SourceError(
                str(path), f"“{path}” cannot be read ({error.strerror}); check its permissions."
            ) from error
        if not self.lines:
            raise SourceError(str(path), f"“{path}” is empty; a described segment is one JSON object a line.")
        self.fingerprint = digest.hexdigest()[:32]

    def read(self, skip: int = 0) -> Iterator[tuple[int, DescribedSegment | BadLine]]:
        """The lines after the first `skip`, each with its number from 1; empty lines are left out."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number > skip and line.strip():
                    yield number, parse_line(line, self._zone)


def parse_line(line: bytes, zone: tzinfo | None = None) -> DescribedSegment | BadLine:
    """Parse one line; never raises."""
    if len(line) > _LONGEST_LINE:
        return BadLine(f"it has {len(line)} bytes, more than {_LONGEST_LINE}")
    try:
        raw = _Line.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return BadLine(f"{where}: {first['msg']}" if where else first["msg"])
    try:
        start, end = parse_instant(raw.start, zone), parse_instant(raw.end, zone)
        captions = tuple(Caption(parse_instant(c.at, zone), c.text.strip()) for c in raw.captions if c.text.strip())
        said = tuple(
            Speech(parse_instant(u.at, zone), _name(u.speaker), u.text.strip())
            for u in raw.utterances
            if u.text.strip()
        )
    except (ValueError, OverflowError, OSError) as error:
        return BadLine(f"a time cannot be read: {error}")
    if not end > start:
        return BadLine("it ends before it starts")
    if not raw.camera.strip():
        return BadLine("the camera has no name")
    if not captions and not said:
        return BadLine("it says nothing")
    return DescribedSegment(raw.camera.strip(), start, end, captions, said)


def _name(speaker: str | None) -> str | None:
    return (speaker or "").strip().rstrip(":：").strip() or None
