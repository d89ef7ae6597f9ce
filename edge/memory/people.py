"""Reading who is known: entities, their names, galleries and sightings, and evidence that still waits."""

from __future__ import annotations

from typing import Any

from edge.errors import NotFoundError
from edge.memory import names
from edge.memory.database import sql
from edge.memory.drafts import vector_from_blob
from edge.memory.reader import LARGEST_ID, Reader
from edge.types.records import (
    EntityKind,
    EntityRecord,
    GallerySlot,
    Kind,
    Modality,
    NameChange,
    NameClaimRecord,
    NameSource,
    PendingRecord,
    Picture,
    Sighting,
    parse_id,
    public_id,
)

_LONGEST_OBSERVATION = 60.0  # s: twice the longest segment; bounds how far back the index is searched

_ENTITY = (
    "select e.id, e.kind, e.number, e.name, e.name_source, e.first_seen, e.last_seen,"
    " (select count(*) from observation o where o.entity = e.id), e.user"
    " from entity e where e.user = ? and e.merged_into is null"
)
_FIRST = "(select t.end from {table} x join trace t on t.id = x.trace where x.{whose} = e.id order by x.start limit 1)"
_SEEN, _HEARD = _FIRST.format(table="observation", whose="entity"), _FIRST.format(table="utterance", whose="speaker")
_MET = (
    "select e.id, coalesce(e.name, iif(e.kind = 'voice', 'voice ', 'person ') || e.number) from entity e"  # noqa: S608 - constants
    " where e.user = ?1 and e.merged_into is null and e.first_seen <= ?2"
    f" and min(coalesce({_SEEN}, {_HEARD}, e.first_seen), coalesce({_HEARD}, {_SEEN}, e.first_seen)) <= ?2 order by e.id"
)
_GALLERY = (
    "select g.id, g.entity, g.modality, g.slot, g.embedder, g.embedding, g.quality, g.count"
    " from gallery g join entity e on e.id = g.entity where e.user = ? and e.merged_into is null and g.modality = ?"
)
_PENDING = (
    "select p.id, p.trace, p.observation, c.name, p.modality, p.embedder, p.embedding, p.quality, p.at, p.expires"
    " from pending p join camera c on c.id = p.camera"
)


