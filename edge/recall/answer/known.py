"""Answers from what is known: "where does Anna work?", "what does she like?", "who is Tom?", "who is allergic to nuts?".

A question asks for kinds of facts, by its form; who holds one of these answers it, with what it rests on. What is so now
is told before what was; where nothing of the kind is known, other ways to answer are tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from edge.memory import index
from edge.memory.tiers.facts.runs import COMPANY, COUNTED, NAME, ON_DAYS, PLACE, TIMES
from edge.memory.tiers.facts.said import (
    ALLERGY,
    BIRTHDAY,
    DISLIKES,
    FAVOURITE,
    HOME,
    JOB,
    LIKES,
    ORIGIN,
    RELATIVES,
    SPEAKS,
    STUDIES,
    TRAIT,
    WORK,
)
from edge.recall.answer.ground import LISTED
from edge.recall.answer.phrases import listed
from edge.recall.answer.portrait import Aspect, Fact, known_facts, profile
from edge.recall.answer.presence import Presence
from edge.recall.question.understand import Question, QuestionKind
from edge.recall.records import Answer, Result

_TELLS: Final = 6  # facts of a profile
_GROUNDS: Final = 6  # pieces of evidence of an answer
_DISLIKING: Final = (
    r"(?:dislikes?|hates?|detests?|loathes?|can['’]?t (?:stand|bear)|(?:not|n['’]t) (?:like|love|enjoy))"
)
_LIKING: Final = r"(?:likes?|loves?|enjoys?|prefers?|into|fond of)"
_HABITUAL: Final = r"(?:usual|usually|normally|mostly|often|typically|generally)"
# What forms ask for which kinds, in this order: the first that fits decides.
_FORMS: Final[tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), kinds)
    for pattern, kinds in (
        (r"\bfavou?rite\b", (FAVOURITE,)),
        (r"\ballerg(?:y|ies|ic)\b", (ALLERGY,)),
        (rf"\bwho(?:m)?\b.*\b{_HABITUAL}\b.*\bwith\b|\bwith whom\b.*\b{_HABITUAL}\b|\b{_HABITUAL}\b.*\bwith whom\b", (COMPANY,)),
        (rf"\bwhen\b.*\b{_HABITUAL}\b|\b(?:what|which) (?:times?|days?|hours?)\b.*\b{_HABITUAL}\b", (TIMES, ON_DAYS)),
        (rf"\bwhere\b.*\b{_HABITUAL}\b", (PLACE,)),
        (rf"\b{_DISLIKING}\b", (DISLIKES,)),
        (rf"\b(?:what|which|who|does|do|did)\b.*\b{_LIKING}\b(?!.*\b(?:look|sound|seem)s?\b)|\b(?:hobby|hobbies|preferences?)\b", (LIKES,)),
        (r"\b(?:birthday|when (?:was|is) .*\bborn)\b", (BIRTHDAY,)),
        (r"\bwhere\b.*\b(?:from|born|grow up|grew up)\b|\bwho (?:is|comes|was born) (?:from|in)\b", (ORIGIN,)),
        (r"\b(?:where|who|which (?:city|town|country))\b.*\b(?:lives?|lived|living|residing|resides?|home|at home)\b", (HOME,)),
        (r"\b(?:languages?)\b.*\b(?:speaks?|know)\b|\bwho\b.*\bspeaks?\b (?!about|of|to|with)", (SPEAKS,)),
        (r"\b(?:what|where|who)\b.*\b(?:stud(?:y|ies|ied|ying))\b", (STUDIES,)),
        (r"\b(?:where|who|for whom|which (?:company|firm|shop|place))\b.*\b(?:works?|worked|working|employed)\b(?! out\b)", (WORK, JOB)),
        (r"\b(?:job|profession|occupation|employer|workplace)\b|\bfor a living\b", (JOB, WORK)),
        (r"^\W*what (?:does|do) [^,]* do\W*$", (JOB, WORK)),
    )
)  # fmt: skip
_RELATIVE: Final = re.compile(rf"['’]s? (?P<rel>{'|'.join(sorted(RELATIVES, key=len, reverse=True))})\b", re.IGNORECASE)
_PORTRAIT: Final = re.compile(
    r"^\W*(?:who(?:['’]s| is| are| was)\b|tell me (?:more |everything )?(?:about|of)\b|describe\b"
    r"|what (?:do|did) (?:you|i|we) (?:know|remember) (?:about|of)\b|what is known (?:about|of)\b)",
    re.IGNORECASE,
)
_WAS: Final = re.compile(
    r"\b(?:did|was|were|used to|before|previous(?:ly)?|former(?:ly)?|earlier|once)\b", re.IGNORECASE
)
# Words of a question that its form is made of, and no value.
_FORM: Final = re.compile(
    rf"^(?:{_HABITUAL}|works?|worked|working|employed|lives?|lived|living|residing|resides?|home|from|born|grow|grew|likes?|loves?"
    r"|enjoys?|prefers?|liked|loved|hates?|hated|dislikes?|detests?|allerg(?:y|ies|ic)|birthday|languages?|speaks?|know|knows"
    r"|stud(?:y|ies|ied|ying)|job|profession|occupation|employer|workplace|living|company|firm|favou?rites?|hobby|hobbies"
    r"|preferences?|stand|bear|fond|used|previously|previous|formerly|former|earlier|once|people|person|anyone|anybody|everyone"
    r"|somebody|someone|sort|kind|things?|stuff|tell|describe|remember|called|named?|still|now|currently)$",
    re.IGNORECASE,
)


class Knowing(Presence):
    """The ways to answer from facts."""

    def _from_facts(self, question: Question) -> Answer | None:
        """An answer from what is known; None: that is not what is asked, or nothing of the kind is known."""
        if question.when.binds or question.kind is QuestionKind.COUNT:
            return None  # what was at a time is told by moments
        relative = _RELATIVE.search(question.text)
        if relative is not None and question.people:
            return self._relative(question, RELATIVES[relative["rel"].lower()])
        kinds = next((kinds for pattern, kinds in _FORMS if pattern.search(question.text)), None)
        if question.kind is QuestionKind.SAID and kinds != (SPEAKS,):
            return None  # so is what was said
        if kinds is None:
            whole = question.people and not self._values(question) and _PORTRAIT.search(question.text)
            return self._portrait(question, question.people[0]) if whole else None
        if question.people:
            return self._of(question, kinds)
        if question.kind is QuestionKind.WHO:
            return self._whoever(question, kinds)
        if kinds == (PLACE,) and question.labels:
            facts = [one for label in question.labels for one in self._facts(label=label, kinds=kinds)]
            return self._tell(question, facts[:LISTED])
        return None

    def _of(self, question: Question, kinds: Sequence[str]) -> Answer | None:
        """What is known of somebody, of some kinds."""
        if question.kind is QuestionKind.WHO and kinds != (COMPANY,):
            return None  # "who works with Anna?"
        known = [one for one in self._facts(entity=question.people[0], kinds=None) if _of_kind(one, kinds)]
        values = self._values(question)
        if kinds == (FAVOURITE,):
            known = [one for one in known if self._holds(one.kind, values)]
        elif question.kind is QuestionKind.EXISTS:
            return self._whether(question, kinds, values)
        elif values and not all(self._holds(one.text, values) for one in known):
            return None  # it asks for more than the kind
        now = [one for one in known if one.until is None]
        past = [one for one in known if one.until is not None]
        if _WAS.search(question.text):
            return self._tell(question, [*past, *now][:LISTED])
        return self._tell(question, (now or past)[:LISTED])

    def _whether(self, question: Question, kinds: Sequence[str], values: Sequence[str]) -> Answer | None:
        """Answer “does Anna like jazz?”: yes, no, or nobody knows."""
        turned = {LIKES: DISLIKES, DISLIKES: LIKES}
        asked = set(kinds) | {turned[kind] for kind in kinds if kind in turned}
        if not values:
            return None
        known = self._facts(entity=question.people[0], kinds=None)
        for one in known:
            if one.kind not in asked or not self._holds(one.text, values):
                continue
            yes = one.kind in kinds and one.until is None
            return self._tell(question, [one], "Yes. " if yes else "No. ")
        return None

    def _whoever(self, question: Question, kinds: Sequence[str]) -> Answer | None:
        """Answer “who works at the bakery?”: all of whom that is known."""
        values = self._values(question)
        if not values:
            return None
        only = None if FAVOURITE in kinds else [*kinds, TRAIT]
        known = [one for one in self._facts(kinds=only) if one.about is not None and _of_kind(one, kinds)]
        fitting = [one for one in known if self._holds(one.text, values)]
        now = [one for one in fitting if one.until is None]
        return self._tell(question, (fitting if _WAS.search(question.text) else now or fitting)[:LISTED])

    def _relative(self, question: Question, kind: str) -> Answer | None:
        """Answer “who is Anna's sister?”."""
        return self._tell(question, self._facts(entity=question.people[0], kinds=[kind])[:LISTED])

    def _portrait(self, question: Question, entity: int) -> Answer | None:
        """Somebody, in some sentences: what is known of them, and when they were seen."""
        seen = self._when_person(question)
        if not seen.found:
            return None
        found = profile(self._evidence.store, entity, at=self._evidence.at, zone=self._zone)
        now = [one for one in found.facts if one.until is None and one.kind != NAME]
        order = (Aspect.ATTRIBUTE, Aspect.RELATION, Aspect.PREFERENCE, Aspect.HABIT)
        told = [one for aspect in order for one in now if one.aspect is aspect][:_TELLS]
        parts = listed([one.text for one in told])
        text = f"{self._title(entity)} {parts}. {seen.text}" if told else seen.text
        results = [*seen.evidence, *self._grounds(told)]
        return self._hold(question, text, results, [f"p{entity}", *(one.id for one in told)])

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _facts(
        self, *, entity: int | None = None, label: str | None = None, kinds: Sequence[str] | None = None
    ) -> list[Fact]:
        store, at = self._evidence.store, self._evidence.at
        return known_facts(store, entity=entity, label=label, kinds=kinds, at=at, zone=self._zone)

    def _tell(self, question: Question, facts: Sequence[Fact], opening: str = "") -> Answer | None:
        if not facts:
            return None
        text = " ".join(self._sentence(one) for one in facts)
        return self._hold(question, f"{opening}{text}", self._grounds(facts), [one.id for one in facts])

    def _sentence(self, one: Fact) -> str:
        """A fact with the time that it has: since when, until when, or when it was said last."""
        if one.until is not None:
            since = "" if one.since is None else f"from {self._say(one.since).removeprefix('on ')} "
            return f"{one.sentence[:-1]}: {since}until {self._say(one.until).removeprefix('on ')}, not now."
        if one.kind in COUNTED or one.since is None:
            return one.sentence
        return f"{one.sentence[:-1]} (said {self._say(one.since)})."

    def _grounds(self, facts: Iterable[Fact]) -> list[Result]:
        ids = dict.fromkeys(item for one in facts for item in one.sources)
        return self._evidence.of_ids(list(ids)[:_GROUNDS])

    def _values(self, question: Question) -> list[str]:
        """The content words of a question that are not its form."""
        return [word for word in self._content(question) if not _FORM.match(word)]

    def _holds(self, text: str, values: Sequence[str]) -> bool:
        """Whether a text holds all these words."""
        with self._evidence.store.reading() as connection:
            held = set(index.tokens(connection, text))
            return all(held.intersection(index.tokens(connection, word)) for word in values)


def _of_kind(one: Fact, kinds: Sequence[str]) -> bool:
    if one.kind in kinds or (FAVOURITE in kinds and one.kind.startswith(FAVOURITE)):
        return True
    return one.kind == TRAIT and JOB in kinds and not {WORK} & set(kinds)
