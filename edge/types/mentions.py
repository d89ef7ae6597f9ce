"""Mentions: how a stored text refers to people, so that a name or a correction reaches what was written before. Pure.

`{{3}}` is entity 3. `{{3:a1+v1}}` is entity 3 as the local anchors a1 and v1 of the text's own trace saw and heard them:
when one of these turns out to be somebody else, only that part of the mention follows. In a draft the number may be
negative, for an entity that the same commit creates.

Everything that looks into a text for mentions is here; titles are put in on reading (`render`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

SOMEONE = "someone"  # for whom a text mentioned and who is nobody any more

_ANCHOR = r"[A-Za-z0-9_.-]+"
_MENTION = re.compile(rf"\{{\{{(-?\d+)(?::({_ANCHOR}(?:\+{_ANCHOR})*))?\}}\}}")
_LIST = re.compile(rf"{_MENTION.pattern}(?:(?:, and |, | and ){_MENTION.pattern})*")
_JOINT = re.compile(r", and |, | and ")
_NAMEABLE = re.compile(_ANCHOR)


def mention(key: int, *anchors: str) -> str:
    """How a stored text refers to an entity: the title is put in when the text is read, so that a correction reaches it.

    Args:
        key: the id; in a draft, it may be the negative key of an entity that the same commit creates.
        anchors: of the tracks and voices that are meant, in the trace that the text belongs to; their order says nothing.
    """
    known = "+".join(sorted({anchor for anchor in anchors if _NAMEABLE.fullmatch(anchor)}, key=_place))
    return f"{{{{{key}:{known}}}}}" if known else f"{{{{{key}}}}}"


def mentioned(text: str) -> tuple[int, ...]:
    """The entities that a stored text refers to, in order, each once."""
    return tuple(dict.fromkeys(int(key) for key, _ in _MENTION.findall(text)))


def render(text: str, title: Callable[[int], str]) -> str:
    """A stored text with each mention replaced by `title(entity)`, with a capital where a sentence begins with it."""

    def put(match: re.Match[str]) -> str:
        return _placed(text, match, title(int(match.group(1))))

    return _MENTION.sub(put, text)


def renumbered(text: str, number: Callable[[int], int]) -> str:
    """A text with the key of each mention replaced by `number(key)`."""

    def put(match: re.Match[str]) -> str:
        key = int(match[1])
        new = number(key)
        return match[0] if new == key else mention(new, *_anchors(match))

    return _MENTION.sub(put, text)


def anchored(text: str, anchors: Mapping[int, Sequence[str]]) -> str:
    """A text whose mentions say which anchors are meant.

    Args:
        text: its mentions that name anchors already stay as they are.
        anchors: entity → anchors of its tracks and voices.
    """

    def put(match: re.Match[str]) -> str:
        return match[0] if match[2] else mention(int(match[1]), *anchors.get(int(match[1]), ()))

    return _MENTION.sub(put, text)


def attributed(text: str, owner: Callable[[int, str | None], int | None]) -> str:
    """A text whose mentions follow who it turned out to be.

    A mention of several anchors that are different people now becomes a list of them; those of a list who are one person
    now are mentioned once.

    Args:
        text: as it was written first.
        owner: (entity, anchor or None) → who that is now; None: nobody who is remembered.
    """

    def put(match: re.Match[str]) -> str:
        found: dict[int | None, list[str]] = {}
        changed = False
        ones = list(_MENTION.finditer(match[0]))
        for one in ones:
            entity = int(one[1])
            for anchor in _anchors(one) or (None,):
                now = owner(entity, anchor)
                changed = changed or now != entity
                found.setdefault(now, []).extend([anchor] if anchor else [])
        if not changed:
            return match[0]
        if _in_order([_anchors(one) for one in ones]):  # and stays so
            found = dict(sorted(found.items(), key=lambda item: min(map(_place, item[1]))))
        parts = [SOMEONE if who is None else mention(who, *of) for who, of in found.items()]
        parts[0] = _placed(text, match, parts[0])
        return _listed(parts, _JOINT.findall(match[0]))

    return _LIST.sub(put, text)


def _anchors(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(match[2].split("+")) if match[2] else ()


def _place(anchor: str) -> tuple[str, int, str]:
    """Where an anchor stands: a2 before a10, tracks before voices."""
    letters = anchor.rstrip("0123456789")
    digits = anchor[len(letters) :]
    return letters, int(digits[:18] or 0), digits


def _in_order(anchors: Sequence[Sequence[str]]) -> bool:
    """Whether all mentions of a list name anchors, and come in the order of their first ones."""
    first = [min(map(_place, of)) for of in anchors if of]
    return len(first) == len(anchors) and first == sorted(first)


def _listed(parts: Sequence[str], joints: Sequence[str]) -> str:
    """The parts joined as the list was before: its last joint stays the last."""
    if len(parts) == 1:
        return parts[0]
    return ", ".join(parts[:-1]) + (joints[-1] if joints else " and ") + parts[-1]


def _placed(text: str, match: re.Match[str], words: str) -> str:
    """With a capital where a sentence begins."""
    before = text[: match.start()].rstrip()
    begins = not before or before[-1] in ".!?" or before[-2:] in {".”", "!”", "?”"}
    return words[:1].upper() + words[1:] if begins else words
