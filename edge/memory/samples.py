"""Samples: the evidence that was offered to galleries; galleries are a fold of them.

Functions over the writer's connection inside a transaction, or any reader's.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Protocol

import apsw
import numpy as np

from edge.memory.database import fetch, insert
from edge.memory.drafts import to_json, vector_from_blob, vector_to_blob
from edge.types.drafts import DerivedSlot, SampleDraft
from edge.types.records import Modality

PICTURED: Final = np.zeros((1, 1, 3), np.uint8)  # stands for a crop, whose pixels no rule looks at
_SLOT = (
    "insert into gallery(entity, modality, slot, embedder, embedding, quality, count, observation)"
    " values(?, ?, ?, ?, ?, ?, ?, ?) on conflict(entity, modality, embedder, slot) do update"
    " set embedding = excluded.embedding, quality = excluded.quality, count = excluded.count,"
    " observation = excluded.observation returning id"
)
_SAMPLES = (
    "select s.trace, s.id, s.entity, s.modality, s.embedder, s.embedding, s.quality, s.anchor, s.slots, s.ema, s.bound,"
    " exists (select 1 from crop r where r.sample = s.id)"
    " from sample s join entity e on e.id = s.entity where e.user = ? and s.id > ? order by s.id"
)


class Folding(Protocol):
    """Makes galleries from samples; see `edge.identity`, whose rule of learning it is."""

    def add(self, segment: Iterable[tuple[int, SampleDraft]]) -> None:
        """Learn from the samples of one trace, in their order."""

    def slots(self) -> Sequence[DerivedSlot]:
        """What was learned until now."""


def put_slot(
    memory: apsw.Connection,
    key: tuple[int, str, int, str],
    vector: bytes,
    quality: float,
    count: int,
    observation: int | None,
) -> int:
    """Write or replace a slot.

    Args:
        memory: the writer's connection.
        key: entity, modality, number of the slot, embedder.
        vector: little-endian float32.
        quality: larger is better.
        count: sightings in it.
        observation: of the latest.

    Returns:
        Its id.
    """
    return int(fetch(memory, _SLOT, (*key, vector, quality, count, observation))[0][0])


def add(
    memory: apsw.Connection, sample: SampleDraft, *, entity: int, trace: int, observation: int | None, vector: bytes
) -> int:
    """Keep a sample.

    Returns:
        Its id.
    """
    values = {
        "trace": trace,
        "observation": observation,
        "anchor": sample.anchor,
        "entity": entity,
        "modality": sample.modality,
        "embedder": sample.embedder,
        "embedding": vector,
        "quality": sample.quality,
        "slots": sample.slots,
        "ema": sample.ema,
        "bound": sample.limit,
    }
    return insert(memory, "sample", values)


def show(memory: apsw.Connection, gallery: int, sample: int) -> None:
    """Let a slot show the crop of a sample."""
    memory.execute("update crop set gallery = null where gallery = ? and sample is not ?", (gallery, sample))
    memory.execute("update crop set gallery = ? where sample = ?", (gallery, sample))


def feed(
    connection: apsw.Connection, user: str, folding: Folding, *, after: int = 0, owners: Mapping[int, int] | None = None
) -> int:
    """Put all samples of a user into a fold, trace by trace.

    Args:
        connection: any reader, in one state of the memory.
        user: whose.
        folding: learns from them.
        after: only samples with a larger id.
        owners: sample → entity, where another one than the stored is meant.

    Returns:
        The id of the last sample.
    """
    last = after
    owners = owners or {}
    rows: Iterator[Any] = iter(connection.execute(_SAMPLES, (user, after)))
    for _, group in groupby(rows, key=lambda row: row[0]):
        segment = [(row[1], _sample(row, owners.get(row[1], row[2]))) for row in group]
        folding.add(segment)
        last = segment[-1][0]
    return last


def write_galleries(memory: apsw.Connection, user: str, slots: Iterable[DerivedSlot]) -> None:
    """Replace all galleries of a user by others, made from samples; slots that stay keep their ids."""
    known = dict(
        fetch(
            memory,
            "select g.id, json_array(g.entity, g.modality, g.slot, g.embedder) from gallery g"
            " join entity e on e.id = g.entity where e.user = ?",
            (user,),
        )
    )
    origin = {sample: rest for sample, *rest in fetch(memory, "select id, observation, trace from sample")}
    keep = set()
    # First all crops are let go of, so that none is wanted by two slots for a moment.
    memory.execute(
        "update crop set gallery = null where gallery in (select value from json_each(?)) and sample is not null",
        (json.dumps(list(known)),),
    )
    for slot in slots:
        key = (slot.entity, slot.modality.value, slot.slot, slot.embedder)
        observation = origin[slot.samples[-1]][0]
        number = put_slot(memory, key, vector_to_blob(slot.embedding), slot.quality, slot.count, observation)
        keep.add(number)
        derived_from(memory, number, [origin[sample] for sample in slot.samples], begun=True)
        if slot.pictured is not None:
            show(memory, number, slot.pictured)
    gone = to_json([number for number in known if number not in keep])
    memory.execute(
        "delete from provenance where item_kind = 'gallery' and item in (select value from json_each(?))", (gone,)
    )
    memory.execute("delete from gallery where id in (select value from json_each(?))", (gone,))


def derived_from(
    memory: apsw.Connection, gallery: int, origins: Iterable[Sequence[int | None]], *, begun: bool
) -> None:
    """Note which sightings are in a slot.

    Args:
        memory: the writer's connection.
        gallery: id of the slot.
        origins: (observation or None, trace) of each sample.
        begun: nothing from before is in it.
    """
    if begun:
        memory.execute("delete from provenance where item_kind = 'gallery' and item = ?", (gallery,))
    rows = [("trace", trace) if seen is None else ("observation", seen) for seen, trace in origins]
    memory.executemany("insert or ignore into provenance values('gallery', ?, ?, ?)", [(gallery, *row) for row in rows])


def voices(connection: apsw.Connection, user: str) -> Collection[int]:
    """Who is only heard."""
    return {who for (who,) in fetch(connection, "select id from entity where user = ? and kind = 'voice'", (user,))}


def _sample(row: tuple[Any, ...], entity: int) -> SampleDraft:
    _, _, _, modality, embedder, blob, quality, anchor, slots, ema, bound, pictured = row
    return SampleDraft(
        entity=entity,
        modality=Modality(modality),
        embedder=embedder,
        embedding=vector_from_blob(blob),
        quality=quality,
        anchor=anchor,
        slots=slots,
        ema=ema,
        limit=bound,
        crop=PICTURED if pictured else None,
    )
