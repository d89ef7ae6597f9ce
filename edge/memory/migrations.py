"""Migrations: registered functions, each committed together with its own record.

The number of a migration is its place in the list and SQLite's `user_version` after it; both are written in the same
transaction as its work, so that a kill in between leaves the version before or after, never a mixture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apsw

from edge.clock import utc_now
from edge.errors import MemoryKeyError, StoreVersionError
from edge.memory.database import fetch, transaction

Apply = Callable[[apsw.Connection], None]


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of a file's schema."""

    number: int  # from 1
    name: str
    apply: Apply


class Migrations:
    """The steps of one kind of file, in order."""

    def __init__(self, application: int) -> None:
        self.application = application  # SQLite's application_id: tells our files apart
        self._steps: list[Migration] = []

    def register(self, name: str) -> Callable[[Apply], Apply]:
        """Add the decorated function as the next step."""

        def add(apply: Apply) -> Apply:
            self._steps.append(Migration(len(self._steps) + 1, name, apply))
            return apply

        return add

    @property
    def steps(self) -> tuple[Migration, ...]:
        """All steps, oldest first."""
        return tuple(self._steps)

    @property
    def version(self) -> int:
        """The version of a file to which all steps were applied."""
        return len(self._steps)

    def check(self, connection: apsw.Connection, path: Path) -> int:
        """See whether a file is ours and not of the future.

        Returns:
            How many steps are still to be applied.

        Raises:
            MemoryKeyError: a database of something else.
            StoreVersionError: written by a newer version of this program.
        """
        version = int(connection.pragma("user_version"))
        application = int(connection.pragma("application_id"))
        if application == 0 and version == 0 and not fetch(connection, "select 1 from sqlite_schema limit 1"):
            return self.version  # just created
        if application != self.application:
            raise MemoryKeyError(
                f"“{path}” is a database of another program; move it away, or set REFLECTWORLD_HOME to another folder."
            )
        if version > self.version:
            raise StoreVersionError(
                path,
                f"“{path}” was written by a newer reflectworld (schema {version}, not {self.version});"
                " update with `pip install -U reflectworld-edge`.",
            )
        return self.version - version

    def migrate(self, connection: apsw.Connection, path: Path) -> tuple[str, ...]:
        """Bring a file up to date; each step is its own transaction.

        Returns:
            The names of the steps that were applied.

        Raises:
            MemoryKeyError, StoreVersionError: as `check`.
        """
        applied: list[str] = []
        while self.check(connection, path):
            with transaction(connection):
                # Another process may have been quicker between the check and the lock.
                version = int(connection.pragma("user_version"))
                if version < self.version:
                    step = self._steps[version]
                    self._apply(connection, step)
                    applied.append(step.name)
        return tuple(applied)

    def _apply(self, connection: apsw.Connection, step: Migration) -> None:
        if step.number == 1:
            connection.execute(
                "create table migration(id integer primary key, name text not null, applied real not null)"
            )
            connection.pragma("application_id", self.application)
        step.apply(connection)
        connection.execute(
            "insert into migration(id, name, applied) values(?, ?, ?)", (step.number, step.name, utc_now())
        )
        connection.pragma("user_version", step.number)
