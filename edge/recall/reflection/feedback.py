"""Keeping answers until they are judged, and learning from judgements in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import apsw

from edge.errors import NotFoundError
from edge.memory import Store
from edge.memory.tiers import experience
from edge.memory.tiers.experience import AnswerRecord
from edge.recall.records import Answer
from edge.recall.reflection.bank import Batch, Trajectory, learn, trajectory
from edge.types.records import Kind, parse_id, public_id

# Tables by the letter of their ids; people are mentioned in what is cited beside them, and a node is derived.
_TABLES: Final = {
    Kind.TRACE: "trace",
    Kind.OBSERVATION: "observation",
    Kind.UTTERANCE: "utterance",
    Kind.KEY_FRAME: "key_frame",
    Kind.ENTITY: "entity",
}
WAIT_S: Final = 7 * 86_400.0  # a batch that does not fill up is learned from after this


def keep(store: Store, answer: Answer, at: float, limit: int) -> str:
    """Keep what is needed of an answer for its owner to judge it.

    Args:
        store: the memory, open for writing.
        answer: that was given.
        at: UTC POSIX seconds of now.
        limit: so many answers are kept, the latest.

    Returns:
        The id of the answer, such as q3.

    Raises:
        StoreError: it cannot be written.
    """
    cited = [(_TABLES[kind], number) for kind, number in map(parse_id, answer.cited) if kind in _TABLES]
    cited += [(_TABLES[kind], number) for kind, number in map(parse_id, answer.about) if kind in _TABLES]

    def work(memory: apsw.Connection) -> int:
        return experience.note_answer(
            memory,
            store.user,
            at=at,
            question=answer.question,
            found=answer.found,
            route=answer.route,
            cited=cited,
            keep=limit,
        )

    return public_id(Kind.ANSWER, store.transact(work))


def judge(store: Store, item: str | None, *, good: bool, at: float, batch: int) -> AnswerRecord:
    """Note what the owner thinks of an answer, and learn when enough are judged.

    Args:
        store: the memory, open for writing.
        item: id of the answer; None: the last one.
        good: whether it was right and of use.
        at: UTC POSIX seconds of now.
        batch: so many judged answers are learned from together.

    Returns:
        What is kept of it.

    Raises:
        NotFoundError: there is no such answer, or it is kept no longer.
        StoreError: it cannot be written.
    """
    number = None if item is None else _number(item)

    def work(memory: apsw.Connection) -> AnswerRecord:
        found = (
            experience.latest_answer(memory, store.user)
            if number is None
            else experience.answer(memory, store.user, number)
        )
        if found is None:
            raise _missing(item)
        experience.judge(memory, store.user, found.id, good=good, at=at)
        _learn_if_due(memory, store.user, at, batch)
        return experience.answer(memory, store.user, found.id) or found

    return store.transact(work)


def learn_now(memory: apsw.Connection, user: str, at: float, limit: int = 1000) -> int:
    """Learn from all answers that were judged and not learned from yet; inside a transaction.

    Returns:
        From how many.
    """
    judged = experience.waiting(memory, user, limit)
    learned = learn(experience.experiences(memory, user), Batch(_trajectories(judged), at))
    experience.replace_experiences(memory, user, learned)
    experience.note_learned(memory, [one.id for one in judged])
    return len(judged)


def _learn_if_due(memory: apsw.Connection, user: str, at: float, batch: int) -> None:
    count, since = experience.waiting_since(memory, user)
    if count >= batch or (count and at - since >= WAIT_S):
        learn_now(memory, user, at)


def _trajectories(judged: Sequence[AnswerRecord]) -> tuple[Trajectory, ...]:
    found = [trajectory(one.route, good=one.good) for one in judged if one.good is not None]
    return tuple(one for one in found if one is not None)


def _number(item: str) -> int:
    try:
        kind, number = parse_id(item)
    except ValueError:
        raise _missing(item) from None
    if kind is not Kind.ANSWER:
        raise _missing(item)
    return number


def _missing(item: str | None) -> NotFoundError:
    if item is None:
        return NotFoundError("answer", "No answer is kept yet; ask something with `reflectworld ask` first.")
    return NotFoundError(
        item, f"There is no answer “{item[:40]}”, or it is kept no longer; `ask` says the id of each, such as q3."
    )
