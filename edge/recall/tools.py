"""The tools that look into a memory: the same for people on the command line, for programs over HTTP, and for assistants.

`search`, `get` and `evidence` find things and what they rest on; `who`, `when` and `count` say who somebody is, at which times
something was so, and how often. Each takes `at` (UTC POSIX seconds): what ended later is neither found nor counted; None: now,
with everything.

What a moment holds: somebody who was seen or spoke in it; a thing that a detector saw there or that its words name; a place that
its camera looks at (`scene`) or that its words name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from edge.clock import to_local
from edge.errors import NotFoundError, QuestionError
from edge.memory import Store, index
from edge.memory.tiers import timeline
from edge.memory.tiers.graph import Key, Relation
from edge.memory.tiers.graph import reads as graph
from edge.memory.tiers.scene import reads as scene
from edge.memory.tiers.timeline import Node
from edge.recall.answer.evidence import Evidence
from edge.recall.answer.occasions import runs
from edge.recall.answer.portrait import profile
from edge.recall.question.understand import Question
from edge.recall.records import Company, Count, Filters, Level, Person, Result, Time
from edge.recall.search.searcher import Searcher
from edge.types.records import EntityRecord, Kind, TraceRecord, parse_id, public_id
from edge.types.vocabulary import everyday, labels_for, plural

_COMPANY = 8  # people who are named with whom somebody is
_COMPANIONS = (Relation.WITH, Relation.TALKS)
_OBSERVED = "select distinct o.trace from observation o where o.label in (select value from json_each(?)) and o.text not like 'perhaps %'"
# As retention has it: somebody who has a name, a note, or what a message rests on.
_IMPORTANT = (
    "select p.trace from participation p join entity e on e.id = p.entity where e.user = ?1 and e.name is not null"
    " union select a.trace from alert a where a.user = ?1 and a.outcome <> 'drop' and a.trace is not null"
    " union select t.id from camera c join trace t on t.camera = c.id"
    " where c.user = ?1 and c.name = 'notes' and json_extract(t.detail, '$.note')"
)


@dataclass(frozen=True, slots=True)
class Asking:
    """How a query is understood and searched for: what `Recall` has and tools need."""

    understand: Callable[[str, float | None], Question]  # the query and `at`
    searcher: Callable[[float], Searcher]  # as of a moment
    now: Callable[[], float]  # the present, UTC POSIX seconds


class Tools:
    """Looks into one memory. Thread-safe as the store is."""

    def __init__(self, store: Store, asking: Asking) -> None:
        self.store = store
        self._asking = asking

    # -- finding ------------------------------------------------------------------------------------------------------

    def search(
        self, level: Level, query: str, filters: Filters | None = None, k: int = 10, *, at: float | None = None
    ) -> list[Result]:
        """Find traces, lines, utterances, observations, people or stretches of the timeline, best first.

        Args:
            level: what to find.
            query: words or a question; time words in it bind, people in it are preferred.
            filters: what may be looked at.
            k: how many.
            at: as above.

        Raises:
            QuestionError: the query is empty or too long.
            NotFoundError: the filter names nobody who is known, or a camera that is not.
        """
        asked = self._asking.understand(query, at)
        evidence = Evidence(self.store, at)
        where = self.where(filters or Filters(), at)
        now = self._now(at)
        wide = k if level in {Level.TRACE, Level.LINE} else 4 * k
        hits = self._asking.searcher(now).find(asked, where, now, wide, only_span=True).hits
        if level is Level.TRACE:
            return evidence.traces(hits)
        if level.value in timeline.LEVELS:
            return evidence.nodes_of(level, hits)[:k]
        if level is Level.LINE:
            return evidence.lines(hits, asked)
        return evidence.parts(level, hits, asked, where.entities)[:k]

    def get(self, item: str, neighbours: int = 0, *, at: float | None = None) -> list[Result]:
        """One trace or node of the timeline, with its neighbours in time on the same camera; of another item, its trace.

        Raises:
            NotFoundError: there is no such item, or it ended later.
        """
        evidence = Evidence(self.store, at)
        node = self._node(item, at)
        if node is not None:
            with self.store.reading() as connection:
                around = timeline.beside(connection, self.store.user, node, neighbours)
            return [evidence.node(one, 0.0) for one in around if evidence.seen(one.end)]
        trace = self._trace_of(item, at)
        records: Sequence[TraceRecord] = (
            self.store.neighbours(trace.id, neighbours) if neighbours > 0 else [self.store.trace(trace.id)]
        )
        return [evidence.trace(record, 0.0) for record in records if evidence.seen(record.end)]

    def evidence(self, item: str, *, at: float | None = None) -> list[Result]:
        """What an item rests on: of a trace its observations and utterances, of a node what it was made of, else the trace.

        Raises:
            NotFoundError: there is no such item, or it ended later.
        """
        evidence = Evidence(self.store, at)
        node = self._node(item, at)
        if node is not None:
            with self.store.reading() as connection:
                below = timeline.children(connection, node)
            return [evidence.node(one, 0.0) for one in below]
        trace = self._trace_of(item, at)
        if not item.strip().lower().startswith(Kind.TRACE):
            return [evidence.trace(trace, 0.0)]
        seen = [
            evidence.of_observation(o) for o in self.store.observations(trace=trace.id, newest_first=False, limit=1000)
        ]
        said = [evidence.of_utterance(u) for u in self.store.utterances(trace=trace.id, newest_first=False, limit=1000)]
        return [*seen, *said]

    # -- saying -------------------------------------------------------------------------------------------------------

    def who(self, name: str, *, at: float | None = None) -> list[Person]:
        """Who is meant by a name, with what is known of them; several who may be meant come in the order of their ids.

        Args:
            name: a name, "person 3", "voice 2" or an id such as p3.
            at: as above.

        Raises:
            NotFoundError: nobody is called so, or nobody was met yet.
        """
        found = [self._person(one, at) for one in self._people(name, at)]
        known = [person for person in found if person is not None]
        if not known:
            raise self._nobody(name)
        return known

    def when(
        self, filters: Filters, limit: int = 10, *, oldest_first: bool = False, at: float | None = None
    ) -> list[Time]:
        """The times at which something was so: moments that follow each other are one time.

        Args:
            filters: what must be so, all of it.
            limit: so many, the latest (or the first) ones.
            oldest_first: in the order of time; else the latest come first.
            at: as above.

        Raises:
            NotFoundError: as `search`.
            QuestionError: the filters name nothing.
        """
        found = self._times(filters, at)
        return found[:limit] if oldest_first else found[: -limit - 1 : -1]

    def count(self, filters: Filters, *, at: float | None = None) -> Count:
        """How often something was so. Arguments and errors as of `when`."""
        found = self._times(filters, at)
        hours = {int(one.start // 3600) for one in found}
        return Count(
            times=len(found),
            moments=sum(one.moments for one in found),
            days=len({to_local(hour * 3600.0).date() for hour in hours}),
            seconds=sum(one.end - one.start for one in found),
            first=found[0] if found else None,
            last=found[-1] if found else None,
        )

    # -- filters ------------------------------------------------------------------------------------------------------

    def where(self, filters: Filters, at: float | None) -> index.Filter:
        """The filter of a search.

        Raises:
            NotFoundError: as `search`.
        """
        entities: tuple[int, ...] = ()
        if filters.person is not None:
            entities = tuple(person.id for person in self._people(filters.person, at))
        there = self.store.cameras() if at is None else self._cameras(at)
        if filters.camera is not None and filters.camera not in there:
            cameras = ", ".join(there) or "none yet"
            raise NotFoundError(filters.camera, f"There is no camera “{filters.camera}”; the cameras are: {cameras}.")
        where = index.Filter(
            self.store.user,
            start=filters.since,
            end=filters.until,
            before=at,
            cameras=(filters.camera,) if filters.camera else (),
            entities=entities,
        )
        if filters.thing is None and filters.place is None and not filters.important:
            return where
        with self.store.reading() as connection:
            columns = self.store.columns(connection, None)
            through = index.visible(connection, columns, where)
            if filters.thing is not None:
                through &= self._with_thing(connection, columns, filters.thing)
            if filters.place is not None:
                through &= self._at_place(connection, columns, filters.place, self._now(at))
            if filters.important:
                important = self.store.rows(_IMPORTANT, (self.store.user,))
                through &= np.isin(columns.traces, np.array([trace for (trace,) in important], np.int64))
            traces = tuple(columns.traces[through].tolist())
        return index.Filter(self.store.user, before=at, traces=traces)

    def _cameras(self, at: float) -> list[str]:
        """The cameras of which something had been seen by then."""
        sql = (
            "select c.name from camera c where c.user = ? and exists (select 1 from trace t where t.camera = c.id and t.end <= ?)"
            " order by c.name"
        )
        return [name for (name,) in self.store.rows(sql, (self.store.user, at))]

    def _with_thing(self, connection: apsw.Connection, columns: index.Columns, thing: str) -> NDArray[np.bool_]:
        labels = labels_for(thing) or (thing.strip().lower(),)
        rows = self.store.rows(_OBSERVED, (json.dumps(list(labels)),))
        there = np.isin(columns.traces, np.array([trace for (trace,) in rows], np.int64))
        words = dict.fromkeys([thing, *(word for label in labels for word in (everyday(label), plural(label)))])
        for word in words:
            there |= _told(connection, columns, word)
        return there

    def _at_place(
        self, connection: apsw.Connection, columns: index.Columns, place: str, now: float
    ) -> NDArray[np.bool_]:
        there = _told(connection, columns, place)
        wanted = place.strip().lower()
        for number, name in scene.cameras(connection, self.store.user):
            if wanted in name.lower().replace("_", " ") or scene.kind_of(
                connection, self.store.user, name, now
            ) == wanted:  # fmt: skip
                there |= columns.cameras == number
        return there

    def _times(self, filters: Filters, at: float | None) -> list[Time]:
        if filters == Filters():
            raise QuestionError("Say what to look for: a person, a thing, a place, a camera or a time.")
        where = self.where(filters, at)
        with self.store.reading() as connection:
            columns = self.store.columns(connection, None)
            seen = index.corpus_of(
                columns, index.visible(connection, columns, index.Filter(self.store.user, before=at))
            )
            through = index.visible(connection, columns, where)[seen.rows]
        return [
            Time(start, end, moments, public_id(Kind.TRACE, first), public_id(Kind.TRACE, last))
            for start, end, moments, first, last in runs(seen, through)
        ]

    # -- people -------------------------------------------------------------------------------------------------------

    def _people(self, name: str, at: float | None) -> list[EntityRecord]:
        found = self.store.find_entities(name)
        if found and at is not None:
            met = {number for number, _ in self.store.met(at)}
            found = [one for one in found if one.id in met]
        if not found:
            raise self._nobody(name)
        return found

    @staticmethod
    def _nobody(name: str) -> NotFoundError:
        return NotFoundError(name, f"The memory knows nobody called “{name}”; `reflectworld people` lists everybody.")

    def _person(self, record: EntityRecord, at: float | None) -> Person | None:
        """Somebody, as they were known; None: they were not met yet."""
        with self.store.reading() as connection:
            columns = self.store.columns(connection, None)
            mine = index.Filter(self.store.user, before=at, entities=(record.id,))
            seen = index.corpus_of(columns, index.visible(connection, columns, mine))
            if not len(seen.traces):
                return None
            key = Key.person(record.id)
            nodes = graph.find(connection, self.store.user, [key]).get(key, ())
            bonds = graph.bonds_of(connection, self.store.user, nodes, relations=_COMPANIONS, at=at, most=4 * _COMPANY)
        with_whom: dict[int, int] = {}
        for bond in bonds:
            other = bond.object if bond.subject == key else bond.subject
            if other.kind == "person" and other != key:
                with_whom[int(other.name)] = max(with_whom.get(int(other.name), 0), bond.moments)
        titles = self.store.titles(with_whom)
        company = [
            Company(public_id(Kind.ENTITY, who), titles[who], moments)
            for who, moments in sorted(with_whom.items(), key=lambda one: (-one[1], one[0]))
            if who in titles
        ]
        last = int(seen.ends.argmax())
        return Person(
            id=public_id(Kind.ENTITY, record.id),
            title=record.title,
            kind=record.kind,
            first_seen=float(seen.starts.min()),
            last_seen=float(seen.ends[last]),
            last_moment=public_id(Kind.TRACE, int(seen.traces[last])),
            moments=len(seen.traces),
            facts=tuple(fact for fact in profile(self.store, record.id, at=at).facts if fact.until is None),
            company=tuple(company[:_COMPANY]),
        )

    # -- items --------------------------------------------------------------------------------------------------------

    def _now(self, at: float | None) -> float:
        return self._asking.now() if at is None else at

    def _node(self, item: str, at: float | None) -> Node | None:
        """A node of the timeline; None: the id is of something else."""
        try:
            kind, number = parse_id(item)
        except ValueError:
            return None
        if kind is not Kind.NODE:
            return None
        with self.store.reading() as connection:
            node = timeline.node(connection, self.store.user, number)
        if node is None or not Evidence(self.store, at).seen(node.end):
            raise NotFoundError(
                item, f"There is no {item} in the timeline; `reflectworld timeline --level event` lists what there is."
            )
        return node

    def _trace_of(self, item: str, at: float | None) -> TraceRecord:
        """The trace that an item is or belongs to."""
        try:
            kind, number = parse_id(item)
        except ValueError as error:
            raise NotFoundError(item, f"“{item[:40]}” is not an id; ids look like t12, o7, u9 or k4.") from error
        missing = NotFoundError(
            item, f"There is no {item} in the memory; `reflectworld timeline` lists what is remembered."
        )
        if kind is not Kind.TRACE:
            table = _TABLES.get(kind)
            if kind is Kind.ANSWER:
                raise NotFoundError(item, f"{item} is an answer; look at what it cites.")
            if table is None:
                raise NotFoundError(
                    item, f"{item} is a person; `reflectworld people show {item}` tells where they were seen."
                )
            rows = self.store.rows(f"select trace from {table} where id = ?", (number,))  # noqa: S608 - constants
            if not rows:
                raise missing
            number = int(rows[0][0])
        for trace in self.store.traces_by_id([number]):
            if Evidence(self.store, at).seen(trace.end):
                return trace
        raise missing


_TABLES = {
    Kind.OBSERVATION: "observation",
    Kind.UTTERANCE: "utterance",
    Kind.KEY_FRAME: "key_frame",
    Kind.DECISION: "decision",
}


def _told(connection: apsw.Connection, columns: index.Columns, words: str) -> NDArray[np.bool_]:
    """In which traces the words say all of some words; (n,)."""
    there = np.ones(len(columns.traces), np.bool_)
    terms = index.tokens(connection, words)
    for term in terms:
        rows, _ = index.postings(connection, columns, term, 0, len(columns.traces))
        held = np.zeros(len(there), np.bool_)
        held[rows] = True
        there &= held
    return there if terms else np.zeros(len(there), np.bool_)
