"""Small random lives for the tests of corrections: what was decided, what is true, and a memory of either."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from edge.identity import Gallery, GalleryState, Slot
from edge.identity.galleries import GalleryEditor
from edge.identity.names import Bearer, Said, believed
from edge.memory import Store
from edge.types.drafts import (
    CommitDraft,
    Committed,
    DecisionDraft,
    NameClaim,
    NewEntity,
    ObservationDraft,
    SampleDraft,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.media import Mode
from edge.types.records import EntityKind, LineDraft, Modality, NameSource, Outcome, mention
from tests.identity_support import direction, near

START = 1_700_000_000.0
FACES, VOICES = "faces@1", "voices@1"


@dataclass(frozen=True)
class Sight:
    """One track, or one voice that nobody is seen to speak with."""

    true: int  # whose face and voice it really is
    cosine: float
    speaks: bool = True
    heard_only: bool = False
    claims: str | None = None  # a name that they say of themselves


@dataclass(frozen=True)
class Scene:
    """One segment."""

    sights: tuple[Sight, ...]
    called: str | None = None  # the first speaker calls the last one so


Owners = Sequence[int | None]  # of each sight; None: somebody new


def commit(store: Store, number: int, scene: Scene, owners: Owners, called: int | None = None) -> Committed:
    """Write a scene as live decisions would have.

    Args:
        store: where.
        number: of the segment.
        scene: what there is.
        owners: who each sight is decided to be: an entity; negative: somebody new, the same number the same one.
        called: who is meant by the name that is called.
    """
    start = START + 100.0 * number
    keys = [owner for owner in owners if owner is not None]
    anchors = [f"v{place}" if sight.heard_only else f"a{place}" for place, sight in enumerate(scene.sights)]
    groups: dict[int, list[str]] = {}
    for anchor, key in sorted(zip(anchors, keys, strict=True)):  # tracks before voices, as descriptions have them
        groups.setdefault(key, []).append(anchor)
    everybody = [mention(key, *of) for key, of in groups.items()]
    listed = everybody[0] if len(everybody) == 1 else ", ".join(everybody[:-1]) + " and " + everybody[-1]
    utterances, observations, decisions, samples, names = [], [], [], [], []
    for place, (sight, key, anchor) in enumerate(zip(scene.sights, keys, anchors, strict=True)):
        at, voice = start + 10 * place, f"v{place}"
        beyond = (place + 1) % len(keys)
        beside = f" beside {mention(keys[beyond], anchors[beyond])}" if len(keys) > 1 else ""
        text = f"{mention(key, anchor)} smiled{beside}."
        label = "voice" if sight.heard_only else "person"
        observations.append(ObservationDraft(anchor, label, key, at, at + 8, text, 0.9))
        if not sight.heard_only:
            reason = f"The face matches {mention(key)} ({sight.cosine:.2f})."
            decisions.append(DecisionDraft(anchor, Outcome.SAME, key, reason, {"modality": "face"}))
            face = near(direction(sight.true), sight.cosine, 100 * number + place)
            crop = np.full((8, 8, 3), (number * 20 + place * 5) % 256, np.uint8)
            quality = 50.0 + (7 * number + 3 * place) % 11
            samples.append(SampleDraft(key, Modality.FACE, FACES, face, quality, anchor, 2, 0.2, 0.5, crop))
        if sight.speaks or sight.heard_only:
            seen = None if sight.heard_only else anchor
            reason = "This person is seen speaking."
            decisions.append(DecisionDraft(voice, Outcome.SAME, key, reason, {"seen_speaking": seen}))
            sound = near(direction(90 + sight.true), sight.cosine, 7000 + 100 * number + place)
            samples.append(SampleDraft(key, Modality.VOICE, VOICES, sound, 3.0 + place, seen or voice, 2, 0.2, 0.6))
            if sight.claims:
                names.append((key, sight.claims, NameSource.SELF, len(utterances)))
            utterances.append(UtteranceDraft(at + 1, at + 4, f"So {number} {place}.", key, voice))
    if scene.called and called is not None and utterances:
        names.append((called, scene.called, NameSource.ADDRESSED, 0))
    editor = GalleryEditor(_state(store))
    for sample in samples:
        editor.learn(sample)
    lines = [LineDraft(start, f"{mention(key, anchor)} waved.") for key, anchor in zip(keys, anchors, strict=True)]
    if len(keys) == 1:
        lines.append(LineDraft(start + 5, f"Then {mention(keys[0])} left."))
    return store.commit(
        CommitDraft(
            camera="hall",
            trace=TraceDraft(start, start + 90, f"{listed} sat at a table.", Mode.OFFLINE_QUALITY, None, tuple(lines)),
            entities=tuple(NewEntity(key, EntityKind.PERSON) for key in dict.fromkeys(keys) if key < 0),
            observations=tuple(observations),
            utterances=tuple(utterances),
            decisions=tuple(decisions),
            gallery=editor.writes(),
            samples=tuple(samples),
            names=_believed(store, names),
            as_of=store.corrections_made(),
        )
    )


def _state(store: Store) -> GalleryState:
    galleries = {}
    for modality, embedder in ((Modality.FACE, FACES), (Modality.VOICE, VOICES)):
        slots: dict[int, list[Slot]] = {}
        for row in store.galleries(modality):
            slots.setdefault(row.entity, []).append(Slot(row.slot, row.embedding, row.quality, row.count))
        galleries[modality, embedder] = Gallery.build(slots)
    return GalleryState(galleries=galleries)


def _believed(store: Store, heard: Sequence[tuple[int, str, NameSource, int]]) -> tuple[NameClaim, ...]:
    claims: list[NameClaim] = []
    now: dict[int, Bearer] = {}
    for key, name, source, utterance in heard:
        if key not in now:
            known = store.entity(key) if key > 0 else None
            now[key] = Bearer(known.name, known.name_source) if known else Bearer(None, NameSource.NONE)
        before = [(one.name, one.source) for one in store.name_claims(key)] if key > 0 else []
        before += [(claim.name, claim.source) for claim in claims if claim.entity == key]
        accepted = believed(Said(name, source), now[key], before)
        claims.append(NameClaim(key, name, source, utterance, accepted))
        if accepted:
            now[key] = Bearer(name, source)
    return tuple(claims)


@dataclass
class Told:
    """One correction, as the reference has it."""

    number: int  # of the record
    kind: str
    person: int
    other: int | None = None
    items: frozenset[tuple[int, int]] = frozenset()  # (segment, place); the place -1: who was called
    name: str | None = None
    undone: bool = False


@dataclass
class Reference:
    """Who everything belongs to, by the plainest means."""

    origin: dict[tuple[int, int], int] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)

    def owner(self, item: tuple[int, int]) -> int:
        who = self.origin[item]
        for one in self.told:
            if one.undone:
                continue
            if one.kind == "merge" and who == one.other:
                who = one.person
            elif one.kind in ("split", "not") and item in one.items and one.other is not None:
                who = one.other
        return who

    def of(self, who: int) -> list[tuple[int, int]]:
        return sorted(item for item in self.origin if self.owner(item) == who)

    def moving(self, who: int, chosen: set[tuple[int, int]]) -> frozenset[tuple[int, int]]:
        """The sights chosen, and who was called where nothing of them is left."""
        mine = {item for item in self.of(who) if item[1] >= 0}
        called = {item for item in self.of(who) if item[1] < 0}
        whole = {segment for segment, _ in chosen if {item for item in mine if item[0] == segment} <= chosen}
        return frozenset(chosen | {item for item in called if item[0] in whole})

    def names(self) -> dict[int, str]:
        """The name that the owner's words leave each with."""
        lanes: dict[int, str | None] = {}
        groups: dict[int, list[int]] = {}
        for one in self.told:
            if one.undone:
                continue
            if one.kind == "merge" and one.other is not None:
                groups.setdefault(one.person, [one.person]).extend(groups.pop(one.other, [one.other]))
            elif one.kind == "name":
                for part in groups.get(one.person, [one.person]):
                    lanes.pop(part, None)
                lanes[one.person] = one.name
        found = {}
        for who in {*lanes, *groups}:
            if any(who in group for group in groups.values()) and who not in groups:
                continue
            named = [name for part in groups.get(who, [who]) if (name := lanes.get(part))]
            if named:
                found[who] = named[0]
        return found


