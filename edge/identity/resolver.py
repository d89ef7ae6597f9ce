"""The resolver: scored evidence in, decisions out. The only place where an identity is given.

Pure: no clock, no store, no chance. `resolve` reads an evidence and a state and returns a `Resolution`; the same two
    give the same result, whatever the order of tracks, voices, dictionaries and sets. Its invariants stand with its
    three parts: who is seen (`edge.identity.people`), who is heard (`edge.identity.voices`), what they are called
    (`edge.identity.names`), and how galleries learn (`edge.identity.galleries`). Across them:

* every person track and every voice of the segment has exactly one decision, with the evidence it rests on;
* only entities that are assigned in this segment are written to, and each gallery slot at most once;
* vectors of different embedders are never compared.

ReflectWorld-MM, 3.2 and Appendix C (Identity): re-identification proposes, the resolver alone commits an identity.
"""

from __future__ import annotations

from collections.abc import Mapping

from edge.identity.galleries import GalleryEditor
from edge.identity.names import claims_of_segment
from edge.identity.people import resolve_people
from edge.identity.resolution import Resolution
from edge.identity.state import GalleryState
from edge.identity.strangers import keep_out
from edge.identity.voices import resolve_voices
from edge.settings import IdentitySettings
from edge.types.drafts import EntityKey
from edge.types.evidence import SegmentEvidence


def resolve(evidence: SegmentEvidence, state: GalleryState, settings: IdentitySettings) -> Resolution:
    """Decide who is seen and heard in a segment, and what they are called.

    Args:
        evidence: what perception found.
        state: what is known already.
        settings: thresholds.

    Returns:
        All that goes into the segment's critical commit.
    """
    editor = GalleryEditor(state)
    people = resolve_people(evidence, state, settings, editor)
    voices = resolve_voices(evidence, state, settings, editor, people)
    names, notes = claims_of_segment(evidence, state, people, voices)
    assigned = {**people.assigned, **voices.assigned}
    decided = Resolution(
        entities=(*people.entities, *voices.entities),
        assigned=assigned,
        decisions=(*people.decisions, *voices.decisions, *notes),
        gallery=editor.writes(),
        samples=editor.samples(),
        pending=(*people.pending, *voices.pending),
        pending_used=tuple(sorted({*people.pending_used, *voices.pending_used})),
        names=names,
        seen=_last_seen(evidence, assigned),
        confidence={**people.confidence, **voices.confidence},
    )
    return keep_out(decided, state, settings)


def _last_seen(evidence: SegmentEvidence, assigned: Mapping[str, EntityKey | None]) -> dict[EntityKey, float]:
    """As the store will have it: the end of the last track or utterance of each."""
    ends = [(track.anchor, track.end) for track in evidence.tracks]
    ends += [(said.voice, said.end) for said in evidence.utterances if said.voice is not None]
    last: dict[EntityKey, float] = {}
    for anchor, end in ends:
        entity = assigned.get(anchor)
        if entity is not None:
            last[entity] = max(end, last.get(entity, end))
    return last
