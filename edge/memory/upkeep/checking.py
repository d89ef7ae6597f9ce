"""Whether a row of an export is one that the schema can hold."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any, Final

import apsw
import numpy as np
import orjson

from edge.memory.database import fetch
from edge.memory.upkeep.archive import Archive
from edge.memory.upkeep.tables import Table

_LARGEST: Final = 2**62  # of an id: leaves room for those that come later


class Columns:
    """The columns of a table, as the schema has them."""

    def __init__(self, memory: apsw.Connection, table: str) -> None:
        rows = fetch(memory, 'select name, lower(type), "notnull", dflt_value, pk from pragma_table_info(?)', (table,))
        self.names = tuple(name for name, *_ in rows)
        self.types = {name: kind for name, kind, *_ in rows}
        self.required = frozenset(name for name, _, needed, _, key in rows if needed or key)
        self.defaults = {name: _literal(memory, default) for name, _, _, default, _ in rows}


def checked(source: Archive, table: Table, columns: Columns, row: dict[str, Any]) -> dict[str, Any]:
    """The values of a row, with those that an older version did not have.

    Raises:
        ArchiveError: it is no row of the table.
    """
    if unknown := row.keys() - set(columns.names):
        raise source.wrong(f"has a column that is not known ({table.name}.{min(unknown)[:40]})")
    values: dict[str, Any] = {}
    for name in columns.names:
        value = row[name] if name in row else columns.defaults[name]
        if isinstance(value, dict):
            value = _blob(value)
        if value is None and name in columns.required:
            raise source.wrong(f"lacks a value ({table.name}.{name})")
        if value is not None and not _fits(value, columns.types[name]):
            raise source.wrong(f"has a value of the wrong kind ({table.name}.{name})")
        if value is not None and name in table.allowed and value not in table.allowed[name]:
            raise source.wrong(f"has a value that is not known ({table.name}.{name})")
        values[name] = value
    for name in (*table.refs, *(item for _, item in table.kinds), *(["id"] if table.identified else [])):
        if values[name] is not None and not 0 < values[name] < _LARGEST:
            raise source.wrong(f"has an id that cannot be ({table.name}.{name})")
    for name in table.json:
        try:
            orjson.loads(values[name])
        except ValueError:
            raise source.wrong(f"has a value that is no JSON ({table.name}.{name})") from None
    if "embedding" in values and not _vector(values["embedding"]):
        raise source.wrong(f"has a vector that is none ({table.name})")
    return values


def _fits(value: Any, kind: str) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if kind == "real":
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if kind == "text":
        return isinstance(value, str)
    return isinstance(value, bytes)


def _blob(value: dict[str, Any]) -> Any:
    try:
        return base64.b64decode(value["base64"], validate=True) if len(value) == 1 else value
    except (KeyError, TypeError, ValueError, binascii.Error):
        return value  # which no column takes


def _vector(data: bytes) -> bool:
    return len(data) > 0 and len(data) % 4 == 0 and bool(np.isfinite(np.frombuffer(data, "<f4")).all())


def _literal(memory: apsw.Connection, default: str | None) -> Any:
    """The value of a column's default, as the schema writes it."""
    return None if default is None else fetch(memory, f"select {default}")[0][0]