class PeopleReads(Reader):
    """Reading of people and voices."""

    def entities(self, kind: EntityKind | None = None) -> list[EntityRecord]:
        """Everybody who is known, in the order of their ids."""
        extra, values = ("", ()) if kind is None else (" and e.kind = ?", (kind,))
        return [_entity(row) for row in self.rows(sql(_ENTITY, extra, "order by e.id"), (self.user, *values))]

    def entity(self, number: int) -> EntityRecord:
        """One person or voice.

        Raises:
            NotFoundError: nobody has this id.
        """
        rows = self.rows(sql(_ENTITY, "and e.id = ?"), (self.user, number)) if 0 < number <= LARGEST_ID else []
        if not rows:
            who = public_id(Kind.ENTITY, number)
            raise NotFoundError(
                who, f"The memory knows nobody with the id {who}; `reflectworld people` lists everybody."
            )
        return _entity(rows[0])

    def met(self, at: float) -> list[tuple[int, str]]:
        """Everybody who was met in a moment that had ended by a time (UTC POSIX seconds): ids and titles, in their order."""
        return [(number, title) for number, title in self.rows(_MET, (self.user, at))]

    def find_entities(self, text: str) -> list[EntityRecord]:
        """Who may be meant by a name, by "person 3" or "voice 2", or by an id such as "p3".

        Case and accents do not count. Those whose whole name fits come alone; if there are none, those whose name has
        all the words. Nobody: an empty list.
        """
        sought = names.folded(text)
        if not sought:
            return []
        everybody = self.entities()
        whole = [person for person in everybody if person.name and names.folded(person.name) == sought]
        if whole:
            return whole
        numbered = names.numbered(text)
        if numbered is not None:
            series, number = numbered
            return [
                person
                for person in everybody
                if _series(person.kind) == series and person.number == number and person.name is None
            ] or [person for person in everybody if _series(person.kind) == series and person.number == number]
        try:
            kind, number = parse_id(text)
        except ValueError:
            kind, number = Kind.TRACE, 0
        if kind is Kind.ENTITY:
            return [person for person in everybody if person.id == number]
        words = sought.split()
        return [person for person in everybody if person.name and set(words) <= set(names.folded(person.name).split())]

    def sightings(self, entity: int, latest: int | None = None) -> list[Sighting]:
        """Where and when an entity was seen or heard, one for each trace, in the order of time.

        Args:
            entity: who.
            latest: about so many of the latest only, however many there are.
        """
        bound = -1 if latest is None else latest
        rows = self.rows(
            "select min(s.start), max(s.end), s.trace, c.name from"
            " (select * from (select trace, start, end from observation where entity = ?1 order by start desc limit ?3)"
            " union all"
            " select * from (select trace, start, end from utterance where speaker = ?1 order by start desc limit ?3)) s"
            " join trace t on t.id = s.trace join camera c on c.id = t.camera where +c.user = ?2"
            " group by s.trace order by 1, s.trace",
            (entity, self.user, bound),
        )
        return [Sighting(*row) for row in rows]

    def people_between(self, start: float, end: float) -> list[tuple[int, str, float, float]]:
        """Who was seen by which camera at any time from `start` to `end` (UTC POSIX seconds).

        Sightings whose time was only guessed are left out (`SourceInfo.dated`, kept in the detail of a trace).

        Returns:
            (entity, camera, start, end) of each observation of somebody known, in the order of time.
        """
        rows = self.rows(
            "select o.entity, c.name, o.start, o.end from observation o indexed by observation_label"
            " join trace t on t.id = o.trace join camera c on c.id = t.camera"
            " where o.label = 'person' and o.start between ? and ? and o.end >= ? and o.entity is not null"
            " and c.user = ? and coalesce(json_extract(t.detail, '$.dated'), 1) order by o.start, o.id",
            (start - _LONGEST_OBSERVATION, end, start, self.user),
        )
        return [(int(entity), str(camera), float(first), float(last)) for entity, camera, first, last in rows]

    def galleries(self, modality: Modality, embedder: str | None = None) -> list[GallerySlot]:
        """The slots of everybody, ordered by entity and slot; of one embedder if it is given."""
        extra, values = ("", ()) if embedder is None else (" and g.embedder = ?", (embedder,))
        rows = self.rows(sql(_GALLERY, extra, "order by g.entity, g.embedder, g.slot"), (self.user, modality, *values))
        return [_slot(row) for row in rows]

    def pending(self, now: float, camera: str | None = None) -> list[PendingRecord]:
        """Evidence that waits and has not expired at `now` (UTC POSIX seconds), oldest first."""
        extra, values = ("", ()) if camera is None else (" and c.name = ?", (camera,))
        rows = self.rows(
            sql(_PENDING, "where c.user = ? and p.expires > ?", extra, "order by p.id"),
            (self.user, now, *values),
        )
        return [
            PendingRecord(
                number,
                trace,
                observation,
                name,
                Modality(modality),
                embedder,
                vector_from_blob(blob),
                quality,
                at,
                expires,
            )
            for number, trace, observation, name, modality, embedder, blob, quality, at, expires in rows
        ]

    def name_claims(self, entity: int) -> list[NameClaimRecord]:
        """The names heard for an entity, oldest first."""
        rows = self.rows(
            "select n.id, n.entity, n.name, n.source, n.utterance, n.at, n.accepted"
            " from name_claim n join entity e on e.id = n.entity where e.user = ? and n.entity = ? order by n.id",
            (self.user, entity),
        )
        return [
            NameClaimRecord(number, who, name, NameSource(source), utterance, at, bool(accepted))
            for number, who, name, source, utterance, at, accepted in rows
        ]

    def name_history(self, entity: int) -> list[NameChange]:
        """Every change of an entity's name, oldest first."""
        rows = self.rows(
            "select h.id, h.entity, h.old_name, h.old_source, h.new_name, h.new_source, h.at, h.claim"
            " from name_history h join entity e on e.id = h.entity where e.user = ? and h.entity = ? order by h.id",
            (self.user, entity),
        )
        return [
            NameChange(number, who, old, NameSource(old_source), new, NameSource(new_source), at, claim)
            for number, who, old, old_source, new, new_source, at, claim in rows
        ]

    def crops(self, entity: int) -> list[Picture]:
        """The faces of an entity's gallery slots, best first."""
        rows = self.rows(
            "select r.id, o.trace, r.at, r.width, r.height, o.anchor from crop r join gallery g on g.id = r.gallery"
            " join entity e on e.id = g.entity left join observation o on o.id = r.observation"
            " where e.user = ? and g.entity = ? order by g.quality desc, g.slot",
            (self.user, entity),
        )
        found = [(row, self._jpeg("crop", row[0])) for row in rows]
        return [
            Picture(number, trace, at, jpeg, width, height, () if anchor is None else (anchor,))
            for (number, trace, at, width, height, anchor), jpeg in found
            if jpeg is not None
        ]


def _series(kind: EntityKind) -> str:
    return "voice" if kind is EntityKind.VOICE else "person"


def _entity(row: tuple[Any, ...]) -> EntityRecord:
    number, kind, place, name, source, first, last, sightings, user = row
    return EntityRecord(number, EntityKind(kind), place, name, NameSource(source), first, last, sightings, user)


def _slot(row: tuple[Any, ...]) -> GallerySlot:
    number, entity, modality, slot, embedder, blob, quality, count = row
    return GallerySlot(number, entity, Modality(modality), slot, embedder, vector_from_blob(blob), quality, count)
