"""What all kinds of answers stand on: finding, quoting, counting, and saying what is lacking."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from edge.clock import to_local
from edge.memory import index
from edge.memory.tiers.timeline import Node
from edge.memory.tiers.timeline.extract import Sentence, extract
from edge.recall.answer.evidence import Evidence, spoken
from edge.recall.answer.occasions import Occasion
from edge.recall.answer.phrases import listed, quoted, say_days, say_span, say_time, sentence, times
from edge.recall.question.understand import Question, QuestionKind, rarity
from edge.recall.question.when import Order
from edge.recall.records import Answer, Result
from edge.recall.search.searcher import Found, Hit, Searcher
from edge.settings import RecallSettings
from edge.types.records import ObservationRecord, UtteranceRecord, mentioned, render
from edge.types.vocabulary import tells_nothing

# A trace supports an answer when it holds this share of the question's words by weight, or when its best unit is this near
# and no word of the question is foreign to the memory. Set on 40 questions written by hand about a week of somebody's life:
# of 20 about what is there, 19 are answered; of 20 about what is not, none.
MATCHED = 0.75
NEAR = 0.65
HINTED = 0.5  # less than that, and what is nearest is not worth telling
LISTED = 4
TOLD = 6  # nodes of the timeline that tell of a span
TOLD_WORDS = 120  # in about so many words
TOGETHER = 200  # the latest so many sightings of a thing are looked through for company
SHORT_S = 1800.0  # of a memory shorter than this, times are said to the second
# Words that say that something was seen or put, not what.
_HANDLING = frozenset(
    """
    see saw seen look looked put puts leave leaves left place placed keep kept lay laid find found lose lost hold held last
    stand stood meet met come came visit visited spot spotted notice noticed appear appeared disappear disappeared reappear
    reappeared happen been view sight show showed shown visible present there times hear heard return returns returned arrive
    arrived enter entered back again went go going walk walked video clip picture pictures frame camera footage recording memory
    scene spoke speak speaking
    """.split()  # noqa: SIM905 - a list of words reads better as text
)


class Ground:
    """Draws answers from evidence."""

    def __init__(
        self, searcher: Searcher, evidence: Evidence, settings: RecallSettings, now: float, zone: tzinfo | None
    ) -> None:
        self._searcher = searcher
        self._evidence = evidence
        self._settings = settings
        self._now = now
        self._zone = zone
        self._short: bool | None = None

    # -- searching ----------------------------------------------------------------------------------------------------

    def _find(self, question: Question, k: int) -> Found:
        where = index.Filter(self._store_user, before=self._evidence.at, entities=question.people)
        return self._searcher.find(question, where, self._now, k, only_span=True)

    def _by_search(self, question: Question, opening: str = "", *, must: str = "") -> Answer:
        """The most telling lines of the best traces, if they hold enough of the question, and the word `must`."""
        found = self._find(question, 10)
        unknown = self._unknown_words(question, found)
        hits = [hit for hit in found.hits if hit.matched >= MATCHED or (hit.cosine >= NEAR and not unknown)]
        if question.kind is QuestionKind.EXISTS:  # "yes" claims all of it
            hits = [hit for hit in hits if hit.matched >= MATCHED]
        if must:
            with self._evidence.store.reading() as connection:
                terms = set(index.tokens(connection, must))
            held = [not terms.isdisjoint(concept.terms) for concept in found.concepts]
            hits = [hit for hit in hits if any(a and b for a, b in zip(hit.holds, held, strict=True))]
        if not hits:
            return self._lack(question, self._lacking(question, found, unknown))
        hits = self._in_order(question, hits)[: self._settings.episodic]
        lines = self._evidence.lines(hits, question)
        shown = lines[:1] if question.kind is not QuestionKind.WHAT else lines[:2]
        parts = [f"{sentence(self._say(line.start))[:-1]}: {sentence(line.text)}" for line in shown]
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

    def _lacking(self, question: Question, found: Found, unknown: Sequence[str]) -> str:
        if unknown:
            words = listed([f"“{word}”" for word in unknown])
            return f"My memory does not hold that: it has nothing about {words}{self._span(question)}."
        near = [hit for hit in found.hits[:1] if hit.matched >= HINTED]
        if not near:
            return "My memory does not hold that."
        at, text = self._evidence.unit(near[0], question)
        when = self._say(at).removeprefix("on ")
        return f"My memory does not hold that. The nearest it has is from {when}: {sentence(text)}"

    def _about(self, question: Question, topic: Sequence[str], speakers: Sequence[int]) -> list[UtteranceRecord]:
        """What was said with words of the topic, most of them first, newest first among equals."""
        found = self._find(question, 30)
        with self._evidence.store.reading() as connection:
            wanted = {word: set(index.tokens(connection, word)) for word in topic}
            weights = {word: rarity(word) for word in topic}
            scored = []
            for hit in found.hits:
                for said in self._evidence.store.utterances(trace=hit.trace):
                    words = set(index.tokens(connection, said.text))
                    held = sum(weights[word] for word in topic if not words.isdisjoint(wanted[word]))
                    if held and (not speakers or said.speaker in speakers) and self._evidence.seen(said.end):
                        scored.append((held, said.start, said.id, said))
        most = max((held for held, _, _, _ in scored), default=0.0)
        if most < MATCHED * sum(weights.values()):
            return []
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

    def _sights(self, question: Question, target: Sequence[str], *, limit: int = 1) -> list[ObservationRecord]:
        """Observations of the things asked for, in the order asked for, together with the people who are named."""
        newest = question.when.order is not Order.FIRST
        start, end = question.when.start, question.when.end
        if not question.people:
            return self._evidence.observations(target, None, start, end, limit=limit, newest_first=newest)
        seen = self._evidence.observations(target, None, start, end, limit=TOGETHER, newest_first=newest)
        records = self._evidence.store.traces_by_id(dict.fromkeys(one.trace for one in seen))
        there = {record.id for record in records if set(question.people) <= set(record.entities)}
        return [one for one in seen if one.trace in there][:limit]

    def _speakers(self, question: Question) -> tuple[int, ...]:
        """Who is asked about as a speaker: those named before the verb of saying, else anybody."""
        return question.people[:1] if question.people and "talk about" not in question.text.lower() else ()

    def _say(self, at: float) -> str:
        """A moment; to the second where all that is remembered is short."""
        if self._short is None:
            extent = self._evidence.extent()
            self._short = extent is not None and extent[1] - extent[0] < SHORT_S
        return say_time(at, self._now, self._zone, seconds=self._short)

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
        """The span told by the nodes of the timeline that cover it; of a short one, by a few of its traces."""
        nodes = self._evidence.nodes(question.when.start, question.when.end, TOLD) if question.when.binds else []
        if sum(node.traces for node in nodes) > LISTED:
            return self._hold(question, self._story(nodes), [self._evidence.node(node, 0.0) for node in nodes])
        until = min((b for b in (question.when.end, self._evidence.at) if b is not None), default=None)
        newest = question.when.order is not Order.FIRST
        records = self._evidence.store.traces(since=question.when.start, until=until, limit=500, newest_first=newest)
        records = [record for record in records[:: -1 if newest else 1] if self._evidence.seen(record.end)]
        if not records:
            return self._lack(question, f"Nothing was recorded{self._span(question)}.")
        records = [record for record in records if not tells_nothing(record.text or spoken(record))] or records
        if not question.when.binds:
            records = records[-LISTED:] if newest else records[:LISTED]
        step = max(len(records) / LISTED, 1.0)
        chosen = [records[int(place * step)] for place in range(min(LISTED, len(records)))]
        results = [self._evidence.trace(record, 0.0) for record in chosen]
        text = " ".join(f"{sentence(self._say(r.start))[:-1]}: {sentence(r.text)}" for r in results)
        return self._hold(question, text, results)

    def _story(self, nodes: Sequence[Node]) -> str:
        """What some nodes tell, in short: the most telling sentences of each after its time."""
        titles = self._evidence.store.titles({who for node in nodes for who in mentioned(node.text)})
        words = max(TOLD_WORDS // len(nodes), TOLD_WORDS // TOLD)
        parts = []
        for node in nodes:
            told = " ".join(extract((Sentence(node.start, one) for one in node.sentences), words))
            same_day = to_local(node.start, self._zone).date() == to_local(node.end, self._zone).date()
            when = self._say(node.start) if same_day else say_days(node.start, node.end, self._zone)
            parts.append(f"{sentence(when)[:-1]}: {sentence(render(told, lambda who: titles.get(who, 'someone')))}")
        return " ".join(parts)

    def _quote(self, question: Question, found: Sequence[UtteranceRecord]) -> Answer:
        parts = [
            f"{said.speaker_name or 'Somebody'} said {self._say(said.start)}: {quoted(said.text)}" for said in found
        ]
        return self._hold(
            question, " ".join(sentence(part) for part in parts), [self._evidence.of_utterance(said) for said in found]
        )

    def _occasions(
        self, question: Question, opening: str, found: Sequence[Occasion], results: Sequence[Result]
    ) -> Answer:
        if not found:
            return self._lack(question, f"Never{self._span(question)}, as far as I remember.")
        shown = [self._say(occasion.start) for occasion in found[-LISTED:]]
        many = f", lately {listed(shown)}" if len(found) > LISTED else f": {listed(shown)}"
        return self._hold(question, f"{opening} {times(len(found))}{self._span(question)}{many}.", results)

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
