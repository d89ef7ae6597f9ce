"""What a question asks: kind, people, things, time. Pure: who is known and the present are arguments."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from enum import StrEnum

from edge.errors import QuestionError
from edge.recall.question.time_words import DAYS, MONTHS
from edge.recall.question.when import When, understand_when
from edge.types.frequency import zipf
from edge.types.stop_words import ASKING_WORDS, FUNCTION_WORDS
from edge.types.vocabulary import labels_for


class QuestionKind(StrEnum):
    """What form the answer has."""

    WHERE = "where"
    WHO = "who"
    WHEN = "when"
    SAID = "said"
    COUNT = "count"
    EXISTS = "exists"
    WHAT = "what"


@dataclass(frozen=True, slots=True)
class Known:
    """Somebody whom the memory knows."""

    entity: int
    title: str  # a name, or "person 3" / "voice 2"


@dataclass(frozen=True, slots=True)
class Thing:
    """A kind of object that a question names."""

    word: str  # as asked, "mugs"
    labels: tuple[str, ...]  # classes of the detector


@dataclass(frozen=True, slots=True)
class Question:
    """A question, understood."""

    text: str
    kind: QuestionKind
    when: When
    people: tuple[int, ...]  # entities, in the order of mention
    people_words: tuple[str, ...]  # lower-case words that name them
    me: bool  # speaks of the one who asks
    things: tuple[Thing, ...]
    words: tuple[str, ...]  # content words as written, names of people and time words left out
    strangers: tuple[str, ...]  # written like the name of a person, and nobody known is called so
    about: str  # the content of the question as a phrase, for the embedder
    topic: tuple[str, ...] = ()  # of "what did X say about TOPIC": its content words

    @property
    def labels(self) -> tuple[str, ...]:
        """All classes of the detector that are named."""
        return tuple(dict.fromkeys(label for thing in self.things for label in thing.labels))


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CALENDAR = frozenset((*DAYS, *MONTHS))
SAYING = r"say|said|says|saying|tell|told|talk(?:ed|ing)?|mention(?:ed)?|ask(?:ed)?|discuss(?:ed)?|speak|spoke"
# In this order: the first that fits decides.
_KINDS: tuple[tuple[QuestionKind, str], ...] = (
    (QuestionKind.COUNT, r"\bhow (?:many|often|frequently)\b|\bcount\b|\bnumber of\b"),
    (QuestionKind.SAID, rf"\bwhat\b.*\b(?:{SAYING}|hear|heard)\b"),
    (QuestionKind.WHERE, r"\b(?:where|in which (?:room|place)|on which)\b"),
    (QuestionKind.WHEN, r"\bwhen\b|\b(?:what|which) (?:time|day|date)\b|\bhow long ago\b"),
    (QuestionKind.WHO, r"\b(?:who|whom|whose|who['’]s)\b|\bwhich (?:person|people)\b"),
    (QuestionKind.WHAT, r"\b(?:what|which|why|how)\b"),
    (QuestionKind.EXISTS, r"^\W*(?:is|are|was|were|did|do|does|has|have|had|am|can|could)\b"),
)
_ABOUT = re.compile(r"\b(?:about|regarding|concerning|of)\s+(?P<topic>.+)$", re.IGNORECASE)
_BEFORE_A_NAME = re.compile(
    r"\b(?:a|an|the|my|your|his|her|our|their|any|some|this|that|in|at|to|into|from|near)\s+$", re.IGNORECASE
)


def understand(
    text: str, now: float, zone: tzinfo | None, known: Sequence[Known], *, max_chars: int = 4000
) -> Question:
    """Understand a question.

    Args:
        text: what was asked.
        now: UTC POSIX seconds at which it is asked.
        zone: whose calendar counts; None: the device's.
        known: everybody with a title.
        max_chars: longer questions are refused.

    Raises:
        QuestionError: it is empty, too long, or holds no word.
    """
    clean = " ".join("".join(sign if unicodedata.category(sign) not in {"Cc", "Cs"} else " " for sign in text).split())
    if len(text) > max_chars:
        raise QuestionError(f"The question has {len(text)} characters; ask with at most {max_chars}.")
    if not clean:
        raise QuestionError("The question is empty; ask something like “where did I last see my cup?”.")
    when = understand_when(clean, now, zone)
    kind = next((kind for kind, pattern in _KINDS if re.search(pattern, clean, re.IGNORECASE)), QuestionKind.WHAT)
    people, people_words = _people(when.rest, known)
    spoken = [(match.group(), match.start()) for match in _WORD.finditer(when.rest)]
    words = [_bare(word) for word, _ in spoken]
    content = [word for word in words if _is_content(word) and word.lower() not in people_words]
    topic = _ABOUT.search(when.rest) if kind is QuestionKind.SAID else None
    return Question(
        text=clean,
        kind=kind,
        when=when,
        people=people,
        people_words=people_words,
        me=any(word.lower() in {"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"} for word in words),
        things=_things([word.lower() for word in words]),
        words=tuple(dict.fromkeys(content)),
        strangers=_strangers(when.rest, spoken, people_words),
        about=" ".join(word for word in words if _is_content(word)),
        topic=tuple(word for word in map(_bare, _WORD.findall(topic["topic"])) if _is_content(word)) if topic else (),
    )


def rarity(word: str) -> float:
    """How much a word tells, by its rarity in general English: 0.3 (very common) to 1.5 (rare or unknown).

    Zipf frequency (van Heuven et al. 2014; wordfreq) is log10 of the count in a billion words: "the" has 7.7, "table" 5.1,
    "screwdriver" 3.1.
    """
    return min(1.5, max(0.3, (8.0 - zipf(word.lower())) / 4.0))


def _is_content(word: str) -> bool:
    lower = word.lower()
    return lower not in FUNCTION_WORDS and lower not in ASKING_WORDS


def _bare(word: str) -> str:
    return re.sub(r"['’]s?$", "", word)


def folded(text: str) -> str:
    """Without case and accents."""
    return "".join(sign for sign in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(sign))


def _people(text: str, known: Sequence[Known]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Who is named, in the order of mention, and with which words. A whole name wins over a part of another."""
    spoken = [(match.group(), match.start()) for match in _WORD.finditer(text)]
    plain = [folded(_bare(word)) for word, _ in spoken]
    by_words: dict[tuple[str, ...], list[int]] = {}
    for person in known:
        name = tuple(folded(part) for part in _WORD.findall(person.title))
        for key in {name, name[:1]} if len(name) > 1 and not name[-1].isdigit() else {name}:
            if key:
                by_words.setdefault(key, []).append(person.entity)
    longest = max(map(len, by_words), default=0)
    found: dict[int, None] = {}
    used: dict[str, None] = {}
    place = 0
    while place < len(plain):
        for size in range(min(longest, len(plain) - place), 0, -1):
            key = tuple(plain[place : place + size])
            if key in by_words and _means_a_name(spoken[place][0], at_start=place == 0, size=size):
                found.update(dict.fromkeys(by_words[key]))
                used.update(dict.fromkeys(_bare(word).lower() for word, _ in spoken[place : place + size]))
                place += size
                break
        else:
            place += 1
    return tuple(found), tuple(used)


