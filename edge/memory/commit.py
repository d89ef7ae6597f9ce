"""The critical commit: everything that one segment writes, in one transaction.

Invariants:

* All of a draft is written, or nothing of it.
* Pictures are durable in frames.db before the rows that refer to them are committed in memory.db.
* A source goes forward only: a draft at or before the stored position of its source is refused, so that a second run of the
  same thing cannot write twice.
* Every row that was derived names what it came from in `provenance`.
* A name is replaced only by one of the same or a higher authority; what the user said is replaced by the user alone.
* The cost depends on the draft and not on how much is remembered already: every step goes through an index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import apsw
import numpy as np
import orjson

from edge.clock import utc_now
from edge.errors import StoreError
from edge.memory import frames, index, names
from edge.memory.database import transaction
from edge.memory.frames import Jpeg, Pictures
from edge.memory.writer import Files
from edge.types.evidence import Vector
from edge.types.records import CommitDraft, Committed, EntityKey, EntityKind, GalleryWrite, mention

_NEW_MENTION = re.compile(r"\{\{-(\d+)\}\}")


def write(files: Files, draft: CommitDraft, pictures: Pictures) -> Committed:
    """Write a draft. Runs in the writer's thread.

    Raises:
        StoreError: the draft contradicts itself, or goes back in its source; nothing was written.
    """
    _check(draft, files)
    with transaction(files.memory):
        return _Commit(files, draft, pictures).run()


class _Commit:
    """One commit under way."""

    def __init__(self, files: Files, draft: CommitDraft, pictures: Pictures) -> None:
        self.files = files
        self.memory = files.memory
        self.draft = draft
        self.pictures = pictures
        self.entities: dict[EntityKey, int] = {}
        self.anchors: dict[str, int] = {}  # anchor -> observation
        self.by_entity: dict[int, int] = {}  # entity -> its first observation
        self.utterances: list[int] = []
        self.crops: list[tuple[int, Jpeg]] = []

    def run(self) -> Committed:
        draft = self.draft
        camera = self._camera()
        source = self._source(camera)
        if draft.trace is None:
            return Committed(None, {}, (), (), ())
        self._entities()
        trace = self._insert(
            "insert into trace(camera, source, start, end, text, mode, reason, counts, detail, ingested, embedder)"
            " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (camera, source, draft.trace.start, draft.trace.end, self._text(draft.trace.text), draft.trace.mode, draft.trace.reason,
             _json(asdict(draft.trace.counts)), _json(draft.trace.detail), utc_now(), draft.embedder if draft.vector is not None else ""),
        )  # fmt: skip
        if source is not None:
            self._derived("trace", trace, "source", source)
        self.memory.executemany(
            "insert into line(trace, at, text) values(?, ?, ?)",
            [(trace, line.at, self._text(line.text)) for line in draft.trace.lines],
        )
        observations = self._observations(trace)
        self._utterances(trace)
        self._decisions(trace)
        self._gallery(trace)
        self._pending(trace, camera)
        self._seen(trace)
        self._names()
        key_frames = self._key_frames(trace)
        try:
            index.add_trace(self.memory, trace, draft.vector, draft.line_vectors, draft.embedder)
        except ValueError as error:
            raise StoreError(self.files.path, f"A segment of “{draft.camera}” was not written: {error}.") from error
        frames.put(self.files.frames, list(zip(key_frames, self.pictures.frames, strict=True)), self.crops)
        return Committed(trace, dict(self.entities), observations, tuple(self.utterances), key_frames)

    # -- where it comes from ------------------------------------------------------------------------------------------

    def _camera(self) -> int:
        found = self.memory.execute(
            "select id from camera where user = ? and name = ?", (self.draft.user, self.draft.camera)
        ).fetchall()
        if found:
            return int(found[0][0])
        return self._insert(
            "insert into camera(user, name, created) values(?, ?, ?)", (self.draft.user, self.draft.camera, utc_now())
        )

    def _source(self, camera: int) -> int | None:
        progress = self.draft.progress
        if progress is None:
            return None
        source = progress.source
        found = self.memory.execute(
            "select id, position from source where camera = ? and fingerprint = ? and start = ?",
            (camera, source.fingerprint, source.start),
        ).fetchall()
        if not found:
            return self._insert(
                "insert into source(camera, uri, kind, fingerprint, start, duration, position, next_segment, finished, updated)"
                " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (camera, source.uri, source.kind, source.fingerprint, source.start, source.duration, progress.position,
                 progress.next_segment, progress.finished, utc_now()),
            )  # fmt: skip
        number, position = found[0]
        if progress.position < position or (progress.position == position and self.draft.trace is not None):
            raise StoreError(
                self.files.path,
                f"“{source.uri}” is remembered up to {position:.1f} s already, so its segment up to {progress.position:.1f} s was not written"
                " again; start the command again to go on from there.",
            )
        self.memory.execute(
            "update source set uri = ?, duration = ?, position = ?, next_segment = ?, finished = ?, updated = ? where id = ?",
            (
                source.uri,
                source.duration,
                progress.position,
                progress.next_segment,
                progress.finished,
                utc_now(),
                number,
            ),
        )
        return int(number)

    # -- people -------------------------------------------------------------------------------------------------------

    def _entities(self) -> None:
        draft = self.draft
        assert draft.trace is not None  # noqa: S101 -- for the type checker: `run` has looked
        for new in draft.entities:
            number = next_number(self.memory, draft.user, new.kind)
            entity = self._insert(
                "insert into entity(user, kind, number, name, name_source, first_seen, last_seen) values(?, ?, ?, null, 'none', ?, ?)",
                (draft.user, new.kind, number, draft.trace.start, draft.trace.end),
            )
            self.entities[new.key] = entity
            if new.name is not None:
                names.change(self.memory, entity, new.name, new.name_source, at=draft.trace.end, claim=None)
        used = {key for key in _keys(draft) if key > 0}
        known = self.memory.execute(
            "select id from entity where user = ? and id in (select value from json_each(?))",
            (draft.user, _json(sorted(used))),
        ).fetchall()
        if missing := used - {entity for (entity,) in known}:
            raise StoreError(
                self.files.path, f"The memory knows no entity {min(missing)}; nothing of this segment was written."
            )
        self.entities.update({key: key for key in used})

    def _seen(self, trace: int) -> None:
        """Widen when each entity was seen first and last."""
        for entity in set(self.entities.values()):
            found = self.memory.execute(
                "select min(start), max(end) from (select start, end from observation where trace = ?1 and entity = ?2"
                " union all select start, end from utterance where trace = ?1 and speaker = ?2)",
                (trace, entity),
            ).fetchall()
            start, end = found[0]
            if start is None:
                continue
            if entity in self._created():
                self.memory.execute(
                    "update entity set first_seen = ?, last_seen = ? where id = ?", (start, end, entity)
                )
            else:
                self.memory.execute(
                    "update entity set first_seen = min(first_seen, ?), last_seen = max(last_seen, ?) where id = ?",
                    (start, end, entity),
                )

    def _created(self) -> set[int]:
        return {self.entities[new.key] for new in self.draft.entities}

    def _names(self) -> None:
        for claim in self.draft.names:
            entity = self.entities[claim.entity]
            utterance = self.utterances[claim.utterance]
            at = self.draft.utterances[claim.utterance].start
            number = self._insert(
                "insert into name_claim(entity, name, source, utterance, at, accepted) values(?, ?, ?, ?, ?, ?)",
                (entity, claim.name, claim.source, utterance, at, claim.accepted),
            )
            self._derived("name_claim", number, "utterance", utterance)
            if claim.accepted:
                names.change(self.memory, entity, claim.name, claim.source, at=at, claim=number)

    # -- what was seen and heard --------------------------------------------------------------------------------------

    def _observations(self, trace: int) -> tuple[int, ...]:
        numbers = []
        created = self._created()
        for seen in self.draft.observations:
            entity = self._entity(seen.entity)
            number = self._insert(
                "insert into observation(trace, anchor, label, entity, start, end, text, score, boxes, detail) values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    trace,
                    seen.anchor,
                    seen.label,
                    entity,
                    seen.start,
                    seen.end,
                    self._text(seen.text),
                    seen.score,
                    _boxes(seen.boxes),
                    _json(seen.detail),
                ),
            )
            numbers.append(number)
            self.anchors.setdefault(seen.anchor, number)
            self._derived("observation", number, "trace", trace)
            if entity is not None:
                self.by_entity.setdefault(entity, number)
                if entity in created:
                    self._derived("entity", entity, "observation", number)
        return tuple(numbers)

    def _utterances(self, trace: int) -> None:
        for heard in self.draft.utterances:
            speaker = self._entity(heard.speaker)
            number = self._insert(
                "insert into utterance(trace, start, end, text, speaker, voice, speaker_name, confidence) values(?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    trace,
                    heard.start,
                    heard.end,
                    self._text(heard.text),
                    speaker,
                    heard.voice,
                    heard.speaker_name,
                    heard.confidence,
                ),
            )
            self.utterances.append(number)
            self._derived("utterance", number, "trace", trace)
        for entity in self._created() - set(self.by_entity):
            self._derived("entity", entity, "trace", trace)  # only heard, or only spoken of

    def _decisions(self, trace: int) -> None:
        for decision in self.draft.decisions:
            number = self._insert(
                "insert into decision(trace, anchor, outcome, entity, reason, evidence) values(?, ?, ?, ?, ?, ?)",
                (
                    trace,
                    decision.anchor,
                    decision.outcome,
                    self._entity(decision.entity),
                    decision.reason,
                    _json(decision.evidence),
                ),
            )
            self._derived("decision", number, "trace", trace)

    def _gallery(self, trace: int) -> None:
        for slot, picture in zip(self.draft.gallery, self.pictures.crops, strict=True):
            entity = self.entities[slot.entity]
            observation = self.anchors.get(slot.anchor, self.by_entity.get(entity))
            ((number,),) = self.memory.execute(
                "insert into gallery(entity, modality, slot, embedder, embedding, quality, count, observation) values(?, ?, ?, ?, ?, ?, ?, ?)"
                " on conflict(entity, modality, embedder, slot) do update set embedding = excluded.embedding, quality = excluded.quality,"
                " count = excluded.count, observation = excluded.observation returning id",
                (
                    entity,
                    slot.modality,
                    slot.slot,
                    slot.embedder,
                    self._vector(slot.embedding, slot.embedder),
                    slot.quality,
                    slot.count,
                    observation,
                ),
            ).fetchall()
            if slot.count <= 1:  # begun anew: nothing of the sightings before is left in it
                self.memory.execute("delete from provenance where item_kind = 'gallery' and item = ?", (number,))
            self._derived(
                "gallery", number, *(("observation", observation) if observation is not None else ("trace", trace))
            )
            if picture is not None:
                self._crop(number, observation, slot, picture)

    def _crop(self, gallery: int, observation: int | None, slot: GalleryWrite, picture: Jpeg) -> None:
        assert self.draft.trace is not None  # noqa: S101 -- for the type checker: `run` has looked
        at = next(
            (seen.start for seen in self.draft.observations if seen.anchor == slot.anchor), self.draft.trace.start
        )
        self.memory.execute("delete from crop where gallery = ?", (gallery,))  # its picture is noted as discarded
        number = self._insert(
            "insert into crop(gallery, observation, at, width, height) values(?, ?, ?, ?, ?)",
            (gallery, observation, at, picture.width, picture.height),
        )
        self._derived("crop", number, "gallery", gallery)
        self.crops.append((number, picture))

    def _pending(self, trace: int, camera: int) -> None:
        assert self.draft.trace is not None  # noqa: S101 -- for the type checker: `run` has looked
        for number in self.draft.pending_used:
            self.memory.execute("delete from pending where id = ?", (number,))
        self.memory.execute("delete from pending where camera = ? and expires <= ?", (camera, self.draft.trace.start))
        for kept in self.draft.pending:
            observation = self.anchors.get(kept.anchor)
            number = self._insert(
                "insert into pending(trace, observation, camera, modality, embedder, embedding, quality, at, expires) values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (trace, observation, camera, kept.modality, kept.embedder, self._vector(kept.embedding, kept.embedder), kept.quality,
                 self.draft.trace.start, kept.expires),
            )  # fmt: skip
            self._derived(
                "pending", number, *(("observation", observation) if observation is not None else ("trace", trace))
            )

    def _key_frames(self, trace: int) -> tuple[int, ...]:
        numbers = []
        for frame, jpeg in zip(self.draft.key_frames, self.pictures.frames, strict=True):
            number = self._insert(
                "insert into key_frame(trace, at, anchors, width, height) values(?, ?, ?, ?, ?)",
                (trace, frame.at, _json(list(frame.anchors)), jpeg.width, jpeg.height),
            )
            numbers.append(number)
            self._derived("key_frame", number, "trace", trace)
        return tuple(numbers)

    # -- small things -------------------------------------------------------------------------------------------------

    def _insert(self, sql: str, values: tuple[Any, ...]) -> int:
        self.memory.execute(sql, values)
        return self.memory.last_insert_rowid()

    def _derived(self, kind: str, item: int, source_kind: str, source: int) -> None:
        self.memory.execute("insert or ignore into provenance values(?, ?, ?, ?)", (kind, item, source_kind, source))

    def _entity(self, key: EntityKey | None) -> int | None:
        return None if key is None else self.entities[key]

    def _text(self, text: str) -> str:
        """A draft's text with the ids of the entities that it creates."""

        def number(match: re.Match[str]) -> str:
            entity = self.entities.get(-int(match.group(1)))
            return match.group(0) if entity is None else mention(entity)

        return _clean(_NEW_MENTION.sub(number, text))

    def _vector(self, vector: Vector, embedder: str) -> bytes:
        """A vector as bytes; those of one embedder all have its length."""
        dimension = len(vector)
        known = self.memory.execute("select dimension from embedder where name = ?", (embedder,)).fetchall()
        if not known:
            self.memory.execute("insert into embedder values(?, ?)", (embedder, dimension))
        elif known[0][0] != dimension:
            raise StoreError(
                self.files.path,
                f"A vector of {dimension} numbers came from “{embedder}”, whose vectors have {known[0][0]}; nothing of this segment was written.",
            )
        return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def next_number(memory: apsw.Connection, user: str, kind: EntityKind) -> int:
    """The next number of a person or a voice; never given out twice, even after deletions."""
    # Whoever is known from a description only is titled "person …" as well, so both count together.
    series = "voice" if kind is EntityKind.VOICE else "person"
    ((number,),) = memory.execute(
        "insert into entity_number(user, series, last) values(?, ?, 1) on conflict(user, series) do update set last = last + 1 returning last",
        (user, series),
    ).fetchall()
    return int(number)


