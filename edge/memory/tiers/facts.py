"""Facts about entities with their validity in time, and profiles: tables, reads and writes."""

from __future__ import annotations

import apsw


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
