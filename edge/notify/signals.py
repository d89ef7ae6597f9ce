"""Whether what a rule watches for was so in one segment, and on what that rests. Pure.

A condition holds on evidence that can be cited: an observation, a sentence of the description, or an utterance. That
something is somewhere must be said by one sentence, in which the subject stands before the relation, nothing denies it, and
nobody else begins to do something in between ("I looked at the phone while Ben sat on the table"); in a room it also is
when the camera is named after the room. What is only looked for, asked for or supposed is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from edge.memory import StoredTrace
from edge.notify.program import Absent, Condition, Moves, Place, Said, Seen, Subject, Unusual, Way, Who
from edge.types.records import Kind, public_id, render
from edge.types.vocabulary import everyday, plural, pluralise

_RELATIONS: Final = {
    "on": r"on(?: top of)?|onto|upon",
    "in": r"in|inside|into|within",
    "at": r"at|by|in front of|before|near|next to",
    "near": r"near|next to|beside|close to|by|at|around",
    "with": r"with",
    "holding": r"hold(?:s|ing)?|carr(?:y|ies|ying)|with|took|takes?|taking|pick(?:s|ed|ing)? up|us(?:e|es|ed|ing)",
    "under": r"under|underneath|below|beneath",
}
_DENIES: Final = re.compile(r"\b(?:no|not|never|without|nothing|nobody)\b|n['’]t\b", re.IGNORECASE)
_ARTICLES: Final = r"(?:(?:a|an|the|my|our|his|her|their|your|some|two|three|one of the)\s+)?(?:\w+\s+){0,2}?"
# Only supposed or meant: behind or before a subject.
_SUPPOSED: Final = re.compile(
    r"\b(?:if|whether|would|could|should|might|(?:want|need|plan|intend|hope|wish|prepare|decide)\w*(?: \w+){0,2} to)\b",
    re.IGNORECASE,
)
# Only looked for, asked for or spoken of: before a subject.
_SOUGHT: Final = re.compile(
    r"\b(?:look|search|hunt|ask|wait|reach|shop|hope)(?:ed|ing|s|es)? for\b"
    r"|\b(?:ask|talk|think|thought|argue|chat|joke|speak|spoke|wonder|tell|told|hear|heard)(?:ed|ing|s|d)? (?:of|about)\b"
    r"|\b(?:need|want|miss|lack|mention|discuss|remember|forget|forgot)(?:ed|ing|s|es)?(?: (?:a|an|the|my|our|some|any|more))?\s*$",
    re.IGNORECASE,
)
_BREAKS: Final = re.compile(r"[,;:]|\b(?:and|but|while|then|as|when|because|so)\b", re.IGNORECASE)
_LISTED: Final = re.compile(  # further subjects
    r"^(?:(?:\s*,\s*|\s+)(?:and\s+)?(?:the|a|an|my|our|his|her|their|your|some|two|three)\s+(?:\w+\s+)?\w+(?=\s*,|\s+and\b"
    r"|\s+(?:is|are|was|were|lie|lies|lay|stand|stands|stood|sit|sits|sat)\b|\s*$))+"
    r"|^(?:\s*,\s*\w+)*\s*,?\s+and\s+\w+(?=\s+(?:are|were)\b)",
    re.IGNORECASE,
)
# With what a clause of somebody or something else begins.
_OTHERS: Final = re.compile(
    r"\s*(?:(?:I|you|he|she|we|they|there|someone|somebody|everyone|everybody|people|the|a|an|my|our|his|her|their|your|this|that"
    r"|these|those|some|another|one|two|three)\b|(?-i:[^\W\d_]*[A-Z]))",
    re.IGNORECASE,
)
_ANYBODY: Final = (
    *(
        "person",
        "people",
        "someone",
        "somebody",
        "everyone",
        "everybody",
        "man",
        "men",
        "woman",
        "women",
        "child",
        "children",
    ),
    *("I", "we", "he", "she", "they"),
)
_THAT: Final = re.compile(r"\b(?:it|them|which)\b", re.IGNORECASE)  # stands for a thing that was named before
_ANIMALS: Final = frozenset(
    {"bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe", "person"}
)  # of the detector's classes, those that do something themselves
_APART: Final = 60  # characters between a subject and its relation, at most
_LEFT: Final = re.compile(
    r"\b(?:(?<!['’]s )(?<!the )(?<!turn )(?<!turned )(?<!turns )(?<!turning )left"  # no direction
    r"|leaves?|leaving|went (?:out|away)|goes (?:out|away)|walk(?:s|ed) (?:out|away)|out of view)\b",
    re.IGNORECASE,
)
_CAME: Final = re.compile(
    r"\b(?:came|comes?|coming|arriv(?:es?|ed|ing)|enter(?:s|ed|ing)?|return(?:s|ed|ing)?|walk(?:s|ed) in|appear(?:s|ed)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Text:
    """A text as it is read, and as it is stored."""

    told: str  # titles put in
    stored: str  # with mentions


@dataclass(frozen=True, slots=True)
class Sighting:
    """One observation of the segment."""

    id: str  # public
    label: str
    entity: int | None
    text: Text
    entered: bool = False
    left: bool = False
    start: float = 0.0  # UTC POSIX seconds
    end: float = 0.0


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words that were said."""

    id: str
    speaker: int | None
    words: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Scene:
    """One segment as far as rules look at it."""

    trace: int
    id: str  # public
    camera: str
    sentences: tuple[tuple[float, Text], ...]  # of the description, with their moments (UTC POSIX seconds)
    sightings: tuple[Sighting, ...]
    utterances: tuple[Utterance, ...]
    titles: Mapping[int, str]  # of everybody who takes part or is mentioned
    unusual: tuple[tuple[float, str], ...] = ()  # what is out of the ordinary: its moment (UTC POSIX seconds), and how
    kind: str | None = None  # of place that the camera looks at


