"""Answers about people: who was there, when somebody was seen, came, left and came back, and how many there were."""

from __future__ import annotations

import re
from collections.abc import Iterable

from edge.recall.answer.ground import LISTED, Ground
from edge.recall.answer.occasions import Occasion
from edge.recall.answer.phrases import listed, quoted, sentence
from edge.recall.question.understand import Question, QuestionKind
from edge.recall.question.when import Order
from edge.recall.records import Answer, Result
from edge.types.records import EntityKind, Kind, public_id
from edge.types.vocabulary import counted, number

_RETURNED = re.compile(
    r"\b(?:c[oa]mes? back|g[oe]t back|w?ent back|return(?:ed|s)?|reappear(?:ed)?|seen? again|back again)\b",
    re.IGNORECASE,
)
_LEFT = re.compile(
    r"\b(?:leaves?|left|go(?:es)? away|went away|go(?:es)? out|went out|disappear(?:ed)?)\b", re.IGNORECASE
)
_CAME = re.compile(r"\b(?:comes?|came|arrived?|enter(?:ed)?|appear(?:ed)?)\b", re.IGNORECASE)
# How descriptions say that somebody left.
_GONE = re.compile(
    r"\b(?:out of view|left the|leaves the|walked away|went away|went out|is leaving|left\b(?=[.,]))", re.IGNORECASE
)
_MOVES = 1000  # the latest so many sightings of a person are looked through for coming and coming back
_LOOKED_THROUGH = 200  # the latest so many observations of a person are looked through for their leaving


