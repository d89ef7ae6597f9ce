"""Making and undoing corrections: one transaction that moves rows, texts, galleries, names and times, and asks for the rest.

The galleries are made again from their samples before that transaction, from one state of the memory; what was
committed meanwhile is added inside it. Words are indexed again right after it, some traces at a time (`reindex_some`):
should the process end before, the writer goes on with it when the memory is next opened. Everything else that follows
from who is who is asked of the durable queue in the same transaction: `rederive-trace`, and `embed`
for traces whose texts say something else now.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import apsw

from edge.clock import utc_now
from edge.errors import NotFoundError, UserError
from edge.memory import attribution, index, jobs, renaming, samples
from edge.memory.attribution import Correction, Move
from edge.memory.database import fetch, insert
from edge.memory.numbers import next_number
from edge.memory.sighted import rows_of
from edge.types.drafts import DerivedSlot
from edge.types.records import CorrectionDraft, CorrectionKind, EntityKind, Kind, NameSource, public_id

NEW = -1  # stands for somebody whom a correction is about to make
_RANK = {EntityKind.VOICE: 0, EntityKind.NAMED: 1, EntityKind.PERSON: 2}
_AT_ONCE = (
    32  # traces indexed again in one transaction: commits wait for less than 0.1 s (measured, tools.bench.corrections)
)
_LAST = 2**62  # the id of a correction that is not written yet


class Derivation(Protocol):
    """The rules of `edge.identity` by which galleries and names follow from what is kept."""

    def galleries(self, voices: Collection[int]) -> samples.Folding:
        """An empty fold.

        Args:
            voices: the entities that are only heard.
        """

    def believes(
        self,
        name: str,
        source: NameSource,
        called: str | None,
        authority: NameSource,
        heard: Sequence[tuple[str, NameSource]],
    ) -> bool:
        """Whether a name that is heard becomes somebody's name.

        Args:
            name: that is heard.
            source: said by themselves or by others.
            called: what they are called until then.
            authority: where that comes from.
            heard: the names heard for them before, with their sources.
        """


@dataclass(frozen=True, slots=True)
class Prepared:
    """A correction as it was understood in one state of the memory, with the galleries that follow from it."""

    generation: int  # of that state
    draft: CorrectionDraft | None  # None: `undone` is
    undone: int | None
    items: frozenset[attribution.Item]
    folding: samples.Folding | None  # None: no gallery changes
    last: int  # the last sample that is in it


def prepare(connection: apsw.Connection, user: str, draft: CorrectionDraft, rules: Derivation) -> Prepared:
    """Understand a correction and make the galleries that follow from it; reads one state of the memory.

    Raises:
        NotFoundError: somebody is not known.
        UserError: it makes no sense.
    """
    draft, items = understood(connection, user, draft)
    new = Correction(
        _LAST, draft.kind, draft.person, NEW if draft.other is None else draft.other, draft.other is None, None,
        NameSource.NONE, 0.0, 0, frozenset(items),
    )  # fmt: skip
    kind = kinds(connection, user, [draft.person])[draft.person]
    heard = {NEW} if kind is EntityKind.VOICE else set()
    folding, last = _folded(connection, user, [*attribution.active(connection, user), new], rules, heard)
    return Prepared(_generation(connection), draft, None, frozenset(items), folding, last)


def prepare_undo(connection: apsw.Connection, user: str, number: int | None, rules: Derivation) -> Prepared:
    """Find a correction (None: the latest that holds), and make the galleries as they would be without it.

    Raises:
        NotFoundError: there is no such correction.
        UserError: it was undone already, or nothing is there to be undone.
    """
    if number is None:
        rows = fetch(connection, "select max(id), null from correction where user = ? and undone_at is null", (user,))
        if rows[0][0] is None:
            raise UserError("There is no correction to undo; `reflectworld people history` lists them.")
    else:
        rows = fetch(connection, "select id, undone_at from correction where user = ? and id = ?", (user, number))
    if not rows:
        which = public_id(Kind.CORRECTION, number or 0)
        raise NotFoundError(which, f"There is no correction {which}; `reflectworld people history` lists them.")
    found, undone = rows[0]
    if undone is not None:
        raise UserError(f"{public_id(Kind.CORRECTION, found)} was undone already.")
    rest = attribution.active(connection, user, without=found)
    folding, last = _folded(connection, user, rest, rules, set())
    return Prepared(_generation(connection), None, found, frozenset(), folding, last)


def prepare_galleries(connection: apsw.Connection, user: str, rules: Derivation) -> Prepared:
    """Make all galleries again from their samples, under their present owners."""
    folding = rules.galleries(samples.voices(connection, user))
    last = samples.feed(connection, user, folding)
    return Prepared(_generation(connection), None, None, frozenset(), folding, last)


def carry_out(memory: apsw.Connection, user: str, prepared: Prepared, rules: Derivation) -> int | None:
    """Write what was prepared, inside a transaction.

    Returns:
        The id of the correction; 0 if there is none; None: another one was made meanwhile, so that this has to be prepared
        again.
    """
    if _generation(memory) != prepared.generation:
        return None
    before = attribution.survivors(attribution.active(memory, user))
    number = 0
    made = {NEW: NEW}
    if prepared.draft is not None:
        number, other = _insert(memory, user, prepared.draft, prepared.items)
        made[NEW] = other
    elif prepared.undone is not None:
        number = prepared.undone
        memory.execute("update correction set undone_at = ? where id = ?", (utc_now(), number))
    corrections = attribution.active(memory, user)
    final = attribution.survivors(corrections)
    moves = attribution.planned(memory, user, corrections)
    attribution.apply(memory, moves)
    if prepared.folding is not None:
        samples.feed(memory, user, prepared.folding, after=prepared.last)
        slots = (_under(slot, made.get(slot.entity, slot.entity)) for slot in prepared.folding.slots())
        samples.write_galleries(memory, user, slots)
        memory.execute("update identity_state set galleries_due = 0")
    if number:
        _follow(memory, user, number, corrections, (before, final), moves, rules)
    memory.execute("update identity_state set generation = generation + 1")
    return number


def reindex_some(memory: apsw.Connection) -> bool:
    """Index the words of some traces again that say something else since a correction, inside a transaction.

    Returns:
        Whether there were any.
    """
    traces = fetch(memory, "select trace from reindex order by trace limit ?", (_AT_ONCE,))
    for (trace,) in traces:
        index.reindex_trace(memory, trace)
    memory.executemany("delete from reindex where trace = ?", traces)
    return bool(traces)


def understood(
    connection: apsw.Connection, user: str, draft: CorrectionDraft
) -> tuple[CorrectionDraft, set[attribution.Item]]:
    """A correction with its parts in order, and the rows that it names.

    Of two who become one, a person is kept rather than one who is known by name only, and either rather than a voice.

    Raises:
        NotFoundError: somebody is not known.
        UserError: it makes no sense.
    """
    people = [draft.person] if draft.other is None else [draft.person, draft.other]
    known = kinds(connection, user, people)
    for who in people:
        if who not in known:
            name = public_id(Kind.ENTITY, who)
            raise NotFoundError(
                name, f"The memory knows nobody with the id {name}; `reflectworld people list` lists everybody."
            )
    if draft.person == draft.other:
        raise UserError("Both are the same already; name two different people.")
    if draft.kind is CorrectionKind.MERGE:
        if draft.other is None:
            raise UserError("Say who the other one is.")
        if _RANK[known[draft.other]] > _RANK[known[draft.person]]:
            draft = replace(draft, person=draft.other, other=draft.person)
        return draft, set()
    if draft.kind is CorrectionKind.NAME:
        raise UserError("A name is given with `reflectworld people name`.")
    title = "coalesce(name, iif(kind = 'voice', 'voice ', 'person ') || number)"
    ((called,),) = fetch(connection, f"select {title} from entity where id = ?", (draft.person,))  # noqa: S608 -- constant
    return draft, rows_of(connection, draft.person, called, draft.sightings)


def kinds(connection: apsw.Connection, user: str, people: Iterable[int]) -> dict[int, EntityKind]:
    """What those are who are known and part of nobody else."""
    sql = (
        "select id, kind from entity where user = ? and merged_into is null and id in (select value from json_each(?))"
    )
    return {who: EntityKind(kind) for who, kind in fetch(connection, sql, (user, json.dumps(list(people))))}


def _folded(
    connection: apsw.Connection,
    user: str,
    corrections: Sequence[Correction],
    rules: Derivation,
    heard: set[int],
) -> tuple[samples.Folding | None, int]:
    owners = {
        move.item[1]: move.now
        for move in attribution.planned(connection, user, corrections)
        if move.item[0] == "sample"
    }
    ((due,),) = fetch(connection, "select galleries_due from identity_state")
    if not owners and not due:
        return None, 0
    folding = rules.galleries({*samples.voices(connection, user), *heard})
    return folding, samples.feed(connection, user, folding, owners=owners)


def _insert(
    memory: apsw.Connection, user: str, draft: CorrectionDraft, items: Collection[attribution.Item]
) -> tuple[int, int]:
    other, created = draft.other, draft.other is None
    if other is None:
        ((kind, first, last),) = fetch(
            memory, "select kind, first_seen, last_seen from entity where id = ?", (draft.person,)
        )
        number = next_number(memory, user, EntityKind(kind))
        values = {"user": user, "kind": kind, "number": number, "first_seen": first, "last_seen": last}
        other = insert(memory, "entity", values)
    correction = note(memory, user, draft.kind, draft.person, other=other, created=created)
    memory.executemany(
        "insert into correction_item values(?, ?, ?)", [(correction, kind, item) for kind, item in sorted(items)]
    )
    if created:
        memory.execute("insert into provenance values('entity', ?, 'correction', ?)", (other, correction))
    return correction, other


def note(
    memory: apsw.Connection,
    user: str,
    kind: CorrectionKind,
    person: int,
    *,
    other: int | None = None,
    created: bool = False,
    name: str | None = None,
    source: NameSource = NameSource.NONE,
) -> int:
    """Keep that the owner decided something.

    Returns:
        The id of the correction.
    """
    ((claims,),) = fetch(memory, "select coalesce(max(id), 0) from name_claim")
    values = {
        "user": user,
        "kind": kind,
        "person": person,
        "other": other,
        "created": created,
        "name": name,
        "name_source": source,
        "at": utc_now(),
        "claims": claims,
    }
    return insert(memory, "correction", values)


def _follow(
    memory: apsw.Connection,
    user: str,
    number: int,
    corrections: Sequence[Correction],
    merges: tuple[Mapping[int, int], Mapping[int, int]],
    moves: Sequence[Move],
    rules: Derivation,
) -> None:
    """Texts, search, times and names; and what the queue has to do."""
    before, final = merges
    ((person, other),) = fetch(memory, "select person, other from correction where id = ?", (number,))
    changed = {who for who in {*before, *final} if before.get(who) != final.get(who)}
    concerned = {person, *changed, *(final[who] for who in changed if who in final)}
    concerned |= {before[who] for who in changed if who in before} | ({other} - {None})
    concerned |= {who for move in moves for who in (move.before, move.now)}
    texts = {move.trace for move in moves if move.item[0] in ("observation", "utterance", "decision")}
    traces = {trace for trace in texts if trace is not None}
    if changed:
        traces |= attribution.mentioning(memory, user, {*changed, *(before[who] for who in changed if who in before)})
    speaking = {move.trace for move in moves if move.item[0] == "utterance"}
    for trace in sorted(traces):
        if attribution.rewrite(memory, trace, final) or trace in speaking:
            memory.execute("insert or ignore into reindex values(?)", (trace,))
            jobs.enqueue(memory, user, "embed", trace)
        jobs.enqueue(memory, user, "rederive-trace", trace)
    for entity in sorted(concerned):
        _refresh(memory, entity, corrections, final)
    people = {final.get(who, who) for who in concerned}
    for entity in sorted(people):
        renaming.derive(memory, entity, corrections, final, rules.believes)


def _refresh(memory: apsw.Connection, entity: int, corrections: Sequence[Correction], final: Mapping[int, int]) -> None:
    """Whether somebody is there, and from when to when they were seen or heard."""
    ((first, last),) = fetch(
        memory,
        "select min(start), max(end) from (select start, end from observation where entity = ?1"
        " union all select start, end from utterance where speaker = ?1)",
        (entity,),
    )
    into = final.get(entity)
    if into is None and first is None:
        into = _gone(memory, entity, corrections, final)
    memory.execute(
        "update entity set merged_into = ?, first_seen = coalesce(?, first_seen), last_seen = coalesce(?, last_seen)"
        " where id = ?",
        (into, first, last, entity),
    )


def _gone(
    memory: apsw.Connection, entity: int, corrections: Sequence[Correction], final: Mapping[int, int]
) -> int | None:
    """Where somebody went of whom nothing is left: themselves, when there is nobody to lead to; None: they stay."""
    made = fetch(memory, "select id, person from correction where other = ? and created", (entity,))
    if made and not any(one.id == made[0][0] for one in corrections):
        person = int(made[0][1])
        return final.get(person, person)
    told = any(one.kind is CorrectionKind.NAME and one.person == entity for one in corrections)
    moved = fetch(memory, "select 1 from moved where origin = ? limit 1", (entity,))
    return entity if (moved or made) and not told else None


def _generation(connection: apsw.Connection) -> int:
    ((generation,),) = fetch(connection, "select generation from identity_state")
    return int(generation)


def _under(slot: DerivedSlot, entity: int) -> DerivedSlot:
    return slot if slot.entity == entity else replace(slot, entity=entity)