def _keys(draft: CommitDraft) -> set[EntityKey]:
    """All entity keys of a draft, outside of texts."""
    found: set[EntityKey | None] = {seen.entity for seen in draft.observations}
    found |= {heard.speaker for heard in draft.utterances} | {decision.entity for decision in draft.decisions}
    found |= {slot.entity for slot in draft.gallery} | {claim.entity for claim in draft.names}
    return {key for key in found if key is not None}


def _check(draft: CommitDraft, files: Files) -> None:
    """Refuse a draft that contradicts itself, before anything is written.

    Raises:
        StoreError: it does.
    """
    problem = _contradiction(draft)
    if problem:
        raise StoreError(files.path, f"A segment of “{draft.camera}” was not written: {problem}.")


def _contradiction(draft: CommitDraft) -> str:
    if draft.trace is None:
        if any(
            (
                draft.entities,
                draft.observations,
                draft.utterances,
                draft.decisions,
                draft.gallery,
                draft.pending,
                draft.names,
                draft.key_frames,
            )
        ):
            return "it says that nothing happened, and what happened"
        return "" if draft.progress is not None else "there is nothing in it"
    if not np.isfinite([draft.trace.start, draft.trace.end]).all() or draft.trace.end < draft.trace.start:
        return "it ends before it starts"
    new = [entity.key for entity in draft.entities]
    if any(key >= 0 for key in new) or len(set(new)) != len(new):
        return "the keys of its new entities are not negative and different"
    if missing := {key for key in _keys(draft) if key <= 0} - set(new):
        return f"it refers to a new entity {max(missing)} that it does not create"
    if any(not 0 <= claim.utterance < len(draft.utterances) for claim in draft.names):
        return "a name was heard in an utterance that is not there"
    vectors = (
        [slot.embedding for slot in draft.gallery]
        + [kept.embedding for kept in draft.pending]
        + list(draft.line_vectors)
    )
    if draft.vector is not None:
        vectors.append(draft.vector)
    elif draft.line_vectors:
        return "its lines have vectors and itself has none"
    for vector in vectors:
        if vector.ndim != 1 or not np.isfinite(vector).all() or not np.any(vector):
            return "one of its vectors is zero or not finite"
    return ""


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS).decode()


def _boxes(boxes: tuple[tuple[float, tuple[float, float, float, float]], ...]) -> str:
    # To the millisecond and a ten-thousandth of the picture: a third of the size.
    return _json([[round(at, 3), [round(edge, 4) for edge in box]] for at, box in boxes])


def _clean(text: str) -> str:
    # Half of a surrogate pair cannot be stored as UTF-8.
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text
