"""Names: who may change them, and how they are compared.

Every change is kept in `name_history`, so that it can be explained and undone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

import apsw

from edge.errors import UserError
from edge.memory.database import fetch, insert
from edge.types.records import NameSource

AUTHORITY: Final[Mapping[NameSource, int]] = {source: rank for rank, source in enumerate(NameSource)}
NAME_CHARS: Final = 100

_NUMBERED = re.compile(r"(person|voice)\s*#?(\d{1,15})")


def change(
    memory: apsw.Connection, entity: int, name: str | None, source: NameSource, *, at: float, claim: int | None
) -> bool:
    """Give an entity another name, unless the one it has is of a higher authority.

    Args:
        memory: the writer's connection, inside a transaction.
        entity: its id.
        name: None: it loses its name.
        source: on whose authority.
        at: UTC POSIX seconds at which this became known.
        claim: the name claim behind it; None: the user, or the description that created the entity.

    Returns:
        Whether the name was changed.
    """
    ((old, old_source),) = fetch(memory, "select name, name_source from entity where id = ?", (entity,))
    if AUTHORITY[source] < AUTHORITY[NameSource(old_source)] and source is not NameSource.NONE:
        return False
    if (name, source) == (old, old_source):
        return False
    memory.execute("update entity set name = ?, name_source = ? where id = ?", (name, source, entity))
    values = {
        "entity": entity,
        "old_name": old,
        "old_source": old_source,
        "new_name": name,
        "new_source": source,
        "at": at,
        "claim": claim,
    }
    insert(memory, "name_history", values)
    return True


def checked(name: str) -> str:
    """A name that a user gave, with its white space in order.

    Raises:
        UserError: it is empty, too long, not text, or would be mistaken for something else.
    """
    tidy = " ".join(name.split())
    if not tidy:
        raise UserError("A name needs at least one letter; give one, or take the name away with `--clear`.")
    if len(tidy) > NAME_CHARS:
        raise UserError(f"A name may have {NAME_CHARS} characters at most; this one has {len(tidy)}.")
    if any(unicodedata.category(sign) in ("Cc", "Cs", "Co", "Cn") for sign in tidy) or "{{" in tidy or "}}" in tidy:
        raise UserError("The name holds signs that cannot be shown; write it with letters.")
    if numbered(tidy) is not None:
        raise UserError(f"“{tidy}” is how a person without a name is called; choose another name.")
    return tidy


def folded(text: str) -> str:
    """A text for comparison: without case, accents and surplus white space."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return " ".join("".join(sign for sign in parts if not unicodedata.combining(sign)).casefold().split())


def numbered(text: str) -> tuple[str, int] | None:
    """The kind and the number in "person 3" or "voice 2"; None: something else."""
    match = _NUMBERED.fullmatch(folded(text))
    return (match.group(1), int(match.group(2))) if match else None
