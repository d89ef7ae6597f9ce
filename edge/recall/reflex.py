"""The reflex path: one pass from a question to an answer drawn from evidence, or to what the memory lacks.

Nothing is said that no stored row says. Each kind of question has its own way; all of them end in `_hold` or `_lack`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import tzinfo

from edge.memory import index
from edge.recall.evidence import Evidence, best_cosine
from edge.recall.phrases import listed, merge, quoted, say_span, say_time, sentence, times
from edge.recall.question import Question, QuestionKind
from edge.recall.records import Answer, Result
from edge.recall.search import Found, Hit, Searcher
from edge.recall.when import Order
from edge.settings import RecallSettings
from edge.types.records import Kind, ObservationRecord, UtteranceRecord, public_id
from edge.types.vocabulary import counted, everyday, number, plural

# Sightings with less than this between them are one occasion, s: in two neighbouring segments of at most 30 s each
# (ReflectWorld-MM, 3.2) they can be as far apart.
OCCASION_GAP_S = 60.0
# A trace supports an answer when it holds this share of the question's words by weight, or when its best unit is this near.
# Set on questions written by hand about the demo's photographs, half of them about things that are not there.
MATCHED = 0.6
NEAR = 0.55
LISTED = 4
# Words that say that something was seen or put, not what.
_HANDLING = frozenset(
    """
    see saw seen look looked put puts leave left place placed keep kept lay laid find found lose lost hold held last stand
    stood meet met come came visit visited spot spotted notice noticed appear appeared happen been view sight show showed
    shown visible present there times hear heard
    """.split()  # noqa: SIM905 - a list of words reads better as text
)


class Reflex:
    """Answers one question."""

    def __init__(
        self, searcher: Searcher, evidence: Evidence, settings: RecallSettings, now: float, zone: tzinfo | None
    ) -> None:
        self._searcher = searcher
        self._evidence = evidence
        self._settings = settings
        self._now = now
        self._zone = zone

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

    # -- searching ----------------------------------------------------------------------------------------------------

    def _find(self, question: Question, k: int) -> Found:
        where = index.Filter(self._store_user, before=self._evidence.at, entities=question.people)
        return self._searcher.find(question, where, self._now, k, only_span=True)

    def _by_search(self, question: Question, opening: str = "", *, must: str = "") -> Answer:
        """The most telling lines of the best traces, if they hold enough of the question, and the word `must`."""
        found = self._find(question, 10)
        hits = [hit for hit in found.hits if hit.matched >= MATCHED or hit.cosine >= NEAR]
        if must:
            with self._evidence.store.reading() as connection:
                terms = set(index.tokens(connection, must))
            held = [not terms.isdisjoint(concept.terms) for concept in found.concepts]
            hits = [hit for hit in hits if any(a and b for a, b in zip(hit.holds, held, strict=True))]
        unknown = self._unknown_words(question, found)
        if not hits or (unknown and best_cosine(hits) < NEAR):
            return self._lack(question, self._lacking(question, unknown))
        hits = self._in_order(question, hits)[: self._settings.episodic]
        lines = self._evidence.lines(hits, question)
        shown = lines[:1] if question.kind is not QuestionKind.WHAT else lines[:2]
        parts = [
            f"{sentence(say_time(line.start, self._now, self._zone))[:-1]}: {sentence(line.text)}" for line in shown
        ]
        if question.kind is QuestionKind.WHO and lines[0].people:
            parts.append(f"Those who took part: {listed(lines[0].people)}.")
        return self._hold(question, f"{opening}{' '.join(parts)}", lines)

    def _in_order(self, question: Question, hits: Sequence[Hit]) -> list[Hit]:
        """Of the hits that hold most, the first or last comes first when that was asked."""
        if question.when.order is Order.NONE:
            return list(hits)
        most = max(hit.matched for hit in hits)
        fully = [hit for hit in hits if hit.matched >= most - 1e-9]
        fully.sort(key=lambda hit: hit.start, reverse=question.when.order is Order.LAST)
        return [*fully, *(hit for hit in hits if hit not in fully)]

    def _unknown_words(self, question: Question, found: Found) -> list[str]:
        """Content words of the question that occur nowhere in what may be seen."""
        terms = {
            term
            for concept, known in zip(found.concepts, found.known, strict=True)
            if not known
            for term in concept.terms
        }
        with self._evidence.store.reading() as connection:
            return [word for word in self._content(question) if terms.intersection(index.tokens(connection, word))]

    def _lacking(self, question: Question, unknown: Sequence[str]) -> str:
        if unknown:
            return f"My memory does not hold that: it has nothing about {listed([f'“{word}”' for word in unknown])}{self._span(question)}."
        return "My memory does not hold that."

    def _about(self, question: Question, topic: Sequence[str], speakers: Sequence[int]) -> list[UtteranceRecord]:
        """What was said with words of the topic, most of them first, newest first among equals."""
        found = self._find(question, 30)
        with self._evidence.store.reading() as connection:
            wanted = {term for word in topic for term in index.tokens(connection, word)}
            scored = []
            for hit in found.hits:
                for said in self._evidence.store.utterances(trace=hit.trace):
                    held = len(wanted.intersection(index.tokens(connection, said.text)))
                    if held and (not speakers or said.speaker in speakers) and self._evidence.seen(said.end):
                        scored.append((held, said.start, said.id, said))
        most = max((held for held, _, _, _ in scored), default=0)
        return [said for held, _, _, said in sorted(scored, key=lambda row: row[:3], reverse=True) if held >= most]

    # -- pieces -------------------------------------------------------------------------------------------------------

    @property
    def _store_user(self) -> str:
        return self._evidence.store.user

    def _content(self, question: Question) -> list[str]:
        return [word for word in question.words if word.lower() not in _HANDLING]

    def _target(self, question: Question) -> tuple[str, ...]:
        """The detector's classes of what is asked for: of the first content word, if it is a thing."""
        for word in self._content(question):
            for thing in question.things:
                if word.lower() in thing.word.split():
                    return thing.labels
            return ()
        return ()

    def _last_of(self, question: Question) -> ObservationRecord | None:
        """The last (or first) observation of the thing or person that is asked for."""
        target = self._target(question)
        entity = question.people[0] if question.people and not self._content(question) else None
        if not target and entity is None:
            return None
        newest = question.when.order is not Order.FIRST
        seen = self._evidence.observations(target, entity, question.when.start, question.when.end, newest_first=newest)
        return seen[0] if seen else None

    def _subject(self, question: Question, seen: ObservationRecord) -> str:
        if seen.entity is not None:
            return f"{self._title(seen.entity)} was"
        several = plural(seen.label) == everyday(seen.label)
        return sentence(f"{counted(seen.label, 1)} {'were' if several else 'was'}")[:-1]

    def _speakers(self, question: Question) -> tuple[int, ...]:
        """Who is asked about as a speaker: those named before the verb of saying, else anybody."""
        return question.people[:1] if question.people and "talk about" not in question.text.lower() else ()

    def _title(self, entity: int) -> str:
        return self._evidence.store.titles([entity]).get(entity, "someone")

    def _span(self, question: Question) -> str:
        when = question.when
        return f" {say_span(when.start, when.end, self._now, self._zone)}" if when.binds else ""

    def _latest(self, question: Question) -> list[Result]:
        until = min((b for b in (question.when.end, self._evidence.at) if b is not None), default=None)
        records = self._evidence.store.traces(since=question.when.start, until=until, limit=LISTED)
        return [self._evidence.trace(record, 0.0) for record in records if self._evidence.seen(record.end)]

    def _summary(self, question: Question) -> Answer:
        """A few traces of the span, spread over it."""
        until = min((b for b in (question.when.end, self._evidence.at) if b is not None), default=None)
        records = self._evidence.store.traces(since=question.when.start, until=until, limit=500)
        records = [record for record in reversed(records) if self._evidence.seen(record.end)]
        if not records:
            return self._lack(question, f"Nothing was recorded{self._span(question)}.")
        if not question.when.binds:
            records = records[-LISTED:]
        step = max(len(records) / LISTED, 1.0)
        chosen = [records[int(place * step)] for place in range(min(LISTED, len(records)))]
        results = [self._evidence.trace(record, 0.0) for record in chosen]
        text = " ".join(
            f"{sentence(say_time(r.start, self._now, self._zone))[:-1]}: {sentence(r.text)}" for r in results
        )
        return self._hold(question, text, results)

    def _quote(self, question: Question, found: Sequence[UtteranceRecord]) -> Answer:
        parts = [
            f"{said.speaker_name or 'Somebody'} said {say_time(said.start, self._now, self._zone)}: {quoted(said.text)}"
            for said in found
        ]
        return self._hold(
            question, " ".join(sentence(part) for part in parts), [self._evidence.of_utterance(said) for said in found]
        )

    def _occasions(
        self,
        question: Question,
        opening: str,
        spans: Sequence[tuple[float, float]],
        *,
        entity: int | None = None,
        labels: tuple[str, ...] = (),
    ) -> Answer:
        occasions = merge(spans, OCCASION_GAP_S)
        if not occasions:
            return self._lack(question, f"Never{self._span(question)}, as far as I remember.")
        shown = [say_time(start, self._now, self._zone) for start, _ in occasions[-LISTED:]]
        many = f", lately {listed(shown)}" if len(occasions) > LISTED else f": {listed(shown)}"
        seen = self._evidence.observations(labels, entity, question.when.start, question.when.end, limit=LISTED)
        results = [self._evidence.of_observation(one) for one in seen]
        if not results and entity is not None:
            results = [
                self._evidence.of_utterance(u)
                for u in self._evidence.said([entity], question.when.start, question.when.end, LISTED)
            ]
        return self._hold(question, f"{opening} {times(len(occasions))}{self._span(question)}{many}.", results)

    def _hold(self, question: Question, text: str, results: Sequence[Result], cited: Sequence[str] = ()) -> Answer:
        best = results[0] if results else None
        ids = dict.fromkeys([*cited, *(item for result in results for item in (result.id, result.trace))])
        picture = next((result.key_frame for result in results if result.key_frame), None)
        return Answer(
            question=question.text,
            kind=question.kind,
            text=sentence(text),
            found=True,
            start=best.start if best else None,
            end=best.end if best else None,
            people=tuple(dict.fromkeys(title for result in results for title in result.people)),
            camera=best.camera if best else None,
            key_frame=picture,
            cited=tuple([*ids, picture] if picture else ids),
            evidence=tuple(results),
        )

    def _lack(self, question: Question, text: str) -> Answer:
        return Answer(question=question.text, kind=question.kind, text=sentence(text), found=False)