class Presence(Ground):
    """The ways to answer about people."""

    def _when_person(self, question: Question) -> Answer:
        """When somebody was seen or heard, in the order asked for."""
        first = question.when.order is Order.FIRST
        entity = question.people[0]
        title = self._title(entity)
        start, end = question.when.start, question.when.end
        seen = self._evidence.observations((), entity, start, end, newest_first=not first)
        heard = self._evidence.said([entity], start, end, 1)
        if not seen and not heard:
            return self._lack(question, f"I did not see or hear {title}{self._span(question)}.")
        if seen and (first or not heard or seen[0].end >= heard[0].start):
            at = seen[0].start if first else seen[0].end
            text = f"You {'first' if first else 'last'} saw {title} {self._say(at)}. {seen[0].text}"
            return self._hold(question, text, [self._evidence.of_observation(seen[0])])
        text = f"{title} was last heard {self._say(heard[0].start)}: {quoted(heard[0].text)}"
        return self._hold(question, text, [self._evidence.of_utterance(heard[0])])

    def _moves(self, question: Question) -> Answer | None:
        """Coming, leaving and coming back; None: the question is not about that."""
        text, entity = question.when.rest, question.people[0]
        if not (_RETURNED.search(text) or _LEFT.search(text) or _CAME.search(text)):
            return None
        first = question.when.order is Order.FIRST
        since = None if first else self._evidence.lately(entity, question.when.end, _MOVES)
        found = self._evidence.occasions(self._evidence.people(since, None, entity).get(entity, []))
        inside = [place for place, one in enumerate(found) if self._in_span(question, one.start)]
        yes = "Yes. " if question.kind is QuestionKind.EXISTS else ""
        title = self._title(entity)
        if _RETURNED.search(text):
            again = [place for place in inside if place]
            if not again:
                once = f"; I saw {title} only once, {self._say(found[0].start)}" if found else ""
                return self._lack(question, f"I did not see {title} come back{self._span(question)}{once}.")
            place = again[0] if first else again[-1]
            chosen, before = found[place], found[place - 1]
            said = f"{yes}{title} came back {self._say(chosen.start)}, last seen before that {self._say(before.end)}."
            return self._hold(question, said, self._in_trace(entity, chosen.traces[0]))
        if _LEFT.search(text):
            return self._leaving(question, entity, title, yes)
        if not inside:
            return None
        chosen = found[inside[0] if first else inside[-1]]
        return self._hold(
            question, f"{yes}{title} came {self._say(chosen.start)}.", self._in_trace(entity, chosen.traces[0])
        )

    def _leaving(self, question: Question, entity: int, title: str, yes: str) -> Answer:
        seen = self._evidence.observations((), entity, question.when.start, question.when.end, limit=_LOOKED_THROUGH)
        gone = [one for one in seen if _GONE.search(one.text)]
        if gone:
            chosen = gone[-1] if question.when.order is Order.FIRST else gone[0]
            text = f"{yes}{title} left {self._say(chosen.end)}. {chosen.text}"
            return self._hold(question, text, [self._evidence.of_observation(chosen)])
        last = f" {title} was last seen {self._say(seen[0].end)}." if seen else ""
        return self._lack(question, f"I did not see {title} leave{self._span(question)}.{last}")

    def _in_trace(self, entity: int, trace: int) -> list[Result]:
        seen = self._evidence.store.observations(entity=entity, trace=trace, limit=1, newest_first=False)
        if seen:
            return [self._evidence.of_observation(seen[0])]
        return [self._evidence.trace(self._evidence.store.trace(trace), 0.0)]

    def _in_span(self, question: Question, at: float) -> bool:
        when = question.when
        return (when.start is None or at >= when.start) and (when.end is None or at < when.end)

    def _who(self, question: Question) -> Answer | None:
        """Everybody in a span; None: more is asked than who was there."""
        if self._content(question) or question.people:
            return None
        start, end = question.when.start, question.when.end
        present = self._evidence.people(start, end)
        others = self._evidence.unrecognised(start, end)
        if _RETURNED.search(question.when.rest):
            present = {
                who: sightings for who, sightings in present.items() if len(self._evidence.occasions(sightings)) > 1
            }
            others = 0  # whoever is not known is not known again
        faces, voices = self._parted(present)
        if not present:
            if others:
                unknown = sentence(counted("person", others))[:-1]
                return self._hold(
                    question, f"{unknown} whom I do not know{self._span(question)}.", self._latest(question)
                )
            back = " come back" if _RETURNED.search(question.when.rest) else ""
            return self._lack(question, f"I saw nobody{back}{self._span(question)}.")
        last = {who: max(seen.end for seen in sightings) for who, sightings in present.items()}
        if question.when.order is Order.LAST:
            faces, voices = [max(faces or voices, key=lambda who: last[who])], []
        elif question.when.order is Order.FIRST:
            faces, voices = (faces or voices)[:1], []
        parts = [f"{self._title(who)} ({self._say(last[who])})" for who in faces]
        if others and question.when.order is Order.NONE:
            parts.append(f"{counted('person', others)} whom I do not know")
        heard = listed([f"{self._title(who)} ({self._say(last[who])})" for who in voices])
        if heard:
            heard = f"; {heard} {'was' if len(voices) == 1 else 'were'} heard" if parts else f"I heard {heard}"
        shown = [*faces, *voices]
        results = [result for who in shown for result in self._in_trace(who, present[who][-1].trace)]
        cited = [public_id(Kind.ENTITY, who) for who in shown]
        return self._hold(question, f"{listed(parts)}{heard}.", results, cited)

    def _count_people(self, question: Question) -> Answer:
        start, end, span = question.when.start, question.when.end, self._span(question)
        faces, voices = self._parted(self._evidence.people(start, end))
        others = self._evidence.unrecognised(start, end)
        if not faces and not others:
            heard = f" I heard {listed([self._title(who) for who in voices])}." if voices else ""
            return self._lack(question, f"I saw nobody{span}.{heard}")
        total = len(faces) or others
        text = f"{number(total)} {'person' if total == 1 else 'people'}{span}"
        if faces:
            text += f": {listed([self._title(who) for who in faces])}"
            text += (
                f"; besides {'them' if total > 1 else 'that'}, {counted('person', others)} whom I do not know"
                if others
                else ""
            )
        else:
            text += " whom I do not know, the most at one time"
        text += f". I heard {listed([self._title(who) for who in voices])}, too" if voices else ""
        return self._hold(question, f"{text}.", self._latest(question), [public_id(Kind.ENTITY, who) for who in faces])

    def _person_occasions(self, question: Question) -> Answer:
        entity = question.people[0]
        found: list[Occasion] = self._evidence.times(entity, question.when.start, question.when.end)
        results = [result for one in found[-LISTED:] for result in self._in_trace(entity, one.traces[0])]
        verb = "heard" if self._evidence.kinds([entity]).get(entity) is EntityKind.VOICE else "saw"
        return self._occasions(question, f"You {verb} {self._title(entity)}", found, results[::-1])

    def _parted(self, present: Iterable[int]) -> tuple[list[int], list[int]]:
        """People who were seen, and voices that have no face."""
        ids = list(present)
        kinds = self._evidence.kinds(ids)
        voices = [who for who in ids if kinds.get(who) is EntityKind.VOICE]
        return [who for who in ids if who not in voices], voices
