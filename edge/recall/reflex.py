"""The reflex path: one pass from a question to an answer drawn from evidence, or to what the memory lacks.

Nothing is said that no stored row says. Each kind of question has its own way; all of them end in `_hold` or `_lack`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from edge.memory import index
from edge.recall.ground import LISTED, OCCASION_GAP_S, Ground
from edge.recall.phrases import listed, merge, quoted, say_span, say_time, sentence
from edge.recall.question import Question, QuestionKind
from edge.recall.records import Answer
from edge.recall.when import Order
from edge.types.records import Kind, public_id
from edge.types.vocabulary import counted, number, plural


class Reflex(Ground):
    """Answers one question."""

    def answer(self, question: Question) -> Answer:
        """Answer, or say what is lacking."""
        missing = self._nothing_there(question)
        if missing:
            return self._lack(question, missing)
        stranger = self._unknown_person(question)
        if stranger:
            return self._lack(question, stranger)
        ways: dict[QuestionKind, Callable[[Question], Answer | None]] = {
            QuestionKind.WHERE: self._where,
            QuestionKind.WHO: self._who,
            QuestionKind.WHEN: self._when,
            QuestionKind.SAID: self._said,
            QuestionKind.COUNT: self._count,
            QuestionKind.EXISTS: self._exists,
            QuestionKind.WHAT: self._what,
        }
        return ways[question.kind](question) or self._by_search(question)

    # -- what is lacking ----------------------------------------------------------------------------------------------

    def _nothing_there(self, question: Question) -> str:
        extent = self._evidence.extent()
        if extent is None:
            return "My memory is empty; begin with `reflectworld watch FILE`."
        when = question.when
        if not when.binds:
            return ""
        where = index.Filter(self._store_user, start=when.start, end=when.end, before=self._evidence.at)
        with self._evidence.store.reading() as connection:
            if len(index.corpus(connection, where).traces):
                return ""
        span = say_span(when.start, when.end, self._now, self._zone)
        first, last = (say_time(at, self._now, self._zone) for at in extent)
        return f"Nothing was recorded {span}. My memory begins {first} and ends {last}."

    def _unknown_person(self, question: Question) -> str:
        if question.people:
            return ""
        for name in question.strangers:
            if name.split()[0] in {"person", "voice"}:
                return f"I know no {name}."
            with self._evidence.store.reading() as connection:
                found = index.postings(connection, index.tokens(connection, name))
                where = index.Filter(self._store_user, before=self._evidence.at)
                visible = set(index.corpus(connection, where).traces.tolist())
            if not any(visible.intersection(part.traces.tolist()) for part in found):
                return f"I know nobody called {name}."
        return ""

    # -- kinds of questions -------------------------------------------------------------------------------------------

    def _where(self, question: Question) -> Answer | None:
        seen = self._last_of(question)
        if seen is None:
            return None
        first = question.when.order is Order.FIRST
        subject = self._subject(question, seen)
        when = say_time(seen.start if first else seen.end, self._now, self._zone)
        way = "first seen" if first else "last seen"
        return self._hold(
            question,
            f"{subject} {way} {when} by the camera {seen.camera}. {seen.text}",
            [self._evidence.of_observation(seen)],
        )

    def _when(self, question: Question) -> Answer | None:
        if question.people and not self._content(question):
            return self._when_person(question)
        seen = self._last_of(question)
        if seen is None:
            return None
        first = question.when.order is Order.FIRST
        at = seen.start if first else seen.end
        way = "first seen" if first else "last seen"
        return self._hold(
            question, f"{self._subject(question, seen)} {way} {say_time(at, self._now, self._zone)}. {seen.text}",
            [self._evidence.of_observation(seen)],
        )  # fmt: skip

    def _when_person(self, question: Question) -> Answer | None:
        first = question.when.order is Order.FIRST
        entity = question.people[0]
        title = self._title(entity)
        seen = self._evidence.observations((), entity, question.when.start, question.when.end, newest_first=not first)
        heard = self._evidence.said([entity], question.when.start, question.when.end, 1)
        if not seen and not heard:
            return self._lack(question, f"I did not see or hear {title}{self._span(question)}.")
        if seen and (first or not heard or seen[0].end >= heard[0].start):
            at = seen[0].start if first else seen[0].end
            text = (
                f"You {'first' if first else 'last'} saw {title} {say_time(at, self._now, self._zone)}. {seen[0].text}"
            )
            return self._hold(question, text, [self._evidence.of_observation(seen[0])])
        said = heard[0]
        text = f"{title} was last heard {say_time(said.start, self._now, self._zone)}: {quoted(said.text)}"
        return self._hold(question, text, [self._evidence.of_utterance(said)])

    def _who(self, question: Question) -> Answer | None:
        if self._content(question) or question.people:
            return None
        start, end = question.when.start, question.when.end
        present = self._evidence.people(start, end)
        others = self._evidence.unrecognised(start, end)
        span = self._span(question)
        if not present:
            if others:
                return self._hold(
                    question,
                    f"{sentence(counted('person', others))[:-1]} whom I do not know{span}.",
                    self._latest(question),
                )
            return self._lack(question, f"I saw nobody{span}.")
        if question.when.order is Order.LAST:
            present = sorted(present, key=lambda item: -max(last for _, last in item[1]))[:1]
        elif question.when.order is Order.FIRST:
            present = present[:1]
        parts, results = [], []
        for entity, spans in present:
            occasions = merge(spans, OCCASION_GAP_S)
            parts.append(f"{self._title(entity)} ({say_time(occasions[-1][1], self._now, self._zone)})")
            results += [self._evidence.of_observation(o) for o in self._evidence.observations((), entity, start, end)]
            if not any(public_id(Kind.ENTITY, entity) in result.entities for result in results):
                results += [self._evidence.of_utterance(u) for u in self._evidence.said([entity], start, end, 1)]
        also = f", and {counted('person', others)} whom I do not know" if others else ""
        return self._hold(
            question, f"{listed(parts)}{also}.", results, cited=[public_id(Kind.ENTITY, e) for e, _ in present]
        )

    def _said(self, question: Question) -> Answer | None:
        topic = question.topic or tuple(word for word in self._content(question) if word not in question.people_words)
        speakers = self._speakers(question)
        titles = listed([self._title(entity) for entity in speakers])
        if not topic:
            found = self._evidence.said(speakers, question.when.start, question.when.end, LISTED)
            if not found:
                return self._lack(question, f"I did not hear {titles or 'anybody'} say anything{self._span(question)}.")
            return self._quote(question, list(reversed(found)))
        about = " ".join(topic)
        found = self._about(question, topic, speakers)
        if not found:
            who = titles or "anybody"
            return self._lack(question, f"I did not hear {who} say anything about {about}{self._span(question)}.")
        return self._quote(question, found[:LISTED])

    def _count(self, question: Question) -> Answer | None:
        text = question.text.lower()
        start, end, span = question.when.start, question.when.end, self._span(question)
        if "people" in text or "persons" in text:
            present = self._evidence.people(start, end)
            others = self._evidence.unrecognised(start, end)
            if not present and not others:
                return self._lack(question, f"I saw nobody{span}.")
            names = listed([self._title(entity) for entity, _ in present])
            also = (
                f" and {number(others)} whom I do not know"
                if others and present
                else " whom I do not know"
                if others
                else ""
            )
            people = number(len(present) or others)
            colon = f": {names}{also}" if present else also
            return self._hold(question, f"{people} {'person' if people == 'one' else 'people'}{span}{colon}.", self._latest(question),
                              cited=[public_id(Kind.ENTITY, entity) for entity, _ in present])  # fmt: skip
        often = any(phrase in text for phrase in ("how often", "times", "how frequently"))
        target = self._target(question)
        if question.people and not target and not self._content(question):
            entity = question.people[0]
            mine = next((spans for known, spans in self._evidence.people(start, end) if known == entity), [])
            return self._occasions(question, f"You saw {self._title(entity)}", mine, entity=entity)
        if not target:
            return None
        seen = self._evidence.observations(target, None, start, end, limit=10_000)
        word = plural(target[0]) if len(target) == 1 else next(t.word for t in question.things if t.labels == target)
        if not seen:
            return self._lack(question, f"I have seen no {word}{span}.")
        if often:
            spans = [(one.start, one.end) for one in seen]
            return self._occasions(question, f"You saw {counted(target[0], 1)}", spans, labels=target)
        most = max({one.trace for one in seen}, key=lambda trace: (sum(one.trace == trace for one in seen), trace))
        together = [one for one in seen if one.trace == most]
        when = say_time(together[0].end, self._now, self._zone)
        amount = counted(target[0], len(together)) if len(target) == 1 else f"{number(len(together))} {word}"
        return self._hold(
            question,
            f"{amount}, {when}; that is the most at one time{span}.",
            [self._evidence.of_observation(one) for one in together],
        )

    def _exists(self, question: Question) -> Answer | None:
        target = self._target(question)
        span = self._span(question)
        if target:
            seen = self._evidence.observations(target, None, question.when.start, question.when.end)
            word = (
                counted(target[0], 1)
                if len(target) == 1
                else next(t.word for t in question.things if t.labels == target)
            )
            if seen:
                when = say_time(seen[0].end, self._now, self._zone)
                return self._hold(
                    question,
                    f"Yes, {counted(seen[0].label, 1)}, last seen {when}. {seen[0].text}",
                    [self._evidence.of_observation(seen[0])],
                )
            told = self._by_search(question, opening="Yes. ", must=self._content(question)[0])
            if told.found:
                return told
            earlier = self._evidence.observations(target) if question.when.binds else []
            before = f" The last one was seen {say_time(earlier[0].end, self._now, self._zone)}." if earlier else ""
            return self._lack(question, f"No, I saw no {word.removeprefix('a ').removeprefix('an ')}{span}.{before}")
        if question.people and not self._content(question):
            answer = self._when_person(question)
            if answer is not None and answer.found:
                return replace(answer, text=f"Yes. {answer.text}")
            return self._lack(question, f"No, I did not see or hear {self._title(question.people[0])}{span}.")
        return self._by_search(question, opening="Yes. ")

    def _what(self, question: Question) -> Answer | None:
        if not self._content(question) and not question.people:
            return self._summary(question)
        return None
