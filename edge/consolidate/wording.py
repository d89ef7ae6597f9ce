"""Whether what a language model wrote may stand in the memory. Pure.

Invariants of a sentence that may:

* It mentions only people whom its ground mentions, and has no braces beside these mentions.
* It has no number, no capitalised word inside it, and no address that its ground has not.
* At least half of what it tells (`extract.terms`) is told by its ground: a paraphrase, not a story.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from edge.identity import is_given_name
from edge.memory.tiers.timeline.extract import Sentence, bare, extract, length, split, terms
from edge.types.records import mention, mentioned, render

SUPPORT: Final = 0.5  # share of a sentence's words that its ground has to have
ENOUGH: Final = 0.5  # share of the people and of the words that a summary has to keep, or it is no better one
_PREFIX: Final = 5  # letters in which two forms of one word agree
_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"://|www\.|@")
_AROUND: Final = ".,;:!?“”\"'()"
_LOOSE: Final = " ,;:-–"  # that may be left at the end of a sentence
_ENDS: Final = ".!?…”\"'’)"
_LONGEST: Final = 60  # words of a sentence
_BEGINS: Final = ".!?…:;“”\"'‘’(\n"  # a word after one of these may have a capital for it


@dataclass(frozen=True, slots=True)
class Ground:
    """What sentences are held to."""

    people: frozenset[int]
    stems: frozenset[str]
    words: frozenset[str]  # all of them, in lower case
    numbers: frozenset[str]
    text: str  # in lower case

    @classmethod
    def of(cls, texts: Iterable[str], people: Iterable[int] = ()) -> Ground:
        """From the texts that something is made from.

        Args:
            texts: with mentions.
            people: who may be mentioned besides those.
        """
        known = list(texts)
        together = "\n".join(render(text, lambda _: "") for text in known)
        return cls(
            frozenset(people).union(*(mentioned(text) for text in known)),
            frozenset(_stem(term) for text in known for term in terms(text)),
            frozenset(word.lower() for word in _WORD.findall(together)),
            frozenset(_NUMBER.findall(together)),
            together.lower(),
        )

    def objection(self, sentence: str) -> str | None:
        """Which rule a sentence breaks, in a word; None: none."""
        plain = render(sentence, lambda _: "X")
        if "{" in plain or "}" in plain:
            return "braces"
        if not set(mentioned(sentence)) <= self.people:
            return "unknown_person"
        if not set(_NUMBER.findall(plain)) <= self.numbers:
            return "unknown_number"
        if not _names(plain) <= self.words:
            return "unknown_name"
        if any(one.strip(_AROUND) not in self.text for one in plain.lower().split() if _ADDRESS.search(one)):
            return "address"
        told = terms(render(sentence, lambda _: ""))
        if sum(_stem(term) in self.stems for term in told) < SUPPORT * len(told):
            return "unsupported"
        return None


def tidy(text: str) -> str:
    """A text of a model in one line, without what cannot be printed, its mentions without anchors."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    return bare(" ".join(printable.split()))


def unnamed(text: str, names: Mapping[int, str]) -> str:
    """A text with names of people as mentions, so that it follows their names and corrections. What is quoted stays.

    Args:
        text: as a model wrote it.
        names: of the people who may be meant; one that two of them have means neither.
    """
    bearers = Counter(names.values())
    owners = {name: who for who, name in names.items() if name and bearers[name] == 1}
    if not owners:
        return text
    longest_first = "|".join(re.escape(name) for name in sorted(owners, key=len, reverse=True))
    pattern = re.compile(rf"(“[^”]*”|\"[^\"]*\")|(?<![^\W_])({longest_first})(?![^\W_])")
    return pattern.sub(lambda found: found[1] or mention(owners[found[2]]), text)


def acceptable(
    sentences: Sequence[str], texts: Sequence[str], words: int, names: Mapping[int, str] | None = None
) -> tuple[list[str], Counter[str]]:
    """The sentences that may stand in the memory.

    Args:
        sentences: as a model wrote them; several in one are parted.
        texts: what they were made from.
        words: at most so many in all; what comes after is left out.
        names: of people whom the texts mention.

    Returns:
        The sentences, and how many were dropped for which rule. None are left when together they tell too little: fewer
        than half of the people, or less than half of what would be chosen from the texts themselves.
    """
    ground = Ground.of(texts)
    kept: list[str] = []
    dropped: Counter[str] = Counter()
    room = words
    parts = (part for one in sentences for part in split(unnamed(tidy(one), names or {})))
    for sentence in (part.rstrip(_LOOSE) for part in parts):
        if not sentence or sentence in kept:
            continue
        size = length(sentence)
        objection = "too_long" if size > min(room, _LONGEST) else ground.objection(sentence)
        if objection is not None:
            dropped[objection] += 1
            continue
        kept.append(sentence if sentence[-1] in _ENDS else f"{sentence}.")
        room -= size
    people = {who for sentence in kept for who in mentioned(sentence)}
    least = sum(length(text) for text in extract([Sentence(0.0, text) for text in texts], words)) * ENOUGH
    if kept and len(people) < ENOUGH * len(ground.people):
        dropped["people_missing"] += len(kept)
        kept = []
    elif kept and words - room < least:
        dropped["too_little"] += len(kept)
        kept = []
    return kept, dropped


def _names(text: str) -> set[str]:
    """Words with a capital that do not begin a sentence or a quotation, and given names wherever they stand, in lower case."""
    found = set()
    for word in _WORD.finditer(text):
        before = text[: word.start()].rstrip()
        begins = not before or before[-1] in _BEGINS or text[word.start() - 1] in _BEGINS
        if word[0][0].isupper() and len(word[0]) > 1 and (not begins or is_given_name(word[0])):
            found.add(word[0].lower())
    return found


def _stem(term: str) -> str:
    return term[:_PREFIX]
