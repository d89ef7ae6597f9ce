"""What the resolver decided about one segment: ready to go into its critical commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.types.drafts import DecisionDraft, EntityKey, GalleryWrite, NameClaim, NewEntity, PendingWrite, SampleDraft
from edge.types.evidence import SegmentEvidence
from edge.types.records import mention


@dataclass(frozen=True, slots=True, eq=False)
class Resolution:
    """Identities of one segment.

    Everything but `assigned`, `seen` and `confidence` goes into the `CommitDraft` as it is.
    """

    entities: tuple[NewEntity, ...] = ()
    assigned: Mapping[str, EntityKey | None] = field(
        default_factory=dict
    )  # anchor of a person or a voice -> who; None: unknown
    decisions: tuple[DecisionDraft, ...] = ()
    gallery: tuple[GalleryWrite, ...] = ()
    samples: tuple[SampleDraft, ...] = ()
    pending: tuple[PendingWrite, ...] = ()
    pending_used: tuple[int, ...] = ()
    names: tuple[NameClaim, ...] = ()
    seen: Mapping[EntityKey, float] = field(default_factory=dict)  # when each was last seen or heard, UTC POSIX seconds
    as_of: int | None = None  # the `Store.corrections_made` that it knows of
    confidence: Mapping[str, float] = field(default_factory=dict)  # anchor -> 0..1, for those that were assigned

    def names_for(self, evidence: SegmentEvidence) -> dict[str, str]:
        """How a description refers to those of a segment's tracks and voices who are known.

        Returns:
            anchor -> mention, such as `{{3}}`, or `{{-1}}` for an entity that the same commit creates.
        """
        anchors = [track.anchor for track in evidence.tracks] + [voice.anchor for voice in evidence.voices]
        return {anchor: mention(key) for anchor in anchors if (key := self.assigned.get(anchor)) is not None}
