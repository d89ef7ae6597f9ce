"""Plain English from parts: lists, people who are known or only counted, and what was said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from edge.types.evidence import Track
from edge.types.vocabulary import counted, number

PERSON = "person"


def clean(text: str) -> str:
    """A foreign text (words heard, a class name) without what could be taken for a mention, a line or a quotation."""
    text = re.sub(r"\{{2,}", "{", re.sub(r"\}{2,}", "}", text))
    text = "".join(" " if char.isspace() else char for char in text if char.isspace() or char.isprintable())
    return " ".join(text.replace("“", "‘").replace("”", "’").split())


def listed(parts: Sequence[str]) -> str:
    """The parts in one list, as in "a, b and c"; nothing of nothing."""
    if len(parts) < 2:
        return parts[0] if parts else ""
    # A part with commas of its own wants one before the "and", too.
    comma = "," if any(", " in part for part in parts[:-1]) else ""
    return f"{', '.join(parts[:-1])}{comma} and {parts[-1]}"


def sentence(text: str) -> str:
    """With a capital and a full stop, unless it ends with a sign of its own."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "…", "”")) else text + "."


def was(plural: bool) -> str:
    """The verb that agrees."""
    return "were" if plural else "was"


def most_at_once(tracks: Sequence[Track]) -> int:
    """How many of the tracks are in view at one moment, at most; at least one of some.

    Two tracks that follow one another may be one thing that was lost for a while, so this number is certain.
    """
    if not tracks:
        return 0
    return max(1, *(sum(other.start <= track.start <= other.end for other in tracks) for track in tracks))


def census(tracks: Sequence[Track]) -> dict[str, int]:
    """How many of each class there are for certain, in order of appearance."""
    by_label: dict[str, list[Track]] = {}
    for track in tracks:
        by_label.setdefault(track.label, []).append(track)
    return {label: most_at_once(group) for label, group in by_label.items()}


def enumerated(things: Mapping[str, int], most: int = 12) -> str:
    """The counts in words: "two cups and a laptop"; beyond `most` classes the rest is summed up."""
    parts = [counted(clean(label) or "thing", count) for label, count in things.items()]
    return listed(parts if len(parts) <= most else [*parts[:most], "other things"])


def are_many(things: Mapping[str, int]) -> bool:
    """Whether the verb after `enumerated(things)` is in the plural."""
    return sum(things.values()) > 1


def known_among(people: Sequence[Track], names: Mapping[str, str]) -> list[str]:
    """Mentions of those who are known, each once, in order of appearance."""
    return list(dict.fromkeys(names[track.anchor] for track in people if names.get(track.anchor)))


def others_among(people: Sequence[Track], names: Mapping[str, str]) -> int:
    """How many people there are for certain beside the known ones.

    A person who is not recognised may be a known one who is not visible as such just then, so at each moment only those
    count who are more than the known ones that are missing.
    """
    known = set(known_among(people, names))
    most = 0
    for track in people:
        present = [other for other in people if other.start <= track.start <= other.end]
        unknown = sum(1 for other in present if not names.get(other.anchor))
        missing = known - {names[other.anchor] for other in present if names.get(other.anchor)}
        most = max(most, unknown - len(missing))
    return most


def who(people: Sequence[Track], names: Mapping[str, str]) -> tuple[str, bool]:
    """People as in "{{3}} and one other person", "two people" or "a person"; and whether the verb is in the plural."""
    known, others = known_among(people, names), others_among(people, names)
    if not known:
        others = most_at_once(people)
        return counted(PERSON, others), others > 1
    parts = list(known)
    if others:
        parts.append(f"{number(others)} other {'person' if others == 1 else 'people'}")
    return listed(parts), len(known) + others > 1


def shorten(text: str, limit: int) -> str:
    """At most about `limit` characters, cut at the end of a sentence or else of a word, with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: max(limit - 1, 1)]
    ends = [match.end() for match in re.finditer(r"[.!?…](?=\s)", text[: limit + 1])]
    if ends and ends[-1] >= limit // 2:
        return f"{text[: ends[-1]]} …"
    space = head.rfind(" ")
    return f"{(head[:space] if space > 0 else head).rstrip(',;:–- ')}…"


def shares(lengths: Sequence[int], budget: int, least: int) -> list[int]:
    """Divide `budget` characters among texts: the short ones get all that they want, 0 for those that come too late.

    Args:
        lengths: characters of each text.
        budget: characters in all.
        least: no text is cut to less than this; the last ones go without instead.
    """
    taking = min(len(lengths), max(1, budget // least))
    granted = [0] * len(lengths)
    left, waiting = budget, sorted(range(taking), key=lambda index: lengths[index])
    while waiting:
        index = waiting.pop(0)
        granted[index] = min(lengths[index], left // (len(waiting) + 1))
        left -= granted[index]
    return granted


def quoted(speaker: str, text: str) -> str:
    """Who said what, as in `{{3}} said: “…”`."""
    return f"{speaker} said: “{text}”"