def dump(store: Store, *, names: bool = True) -> dict[str, list[object]]:
    """All rows that say who is who, with people named by the first row that is theirs and not by their ids."""
    first: dict[int, str] = {}
    for who, row in store.rows(
        "select who, min(row) from (select entity who, printf('o%05d', id) row from observation where entity is not null"
        " union all select speaker, printf('u%05d', id) from utterance where speaker is not null) group by who"
    ):
        first[int(who)] = str(row)

    def who(entity: int | None) -> str | None:
        return None if entity is None else first.get(entity, f"nobody seen {entity}")

    def words(text: str) -> str:
        text = re.sub(r"\{\{(\d+)", lambda match: "{{" + str(who(int(match[1]))), text)
        return re.sub(r"[Xx]entityx(\d+)", lambda match: f"<{who(int(match[1]))}>", text)

    def rows(sql: str, *change: Callable[[object], object]) -> list[object]:
        return [tuple(how(value) for how, value in zip(change, row, strict=True)) for row in store.rows(sql)]

    def same(value: object) -> object:
        return value

    people = [one for one in store.entities() if one.id in first]
    found: dict[str, list[object]] = {
        "trace": rows("select id, text from trace order by id", same, words),  # type: ignore[list-item]
        "line": rows("select id, trace, text from line order by id", same, same, words),  # type: ignore[list-item]
        "observation": rows("select id, anchor, entity, text from observation order by id", same, same, who, words),  # type: ignore[list-item]
        "utterance": rows("select id, voice, speaker, text from utterance order by id", same, same, who, same),  # type: ignore[list-item]
        "decision": rows(
            "select id, anchor, outcome, entity, reason from decision order by id", same, same, same, who, words  # type: ignore[list-item]
        ),
        "sample": rows("select id, entity, hex(embedding), quality from sample order by id", same, who, same, same),  # type: ignore[list-item]
        "words": rows("select rowid, seen, said from words order by rowid", same, words, words),  # type: ignore[list-item]
        "document": rows("select trace, length from document order by trace", same, same),
        "people": sorted((str(who(one.id)), one.kind.value, one.first_seen, one.last_seen) for one in people),
        "faces": sorted(
            (str(who(one.id)), [(face.at, face.anchors, face.jpeg) for face in store.crops(one.id)]) for one in people
        ),
        "gallery": sorted(
            rows(
                "select g.entity, g.modality, g.slot, hex(g.embedding), g.quality, g.count, g.observation, r.sample,"
                " (select json_group_array(source_kind || source) from (select * from provenance p where"
                " p.item_kind = 'gallery' and p.item = g.id order by p.source_kind, p.source))"
                " from gallery g left join crop r on r.gallery = g.id",
                who, *[same] * 8,  # type: ignore[list-item]
            ),
            key=str,
        ),
        "claim": rows("select id, entity, name, source from name_claim order by id", same, who, same, same),  # type: ignore[list-item]
    }  # fmt: skip
    if names:
        found["name"] = sorted((str(who(one.id)), one.name, one.name_source.value) for one in people)
        found["believed"] = rows("select id, accepted from name_claim order by id", same, same)
        found["history"] = sorted(
            rows(
                "select entity, old_name, old_source, new_name, new_source, claim from name_history"
                " where entity in (select id from entity where merged_into is null) order by entity, id",
                who, *[same] * 5,  # type: ignore[list-item]
            ),
            key=str,
        )  # fmt: skip
    return found


def differences(one: Mapping[str, list[object]], other: Mapping[str, list[object]]) -> dict[str, object]:
    """The tables in which two dumps differ, with what is only in either."""
    return {
        table: (
            [row for row in one[table] if row not in other[table]],
            [row for row in other[table] if row not in one[table]],
        )
        for table in one
        if one[table] != other[table]
    }
