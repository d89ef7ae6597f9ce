"""Semantic facts: what is known of people and things, since when, and until when; how they are derived.

A fact is a run of time in which something was so (`runs`). All facts follow from the base:

* what people say of themselves (`said`), kept as statements by the moment at which they were said; what a language model
  noted is a statement, too;
* what is usual by the tallies of hours (`counts`): places, hours, weekdays, company. As ReflectWorld-MM has it (Appendix C),
  a subject is consolidated with every `EVERY` observations, and the present one is no evidence: what is consolidated are all
  observations but the latest one to `EVERY`, by the time of what happened. Who was observed less often has no such facts;
* their name: an identity fact of importance 1, protected, kept by triggers, so that nothing but the name itself changes it.

So a correction, an old recording that comes in late, and a forgotten moment all give the facts that would be there had it been so
from the start. Derivation begins with the first day that changed: it does not look at what is older than a month before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import apsw

from edge.memory import jobs
from edge.memory.database import fetch, insert
from edge.memory.stored import StoredTrace, stored_trace
from edge.memory.tiers.facts import runs as facts_runs
from edge.memory.tiers.facts.counts import (
    count_hour,
    ensure_subject,
    hours_of,
    latest,
    rows_before,
    rows_since,
    subject,
    uncounted,
)
from edge.memory.tiers.facts.runs import COUNTED, ENOUGH, MONTH, WINDOW, Day, Run, Statement
from edge.memory.tiers.facts.said import Stance, norm, statements
from edge.memory.tiers.timeline import clock_offset
from edge.memory.tiers.timeline.nodes import CHAPTER, HOUR_S, HOURS

EVERY: Final = 5  # observations of a subject from one consolidation to the next (ReflectWorld-MM, Appendix C)
FACTS: Final = "facts"  # kind of job: an hour of a camera changed
SAID, MODEL = "said", "model"  # where a statement comes from

FACTS_V1 = """
create table fact_subject(
  id integer primary key autoincrement, user text not null, entity integer unique references entity(id) on delete cascade,
  label text, observations integer not null default 0, upto real, asked integer not null default 0, unique(user, label));
create table fact_tally(
  camera integer not null references camera(id) on delete cascade, hour integer not null,
  subject integer not null references fact_subject(id) on delete cascade, what text not null, traces integer not null,
  primary key(camera, hour, subject, what)) without rowid;
create index fact_tally_subject on fact_tally(subject, hour);
create table fact_statement(
  id integer primary key autoincrement, subject integer not null references fact_subject(id) on delete cascade,
  trace integer references trace(id) on delete set null, utterance integer references utterance(id) on delete set null,
  at real not null, kind text not null, value text not null, stance text not null, text text not null default '',
  source text not null);
create index fact_statement_subject on fact_statement(subject, at);
create index fact_statement_trace on fact_statement(trace);
create index fact_statement_utterance on fact_statement(utterance);
create table fact(
  id integer primary key autoincrement, subject integer not null references fact_subject(id) on delete cascade,
  kind text not null, value text not null, text text not null default '', importance real not null, valid_from real,
  valid_to real, known real not null, support integer not null default 0, first integer, last integer,
  protected integer not null default 0, identity integer not null default 0, source text not null);
create index fact_of_subject on fact(subject, kind);
create trigger fact_gone after delete on fact begin
  delete from provenance where item_kind = 'fact' and item = old.id;
end;
create trigger fact_statement_gone after delete on fact_statement begin
  delete from provenance where item_kind = 'fact_statement' and item = old.id;
end;
"""

# The name of somebody as a fact follows the name itself, whoever gives or takes it.
_NAMED = """
create trigger fact_named_{when} after {event} on entity when {condition} begin
  insert or ignore into fact_subject(user, entity)
    select new.user, new.id where new.name is not null and new.merged_into is null;
  delete from fact where kind = 'name' and subject = (select id from fact_subject where entity = new.id)
    and (new.name is null or new.merged_into is not null);
  update fact set value = new.name where kind = 'name' and subject = (select id from fact_subject where entity = new.id);
  insert into fact(subject, kind, value, importance, known, protected, identity, source)
    select s.id, 'name', new.name, 1.0, 0.0, 1, 1, 'name' from fact_subject s where s.entity = new.id
    and new.name is not null and new.merged_into is null
    and not exists (select 1 from fact where subject = s.id and kind = 'name');
