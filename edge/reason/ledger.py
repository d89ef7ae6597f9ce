"""What was asked of language models, what it took, and what became of it: totals by purpose, kept over restarts.

They stand in a small file of numbers beside the memory, so that a budget of the day holds whatever is started in it, and so
that other processes can read them. Nothing of what was asked is in it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import structlog

from edge.clock import to_local, utc_now
from edge.reason.values import Usage

log = structlog.get_logger(__name__)

FILE: Final = "reason.json"  # in the home folder
_PURPOSES: Final = 64  # that are kept apart


@dataclass(frozen=True, slots=True)
class Tally:
    """What requests of one purpose came to."""

    requests: int = 0
    answered: int = 0
    retries: int = 0
    repairs: int = 0  # second tries, because the first answer had not the form that was asked for
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    seconds: float = 0.0  # of answers, with all tries

    def __add__(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(getattr(self, key) + getattr(other, key) for key in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything that was counted."""

    purposes: Mapping[str, Tally] = field(default_factory=dict)
    refusals: Mapping[str, int] = field(default_factory=dict)  # why -> how many
    dropped: Mapping[str, int] = field(default_factory=dict)  # "purpose: why" -> how many parts of answers broke a rule
    day: str = ""  # ISO date, local time
    today: Usage = field(default_factory=Usage)

    @property
    def all(self) -> Tally:
        """All purposes together."""
        return sum(self.purposes.values(), Tally())


class Ledger:
    """The totals of one memory; from any thread, and from several processes."""

    def __init__(self, home: Path | None, now: Callable[[], float] = utc_now) -> None:
        """Prepare.

        Args:
            home: the folder of the memory; None: the totals are kept as long as this object is.
            now: the present, UTC POSIX seconds.
        """
        self._path = None if home is None else home / FILE
        self._now = now
        self._lock = threading.Lock()
        self._known = Totals()  # of the file; without one, everything
        self._unwritten: dict[tuple[str, str | None], Tally] = {}  # by purpose and refusal
        self._undropped: Counter[str] = Counter()

    def totals(self) -> Totals:
        """What was counted, `today` as of now."""
        with self._lock:
            self._read()
            return self._together()

    def add(self, purpose: str, tally: Tally, refusal: str | None) -> None:
        """Count one request; a file that cannot be written is said and does no harm.

        Args:
            purpose: of the request.
            tally: what it came to.
            refusal: why there was no answer; None: there was.
        """
        with self._lock:
            silent = bool(self._unwritten or self._undropped)
            key = purpose, refusal
            self._unwritten[key] = self._unwritten.get(key, Tally()) + tally
            self._settle(silent=silent)

    def drop(self, purpose: str, counts: Mapping[str, int]) -> None:
        """Count parts of an answer that its caller did not take.

        Args:
            purpose: of the request.
            counts: why -> how many.
        """
        with self._lock:
            silent = bool(self._unwritten or self._undropped)
            self._undropped.update({f"{purpose}: {why}": number for why, number in counts.items()})
            self._settle(silent=silent)

    def _settle(self, *, silent: bool) -> None:
        """Write what is unwritten, if that can be done."""
        try:
            with self._alone():
                self._read()
                together = self._together()
                self._write(together)
        except OSError as error:
            if not silent:
                log.warning("reason.ledger.unwritten", error=str(error))
        else:
            self._known = together
            self._unwritten.clear()
            self._undropped.clear()

    def _together(self) -> Totals:
        """The file with what could not be written to it."""
        known = self._turned(self._known)
        for (purpose, refusal), tally in self._unwritten.items():
            known = _with(known, purpose, tally, refusal)
        return replace(known, dropped=dict(Counter(known.dropped) + self._undropped)) if self._undropped else known

    def _turned(self, known: Totals) -> Totals:
        day = to_local(self._now()).date().isoformat()
        return known if known.day == day else replace(known, day=day, today=Usage())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Without another process."""
        if self._path is None or not self._path.parent.is_dir():
            yield
            return
        with self._path.with_suffix(".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read(self) -> None:
        if self._path is None:
            return
        try:
            self._known = _totals(json.loads(self._path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, AttributeError, KeyError) as error:
            log.warning("reason.ledger.unread", error=str(error))

    def _write(self, totals: Totals) -> None:
        if self._path is None or not self._path.parent.is_dir():
            return
        draft = self._path.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as out:
            json.dump(asdict(totals), out)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self._path)


def _with(known: Totals, purpose: str, tally: Tally, refusal: str | None) -> Totals:
    purposes, refusals = dict(known.purposes), dict(known.refusals)
    key = purpose if purpose in purposes or len(purposes) < _PURPOSES else "other"
    purposes[key] = purposes.get(key, Tally()) + tally
    if refusal is not None:
        refusals[refusal] = refusals.get(refusal, 0) + tally.requests
    used = Usage(tally.tokens_in, tally.tokens_out, tally.cost)
    return replace(known, purposes=purposes, refusals=refusals, today=known.today + used)


def _totals(value: Mapping[str, Any]) -> Totals:
    """What a file says.

    Raises:
        ValueError, TypeError, AttributeError, KeyError: it is none of ours.
    """
    purposes = {str(name): Tally(**tally) for name, tally in value["purposes"].items()}
    refusals = {str(why): int(number) for why, number in value["refusals"].items()}
    dropped = {str(what): int(number) for what, number in value.get("dropped", {}).items()}
    known = Totals(purposes, refusals, dropped, str(value["day"]), Usage(**value["today"]))
    sums = [*dropped.values(), *asdict(known.all).values(), known.today.tokens, known.today.cost]
    if not all(isinstance(one, int | float) and one >= 0 for one in sums):
        raise ValueError("its numbers make no sense")
    return known
