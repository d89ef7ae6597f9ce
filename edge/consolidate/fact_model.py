"""The facts about somebody, gone over by a language model: what it is shown, and which of its edits are made.

It reads and writes nothing: who keeps the facts gives what holds now and the notes since, and makes the changes in the
transaction that takes the job out of the queue. Facts that rules made stay without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from edge.consolidate.asking import ask
from edge.consolidate.edits import Change, Edits, Known, sift
from edge.consolidate.wording import tidy
from edge.memory.tiers.extract import Sentence, extract
from edge.reason import Budget, Reasoner, Refusal, Request, Why, load_prompt
from edge.types.records import mention

FACTS: Final = "facts"  # the purpose by which it is counted
_KNOWN: Final = 24  # facts that go into a prompt
_NOTES_WORDS: Final = 600  # of the notes, likewise: with the rest and the answer below 2500 tokens
_TOKENS: Final = 600


def propose_changes(
    reasoner: Reasoner,
    subject: int,
    known: Sequence[Known],
    notes: Sequence[tuple[float, str]],
    names: Mapping[int, str],
    stopping: Callable[[], bool],
) -> list[Change] | None:
    """Ask a language model what has changed about somebody (ReflectWorld-MM, 3.4 and Appendix C).

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
    facts = "\n".join(f"{fact.item}: {tidy(fact.text)}" for fact in shown) or "(none)"
    prompt = load_prompt("facts").fill(subject=mention(subject), facts=facts, notes="\n".join(told))
    answer = ask(reasoner, Request(FACTS, prompt, Edits, Budget(_TOKENS)), stopping)
    if isinstance(answer, Refusal):
        return None if answer.reason is Why.STOPPED else []
    changes, dropped = sift(answer.edits, shown, subject, told, names)
    reasoner.drop(FACTS, dropped)
    return changes
