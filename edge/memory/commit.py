"""The critical commit: everything that one segment writes, in one transaction.

Invariants:

* All of a draft is written, or nothing of it.
* Pictures are durable in frames.db before the rows that refer to them are committed in memory.db.
* A source goes forward only: a draft at or before the stored position of its source is refused, so that a second run
  of the same thing cannot write twice.
* Every row that was derived names what it came from in `provenance`.
* A name is replaced only by one of the same or a higher authority; what the user said is replaced by the user alone.
* What is derived from it later (`edge.consolidate`) is asked of the queue in the same transaction, and adds to what is
  written here without changing it.
* The cost depends on the draft and not on how much is remembered already: every step goes through an index.
"""

from __future__ import annotations

from dataclasses import asdict

import apsw

from edge.clock import utc_now
from edge.errors import StaleError, StoreError
from edge.memory import frames, index, jobs, names, samples
from edge.memory.database import fetch, insert, transaction
from edge.memory.drafts import boxes_to_json, contradiction, entity_keys, storable, to_json, vector_to_blob
from edge.memory.frames import Jpeg, Pictures
from edge.memory.numbers import next_number
from edge.memory.tiers import scene, visual
from edge.memory.writer import Files
from edge.types.drafts import CommitDraft, Committed, EntityKey, SourceProgress, TraceDraft
from edge.types.evidence import Vector
from edge.types.media import SourceKind
from edge.types.records import renumbered


def write(files: Files, draft: CommitDraft, pictures: Pictures) -> Committed:
    """Write a draft. Runs in the writer's thread.

    Raises:
        StoreError: the draft contradicts itself, or goes back in its source; nothing was written.
    """
    problem = contradiction(draft)
    if problem:
        raise _refused(files, draft, problem)
    with transaction(files.memory):
        camera = _camera(files.memory, draft.user, draft.camera)
        source = None if draft.progress is None else _source(files, camera, draft.progress, draft.trace is not None)
        if draft.trace is None:
            return Committed(None, {}, (), (), ())
        try:
            return _Commit(files, draft, draft.trace, camera, source, pictures).run()
        except (ValueError, TypeError) as error:  # of the index; of JSON
            raise _refused(files, draft, str(error)) from error


def _refused(files: Files, draft: CommitDraft, problem: str) -> StoreError:
    return StoreError(files.path, f"A segment of “{draft.camera}” was not written: {problem}.")


def _camera(memory: apsw.Connection, user: str, name: str) -> int:
    name = storable(name)
    found = fetch(memory, "select id from camera where user = ? and name = ?", (user, name))
    return int(found[0][0]) if found else insert(memory, "camera", {"user": user, "name": name, "created": utc_now()})


def _source(files: Files, camera: int, progress: SourceProgress, with_trace: bool) -> int:
    """Note how far a source is remembered; refuse to go back."""
    source = progress.source
    sql = "select id, position from source where camera = ? and fingerprint = ? and start = ?"
    found = fetch(files.memory, sql, (camera, source.fingerprint, source.start))
    values = {
        "uri": storable(source.uri),
        "duration": source.duration,
        "position": progress.position,
        "next_segment": progress.next_segment,
        "finished": progress.finished,
        "updated": utc_now(),
    }
    if not found:
        fixed = {"camera": camera, "kind": source.kind, "fingerprint": source.fingerprint, "start": source.start}
        return insert(files.memory, "source", {**fixed, **values})
    number, position = found[0]
    if not with_trace and source.kind is not SourceKind.REPLAY:
        scene.note_quiet(files.memory, camera, source.start + position, source.start + progress.position)
    if progress.position < position or (progress.position == position and with_trace):
        raise StoreError(
            files.path,
            f"“{source.uri}” is remembered up to {position:.1f} s already, so its segment up to"
            f" {progress.position:.1f} s was not written again; start the command again to go on from there.",
        )
    files.memory.execute(
        "update source set uri = :uri, duration = :duration, position = :position, next_segment = :next_segment,"
        " finished = :finished, updated = :updated where id = :id",
        {**values, "id": number},
    )
    return int(number)


