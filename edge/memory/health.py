"""A thorough examination of the memory, for `doctor` and after trouble."""

from __future__ import annotations

import apsw

from edge.memory.database import fetch

_UNDERIVED = (
    "select count(*) from {0} x"
    " where not exists (select 1 from provenance p where p.item_kind = '{0}' and p.item = x.id)"
)
_DERIVED = (
    "observation",
    "utterance",
    "decision",
    "sample",
    "gallery",
    "pending",
    "key_frame",
    "crop",
    "name_claim",
    "entity",
)
_CHECKS = (
    ("select count(*) from trace where id not in (select rowid from words)", "traces cannot be found by their words"),
    ("select count(*) from words where rowid not in (select id from trace)", "search entries belong to no trace"),
    *((_UNDERIVED.format(table), f"rows ({table}) do not say where they come from") for table in _DERIVED),
)


def problems(memory: apsw.Connection, frames: apsw.Connection) -> list[str]:
    """What is wrong, one sentence each; empty: nothing. Runs in one reading transaction on `memory`.

    Args:
        memory: a connection to memory.db.
        frames: a connection to frames.db.
    """
    found = []
    for name, connection in (("memory.db", memory), ("frames.db", frames)):
        try:
            rows = fetch(connection, "pragma quick_check")
            # One row can tell of many pages, a line each.
            found += [f"{name}: {line}" for (text,) in rows for line in text.splitlines() if line != "ok"]
        except (apsw.CorruptError, apsw.NotADBError) as error:
            found.append(f"{name}: a page is damaged ({error}).")
    if any("a page is damaged" in one for one in found):
        return found  # what else is wrong could be of that
    broken = len(fetch(memory, "pragma foreign_key_check"))
    if broken:
        found.append(f"memory.db: {broken} rows refer to rows that are not there.")
    for sql, words in _CHECKS:
        ((count,),) = fetch(memory, sql)
        if count:
            found.append(f"memory.db: {count} {words}.")
    for table, owner in (("frame", "key_frame"), ("crop", "crop")):
        there = {number for (number,) in frames.execute(f"select id from {table}")}  # noqa: S608 -- constants
        missing = sum(number not in there for (number,) in memory.execute(f"select id from {owner}"))  # noqa: S608 -- constants
        if missing:
            found.append(f"frames.db: {missing} pictures ({owner}) are missing.")
    return found
