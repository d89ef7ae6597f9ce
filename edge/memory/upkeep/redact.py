"""What is left of a text when somebody, or some of it, is forgotten. Pure.

Rules:

* a sentence about nobody but those who go goes; so does one that quotes them;
* where others are spoken of, too, they stay, and "someone" stands for who went;
* a name that was said or written becomes `FORGOTTEN`, wherever it is a word of its own.

A name of several words goes as a whole and by its parts, except for words that everybody uses; those of people who stay are
kept. A name that is also a common word ("Will", "May") goes only where it has its capital: then also at the beginning of a
sentence, because nobody can tell which it is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from edge.types.frequency import zipf
from edge.types.mentions import attributed, mentioned

FORGOTTEN: Final = "[forgotten]"  # stands where a name was said
_COMMON: Final = 4.0  # Zipf frequency in English from which a word is everybody's (wordfreq: "may" 5.9, "anna" 4.0)
_SHORT: Final = 3  # letters: shorter parts of names are not looked for
_RUN: Final = 3  # words in a row by which a sentence is known to quote somebody
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_END = re.compile(r"[.!?…]+[”\"’)]*\s+(?=[^\sa-z])")
_QUOTE: Final = "“"


class Names:
    """Finds names in texts. Those who stay keep theirs, also where one contains the other."""

    def __init__(self, gone: Iterable[str], kept: Iterable[str] = ()) -> None:
        """Prepare.

        Args:
            gone: names to be found.
            kept: names of others.
        """
        stay = {" ".join(name.split()) for name in kept}
        folded = {name.casefold() for name in stay}
        self.whole = tuple(dict.fromkeys(name for name in gone if " ".join(name.split()).casefold() not in folded))
        words = {word.casefold() for name in stay for word in _WORD.findall(name)}
        found: dict[str, str] = {}
        for name in self.whole:
            parts = [word for word in _WORD.findall(name) if len(word) >= _SHORT and word.casefold() not in words]
            several = len(name.split()) > 1
            for part in [name, *(part for part in parts if several and (part == parts[0] or not _everybodys(part)))]:
                cased = len(part.split()) == 1 and (_everybodys(part) or len(part) < _SHORT)
                found[part] = _forms(part) if cased else f"(?i:{_forms(part)})"
        self.parts = tuple(sorted(found, key=len, reverse=True))
        # The longest first, whoever has it: nobody's name is taken apart for another one in it.
        every = {
            **{name: f"(?i:{_forms(name)})" for name in stay},
            **{name: f"(?P<g{at}>{found[name]})" for at, name in enumerate(found)},
        }
        self._every = re.compile("|".join(every[name] for name in sorted(every, key=len, reverse=True)) or r"(?!)")

    def __bool__(self) -> bool:
        return bool(self.whole)

    def found(self, text: str) -> bool:
        """Whether any is in a text."""
        return bool(self.whole) and self.without(text) != text

    def without(self, text: str) -> str:
        """A text with `FORGOTTEN` in their places."""
        if not self.whole:
            return text
        return self._every.sub(lambda match: FORGOTTEN if match.lastgroup else match[0], text)


def _forms(name: str) -> str:
    """A pattern for a name as a word of its own, plain or as it stands in JSON."""
    words = name.split()
    plain = r"\s+".join(map(re.escape, words))
    coded = re.escape(json.dumps(" ".join(words))[1:-1])
    return rf"(?<![^\W_])(?:{plain}|{coded})(?![^\W_])"


def _everybodys(word: str) -> bool:
    return zipf(word.lower()) >= _COMMON


def sentences(text: str) -> list[str]:
    """The sentences of a text; what is quoted is not taken apart."""
    if text.count("“") != text.count("”") or text.count('"') % 2:
        return [text] if text.strip() else []  # where a quotation ends cannot be told
    found, begin = [], 0
    for end in _END.finditer(text):
        part = text[begin : end.end()]
        if part.count("“") == part.count("”") and part.count('"') % 2 == 0:
            found.append(part.strip())
            begin = end.end()
    rest = text[begin:].strip()
    return [*found, rest] if rest else found


@dataclass(frozen=True, slots=True)
class Redaction:
    """What goes from the texts of one moment, or of all."""

    people: frozenset[int] = frozenset()
    names: Names = field(default_factory=lambda: Names(()))
    anchors: frozenset[tuple[int, str]] = frozenset()  # (entity, anchor) of sightings that go from this moment
    whole: frozenset[int] = frozenset()  # of whom nothing is left in this moment
    said: tuple[str, ...] = ()  # words that go
    labels: frozenset[str] = frozenset()  # classes of things of which nothing is left in this moment

    def goes(self, entity: int, anchor: str | None) -> bool:
        """Whether a mention goes."""
        if entity in self.people:
            return True
        return (entity, anchor) in self.anchors if anchor is not None else entity in self.whole

    def sentence(self, text: str) -> str | None:
        """What is left of one; None: nothing."""
        if any(_quotes(text, words) for words in self.said) or self._thing(text):
            return None
        clean = self.inline(text)
        alone = not mentioned(clean) or _QUOTE in clean or '"' in clean
        return None if _lost(text, clean) and alone else clean

    def inline(self, text: str) -> str:
        """A text in which "someone" and `FORGOTTEN` stand for who goes."""
        if "{{" in text:
            text = attributed(text, lambda entity, anchor: None if self.goes(entity, anchor) else entity)
        return self.names.without(text)

    def _thing(self, text: str) -> bool:
        return any(re.search(rf"\b{re.escape(label)}(?:e?s)?\b", text, re.IGNORECASE) for label in self.labels)


def _lost(before: str, after: str) -> bool:
    """Whether somebody who was mentioned is not any more."""
    return before.count("{{") > after.count("{{")


def _quotes(text: str, words: str) -> bool:
    mine = [word.casefold() for word in _WORD.findall(words)]
    theirs = [word.casefold() for word in _WORD.findall(text)]
    if not mine or (_QUOTE not in text and '"' not in text and len(mine) < _RUN):
        return False
    size = min(_RUN, len(mine))
    runs = {tuple(mine[at : at + size]) for at in range(len(mine) - size + 1)}
    return any(tuple(theirs[at : at + size]) in runs for at in range(len(theirs) - size + 1))


def kept_parts(one: Redaction, text: str) -> list[str | None]:
    """Each sentence of a text as it is left."""
    return [one.sentence(part) for part in sentences(text)]


def joined(parts: Sequence[str | None]) -> str:
    """What is left as one text."""
    return " ".join(part for part in parts if part)


def without_people(value: Any, people: Collection[int]) -> Any:
    """The evidence of a decision (JSON values) in which nobody of `people` is named any more."""
    if isinstance(value, Mapping):
        clean = {key: inner for key, inner in value.items() if not (key in _WHO and _is(inner, people))}
        for key in _LISTS & clean.keys():
            clean[key] = [one for one in clean[key] if one not in people]
        return {key: without_people(inner, people) for key, inner in clean.items()}
    if isinstance(value, list):
        stay = [one for one in value if not (isinstance(one, Mapping) and _is(one.get("entity"), people))]
        return [without_people(one, people) for one in stay]
    return value


def _is(value: object, people: Collection[int]) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in people


_WHO: Final = frozenset({"entity", "owner_seen", "owner_heard"})
_LISTS: Final = frozenset({"possible_same", "also_called_so"})


def evidence_pattern(people: Iterable[int]) -> re.Pattern[str]:
    """Finds evidence (JSON) that names any of these."""
    ids = "|".join(map(str, sorted(people))) or "(?!)"
    keys, lists = "|".join(sorted(_WHO)), "|".join(sorted(_LISTS))
    return re.compile(rf'"(?:{keys})":\s*(?:{ids})\b|"(?:{lists})":\s*\[[^\]]*\b(?:{ids})\b')