class _Commit:
    """One commit of a trace under way, inside the transaction."""

    def __init__(
        self,
        files: Files,
        draft: CommitDraft,
        trace: TraceDraft,
        camera: int,
        source: int | None,
        pictures: Pictures,
    ) -> None:
        self.files = files
        self.memory = files.memory
        self.draft = draft
        self.camera = camera
        self.pictures = pictures
        self.start, self.end = trace.start, trace.end
        ((generation,),) = fetch(self.memory, "select generation from identity_state")
        self.current = draft.as_of is None or draft.as_of == generation
        self.entities = self._entities()
        self.created = {self.entities[new.key] for new in draft.entities}
        self.trace = self._trace(trace, source)
        self.anchors: dict[str, int] = {}  # anchor -> its observation
        self.seen: dict[int, int] = {}  # entity -> its first observation
        self.crops: list[tuple[int, Jpeg]] = []
        self.samples: list[tuple[int, int | None]] = []  # id and observation, as in the draft

    def run(self) -> Committed:
        draft = self.draft
        observations = self._observations()
        utterances = self._utterances()
        self._decisions()
        self._samples()
        self._gallery()
        self._pending()
        self._names(utterances)
        self._times()
        key_frames = self._key_frames()
        index.add_trace(self.memory, self.trace, draft.vector, draft.line_vectors, draft.embedder, draft.word_signs)
        if draft.visual is not None:
            self._vector(draft.visual.embedding, draft.visual.embedder)  # of the length of all of its network
            visual.add(self.memory, self.trace, draft.visual)
        jobs.enqueue(self.memory, draft.user, jobs.TRACE, self.trace, priority=jobs.AT_ONCE)
        frames.put(self.files.frames, list(zip(key_frames, self.pictures.frames, strict=True)), self.crops)
        return Committed(self.trace, self.entities, observations, utterances, key_frames)

    def _entities(self) -> dict[EntityKey, int]:
        user = self.draft.user
        used = sorted(key for key in entity_keys(self.draft) if key > 0)
        # Who was one of two until a correction a moment ago is the one that is left.
        sql = (
            "select id, coalesce(merged_into, id) from entity where user = ? and id in (select value from json_each(?))"
        )
        known = dict(fetch(self.memory, sql, (user, to_json(used))))
        if len(known) < len(used):
            missing = next(key for key in used if key not in known)
            raise StaleError(
                self.files.path,
                f"A segment of “{self.draft.camera}” was not written: the memory knows no entity {missing}; whoever it was"
                " may have been forgotten a moment ago.",
            )
        numbers: dict[EntityKey, int] = {key: known[key] for key in used}
        # Somebody of whom nothing was left is there again.
        self.memory.executemany(
            "update entity set merged_into = null where id = ? and merged_into = id", [(key,) for key in used]
        )
        for new in self.draft.entities:
            values = {
                "user": user,
                "kind": new.kind,
                "number": next_number(self.memory, user, new.kind),
                "first_seen": self.start,
                "last_seen": self.end,
            }
            numbers[new.key] = insert(self.memory, "entity", values)
            if new.name is not None:
                name = storable(new.name)
                names.change(self.memory, numbers[new.key], name, new.name_source, at=self.end, claim=None)
                given = {"entity": numbers[new.key], "name": name, "source": new.name_source, "at": self.end}
                insert(self.memory, "given_name", given)
        return numbers

    def _trace(self, trace: TraceDraft, source: int | None) -> int:
        values = {
            "camera": self.camera,
            "source": source,
            "start": trace.start,
            "end": trace.end,
            "text": self._text(trace.text),
            "mode": trace.mode,
            "reason": trace.reason,
            "counts": to_json(asdict(trace.counts)),
            "detail": to_json(trace.detail),
            "ingested": utc_now(),
            "embedder": self.draft.embedder if self.draft.vector is not None else "",
        }
        number = insert(self.memory, "trace", values)
        if source is not None:
            self._derived("trace", number, "source", source)
        lines = [(number, line.at, self._text(line.text)) for line in trace.lines]
        self.memory.executemany("insert into line(trace, at, text) values(?, ?, ?)", lines)
        return number

    def _observations(self) -> tuple[int, ...]:
        numbers = []
        for seen in self.draft.observations:
            entity = self._entity(seen.entity)
            values = {
                "trace": self.trace,
                "anchor": seen.anchor,
                "label": seen.label,
                "entity": entity,
                "start": seen.start,
                "end": seen.end,
                "text": self._text(seen.text),
                "score": seen.score,
                "boxes": boxes_to_json(seen.boxes),
                "detail": to_json(seen.detail),
            }
            number = insert(self.memory, "observation", values)
            numbers.append(number)
            self.anchors.setdefault(seen.anchor, number)
            self._derived("observation", number, "trace", self.trace)
            if entity is not None:
                self.seen.setdefault(entity, number)
                if entity in self.created:
                    self._derived("entity", entity, "observation", number)
        for entity in self.created - set(self.seen):
            self._derived("entity", entity, "trace", self.trace)  # only heard, or only spoken of
        return tuple(numbers)

    def _utterances(self) -> tuple[int, ...]:
        numbers = []
        for heard in self.draft.utterances:
            values = {
                "trace": self.trace,
                "start": heard.start,
                "end": heard.end,
                "text": heard.text,  # words that were said are kept as they were said
                "speaker": self._entity(heard.speaker),
                "voice": heard.voice,
                "speaker_name": heard.speaker_name,
                "confidence": heard.confidence,
            }
            numbers.append(insert(self.memory, "utterance", values))
            self._derived("utterance", numbers[-1], "trace", self.trace)
        return tuple(numbers)

    def _decisions(self) -> None:
        for decision in self.draft.decisions:
            values = {
                "trace": self.trace,
                "anchor": decision.anchor,
                "outcome": decision.outcome,
                "entity": self._entity(decision.entity),
                "reason": self._text(decision.reason),
                "evidence": to_json(decision.evidence),
            }
            self._derived("decision", insert(self.memory, "decision", values), "trace", self.trace)

    def _samples(self) -> None:
        for sample, picture in zip(self.draft.samples, self.pictures.samples, strict=True):
            entity = self.entities[sample.entity]
            observation = self.anchors.get(sample.anchor, self.seen.get(entity))
            vector = self._vector(sample.embedding, sample.embedder)
            kept = samples.add(
                self.memory, sample, entity=entity, trace=self.trace, observation=observation, vector=vector
            )
            self.samples.append((kept, observation))
            self._derived("sample", kept, *self._origin(observation))
            if picture is not None:
                number = self._crop(sample.anchor, observation, picture, sample=kept)
                self._derived("crop", number, "sample", kept)

    def _gallery(self) -> None:
        if not self.current:  # what they learned rests on who was thought to be who
            self.memory.execute("update identity_state set galleries_due = 1")
            return
        for slot, picture in zip(self.draft.gallery, self.pictures.crops, strict=True):
            entity = self.entities[slot.entity]
            observation = self.anchors.get(slot.anchor, self.seen.get(entity))
            vector = self._vector(slot.embedding, slot.embedder)
            key = (entity, slot.modality.value, slot.slot, slot.embedder)
            number = samples.put_slot(self.memory, key, vector, slot.quality, slot.count, observation)
            seen = [self.samples[place][1] for place in slot.samples] or [observation]
            begun = slot.begun or slot.count <= 1  # nothing of the sightings before is left in it
            samples.derived_from(self.memory, number, [(one, self.trace) for one in seen], begun=begun)
            if slot.pictured is not None:
                samples.show(self.memory, number, self.samples[slot.pictured][0])
            elif picture is not None:
                self.memory.execute("update crop set gallery = null where gallery = ?", (number,))
                self._derived("crop", self._crop(slot.anchor, observation, picture, gallery=number), "gallery", number)

    def _crop(
        self,
        anchor: str,
        observation: int | None,
        picture: Jpeg,
        *,
        sample: int | None = None,
        gallery: int | None = None,
    ) -> int:
        starts = (seen.start for seen in self.draft.observations if seen.anchor == anchor)
        values = {
            "gallery": gallery,
            "sample": sample,
            "observation": observation,
            "at": next(starts, self.start),
            "width": picture.width,
            "height": picture.height,
        }
        number = insert(self.memory, "crop", values)
        self.crops.append((number, picture))
        return number

    def _pending(self) -> None:
        used, expired = "select value from json_each(?)", "select id from pending where camera = ? and expires <= ?"
        for which, values in ((used, (to_json(self.draft.pending_used),)), (expired, (self.camera, self.start))):
            self._forget_derivation("pending", which, *values)
            self.memory.execute(f"delete from pending where id in ({which})", values)  # noqa: S608 -- constants
        for kept in self.draft.pending:
            observation = self.anchors.get(kept.anchor)
            values_kept = {
                "trace": self.trace,
                "observation": observation,
                "camera": self.camera,
                "modality": kept.modality,
                "embedder": kept.embedder,
                "embedding": self._vector(kept.embedding, kept.embedder),
                "quality": kept.quality,
                "at": self.start,
                "expires": kept.expires,
            }
            self._derived("pending", insert(self.memory, "pending", values_kept), *self._origin(observation))

    def _names(self, utterances: tuple[int, ...]) -> None:
        for claim in self.draft.names:
            entity, name = self.entities[claim.entity], storable(claim.name)
            at = self.draft.utterances[claim.utterance].start
            values = {
                "entity": entity,
                "name": name,
                "source": claim.source,
                "utterance": utterances[claim.utterance],
                "at": at,
                "accepted": claim.accepted,
            }
            number = insert(self.memory, "name_claim", values)
            self._derived("name_claim", number, "utterance", utterances[claim.utterance])
            if claim.accepted:
                names.change(self.memory, entity, name, claim.source, at=at, claim=number)

    def _times(self) -> None:
        """Widen when each entity was seen or heard first and last."""
        spans: dict[int, tuple[float, float]] = {}
        found = [(seen.entity, seen.start, seen.end) for seen in self.draft.observations]
        found += [(heard.speaker, heard.start, heard.end) for heard in self.draft.utterances]
        for key, start, end in found:
            if key is not None:
                first, last = spans.get(self.entities[key], (start, end))
                spans[self.entities[key]] = (min(first, start), max(last, end))
        for entity, (first, last) in spans.items():
            if entity in self.created:
                sql = "update entity set first_seen = ?, last_seen = ? where id = ?"
            else:
                sql = "update entity set first_seen = min(first_seen, ?), last_seen = max(last_seen, ?) where id = ?"
            self.memory.execute(sql, (first, last, entity))

    def _key_frames(self) -> tuple[int, ...]:
        numbers = []
        for frame, jpeg in zip(self.draft.key_frames, self.pictures.frames, strict=True):
            values = {
                "trace": self.trace,
                "at": frame.at,
                "anchors": to_json(list(frame.anchors)),
                "width": jpeg.width,
                "height": jpeg.height,
            }
            numbers.append(insert(self.memory, "key_frame", values))
            self._derived("key_frame", numbers[-1], "trace", self.trace)
        return tuple(numbers)

    # -- small things -------------------------------------------------------------------------------------------------

    def _derived(self, kind: str, item: int, source_kind: str, source: int) -> None:
        self.memory.execute("insert or ignore into provenance values(?, ?, ?, ?)", (kind, item, source_kind, source))

    def _forget_derivation(self, kind: str, which: str, *values: object) -> None:
        sql = f"delete from provenance where item_kind = ? and item in ({which})"  # noqa: S608 -- constants
        self.memory.execute(sql, (kind, *values))

    def _origin(self, observation: int | None) -> tuple[str, int]:
        return ("trace", self.trace) if observation is None else ("observation", observation)

    def _entity(self, key: EntityKey | None) -> int | None:
        return None if key is None else self.entities[key]

    def _text(self, text: str) -> str:
        """A draft's text with the ids of the entities that it creates."""

        def number(key: int) -> int:
            return self.entities.get(key, key) if key < 0 else key

        return storable(renumbered(text, number))

    def _vector(self, vector: Vector, embedder: str) -> bytes:
        """A vector as bytes; those of one embedder all have the same length."""
        known = fetch(self.memory, "select dimension from embedder where name = ?", (embedder,))
        if not known:
            insert(self.memory, "embedder", {"name": embedder, "dimension": len(vector)})
        elif known[0][0] != len(vector):
            problem = f"a vector of {len(vector)} numbers came from “{embedder}”, whose vectors have {known[0][0]}"
            raise _refused(self.files, self.draft, problem)
        return vector_to_blob(vector)
