"""What the owner corrects: two are one, some sightings are somebody else's, and back again.

The store moves what belongs to whom; the rules by which galleries and names follow from it are those of live decisions
(`edge.identity.galleries`, `edge.identity.names`), so that a corrected memory is the one that would have come about had
everything been right from the start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from edge.identity.galleries import GalleryFold
from edge.identity.names import Bearer, Said, believed
from edge.memory import Store
from edge.types.records import CorrectionDraft, CorrectionKind, CorrectionRecord, Kind, NameSource

Sightings = Sequence[tuple[Kind, int]]


class Rules:
    """How galleries and names follow from what is kept; what `Store.correct` asks for."""

    def galleries(self, voices: Collection[int]) -> GalleryFold:
        """An empty fold; `voices` are only heard."""
        return GalleryFold(voices)

    def believes(
        self,
        name: str,
        source: NameSource,
        called: str | None,
        authority: NameSource,
        heard: Sequence[tuple[str, NameSource]],
    ) -> bool:
        """Whether a name that is heard becomes the name of somebody who is `called` so on some `authority`."""
        return believed(Said(name, source), Bearer(called, authority), heard)


RULES: Final = Rules()


def merge_people(store: Store, keep: int, other: int) -> CorrectionRecord:
    """Say that two are one. Of a person and a voice the person is kept, whichever comes first here.

    Args:
        store: the memory, open for writing.
        keep: who is kept, and whose name counts when both were named by the owner.
        other: who becomes part of them.

    Raises:
        NotFoundError: one of them is not known.
        UserError: both are the same.
    """
    return store.correct(CorrectionDraft(CorrectionKind.MERGE, keep, other), RULES)


def split_person(store: Store, who: int, sightings: Sightings, to: int | None = None) -> CorrectionRecord:
    """Say that some sightings of somebody are somebody else's.

    Args:
        store: the memory, open for writing.
        who: whose they were until now.
        sightings: ids of traces, observations and utterances.
        to: whose they are; None: somebody new's.

    Raises:
        NotFoundError: somebody is not known.
        UserError: something is not a sighting of theirs.
    """
    return store.correct(CorrectionDraft(CorrectionKind.SPLIT, who, to, tuple(sightings)), RULES)


def not_this_person(store: Store, who: int, sightings: Sightings, to: int | None = None) -> CorrectionRecord:
    """Likewise, and keep in mind that these two look alike and are not one. Arguments and errors as of `split_person`."""
    return store.correct(CorrectionDraft(CorrectionKind.NOT_PERSON, who, to, tuple(sightings)), RULES)


def undo(store: Store, correction: int | None = None) -> CorrectionRecord:
    """Take a correction back, also a name that was given; None: the latest that holds.

    Raises:
        NotFoundError: there is none of this id.
        UserError: it was undone already, or there is none.
    """
    return store.undo(correction, RULES)


def rebuild_galleries(store: Store) -> None:
    """Make all galleries again from the evidence that is kept, for example after some of it was forgotten.

    Raises:
        StoreError: the memory cannot be written.
    """
    store.rebuild_galleries(RULES)
