"""Which edits that a language model proposes to the facts about somebody are made. Pure.

Add, Update, Delete and None (ReflectWorld-MM, 3.4 and Appendix C). Invariants:

* An Update, a Delete and a None name a fact that is known and current; others are dropped.
* A protected fact is never updated nor deleted.
* Two different edits of one fact, or an Add of what is deleted, contradict each other: neither is made.
* What is known already is not added again, it is confirmed; nothing is added twice.
* A text is one short sentence about its subject that its ground supports (`wording.Ground`).
* Whatever is dropped is counted by why; the outcome does not depend on how the same edit was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import BaseModel, Field

from edge.consolidate.wording import Ground, tidy, unnamed
from edge.types.records import Kind, mentioned, parse_id, public_id, render

WORDS: Final = 30  # of a fact at most
ADDS: Final = 4  # of one consolidation at most: five observations do not tell more
_MARKS = re.compile(r"[\W_]+")


class Op(StrEnum):
    """What is done with a fact."""

    ADD = "add"
    UPDATE = "update"  # another text takes its place from now on
    DELETE = "delete"  # it does not hold any more
    CONFIRM = "confirm"  # it was seen to hold once more


class Edit(BaseModel):
    """One edit as a model proposes it."""

    op: Literal["add", "update", "delete", "none"]
    fact: Annotated[str, Field(max_length=20)] | None = None  # "f12"; null: of add
    text: Annotated[str, Field(max_length=600)] | None = None  # of add and update


class Edits(BaseModel):
    """What the model answers."""

    edits: Annotated[list[Edit], Field(max_length=32)]


@dataclass(frozen=True, slots=True)
class Known:
    """A fact that holds now."""

    id: int
    text: str  # with mentions
    protected: bool = False

    @property
    def item(self) -> str:
        """Its public id."""
        return public_id(Kind.FACT, self.id)


@dataclass(frozen=True, slots=True)
class Change:
    """An edit that is made."""

    op: Op
    fact: int | None  # None: of ADD
    text: str = ""  # of ADD and UPDATE, with mentions


def sift(
    edits: Iterable[Edit],
    known: Sequence[Known],
    subject: int,
    material: Iterable[str],
    names: Mapping[int, str] | None = None,
) -> tuple[list[Change], Counter[str]]:
    """The edits that are made.

    Args:
        edits: as a model proposes them.
        known: the facts about the subject that hold now.
        subject: the entity.
        material: all that the model was shown: texts with mentions.
        names: of the subject and of people whom the material mentions.

    Returns:
        The changes, of each fact at most one, and how many edits were dropped for which rule.
    """
    dropped: Counter[str] = Counter()
    facts = {one.id: one for one in known}
    keys = {_key(one.text): one.id for one in reversed(known)}
    ground = Ground.of([*material, *(one.text for one in known)], (subject,))
    about: dict[int, set[Change]] = {}
    adds: dict[str, Change] = {}
    for edit in edits:
        text = _sentence(unnamed(tidy(edit.text or ""), names or {}))
        change = _one(edit, text, facts, keys, subject, ground)
        if isinstance(change, str):
            dropped[change] += change != _NOTHING
        elif change.fact is not None:
            dropped["duplicate"] += change in about.get(change.fact, ())
            about.setdefault(change.fact, set()).add(change)
        else:
            dropped["duplicate"] += _key(change.text) in adds
            adds.setdefault(_key(change.text), change)
    made: list[Change] = []
    taken = set(keys)
    for fact in sorted(about):
        changes = _settled(about[fact])
        if len(changes) > 1:
            dropped["contradictory"] += len(changes)
            continue
        change = changes[0]
        if change.op is Op.UPDATE:
            if _key(change.text) in taken or _key(change.text) in adds:
                dropped["duplicate"] += 1
                continue
            taken.add(_key(change.text))
        made.append(change)
    made += list(adds.values())[:ADDS]
    dropped["too_many"] += max(0, len(adds) - ADDS)
    return made, +dropped


_NOTHING: Final = "nothing"


def _one(
    edit: Edit, text: str, facts: dict[int, Known], keys: dict[str, int], subject: int, ground: Ground
) -> Change | str:
    """What one edit comes to, or the rule that it breaks."""
    number = _number(edit.fact)
    if edit.op == "none":
        if edit.fact is None:
            return _NOTHING
        return Change(Op.CONFIRM, number) if number in facts else "unknown_fact"
    if edit.op != "add":
        if number is None or number not in facts:
            return "unknown_fact"
        if facts[number].protected:
            return "protected"
        if edit.op == "delete":
            return Change(Op.DELETE, number)
    objection = _objection(text, subject, ground)
    if objection is not None:
        return objection
    same = keys.get(_key(text))
    if edit.op == "add":
        return Change(Op.ADD, None, text) if same is None else Change(Op.CONFIRM, same)
    return Change(Op.CONFIRM, number) if same == number else Change(Op.UPDATE, number, text)


def _settled(changes: set[Change]) -> list[Change]:
    """Edits of one fact; that it holds goes without saying where it gets another text."""
    others = [one for one in changes if one.op is not Op.CONFIRM]
    if not others:
        return list(changes)
    deleted = any(one.op is Op.DELETE for one in others)
    return list(changes) if deleted and len(changes) > len(others) else others


def _objection(text: str, subject: int, ground: Ground) -> str | None:
    if not text:
        return "empty"
    if len(text.split()) > WORDS:
        return "too_long"
    if subject not in mentioned(text):
        return "no_subject"
    return ground.objection(text)


def _sentence(text: str) -> str:
    return text if not text or text[-1] in ".!?…" else f"{text}."


def _key(text: str) -> str:
    """The same for texts that say the same in the same words."""
    marked = render(text, lambda entity: f" entity{entity} ") if mentioned(text) else text
    return _MARKS.sub(" ", marked.casefold()).strip()


def _number(fact: str | None) -> int | None:
    """The number of "f12"; None: it is not the id of a fact."""
    try:
        kind, number = parse_id((fact or "").strip().strip("[]"))
    except ValueError:
        return None
    return number if kind is Kind.FACT else None
