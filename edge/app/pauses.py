"""Pausing: nothing is remembered of any camera, until told otherwise or for a time. Kept over a restart."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import structlog

from edge.clock import utc_now
from edge.errors import SettingsError
from edge.serve.private import write_private

log = structlog.get_logger(__name__)

FILE = "pause.json"  # in the home folder


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of everything."""

    since: float  # UTC POSIX seconds
    until: float | None  # UTC POSIX seconds; None: until told otherwise

    def over(self, now: float) -> bool:
        """Whether it has ended by itself."""
        return self.until is not None and now >= self.until


class PauseBook:
    """The pause of one home; every change is written at once. Thread-safe."""

    def __init__(self, home: Path) -> None:
        """Read the file. One that cannot be read pauses: nothing is remembered that should not be."""
        self._path = home / FILE
        self._lock = threading.Lock()
        self._pause = _read(self._path)

    @property
    def pause(self) -> Pause | None:
        """The one that holds now."""
        pause = self._pause
        return None if pause is None or pause.over(utc_now()) else pause

    def begin(self, until: float | None) -> Pause:
        """Pause, or pause for another time.

        Args:
            until: UTC POSIX seconds; None: until told otherwise.

        Raises:
            SettingsError: it cannot be written down; nothing is paused.
        """
        with self._lock:
            now = self.pause
            pause = Pause(utc_now() if now is None else now.since, until)
            try:
                write_private(self._path, orjson.dumps(asdict(pause)))
            except OSError as error:
                raise SettingsError(
                    f"“{self._path}” cannot be written ({error.strerror}): check the folder, and pause again."
                ) from error
            self._pause = pause
            return pause

    def end(self) -> None:
        """Go on.

        Raises:
            SettingsError: the file cannot be removed.
        """
        with self._lock:
            try:
                self._path.unlink(missing_ok=True)
            except OSError as error:
                raise SettingsError(
                    f"“{self._path}” cannot be removed ({error.strerror}): check the folder."
                ) from error
            self._pause = None


def _read(path: Path) -> Pause | None:
    try:
        data = orjson.loads(path.read_bytes())
        until = data["until"]
        return Pause(float(data["since"]), None if until is None else float(until))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("pause.unreadable", path=str(path), error=str(error), remedy="`reflectworld resume` ends the pause")
        return Pause(utc_now(), None)
