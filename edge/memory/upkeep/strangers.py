"""People without a name: whom the owner agreed to keep, and whose evidence of identity is kept no longer. Inside a transaction.

When somebody expires, their samples, faces and gallery go: nobody is known again by them. That somebody was there, as "person
3", stays in the moments.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
from typing import Final

import apsw

from edge.clock import utc_now
from edge.memory.database import fetch
from edge.memory.upkeep.remove import THESE, drop_galleries, remove_rows

DAY_S: Final = 86_400.0

CONSENT_V1: Final = """
create table consent(
  entity integer primary key references entity(id) on delete cascade, at real not null);
"""


def agree(memory: apsw.Connection, entity: int) -> None:
    """Keep somebody who has no name, whatever the policy."""
    memory.execute("insert or ignore into consent(entity, at) values(?, ?)", (entity, utc_now()))


def agreed(connection: apsw.Connection, user: str) -> set[int]:
    """Whom the owner agreed to keep."""
    sql = "select a.entity from consent a join entity e on e.id = a.entity where e.user = ?"
    return {who for (who,) in fetch(connection, sql, (user,))}


def expired(
    connection: apsw.Connection, user: str, *, unseen_since: float | None, known_since: float | None, limit: int
) -> list[int]:
    """Whose evidence of identity is to go.

    Args:
        connection: any.
        user: whose memory.
        unseen_since: who was not seen since, nor came into the memory (UTC POSIX seconds); None: nobody for that reason.
        known_since: who was there and in the memory before and still has no name (UTC POSIX seconds); None: nobody for that
            reason. A recording of last year that is watched today leaves as much time as what a camera sees.
        limit: at most so many.
    """
    sql = (
        "select e.id from entity e where e.user = ?1 and e.name is null and e.merged_into is null"
        " and ((e.last_seen < ?2 and coalesce((select max(t.ingested) from participation p join trace t on t.id = p.trace"
        " where p.entity = e.id) < ?2, 1)) or (e.first_seen < ?3 and coalesce((select min(t.ingested) from participation p"
        " join trace t on t.id = p.trace where p.entity = e.id) < ?3, 1))) and e.id not in (select entity from consent)"
        " and (exists (select 1 from sample where entity = e.id) or exists (select 1 from gallery where entity = e.id))"
        " order by e.id limit ?4"
    )
    never = -1e300
    values = (
        user,
        never if unseen_since is None else unseen_since,
        never if known_since is None else known_since,
        limit,
    )
    return [who for (who,) in fetch(connection, sql, values)]


def expire(memory: apsw.Connection, people: list[int]) -> None:
    """Let the evidence of identity of some people go."""
    if not people:
        return
    wanted = (json.dumps(people),)
    drop_galleries(memory, people)
    remove_rows(
        memory, "sample", [one for (one,) in fetch(memory, f"select id from sample where entity {THESE}", wanted)]
    )
    waiting = f"select p.id from pending p join observation o on o.id = p.observation where o.entity {THESE}"
    remove_rows(memory, "pending", [one for (one,) in fetch(memory, waiting, wanted)])
    memory.execute("update identity_state set generation = generation + 1")


def forget_waiting(memory: apsw.Connection, user: str) -> int:
    """Let everything go that waits and is nobody's who is known; how much that was."""
    sql = (
        "select p.id from pending p join camera c on c.id = p.camera left join observation o on o.id = p.observation"
        " left join entity e on e.id = o.entity where c.user = ? and (e.id is null or e.name is null)"
        " and coalesce(o.entity, 0) not in (select entity from consent)"
    )
    gone = [number for (number,) in fetch(memory, sql, (user,))]
    remove_rows(memory, "pending", gone)
    return len(gone)
