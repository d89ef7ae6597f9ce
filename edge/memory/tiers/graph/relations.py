"""The triples of one moment: who is with whom, who has or is near what, where, and who spoke of what. Pure.

They come from what was observed, from who took part, from what the texts state, and from turns of speech: relations that
something says, never two words that happen to stand together. The same for a segment that our own networks saw and for one
that somebody else described.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from edge.memory.stored import StoredTrace
from edge.memory.tiers.graph.phrases import LONGEST, TOKEN, WEARER, Key, Said, first_person, relations_in
from edge.memory.tiers.graph.words import (
    ASKING,
    DETERMINERS,
    QUESTION_WORDS,
    STOPS,
    SYMMETRIC,
    VERBS,
    Relation,
    thing,
)
from edge.memory.tiers.timeline.extract import split
from edge.types.records import mentioned
from edge.types.vocabulary import labels_for

MOST: Final = 64  # triples of one moment; the bound of what it costs
_PEOPLE: Final = 8  # of whom each pair is with each other
_TURN_S: Final = 10.0  # who speaks at most so long after somebody else speaks with them
_APART_S: Final = (
    30.0  # who is seen at most so long after somebody else was gone is with them (the length of a segment)
)
_TOPICS: Final = 4  # of an utterance
_NOT_THINGS: Final = frozenset({"person", "voice", "face"})
_PERHAPS: Final = "perhaps "  # how the text begins of what was glimpsed once and not clearly


@dataclass(frozen=True, slots=True)
class Triple:
    """One relation at one moment."""

    subject: Key
    relation: Relation
    object: Key
    at: float  # UTC POSIX seconds at which it is first so in its trace


def triples_of(trace: StoredTrace) -> tuple[Triple, ...]:
    """What a segment says of how people and things are to each other.

    Returns:
        Each triple once, with its earliest moment; at most `MOST`, those that something states before those that follow
        from being there. The two of a symmetric relation stand in the order of their keys.
    """
    lines = [(at, text) for at, text in trace.lines] or [(trace.start, one) for one in split(trace.text)]
    mine = first_person(text for _, text in lines)
    found: dict[tuple[Key, Relation, Key], float] = {}
    for at, said in (*_stated(trace, lines, mine=mine), *_spoken(trace), *_together(trace, mine=mine), *_seen(trace)):
        subject, relation, other = said.subject, said.relation, said.object
        if relation in SYMMETRIC and other < subject:
            subject, other = other, subject
        key = (subject, relation, other)
        if subject == other:
            continue
        if key in found:
            found[key] = min(found[key], at)
        elif len(found) < MOST:
            found[key] = at
    return tuple(Triple(*key, at) for key, at in found.items())


def _stated(trace: StoredTrace, lines: Iterable[tuple[float, str]], *, mine: bool) -> Iterator[tuple[float, Said]]:
    """What the texts say: the lines, and what is said of each person and thing alone."""
    read: set[str] = set()
    for at, text in lines:
        read.add(text)
        for said in relations_in(text, told_by_me=mine):
            yield at, said
    told = " ".join(text for _, text in trace.lines)
    for seen in trace.observations:
        if seen.text and seen.text not in told and seen.text not in read and not _weak(seen.text):
            read.add(seen.text)
            for said in relations_in(seen.text, told_by_me=False):
                yield seen.start, said


def _spoken(trace: StoredTrace) -> Iterator[tuple[float, Said]]:
    """Who speaks with whom, and of what."""
    said = sorted(trace.utterances, key=lambda one: (one.start, one.id))
    for one, other in pairwise(said):
        near = other.start - one.end <= _TURN_S
        if near and one.speaker is not None and other.speaker is not None and one.speaker != other.speaker:
            yield one.start, Said(Key.person(one.speaker), Relation.TALKS, Key.person(other.speaker))
    for one in said:
        if one.speaker is None:
            continue
        words = one.text.split()
        asks = one.text.rstrip().endswith("?") or (bool(words) and words[0].lower().strip(",") in QUESTION_WORDS)
        asks = asks or any(word.lower() in ASKING for word in words[:3])
        speaker = Key.person(one.speaker)
        for name in list(dict.fromkeys(spoken_of(one.text)))[:_TOPICS]:
            yield one.start, Said(speaker, Relation.ASKS if asks else Relation.SAYS, Key("thing", name))
        for who in mentioned(one.text):
            yield one.start, Said(speaker, Relation.SAYS, Key.person(who))


def _together(trace: StoredTrace, *, mine: bool) -> Iterator[tuple[float, Said]]:
    """Who is there at the same time as whom."""
    spans: dict[int, tuple[float, float]] = {}
    there = [(one.entity, one.start, one.end) for one in trace.observations]
    there += [(one.speaker, one.start, one.end) for one in trace.utterances]
    for who, start, end in there:
        if who is not None:
            first, last = spans.get(who, (math.inf, -math.inf))
            spans[who] = min(first, start), max(last, end)
    chosen = sorted(spans.items(), key=lambda one: (one[1], one[0]))[:_PEOPLE]
    if mine:
        for who, (start, _) in chosen:
            yield start, Said(WEARER, Relation.WITH, Key.person(who))
    for (one, (_, end)), (other, (start, _)) in combinations(chosen, 2):
        if start - end <= _APART_S:
            yield start, Said(Key.person(one), Relation.WITH, Key.person(other))


def _seen(trace: StoredTrace) -> Iterator[tuple[float, Said]]:
    """Who and what is seen by the camera."""
    camera = Key("camera", trace.camera)
    for one in trace.observations:
        if one.entity is not None and one.label != "voice":
            yield one.start, Said(Key.person(one.entity), Relation.SEEN, camera)
        elif one.label not in _NOT_THINGS and not _weak(one.text):
            yield one.start, Said(Key("thing", one.label), Relation.SEEN, camera)


def _weak(text: str) -> bool:
    return text.lower().startswith(_PERHAPS)


def spoken_of(words: str) -> Iterator[str]:
    """What things somebody speaks of: noun phrases after an article, names of things, and names with a capital."""
    tokens = TOKEN.findall(words)
    lower = [token.lower() for token in tokens]
    at = 0
    while at < len(tokens):
        if lower[at] in DETERMINERS and lower[at] not in {"one", "no", "that", "this"}:
            end = at + 1
            phrase: list[str] = []
            while end < len(tokens) and len(phrase) < LONGEST and lower[end][0].isalnum():
                if lower[end] in STOPS or lower[end] in DETERMINERS or (phrase and lower[end] in VERBS):
                    break
                phrase.append(lower[end])
                end += 1
            name = thing(" ".join(phrase)) if phrase else None
            if name is not None:
                yield name
            at = max(end, at + 1)
            continue
        word = tokens[at]
        if (
            at
            and word[:1].isupper()
            and word[1:].islower()
            and len(word) > 2
            and word.isalpha()
            and lower[at] not in STOPS
        ):
            if tokens[at - 1][0].isalnum():  # not at the beginning of a sentence
                yield thing(word) or word if labels_for(word) else word
        elif lower[at] not in VERBS and lower[at] not in STOPS:
            two = " ".join(lower[at : at + 2])
            known = _concrete(two) or _concrete(lower[at])
            if known is not None:
                yield known
                at += known == _concrete(two)
        at += 1


def _concrete(words: str) -> str | None:
    """The class of a detector that words name exactly."""
    labels = labels_for(words)
    return labels[0] if len(labels) == 1 and labels != ("person",) else None
