"""Carrying forgetting out: rows, texts, pictures, and the bytes in the files. What goes and why is in `forget`.

All rows go in one transaction. Pictures and freed pages follow at once (`give_back`); should the process end before, the
pictures are still noted in `discarded` and go when the memory is next opened, and what was freed is overwritten already.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import apsw

from edge.clock import utc_now
from edge.errors import StoreError, UserError
from edge.memory import attribution, frames, index, jobs, renaming
from edge.memory.database import fetch, insert, transaction
from edge.memory.drafts import to_json
from edge.memory.tiers import experience, facts, graph, scene, timeline, visual, working
from edge.memory.upkeep import sweep
from edge.memory.upkeep.forget import plan
from edge.memory.upkeep.forget_person import names_of
from edge.memory.upkeep.gaps import close_gaps
from edge.memory.upkeep.plans import Part, Plan, among
from edge.memory.upkeep.redact import FORGOTTEN, Redaction, joined, kept_parts, sentences
from edge.memory.upkeep.remove import (
    THESE,
    drop_galleries,
    remove_claims,
    remove_people,
    remove_rows,
    remove_traces,
    rewrite_words,
    settle_people,
)
from edge.memory.writer import Files
from edge.types.records import attributed

_OBJECTS: Final = frozenset({"person", "voice", "face"})  # labels that no sentence names as a thing


def carry_out(files: Files, user: str, planned: Plan, believes: renaming.Believes) -> None:
    """Forget, in one transaction, and see to it that the bytes are gone. Runs in the writer's thread.

    Args:
        files: both.
        user: whose memory.
        planned: what was shown.
        believes: the rule by which names that are heard become names, for those who lose some.

    Raises:
        UserError: the memory has changed since the plan was made; nothing was forgotten.
        StoreError: the logs could not be emptied, because another program reads at this moment; everything else is done.
    """
    memory = files.memory
    with transaction(memory):
        if plan(memory, user, planned.target).token != planned.token:
            raise UserError("The memory has changed since that was shown; look again at what will go.")
        _forget(memory, user, planned, believes)
    give_back(files)


def give_back(files: Files, *, patient: bool = False) -> None:
    """Pictures without a row go, free pages go back to the file system, and the logs are emptied.

    Args:
        files: both.
        patient: a log that another program reads at this moment may be emptied another time.

    Raises:
        StoreError: another program reads at this moment, so that a log could not be emptied.
    """
    while frames.remove_discarded(files.memory, files.frames):
        pass
    for connection in (files.memory, files.frames):
        connection.execute("pragma incremental_vacuum").fetchall()
        busy, _, _ = connection.execute("pragma wal_checkpoint(truncate)").fetchall()[0]
        if busy and not patient:
            raise StoreError(
                files.path,
                "What was to be forgotten is gone from the memory, but another program is reading its log at this moment; run"
                " `reflectworld forget` again to empty it.",
            )


def _forget(memory: apsw.Connection, user: str, planned: Plan, believes: renaming.Believes) -> None:
    people = frozenset(planned.people)
    names = names_of(memory, user, people) if planned.names else Redaction().names
    whole = Redaction(people, names)
    concerned = set(people)
    concerned |= {who for part in planned.parts for who in _takes_part(memory, part.trace)}
    for column, other in (("other", "person"), ("person", "other")):
        rows = among(memory, f"select {column} from correction where {column} is not null and {other}", people)
        concerned |= {who for (who,) in rows}
    concerned |= remove_traces(memory, user, planned.traces)
    changed = [part.trace for part in planned.parts if _change(memory, user, part, whole)]
    # What a moment looked like is made of its pictures, with whoever is in them.
    shown = {one for (one,) in among(memory, "select trace from key_frame where id", planned.pictures)}
    visual.remove(memory, shown | {part.trace for part in planned.parts if part.observations})
    for camera, hour in scene.hours_of(memory, [part.trace for part in planned.parts]):
        scene.settle(memory, camera, hour)
    experience.remove_answers(memory, planned.answers)
    remove_rows(memory, "pending", planned.pending)
    for table, numbers in (("key_frame", planned.pictures), ("rule", planned.rules), ("alert", planned.alerts)):
        remove_rows(memory, table, numbers)
    if names:
        concerned |= _false_names(memory, user, people, whole)
    if people:
        sweep.scrub_decisions(memory, user, people)
        _adopt(memory, people)
        facts.forget_people(memory, people)
        remove_people(memory, user, people)
        timeline.reword_faded(memory, user, whole.sentence)
    graph.derive(memory, user, (part.trace for part in planned.parts))
    if people or names:
        graph.forget_people(memory, user, people, names.found)
    graph.forget_faded(memory, planned.nodes)
    scene.forget_faded(memory, planned.nodes)
    facts.forget_faded(memory, planned.nodes)
    timeline.forget_faded(memory, planned.nodes)
    timeline.derive(memory, changed)
    for (camera,) in fetch(memory, "select id from camera where user = ?", (user,)):  # few; any may have told of them
        working.derive(memory, camera)
    if people or names:
        changed += sweep.everywhere(memory, whole)
    facts.renew(memory, user, [*(part.trace for part in planned.parts), *changed], gone=FORGOTTEN)
    for trace in dict.fromkeys(changed):
        index.reindex_trace(memory, trace)
    if names and sweep.in_index(memory, names):
        rewrite_words(memory)
    staying = concerned - people
    settle_people(memory, user, staying)
    _names_again(memory, user, staying, believes)
    _rest(memory, user, planned)
    words = planned.text.removeprefix("This forgets ").removesuffix(", for good.")
    insert(memory, "forgotten", {"user": user, "at": utc_now(), "words": words})
    memory.execute("update identity_state set generation = generation + 1, galleries_due = 1")
    close_gaps(memory)


def _rest(memory: apsw.Connection, user: str, planned: Plan) -> None:
    """What is of a camera, of a span, or of the memory as a whole."""
    target = planned.target
    if target.everything or target.camera is not None or target.since is not None or target.until is not None:
        since = -math.inf if target.since is None else target.since
        until = math.inf if target.until is None else target.until
        scene.forget_quiet(memory, user, since, until, target.camera)
        graph.forget_kept(memory, user, since, until, target.camera)
    if target.everything:
        facts.forget_all(memory, user)
        graph.clear(memory, user)
        for table in ("job", "alert", "rule", "correction", "forgotten", "entity_number", "experience"):
            memory.execute(f"delete from {table} where user = ?", (user,))
    if target.everything or target.camera is not None:
        mine = "select id from camera where user = ?1 and (?2 is null or name = ?2)"
        memory.execute(f"delete from source where camera in ({mine})", (user, target.camera))
        memory.execute(f"delete from camera where id in ({mine})", (user, target.camera))


def _takes_part(memory: apsw.Connection, trace: int) -> set[int]:
    return {who for (who,) in fetch(memory, "select entity from participation where trace = ?", (trace,))}


# -- a moment that stays ----------------------------------------------------------------------------------------------


def _change(memory: apsw.Connection, user: str, part: Part, whole: Redaction) -> bool:
    """Take some of a moment out; whether its indexed texts are others than before."""
    trace = part.trace
    owner = attribution.owner_of_mentions(memory, trace)
    redaction = _of_moment(memory, part, whole)
    decisions = _decisions(memory, part, whole)
    samples = _samples(memory, part)
    if samples:
        drop_galleries(memory, {who for (who,) in among(memory, "select entity from sample where id", samples)})
    remove_claims(memory, part.utterances)
    silent = [words for (words,) in among(memory, "select text from utterance where id", part.utterances)]
    for table, numbers in (
        ("sample", samples),
        ("decision", decisions),
        ("utterance", part.utterances),
        ("observation", part.observations),
    ):
        remove_rows(memory, table, numbers)
    _scrub_words(memory, trace, silent)
    changed = bool(part.utterances)
    for table, column, text in (
        ("trace", "id", "text"),
        ("line", "trace", "text"),
        ("observation", "trace", "text"),
        ("decision", "trace", "reason"),
    ):
        rows = fetch(
            memory,
            f"select x.id, x.{text}, o.text from {table} x left join original_text o on o.kind = '{table}' and o.item = x.id"
            f" where x.{column} = ?",
            (trace,),
        )
        for number, words, original in rows:
            done = _rewrite(memory, redaction, (table, text, number), words, original, owner)
            changed = changed or (done and table in ("trace", "line"))
    for number, words in fetch(memory, "select id, text from utterance where trace = ?", (trace,)):
        clean = redaction.names.without(words)
        if clean != words:
            memory.execute("update utterance set text = ? where id = ?", (clean, number))
            changed = True
    for number, name in fetch(memory, "select id, speaker_name from utterance where trace = ?", (trace,)):
        if name and redaction.names.found(name):
            memory.execute("update utterance set speaker_name = null where id = ?", (number,))
            changed = True
    if changed:
        memory.execute("delete from embedding where trace = ?", (trace,))
        memory.execute("delete from signs where trace = ?", (trace,))
        memory.execute("delete from word_signs where trace = ?", (trace,))
        memory.execute("update trace set embedder = '' where id = ?", (trace,))
        jobs.enqueue(memory, user, "embed", trace)
    jobs.enqueue(memory, user, jobs.RETRACE, trace, priority=jobs.AT_ONCE)
    return changed


def _of_moment(memory: apsw.Connection, part: Part, whole: Redaction) -> Redaction:
    """What goes from the texts of this moment."""
    seen = fetch(memory, "select id, anchor, label, entity from observation where trace = ?", (part.trace,))
    heard = fetch(memory, "select id, voice, speaker, text from utterance where trace = ?", (part.trace,))
    gone_seen, gone_heard = set(part.observations), set(part.utterances)
    left = {entity for number, _, _, entity in seen if number not in gone_seen}
    left |= {speaker for number, _, speaker, _ in heard if number not in gone_heard}
    labels = {label for number, _, label, _ in seen if number not in gone_seen}
    voices = {voice for number, voice, _, _ in heard if number not in gone_heard}
    anchors = {(who, anchor) for number, anchor, _, who in seen if number in gone_seen and who is not None}
    anchors |= {(who, voice) for number, voice, who, _ in heard if number in gone_heard and who and voice not in voices}
    gone = {who for number, _, _, who in seen if number in gone_seen} | {
        who for number, _, who, _ in heard if number in gone_heard
    }
    return replace(
        whole,
        anchors=frozenset(anchors),
        whole=frozenset(who for who in gone - left if who is not None),
        said=tuple(words for number, _, _, words in heard if number in gone_heard),
        labels=frozenset(
            label
            for number, _, label, who in seen
            if number in gone_seen and who is None and label not in labels | _OBJECTS
        ),
    )


def _decisions(memory: apsw.Connection, part: Part, whole: Redaction) -> list[int]:
    """The decisions about what goes."""
    anchors = {anchor for (anchor,) in among(memory, "select anchor from observation where id", part.observations)}
    left = fetch(memory, "select id, voice from utterance where trace = ?", (part.trace,))
    staying = {voice for number, voice in left if number not in part.utterances}
    anchors |= {voice for number, voice in left if number in part.utterances and voice and voice not in staying}
    found = fetch(memory, "select id, anchor, entity from decision where trace = ?", (part.trace,))
    return [number for number, anchor, who in found if who in whole.people or (anchor and anchor in anchors)]


def _samples(memory: apsw.Connection, part: Part) -> list[int]:
    """The evidence of identity in what goes."""
    seen = {number for (number,) in among(memory, "select id from sample where observation", part.observations)}
    speakers = {who for (who,) in among(memory, "select speaker from utterance where id", part.utterances)}
    heard = fetch(memory, "select id, entity from sample where trace = ? and modality = 'voice'", (part.trace,))
    return sorted(seen | {number for number, who in heard if who in speakers})


def _scrub_words(memory: apsw.Connection, trace: int, words: Iterable[str]) -> None:
    """Take words that were said out of what decisions rest on."""
    gone = set(words)
    for number, evidence in fetch(memory, "select id, evidence from decision where trace = ?", (trace,)):
        found = json.loads(evidence)
        if found.get("words") in gone:
            del found["words"]
            memory.execute("update decision set evidence = ? where id = ?", (to_json(found), number))


def _rewrite(
    memory: apsw.Connection,
    redaction: Redaction,
    row: tuple[str, str, int],
    words: str,
    original: str | None,
    owner: Callable[[int, str | None], int],
) -> bool:
    """Bring one text of a moment up to date, and its form before corrections; whether it changed."""
    table, column, number = row
    parts = [redaction.sentence(words)] if table == "line" else kept_parts(redaction, words)
    before = [words] if table == "line" else sentences(words)
    if table == "decision":
        parts = [redaction.inline(words)]
        before = [words]
    if original is not None:
        _keep_original(memory, redaction, (table, number), parts, original, owner)
    if parts == before:
        return False
    if table == "line" and parts == [None]:
        memory.execute("delete from original_text where kind = 'line' and item = ?", (number,))
        memory.execute("delete from line where id = ?", (number,))
    else:
        memory.execute(f"update {table} set {column} = ? where id = ?", (joined(parts), number))
    return True


def _keep_original(
    memory: apsw.Connection,
    redaction: Redaction,
    row: tuple[str, int],
    parts: list[str | None],
    original: str,
    owner: Callable[[int, str | None], int],
) -> None:
    """The form of a text before corrections, without what goes; it is given up where its sentences do not fit any more."""

    def origin(entity: int, anchor: str | None) -> int | None:
        now = owner(entity, anchor)
        if redaction.goes(now, anchor):
            return None
        return now if entity in redaction.people else entity

    first = [original] if len(parts) == 1 else sentences(original)
    if len(first) != len(parts):
        memory.execute("delete from original_text where kind = ? and item = ?", row)
        return
    clean = joined(
        [
            redaction.names.without(attributed(one, origin))
            for one, part in zip(first, parts, strict=True)
            if part is not None
        ]
    )
    memory.execute("update original_text set text = ? where kind = ? and item = ?", (clean, *row))


def _adopt(memory: apsw.Connection, people: frozenset[int]) -> None:
    """What others have from these by corrections is theirs from the start now: also in the first forms of texts."""
    moved = among(memory, "select distinct trace from moved where trace is not null and origin", people)
    for (trace,) in moved:
        owner = attribution.owner_of_mentions(memory, trace)
        rows = fetch(memory, "select kind, item, text from original_text where trace = ?", (trace,))
        for kind, item, text in rows:
            parts: list[str | None] = [text]
            _keep_original(memory, Redaction(people), (kind, item), parts, text, owner)


# -- names of those who stay ------------------------------------------------------------------------------------------


def _false_names(memory: apsw.Connection, user: str, people: Iterable[int], whole: Redaction) -> set[int]:
    """Where somebody else was once called by a name that goes: whom that was."""
    of = set(people)
    found: set[int] = set()
    claims = "select n.id, n.entity, n.name from name_claim n join entity e on e.id = n.entity where e.user = ?"
    claims_gone = [(n, who) for n, who, name in fetch(memory, claims, (user,)) if whole.names.found(name)]
    told = "select id, person, name from correction where user = ? and name is not null"
    told_gone = [(n, who) for n, who, name in fetch(memory, told, (user,)) if whole.names.found(name)]
    remove_rows(memory, "name_claim", [number for number, _ in claims_gone])
    remove_rows(memory, "correction", [number for number, _ in told_gone])
    found |= {who for _, who in claims_gone} | {who for _, who in told_gone}
    history = (
        "select h.id, h.entity, coalesce(h.old_name, ''), coalesce(h.new_name, '') from name_history h"
        " join entity e on e.id = h.entity where e.user = ?"
    )
    for number, who, old, new in fetch(memory, history, (user,)):
        if whole.names.found(old) or whole.names.found(new):
            memory.execute("delete from name_history where id = ?", (number,))
            found.add(who)
    return found - of


def _names_again(memory: apsw.Connection, user: str, people: Iterable[int], believes: renaming.Believes) -> None:
    corrections = attribution.active(memory, user)
    final = attribution.survivors(corrections)
    wanted = (json.dumps(sorted(people)),)
    for (who,) in fetch(memory, f"select id from entity where id {THESE} and merged_into is null", wanted):
        renaming.derive(memory, who, corrections, final, believes)
