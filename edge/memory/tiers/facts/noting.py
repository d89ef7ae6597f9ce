"""What a language model notes about people: statements beside those that they made themselves, on the ground of moments."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import apsw

from edge.memory.database import fetch, insert
from edge.memory.tiers.facts.counts import latest, subject
from edge.memory.tiers.facts.runs import NOTED
from edge.memory.tiers.facts.said import Stance
from edge.memory.tiers.facts.tier import EVERY, MODEL, derive_said


@dataclass(frozen=True, slots=True)
class Material:
    """What has been seen of somebody since a model last went over them."""

    subject: int
    entity: int
    observations: int  # so far
    moments: tuple[tuple[int, float, str], ...]  # (trace, UTC POSIX seconds, text with mentions), in the order of time


@dataclass(frozen=True, slots=True)
class Noted:
    """One thing that a model says of somebody."""

    kind: str  # of the fact that it is about; empty: a new one
    value: str
    text: str  # the predicate in the model's words, with mentions; empty: it follows from kind and value
    holds: bool  # False: it does not hold any more


def unasked(memory: apsw.Connection, user: str, limit: int) -> list[int]:
    """The subjects that were observed often enough since a model last went over them, most often first.

    Args:
        memory: any connection.
        user: whose memory.
        limit: at most so many.
    """
    rows = fetch(
        memory,
        "select id from fact_subject where user = ?1 and entity is not null and observations - asked >= ?2"
        " order by observations - asked desc, id limit ?3",
        (user, EVERY, limit),
    )
    return [number for (number,) in rows]


def material(connection: apsw.Connection, number: int, most: int) -> Material | None:
    """What a model is shown of somebody; None: nobody, or too little is new.

    The present moment is no evidence yet (ReflectWorld-MM, Appendix C): the latest one is left out.

    Args:
        connection: any.
        number: of the subject.
        most: moments at most, the latest.
    """
    of = subject(connection, number)
    rows = fetch(connection, "select observations - asked from fact_subject where id = ?", (number,))
    if of is None or of.entity is None or rows[0][0] < EVERY:
        return None
    moments = latest(connection, of, min(rows[0][0], most) + 1)[1:]
    texts = fetch(
        connection,
        "select id, start, text from trace where id in (select value from json_each(?)) order by start, id",
        (json.dumps([trace for _, trace, _ in moments]),),
    )
    return Material(number, of.entity, of.observations, tuple(texts))


def note_down(memory: apsw.Connection, made_from: Material, noted: Iterable[Noted]) -> None:
    """Keep what a model says, in the transaction that takes its job out of the queue.

    Args:
        memory: the writer's connection.
        made_from: what the model was shown; all of it is the ground.
        noted: what it says.
    """
    memory.execute("update fact_subject set asked = ? where id = ?", (made_from.observations, made_from.subject))
    there = fetch(
        memory,
        "select id from trace where id in (select value from json_each(?)) order by id",
        (json.dumps([trace for trace, _, _ in made_from.moments]),),
    )
    said = list(noted)
    if not said or len(there) < len(made_from.moments) or subject(memory, made_from.subject) is None:
        return  # nothing to keep, or its ground went meanwhile
    for one in said:
        stance = Stance.IS if one.holds else Stance.NOT
        columns = {
            "subject": made_from.subject,
            "at": made_from.moments[-1][1],
            "kind": one.kind or NOTED,
            "value": one.value,
        }
        statement = insert(
            memory, "fact_statement", {**columns, "stance": stance.value, "text": one.text, "source": MODEL}
        )
        memory.executemany(
            "insert into provenance values('fact_statement', ?, 'trace', ?)", [(statement, trace) for (trace,) in there]
        )
    derive_said(memory, made_from.subject)
