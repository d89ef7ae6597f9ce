"""What goes with a person: all that they did and said, everywhere. The rules stand in `forget`."""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

import apsw
import numpy as np

from edge.errors import NotFoundError
from edge.memory import index
from edge.memory.database import fetch
from edge.memory.drafts import vector_from_blob
from edge.memory.upkeep.plans import Part, Plan, Target, among, counted, traces_where
from edge.memory.upkeep.redact import Names
from edge.types.mentions import mentioned
from edge.types.records import Kind, public_id

MAYBE_THEIRS: Final = 0.48  # cosine from which undecided evidence may be theirs (`IdentitySettings.face_pending`)


def person_plan(connection: apsw.Connection, user: str, target: Target, person: int) -> Plan:
    """What goes with a person.

    Raises:
        NotFoundError: nobody has this id.
    """
    known = fetch(connection, "select id from entity where id = ? and user = ? and merged_into is null", (person, user))
    if not known:
        who = public_id(Kind.ENTITY, person)
        raise NotFoundError(
            who, f"The memory knows nobody with the id {who}; `reflectworld people list` lists everybody."
        )
    people = [person]
    for one in people:  # grows while it is walked: chains of merges
        merged = fetch(connection, "select id from entity where merged_into = ? and id <> ?", (one, one))
        people += [who for (who,) in merged if who not in people]
    names = names_of(connection, user, people)
    seen: dict[int, list[int]] = {}
    said: dict[int, list[int]] = {}
    for number, trace in among(connection, "select id, trace from observation where entity", people):
        seen.setdefault(trace, []).append(number)
    for number, trace in among(connection, "select id, trace from utterance where speaker", people):
        said.setdefault(trace, []).append(number)
    for name in names.whole:  # descriptions that came with names only
        sql = (
            "select u.id, u.trace from utterance u join trace t on t.id = u.trace join camera c on c.id = t.camera"
            " where u.speaker is null and u.speaker_name = ? collate nocase and +c.user = ?"
        )
        for number, trace in fetch(connection, sql, (name, user)):
            said.setdefault(trace, []).append(number)
    touched = {*seen, *said}
    for table in ("decision", "sample"):
        touched |= {trace for (trace,) in among(connection, f"select distinct trace from {table} where entity", people)}
    visible = [
        trace
        for (trace,) in among(
            connection, "select distinct trace from observation where label <> 'voice' and entity", people
        )
    ]
    pending, maybe = _maybe(connection, user, people)
    touched |= _mentioning(connection, user, people, names) | _in_reasons(connection, user, people)
    gone = [trace for trace in sorted(touched) if nothing_else(connection, trace, people, names, said.get(trace, ()))]
    whole = set(gone)
    parts = [
        Part(trace, tuple(sorted(seen.get(trace, ()))), tuple(sorted(said.get(trace, ()))))
        for trace in sorted(touched - whole)
    ]
    pictured = among(connection, "select id, trace from key_frame where trace", {*visible, *maybe})
    rules = [
        number
        for number, text in fetch(connection, "select id, text from rule where user = ?", (user,))
        if names.found(text)
    ]
    alerts = [
        number
        for number, text, topic, reason in fetch(
            connection, "select id, text, topic, reason from alert where user = ?", (user,)
        )
        if any(set(people).intersection(mentioned(words)) or names.found(words) for words in (text, topic, reason))
    ]
    asked = [
        number
        for number, question, route in fetch(
            connection, "select id, question, route from answer where user = ?", (user,)
        )
        if names.found(question) or names.found(route)
    ]
    return counted(
        connection,
        target,
        people=people,
        traces=gone,
        parts=parts,
        pictures=[number for number, trace in pictured if trace not in whole],
        names=names.whole,
        rules=rules,
        alerts=alerts,
        pending=pending,
        answers=asked,
    )


def names_of(connection: apsw.Connection, user: str, people: Iterable[int]) -> Names:
    """All names that these were ever called by, beside the names of everybody else."""
    these = json.dumps(sorted(people))
    found: dict[str, None] = {}
    for sql in (
        "select name from entity where id",
        "select new_name from name_history where entity",
        "select old_name from name_history where entity",
        "select name from name_claim where entity",
        "select name from given_name where entity",
        "select name from correction where person",
    ):
        for (name,) in fetch(connection, f"{sql} in (select value from json_each(?))", (these,)):
            if name:
                found[name] = None
    others = (
        "select name from entity where user = ? and name is not null and id not in (select value from json_each(?))"
    )
    return Names(found, [name for (name,) in fetch(connection, others, (user, these))])


