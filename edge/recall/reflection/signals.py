"""What a search showed: found, or how it went wrong. Pure.

RRM (Fan et al. 2026) tells searches that bring nothing new, or nothing that matters, from others; here it is also told what of
the question is missing where: a word, the time, the people, or that the parts are there and not together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from edge.recall.answer.ground import HINTED, MATCHED
from edge.recall.search.searcher import Hit

_NEGATION: Final = re.compile(r"\b(?:not|never|nobody|nothing|none|no longer|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{3,}")
_SAME: Final = 0.8  # share of their words in which two statements agree that are about the same


class Signal(StrEnum):
    """What a search showed."""

    FITS = "fits"  # there is an answer
    UNSURE = "unsure"  # there is one, and more is wanted
    CONTRADICTION = "contradiction"  # what was found does not agree with itself, or with its picture
    UNKNOWN = "unknown"  # a word of the question occurs nowhere
    OUTSIDE = "outside"  # what is asked is there, but not at that time
    APART = "apart"  # what is asked is there, but not with these people
    PART = "part"  # some of it is there, nowhere all of it
    FAR = "far"  # nothing of it is near
    STALE = "stale"  # a further look brought nothing new


@dataclass(frozen=True, slots=True)
class Probe:
    """What a search without bounds says of a question that the first pass could not answer."""

    hits: tuple[Hit, ...]  # over all that is visible, in any span, with anybody
    unknown: tuple[str, ...]  # content words that occur nowhere
    content: tuple[str, ...]  # all content words
    with_people: tuple[bool, ...]  # of each hit, whether all the people who are named are in it
    said: tuple[float, ...]  # of each hit, the share of the content words that it holds, by weight

    @property
    def signal(self) -> Signal:
        """What it shows."""
        if self.unknown:
            return Signal.UNKNOWN
        best = {(inside, there): 0.0 for inside in (True, False) for there in (True, False)}
        for hit, there, said in zip(self.hits, self.with_people, self.said, strict=True):
            best[hit.in_span, there] = max(said, best[hit.in_span, there])
        if best[True, False] >= MATCHED:
            return Signal.APART
        if max(best.values()) >= MATCHED and best[True, True] < MATCHED:
            return Signal.OUTSIDE
        return Signal.PART if max(best.values()) >= HINTED else Signal.FAR


def contradiction(texts: Sequence[str]) -> tuple[str, str] | None:
    """Two statements that say the same and deny it; None: there are none."""
    known = [(text, bool(_NEGATION.search(text)), _words(text)) for text in texts]
    for place, (text, denied, words) in enumerate(known):
        for other, other_denied, other_words in known[place + 1 :]:
            both = words & other_words
            if (
                denied is not other_denied
                and both
                and len(both) >= _SAME * min(len(words), len(other_words))
                and len(both) > 1
            ):
                return text, other
    return None


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(_NEGATION.sub(" ", text)))


def nothing_new(brought: Iterable[str], known: Iterable[str]) -> bool:
    """Whether a look brought only what was there before."""
    return not set(brought) - set(known)
