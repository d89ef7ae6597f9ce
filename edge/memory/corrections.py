"""Corrections by the owner, and the evidence of identity that they act on: tables and statements."""

from __future__ import annotations

import apsw


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
