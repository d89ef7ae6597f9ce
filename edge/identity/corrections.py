"""What the owner corrects: two are one, some sightings are somebody else's, and back again.

The store moves what belongs to whom; the rules by which galleries and names follow from it are those of live decisions
(`edge.identity.galleries`, `edge.identity.names`), so that a corrected memory is the one that would have come about had
everything been right from the start.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from edge.errors import UserError
from edge.identity.galleries import GalleryFold
from edge.identity.names import Bearer, Said, believed
from edge.memory import Store
from edge.types.records import (
    CorrectionDraft,
    CorrectionKind,
    CorrectionRecord,
    EntityRecord,
    Kind,
    NameSource,
    parse_id,
    public_id,
)

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
LARGEST_ID: Final = 2**63 - 1  # of SQLite
_AUTHORITY: Final = tuple(NameSource)  # rising


def preview(store: Store, draft: CorrectionDraft) -> str:
    """What a correction would do, as one sentence; nothing is changed.

    Raises:
        NotFoundError: somebody is not known.
        UserError: it makes no sense.
    """
    draft, scope = store.scope(draft)
    person = store.entity(draft.person)
    reach = f"{_counted(scope.observations, 'sighting')} and {_counted(scope.utterances, 'utterance')}"
    reach += f" in {_counted(scope.traces, 'moment')}"
    if draft.kind is CorrectionKind.MERGE and draft.other is not None:
        other = store.entity(draft.other)
        stronger = _AUTHORITY.index(other.name_source) > _AUTHORITY.index(person.name_source)
        name = other.name if stronger else person.name
        called = f", who is called {name} from then on" if name else ""
        return f"{_who(other)} becomes part of {_who(person)}{called}: {reach}."
    whose = "somebody new's" if draft.other is None else f"those of {_who(store.entity(draft.other))}"
    apart = ", and the two are not taken for one again" if draft.kind is CorrectionKind.NOT_PERSON else ""
    return f"Of {_who(person)}, {reach} become {whose}{apart}."


def sentence(store: Store, record: CorrectionRecord) -> str:
    """What a correction did, as one sentence."""
    titles = store.titles([record.person] + ([] if record.other is None else [record.other]))

    def who(entity: int) -> str:
        number = public_id(Kind.ENTITY, entity)
        return f"{titles[entity]} ({number})" if entity in titles else number

    if record.kind is CorrectionKind.NAME:
        named = f"was named {record.name}" if record.name else "lost the name"
        words = f"{public_id(Kind.ENTITY, record.person)} {named}"
    elif record.kind is CorrectionKind.MERGE and record.other is not None:
        words = f"{public_id(Kind.ENTITY, record.other)} became part of {who(record.person)}"
    else:
        reach = f"{_counted(record.observations, 'sighting')} and {_counted(record.utterances, 'utterance')}"
        words = f"{reach} of {who(record.person)} became those of {who(record.other or 0)}"
        words += ", who is somebody else" if record.kind is CorrectionKind.NOT_PERSON else ""
    return f"{words}; undone since." if record.undone_at is not None else f"{words}."


def sightings_in(ids: Sequence[str]) -> tuple[tuple[Kind, int], ...]:
    """Ids of sightings, as people write them.

    Raises:
        UserError: one of them is no id.
    """
    found = []
    for text in ids:
        try:
            found.append(parse_id(text))
        except ValueError:
            message = f"“{text[:40]}” is no sighting; give ids of moments (t12), observations (o7) or words (u9)."
            raise UserError(message) from None
        if found[-1][1] > LARGEST_ID:
            raise UserError(f"There is no sighting {text[:40]}; `reflectworld people show` lists them.")
    return tuple(found)


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


def _who(entity: EntityRecord) -> str:
    return f"{entity.title} ({public_id(Kind.ENTITY, entity.id)})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
