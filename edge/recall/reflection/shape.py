"""The shape of a question: how it is put, without whom or what it is about. Pure.

A shape is a set of words of a closed list. Names, things, places and topics leave only the trace that there is one, so that
what is learned about shapes can be kept and used without holding anything of anybody's life. `is_shape` tells whether a word
belongs to the list: what does not is never read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from edge.recall.question.understand import Question, QuestionKind
from edge.recall.question.when import Order
from edge.types.stop_words import ASKING_WORDS, FUNCTION_WORDS

# Verbs of everyday life that say what kind of thing is asked, never about whom: made by hand, from no set of questions.
_VERBS: Final = frozenset(
    """
    ask bring buy call carry close come cook cut do drink drive eat find finish get give go hand have hear help hold keep
    know leave like live look lose make meet move need open own pay play prefer put read say see sell send show sing sit sleep
    speak stand start stay stop take talk teach tell think throw turn use visit wait walk want wash watch wear win work write
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
_IRREGULAR: Final = {
    "asked": "ask", "ate": "eat", "bought": "buy", "brought": "bring", "came": "come", "did": "do", "does": "do", "done": "do",
    "drank": "drink", "driven": "drive", "drove": "drive", "eaten": "eat", "found": "find", "gave": "give", "given": "give",
    "gone": "go", "got": "get", "had": "have", "has": "have", "heard": "hear", "held": "hold", "kept": "keep", "knew": "know",
    "known": "know", "left": "leave", "lost": "lose", "made": "make", "met": "meet", "paid": "pay", "said": "say", "sang": "sing",
    "sat": "sit", "saw": "see", "seen": "see", "sent": "send", "shown": "show", "slept": "sleep", "sold": "sell",
    "spoke": "speak", "spoken": "speak", "stood": "stand", "taken": "take", "taught": "teach", "thought": "think",
    "threw": "throw", "told": "tell", "took": "take", "went": "go", "won": "win", "wore": "wear", "worn": "wear",
    "written": "write", "wrote": "write",
}  # fmt: skip
_WORD = re.compile(r"[a-z]+")
_OPENING: Final = 2  # words at the beginning that are kept, if all are function words
_FIXED: Final = frozenset(
    {
        *(f"kind:{kind}" for kind in QuestionKind),
        *(f"people:{count}" for count in ("0", "1", "2")),
        *(f"time:{kind}" for kind in ("none", "span", "hours")),
        *(f"order:{order}" for order in ("first", "last")),
        *("thing", "me", "topic", "stranger"),
    }
)


def shape_of(question: Question) -> frozenset[str]:
    """The shape of a question."""
    when = question.when
    time = "span" if when.binds else "hours" if when.hours is not None else "none"
    found = {f"kind:{question.kind}", f"people:{min(len(question.people), 2)}", f"time:{time}"}
    if when.order is not Order.NONE:
        found.add("order:first" if when.order is Order.FIRST else "order:last")
    for word, there in (
        ("thing", question.things),
        ("me", question.me),
        ("topic", question.topic),
        ("stranger", question.strangers),
    ):
        if there:
            found.add(word)
    words = _WORD.findall(question.text.lower())
    opening = words[:_OPENING]
    if len(opening) == _OPENING and all(word in FUNCTION_WORDS for word in opening):
        found.add(f"opens:{' '.join(opening)}")
    names = {part for word in question.people_words for part in _WORD.findall(word)}
    found |= {f"verb:{verb}" for word in words if word not in names and (verb := _verb(word))}
    return frozenset(found)


def is_shape(word: str) -> bool:
    """Whether a word is one of the closed list."""
    if word in _FIXED:
        return True
    kind, _, rest = word.partition(":")
    if kind == "verb":
        return rest in _VERBS
    parts = rest.split(" ")
    return kind == "opens" and len(parts) == _OPENING and all(part in FUNCTION_WORDS | ASKING_WORDS for part in parts)


def likeness(one: Iterable[str], other: Iterable[str]) -> float:
    """How alike two shapes are: the share of their words that both have (Jaccard), 0..1."""
    first, second = frozenset(one), frozenset(other)
    return len(first & second) / len(first | second) if first or second else 1.0


def forms(word: str) -> tuple[str, ...]:
    """The forms of a verb with irregular ones, with the verb itself; of another word, itself."""
    verb = _verb(word.lower())
    irregular = [form for form, of in _IRREGULAR.items() if of == verb]
    return (verb, *irregular) if irregular else (word.lower(),)


def _verb(word: str) -> str:
    """The verb of the list that a word is a form of; empty: of none."""
    if word in _IRREGULAR:
        return _IRREGULAR[word] if _IRREGULAR[word] in _VERBS else ""
    for stem in (
        word,
        word.removesuffix("s"),
        word.removesuffix("es"),
        word.removesuffix("ed"),
        word.removesuffix("d"),
    ):
        if stem in _VERBS:
            return stem
    if word.endswith("ing"):
        root = word.removesuffix("ing")
        for stem in (root, f"{root}e", root[:-1]):
            if stem in _VERBS:
                return stem
    return ""
