"""Putting a question another way, from the question and what the memory's own words are; nothing of earlier questions is used.

This is online query reflection (RRM, Fan et al. 2026) without a language model: a word that occurs nowhere is taken for a
misspelling of one that does; people need not take part but may be spoken of; a time that holds nothing is given up. What was
changed is said in the answer.
"""

from __future__ import annotations

import difflib
import re
import string
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wordfreq import zipf_frequency

from edge.recall.answer.phrases import listed
from edge.recall.question.understand import Question
from edge.recall.question.when import When
from edge.recall.reflection.shape import forms

Understand = Callable[[str], Question]
Occurs = Callable[[str], bool]

_SHORTEST: Final = 4  # letters: shorter words have too many neighbours
_NAMED: Final = 0.8  # likeness of a misspelled name (difflib's ratio)
_TRIED: Final = 12  # neighbours of a word that are looked up, the commonest first
_LETTERS: Final = string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Repair:
    """A question put another way."""

    question: Question
    said: str  # what was changed, as the answer says it; empty: nothing worth saying


def reworded(
    question: Question, unknown: Sequence[str], occurs: Occurs, names: Iterable[str], understand: Understand
) -> Repair | None:
    """With words that occur, in the place of those that do not; None: of none of them there is one that does.

    Args:
        question: as asked.
        unknown: its words that occur nowhere.
        occurs: whether a word occurs; a look-up in the index.
        names: of people who are known.
        understand: reads a question.
    """
    text = question.text
    changed = []
    known = sorted({part for name in names for part in name.split()})
    for word in unknown:
        other = _nearest_name(word, known) or _other_form(word, occurs) or _neighbour(word, occurs)
        if other is None:
            continue
        text = re.sub(rf"\b{re.escape(word)}\b", other, text)
        if other.lower() not in forms(word):
            changed.append(f"“{other}” for “{word}”")
    if text == question.text:
        return None
    return Repair(understand(text), f"I took {', '.join(changed)}." if changed else "")


def anyone(question: Question, titles: Sequence[str]) -> Repair | None:
    """The people may be spoken of by others; None: the question names nobody.

    Args:
        question: as asked.
        titles: of its people.
    """
    if not question.people:
        return None
    words = tuple(dict.fromkeys((*question.words, *(part for title in titles for part in title.split()))))
    return Repair(
        replace(question, people=(), people_words=(), words=words), f"Nothing like that of {listed(titles)}, but:"
    )


def widened(question: Question, span: str) -> Repair | None:
    """At any time; None: the question names no time that binds.

    Args:
        question: as asked.
        span: the time that it names, in words.
    """
    when = question.when
    if not when.binds:
        return None
    free = When(hours=when.hours, order=when.order, rest=when.rest)
    return Repair(replace(question, when=free), f"Nothing of that is remembered {span}, but:")


def _nearest_name(word: str, names: Sequence[str]) -> str | None:
    if not word[:1].isupper():
        return None
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), list(folded), n=1, cutoff=_NAMED)
    return folded[near[0]] if near else None


def _other_form(word: str, occurs: Occurs) -> str | None:
    """Another form of a verb that the index cannot know: “drank” for “drinking”."""
    return next((form for form in forms(word) if form != word.lower() and occurs(form)), None)


def _neighbour(word: str, occurs: Occurs) -> str | None:
    """The commonest English word one slip away (Damerau 1964: a letter more, less, other, or two exchanged) that occurs."""
    lower = word.lower()
    if len(lower) < _SHORTEST or not lower.isascii() or not lower.isalpha():
        return None
    splits = [(lower[:place], lower[place:]) for place in range(len(lower) + 1)]
    slips = {
        *(left + right[1:] for left, right in splits if right),
        *(left + right[1] + right[0] + right[2:] for left, right in splits if len(right) > 1),
        *(left + letter + right[1:] for left, right in splits if right for letter in _LETTERS),
        *(left + letter + right for left, right in splits for letter in _LETTERS),
    } - {lower}
    common = {slip: float(zipf_frequency(slip, "en")) for slip in slips if len(slip) >= _SHORTEST - 1}
    own = float(zipf_frequency(lower, "en"))
    # A word that English has is a slip only of one that is ten times as common.
    usual = sorted((slip for slip, how in common.items() if how > max(own + 1.0, 1.0)), key=lambda slip: -common[slip])
    return next((slip for slip in usual[:_TRIED] if occurs(slip)), None)