end;
"""


def create(connection: apsw.Connection) -> None:
    """Make the tables, and ask for all that is remembered already; part of a migration, inside its transaction."""
    connection.execute(FACTS_V1)
    connection.execute(_NAMED.format(when="first", event="insert", condition="new.name is not null"))
    connection.execute(
        _NAMED.format(
            when="again",
            event="update of name, merged_into",
            condition="new.name is not old.name or new.merged_into is not old.merged_into",
        )
    )
    connection.execute(
        "insert into fact_subject(user, entity) select user, id from entity where name is not null and merged_into is null"
    )
    connection.execute(
        "insert into fact(subject, kind, value, importance, known, protected, identity, source)"
        " select s.id, 'name', e.name, 1.0, 0.0, 1, 1, 'name' from fact_subject s join entity e on e.id = s.entity"
    )
    for trace, user in fetch(connection, "select t.id, c.user from trace t join camera c on c.id = t.camera"):
        jobs.enqueue(connection, user, jobs.RETRACE, trace, priority=jobs.AT_ONCE)


# -- what changed -----------------------------------------------------------------------------------------------------


def note(memory: apsw.Connection, trace: StoredTrace, user: str) -> None:
    """A trace is new: take what was said in it, and ask for its hour."""
    note_again(memory, trace.id, trace, user)


def note_again(memory: apsw.Connection, number: int, trace: StoredTrace | None, user: str) -> None:
    """A trace was corrected; of one that was forgotten nothing is left to do (`drop`, `settle`)."""
    for one in _hear(memory, number, trace, user):
        derive_said(memory, one)
    for camera, hour in hours_of(memory, (number,)):
        jobs.enqueue(memory, user, FACTS, f"{camera}:{hour}", priority=jobs.AT_ONCE - 15)


def settle_job(memory: apsw.Connection, job: jobs.Job) -> None:
    """Do a job `facts`."""
    camera, hour = map(int, job.key.split(":"))
    settle(memory, camera, hour)


def settle(memory: apsw.Connection, camera: int, hour: int) -> None:
    """Count an hour of a camera again, and derive what follows for those of whom it shows something else than before."""
    for one in sorted(count_hour(memory, camera, hour)):
        derive_counted(memory, one, hour // HOURS)
        _prune(memory, one)


def _hear(memory: apsw.Connection, number: int, trace: StoredTrace | None, user: str) -> set[int]:
    """Keep what people said of themselves in a trace; the subjects for whom this is something else than before."""
    there = fetch(
        memory,
        "select subject, utterance, at, kind, value, stance from fact_statement where trace = ? and source = ?",
        (number, SAID),
    )
    now = [
        (ensure_subject(memory, user, entity=heard.speaker), heard.id, heard.start, said.kind, said.value, said.stance)
        for heard in (trace.utterances if trace is not None else ())
        if heard.speaker is not None
        for said in statements(heard.text)
    ]
    changed = set(_unsay(memory, (number,))) if trace is None or there != now else set()
    if there == now:
        return changed
    memory.execute("delete from fact_statement where trace = ? and source = ?", (number, SAID))
    columns = ("subject", "utterance", "at", "kind", "value", "stance")
    for row in now:
        insert(memory, "fact_statement", {**dict(zip(columns, row, strict=True)), "trace": number, "source": SAID})
    return changed | {row[0] for row in (*there, *now)}


def _unsay(memory: apsw.Connection, traces: Iterable[int]) -> set[int]:
    """Take back what a language model noted from some traces; of whom that was."""
    found = fetch(
        memory,
        "select distinct s.id, s.subject from provenance p join fact_statement s on s.id = p.item"
        " where p.item_kind = 'fact_statement' and p.source_kind = 'trace' and p.source in (select value from json_each(?))",
        (json.dumps(sorted(traces)),),
    )
    for number, one in found:
        memory.execute("delete from fact_statement where id = ?", (number,))
        memory.execute("update fact_subject set asked = 0 where id = ?", (one,))  # it is gone over again
    return {one for _, one in found}


# -- deriving ---------------------------------------------------------------------------------------------------------


def derive_said(memory: apsw.Connection, number: int) -> None:
    """Derive the facts about a subject that follow from statements."""
    rows = fetch(
        memory,
        "select id, at, kind, value, stance, text, source, utterance from fact_statement where subject = ? order by at, id",
        (number,),
    )
    said = {row[0]: row for row in rows}
    runs = facts_runs.said_runs(
        Statement(one, at, kind, value, Stance(stance), text) for one, at, kind, value, stance, text, _, _ in rows
    )
    kept = _reconcile(
        memory, number, runs, "kind <> 'name' and source in ('said', 'model')", lambda run: said[run.grounds[0]][6]
    )
    for fact, run in kept:
        grounds = {("utterance", said[one][7]) for one in run.grounds if said[one][7] is not None}
        grounds |= {("fact_statement", one) for one in run.grounds if said[one][6] == MODEL}
        _ground(memory, fact, grounds)
    _prune(memory, number)


def derive_counted(memory: apsw.Connection, number: int, day: int | None = None) -> None:
    """Derive the facts about a subject that are counted.

    Args:
        memory: the writer's connection.
        number: of the subject.
        day: the first whose tallies changed; None: all.
    """
    of = subject(memory, number)
    if of is None:
        return
    offset = clock_offset(memory)

    def day_of(at: float) -> int:
        return int((at + offset) // (HOUR_S * HOURS))

    if of.observations < EVERY:  # once there are enough, all of them are looked at: nothing was consolidated before
        memory.execute("update fact_subject set upto = null where id = ?", (number,))
        _reconcile(memory, number, [], "source = 'counted'", lambda _run: "counted")
        return
    open_ended = of.observations - (of.observations // EVERY * EVERY - 1)  # not consolidated yet
    tail = latest(memory, of, open_ended)
    upto = tail[-1][0] if tail else None
    if upto != of.upto:
        memory.execute("update fact_subject set upto = ? where id = ?", (upto, number))
    bounds = [day_of(at) for at in (of.upto, upto) if at is not None]
    first = None if day is None or of.upto is None else min([day, *bounds])
    less = uncounted(memory, of, tail)
    begin = 0 if first is None else first * HOURS
    days = _days(rows_since(memory, number, begin) if first is not None else rows_since(memory, number, -(2**53)), less)
    before = [] if first is None else _days_before(memory, number, begin)
    last = before[-1].number if before else None
    here = "source = 'counted' and first >= ?" if first is not None else "source = 'counted'"
    ongoing = _ongoing(memory, number, first, last) if first is not None and last is not None else {}
    runs = facts_runs.habit_runs(
        before,
        days,
        {key: run for key, (_, run) in ongoing.items()},
        person=of.entity is not None,
        begin=lambda one: one * HOUR_S * HOURS - offset,
    )
    fresh = []
    for run in runs:
        known = ongoing.get((run.kind, run.value))
        if known is not None and run.first == known[1].first:
            _rewrite(memory, known[0], run)
        else:
            fresh.append(run)
    _reconcile(memory, number, fresh, here, lambda _run: "counted", () if first is None else (first,))


def _days(rows: Iterable[tuple[int, int, str, int]], less: Mapping[tuple[int, int, str], int]) -> list[Day]:
    """Tallies (hour, camera, what, moments) by days, in order, without what is not consolidated yet."""
    days: dict[int, dict[tuple[int, int, str], int]] = {}
    for hour, camera, what, moments in rows:
        left = moments - less.get((camera, hour, what), 0)
        if left > 0:
            days.setdefault(hour // HOURS, {})[camera, hour % HOURS, what] = left
    return [Day(number, days[number]) for number in sorted(days)]


def _days_before(memory: apsw.Connection, number: int, hour: int) -> list[Day]:
    """The days with a sighting before an hour, as far back as habits are judged by."""
    rows: list[tuple[int, int, str, int]] = []
    days: set[int] = set()
    for row in rows_before(memory, number, hour):
        day = row[0] // HOURS
        if day not in days and len(days) >= WINDOW and day <= hour // HOURS - MONTH:
            break
        days.add(day)
        rows.append(row)
    return _days(rows, {})


def _ongoing(memory: apsw.Connection, number: int, first: int, last: int) -> dict[tuple[str, str], tuple[int, Run]]:
    """What was usual on the last day before those that are looked at, as it was known then."""
    rows = fetch(
        memory,
        "select id, kind, value, valid_from, known, support, first, last from fact"
        " where subject = ? and source = 'counted' and first < ? and last >= ?",
        (number, first, last),
    )
    found = {}
    for fact, kind, value, start, known, support, began, ended in rows:
        confirmed = support if ended == last else _confirmed(memory, number, began, last)
        found[kind, value] = (fact, Run(kind, value, start, None, known, confirmed, first=began, last=last))
    return found


def _confirmed(memory: apsw.Connection, number: int, first: int, last: int) -> int:
    """On how many days after the first somebody was seen, as far as that matters."""
    days: set[int] = set()
    for hour, _, _, _ in rows_before(memory, number, (last + 1) * HOURS):
        if hour // HOURS <= first or len(days) >= ENOUGH:
            break
        days.add(hour // HOURS)
    return len(days)


def _reconcile(
    memory: apsw.Connection,
    number: int,
    runs: Sequence[Run],
    where: str,
    source: Any,
    values: tuple[object, ...] = (),
) -> list[tuple[int, Run]]:
    """Let the facts about a subject among those that `where` names be these runs; a fact that goes on keeps its id."""
    rows = fetch(
        memory,
        f"select id, kind, value, text, valid_from from fact where subject = ? and {where} order by id",  # noqa: S608 -- constants
        (number, *values),
    )
    there: dict[tuple[str, str], list[tuple[int, float | None]]] = {}
    for fact, kind, value, text, start in rows:
        there.setdefault((kind, norm(value or text)), []).append((fact, start))
    kept: list[tuple[int, Run]] = []
    for run in sorted(runs, key=lambda run: (run.known, run.kind, run.value)):
        same = there.get((run.kind, norm(run.value or run.text)), [])
        match = next((one for one in same if one[1] == run.start), same[0] if same else None)
        if match is not None:
            same.remove(match)
            _rewrite(memory, match[0], run)
            kept.append((match[0], run))
        else:
            values_of = {"subject": number, "source": source(run), **_columns(run)}
            kept.append((insert(memory, "fact", values_of), run))
    for fact, _ in (one for left in there.values() for one in left):
        memory.execute("delete from fact where id = ?", (fact,))
    return kept


def _rewrite(memory: apsw.Connection, fact: int, run: Run) -> None:
    columns = _columns(run)
    names = ", ".join(columns)
    there = fetch(memory, f"select {names} from fact where id = ?", (fact,))  # noqa: S608 -- constants
    if there != [tuple(columns.values())]:
        sets = ", ".join(f"{name} = ?" for name in columns)
        memory.execute(f"update fact set {sets} where id = ?", (*columns.values(), fact))  # noqa: S608 -- constants


def _columns(run: Run) -> dict[str, Any]:
    counted = run.kind in COUNTED
    return {
        "kind": run.kind,
        "value": run.value,
        "text": run.text,
        "importance": run.importance,
        "valid_from": run.start,
        "valid_to": run.end,
        "known": run.known,
        "support": min(run.support, ENOUGH) if counted else run.support,
        "first": run.first if counted else None,
        "last": run.last if counted else None,
    }


def _ground(memory: apsw.Connection, fact: int, grounds: set[tuple[str, int]]) -> None:
    there = set(
        fetch(memory, "select source_kind, source from provenance where item_kind = 'fact' and item = ?", (fact,))
    )
    for kind, source in sorted(there - grounds):
        memory.execute(
            "delete from provenance where item_kind = 'fact' and item = ? and source_kind = ? and source = ?",
            (fact, kind, source),
        )
    memory.executemany(
        "insert into provenance values('fact', ?, ?, ?)", [(fact, *one) for one in sorted(grounds - there)]
    )


def _prune(memory: apsw.Connection, number: int) -> None:
    """Let a subject go of which nothing is known any more."""
    memory.execute(
        "delete from fact_subject where id = ?1 and not exists (select 1 from fact where subject = ?1)"
        " and not exists (select 1 from fact_tally where subject = ?1)"
        " and not exists (select 1 from fact_statement where subject = ?1)",
        (number,),
    )


# -- forgetting: inside its transaction -------------------------------------------------------------------------------


def drop(memory: apsw.Connection, traces: Iterable[int]) -> set[int]:
    """Take out what was said in traces that are about to go; `derive_said` of these subjects follows.

    Returns:
        Their subjects.
    """
    gone = sorted(set(traces))
    found = _unsay(memory, gone)
    these = (json.dumps(gone),)
    sql = "from fact_statement where trace in (select value from json_each(?))"
    found |= {one for (one,) in fetch(memory, f"select distinct subject {sql}", these)}
    memory.execute(f"delete {sql}", these)
    return found


def forget_people(memory: apsw.Connection, people: Iterable[int]) -> None:
    """Let nobody have been seen with people who are about to go, also where the moments are not kept any more."""
    for who in people:
        what = f"{facts_runs.WITH}{who}"
        found = fetch(memory, "select distinct subject from fact_tally where what = ?", (what,))
        memory.execute("delete from fact_tally where what = ?", (what,))
        for (one,) in found:
            derive_counted(memory, one)
        spoken = (f"{{{{{who}}}}}", f"{{{{{who}:")  # what a model noted of others may tell of them
        told = fetch(memory, "select id, subject from fact_statement where instr(text, ?1) or instr(text, ?2)", spoken)
        memory.executemany("delete from fact_statement where id = ?", [(number,) for number, _ in told])
        for one in sorted({one for _, one in told}):
            derive_said(memory, one)


def forget_faded(memory: apsw.Connection, nodes: Iterable[int]) -> None:
    """Forget what was counted and said in the hours of some nodes of the timeline, of whose moments nothing else is left."""
    hours = fetch(
        memory,
        "select distinct n.camera, n.slot from node n join faded f on f.camera = n.camera and f.hour = n.slot"
        " where n.level <= ? and n.id in (select value from json_each(?)) order by 1, 2",
        (CHAPTER, json.dumps(sorted(nodes))),
    )
    changed: dict[int, int] = {}
    for camera, hour in hours:
        for one, moments in fetch(
            memory,
            "select subject, sum(iif(what = '', traces, 0)) from fact_tally where camera = ? and hour = ? group by subject",
            (camera, hour),
        ):
            changed[one] = min(changed.get(one, hour), hour)
            memory.execute("update fact_subject set observations = observations - ? where id = ?", (moments, one))
        memory.execute("delete from fact_tally where camera = ? and hour = ?", (camera, hour))
        begin = hour * HOUR_S - clock_offset(memory)
        lost = fetch(  # of what a model noted, the last moment that it read was then
            memory,
            "select id, subject from fact_statement where trace is null and at >= ? and at < ?",
            (begin, begin + HOUR_S),
        )
        memory.executemany("delete from fact_statement where id = ?", [(number,) for number, _ in lost])
        for _, one in lost:
            changed.setdefault(one, hour)
    for one, hour in sorted(changed.items()):
        derive_counted(memory, one, hour // HOURS)
        derive_said(memory, one)


def forget_all(memory: apsw.Connection, user: str) -> None:
    """Forget everything that is known."""
    memory.execute("delete from fact_subject where user = ?", (user,))


def renew(memory: apsw.Connection, user: str, traces: Iterable[int], *, gone: str) -> None:
    """Derive at once what depends on traces that say less than before.

    Args:
        memory: the writer's connection; the texts are rewritten already.
        user: whose memory.
        traces: ids.
        gone: what stands where a name was: nothing is known of it.
    """
    these = sorted(set(traces))
    changed = {
        one
        for (one,) in fetch(
            memory, "select distinct subject from fact_statement where instr(value, ?1) or instr(text, ?1)", (gone,)
        )
    }
    memory.execute("delete from fact_statement where instr(value, ?1) or instr(text, ?1)", (gone,))
    changed |= _unsay(memory, these)  # a model read what is not there any more
    for number in these:
        changed |= _hear(memory, number, stored_trace(memory, user, number), user)
    for one in sorted(changed):
        derive_said(memory, one)
    for camera, hour in hours_of(memory, these):
        settle(memory, camera, hour)
