"""Moments of scripted lives for the tests of facts, and facts as they may be compared between memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import apsw

from edge.consolidate import Handlers, Worker
from edge.identity import name_entity
from edge.memory import Store, jobs, stored_trace
from edge.memory.tiers import facts

BEGIN = 1_735_689_600.0  # 2025-01-01T00:00Z, a Wednesday
DAY_S = 86_400.0


@dataclass(frozen=True)
class Moment:
    """A trace to be."""

    day: int
    hour: float = 8.0
    camera: str = "hall"
    people: tuple[int, ...] = ()  # 1, 2, …: entities
    surface: str | None = None  # what a cup is on; None: there is none
    words: tuple[tuple[int, str], ...] = ()  # who said what

    @property
    def start(self) -> float:
        """UTC POSIX seconds."""
        return BEGIN + self.day * DAY_S + self.hour * 3600.0


def people(store: Store, names: Sequence[str | None]) -> None:
    """Make entities 1, 2, …; their owner gives them their names."""

    def work(memory: apsw.Connection) -> None:
        for number in range(1, len(names) + 1):
            memory.execute(
                "insert into entity(id, user, kind, number, first_seen, last_seen) values(?, ?, 'person', ?, 0, 0)",
                (number, store.user, number),
            )

    store.transact(work)
    for number, name in enumerate(names, 1):
        if name is not None:
            name_entity(store, number, name)


def write(store: Store, moments: Iterable[Moment]) -> list[int]:
    """Traces with the job that their commit asks for."""

    def work(memory: apsw.Connection) -> list[int]:
        numbers = []
        for one in moments:
            memory.execute(
                "insert or ignore into camera(user, name, created) values(?, ?, 0)", (store.user, one.camera)
            )
            memory.execute(
                "insert into trace(camera, start, end, text, mode, counts, detail, ingested)"
                " select id, ?, ?, 'Something.', 'offline_quality', '{}', '{}', 0 from camera where name = ?",
                (one.start, one.start + 30, one.camera),
            )
            trace = memory.last_insert_rowid()
            seen: list[tuple[str, int | None, str]] = [("person", who, "Somebody sat.") for who in one.people]
            if one.surface is not None:
                on = f"on {one.surface}, " if one.surface else ""
                seen.append(("cup", None, f"A cup was {on}in the middle of the view."))
            memory.executemany(
                "insert into observation(trace, anchor, label, entity, start, end, text, score, boxes, detail)"
                " values(?, ?, ?, ?, ?, ?, ?, 0.9, '[]', '{}')",
                [
                    (trace, f"a{place}", label, who, one.start, one.start + 9, text)
                    for place, (label, who, text) in enumerate(seen)
                ],
            )
            memory.executemany(
                "insert into utterance(trace, start, end, text, speaker, confidence) values(?, ?, ?, ?, ?, 1.0)",
                [
                    (trace, one.start + place, one.start + place + 1, text, who)
                    for place, (who, text) in enumerate(one.words)
                ],
            )
            memory.executemany(
                "insert or ignore into participation(trace, entity) values(?, ?)",
                [(trace, who) for who in {*one.people, *(who for who, _ in one.words)}],
            )
            numbers.append(trace)
            jobs.enqueue(memory, store.user, jobs.TRACE, trace, priority=jobs.AT_ONCE)
        return numbers

    return store.transact(work)


def derive(store: Store) -> None:
    """Do the jobs that facts follow from; other jobs stay in the queue."""
    handlers = Handlers()

    def new(memory: apsw.Connection, job: jobs.Job) -> None:
        trace = stored_trace(memory, job.user, int(job.key))
        if trace is not None:
            facts.note(memory, trace, job.user)

    def again(memory: apsw.Connection, job: jobs.Job) -> None:
        facts.note_again(memory, int(job.key), stored_trace(memory, job.user, int(job.key)), job.user)

    handlers.prompt(jobs.TRACE, new)
    handlers.prompt(jobs.RETRACE, again)
    handlers.prompt(facts.FACTS, facts.settle_job)
    assert Worker(store, handlers).drain().failed == 0


def fact_rows(store: Store, who: Callable[[int], object] = lambda one: one) -> list[tuple[object, ...]]:
    """All facts, counters and statements without ids; people as `who` names them."""

    def value(kind: str, text: str) -> object:
        return who(int(text)) if kind == "company" else text

    rows = store.rows(
        "select s.entity, coalesce(s.label, ''), f.kind, f.value, f.text, f.importance, f.valid_from, f.valid_to, f.known,"
        " f.support, f.first, f.last, f.protected, f.source, (select json_group_array(p.source_kind || p.source) from (select *"
        " from provenance where item_kind = 'fact' and item = f.id order by source_kind, source) p)"
        " from fact f join fact_subject s on s.id = f.subject"
    )
    found = [
        (who(entity) if entity is not None else "", label, kind, value(kind, one), *rest)
        for entity, label, kind, one, *rest in rows
    ]
    subjects = store.rows("select entity, coalesce(label, ''), observations, upto from fact_subject")
    found += [(who(entity) if entity is not None else "", *rest) for entity, *rest in subjects]
    said = store.rows(
        "select s.entity, t.trace, t.utterance, t.at, t.kind, t.value, t.stance from fact_statement t"
        " join fact_subject s on s.id = t.subject"
    )
    found += [(who(entity), *rest) for entity, *rest in said]
    return sorted(found, key=repr)
