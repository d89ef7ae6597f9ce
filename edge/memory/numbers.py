"""Numbers of people and voices without a name."""

from __future__ import annotations

import apsw

from edge.memory.database import fetch
from edge.types.records import EntityKind


def next_number(memory: apsw.Connection, user: str, kind: EntityKind) -> int:
    """The next number of a person or a voice; never given out twice, even after deletions."""
    # Whoever is known from a description only is titled "person …" as well, so both count together.
    series = "voice" if kind is EntityKind.VOICE else "person"
    sql = (
        "insert into entity_number(user, series, last) values(?, ?, 1)"
        " on conflict(user, series) do update set last = last + 1 returning last"
    )
    return int(fetch(memory, sql, (user, series))[0][0])
