"""Which words are given names.

`given_names.txt` holds 21,526 given names of many countries, made by `python -m tools.given_names` from the 1990
census of the United States (public domain) and the name lists of Faker (MIT). Some of them are also plain words, and
speech recognition does not write capitals reliably, so two hand-made lists go with it: `plain_words.txt` are hardly
ever names and count as none; `word_names.txt` are often names and count with a capital.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

# Capitalised words that say what somebody is: "I'm Christian" is no introduction, "my name is Christian" is.
_DESCRIPTIONS = frozenset(["august", "christian", "early", "royal", "sunny", "young"])


@cache
def _words(name: str) -> frozenset[str]:
    text = (files("edge.identity") / name).read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))


def is_given_name(word: str) -> bool:
    """Whether a word, as it was written, is a given name: "Sam", "sam", "Rose", not "rose", not "Tired"."""
    if is_plain_word(word):
        return False
    lower = word.lower()
    parts = lower.split("-")
    if lower in _words("word_names.txt"):
        return word[:1].isupper() and not word.isupper()
    return all(part in _words("given_names.txt") for part in parts)


def is_plain_word(word: str) -> bool:
    """Whether a word is one that is hardly ever a name."""
    return word.lower() in _words("plain_words.txt")


def may_describe(word: str) -> bool:
    """Whether "I'm" and this word would say what somebody is rather than their name."""
    return word.lower() in _DESCRIPTIONS
