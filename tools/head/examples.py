"""What the head learns from: inputs in which a question stands among other things, and questions with what answers them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tools.head.lexicon import Lexicon, one_of
from tools.head.lives import ask, life
from tools.head.talk import Corpora, household, talk, to_the_assistant

PLACES = ("before", "after", "around")


@dataclass(frozen=True, slots=True)
class Mixed:
    """An input and where its question is."""

    text: str
    span: tuple[int, int] | None  # words (split at white space) from, to (not included); None: there is no question


def mixed(random_: random.Random, lexicon: Lexicon, corpora: Corpora) -> Mixed:
    """An input: a question alone, among other text, or other text alone."""
    style = random_.random()
    question = a_question(random_, lexicon, corpora)
    if style < 0.18:
        return Mixed(*_worn(random_, question.split(), (0, len(question.split()))))
    size = len(question.split())
    if style < 0.32:
        words = other_text(random_, lexicon, corpora, random_.randint(3, 50))
        return Mixed(_worn(random_, words, (0, 0))[0], None)
    place = one_of(random_, PLACES)
    return surrounded(random_, lexicon, corpora, question, place, round(size * random_.uniform(1.0, 6.0)))


def surrounded(
    random_: random.Random,
    lexicon: Lexicon,
    corpora: Corpora,
    question: str,
    place: str,
    size: int,
    *,
    worn: bool = True,
) -> Mixed:
    """A question with so many words of other text before, after or around it; with `worn`, perhaps without signs."""
    before = {"before": size, "after": 0, "around": size // 2}[place]
    left = other_text(random_, lexicon, corpora, before, end=True) if before else []
    right = other_text(random_, lexicon, corpora, size - before) if size > before else []
    asked = question.split()
    span = (len(left), len(left) + len(asked))
    words = [*left, *asked, *right]
    return Mixed(*_worn(random_, words, span)) if worn else Mixed(" ".join(words), span)


def _worn(random_: random.Random, words: Sequence[str], span: tuple[int, int]) -> tuple[str, tuple[int, int]]:
    """As it was typed, or without signs and capitals, as a recogniser of speech or a hasty hand writes it."""
    if random_.random() < 0.55:
        return " ".join(words), span
    return unpunctuated(words, span, lower=random_.random() < 0.6)


def unpunctuated(words: Sequence[str], span: tuple[int, int], *, lower: bool = True) -> tuple[str, tuple[int, int]]:
    """Without the signs around words and, if wished, without capitals; words that were signs alone are left out."""
    bare = [re.sub(r"^[^\w]+|[^\w]+$", "", word) for word in words]
    start = sum(1 for word in bare[: span[0]] if word)
    end = start + sum(1 for word in bare[span[0] : span[1]] if word)
    text = " ".join(word for word in bare if word)
    return (text.lower() if lower else text), (start, end)


def other_text(
    random_: random.Random, lexicon: Lexicon, corpora: Corpora, size: int, *, end: bool = False
) -> list[str]:
    """So many words that ask nothing of the memory. With `end` they may stop at the end of a sentence."""
    words: list[str] = []
    source = random_.random()
    while len(words) < size:
        if source < 0.3:
            words += one_of(random_, corpora.packages).split()
        elif source < 0.9:
            words += talk(random_, lexicon, corpora, size).split()
        else:
            words += one_of(random_, life(random_, lexicon, 1).told).split()
    whole = random_.random() < 0.5
    if whole and end:  # whole sentences: the last ones
        cut = words[:size]
        while len(cut) > max(2, size // 2) and not cut[-1].endswith((".", "?", "!")):
            cut.pop()
        return cut
    at = random_.randint(0, len(words) - size) if random_.random() < 0.3 else 0
    return words[at : at + size]


def a_question(random_: random.Random, lexicon: Lexicon, corpora: Corpora) -> str:
    """A question to the memory, or one of knowledge, which is asked of it in the same way."""
    style = random_.random()
    if style < 0.06 and corpora.knowledge:
        return one_of(random_, corpora.knowledge)
    if style < 0.24:
        return natural(random_, corpora)[0]
    made = life(random_, lexicon, 1)
    return ask(random_, lexicon, made.events[0]).text


# -- questions about what people really said ------------------------------------------------------------------------------


def natural(random_: random.Random, corpora: Corpora) -> tuple[str, str]:
    """A question about a sentence of real talk in the past tense, and that sentence."""
    told = one_of(random_, corpora.told)
    who, past, base, rest = told.who, told.past, told.base, told.rest
    form = one_of(
        random_,
        (
            f"When did {who} {base} {rest}?", f"Where did {who} {base} {rest}?", f"Why did {who} {base} {rest}?",
            f"Did {who} {base} {rest}?", f"How did {who} {base} {rest}?", f"Who {past} {rest}?",
            f"Do you remember when {who} {past} {rest}?", f"Tell me when {who} {past} {rest}.",
            f"What did {who} {base} {' '.join(rest.split()[2:])}".strip() + "?", f"What happened when {who} {past} {rest}?",
            f"Who was with {'me' if who == 'I' else who} when {who} {past} {rest}?",
            f"What did {who} do after {who} {past} {rest}?", f"How long ago was it that {who} {past} {rest}?",
        ),
    )  # fmt: skip
    return form, told.line


# -- what an input wants ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """An input as it is heard, and what is to be done."""

    text: str
    kind: str
    speak: float
    search: float


def wish(random_: random.Random, lexicon: Lexicon, corpora: Corpora) -> Wish:
    """An input of any kind with its labels."""
    style = random_.random()
    if style < 0.42:
        if style < 0.09:
            return Wish(_said(random_, natural(random_, corpora)[0]), "question, real", 1.0, 1.0)
        asked = ask(random_, lexicon, life(random_, lexicon, 1).events[0])
        if asked.deictic:
            return Wish(_said(random_, asked.text), "pointing", 1.0, 1.0)
        return Wish(_said(random_, asked.text), "question", 1.0, 1.0)
    if style < 0.5:
        return Wish(_said(random_, to_the_assistant(random_, lexicon)), "to the assistant", 1.0, 0.0)
    if style < 0.54 and corpora.knowledge:
        return Wish(_said(random_, one_of(random_, corpora.knowledge)), "knowledge", 1.0, 0.0)
    if style < 0.74:
        return Wish(_said(random_, household(random_, lexicon)), "talk, made up", 0.0, 0.0)
    if style < 0.94:
        lines = one_of(random_, corpora.chat)
        at = random_.randrange(len(lines))
        return Wish(_said(random_, " ".join(lines[at : at + random_.randint(1, 2)])), "talk, real", 0.0, 0.0)
    words = one_of(random_, corpora.packages).split()
    at = random_.randint(0, max(0, len(words) - 6))
    return Wish(_said(random_, " ".join(words[at : at + random_.randint(6, 30)])), "package", 0.0, 0.0)


def _said(random_: random.Random, text: str) -> str:
    if random_.random() < 0.65:
        return text
    return unpunctuated(text.split(), (0, 0))[0] or text
