"""Extractive summaries: the sentences that tell most of a stretch of time, in its own words. Pure.

Sentences are chosen by budgeted maximum coverage (Lin & Bilmes 2011, "A class of submodular functions for document
summarization"): each term is worth its rarity in general English times how often the stretch comes back to it, and half as
much each time that it is told again; people are terms, too. What many sentences share is covered first (centrality), what
was told already adds little (novelty), and the gain is weighed by length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from edge.types.frequency import zipf
from edge.types.records import mention, mentioned, render

REPEATED: Final = 0.5  # what a term is worth when it is told once more, of what it was worth before
LENGTH_POWER: Final = 0.6  # gains are divided by words to this power: less than 1, or only the shortest are chosen
_SHORT: Final = 4  # words: shorter sentences are no better for it
_NOTHING: Final = 1e-9  # worth of a sentence that tells nothing
_PERSON: Final = 1.5  # what somebody who takes part is worth: as a rare word
_LONGEST: Final = 40  # words of a sentence; a longer one is cut
_LONG_WORD: Final = 15  # signs: what is longer counts as several words
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_BREAK = re.compile(r"(?:(?<=[.!?…])|(?<=[.!?…][”\"’]))\s+(?=[^\sa-z])")
_COMMON: Final = 6.0  # Zipf frequency from which a word tells nothing: "and", "there", "about"


@dataclass(frozen=True, slots=True)
class Sentence:
    """Something that may be told."""

    at: float  # UTC POSIX seconds
    text: str  # with mentions
    weight: float = 1.0  # how much it counts beside the others


def bare(text: str) -> str:
    """A text whose mentions name no anchors: outside its own trace they mean nothing."""
    return render(text, mention) if "{{" in text else text


def split(text: str) -> list[str]:
    """The sentences of a text; one that already stands in lines is split at these."""
    parts = text.split("\n") if "\n" in text else _BREAK.split(text)
    return [part.strip() for part in parts if part.strip()]


def length(text: str) -> int:
    """How many words a text has; a mention is one. Scripts without spaces count by their signs."""
    return max(len(text.split()), math.ceil(len(text) / _LONG_WORD))


def extract(candidates: Iterable[Sentence], words: int) -> tuple[str, ...]:
    """The sentences that tell most in so many words, in the order of time.

    Args:
        candidates: in the order of time; the same again is looked at once.
        words: at most so many in all.
    """
    first: dict[str, Sentence] = {}
    for one in candidates:
        text = _shortened(" ".join(one.text.split()))
        if text and text not in first:
            first[text] = Sentence(one.at, text, one.weight)
    pool = list(first.values())
    terms = [_terms(one.text) for one in pool]
    holders: dict[str, list[int]] = {}
    for place, of in enumerate(terms):
        for term in of:
            holders.setdefault(term, []).append(place)
    left = {term: _rarity(term) * math.log2(1 + len(places)) for term, places in holders.items()}
    worth = [sum(left[term] for term in of) for of in terms]
    sizes = [length(one.text) for one in pool]
    shares = [one.weight / max(size, _SHORT) ** LENGTH_POWER for one, size in zip(pool, sizes, strict=True)]
    open_ = list(range(len(pool)))
    chosen: list[int] = []
    room = words
    while open_ and room > 0:
        best = max(open_, key=lambda place: (worth[place] * shares[place], -place))
        if chosen and worth[best] <= _NOTHING:
            break
        chosen.append(best)
        room -= sizes[best]
        for term in terms[best]:
            told = left[term] * (1 - REPEATED)
            left[term] -= told
            for place in holders[term]:
                worth[place] -= told
        open_ = [place for place in open_ if place != best and sizes[place] <= room]
    return tuple(pool[place].text for place in sorted(chosen, key=lambda place: (pool[place].at, place)))


def spoken(speaker: int | None, name: str | None, words: str) -> str:
    """An utterance as a sentence."""
    who = mention(speaker) if speaker is not None else name or "Somebody"
    return f"{who}: “{words.strip()}”"


def is_spoken(sentence: str) -> bool:
    """Whether a sentence is an utterance, as `spoken` makes them."""
    return ": “" in sentence


def places_in(texts: Sequence[str]) -> frozenset[str]:
    """The kinds of places that texts speak of."""
    return frozenset(word for text in texts for word in _places(text))


# Rooms and places of everyday life, as people call them.
_PLACE_WORDS: Final = """
airport attic backyard balcony bank bar basement bathroom beach bedroom cafe cafeteria canteen classroom corridor courtyard
dining room driveway elevator entrance farm field forest garage garden gym hall hallway hospital hotel kitchen laboratory
library living room lobby market meeting room museum office park parking lot patio platform playground pool porch restaurant
river road roof room school shed shop sidewalk square stadium staircase stairs station store street studio supermarket terrace
theatre toilet workshop yard
"""
_TWO = ("dining room", "living room", "meeting room", "parking lot")
_PLACES: Final = frozenset(_TWO) | frozenset(_PLACE_WORDS.split()) - {"dining", "living", "meeting", "parking", "lot"}
_PLACE = re.compile(rf"\b({'|'.join(sorted(map(re.escape, _PLACES), key=len, reverse=True))})\b", re.IGNORECASE)


@lru_cache(maxsize=8192)
def _places(text: str) -> frozenset[str]:
    return frozenset(found.lower() for found in _PLACE.findall(text))


def terms(text: str) -> frozenset[str]:
    """What a text tells: its words that are not said everywhere, without plurals, in lower case; people are left out."""
    return frozenset(term for term in _terms(text) if not term.startswith("{"))


@lru_cache(maxsize=8192)
def _terms(text: str) -> tuple[str, ...]:
    people = [f"{{{who}}}" for who in mentioned(text)]
    plain = render(text, lambda _: "") if people else text
    words = (_stem(word.lower()) for word in _WORD.findall(plain))
    return tuple(dict.fromkeys([*people, *(word for word in words if _rarity(word) > 0)]))


@lru_cache(maxsize=65536)
def _rarity(term: str) -> float:
    """From 0 (told everywhere) to 1.5 (rare or unknown)."""
    if term.startswith("{"):
        return _PERSON
    frequency = zipf(term)
    return 0.0 if frequency >= _COMMON else min(1.5, (8.0 - frequency) / 4.0)


def _stem(word: str) -> str:
    """Without the ending of a plural: enough to see that two sentences tell of the same."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _shortened(text: str) -> str:
    if length(text) <= _LONGEST:
        return text
    return " ".join(text.split(" ")[:_LONGEST])[: _LONGEST * _LONG_WORD - 2] + " …"