def _mentioning(connection: apsw.Connection, user: str, people: Iterable[int], names: Names) -> set[int]:
    """Moments whose indexed texts speak of them, by identity or by name."""
    found: set[int] = set()
    ((last,),) = fetch(connection, "select coalesce(max(id), 0) from trace")

    def having(term: str) -> set[int]:
        return set(index.documents(connection, term, 0, last, last + 1)[0].tolist())

    for who in people:
        found |= having(index.entity_token(who))
    for name in names.parts:
        sets = [having(term) for term in index.tokens(connection, name)]
        candidates = set.intersection(*sets) if sets else set()
        found |= {trace for trace in candidates if any(names.found(text) for text in texts_of(connection, trace))}
    return found & set(traces_where(connection, user, "1")) if found else found


def texts_of(connection: apsw.Connection, trace: int) -> list[str]:
    """All texts of a moment in which names may stand."""
    sql = (
        "select text from trace where id = ?1 union all select text from line where trace = ?1"
        " union all select text from utterance where trace = ?1"
        " union all select coalesce(speaker_name, '') from utterance where trace = ?1"
    )
    return [text for (text,) in fetch(connection, sql, (trace,))]


def _in_reasons(connection: apsw.Connection, user: str, people: Iterable[int]) -> set[int]:
    """Moments in which somebody else's sightings or decisions mention them; no index has these texts."""
    found: set[int] = set()
    for who in people:
        for table, column in (("observation", "text"), ("decision", "reason")):
            sql = f"select distinct trace from {table} where instr({column}, ?1) or instr({column}, ?2)"
            found |= {trace for (trace,) in fetch(connection, sql, (f"{{{{{who}}}}}", f"{{{{{who}:"))}
    return found & set(traces_where(connection, user, "1")) if found else found


def _maybe(connection: apsw.Connection, user: str, people: Iterable[int]) -> tuple[list[int], set[int]]:
    """Evidence that waits and may be theirs, and the moments with a face that may be."""
    theirs: dict[tuple[str, str], list[Any]] = {}
    for sql in (
        "select modality, embedder, embedding from sample where entity",
        "select modality, embedder, embedding from gallery where entity",
    ):
        for modality, embedder, blob in among(connection, sql, people):
            theirs.setdefault((modality, embedder), []).append(vector_from_blob(blob))
    pending, traces = [], set()
    waiting = (
        "select p.id, p.trace, p.modality, p.embedder, p.embedding from pending p join camera c on c.id = p.camera"
        " where c.user = ?"
    )
    for number, trace, modality, embedder, blob in fetch(connection, waiting, (user,)):
        known = theirs.get((modality, embedder))
        if known and float(np.max(np.stack(known) @ vector_from_blob(blob))) >= MAYBE_THEIRS:
            pending.append(number)
            traces |= {trace} if modality == "face" else set()
    # What was decided about faces at the time: whom an open one resembled.
    among_people = set(people)
    sql = (
        "select d.trace, d.evidence from decision d join trace t on t.id = d.trace join camera c on c.id = t.camera"
        " where d.entity is null and d.outcome in ('pending', 'unsafe', 'conflict') and +c.user = ?"
        " and instr(d.evidence, '\"entity\"')"
    )
    for trace, text in connection.execute(sql, (user,)):
        evidence = json.loads(text)
        ranked = [*_candidates(evidence, "possible"), *_candidates(evidence, "candidates")]
        if evidence.get("modality") != "voice" and any(
            who in among_people and score >= MAYBE_THEIRS for who, score in ranked
        ):
            traces.add(trace)
    return pending, traces


def _candidates(evidence: dict[str, Any], key: str) -> list[tuple[Any, float]]:
    ranked = evidence.get(key)
    if not isinstance(ranked, list):
        return []
    return [(one.get("entity"), float(one.get("score", 0.0))) for one in ranked if isinstance(one, dict)]


def nothing_else(
    connection: apsw.Connection, trace: int, people: Iterable[int], names: Names, said: Iterable[int] = ()
) -> bool:
    """Whether a moment is theirs alone."""
    who = json.dumps(sorted(people))
    others = fetch(
        connection,
        "select 1 from observation where trace = ?1 and (entity is null or entity not in (select value from json_each(?2)))"
        " union all select 1 from utterance where trace = ?1 and (speaker is null or speaker not in"
        " (select value from json_each(?2))) and id not in (select value from json_each(?3)) limit 1",
        (trace, who, json.dumps(sorted(said))),
    )
    lines = fetch(connection, "select text from line where trace = ? union all select text from trace where id = ?",
                  (trace, trace))  # fmt: skip
    gone = set(people)
    # A sentence that speaks of others, too, stays with "someone" in it.
    return not others and all(
        (gone.intersection(mentioned(text)) or names.found(text)) and gone.issuperset(mentioned(text))
        for (text,) in lines
    )
