"""A thorough examination of the memory, for `doctor` and after trouble."""

from __future__ import annotations

import apsw

CHECKS = (
    (
        "select count(*) from trace t where not exists (select 1 from words w where w.rowid = t.id)",
        "traces cannot be found by their words",
    ),
    (
        "select count(*) from document d left join trace t on t.id = d.trace where t.id is null",
        "search entries belong to no trace",
    ),
    (
        "select count(*) from observation o left join provenance p on p.item_kind = 'observation' and p.item = o.id where p.item is null",
        "observations do not say where they come from",
    ),
    (
        "select count(*) from gallery g left join provenance p on p.item_kind = 'gallery' and p.item = g.id where p.item is null",
        "gallery slots do not say where they come from",
    ),
)


def problems(memory: apsw.Connection, frames: apsw.Connection) -> list[str]:
    """What is wrong, one sentence each; empty: nothing. Runs in one reading transaction on `memory`.

    Args:
        memory: a connection to memory.db.
        frames: a connection to frames.db.
    """
    found = []
    for name, connection in (("memory.db", memory), ("frames.db", frames)):
        found += [f"{name}: {text}" for (text,) in connection.execute("pragma quick_check").fetchall() if text != "ok"]
    broken = len(memory.execute("pragma foreign_key_check").fetchall())
    if broken:
        found.append(f"memory.db: {broken} rows refer to rows that are not there.")
    for sql, words in CHECKS:
        ((count,),) = memory.execute(sql).fetchall()
        if count:
            found.append(f"memory.db: {count} {words}.")
    for table, owner in (("frame", "key_frame"), ("crop", "crop")):
        there = {number for (number,) in frames.execute(f"select id from {table}")}  # noqa: S608 -- constants
        missing = sum(number not in there for (number,) in memory.execute(f"select id from {owner}"))  # noqa: S608 -- constants
        if missing:
            found.append(f"frames.db: {missing} pictures ({owner}) are missing.")
    return found
