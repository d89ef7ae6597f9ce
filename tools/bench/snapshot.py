"""Everything a memory holds that does not depend on when it was written: for comparing two of them."""

from __future__ import annotations

from pathlib import Path

from edge.memory import Store
from edge.settings import load_settings
from edge.types.records import Modality


def snapshot(home: Path) -> list[tuple[object, ...]]:
    """All rows that a user can see, in order."""
    settings = load_settings(home)
    rows: list[tuple[object, ...]] = []
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        for trace in store.traces(limit=1_000_000, newest_first=False):
            rows.append(("trace", trace.start, trace.end, trace.text, trace.reason, trace.entities, trace.key_frames))
            rows += [("line", line.at, line.text) for line in trace.lines]
            rows += [("said", said.start, said.end, said.text, said.speaker) for said in trace.utterances]
            rows += [
                ("seen", seen.anchor, seen.label, seen.entity, seen.start, seen.end, seen.text, seen.score, seen.boxes)
                for seen in store.observations(trace=trace.id, limit=1_000_000)
            ]
            rows += [
                ("decided", made.anchor, made.outcome, made.entity, made.reason)
                for made in store.decisions(trace=trace.id)
            ]
            rows += [("picture", number, store.key_frame(number).jpeg) for number in trace.key_frames]
        rows += [
            ("slot", slot.entity, slot.modality, slot.slot, slot.embedding.tobytes(), slot.count)
            for modality in Modality
            for slot in store.galleries(modality)
        ]
        rows += [("who", who.id, who.kind, who.number, who.name, who.sightings) for who in store.entities()]
    return rows
