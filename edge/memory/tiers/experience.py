"""How retrieval succeeded or failed: which questions were asked, what was judged of their answers, and what follows for the next.

Two tables. `answer` keeps of each answer what the owner's judgement needs: the question, what was looked at and in vain, and
(in `provenance`) what it cites, so that it is forgotten with that. It is bounded, and keeps nothing of the answer itself.

`experience` keeps what was learned, in two banks as RRM has them (Fan et al. 2026): of a *shape* of question and a *signal* that
a search gave, which *move* brought what was needed and which did not. A shape is a set of words of a closed list
(`edge.recall.reflection.shape`): how a question is put, never whom or what it is about. So no experience can say anything of
anybody, and it steers what is searched next and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import apsw

from edge.memory.database import fetch, insert

EXPERIENCE_V1: Final = """
create table answer(
  id integer primary key autoincrement, user text not null, at real not null, question text not null, found integer not null,
  route text not null, verdict integer, judged real, learned integer not null default 0);
create index answer_user on answer(user, id);
create index answer_waiting on answer(user, judged) where verdict is not null and learned = 0;
create table experience(
  id integer primary key, user text not null, bank integer not null, signal text not null, move text not null,
  shape text not null, uses real not null, wins real not null, weight real not null, created real not null, used real not null);
create index experience_user on experience(user, signal);
"""

KEPT: Final = 1000  # answers of a user that are kept, the latest
_ANSWER: Final = "select id, at, question, found, route, verdict, learned from answer"


class Bank(IntEnum):
    """What an experience is of."""

    FAILURE = 0
    SUCCESS = 1


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """What is kept of an answer."""

    id: int
    at: float  # UTC POSIX seconds at which it was given
    question: str  # as asked
    found: bool  # whether something was answered
    route: Mapping[str, Any]  # its shape, and what was looked at: JSON values
    good: bool | None  # what the owner thinks of it; None: nothing was said
    learned: bool


@dataclass(frozen=True, slots=True)
class Experience:
    """One procedural record."""

    bank: Bank
    signal: str  # what the search showed before the move
    move: str  # what was done
    shape: frozenset[str]  # of the questions that it is of
    uses: float  # how often it was done
    wins: float  # how often it brought the answer
    weight: float  # what is left of it after decay, 0..1
    created: float  # UTC POSIX seconds
    used: float  # UTC POSIX seconds of the latest use


def create(connection: apsw.Connection) -> None:
    """Make the tables; part of a migration, inside its transaction."""
    connection.execute(EXPERIENCE_V1)


# -- answers ----------------------------------------------------------------------------------------------------------


def note_answer(
    memory: apsw.Connection,
    user: str,
    *,
    at: float,
    question: str,
    found: bool,
    route: Mapping[str, Any],
    cited: Iterable[tuple[str, int]],
    keep: int = KEPT,
) -> int:
    """Keep an answer; the oldest beyond `keep` go.

    Args:
        memory: the writer's connection.
        user: who asked.
        at: UTC POSIX seconds.
        question: as asked.
        found: whether something was answered.
        route: its shape and what was looked at, JSON values.
        cited: (table, id) of the rows that it rests on; with any of them it is forgotten.
        keep: so many are kept, at least one.

    Returns:
        Its id.
    """
    values = {"user": user, "at": at, "question": question, "found": int(found), "route": json.dumps(dict(route))}
    number = insert(memory, "answer", values)
    for kind, source in dict.fromkeys(cited):
        memory.execute("insert or ignore into provenance values('answer', ?, ?, ?)", (number, kind, source))
    old = fetch(memory, "select id from answer where user = ? order by id desc limit 50 offset ?", (user, max(keep, 1)))
    remove_answers(memory, [one for (one,) in old])
    return number


def remove_answers(memory: apsw.Connection, numbers: Iterable[int]) -> None:
    """Forget answers."""
    gone = json.dumps(sorted(numbers))
    memory.execute(
        "delete from provenance where item_kind = 'answer' and item in (select value from json_each(?))", (gone,)
    )
    memory.execute("delete from answer where id in (select value from json_each(?))", (gone,))


def answers_between(connection: apsw.Connection, user: str, start: float, end: float) -> list[int]:
    """The answers that were given in a span (UTC POSIX seconds)."""
    rows = fetch(connection, "select id from answer where user = ? and at >= ? and at < ?", (user, start, end))
    return [number for (number,) in rows]


def answer(connection: apsw.Connection, user: str, number: int) -> AnswerRecord | None:
    """One answer; None: there is none of this id, or not any more."""
    rows = fetch(connection, f"{_ANSWER} where user = ? and id = ?", (user, number))
    return _answer(rows[0]) if rows else None


def latest_answer(connection: apsw.Connection, user: str) -> AnswerRecord | None:
    """The last answer that was given; None: there is none."""
    rows = fetch(connection, f"{_ANSWER} where user = ? order by id desc limit 1", (user,))
    return _answer(rows[0]) if rows else None


def judge(memory: apsw.Connection, user: str, number: int, *, good: bool, at: float) -> bool:
    """Note what the owner thinks of an answer; one that was learned from already stays so.

    Returns:
        False: there is none of this id.
    """
    memory.execute("update answer set verdict = ?, judged = ? where user = ? and id = ?", (int(good), at, user, number))
    return memory.changes() > 0


def waiting(connection: apsw.Connection, user: str, limit: int) -> list[AnswerRecord]:
    """Judged answers that nothing was learned from yet, in the order of their judgement."""
    where = "where user = ? and verdict is not null and learned = 0 order by judged, id limit ?"
    return [_answer(row) for row in fetch(connection, f"{_ANSWER} {where}", (user, limit))]


def waiting_since(connection: apsw.Connection, user: str) -> tuple[int, float]:
    """How many judged answers wait to be learned from, and since when the first does (UTC POSIX seconds)."""
    sql = "select count(*), coalesce(min(judged), 0) from answer where user = ? and verdict is not null and learned = 0"
    ((count, since),) = fetch(connection, sql, (user,))
    return int(count), float(since)


def note_learned(memory: apsw.Connection, numbers: Iterable[int]) -> None:
    """Note that answers were learned from."""
    memory.execute(
        "update answer set learned = 1 where id in (select value from json_each(?))", (json.dumps(sorted(numbers)),)
    )


# -- experience -------------------------------------------------------------------------------------------------------


def experiences(connection: apsw.Connection, user: str, signal: str | None = None) -> list[Experience]:
    """What was learned, in a fixed order; of one signal, or all."""
    sql = (
        "select bank, signal, move, shape, uses, wins, weight, created, used from experience"
        " where user = ?1 and (?2 is null or signal = ?2) order by id"
    )
    found = []
    for bank, of, move, shape, uses, wins, weight, created, used in fetch(connection, sql, (user, signal)):
        words = frozenset(word for word in json.loads(shape) if isinstance(word, str))
        found.append(Experience(Bank(bank), of, move, words, uses, wins, weight, created, used))
    return found


def replace_experiences(memory: apsw.Connection, user: str, learned: Sequence[Experience]) -> None:
    """Keep exactly these."""
    memory.execute("delete from experience where user = ?", (user,))
    for one in learned:
        values = {
            "user": user,
            "bank": int(one.bank),
            "signal": one.signal,
            "move": one.move,
            "shape": json.dumps(sorted(one.shape)),
            "uses": one.uses,
            "wins": one.wins,
            "weight": one.weight,
            "created": one.created,
            "used": one.used,
        }
        insert(memory, "experience", values)


def _answer(row: tuple[Any, ...]) -> AnswerRecord:
    number, at, question, found, route, verdict, learned = row
    good = None if verdict is None else bool(verdict)
    return AnswerRecord(number, at, question, bool(found), json.loads(route), good, bool(learned))
