"""Forgetting: what goes, and that it is gone from the files."""

from __future__ import annotations

import apsw


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
