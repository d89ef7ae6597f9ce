"""From records of the memory to the forms of the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from edge.clock import iso
from edge.memory import Store
from edge.memory.tiers.scene import reads as scene_reads
from edge.memory.tiers.scene import words as scene_words
from edge.memory.tiers.timeline import Node
from edge.memory.tiers.working import Working as WorkingMemory
from edge.recall import Answer, Result, looked_at
from edge.serve.forms import (
    Answered,
    Camera,
    DayMoment,
    Found,
    KeyFrame,
    Line,
    Looked,
    Mark,
    Moment,
    Seen,
    Stretch,
    StretchPerson,
    Target,
    Who,
    WholeMoment,
    Why,
    Words,
    Working,
)
from edge.serve.protocols import CameraStatus, OrderLike
from edge.types.evidence import NormBox
from edge.types.records import Kind, ObservationRecord, TraceRecord, UtteranceRecord, public_id, render

_NEAR = 1.5  # s: a box of a track counts for a picture taken so near to it


def when(at: float | None) -> str | None:
    """An instant as it is written, or nothing."""
    return None if at is None else iso(at)


def entity_id(number: int | None) -> str | None:
    """The public id of a person, or nothing."""
    return None if number is None else public_id(Kind.ENTITY, number)


def who(entities: Iterable[int], titles: Mapping[int, str]) -> list[Who]:
    """Those who take part, with their titles."""
    return [Who(id=public_id(Kind.ENTITY, one), title=titles.get(one, "someone")) for one in entities]


def words(record: UtteranceRecord) -> Words:
    """An utterance."""
    return Words(
        id=public_id(Kind.UTTERANCE, record.id),
        trace=public_id(Kind.TRACE, record.trace),
        start=iso(record.start),
        end=iso(record.end),
        speaker=entity_id(record.speaker),
        speaker_name=record.speaker_name,
        text=record.text,
    )


def unusual(store: Store, records: Sequence[TraceRecord]) -> dict[int, list[str]]:
    """What is unusual about some moments, by id, one sentence each. Reads the memory."""
    with store.reading() as connection:
        marks = scene_reads.marks(connection, store.user, [(record.id, record.start) for record in records])
    return {number: [scene_words.sentence(one) for one in found] for number, found in marks.items()}


def moment(record: TraceRecord, titles: Mapping[int, str], unusual: Sequence[str] = ()) -> Moment:
    """A trace, with what is unusual about it."""
    return Moment(
        id=public_id(Kind.TRACE, record.id),
        camera=record.camera,
        start=iso(record.start),
        end=iso(record.end),
        text=record.text,
        lines=[Line(at=iso(line.at), text=line.text) for line in record.lines],
        entities=who(record.entities, titles),
        utterances=[words(said) for said in record.utterances],
        key_frames=[public_id(Kind.KEY_FRAME, frame) for frame in record.key_frames],
        unusual=list(unusual),
    )


def day_moment(record: TraceRecord) -> DayMoment:
    """A trace as a timeline shows it; where nothing was seen, what was said."""
    spoken = " ".join(f"“{said.text}”" for said in record.utterances)
    return DayMoment(
        id=public_id(Kind.TRACE, record.id),
        camera=record.camera,
        start=iso(record.start),
        end=iso(record.end),
        text=record.text or spoken,
        people=[public_id(Kind.ENTITY, one) for one in record.entities],
        key_frame=public_id(Kind.KEY_FRAME, record.key_frames[0]) if record.key_frames else None,
    )


def seen(record: ObservationRecord) -> Seen:
    """An observation."""
    return Seen(
        id=public_id(Kind.OBSERVATION, record.id),
        trace=public_id(Kind.TRACE, record.trace),
        camera=record.camera,
        label=record.label,
        entity=entity_id(record.entity),
        start=iso(record.start),
        end=iso(record.end),
        text=record.text,
        score=round(record.score, 3),
    )


def whole_moment(store: Store, record: TraceRecord) -> WholeMoment:
    """A trace with all that is known of it. Reads the memory."""
    titles = store.titles(record.entities)
    observations = store.observations(trace=record.id, newest_first=False, limit=1000)
    around = store.neighbours(record.id, 1)
    place = next(i for i, one in enumerate(around) if one.id == record.id)
    pictures = []
    for number in record.key_frames:
        frame = store.key_frame(number)
        marks = [
            Mark(
                label=one.label,
                entity=entity_id(one.entity),
                title=titles.get(one.entity) if one.entity is not None else None,
                box=box,
            )
            for one in observations
            if one.anchor in frame.anchors and (box := _box_at(one, frame.at)) is not None
        ]
        pictures.append(
            KeyFrame(
                id=public_id(Kind.KEY_FRAME, number),
                at=iso(frame.at),
                width=frame.width,
                height=frame.height,
                marks=marks,
            )
        )
    plain = moment(record, titles, unusual(store, [record]).get(record.id, ()))
    return WholeMoment(
        **dict(plain),
        observations=[seen(one) for one in observations],
        pictures=pictures,
        decisions=[
            Why(
                id=public_id(Kind.DECISION, one.id),
                outcome=one.outcome.value,
                entity=entity_id(one.entity),
                reason=one.reason,
            )
            for one in store.decisions(trace=record.id, limit=200)
        ],
        before=public_id(Kind.TRACE, around[place - 1].id) if place > 0 else None,
        after=public_id(Kind.TRACE, around[place + 1].id) if place + 1 < len(around) else None,
    )


def stretch(node: Node, titles: Mapping[int, str]) -> Stretch:
    """A node of the timeline."""
    return Stretch(
        id=node.item,
        level=node.name,
        camera=node.camera,
        start=iso(node.start),
        end=iso(node.end),
        moments=node.traces,
        text=_titled(node.text, titles),
        summary_source=node.source,
        people=[
            StretchPerson(id=public_id(Kind.ENTITY, one), title=titles.get(one, "someone"), moments=count)
            for one, count in sorted(node.people.items(), key=lambda item: (-item[1], item[0]))
        ],
        places=node.places,
        things=node.things,
    )


def working(state: WorkingMemory, titles: Mapping[int, str], now: float, inactivity_s: float) -> Working:
    """What goes on in front of a camera."""
    return Working(
        camera=state.camera,
        event=public_id(Kind.NODE, state.event),
        start=iso(state.start),
        end=iso(state.end),
        current=state.current(now, inactivity_s),
        moments=state.segments,
        summary=_titled(state.summary, titles),
        latest=[_titled(one.text, titles) for one in state.latest],
        people=who((one for one, _ in state.active), titles),
        targets=[
            Target(
                label=one.label,
                person=entity_id(one.entity),
                title=None if one.entity is None else titles.get(one.entity, "someone"),
                last=iso(one.last),
                moments=one.seen,
                missed=one.missed,
            )
            for one in state.targets
        ],
    )


def _titled(text: str, titles: Mapping[int, str]) -> str:
    return render(text, lambda one: titles.get(one, "someone"))


def found(result: Result) -> Found:
    """One result."""
    return Found(
        id=result.id,
        level=result.level.value,
        trace=result.trace,
        camera=result.camera,
        start=iso(result.start),
        end=iso(result.end),
        score=round(result.score, 4),
        text=result.text,
        entities=[Who(id=one, title=title) for one, title in zip(result.entities, result.people, strict=False)],
        key_frame=result.key_frame,
    )


def answered(answer: Answer) -> Answered:
    """An answer."""
    return Answered(
        question=answer.question,
        kind=answer.kind.value,
        answer=answer.text,
        found=answer.found,
        start=when(answer.start),
        end=when(answer.end),
        people=list(answer.people),
        camera=answer.camera,
        key_frame=answer.key_frame,
        cited=list(answer.cited),
        evidence=[found(result) for result in answer.evidence],
        notes=list(answer.notes),
        understood=answer.understood,
        silent=answer.silent,
        rounds=answer.rounds,
        looks=[
            Looked(
                memory=look.memory,
                where=looked_at(look),
                query=look.query,
                why=look.why,
                brought=look.brought,
                helped=look.helped,
            )
            for look in answer.looks
        ],
        id=answer.id,
        ms=round(answer.milliseconds, 2),
    )


def ordered(text: str, order: OrderLike) -> Answered:
    """What an order in the place of a question comes to, as an answer."""
    return Answered(
        question=text,
        kind="order",
        answer=order.text,
        found=True,
        start=None,
        end=None,
        people=[],
        camera=None,
        key_frame=None,
        cited=[order.item],
        evidence=[],
        notes=[],
        rounds=1,
        ms=0.0,
    )


def camera(status: CameraStatus) -> Camera:
    """A camera."""
    return Camera(
        name=status.name,
        uri=status.uri,
        state=str(status.state),
        detail=status.detail,
        since=when(status.since),
        last_frame=when(status.last_frame),
        fps=round(status.fps, 2),
        width=status.width,
        height=status.height,
        segments=status.segments,
        dropped=status.dropped,
        enabled=status.enabled,
        paused=status.paused,
        pushed=status.pushed,
    )


def _box_at(record: ObservationRecord, at: float) -> NormBox | None:
    """Where it was at an instant; None: it has no box near to it."""
    if not record.boxes:
        return None
    time, box = min(record.boxes, key=lambda one: abs(one[0] - at))
    return box if abs(time - at) <= _NEAR else None
