"""From hits to results: the texts, people and pictures of what was found, and the reads that answers stand on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from edge.memory import index
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import Node
from edge.recall.answer.sightings import Sightings
from edge.recall.question.understand import Question
from edge.recall.records import Level, Result
from edge.recall.search.searcher import Hit
from edge.types.records import (
    Kind,
    ObservationRecord,
    TraceRecord,
    UtteranceRecord,
    mentioned,
    parse_id,
    public_id,
    render,
)

_PAGE = 500
_PICTURED = 32  # the first so many traces of a node are looked through for a picture

_Pictures = list[tuple[int, float]]  # id and UTC POSIX seconds


class Evidence(Sightings):
    """Reads the memory as far as a question may see: what ended at or before `at`."""

    def _visible(self, trace: int, end: float) -> bool:
        """Whether what is in a trace may be used: once the whole trace has ended."""
        if self.at is None:
            return True
        return self.seen(end) and bool(
            self.store.rows("select 1 from trace where id = ? and end <= ?", (trace, self.at))
        )

    def trace(self, record: TraceRecord, score: float) -> Result:
        """A trace as a result."""
        titles = self.store.titles(record.entities)
        return Result(
            id=public_id(Kind.TRACE, record.id),
            level=Level.TRACE,
            start=record.start,
            end=record.end,
            score=score,
            text=record.text or spoken(record),
            camera=record.camera,
            trace=public_id(Kind.TRACE, record.id),
            entities=tuple(public_id(Kind.ENTITY, entity) for entity in record.entities),
            people=tuple(titles[entity] for entity in record.entities if entity in titles),
            key_frame=public_id(Kind.KEY_FRAME, record.key_frames[0]) if record.key_frames else None,
        )

    def traces(self, hits: Sequence[Hit]) -> list[Result]:
        """Hits as traces, in their order."""
        records = {record.id: record for record in self.store.traces_by_id(hit.trace for hit in hits)}
        return [self.trace(records[hit.trace], hit.score) for hit in hits if hit.trace in records]

    def node(self, node: Node, score: float) -> Result:
        """A node of the timeline as a result."""
        if node.level == 0:
            return self.trace(self.store.trace(node.id), score)
        titles = self.store.titles({*node.people, *(who for text in node.sentences for who in mentioned(text))})
        begins = self.store.rows(
            "select t.id, (select min(k.id) from key_frame k where k.trace = t.id) from trace t join camera c on c.id = t.camera"
            " where c.user = ? and c.name = ? and t.start >= ? and t.start <= ? order by t.start, t.id limit ?",
            (self.store.user, node.camera, node.start, node.end, _PICTURED),
        )
        picture = next((frame for _, frame in begins if frame is not None), None)
        people = sorted(node.people, key=lambda who: -node.people[who])
        return Result(
            id=node.item,
            level=Level(node.name),
            start=node.start,
            end=node.end,
            score=score,
            text=render(node.text, lambda who: titles.get(who, "someone")),
            camera=node.camera,
            trace=public_id(Kind.TRACE, begins[0][0]) if begins else "",
            entities=tuple(public_id(Kind.ENTITY, who) for who in people if who in titles),
            people=tuple(titles[who] for who in people if who in titles),
            key_frame=None if picture is None else public_id(Kind.KEY_FRAME, picture),
        )

    def nodes(self, start: float | None, end: float | None, limit: int) -> list[Node]:
        """The nodes of the timeline that cover a span, as far as they may be seen."""
        first, last = start if start is not None else 0.0, end if end is not None else math.inf
        with self.store.reading() as connection:
            return timeline.descend(connection, self.store.user, first, last, limit, at=self.at)

    def nodes_of(self, level: Level, hits: Sequence[Hit]) -> list[Result]:
        """The nodes of a level that hold the hits, best first."""
        scores: dict[int, float] = {}
        with self.store.reading() as connection:
            for hit in hits:
                number = timeline.of_trace(connection, hit.trace, level.value)
                if number is not None:
                    scores[number] = max(hit.score, scores.get(number, hit.score))
            nodes = [timeline.node(connection, self.store.user, number) for number in scores]
        found = [node for node in nodes if node is not None and self.seen(node.end)]
        return [self.node(node, scores[node.id]) for node in found]

    def lines(self, hits: Sequence[Hit], question: Question) -> list[Result]:
        """The most telling unit of each hit."""
        found = []
        for hit, result in zip(hits, self.traces(hits), strict=True):
            at, text = self.unit(hit, question)
            found.append(
                Result(
                    result.id, Level.LINE, at, hit.end, hit.score, text, result.camera, result.trace, result.entities,
                    result.people, self.picture(hit.trace, at),
                )
            )  # fmt: skip
        return found

    def unit(self, hit: Hit, question: Question) -> tuple[float, str]:
        """When and what the most telling unit of a trace says: the nearest by vector, else by words."""
        with self.store.reading() as connection:
            titles = self.store.titles()
            units = index.trace_units(connection, hit.trace, lambda entity: titles.get(entity, "someone"))
            if not units:
                return hit.start, self.store.trace(hit.trace).text
            wanted = {
                term for word in (*question.words, *question.people_words) for term in index.tokens(connection, word)
            }
            overlap = [len(wanted & set(index.tokens(connection, unit.text))) for unit in units]
        nearest = hit.unit - 1 if 0 < hit.unit <= len(units) else 0
        # The nearest by meaning wins among those that hold the same number of the question's words.
        place = max(range(len(units)), key=lambda i: (overlap[i], i == nearest, -i))
        return units[place].at, units[place].text

    def picture(self, trace: int, at: float) -> str | None:
        """The id of the picture of a trace that is nearest to a moment."""
        return _nearest(self._frames([trace]).get(trace, []), at)

    def _frames(self, traces: Iterable[int]) -> dict[int, _Pictures]:
        """The pictures of traces, in one read."""
        sql = "select trace, id, at from key_frame where trace in (select value from json_each(?)) order by id"
        frames: dict[int, _Pictures] = {}
        for trace, frame, at in self.store.rows(sql, (json.dumps(list(traces)),)):
            frames.setdefault(trace, []).append((frame, at))
        return frames

    def observations(
        self,
        labels: Iterable[str] = (),
        entity: int | None = None,
        start: float | None = None,
        end: float | None = None,
        *,
        limit: int = 1,
        newest_first: bool = True,
    ) -> list[ObservationRecord]:
        """Observations of any of the labels, or of an entity, that may be seen."""
        found: list[ObservationRecord] = []
        until = min((bound for bound in (end, self.at) if bound is not None), default=None)
        for label in labels or (None,):
            kept: list[ObservationRecord] = []
            # One that begins before the limit may end after it: read on until there are enough that do not.
            size = limit
            while True:
                page = self.store.observations(
                    entity=entity, label=label, since=start, until=until, limit=size, newest_first=newest_first
                )
                kept = [seen for seen in page if self._visible(seen.trace, seen.end) and not _perhaps(seen)]
                if len(kept) >= limit or len(page) < size:
                    break
                size = max(size * 4, 16)
            found += kept[:limit]
        found.sort(key=lambda seen: (seen.start, seen.id), reverse=newest_first)
        return found[:limit]

    def said(
        self, speakers: Sequence[int], start: float | None, end: float | None, limit: int
    ) -> list[UtteranceRecord]:
        """The latest utterances in a span, newest first."""
        until = min((bound for bound in (end, self.at) if bound is not None), default=None)
        found = [
            words
            for speaker in (speakers or (None,))
            for words in self.store.utterances(speaker=speaker, since=start, until=until, limit=limit)
            if self._visible(words.trace, words.end)
        ]
        return sorted(found, key=lambda words: (words.start, words.id), reverse=True)[:limit]

    def next_to(self, trace: int, step: int) -> TraceRecord | None:
        """The trace before (-1) or after (1) one, on the same camera; None: there is none that may be seen."""
        around = self.store.neighbours(trace, 1)
        place = next(i for i, record in enumerate(around) if record.id == trace) + step
        return around[place] if 0 <= place < len(around) and self.seen(around[place].end) else None

    def labels_of(self, trace: int) -> set[str]:
        """The classes of what is seen in a trace."""
        return {seen.label for seen in self.store.observations(trace=trace, limit=_PAGE) if not _perhaps(seen)}

    def parts(self, level: Level, hits: Sequence[Hit], question: Question, entities: Sequence[int]) -> list[Result]:
        """The utterances, observations or people of the traces that were found, best first.

        A part is as good as its trace, and better the more of the question's words it holds itself.
        """
        with self.store.reading() as connection:
            words = (*question.words, *question.people_words)
            wanted = {term for word in words for term in index.tokens(connection, word)}
            found: list[tuple[int, float, Result]] = []
            records = {record.id: record for record in self.store.traces_by_id(hit.trace for hit in hits)}
            frames = self._frames(records)
            for hit in hits:
                record, pictures = records.get(hit.trace), frames.get(hit.trace, [])
                if record is None:
                    continue
                if level is Level.PERSON:
                    results = self._people_of(record, hit.score, pictures)
                elif level is Level.UTTERANCE:
                    results = [_utterance(one, record, hit.score, pictures) for one in record.utterances]
                else:
                    seen = self.store.observations(trace=hit.trace, newest_first=False, limit=_PAGE)
                    results = [self.of_observation(one, hit.score) for one in seen]
                if entities:
                    allowed = {public_id(Kind.ENTITY, entity) for entity in entities}
                    results = [result for result in results if allowed.intersection(result.entities)]
                for result in results:
                    held = len(wanted.intersection(index.tokens(connection, result.text)))
                    found.append((held, hit.score, result))
        found.sort(key=lambda row: (-row[0], -row[1]))
        return list({result.id: result for _, _, result in reversed(found)}.values())[::-1]

    def _people_of(self, record: TraceRecord, score: float, pictures: _Pictures) -> list[Result]:
        titles = self.store.titles(record.entities)
        return [
            Result(
                id=public_id(Kind.ENTITY, entity),
                level=Level.PERSON,
                start=record.start,
                end=record.end,
                score=score,
                text=titles[entity],
                camera=record.camera,
                trace=public_id(Kind.TRACE, record.id),
                entities=(public_id(Kind.ENTITY, entity),),
                people=(titles[entity],),
                key_frame=_nearest(pictures, record.end),
            )
            for entity in record.entities
            if entity in titles
        ]

    def of_observation(self, seen: ObservationRecord, score: float = 0.0) -> Result:
        """An observation as a result."""
        titles = self.store.titles([seen.entity] if seen.entity is not None else [])
        return Result(
            id=public_id(Kind.OBSERVATION, seen.id),
            level=Level.OBSERVATION,
            start=seen.start,
            end=seen.end,
            score=score,
            text=seen.text,
            camera=seen.camera,
            trace=public_id(Kind.TRACE, seen.trace),
            entities=(public_id(Kind.ENTITY, seen.entity),) if seen.entity is not None else (),
            people=tuple(titles.values()),
            key_frame=self.picture(seen.trace, seen.end),
        )

    def of_utterance(self, words: UtteranceRecord, score: float = 0.0) -> Result:
        """An utterance as a result."""
        record = self.store.trace(words.trace)
        return _utterance(words, record, score, self._frames([words.trace]).get(words.trace, []))

    def of_ids(self, ids: Iterable[str]) -> list[Result]:
        """Moments and utterances by their public ids; what may not be seen is left out."""
        found = []
        for item in ids:
            kind, number = parse_id(item)
            if kind is Kind.TRACE:
                record = self.store.trace(number)
                found += [self.trace(record, 0.0)] if self.seen(record.end) else []
            elif kind is Kind.UTTERANCE:
                rows = self.store.rows("select trace from utterance where id = ?", (number,))
                said = self.store.utterances(trace=int(rows[0][0]), limit=1000) if rows else []
                found += [self.of_utterance(one) for one in said if one.id == number and self.seen(one.end)]
        return found


def _utterance(words: UtteranceRecord, record: TraceRecord, score: float, pictures: _Pictures) -> Result:
    return Result(
        id=public_id(Kind.UTTERANCE, words.id),
        level=Level.UTTERANCE,
        start=words.start,
        end=words.end,
        score=score,
        text=said_by(words),
        camera=record.camera,
        trace=public_id(Kind.TRACE, words.trace),
        entities=(public_id(Kind.ENTITY, words.speaker),) if words.speaker is not None else (),
        people=(words.speaker_name,) if words.speaker is not None and words.speaker_name else (),
        key_frame=_nearest(pictures, words.start),
    )


def _nearest(pictures: _Pictures, at: float) -> str | None:
    """The id of the picture that is nearest to a moment."""
    if not pictures:
        return None
    return public_id(Kind.KEY_FRAME, min(pictures, key=lambda picture: abs(picture[1] - at))[0])


def said_by(words: UtteranceRecord) -> str:
    """An utterance in one line."""
    return f"{words.speaker_name}: {words.text}" if words.speaker_name else words.text


def spoken(record: TraceRecord) -> str:
    """All that is said in a trace."""
    return " ".join(said_by(words) for words in record.utterances)


def _perhaps(seen: ObservationRecord) -> bool:
    """An object that was glimpsed once and not clearly is no evidence for an answer."""
    return seen.text.lower().startswith("perhaps ")