@dataclass(frozen=True, slots=True)
class Match:
    """A condition that was so."""

    at: float  # UTC POSIX seconds
    ground: tuple[str, ...]  # public ids
    words: str  # the sentence or words that it rests on, with mentions


def scene_of(stored: StoredTrace, titles: Mapping[int, str]) -> Scene:
    """A segment as rules look at it; `titles` of everybody whom it mentions."""

    def told(text: str) -> Text:
        return Text(render(text, lambda who: titles.get(who, "someone")), text)

    lines = stored.lines or ((stored.start, stored.text),)
    return Scene(
        stored.id,
        public_id(Kind.TRACE, stored.id),
        stored.camera,
        tuple((at, told(text)) for at, text in lines),
        tuple(
            Sighting(
                public_id(Kind.OBSERVATION, seen.id),
                seen.label,
                seen.entity,
                told(seen.text),
                entered=bool(seen.detail.get("entered")),
                left=bool(seen.detail.get("left")),
                start=seen.start,
                end=seen.end,
            )
            for seen in stored.observations
        ),
        tuple(
            Utterance(public_id(Kind.UTTERANCE, heard.id), heard.speaker, heard.text, heard.start)
            for heard in stored.utterances
        ),
        titles,
    )


def match(condition: Condition, scene: Scene) -> Match | None:
    """The first ground on which a condition holds in a segment; None: it does not, as far as is known.

    Of `Absent`, whether what should be absent was seen.
    """
    if isinstance(condition, Absent):
        return match(condition.what, scene)
    if isinstance(condition, Said):
        return _said(condition, scene)
    if isinstance(condition, Moves):
        return _moves(condition, scene)
    if isinstance(condition, Unusual):
        return _unusual(condition, scene)
    return next(_seen(condition, scene), None)


def topic(condition: Condition) -> str:
    """What a condition is about, so that two rules about the same do not both speak of it."""
    if isinstance(condition, Absent):
        return f"absent {topic(condition.what)}"
    if isinstance(condition, Said):
        return f"said {' '.join(condition.words)}"
    if isinstance(condition, Unusual):
        return f"unusual {condition.place or ''}".strip()
    subject = _topic_of(condition.subject)
    if isinstance(condition, Moves):
        return f"{subject} {condition.way}"
    place = condition.place
    return subject if place is None else f"{subject} {place.relation} {(place.labels or (place.words.lower(),))[0]}"


def _topic_of(subject: Subject) -> str:
    return (subject.labels[0] if subject.labels else subject.words).lower()


# -- seen ---------------------------------------------------------------------------------------------------------------


def _seen(condition: Seen, scene: Scene) -> Iterator[Match]:
    subject, place = condition.subject, condition.place
    if place is None:
        for seen in scene.sightings:
            if _is(subject, seen, scene):
                yield Match(seen.start, (seen.id,), seen.text.stored)
        if subject.who in {Who.STRANGER, Who.ANYBODY}:
            return  # that takes eyes, not words
        pattern = re.compile(_pattern(subject, scene), re.IGNORECASE)
        for at, sentence in scene.sentences:
            if any(_real(sentence.told, found.start()) for found in pattern.finditer(sentence.told)):
                yield Match(at, (scene.id,), sentence.stored)
        return
    if place.relation == "in" and _room(scene.camera) == place.words.lower():
        yield from _seen(Seen(subject), scene)
    who = re.compile(_pattern(subject, scene), re.IGNORECASE)
    there = re.compile(rf"\b(?:{_RELATIONS[place.relation]})\s+{_ARTICLES}(?:{_noun(place)})\b", re.IGNORECASE)
    texts = [(seen.start, seen.id, seen.text) for seen in scene.sightings]
    texts += [(at, scene.id, sentence) for at, sentence in scene.sentences]
    if subject.who is Who.STRANGER:
        texts = [(seen.start, seen.id, seen.text) for seen in scene.sightings if _is(subject, seen, scene)]
    for at, item, text in texts:
        if any(_stands(subject, who, text.told, found.start()) for found in there.finditer(text.told)):
            yield Match(at, (item,), text.stored)


def _stands(subject: Subject, who: re.Pattern[str], text: str, relation: int) -> bool:
    """Whether the subject is what a relation at a place of a text speaks of."""
    begin = max((text.rfind(end, 0, relation) for end in ".!?;"), default=-1) + 1
    for found in reversed(list(who.finditer(text, max(begin, relation - _APART), relation))):
        between = text[found.end() : relation]
        denied = _DENIES.search(between) or _SUPPOSED.search(between)
        if not denied and _real(text, found.start()) and _goes_on(subject, between):
            return True
    return False


