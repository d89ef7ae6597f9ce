"""Tells whoever listens about all who are concerned by a correction."""

from __future__ import annotations

from edge.app.events import Event, Events
from edge.memory import Store
from edge.types.records import CorrectionRecord, Kind, public_id


def tell_corrected(events: Events, store: Store, record: CorrectionRecord) -> None:
    """Publish a `person` event for each: who they are now, and for those who are part of somebody else, of whom."""
    known = {entity.id: entity for entity in store.entities()}
    titles = store.titles([record.person] + ([] if record.other is None else [record.other]))
    for who in titles:
        person = known.get(who)
        into = None if person is not None else store.part_of(who)
        data: dict[str, object] = {
            "id": public_id(Kind.ENTITY, who),
            "title": titles[who],
            "name": None if person is None else person.name,
            "new": record.created and who == record.other and record.undone_at is None,
            "part_of": None if into is None else public_id(Kind.ENTITY, into),
        }
        events.publish(Event("person", data=data))