def _means_a_name(word: str, *, at_start: bool, size: int) -> bool:
    """Names that are words ("may", "will", "rose") count when written with a capital, and not where every word has one."""
    if size > 1 or zipf(word.lower()) < 5.0:
        return True
    return word[:1].isupper() and not (at_start and word.lower() in FUNCTION_WORDS)


def _things(words: Sequence[str]) -> tuple[Thing, ...]:
    found: list[Thing] = []
    place = 0
    while place < len(words):
        for size in (3, 2, 1):
            phrase = " ".join(words[place : place + size])
            labels = labels_for(phrase) if len(words) - place >= size else ()
            if labels and labels != ("person",) and phrase not in FUNCTION_WORDS:
                found.append(Thing(phrase, labels))
                place += size
                break
        else:
            place += 1
    return tuple(found)


def _strangers(text: str, spoken: Sequence[tuple[str, int]], people_words: Sequence[str]) -> tuple[str, ...]:
    found = []
    for place, (word, at) in enumerate(spoken):
        bare = _bare(word)
        named = place > 0 and spoken[place - 1][0].lower() in {"called", "named"}
        proper = (
            place > 0 and bare[:1].isupper() and bare[1:].islower() and not text[:at].rstrip().endswith((".", "?", "!"))
        )
        if not (named or proper) or bare.lower() in people_words or bare.lower() in _CALENDAR or not bare.isalpha():
            continue
        if bare.lower() in FUNCTION_WORDS or labels_for(bare) or (not named and _BEFORE_A_NAME.search(text[:at])):
            continue
        found.append(bare)
    if match := re.search(r"\b(person|voice)\s+#?(\d+)\b", text, re.IGNORECASE):
        numbered = f"{match[1].lower()} {match[2]}"
        if match[2] not in people_words:
            found.append(numbered)
    return tuple(dict.fromkeys(found))
