"""Reading what the owner corrected."""

from __future__ import annotations

from typing import Any

from edge.errors import NotFoundError
from edge.memory import attribution, correcting
from edge.memory.database import fetch, sql
from edge.memory.reader import LARGEST_ID, Reader
from edge.memory.upkeep import strangers
from edge.types.records import CorrectionDraft, CorrectionKind, CorrectionRecord, CorrectionScope, Kind, public_id

_CORRECTION = (
    "select c.id, c.kind, c.person, c.other, c.created, c.name, c.at, c.undone_at,"
    " (select count(*) from correction_item i where i.correction = c.id and i.kind = 'observation'),"
    " (select count(*) from correction_item i where i.correction = c.id and i.kind = 'utterance')"
    " from correction c where c.user = ?"
)


class CorrectionReads(Reader):
    """Reading of corrections."""

    def corrections(self, entity: int | None = None, limit: int = 100) -> list[CorrectionRecord]:
        """What the owner corrected, undone or not, the latest first.

        Args:
            entity: only what is about them, or about those who are part of them now.
            limit: at most so many.
        """
        mine = (
            "in (select id from entity where id = ?2 or merged_into = ?2)",
            "in (select id from entity where id = ?2 or merged_into = ?2))",
        )
        about = sql("and (?2 is null or c.person", mine[0], "or c.other", mine[1])
        rows = self.rows(sql(_CORRECTION, about, "order by c.id desc limit ?3"), (self.user, entity, limit))
        return [_record(row) for row in rows]

    def correction(self, number: int) -> CorrectionRecord:
        """One correction.

        Raises:
            NotFoundError: there is none of this id.
        """
        rows = self.rows(sql(_CORRECTION, "and c.id = ?"), (self.user, number)) if 0 < number <= LARGEST_ID else []
        if not rows:
            which = public_id(Kind.CORRECTION, number)
            raise NotFoundError(which, f"There is no correction {which}; `reflectworld people history` lists them.")
        return _record(rows[0])

    def scope(self, draft: CorrectionDraft) -> tuple[CorrectionDraft, CorrectionScope]:
        """What a correction would reach, and the correction as it is understood; nothing is changed.

        Raises:
            NotFoundError: somebody is not known.
            UserError: it makes no sense.
        """
        with self.reading() as connection:
            draft, items = correcting.understood(connection, self.user, draft)
            if draft.kind is CorrectionKind.MERGE:
                counts = fetch(
                    connection,
                    "select (select count(*) from observation where entity = ?1),"
                    " (select count(*) from utterance where speaker = ?1), (select count(*) from ("
                    " select trace from observation where entity = ?1 union select trace from utterance where speaker = ?1))",
                    (draft.other,),
                )[0]
                return draft, CorrectionScope(counts[2], counts[0], counts[1])
            traces = {
                trace
                for kind, table in (("observation", "observation"), ("utterance", "utterance"))
                for of, number in items
                if of == kind
                for (trace,) in fetch(connection, f"select trace from {table} where id = ?", (number,))  # noqa: S608
            }
        kinds = [kind for kind, _ in items]
        return draft, CorrectionScope(len(traces), kinds.count("observation"), kinds.count("utterance"))

    def part_of(self, entity: int) -> int | None:
        """Who somebody is part of since a correction; None: nobody.

        Whoever has nothing left after a correction is part of themselves, and listed no more.
        """
        rows = self.rows("select merged_into from entity where user = ? and id = ?", (self.user, entity))
        return rows[0][0] if rows else None

    def told_apart(self) -> set[tuple[int, int]]:
        """The pairs of people of whom the owner said that one is not the other, the smaller id first."""
        with self.reading() as connection:
            return attribution.apart(attribution.active(connection, self.user))

    def agreed(self) -> set[int]:
        """People without a name whom the owner agreed to keep (`Store.agree`)."""
        with self.reading() as connection:
            return strangers.agreed(connection, self.user)

    def corrections_made(self) -> int:
        """Rises with everything that changes who is who, so that decisions can say what they know of (`as_of`)."""
        ((generation,),) = self.rows("select generation from identity_state")
        return int(generation)

    def galleries_due(self) -> bool:
        """Whether a segment was committed that learned under owners of before a correction: make galleries again."""
        ((due,),) = self.rows("select galleries_due from identity_state")
        return bool(due)


def _record(row: tuple[Any, ...]) -> CorrectionRecord:
    number, kind, person, other, created, name, at, undone_at, observations, utterances = row
    return CorrectionRecord(
        number, CorrectionKind(kind), person, other, bool(created), name, at, undone_at, observations, utterances
    )
