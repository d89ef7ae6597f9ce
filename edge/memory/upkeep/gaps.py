"""Closing the gaps inside pages, in which SQLite leaves copies of rows that it moved.

When pages of a tree are filled up, parted or joined, rows move to other pages, and what lay where they were before is not
overwritten, `secure_delete` or not (measured, tools.bench.forget: names of forgotten people in unused bytes of pages of
`node`). Tables to which rows are only added hardly ever move any. Those whose rows change are few rows each: they are written
anew, onto pages that hold nothing else, and the old pages are freed, which overwrites them whole.
"""

# ruff: noqa: S608 -- tables and columns are those of the schema

from __future__ import annotations

from typing import Final

import apsw

from edge.memory.database import fetch

# Tables with words about people whose rows change after they were written; few rows a day at most.
CHANGING: Final = (
    *("node", "working", "fact", "fact_statement", "graph_node"),
    *("rule", "alert", "answer", "entity", "name_claim", "name_history", "given_name", "correction", "original_text"),
)


def close_gaps(memory: apsw.Connection) -> None:
    """Write these tables anew; inside a transaction. Nothing that can be read changes."""
    triggers = memory.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, -1)
    references = memory.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, -1)
    # Each row comes back as it was: nothing follows from its going. Without either, a table is emptied page by page.
    memory.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    memory.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 0)
    try:
        for table in CHANGING:
            _rewrite(memory, table)
    finally:
        memory.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, triggers)
        memory.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, references)


def _rewrite(memory: apsw.Connection, table: str) -> None:
    columns = fetch(memory, "select name, pk from pragma_table_info(?) order by cid", (table,))
    names = ", ".join(f'"{name}"' for name, _ in columns)
    key = ", ".join(f'"{name}"' for name, place in sorted(columns, key=lambda one: one[1]) if place)
    rows = fetch(memory, f"select {names} from {table} order by {key}")
    memory.execute(f"delete from {table}")
    places = ", ".join("?" for _ in columns)
    memory.executemany(f"insert into {table}({names}) values({places})", rows)
