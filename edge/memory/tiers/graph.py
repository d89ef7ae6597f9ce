"""Dated, weighted triples, scenes of cameras and the visual index: tables, reads and writes."""

from __future__ import annotations

import apsw


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
