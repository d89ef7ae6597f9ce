"""Many questions at once: QUERIES.jsonl in, RANKED.jsonl out, so that the memory can be measured.

    query:  {"id", "at", "question", "choices"?: {"A": …}}
    ranked: {"id", "results": [{"id", "level", "start", "end", "score", "text"}, …], "choice"?, "rounds", "ms"}

Only what ended at or before `at` is used. Times come back as `at` was written: local without an offset, or with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from edge.clock import parse_instant, to_local
from edge.errors import QuestionError, SourceError


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore")
    id: str | int
    at: str
    question: str
    choices: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One line of QUERIES."""

    id: str | int
    at: float  # UTC POSIX seconds
    zone: tzinfo | None  # of `at`; None: it was written as local time
    question: str
    choices: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ranked:
    """What one query brought; results are rows of (id, level, start, end, score, text)."""

    rows: tuple[tuple[str, str, float, float, float, str], ...]
    choice: str | None
    rounds: int
    milliseconds: float


def read_queries(path: Path) -> Iterator[tuple[int, Query | str]]:
    """The lines of a file, each with its number from 1: a query, or why it is none.

    Raises:
        SourceError: the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, parse_query(line)
    except IsADirectoryError as error:
        raise SourceError(str(path), f"“{path}” is a directory; give the path of a QUERIES.jsonl in it.") from error
    except FileNotFoundError as error:
        raise SourceError(str(path), f"There is no file “{path}”; give the path of a QUERIES.jsonl.") from error
    except OSError as error:
        raise SourceError(str(path), f"“{path}” cannot be read ({error.strerror}); check its permissions.") from error


def parse_query(line: bytes) -> Query | str:
    """Parse one line: a query, or why it is none."""
    try:
        raw = _Line.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}".removeprefix(": ")
    try:
        zone = datetime.fromisoformat(raw.at.strip()).tzinfo
        return Query(raw.id, parse_instant(raw.at), zone, raw.question, dict(raw.choices or {}))
    except (ValueError, OverflowError) as error:
        return f"at: {error}"


def to_line(query: Query, ranked: Ranked) -> bytes:
    """One line of RANKED."""
    document: dict[str, Any] = {
        "id": query.id,
        "results": [
            {
                "id": name,
                "level": level,
                "start": like(query, start),
                "end": like(query, end),
                "score": round(score, 4),
                "text": text,
            }
            for name, level, start, end, score, text in ranked.rows
        ],
    }
    if ranked.choice is not None:
        document["choice"] = ranked.choice
    document |= {"rounds": ranked.rounds, "ms": round(ranked.milliseconds, 2)}
    return orjson.dumps(document) + b"\n"


def refused(query: Query, error: QuestionError) -> bytes:
    """The line of a question that cannot be asked."""
    return orjson.dumps({"id": query.id, "results": [], "error": str(error), "rounds": 0, "ms": 0.0}) + b"\n"


def like(query: Query, at: float) -> str:
    """A moment written as the query's own `at`."""
    local = to_local(at, query.zone)
    written = local if query.zone is not None else local.replace(tzinfo=None)
    return written.isoformat(timespec="milliseconds" if local.microsecond else "seconds")
