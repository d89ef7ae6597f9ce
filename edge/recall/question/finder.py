"""Which part of an input is the question: people talk before they ask, and recordings and pasted texts bring more along.

With the reflex head the part is found by a trained network, else by rules: the last sentence that is put like a question. What is
short is taken as it is, and so is what holds nothing like a question. Pure but for the head.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import log
from typing import Final

from edge.recall.question.head import Head

# Fewer words than this are not worth leaving out: “hey, could you”.
SPARE: Final = 5
# An input of so many words or fewer is a question by itself: it may have a sentence or a clause before it that it needs.
SHORT: Final = 20
# What stands around a question is left out only where it has so many times its words: less may well belong to it.
MOSTLY: Final = 2
# What the rules leave whole, which see less.
LONG: Final = 30
# So much likelier (natural logarithm) must a part be than the whole, or nothing is cut. Set on made-up questions that stand
# alone, of which at most one in a hundred may lose a word (`python -m tools.head.train`).
MARGIN: Final = 2.0

_SENTENCE = re.compile(
    r"[^.?!…\n]+(?:[.?!…]+(?=\s|$|[\"'”’)])[\"'”’)]*|[.?!…]+\S[^\s]*[^.?!…\n]*)*|[.?!…]+", re.MULTILINE
)
_OPENERS = (
    r"who(?:m|se)?|what|when|where|which|why|how|do|does|did|is|are|was|were|has|have|had|can|could|will|would|"
    r"in which|at what|tell me|show me|remind me wh\w+|find out"
)
_OPENS = re.compile(
    rf"^\W*(?:(?:and|so|but|okay|ok|hey|well|please|um|uh|now|then)\W+)*(?:{_OPENERS})\b", re.IGNORECASE
)
_WH = re.compile(r"\b(?:who(?:m|se)?|what|when|where|which|why|how)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heard:
    """An input and the question in it."""

    text: str  # the question
    cut: bool  # other text was left out
    asks: bool  # something in it is put like a question


def find_question(text: str, head: Head | None = None) -> Heard:
    """The question in an input.

    Args:
        text: any.
        head: finds it; None: rules do.

    Raises:
        InferenceError: the embedder of the head failed.
    """
    clean = " ".join(text.split())
    if head is None:
        return _by_rules(clean)
    span = head.find(clean)
    asks = span.nothing < 0.5
    kept = len(clean[span.start : span.end].split())
    spare = len(clean.split()) - kept
    if (
        spare < max(SPARE, MOSTLY * kept)
        or not asks
        or len(clean.split()) <= SHORT
        or log(span.probability) - log(span.whole + 1e-12) < MARGIN
    ):
        return Heard(clean, cut=False, asks=asks)
    return Heard(clean[span.start : span.end], cut=True, asks=True)


def _by_rules(clean: str) -> Heard:
    words = len(clean.split())
    sentences = [match.group().strip() for match in _SENTENCE.finditer(clean)]
    asking = [one for one in sentences if one.endswith("?") or _OPENS.match(one)]
    if not asking and len(sentences) == 1 and _WH.search(clean):
        asking = sentences  # without signs, a question may be anywhere in it
    if words <= LONG or not asking:
        return Heard(clean, cut=False, asks=bool(asking))
    last = asking[-1]
    if len(last.split()) > LONG and (openers := list(_WH.finditer(last))):
        last = last[openers[-1].start() :]  # from the last word that asks
    return Heard(last, cut=last != clean, asks=True)
