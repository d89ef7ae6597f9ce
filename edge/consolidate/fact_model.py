"""The facts about somebody, gone over by a language model where there is one.

It is shown what holds now and the moments since it was last asked, and proposes edits (ReflectWorld-MM, 3.4 and Appendix C); code
decides which are made (`edits`). What it adds are statements beside those that people made themselves, with the moments that it
was shown as their ground: a corrected or forgotten moment takes them back, and it is asked again. Facts that were counted, and
names, are not its to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import apsw
import structlog

from edge.consolidate.asking import ask, given_names
from edge.consolidate.edits import Change, Edits, Known, Op, sift
from edge.consolidate.wording import tidy
from edge.memory import Store, jobs
from edge.memory.jobs import Job
from edge.memory.tiers import facts
from edge.memory.tiers.facts import Noted, reads
from edge.memory.tiers.facts.runs import NOTED
from edge.memory.tiers.timeline.extract import Sentence, extract
from edge.reason import Budget, Reasoner, Refusal, Request, Why, load_prompt
from edge.types.records import mention, mentioned

log = structlog.get_logger(__name__)

FACT_NOTES: Final = "fact-notes"  # kind of job: one subject, by its number
FACT_NOTING: Final = "fact-noting"  # kind of job: look who is to be gone over
EVERY_S: Final = 600.0  # between such looks
PURPOSE: Final = "facts"  # by which it is counted
_AT_ONCE: Final = 16  # subjects that are asked for at a look
_KNOWN: Final = 24  # facts that go into a prompt
_MOMENTS: Final = 24  # moments whose texts do
_NOTES_WORDS: Final = 600  # of the notes, likewise: with the rest and the answer below 2500 tokens
_TOKENS: Final = 600


def ask_for_notes(memory: apsw.Connection, user: str, _now: float) -> None:
    """Do a job `fact-noting`: ask for those who were observed often enough since a model last went over them."""
    for subject in facts.unasked(memory, user, _AT_ONCE):
        jobs.ensure(memory, user, FACT_NOTES, subject, 0.0)


def note_facts(store: Store, reasoner: Reasoner, job: Job, stopping: Callable[[], bool]) -> None:
    """Do a job `fact-notes`: let the model go over what is known of somebody, and keep the edits that hold.

    Args:
        store: the memory, open for writing.
        reasoner: that asks the model.
        job: its key is the number of a subject.
        stopping: see `Handlers.patient`.

    Raises:
        PostponedError: the model cannot be asked now.
        ReasonError: it refuses.
        StoreError: the memory cannot be read or written.
    """
    number = int(job.key)
    with store.reading() as connection:
        material = facts.material(connection, number, _MOMENTS)
        held = [] if material is None else reads.facts(connection, store.user, entity=material.entity, history=False)
    if material is None:  # nobody is there any more, or nothing is new
        store.transact(lambda memory: jobs.finish(memory, job))
        return
    subject = mention(material.entity)
    known = [Known(one.id, f"{subject} {one.text}.", protected=not one.noted) for one in held]
    texts = [text for _, _, text in material.moments]
    names = given_names(store, {material.entity, *(who for text in texts for who in mentioned(text))})
    notes = [(start, text) for _, start, text in material.moments]
    changes = propose_changes(reasoner, material.entity, known, notes, names, stopping)
    if changes is None:
        return
    by_id = {one.id: one for one in held}
    noted = [one for change in changes for one in _noted(change, by_id, subject)]

    def write(memory: apsw.Connection) -> None:
        if jobs.finish(memory, job):
            facts.note_down(memory, material, noted)

    store.transact(write)
    log.info("facts.noted", subject=number, changes=len(changes))


def propose_changes(
    reasoner: Reasoner,
    subject: int,
    known: Sequence[Known],
    notes: Sequence[tuple[float, str]],
    names: Mapping[int, str],
    stopping: Callable[[], bool],
) -> list[Change] | None:
    """Ask a language model what has changed about somebody.

    Args:
        reasoner: that asks it.
        subject: the entity.
        known: the facts that hold now, the most important first; the first 24 are shown and may be edited.
        notes: (UTC POSIX seconds, text with mentions) of what was seen and heard since, in the order of time.
        names: of the subject and of people whom the notes mention: they are not sent, but what the model calls by them
            becomes a mention.
        stopping: see `Handlers.patient`.

    Returns:
        The changes to make, of each fact at most one; None: the job is to be given up, and nothing is to be written.

    Raises:
        PostponedError: the model cannot be asked now.
        ReasonError: it refuses.
    """
    told = extract([Sentence(at, tidy(text)) for at, text in notes], _NOTES_WORDS)
    if not told:
        return []
    shown = known[:_KNOWN]
    listed = "\n".join(f"{fact.item}: {tidy(fact.text)}" for fact in shown) or "(none)"
    prompt = load_prompt("facts").fill(subject=mention(subject), facts=listed, notes="\n".join(told))
    answer = ask(reasoner, Request(PURPOSE, prompt, Edits, Budget(_TOKENS)), stopping)
    if isinstance(answer, Refusal):
        return None if answer.reason is Why.STOPPED else []
    changes, dropped = sift(answer.edits, shown, subject, told, names)
    reasoner.drop(PURPOSE, dropped)
    return changes


def _noted(change: Change, held: Mapping[int, reads.Fact], subject: str) -> list[Noted]:
    """A change as statements: what is so no more, and what is so."""
    made = []
    old = held.get(change.fact) if change.fact is not None else None
    if old is not None and old.noted:
        own_words = old.kind == NOTED
        holds = change.op is Op.CONFIRM
        made.append(Noted(old.kind, "" if own_words else old.value, old.text if own_words else "", holds))
    if change.op in (Op.ADD, Op.UPDATE) and change.text.startswith(f"{subject} "):
        made.append(Noted("", "", change.text.removeprefix(subject).strip(" ."), holds=True))
    return made