def _real(text: str, at: int) -> bool:
    """Whether what a text speaks of at a place is there: neither denied nor only looked for, spoken of or supposed."""
    before = re.split(r"[.!?;:,]", text[:at])[-1]
    return not any(pattern.search(before) for pattern in (_DENIES, _SUPPOSED, _SOUGHT))


def _goes_on(subject: Subject, between: str) -> bool:
    """Whether the words behind a subject still tell of it, and of nobody else who does something meanwhile."""
    between = _LISTED.sub("", between)  # "the dog and the cat were on the sofa"
    _, *more = _BREAKS.split(between)
    if not more:
        return True
    if subject.who is Who.THING and _ANIMALS.isdisjoint(subject.labels):  # "I took the phone and put it on the table"
        return _THAT.search(more[-1]) is not None
    return all(_OTHERS.match(part) is None for part in more if part.strip())


def _is(subject: Subject, seen: Sighting, scene: Scene) -> bool:
    if subject.who is Who.NAMED:
        return seen.entity is not None and _called(scene.titles.get(seen.entity, ""), subject.words)
    if subject.who is Who.ANYBODY:
        return seen.label == "person"
    if subject.who is Who.STRANGER:
        title = scene.titles.get(seen.entity, "") if seen.entity is not None else ""
        return seen.label == "person" and (seen.entity is None or bool(re.fullmatch(r"person \d+", title)))
    return seen.label in subject.labels


def _called(title: str, name: str) -> bool:
    wanted, known = name.casefold().split(), title.casefold().split()
    return bool(wanted) and all(word in known for word in wanted)


def _pattern(subject: Subject, scene: Scene) -> str:
    """What stands for the subject in a sentence."""
    if subject.who is Who.ME:
        return r"\b(?:I|I'm|I’m)\b"
    if subject.who is Who.NAMED:
        full = [title for title in scene.titles.values() if _called(title, subject.words)]
        return r"\b(?:" + "|".join(map(re.escape, [*full, subject.words])) + r")\b"
    if subject.who in {Who.ANYBODY, Who.STRANGER}:
        named = [re.escape(title) for title in scene.titles.values()] if subject.who is Who.ANYBODY else []
        also = _ANYBODY if subject.who is Who.ANYBODY else ("person",)
        return r"\b(?:" + "|".join([*named, *also]) + r")\b"
    return rf"\b(?:{_noun(subject)})\b"


def _noun(what: Subject | Place) -> str:
    words = {what.words.lower(), pluralise(what.words.lower())}
    for label in what.labels:
        words |= {label, everyday(label), plural(label)}
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


def _room(camera: str) -> str:
    return re.sub(r"[\W_]+|\b(?:cam|camera)\b|\d+$", " ", camera.lower()).strip()


def _unusual(condition: Unusual, scene: Scene) -> Match | None:
    if condition.place is not None and condition.place not in (_room(scene.camera), scene.kind, scene.camera.lower()):
        return None
    return next((Match(at, (scene.id,), words) for at, words in scene.unusual), None)


# -- moving and saying ----------------------------------------------------------------------------------------------------


def _moves(condition: Moves, scene: Scene) -> Match | None:
    leaves = condition.way is Way.LEAVES
    for seen in scene.sightings:
        if _is(condition.subject, seen, scene) and (seen.left if leaves else seen.entered):
            return Match(seen.end if leaves else seen.start, (seen.id,), seen.text.stored)
    if condition.subject.who is Who.STRANGER:
        return None
    moved = _LEFT if leaves else _CAME
    who = re.compile(_pattern(condition.subject, scene), re.IGNORECASE)
    for at, sentence in scene.sentences:
        for clause in re.split(r"[.;!?]", sentence.told):
            subject = who.search(clause)
            verb = moved.search(clause, subject.end()) if subject is not None else None
            if subject is None or verb is None or verb.start() - subject.end() >= 20:
                continue
            if not _DENIES.search(clause[max(0, subject.start() - 12) : verb.start()]):
                return Match(at, (scene.id,), sentence.stored)
    return None


def _said(condition: Said, scene: Scene) -> Match | None:
    wanted = [re.compile(rf"\b{re.escape(word)}(?:s|es)?\b", re.IGNORECASE) for word in condition.words]
    for heard in scene.utterances:
        if condition.speaker is not None and not _speaks(condition.speaker, heard, scene):
            continue
        if all(pattern.search(heard.words) for pattern in wanted):
            return Match(heard.at, (heard.id,), heard.words)
    return None


def _speaks(subject: Subject, heard: Utterance, scene: Scene) -> bool:
    title = scene.titles.get(heard.speaker, "") if heard.speaker is not None else ""
    if subject.who is Who.NAMED:
        return _called(title, subject.words)
    if subject.who is Who.STRANGER:
        return not title or bool(re.fullmatch(r"(?:person|voice) \d+", title))
    return subject.who is Who.ANYBODY
