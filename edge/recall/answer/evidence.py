"""From hits to results: the texts, people and pictures of what was found, and the reads that answers stand on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

import apsw
import numpy as np

from edge.memory import Store, index
from edge.memory.tiers import timeline
from edge.memory.tiers.timeline import Node
from edge.recall.answer.occasions import Occasion, Seen, occasions
from edge.recall.question.understand import Question
from edge.recall.records import Level, Result
from edge.recall.search.searcher import Hit
from edge.types.records import (
    EntityKind,
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
_LONGEST_TRACE_S = 3600.0  # what is described by others may be longer than our half minutes

_Pictures = list[tuple[int, float]]  # id and UTC POSIX seconds


class Evidence:
    """Reads the memory as far as a question may see: what ended at or before `at`."""

    def __init__(self, store: Store, at: float | None) -> None:
        self.store = store
        self.at = at

    def seen(self, end: float) -> bool:
        """Whether something that ended then may be used."""
        return self.at is None or end <= self.at

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

    def people(self, start: float | None, end: float | None, entity: int | None = None) -> dict[int, list[Seen]]:
        """Who was seen or heard in a span, and where, in the order of their first sighting."""
        # With a span the way leads over its traces, with an entity over what it did: never over all there is.
        traces = (
            "select id from trace where camera in (select id from camera where user = ?1) and (?4 is null or end <= ?4)"
            " and start > ?6 and start < ?7"
        )
        whose = "entity is not null" if entity is None else "entity = ?5"
        among = f"and trace in ({traces})" if entity is None else ""
        sql = (
            "select s.entity, s.trace, s.start, s.end, s.gone from (select entity, start, end, trace,"  # noqa: S608 - constants
            f" coalesce(json_extract(detail, '$.left'), 0) gone from observation where {whose} and start between ?6 and ?8 {among}"
            " union all select speaker, start, end, trace, 0 from utterance"
            f" where {whose.replace('entity', 'speaker')} and start between ?6 and ?8 {among}"
            ") s join trace t on t.id = s.trace join camera c on c.id = t.camera where +c.user = ?1"
            " and (?2 is null or s.end > ?2) and (?3 is null or s.start < ?3) and (?4 is null or t.end <= ?4)"
            " and (?5 is null or s.entity = ?5) and t.start > ?6 and t.start < ?7 order by s.start, s.trace"
        )
        since = -math.inf if start is None else start - _LONGEST_TRACE_S
        until = math.inf if end is None else end
        found: dict[int, list[Seen]] = {}
        for who, trace, first, last, gone in self.store.rows(
            sql, (self.store.user, start, end, self.at, entity, since, until, min(until, self.at or math.inf))
        ):
            found.setdefault(who, []).append(Seen(trace, first, last, gone=bool(gone)))
        return found

    def lately(self, entity: int, until: float | None, many: int) -> float | None:
        """The time from which on somebody was seen and heard about so many times before another (UTC POSIX seconds).

        None: not so often.
        """
        bound = min(math.inf if until is None else until, math.inf if self.at is None else self.at)
        found = [
            self.store.rows(
                f"select start from {table} where {whose} = ? and start <= ? order by start desc limit 1 offset ?",  # noqa: S608 - constants
                (entity, bound, many),
            )
            for table, whose in (("observation", "entity"), ("utterance", "speaker"))
        ]
        return max((float(rows[0][0]) for rows in found if rows), default=None)

    def occasions(self, sightings: Sequence[Seen]) -> list[Occasion]:
        """Sightings joined where nothing lies between them."""
        if not sightings:
            return []
        start, end = min(seen.start for seen in sightings), max(seen.end for seen in sightings)
        with self.store.reading() as connection:
            between = self._visible_traces(connection, start - 1, end + 1)
        return occasions(sightings, between)

    def next_to(self, trace: int, step: int) -> TraceRecord | None:
        """The trace before (-1) or after (1) one, on the same camera; None: there is none that may be seen."""
        around = self.store.neighbours(trace, 1)
        place = next(i for i, record in enumerate(around) if record.id == trace) + step
        return around[place] if 0 <= place < len(around) and self.seen(around[place].end) else None

    def labels_of(self, trace: int) -> set[str]:
        """The classes of what is seen in a trace."""
        return {seen.label for seen in self.store.observations(trace=trace, limit=_PAGE) if not _perhaps(seen)}

    def kinds(self, entities: Iterable[int]) -> dict[int, EntityKind]:
        """What entities are."""
        wanted = set(entities)
        return {person.id: person.kind for person in self.store.entities() if person.id in wanted}

    def unrecognised(self, start: float | None, end: float | None) -> int:
        """The most people without an identity that were in one trace of a span."""
        rows = self.store.rows(
            "select count(*) from observation o join trace t on t.id = o.trace join camera c on c.id = t.camera"
            " where c.user = ?1 and o.label = 'person' and o.entity is null and (?2 is null or o.end > ?2)"
            " and (?3 is null or o.start < ?3) and (?4 is null or t.end <= ?4) and o.start > ?5 group by o.trace order by 1 desc limit 1",
            (self.store.user, start, end, self.at, -math.inf if start is None else start - _LONGEST_TRACE_S),
        )
        return int(rows[0][0]) if rows else 0

    def extent(self) -> tuple[float, float] | None:
        """From when to when there is anything that may be seen."""
        with self.store.reading() as connection:
            seen = self._visible_traces(connection, None, None)
        return (float(seen.starts.min()), float(seen.ends.max())) if len(seen.traces) else None

    def recorded(self, start: float | None, end: float | None) -> bool:
        """Whether anything of a span may be seen."""
        with self.store.reading() as connection:
            return len(self._visible_traces(connection, start, end).traces) > 0

    def mentioned(self, words: str) -> bool:
        """Whether any of some words occurs in what may be seen."""
        with self.store.reading() as connection:
            seen = self._visible_traces(connection, None, None)
            if not len(seen.traces):
                return False
            first, last = int(seen.traces[0]), int(seen.traces[-1])
            for term in index.tokens(connection, words):
                found, _ = index.documents(connection, term, first, last, len(seen.traces))
                if np.isin(found, seen.traces).any():
                    return True
        return False

    def _visible_traces(self, connection: apsw.Connection, start: float | None, end: float | None) -> index.Corpus:
        all_traces = self.store.columns(connection, None)
        where = index.Filter(self.store.user, start, end, self.at)
        return index.corpus_of(all_traces, index.visible(connection, all_traces, where))

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
