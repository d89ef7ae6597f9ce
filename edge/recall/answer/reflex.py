"""The reflex path: one pass from a question to an answer drawn from evidence, or to what the memory lacks.

Nothing is said that no stored row says. Each kind of question has its own way; all of them end in `_hold` or `_lack`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from edge.memory import index
from edge.recall.answer.ground import LISTED, MATCHED, TOGETHER
from edge.recall.answer.known import Knowing
from edge.recall.answer.occasions import Seen
from edge.recall.answer.phrases import listed, say_span, sentence
from edge.recall.question.understand import SAYING, Question, QuestionKind
from edge.recall.question.when import Order, understand_when
from edge.recall.records import Answer
from edge.types.records import ObservationRecord, TraceRecord
from edge.types.vocabulary import article, counted, everyday, plural

_AROUND = re.compile(r"\b(?P<side>before|after)\s+(?P<what>\w.*)$", re.IGNORECASE)
_OFTEN = re.compile(r"\bhow often\b|\btimes\b|\bhow frequently\b", re.IGNORECASE)
_ANYBODY = re.compile(r"\b(?:any|some)(?:one|body)\b|\bpeople\b", re.IGNORECASE)
_SPEAKING = re.compile(rf"\b(?:{SAYING}|speaking|heard?)\b", re.IGNORECASE)
_PEOPLE = re.compile(r"\b(?:people|persons|men|women)\b", re.IGNORECASE)
_SOMEBODY = re.compile(r"\b(?:(?:any|some)(?:one|body)|person|people)\b", re.IGNORECASE)
_SUMMARY = re.compile(
    r"\b(?:summar(?:y|i[sz]e)|recap|sum up|overview)\b|^\W*(?:please )?(?:tell me|what) about (?:the|my|our) day\b"
    r"|\bhow was (?:the|my|our) day\b",
    re.IGNORECASE,
)
_OF_A_SUMMARY = frozenset(
    ("summary", "summarise", "summarize", "recap", "sum", "overview", "day", "give", "short", "brief")
)
_THE_DAY = re.compile(r"\b(?:the|my|our|this) day\b", re.IGNORECASE)
_EVERYBODY = re.compile(
    r"^\W*(?:please )?(?:list|name|show)\b.*\b(?:everybody|everyone|people|persons)\b", re.IGNORECASE
)
_OBJECTS = re.compile(r"\b(?:things|objects)\b", re.IGNORECASE)
_OF_OBJECTS = frozenset(("list", "name", "show", "things", "objects", "thing", "object", "kinds", "kind"))


class Reflex(Knowing):
    """Answers one question."""

    def answer(self, question: Question) -> Answer:
        """Answer, or say what is lacking."""
        question = self._plainly(question)
        missing = self._nothing_there(question) or self._unknown_person(question)
        if missing:
            return self._lack(question, missing)
        ways: dict[QuestionKind, Callable[[Question], Answer | None]] = {
            QuestionKind.WHERE: self._where,
            QuestionKind.WHO: self._who_or_what,
            QuestionKind.WHEN: self._when,
            QuestionKind.SAID: self._said,
            QuestionKind.COUNT: self._count,
            QuestionKind.EXISTS: self._exists,
            QuestionKind.WHAT: self._who_or_what,
        }
        # What only captions and speech tell of is found and not counted; the answer must not look like a count.
        opening = "I cannot count that. " if question.kind is QuestionKind.COUNT else ""
        return self._from_facts(question) or ways[question.kind](question) or self._by_search(question, opening)

    def _plainly(self, question: Question) -> Question:
        """A wish for a summary or for everybody as the question that it is: “what happened today?”, “who was there?”."""
        if question.kind is not QuestionKind.WHAT:
            return question
        if _SUMMARY.search(question.text):
            when = question.when
            if not when.binds and _THE_DAY.search(question.text):
                today = understand_when("today", self._now, self._zone)
                when = replace(when, start=today.start, end=today.end)
            words = tuple(word for word in question.words if word.lower() not in _OF_A_SUMMARY)
            return replace(question, when=when, words=words)
        if _EVERYBODY.search(question.text):
            words = tuple(word for word in question.words if word.lower() not in {"list", "show"})
            return replace(question, kind=QuestionKind.WHO, words=words)
        return question

    # -- what is lacking ----------------------------------------------------------------------------------------------

    def _nothing_there(self, question: Question) -> str:
        extent = self._evidence.extent()
        if extent is None:
            return "My memory is empty; begin with `reflectworld watch FILE`."
        when = question.when
        if not when.binds:
            return ""
        if self._evidence.recorded(when.start, when.end):
            return ""
        span = say_span(when.start, when.end, self._now, self._zone)
        return f"Nothing was recorded {span}. My memory begins {self._say(extent[0])} and ends {self._say(extent[1])}."

    def _unknown_person(self, question: Question) -> str:
        if question.people:
            return ""
        for name in question.strangers:
            if name.split()[0] in {"person", "voice"}:
                return f"I know no {name}."
            if not self._evidence.mentioned(name):
                return f"I know nobody called {name}."
        return ""

    # -- kinds of questions -------------------------------------------------------------------------------------------

    def _where(self, question: Question) -> Answer | None:
        seen = self._sight(question)
        if seen is None:
            return None
        text = f"{self._seen_when(question, seen)} by the camera {seen.camera}. {seen.text}"
        return self._hold(question, text, [self._evidence.of_observation(seen)])

    def _when(self, question: Question) -> Answer | None:
        if question.people and not self._content(question):
            return self._moves(question) or self._when_person(question)
        seen = self._sight(question)
        if seen is None:
            return None
        return self._hold(
            question, f"{self._seen_when(question, seen)}. {seen.text}", [self._evidence.of_observation(seen)]
        )

    def _who_or_what(self, question: Question) -> Answer | None:
        around = self._around(question)
        if around is not None:
            return around
        if question.kind is QuestionKind.WHO:
            if re.search(rf"\b(?:{SAYING})\b", question.text, re.IGNORECASE) and self._content(question):
                found = self._about(question, self._content(question), ())
                return self._quote(question, found[:LISTED]) if found else None
            return self._who(question)
        if (
            _OBJECTS.search(question.text)
            and not question.people
            and all(word.lower() in _OF_OBJECTS for word in self._content(question))
        ):
            return self._objects(question)
        if not self._content(question):
            return self._doings(question) if question.people else self._summary(question)
        return None

    def _objects(self, question: Question) -> Answer:
        """The kinds of things that were seen lately, or in a span, each with how many at most at one time."""
        start, end = question.when.start, question.when.end
        found = self._evidence.observations((), None, start, end, limit=TOGETHER)
        seen = [one for one in found if one.label and one.label != "person" and one.entity is None]
        if not seen:
            return self._lack(question, f"I recognised no things{self._span(question)}.")
        together: dict[str, Counter[int]] = {}
        for one in seen:
            together.setdefault(one.label, Counter())[one.trace] += 1
        said = listed([counted(label, max(moments.values())) for label, moments in together.items()])
        since = min(one.start for one in seen)
        span = (
            self._span(question) if len(found) < TOGETHER else ""
        )  # of a long span, the latest part was looked through
        span = span or f" since {self._say(since).removeprefix('on ')}"
        latest = {one.label: one for one in reversed(seen)}
        results = [self._evidence.of_observation(one) for one in list(latest.values())[:LISTED]]
        return self._hold(question, f"I saw {said}{span}.", results)

    def _doings(self, question: Question) -> Answer | None:
        """What somebody was seen doing: the latest observations, or the first."""
        newest = question.when.order is not Order.FIRST
        start, end = question.when.start, question.when.end
        seen = self._evidence.observations((), question.people[0], start, end, limit=LISTED, newest_first=newest)
        if not seen:
            return self._when_person(question)
        ordered = sorted(seen, key=lambda one: (one.start, one.id))
        text = " ".join(f"{sentence(self._say(one.start))[:-1]}: {sentence(one.text)}" for one in ordered)
        return self._hold(question, text, [self._evidence.of_observation(one) for one in seen])

    def _said(self, question: Question) -> Answer | None:
        topic = question.topic or tuple(word for word in self._content(question) if word not in question.people_words)
        speakers = self._speakers(question)
        titles = listed([self._title(entity) for entity in speakers]) or "anybody"
        if not topic:
            heard = self._evidence.said(speakers, question.when.start, question.when.end, LISTED)
            if not heard:
                return self._lack(question, f"I did not hear {titles} say anything{self._span(question)}.")
            return self._quote(question, heard[::-1])
        found = self._about(question, topic, speakers)
        if not found:
            about = " ".join(topic)
            return self._lack(question, f"I did not hear {titles} say anything about {about}{self._span(question)}.")
        return self._quote(question, found[:LISTED])

    def _count(self, question: Question) -> Answer | None:
        target = self._target(question)
        if question.people and not target and not self._content(question):
            return self._person_occasions(question)
        if not target and _PEOPLE.search(question.text):
            return self._count_people(question)
        if not target:
            return None
        span = self._span(question)
        seen = self._sights(question, target, limit=10_000)
        if not seen:
            return self._lack(question, f"I have seen no {self._many(question, target)}{span}.")
        if _OFTEN.search(question.text):
            found = self._evidence.occasions([Seen(one.trace, one.start, one.end) for one in seen])
            latest = [
                next(one for one in seen if one.trace == occasion.traces[0]) for occasion in found[-LISTED:][::-1]
            ]
            results = [self._evidence.of_observation(one) for one in latest]
            return self._occasions(question, f"You saw {self._one(question, target)}", found, results)
        by_trace: dict[int, list[ObservationRecord]] = {}
        for one in seen:
            by_trace.setdefault(one.trace, []).append(one)
        together = max(by_trace.values(), key=lambda group: (len(group), group[0].end))
        labels = dict.fromkeys(one.label for one in together)
        amounts = listed([counted(label, sum(one.label == label for one in together)) for label in labels])
        text = f"{amounts}, {self._say(together[0].end)}; that is the most at one time{span}."
        return self._hold(question, text, [self._evidence.of_observation(one) for one in together])

    def _exists(self, question: Question) -> Answer | None:
        target = self._target(question)
        if target:
            return self._thing_exists(question, target)
        if question.people and not self._content(question):
            moved = self._moves(question)
            if moved is not None:
                return moved
            answer = self._when_person(question)
            if answer.found:
                return replace(answer, text=f"Yes. {answer.text}")
            return self._lack(
                question, f"No, I did not see or hear {self._title(question.people[0])}{self._span(question)}."
            )
        if not self._content(question) and _ANYBODY.search(question.text):
            some = self._said(question) if _SPEAKING.search(question.text) else self._who(question)
            if some is not None:
                return replace(some, text=f"{'Yes. ' if some.found else 'No. '}{some.text}")
        return self._by_search(question, opening="Yes. ")

    def _thing_exists(self, question: Question, target: tuple[str, ...]) -> Answer:
        """Whether a thing was seen, with the other things and in the way that the question says."""
        seen = self._sights(question, target, limit=TOGETHER)
        others = [thing for thing in question.things if thing.labels != target]
        fitting = [one for one in seen if not others or self._with(one, [thing.labels for thing in others])]
        named = {part for thing in question.things for part in thing.word.split()}
        more = [word for word in self._content(question) if word.lower() not in named]
        if more:
            fitting = [one for one in fitting if self._says(one, more)]
        if fitting:
            one = fitting[0]
            text = f"Yes, {counted(one.label, 1)}, last seen {self._say(one.end)}. {one.text}"
            return self._hold(question, text, [self._evidence.of_observation(one)])
        told = self._by_search(question, opening="Yes. ", must=self._content(question)[0])
        if told.found:
            return told
        if seen:
            what = listed([*(everyday(thing.labels[0]) for thing in others), *(f"“{word}”" for word in more)]) or "that"
            company = f" with {listed([self._title(who) for who in question.people])}" if question.people else ""
            text = f"My memory does not hold that: I saw {counted(seen[0].label, 1)}{company}, last {self._say(seen[0].end)}"
            return self._lack(question, f"{text}, but nothing says that it was with or of {what}.")
        missing = self._one(question, target).split(" ", 1)[-1]
        apart = self._evidence.observations(target) if question.when.binds or question.people else []
        last = f" The last one was seen {self._say(apart[0].end)}." if apart else ""
        company = f" with {listed([self._title(who) for who in question.people])}" if question.people else ""
        return self._lack(question, f"No, I saw no {missing}{company}{self._span(question)}.{last}")

    def _around(self, question: Question) -> Answer | None:
        """What came next to something: "what did I see after the cat?"; None: that is not what is asked."""
        match = _AROUND.search(question.when.rest.rstrip("?!. "))
        if match is None or question.when.hours is not None:
            return None
        inside = match["what"].lower()
        if any(word.lower() not in inside for word in self._content(question)):
            return None
        step = 1 if match["side"].lower() == "after" else -1
        for trace in self._occurrences(question, inside):
            record = self._evidence.next_to(trace, step)
            if record is not None:
                return self._told(question, record, match["side"].lower(), match["what"])
        return None

    def _occurrences(self, question: Question, what: str) -> list[int]:
        """Traces in which an occasion of something ends (or begins), the latest occasion first."""
        side = -1 if re.search(r"\bafter\b", question.text, re.IGNORECASE) else 0
        target = self._target(question)
        if target:
            seen = self._evidence.observations(target, None, question.when.start, question.when.end, limit=TOGETHER)
            found = self._evidence.occasions([Seen(one.trace, one.start, one.end) for one in seen])
        elif question.people:
            found = self._evidence.times(question.people[0], question.when.start, question.when.end)
        else:
            hits = self._find(replace(question, text=what), 10).hits
            return [hit.trace for hit in hits if hit.matched >= MATCHED]
        return [one.traces[side] for one in reversed(found)]

    def _told(self, question: Question, record: TraceRecord, side: str, what: str) -> Answer:
        result = self._evidence.trace(record, 0.0)
        if question.kind is QuestionKind.WHO:
            who = listed(result.people) or "nobody whom I know"
            return self._hold(question, f"{who}, {self._say(record.start)}. {result.text}", [result])
        return self._hold(
            question, f"{sentence(f'{side} {what}')[:-1]}, {self._say(record.start)}: {result.text}", [result]
        )

    # -- pieces -------------------------------------------------------------------------------------------------------

    def _sight(self, question: Question) -> ObservationRecord | None:
        """The last (or first) observation of the thing or person that is asked for."""
        target = self._target(question)
        if not target and not question.people and not self._content(question) and _SOMEBODY.search(question.text):
            target = ("person",)
        if target:
            return next(iter(self._sights(question, target)), None)
        if question.people and not self._content(question):
            newest = question.when.order is not Order.FIRST
            start, end = question.when.start, question.when.end
            found = self._evidence.observations((), question.people[0], start, end, newest_first=newest)
            return found[0] if found else None
        return None

    def _seen_when(self, question: Question, seen: ObservationRecord) -> str:
        first = question.when.order is Order.FIRST
        at = self._say(seen.start if first else seen.end)
        return f"{self._subject(seen)} {'first' if first else 'last'} seen {at}"

    def _subject(self, seen: ObservationRecord) -> str:
        if seen.entity is not None:
            return f"{self._title(seen.entity)} was"
        several = plural(seen.label) == everyday(seen.label)
        return sentence(f"{counted(seen.label, 1)} {'were' if several else 'was'}")[:-1]

    def _with(self, seen: ObservationRecord, others: list[tuple[str, ...]]) -> bool:
        labels = self._evidence.labels_of(seen.trace)
        return all(labels.intersection(other) for other in others)

    def _says(self, seen: ObservationRecord, words: list[str]) -> bool:
        """Whether the observation's own text holds all the words."""
        with self._evidence.store.reading() as connection:
            held = set(index.tokens(connection, seen.text))
            return all(held.intersection(index.tokens(connection, word)) for word in words)

    def _many(self, question: Question, target: tuple[str, ...]) -> str:
        return plural(target[0]) if len(target) == 1 else self._asked(question, target)

    def _one(self, question: Question, target: tuple[str, ...]) -> str:
        if len(target) == 1:
            return counted(target[0], 1)
        word = self._asked(question, target)
        return f"{article(word)} {word}"

    @staticmethod
    def _asked(question: Question, target: tuple[str, ...]) -> str:
        return next(thing.word for thing in question.things if thing.labels == target)
