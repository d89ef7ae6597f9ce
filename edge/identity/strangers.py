"""Whether people without a name are enrolled: the owner's policy, applied to what was decided. Pure.

Invariants of the policy `none` (property tests hold them):

* nothing that is written is a vector or a face of somebody who has neither a name nor the owner's consent: no sample, no
  slot, nothing that waits;
* nobody new comes to be; who would have been is unknown in this segment;
* what is decided about people who have a name is as without the policy.

Under `all` and `consent` everything is enrolled; how long those without a name stay is a matter of upkeep
(`edge.memory.upkeep.strangers`).
"""

from __future__ import annotations

from dataclasses import replace

from edge.identity.resolution import Resolution
from edge.identity.state import GalleryState
from edge.settings import IdentitySettings
from edge.types.drafts import DecisionDraft, EntityKey, GalleryWrite, PendingWrite
from edge.types.records import Modality, Outcome

NOT_ENROLLED = "Somebody without a name is not enrolled, as the settings say (identity.strangers)."


def keep_out(resolution: Resolution, state: GalleryState, settings: IdentitySettings) -> Resolution:
    """A resolution as the policy about strangers lets it be."""
    if settings.strangers != "none":
        return resolution
    new = {entity.key for entity in resolution.entities}
    named = {claim.entity for claim in resolution.names if claim.accepted and claim.entity not in new}

    def welcome(key: EntityKey | None) -> bool:
        if key is None or key in new:
            return False
        known = state.entities.get(key)
        return key in named or key in state.agreed or (known is not None and known.name is not None)

    place: dict[int, int] = {}  # of each sample that stays
    for number, sample in enumerate(resolution.samples):
        if welcome(sample.entity):
            place[number] = len(place)
    return replace(
        resolution,
        entities=(),
        assigned={anchor: None if who in new else who for anchor, who in resolution.assigned.items()},
        decisions=tuple(
            _decision(one, stranger=one.entity in new, learns=welcome(one.entity))
            for one in resolution.decisions
            if not (one.entity in new and "words" in one.evidence)  # the name of nobody
        ),
        gallery=tuple(_slot(slot, place) for slot in resolution.gallery if welcome(slot.entity)),
        samples=tuple(resolution.samples[number] for number in place),
        pending=tuple(
            one for one in resolution.pending if _waits(one) and welcome(resolution.assigned.get(one.anchor))
        ),
        names=tuple(claim for claim in resolution.names if claim.entity not in new),
        seen={who: at for who, at in resolution.seen.items() if who not in new},
        confidence={
            anchor: value
            for anchor, value in resolution.confidence.items()
            if resolution.assigned.get(anchor) not in new
        },
    )


def _waits(one: PendingWrite) -> bool:
    """Whether evidence may wait: the voice of somebody whose face is known; a face that is not is a stranger's."""
    return one.modality is Modality.VOICE


def _slot(slot: GalleryWrite, place: dict[int, int]) -> GalleryWrite:
    return replace(
        slot,
        samples=tuple(place[number] for number in slot.samples),
        pictured=None if slot.pictured is None else place[slot.pictured],
    )


def _decision(one: DecisionDraft, *, stranger: bool, learns: bool) -> DecisionDraft:
    if not stranger and (learns or one.entity is None):
        return one
    evidence = {key: value for key, value in one.evidence.items() if key != "gallery"}
    if stranger:
        return replace(one, outcome=Outcome.UNSAFE, entity=None, reason=NOT_ENROLLED, evidence=evidence)
    return replace(one, evidence={**evidence, "gallery": "refused: somebody without a name"})
