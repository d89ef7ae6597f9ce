"""Summaries of closed stretches of time, written better by a language model where there is one.

What is there without a model stays until a better text was checked, and whenever its ground changes the extractive text comes
back: a model adds, and nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import apsw
import structlog
from pydantic import BaseModel, Field

from edge.consolidate.asking import ask, given_names
from edge.consolidate.wording import acceptable, tidy
from edge.memory import Store, jobs
from edge.memory.jobs import Job
from edge.memory.tiers.timeline import text as timeline_text
from edge.memory.tiers.timeline.extract import Sentence, extract, length
from edge.memory.tiers.timeline.text import Ground
from edge.reason import Budget, Reasoner, Refusal, Request, Why, load_prompt
from edge.types.records import mentioned

log = structlog.get_logger(__name__)

SUMMARY: Final = "summary"  # kind of job: one node, by its number
SUMMARIES: Final = "summaries"  # kind of job: look which nodes may get a better text
EVERY_S: Final = 600.0  # between such looks
_AT_ONCE: Final = 16  # nodes that are asked for at a look
_NOTES_WORDS: Final = 700  # of the ground that go into a prompt: with the answer below 2048 tokens


class Written(BaseModel):
    """What the model answers."""

    sentences: Annotated[list[Annotated[str, Field(max_length=600)]], Field(min_length=1, max_length=16)]


def ask_for_summaries(memory: apsw.Connection, user: str, now: float) -> None:
    """Do a job `summaries`: ask for the nodes that no model has written yet."""
    for node in timeline_text.unwritten(memory, user, now, _AT_ONCE):
        jobs.ensure(memory, user, SUMMARY, node, 0.0)


def write_summary(store: Store, reasoner: Reasoner, job: Job, stopping: Callable[[], bool]) -> None:
    """Do a job `summary`: let the model write the text of a node, check it, and put it there.

    Args:
        store: the memory, open for writing.
        reasoner: that asks the model.
        job: its key is the number of a node.
        stopping: see `Handlers.patient`.

    Raises:
        PostponedError: the model cannot be asked now.
        ReasonError: it refuses.
        StoreError: the memory cannot be read or written.
    """
    with store.reading() as connection:
        ground = timeline_text.ground(connection, int(job.key))
    notes = _notes(ground) if ground is not None else ()
    if ground is None or not notes:  # it is gone, or is about to change
        store.transact(lambda memory: jobs.finish(memory, job))
        return
    if sum(map(length, notes)) <= ground.words:  # all of it is told as it is
        _conclude(store, job, ground, [])
        return
    prompt = load_prompt("summary").fill(words=str(ground.words), notes="\n".join(notes))
    answer = ask(reasoner, Request(SUMMARY, prompt, Written, Budget(tokens=64 + 3 * ground.words)), stopping)
    if isinstance(answer, Refusal) and answer.reason is Why.STOPPED:
        return
    kept: list[str] = []
    if isinstance(answer, Written):
        texts = [text for _, text in ground.texts]
        names = given_names(store, {who for text in texts for who in mentioned(text)})
        kept, dropped = acceptable(answer.sentences, texts, ground.words, names)
        reasoner.drop(SUMMARY, dropped)
    _conclude(store, job, ground, kept)
    log.info("summary.written", node=job.key, sentences=len(kept))


def _conclude(store: Store, job: Job, made_from: Ground, kept: list[str]) -> None:
    """Write the sentences, or keep what is there when there are none, and take the job out of the queue."""

    def write(memory: apsw.Connection) -> None:
        if not jobs.finish(memory, job):
            return
        if not kept:
            timeline_text.keep(memory, made_from)
            return
        camera = timeline_text.rewrite(memory, made_from, "\n".join(kept))
        if camera is not None:
            timeline_text.refresh(memory, camera)

    store.transact(write)


def _notes(ground: Ground) -> tuple[str, ...]:
    """What of the ground is told to the model: what tells most, in the order of time."""
    return extract([Sentence(at, tidy(text)) for at, text in ground.texts], _NOTES_WORDS)
