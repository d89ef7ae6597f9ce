"""Looking at a memory when it is opened, without reading all of it: damage is found where the next reads and writes go."""

from __future__ import annotations

from typing import Final

import apsw

from edge.memory.database import fetch

_TABLES: Final = (
    "select name, exists (select 1 from pragma_index_list(s.name) where origin = 'pk') from sqlite_schema s"
    " where type = 'table' and rootpage > 0 order by rootpage"
)


def touch(connection: apsw.Connection) -> int:
    """Read the first page of every table and the path to its newest row, with that row.

    Each page is authenticated as it is read, so that one that is torn or changed is noticed.

    Returns:
        How many tables there are.

    Raises:
        apsw.CorruptError, apsw.NotADBError, apsw.IOError: a page is damaged.
    """
    tables = fetch(connection, _TABLES)
    for name, keyed in tables:
        quoted = '"' + str(name).replace('"', '""') + '"'
        if keyed:
            fetch(connection, f"select * from {quoted} limit 1")  # noqa: S608 -- names of our own tables
        else:
            fetch(connection, f"select * from {quoted} order by rowid desc limit 1")  # noqa: S608 -- as above
    return len(tables)
