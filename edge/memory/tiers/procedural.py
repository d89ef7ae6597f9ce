"""The owner's rules, reminders and preferences, and what was sent when and why: tables, reads and writes."""

from __future__ import annotations

import apsw


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
