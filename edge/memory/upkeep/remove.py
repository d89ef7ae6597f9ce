"""Taking rows out of memory.db with all that hangs on them and is not held by a foreign key. Inside a transaction.

For forgetting, and for what is kept no longer (`retention`). What is derived from what goes is taken away or derived again
in the same transaction, so that nothing of it is left even if no worker ever runs; galleries wait to be made again from
the samples that stay (`identity_state.galleries_due`).
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

import apsw

from edge.memory import index, jobs
from edge.memory.database import fetch
from edge.memory.tiers import facts, graph, scene, timeline, working

THESE: Final = "in (select value from json_each(?))"
_OF_TRACE: Final = ("observation", "utterance", "decision", "sample", "pending", "key_frame")
# Kinds of rows of the base in `provenance`; whatever else comes from what goes was derived, and goes.
_BASE: Final = frozenset(
    {*_OF_TRACE, "trace", "line", "entity", "gallery", "crop", "name_claim", "correction", "source"}
)
_AT_ONCE: Final = 1000  # so many documents are taken out of the index of words one by one; for more, it is written anew
_JOBS: Final = (jobs.TRACE, jobs.RETRACE, jobs.STEP, "embed")  # whose keys begin with the id of a trace


def remove_traces(memory: apsw.Connection, user: str, traces: Iterable[int], *, fading: bool = False) -> set[int]:
    """Take whole moments out.

    Args:
        memory: the writer's connection.
        user: whose memory.
        traces: ids.
        fading: what was learned from them stays: names, facts, and what the timeline tells of their hours.

    Returns:
        The people who took part in them: `settle_people` brings them up to date.
    """
    gone = sorted(set(traces))
    if not gone:
        return set()
    these = (json.dumps(gone),)
    people = {who for (who,) in fetch(memory, f"select distinct entity from participation where trace {THESE}", these)}
    people |= {who for (who,) in fetch(memory, f"select distinct entity from sample where trace {THESE}", these)}
    cameras = {one for (one,) in fetch(memory, f"select distinct camera from trace where id {THESE}", these)}
    hours = [] if fading else scene.hours_of(memory, gone)
    spoken_of: set[int] = set()
    rows = {kind: _ids(memory, f"select id from {kind} where trace {THESE}", these) for kind in _OF_TRACE}
    for kind, numbers in {**rows, "trace": gone}.items():  # those who are only spoken of come from there, too
        origin = f"select item from provenance where item_kind = 'entity' and source_kind = ? and source {THESE}"
        people |= {who for (who,) in fetch(memory, origin, (kind, json.dumps(numbers)))}
    if fading:
        timeline.fade(memory, gone)
        graph.fade(memory, gone)
        memory.execute(
            "insert or ignore into provenance select 'name_claim', id, 'entity', entity from name_claim where utterance"
            f" {THESE}",
            (json.dumps(rows["utterance"]),),
        )
    else:
        people |= remove_claims(memory, rows["utterance"])
        graph.drop(memory, gone)
        spoken_of = facts.drop(memory, gone)
    learned = {who for (who,) in fetch(memory, f"select distinct entity from sample where trace {THESE}", these)}
    learned |= _galleries_on(memory, rows["observation"])
    unlink(memory, {**rows, "trace": gone}, derived=not fading)
    for kind in ("observation", "utterance", "decision", "sample"):
        wanted = (kind, json.dumps(rows[kind]))
        memory.execute(f"delete from correction_item where kind = ? and item {THESE}", wanted)
    drop_galleries(memory, learned)
    memory.execute(
        f"delete from job where user = ? and kind {THESE} and cast(key as integer) {THESE}",
        (user, json.dumps(_JOBS), *these),
    )
    many = len(gone) > _AT_ONCE
    if many:
        memory.execute("insert into words(words, rank) values('secure-delete', 0)")
    memory.execute(f"delete from trace where id {THESE}", these)
    if many:
        rewrite_words(memory)
    if fading:
        _say_origins(memory, people)
        return people
    for trace in gone:
        jobs.enqueue(memory, user, jobs.RETRACE, trace, priority=jobs.AT_ONCE)
    timeline.derive(memory, gone)
    for camera, hour in hours:
        scene.settle(memory, camera, hour)
        facts.settle(memory, camera, hour)
    for subject in sorted(spoken_of):
        facts.derive_said(memory, subject)
    for camera in cameras:
        working.derive(memory, camera)
    return people


def remove_claims(memory: apsw.Connection, utterances: Iterable[int]) -> set[int]:
    """Take out the names that were heard in some words; whose they were."""
    wanted = (json.dumps(sorted(utterances)),)
    found = fetch(memory, f"select id, entity from name_claim where utterance {THESE}", wanted)
    remove_rows(memory, "name_claim", [number for number, _ in found])
    return {who for _, who in found}


def remove_rows(memory: apsw.Connection, table: str, numbers: Iterable[int]) -> None:
    """Take single rows out, with their provenance."""
    gone = sorted(numbers)
    if gone:
        if table == "observation":
            drop_galleries(memory, _galleries_on(memory, gone))
        unlink(memory, {table: gone})
        kind = "claim" if table == "name_claim" else table
        for other in ("correction_item", "moved", "original_text"):
            memory.execute(f"delete from {other} where kind = ? and item {THESE}", (kind, json.dumps(gone)))
        memory.execute(f"delete from {table} where id {THESE}", (json.dumps(gone),))


def _galleries_on(memory: apsw.Connection, observations: Iterable[int]) -> set[int]:
    """Whose galleries rest on some sightings: without them they would not say where they come from."""
    wanted = (json.dumps(sorted(observations)),)
    return {who for (who,) in fetch(memory, f"select distinct entity from gallery where observation {THESE}", wanted)}


def remove_people(memory: apsw.Connection, user: str, people: Iterable[int]) -> None:
    """Take people out, with their galleries, samples, faces, names and corrections; their other rows are gone already."""
    who = json.dumps(sorted(people))
    for table, column in (("observation", "entity"), ("decision", "entity"), ("utterance", "speaker")):
        memory.execute(f"update {table} set {column} = null where {column} {THESE}", (who,))
    drop_galleries(memory, people)
    for table in ("sample", "name_claim"):
        remove_rows(memory, table, _ids(memory, f"select id from {table} where entity {THESE}", (who,)))
    either = f"select id from correction where person {THESE} or other {THESE}"
    remove_rows(memory, "correction", _ids(memory, either, (who, who)))
    unlink(memory, {"entity": sorted(people)})
    memory.execute(f"update entity set merged_into = null where id {THESE}", (who,))
    memory.execute(f"update entity set merged_into = null where merged_into {THESE}", (who,))
    memory.execute(f"delete from entity where id {THESE}", (who,))


def drop_galleries(memory: apsw.Connection, people: Iterable[int]) -> None:
    """Take galleries out until they are made again from the samples that stay."""
    wanted = (json.dumps(sorted(people)),)
    slots = _ids(memory, f"select id from gallery where entity {THESE}", wanted)
    if slots:
        unlink(memory, {"gallery": slots})
        memory.execute(f"update crop set gallery = null where gallery {THESE}", (json.dumps(slots),))
        memory.execute(f"delete from gallery where id {THESE}", (json.dumps(slots),))
        memory.execute("update identity_state set galleries_due = 1")


def unlink(memory: apsw.Connection, gone: Mapping[str, Iterable[int]], *, derived: bool = True) -> None:
    """Take rows out of `provenance`, and (`derived`) with them whatever was derived from them."""
    for kind, numbers in gone.items():
        wanted = json.dumps(sorted(numbers))
        made: dict[str, list[int]] = {}
        for item_kind, item in fetch(
            memory,
            f"select distinct item_kind, item from provenance where source_kind = ? and source {THESE}",
            (kind, wanted),
        ):
            if item_kind not in _BASE and item_kind != "node":  # the timeline is derived again
                made.setdefault(item_kind, []).append(item)
        memory.execute(f"delete from provenance where source_kind = ? and source {THESE}", (kind, wanted))
        memory.execute(f"delete from provenance where item_kind = ? and item {THESE}", (kind, wanted))
        for table, items in made.items() if derived else ():
            if fetch(memory, "select 1 from sqlite_schema where type = 'table' and name = ?", (table,)):
                memory.execute(f"delete from {table} where id {THESE}", (json.dumps(items),))
            memory.execute(f"delete from provenance where item_kind = ? and item {THESE}", (table, json.dumps(items)))


def settle_people(memory: apsw.Connection, user: str, people: Iterable[int]) -> None:
    """When those who stay, and who was merged into them, were seen first and last, and what they come from."""
    staying = fetch(
        memory,
        f"with recursive staying(id) as (select id from entity where id {THESE}"
        " union select e.id from entity e join staying s on e.merged_into = s.id) select id from staying order by id",
        (json.dumps(sorted(people)),),
    )
    for (who,) in staying:
        memory.execute(
            "update entity set first_seen = coalesce((select min(start) from (select start from observation where entity = ?1"
            " union all select start from utterance where speaker = ?1)), first_seen), last_seen = coalesce((select max(end)"
            " from (select end from observation where entity = ?1 union all select end from utterance where speaker = ?1)),"
            " last_seen) where id = ?1",
            (who,),
        )
    _say_origins(memory, [who for (who,) in staying])


def _say_origins(memory: apsw.Connection, people: Iterable[int]) -> None:
    """Let those whose first sighting went come from another one, or from what the owner said of them."""
    for who in people:
        memory.execute(
            "insert into provenance select 'entity', ?1, kind, id from ("
            " select 1 place, 'observation' kind, min(id) id from observation where entity = ?1"
            " union all select 2, 'trace', min(trace) from utterance where speaker = ?1"
            " union all select 3, 'correction', min(id) from correction where ?1 in (person, other)"
            " union all select 4, 'trace', ?2 union all select 5, 'entity', ?1) where id is not null"
            " and not exists (select 1 from provenance where item_kind = 'entity' and item = ?1) order by place limit 1",
            (who, min(speaking_of(memory, who), default=None)),
        )


def speaking_of(connection: apsw.Connection, who: int) -> set[int]:
    """The moments whose indexed texts speak of somebody, by identity."""
    return set(index.documents_of(connection, index.entity_token(who)).tolist())


def rewrite_words(memory: apsw.Connection) -> None:
    """Write the index of words anew, without anything that was deleted; in it, deleting leaves nothing from then on."""
    memory.execute("insert into words(words) values('rebuild')")
    memory.execute("insert into words(words, rank) values('secure-delete', 1)")


def _ids(memory: apsw.Connection, sql: str, values: tuple[object, ...]) -> list[int]:
    return [number for (number,) in fetch(memory, sql, values)]
