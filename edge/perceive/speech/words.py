"""Words as the recogniser gives them, and which of them are kept: a pure core.

An English recogniser invents words: on sounds that are no speech, in loops, and in fluent sentences for other
languages. Its own probabilities tell, once what it repeats is left out: whatever it has said once it is sure of when
it says it again. Measured as the mean natural logarithm of the probability of each token that is not such a repetition:
real English read aloud lies above -.33, short noisy commands above -.60; real speech played backwards below -.75,
synthetic speech in 14 other languages below -.79. English under noise as loud as half of it sinks to the same values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

CLEAR = -0.68  # mean log-probability a token below which words are not kept
_FOREIGN_WORDS = 5  # so many words that are not clear, in so much time, are another language; fewer are just unclear
_FOREIGN_S = 2.0
_BRIEF_WORDS = 2  # so few words are kept only when they are clearer:
_BRIEF_CLEAR = -0.5
_SLOW = 0.4  # words a second of voice; slower "speech" is none (measured: the slowest real speech has 1.2)
_SLOW_S = 2.0
_NOTHING = frozenset(
    {"you", "10", "ten"}
)  # what the recogniser says to silence, noise and hum, when that is all it says
_LOOP_WORDS = 12  # longest phrase that is looked for in loops
_STUCK_COPIES = 3  # so many copies of a phrase at the end of a transcript that was broken off
_ENDED_COPIES = 4  # of two words or more in one that ended by itself: people do say things three times


@dataclass(frozen=True, slots=True)
class Word:
    """A word with its punctuation."""

    text: str
    logprob: float  # natural logarithm of its probability: sum over its tokens
    tokens: int  # at least 1


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What the recogniser heard in one piece."""

    words: tuple[Word, ...]
    ended: bool  # it ended by itself; False: it was stopped in a loop or at the greatest length


class Verdict(StrEnum):
    """What words are worth."""

    KEPT = "kept"
    NOTHING = "nothing"  # no speech
    UNCLEAR = "unclear"  # speech, but the words are guesses
    FOREIGN = "foreign"  # speech in another language


@dataclass(frozen=True, slots=True)
class Judgement:
    """The words that are kept of a hypothesis, and what became of the others."""

    verdict: Verdict
    words: tuple[Word, ...]  # empty unless KEPT
    refused: int  # words thrown away


def mean_logprob(words: Sequence[Word]) -> float:
    """Mean log-probability a token; 0.0 without words."""
    tokens = sum(word.tokens for word in words)
    return sum(word.logprob for word in words) / tokens if tokens else 0.0


def confidence(words: Sequence[Word]) -> float:
    """Geometric mean of the tokens' probabilities, 0..1."""
    return math.exp(min(0.0, mean_logprob(words)))


def clarity(words: Sequence[Word]) -> float:
    """Mean log-probability a token of the words that do not stand after the same word as before; 0.0 without words."""
    plain = [_plain(word) for word in words]
    fresh: dict[tuple[str, str], Word] = {}
    for before, this, word in zip(["", *plain], plain, words, strict=False):
        fresh.setdefault((before, this), word)
    return mean_logprob(list(fresh.values()))


def judge(hypothesis: Hypothesis, voiced_s: float) -> Judgement:
    """Decide which words of a piece to believe.

    Args:
        hypothesis: of one piece.
        voiced_s: seconds of voice in the piece.
    """
    spoken = tuple(word for word in hypothesis.words if _plain(word))
    kept = without_loop(Hypothesis(spoken, hypothesis.ended))
    least = _BRIEF_CLEAR if len(kept) <= _BRIEF_WORDS else CLEAR
    if not spoken or (hypothesis.ended and _nothing(kept, voiced_s)):
        return Judgement(Verdict.NOTHING, (), len(spoken))
    if _nothing(kept, voiced_s) or clarity(kept) < least:
        foreign = voiced_s >= _FOREIGN_S and len(spoken) >= _FOREIGN_WORDS
        return Judgement(Verdict.FOREIGN if foreign else Verdict.UNCLEAR, (), len(spoken))
    return Judgement(Verdict.KEPT, kept, len(spoken) - len(kept))


def _nothing(words: Sequence[Word], voiced_s: float) -> bool:
    """Whether this is what the recogniser says when nobody speaks."""
    if not words or (len(words) == 1 and _plain(words[0]) in _NOTHING):
        return True
    return voiced_s >= _SLOW_S and len(words) < _SLOW * voiced_s


def without_loop(hypothesis: Hypothesis) -> tuple[Word, ...]:
    """The words before a phrase that repeats.

    Of a transcript that ended by itself one copy of the phrase is kept, of one that was broken off none.
    """
    words = hypothesis.words
    plain = [_plain(word) for word in words]
    copies = _ENDED_COPIES if hypothesis.ended else _STUCK_COPIES
    for begin in range(len(words)):
        for size in range(2 if hypothesis.ended else 1, _LOOP_WORDS + 1):
            if begin + size * copies > len(words):
                break
            phrase = plain[begin : begin + size]
            if all(plain[begin + size * k : begin + size * (k + 1)] == phrase for k in range(1, copies)):
                if not hypothesis.ended:
                    return words[:begin]
                end = begin + size
                while plain[end : end + size] == phrase:
                    end += size
                rest = without_loop(Hypothesis(words[end:], ended=True))
                return words[: begin + size] + rest
    return words


_LETTERS = re.compile(r"[^\w]+", re.UNICODE)


def _plain(word: Word) -> str:
    """Letters and digits only, lower case; empty for notes and punctuation."""
    return _LETTERS.sub("", word.text).lower()
