"""When anybody and anything was there: the reads about time that answers stand on, as far as a question may see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import apsw
import numpy as np

from edge.memory import Store, index
from edge.recall.answer.occasions import Occasion, Seen, occasions, runs
from edge.types.records import EntityKind

_LONGEST_TRACE_S = 3600.0  # what is described by others may be longer than our half minutes
_OFTEN = 5000  # sightings of somebody from which on occasions are made of whole moments


class Sightings:
    """Reads of what ended at or before `at`."""

    def __init__(self, store: Store, at: float | None) -> None:
        self.store = store
        self.at = at

    def seen(self, end: float) -> bool:
        """Whether something that ended then may be used."""
        return self.at is None or end <= self.at

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

    def times(self, entity: int, start: float | None, end: float | None) -> list[Occasion]:
        """The occasions on which somebody was seen or heard in a span.

        Of somebody who was seen thousands of times they are made of whole moments: going out of view inside one ends none.
        """
        since = self.lately(entity, end, _OFTEN)
        if since is None or (start is not None and since < start):
            return self.occasions(self.people(start, end, entity).get(entity, []))
        with self.store.reading() as connection:
            columns = self.store.columns(connection, None)
            seen = index.corpus_of(columns, index.visible(connection, columns, self._filter(None, None)))
            hers = self._filter(start, end, (entity,))
            through = index.visible(connection, columns, hers)[seen.rows]
        return [Occasion(begin, until, (first, last)) for begin, until, _, first, last in runs(seen, through)]

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

    def _filter(self, start: float | None, end: float | None, entities: tuple[int, ...] = ()) -> index.Filter:
        return index.Filter(self.store.user, start, end, self.at, entities=entities)

    def _visible_traces(self, connection: apsw.Connection, start: float | None, end: float | None) -> index.Corpus:
        all_traces = self.store.columns(connection, None)
        where = self._filter(start, end)
        return index.corpus_of(all_traces, index.visible(connection, all_traces, where))
