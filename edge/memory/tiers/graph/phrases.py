"""What a sentence says of how people and things are to each other: subject, verb, object, and what follows them. Pure.

A shallow reading, for texts that say what is seen: who is named or says "I" does what a verb of `words` says to the
thing or person that the next noun phrase names; prepositions say where, and with whom. What it does not understand it
leaves out. Of what is quoted nothing is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from edge.memory.tiers.graph.words import (
    AUXILIARIES,
    COMPANY,
    CONJUNCTIONS,
    DETERMINERS,
    NO_THING,
    PARTICLES,
    PARTITIVES,
    PREPOSITIONS,
    SELF_HELP,
    STOPS,
    VERBS,
    Relation,
    thing,
)
from edge.memory.tiers.timeline.extract import places_in
from edge.types.mentions import render
from edge.types.vocabulary import labels_for

ME: Final = "me"
_PERSON = re.compile(r"⟦(\d+)⟧")
TOKEN = re.compile(r"⟦\d+⟧|['’]s\b|[^\W_]+(?:[-'’][^\W_]+)*|[.,;:!?…—]")
_QUOTED = re.compile(r"“[^”]*”?|\"[^\"]*\"?")
_SENTENCE = re.compile(r"[.!?;…]")
LONGEST = 6  # words of a noun phrase
_REACH = 4  # adverbs and the like between a subject and its verb
_FRONT = re.compile(r"\b(?:in front|next|close)\s+(?=(?:of|to)\b)", re.IGNORECASE)
# Who somebody that is not named is; with "they" it may be anybody.
_PRONOUNS: Final = frozenset({"he", "she"})
_FIRST: Final = frozenset({"i", "we"})
_MINE: Final = re.compile(r"\b(?:I|I['’]m|I['’]ve|[Mm]y|[Mm]yself)\b")


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What a node of the graph stands for."""

    kind: str  # "person", "me", "thing", "place" or "camera"
    name: str  # of a person the id; of a thing as `relation_words.thing` has it

    @classmethod
    def person(cls, entity: int) -> Key:
        """Somebody whom the memory knows."""
        return cls("person", str(entity))


WEARER: Final = Key("me", ME)  # who wears the camera, or describes


@dataclass(frozen=True, slots=True)
class Said:
    """One relation that a sentence states."""

    subject: Key
    relation: Relation
    object: Key


def first_person(texts: Iterable[str]) -> bool:
    """Whether texts are told by who wears the camera."""
    return any(_MINE.search(_QUOTED.sub(" ", text)) for text in texts)


def relations_in(text: str, *, told_by_me: bool = False) -> list[Said]:
    """What a text states, in its order, each once.

    Args:
        text: with mentions.
        told_by_me: sentences without a subject are about who wears the camera.
    """
    marked = _FRONT.sub("near ", _QUOTED.sub(" . ", render(text, lambda who: f"⟦{who}⟧")))
    found: list[Said] = []
    last: Key | None = None
    for sentence in _SENTENCE.split(marked):
        reading = _Reading(TOKEN.findall(sentence), WEARER if told_by_me else None, last)
        reading.read()
        last = reading.last or last
        found += reading.found
    return list(dict.fromkeys(found))


@dataclass(slots=True)
class _Phrase:
    """A noun phrase."""

    people: list[Key] = field(default_factory=list)
    things: list[Key] = field(default_factory=list)
    places: list[Key] = field(default_factory=list)
    end: int = 0  # the place of the word after it


