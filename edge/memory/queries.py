"""Reading what was seen and heard: traces, observations, utterances, decisions, pictures and sources.

Every text that is read has the titles of the people in it put in; words that were said are as they were said.
Spans of time are half-open: [since, until).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import orjson

from edge.errors import NotFoundError
from edge.memory.database import sql
from edge.memory.drafts import boxes_from_json, to_json
from edge.memory.reader import AMONG, UNKNOWN, Reader, Rows
from edge.types.media import CutReason, Mode, SegmentCounts
from edge.types.records import (
    DecisionRecord,
    Kind,
    LineDraft,
    ObservationRecord,
    Outcome,
    Picture,
    SourceRecord,
    TraceRecord,
    UtteranceRecord,
    mentioned,
    public_id,
    render,
)

_TRACE = (
    "select t.id, c.name, t.start, t.end, t.text, t.mode, t.reason, t.counts, t.detail, t.embedder"
    " from trace t join camera c on c.id = t.camera"
)
_OBSERVATION = (
    "select o.id, o.trace, c.name, o.anchor, o.label, o.entity, o.start, o.end, o.text, o.score, o.boxes, o.detail"
    " from observation o join trace t on t.id = o.trace join camera c on c.id = t.camera"
)
_UTTERANCE = (
    "select u.id, u.trace, u.start, u.end, u.text, u.speaker, u.speaker_name, u.confidence, u.voice"
    " from utterance u join trace t on t.id = u.trace join camera c on c.id = t.camera"
)
_DECISION = (
    "select d.id, d.trace, d.anchor, d.outcome, d.entity, d.reason, d.evidence"
    " from decision d join trace t on t.id = d.trace join camera c on c.id = t.camera"
)
_SOURCE = (
    "select s.id, c.name, s.uri, s.fingerprint, s.start, s.duration, s.position, s.next_segment, s.finished"
    " from source s join camera c on c.id = s.camera"
)


class _Where:
    """Conditions with their values, joined by `and`."""

    def __init__(self, user: str) -> None:
        self._parts = ["c.user = ?"]
        self.values: list[object] = [user]

    def add(self, condition: str, *values: object) -> None:
        self._parts.append(condition)
        self.values.extend(values)

    def __str__(self) -> str:
        return "where " + " and ".join(self._parts)


class EventReads(Reader):
    """Reading of what happened."""

    def traces(
        self,
        *,
        since: float | None = None,
        until: float | None = None,
        camera: str | None = None,
        entity: int | None = None,
        label: str | None = None,
        limit: int = 50,
        before_id: int | None = None,
        newest_first: bool = True,
    ) -> list[TraceRecord]:
        """Traces in the order of time, newest first unless asked otherwise.

        Args:
            since: UTC POSIX seconds; those that ended after it.
            until: UTC POSIX seconds; those that started before it.
            camera: its name.
            entity: in which this entity was observed or spoke.
            label: in which something of this class was observed.
            limit: at most so many; the next page is asked for with `before_id` = the id of the last.
            before_id: only those that come after this trace in the order asked for.
            newest_first: False: oldest first.
        """
        where = _Where(self.user)
        if since is not None:
            where.add("t.end > ?", since)
        if until is not None:
            where.add("t.start < ?", until)
        if camera is not None:
            where.add("c.name = ?", camera)
        if entity is not None:
            seen, heard = "select trace from observation where entity = ?", "select trace from utterance where speaker"
            where.add(sql("t.id in (", seen, "union", heard, "= ?)"), entity, entity)
        if label is not None:
            where.add("t.id in (select trace from observation where label = ?)", label)
        if before_id is not None:
            beyond = "<" if newest_first else ">"
            where.add(sql("(t.start, t.id)", beyond, "(select start, id from trace where id = ?)"), before_id)
        with self.reading():
            rows = self.rows(sql(_TRACE, str(where), _ordered("t", newest_first)), (*where.values, limit))
            return self._trace_records(rows)

    def trace(self, number: int) -> TraceRecord:
        """One trace.

        Raises:
            NotFoundError: there is none of this id.
        """
        found = self.traces_by_id([number])
        if not found:
            raise _missing(Kind.TRACE, number, "`reflectworld timeline` lists what is remembered")
        return found[0]

    def traces_by_id(self, numbers: Iterable[int]) -> list[TraceRecord]:
        """Traces in the order of the ids given; unknown ids are left out."""
        wanted = list(dict.fromkeys(numbers))
        with self.reading():
            rows = self.rows(sql(_TRACE, "where +c.user = ? and t.id", AMONG), (self.user, to_json(wanted)))
            records = {record.id: record for record in self._trace_records(rows)}
        return [records[number] for number in wanted if number in records]

    def neighbours(self, number: int, n: int = 1) -> list[TraceRecord]:
        """Up to `n` traces of the same camera before a trace, itself, and up to `n` after it, in the order of time.

        Raises:
            NotFoundError: there is no such trace.
        """
        with self.reading():
            middle = self.trace(number)
            around = []
            for sign, newest_first in (("<", True), (">", False)):
                beside = sql("where c.user = ? and c.name = ? and (t.start, t.id)", sign, "(?, ?)")
                rows = self.rows(
                    sql(_TRACE, beside, _ordered("t", newest_first)),
                    (self.user, middle.camera, middle.start, number, n),
                )
                around.append(self._trace_records(rows))
        before, after = around
        return [*reversed(before), middle, *after]

    def observations(
        self,
        *,
        entity: int | None = None,
        label: str | None = None,
        trace: int | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        newest_first: bool = True,
    ) -> list[ObservationRecord]:
        """Observations in the order of time, newest first unless asked otherwise. Arguments as of `traces`."""
        where = self._where("o", trace=trace, since=since, until=until)
        if entity is not None:
            where.add("o.entity = ?", entity)
        if label is not None:
            where.add("o.label = ?", label)
        with self.reading():
            rows = self.rows(sql(_OBSERVATION, str(where), _ordered("o", newest_first)), (*where.values, limit))
            texts = self._rendered(row[8] for row in rows)
        records = []
        for row, text in zip(rows, texts, strict=True):
            number, of, camera, anchor, name, who, start, end, _, score, boxes, detail = row
            where_seen = boxes_from_json(boxes)
            records.append(
                ObservationRecord(
                    number, of, camera, anchor, name, who, start, end, text, score, where_seen, orjson.loads(detail)
                )
            )
        return records

    def utterances(
        self,
        *,
        speaker: int | None = None,
        trace: int | None = None,
        since: float | None = None,
        until: float | None = None,
        limit: int = 100,
        newest_first: bool = True,
    ) -> list[UtteranceRecord]:
        """Utterances in the order of time, newest first unless asked otherwise. Arguments as of `traces`."""
        where = self._where("u", trace=trace, since=since, until=until)
        if speaker is not None:
            where.add("u.speaker = ?", speaker)
        with self.reading():
            rows = self.rows(sql(_UTTERANCE, str(where), _ordered("u", newest_first)), (*where.values, limit))
            return self._utterance_records(rows)

    def decisions(
        self, *, trace: int | None = None, entity: int | None = None, limit: int = 100
    ) -> list[DecisionRecord]:
        """Decisions about tracks and voices, newest first."""
        where = self._where("d", trace=trace)
        if entity is not None:
            where.add("d.entity = ?", entity)
        with self.reading():
            rows = self.rows(sql(_DECISION, str(where), "order by d.id desc limit ?"), (*where.values, limit))
            reasons = self._rendered(row[5] for row in rows)
        return [
            DecisionRecord(number, in_trace, anchor, Outcome(outcome), who, reason, orjson.loads(evidence))
            for (number, in_trace, anchor, outcome, who, _, evidence), reason in zip(rows, reasons, strict=True)
        ]

    def key_frame(self, number: int) -> Picture:
        """A key frame with its JPEG.

        Raises:
            NotFoundError: there is none of this id, or its picture is gone.
        """
        rows = self.rows(
            "select k.trace, k.at, k.anchors, k.width, k.height from key_frame k"
            " join trace t on t.id = k.trace join camera c on c.id = t.camera where c.user = ? and k.id = ?",
            (self.user, number),
        )
        if not rows:
            raise _missing(Kind.KEY_FRAME, number, "`reflectworld timeline` lists what is remembered")
        trace, at, anchors, width, height = rows[0]
        jpeg = self._jpeg("frame", number)
        if jpeg is None:
            raise NotFoundError(
                public_id(Kind.KEY_FRAME, number),
                f"The picture {public_id(Kind.KEY_FRAME, number)} is no longer stored.",
            )
        return Picture(number, trace, at, jpeg, width, height, tuple(orjson.loads(anchors)))

    def source(self, camera: str, fingerprint: str, start: float) -> SourceRecord | None:
        """How far a source has been remembered; None: never seen."""
        where = "where c.user = ? and c.name = ? and s.fingerprint = ? and s.start = ?"
        rows = self.rows(sql(_SOURCE, where), (self.user, camera, fingerprint, start))
        return _source(rows[0]) if rows else None

    def sources(self) -> list[SourceRecord]:
        """All sources, the one that went on last first."""
        return [
            _source(row)
            for row in self.rows(sql(_SOURCE, "where c.user = ? order by s.updated desc, s.id desc"), (self.user,))
        ]

    def cameras(self) -> list[str]:
        """The names of all cameras, in the order of their first use."""
        return [name for (name,) in self.rows("select name from camera where user = ? order by id", (self.user,))]

    # -- records ------------------------------------------------------------------------------------------------------

    def _where(
        self, table: str, *, trace: int | None = None, since: float | None = None, until: float | None = None
    ) -> _Where:
        where = _Where(self.user)
        if trace is not None:
            where.add("t.id = ?", trace)
        if since is not None:
            where.add(f"{table}.end > ?", since)
        if until is not None:
            where.add(f"{table}.start < ?", until)
        return where

    def _trace_records(self, rows: Rows) -> list[TraceRecord]:
        """Whole records from rows of `_TRACE`, with a fixed number of statements however many there are."""
        wanted = (to_json([row[0] for row in rows]),)
        spoken = self._utterance_records(self.rows(sql(_UTTERANCE, "where u.trace", AMONG, "order by u.id"), wanted))
        heard: dict[int, list[UtteranceRecord]] = {}
        for record in spoken:
            heard.setdefault(record.trace, []).append(record)
        lines = _grouped(self.rows(sql("select trace, at, text from line where trace", AMONG, "order by id"), wanted))
        frames = _grouped(self.rows(sql("select trace, id from key_frame where trace", AMONG, "order by id"), wanted))
        seen = _grouped(
            self.rows(
                sql("select trace, entity from observation where trace", AMONG, "and entity is not null order by id"),
                wanted,
            )
        )
        named = {row[0]: mentioned(" ".join([row[4], *(text for _, text in lines.get(row[0], ()))])) for row in rows}
        titles = self.titles(entity for entities in named.values() for entity in entities)

        def title(entity: int) -> str:
            return titles.get(entity, UNKNOWN)

        records = []
        for number, camera, start, end, text, mode, reason, counts, detail, embedder in rows:
            spoke = [record.speaker for record in heard.get(number, ()) if record.speaker is not None]
            known = [entity for entity in named[number] if entity in titles]
            records.append(
                TraceRecord(
                    id=number,
                    camera=camera,
                    start=start,
                    end=end,
                    text=render(text, title),
                    mode=Mode(mode),
                    reason=CutReason(reason) if reason is not None else None,
                    entities=tuple(dict.fromkeys([*(who for (who,) in seen.get(number, ())), *spoke, *known])),
                    key_frames=tuple(frame for (frame,) in frames.get(number, ())),
                    lines=tuple(LineDraft(at, render(line, title)) for at, line in lines.get(number, ())),
                    utterances=tuple(heard.get(number, ())),
                    counts=SegmentCounts(**orjson.loads(counts)),
                    detail=orjson.loads(detail),
                    embedder=embedder,
                )
            )
        return records

    def _utterance_records(self, rows: Rows) -> list[UtteranceRecord]:
        records = [UtteranceRecord(*row) for row in rows]
        titles = self.titles(record.speaker for record in records if record.speaker is not None)
        return [
            record
            if record.speaker is None
            else replace(record, speaker_name=titles.get(record.speaker, record.speaker_name))
            for record in records
        ]


def _ordered(table: str, newest_first: bool) -> str:
    order = "desc" if newest_first else "asc"
    return f"order by {table}.start {order}, {table}.id {order} limit ?"


def _grouped(rows: Rows) -> dict[Any, list[tuple[Any, ...]]]:
    groups: dict[Any, list[tuple[Any, ...]]] = {}
    for first, *rest in rows:
        groups.setdefault(first, []).append(tuple(rest))
    return groups


def _source(row: tuple[Any, ...]) -> SourceRecord:
    number, camera, uri, fingerprint, start, duration, position, next_segment, finished = row
    return SourceRecord(number, camera, uri, fingerprint, start, duration, position, next_segment, bool(finished))


def _missing(kind: Kind, number: int, remedy: str) -> NotFoundError:
    return NotFoundError(public_id(kind, number), f"The memory holds no {public_id(kind, number)}; {remedy}.")