@dataclass(slots=True)
class _Reading:
    """One sentence on the way."""

    tokens: Sequence[str]
    default: Key | None  # the subject of what has none
    last: Key | None  # the latest person who did something: "he", "she"
    subjects: list[Key] = field(default_factory=list)
    verb: Relation | None = None
    objects: list[Key] = field(default_factory=list)  # of the latest verb
    found: list[Said] = field(default_factory=list)
    started: bool = False  # there was a subject or a verb

    def read(self) -> None:
        at, opens = 0, True  # whether a subject may stand here
        while at < len(self.tokens):
            word = self.tokens[at].lower()
            if word in {",", ":", "—"} or word in CONJUNCTIONS:
                opens = True
                if word != ",":
                    self.objects = []
                at += 1
                continue
            at, opens = self._step(at, word, opens)

    def _step(self, at: int, word: str, opens: bool) -> tuple[int, bool]:
        subject_end = self._subject(at, opens)
        if subject_end is not None:
            return subject_end, False
        if word in VERBS and self._acts(at):
            return self._verb(at, word), False
        if word in PREPOSITIONS:
            return self._preposition(at, PREPOSITIONS[word], word), False
        if _PERSON.fullmatch(word) and self.subjects:  # somebody after something that was not understood
            return at + 1, False
        if opens and (word in DETERMINERS or word not in STOPS) and not (word in VERBS or word.endswith("ly")):
            return self._nominal(at), False
        return at + 1, opens and (word in STOPS or word.endswith("ly"))

    # -- who does it --------------------------------------------------------------------------------------------------

    def _subject(self, at: int, opens: bool) -> int | None:
        """Read a subject that begins here; the place after it, or None: none does."""
        word = self.tokens[at].lower()
        if word in _FIRST or word.split("'")[0].split("’")[0] in _FIRST:
            return self._set([WEARER], at + 1)
        if not opens:
            return None
        if word in _PRONOUNS:
            return self._set([self.last] if self.last is not None else [], at + 1)
        if word in {"they", "it", "you", "everyone", "everybody", "someone", "somebody", "others", "both"}:
            return self._set([], at + 1)
        people, end = self._people(at)
        if people and self._owns(end):
            return self._nominal(end + 1)
        return self._set(people, end) if people and self._does(end) else None

    def _people(self, at: int) -> tuple[list[Key], int]:
        """People in a row: "A, B and C", "A and I", "A and two other people"."""
        people: list[Key] = []
        end = at
        while end < len(self.tokens):
            match = _PERSON.fullmatch(self.tokens[end])
            if match:
                people.append(Key.person(int(match[1])))
            elif people and self.tokens[end].lower() == "i":
                people.append(WEARER)
            else:
                break
            end += 1
            joint = end
            while joint < len(self.tokens) and self.tokens[joint].lower() in {",", "and"}:
                joint += 1
            if joint == end or joint >= len(self.tokens):
                break
            if not (_PERSON.fullmatch(self.tokens[joint]) or self.tokens[joint].lower() == "i"):
                rest = [word.lower() for word in self.tokens[joint : joint + 3]]
                if {"other", "others"} & set(rest[:2]):
                    end = joint + next(i for i, word in enumerate(rest) if word.startswith("other")) + 1
                    end += end < len(self.tokens) and self.tokens[end].lower() in {"person", "people"}
                break
            end = joint
        return people, end

    def _does(self, at: int) -> bool:
        """Whether a verb follows: whoever stands before it does it."""
        for word in (token.lower() for token in self.tokens[at : at + _REACH]):
            if word in AUXILIARIES or word in VERBS:
                return True
            if word in CONJUNCTIONS or word in PREPOSITIONS or word in DETERMINERS or word in {",", ":"}:
                return False
            if _PERSON.fullmatch(word):
                return False
        return False

    def _owns(self, at: int) -> bool:
        """Whether a "'s" stands here that means "of", and no "is"."""
        if at + 1 >= len(self.tokens) or self.tokens[at] not in {"'s", "’s"}:
            return False
        after = self.tokens[at + 1].lower()
        return after not in STOPS and after not in DETERMINERS and after not in VERBS and not after.endswith("ing")

    def _set(self, subjects: list[Key], end: int) -> int:
        self.subjects = subjects
        self.started = True
        self.verb, self.objects = None, []
        people = [one for one in subjects if one.kind == "person"]
        if len(people) == 1:
            self.last = people[0]
        for place, one in enumerate(subjects):
            for other in subjects[place + 1 :]:
                if "thing" not in (one.kind, other.kind):
                    self._say(one, Relation.WITH, other)
        return end

    def _nominal(self, at: int) -> int:
        """A subject that is no person whom the memory knows: a thing, or nobody."""
        phrase = self._phrase(at)
        if phrase.end < len(self.tokens) and self._does(phrase.end):
            self._set(phrase.things[:3], phrase.end)
        elif not self.started:
            self.subjects, self.started = [], True
        return max(phrase.end, at + 1)

    # -- what they do -------------------------------------------------------------------------------------------------

    def _acts(self, at: int) -> bool:
        """Whether a word that may be a verb is one here: not after an article."""
        before = self.tokens[at - 1].lower() if at else ""
        return before not in DETERMINERS - {"this", "that", "all", "both"}

    def _verb(self, at: int, word: str) -> int:
        if word in SELF_HELP and at + 1 < len(self.tokens):
            after = self.tokens[at + 1].lower()
            if after in VERBS or after in AUXILIARIES or after in {"to", "not", "just", "already", "now"}:
                return at + 1
        if not self.started:
            self._set([self.default] if self.default is not None else [], at)
        self.started = True
        self.verb, self.objects = VERBS[word], []
        end = at + 1
        while end < len(self.tokens) and (
            self.tokens[end].lower() in PARTICLES or self.tokens[end].lower().endswith("ly")
        ):
            end += 1
        if end < len(self.tokens) and self.tokens[end].lower() in PREPOSITIONS:
            if self.verb is Relation.LOOKS and self.tokens[end].lower() in {"at", "around", "to", "toward", "towards"}:
                end += 1
            else:
                return end
        if end < len(self.tokens) and self.tokens[end].lower() == "through":
            end += 1
        phrase = self._phrase(end)
        self._object(phrase)
        return max(phrase.end, end)

    def _object(self, phrase: _Phrase) -> None:
        verb = self.verb
        if verb is None:
            return
        for subject in self.subjects:
            if subject.kind == "thing":
                continue
            for person in phrase.people:
                self._say(subject, _TO_PEOPLE.get(verb, Relation.WITH), person)
            for one in (*phrase.things, *phrase.places):
                if verb in (Relation.IN, Relation.WITH):
                    if one.kind == "place":
                        self._say(subject, Relation.IN, one)
                elif verb is Relation.TALKS:
                    self._say(subject, Relation.SAYS, one)
                elif one.kind == "thing":
                    self._say(subject, verb, one)
        self.objects = [*phrase.things]

    def _preposition(self, at: int, relation: Relation, word: str) -> int:
        end = at + 1
        while end < len(self.tokens) and self.tokens[end].lower() in {"of", "to", "the"} and word == "near":
            end += 1
        phrase = self._phrase(end)
        if phrase.end == end:
            return end
        whom = self.objects if self.objects and relation in (Relation.ON, Relation.IN) else self.subjects
        for place in phrase.places:
            for subject in dict.fromkeys([*self.subjects, *self.objects] if relation is Relation.IN else self.subjects):
                if subject.kind != "thing" or relation is Relation.IN:
                    self._say(subject, Relation.IN, place)
        for person in phrase.people:
            for subject in self.subjects:
                self._say(subject, self._with(relation, word), person)
        for one in phrase.things:
            for subject in whom:
                way = self._towards(relation, word, subject)
                if way is not None:
                    self._say(subject, way, one)
        return phrase.end

    def _with(self, relation: Relation, word: str) -> Relation:
        """What a person after a preposition is to the subject."""
        if self.verb is Relation.TALKS and word in {"with", "to"}:
            return Relation.TALKS
        if self.verb in (Relation.GIVES, Relation.HOLDS) and word == "to":
            return Relation.GIVES_TO
        if relation is Relation.SAYS:
            return Relation.SAYS
        if self.verb is Relation.LOOKS:
            return Relation.LOOKS
        return Relation.WITH

    def _towards(self, relation: Relation, word: str, subject: Key) -> Relation | None:
        """What a thing after a preposition is to the subject, or to the object of the verb; None: nothing that is told."""
        if relation is Relation.WITH:
            if subject.kind == "thing" or self.verb in COMPANY | {Relation.LOOKS}:
                return None
            return Relation.USES if self.verb in (Relation.USES, Relation.EATS) else Relation.HOLDS
        if relation is Relation.SAYS:
            return Relation.SAYS if subject.kind != "thing" else None
        if subject.kind == "thing":
            return {Relation.ON: Relation.ON, Relation.AT: Relation.ON}.get(relation, Relation.NEAR)
        if relation is Relation.IN:
            return Relation.NEAR if word in {"to", "toward", "towards"} else None
        if relation is Relation.ON:
            return Relation.AT if self.verb in (None, Relation.IN) else None
        return relation

    # -- noun phrases -------------------------------------------------------------------------------------------------

    def _phrase(self, at: int) -> _Phrase:
        """What stands from here on, as far as it names people, things or places; several joined by "and" or commas."""
        phrase = _Phrase(end=at)
        while True:
            people, end = self._people(phrase.end)
            if people:
                if phrase.people and self._does(end):  # who does the next thing
                    break
                phrase.people += people
                phrase.end = end
                if self._owns(end):
                    phrase.people = phrase.people[: -len(people)]
                    phrase.end += 1
            words, end = self._words(phrase.end)
            if words:
                self._name(phrase, words)
                phrase.end = end
            if not people and not words:
                break
            joint = phrase.end
            if joint + 1 < len(self.tokens) and self.tokens[joint].lower() in {"and", ",", "or"}:
                after = self.tokens[joint + 1].lower()
                if after in DETERMINERS or (_PERSON.fullmatch(after) and not self._does(joint + 2)):
                    phrase.end = joint + 1
                    if self._words(phrase.end)[0] or self._people(phrase.end)[0]:
                        continue
                    phrase.end = joint
            break
        return phrase

    def _words(self, at: int) -> tuple[list[str], int]:
        """The words of one noun phrase, articles left out."""
        words: list[str] = []
        determined = False
        end = at
        while end < len(self.tokens) and len(words) < LONGEST:
            word = self.tokens[end].lower()
            if word in DETERMINERS and not words:
                determined = True
            elif word == "of" and words and words[-1] in PARTITIVES | {"pieces", "pairs", "bits"}:
                words = []
            elif self._ends(end, after=bool(words), determined=determined):
                break
            else:
                words.append(word)
            end += 1
        return words, end

    def _ends(self, at: int, *, after: bool, determined: bool) -> bool:
        """Whether a noun phrase ends before a word."""
        word = self.tokens[at].lower()
        if word in STOPS or word in DETERMINERS or not word[0].isalnum() or _PERSON.fullmatch(word):
            return True
        if word in VERBS and (after or not determined) and not self._noun(at, determined=determined):
            return True
        return word.endswith(("ly", "ing", "ed")) and len(word) > 4 and not (determined or labels_for(word))

    def _noun(self, at: int, *, determined: bool) -> bool:
        """Whether a word that may be a verb ends a noun phrase: "the frying pan", "a chopping board" go on."""
        after = self.tokens[at + 1].lower() if at + 1 < len(self.tokens) else "."
        ends = after in STOPS or not after[0].isalnum()
        return determined and ends and not self.tokens[at].lower().endswith(("ed", "ing"))

    @staticmethod
    def _name(phrase: _Phrase, words: Sequence[str]) -> None:
        whole = " ".join(words)
        places = places_in([" ".join(words[-2:])]) & {whole, " ".join(words[-2:]), words[-1]}
        if places:
            phrase.places.append(Key("place", max(places, key=len)))
            return
        name = thing(whole)
        if name is not None and words[-1] not in NO_THING:
            phrase.things.append(Key("thing", name))

    def _say(self, subject: Key, relation: Relation, other: Key) -> None:
        if subject != other and not (relation is Relation.SAYS and other.kind == "place"):
            self.found.append(Said(subject, relation, other))


_TO_PEOPLE: Final = {
    Relation.TALKS: Relation.TALKS,
    Relation.GIVES: Relation.GIVES_TO,
    Relation.LOOKS: Relation.LOOKS,
}
