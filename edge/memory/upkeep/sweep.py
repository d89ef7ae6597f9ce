"""Looking through every text of the memory for somebody who is forgotten: also where nothing points at them.

Whatever table a text is in, now or later, it is looked at here; the other names of people who stay are left alone.
"""

# ruff: noqa: S608 -- tables and columns are those of the schema; values are bound

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import apsw

from edge.memory import index
from edge.memory.database import fetch
from edge.memory.drafts import to_json
from edge.memory.upkeep.redact import Names, Redaction, evidence_pattern, without_people

# What the owner or the product calls things; `erase` sees to the names of people.
_LEFT: Final = frozenset(
    {
        *("camera", "source", "entity", "entity_number", "embedder", "text_embedder", "name_history", "name_claim"),
        *("given_name", "correction", "provenance", "migration", "discarded", "moved", "correction_item", "forgotten"),
        *("graph_node", "graph_bond"),
    }
)
_PREFIX: Final = 3  # letters by which a word is told where pages of the index begin
_INDEXED: Final = {("trace", "text"): "id", ("line", "text"): "trace", ("utterance", "text"): "trace"}


def everywhere(memory: apsw.Connection, gone: Redaction) -> list[int]:
    """Take mentions and names out of every text.

    Returns:
        The moments whose indexed texts changed.
    """
    needles = [f"{{{{{who}{end}" for who in sorted(gone.people) for end in ("}}", ":")]
    for name in gone.names.parts:
        forms = {name, name.lower(), name.upper(), name.title(), json.dumps(name)[1:-1]}
        needles += sorted(form.split()[0] for form in forms if form.split())
    changed = []
    for table, column, key in texts(memory):
        keys = ", ".join(key)
        found: dict[tuple[object, ...], str] = {}
        for needle in dict.fromkeys(needles):
            sql = f"select {column}, {keys} from {table} where instr({column}, ?)"
            found |= {tuple(rest): text for text, *rest in fetch(memory, sql, (needle,))}
        where = " and ".join(f"{name} = ?" for name in key)
        for row, text in found.items():
            clean = gone.inline(text)
            if clean != text:
                trace = _INDEXED.get((table, column))
                if trace is not None:
                    changed += [one for (one,) in fetch(memory, f"select {trace} from {table} where {where}", row)]
                memory.execute(f"update {table} set {column} = ? where {where}", (clean, *row))
    for who in gone.people:
        memory.execute(
            "update node set people = json_remove(people, '$.\"' || ?1 || '\"') where instr(people, '\"' || ?1 || '\":')",
            (str(who),),
        )
    return changed


def texts(memory: apsw.Connection) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(table, column, its key) of every text that may speak of somebody."""
    tables = fetch(
        memory,
        "select name, sql like '%without rowid%' from sqlite_schema where type = 'table' and rootpage > 0"
        " and name not like 'sqlite!_%' escape '!' and name not like 'words%' order by name",
    )
    for table, keyed in tables:
        if table in _LEFT:
            continue
        columns = fetch(memory, "select name, lower(type), pk from pragma_table_info(?)", (table,))
        key = (
            tuple(name for name, _, place in sorted(columns, key=lambda one: one[2]) if place) if keyed else ("rowid",)
        )
        yield from ((table, name, key) for name, kind, _ in columns if kind == "text" and name not in key)


def scrub_decisions(memory: apsw.Connection, user: str, people: frozenset[int]) -> None:
    """Let nobody of `people` be a candidate in what decisions rest on."""
    pattern = evidence_pattern(people)
    sql = (
        "select d.id, d.evidence from decision d join trace t on t.id = d.trace join camera c on c.id = t.camera"
        " where +c.user = ? and length(d.evidence) > 2"
    )
    found = [(number, text) for number, text in memory.execute(sql, (user,)) if pattern.search(text)]
    for number, text in found:
        clean = to_json(without_people(json.loads(text), people))
        memory.execute("update decision set evidence = ? where id = ?", (clean, number))


def in_index(memory: apsw.Connection, names: Names) -> bool:
    """Whether what leads to the pages of the index of words may still have parts of a name: deleting does not reach there."""
    wanted = {term[:_PREFIX] for name in names.parts for term in index.tokens(memory, name)}
    for (term,) in fetch(memory, "select term from words_idx"):
        leads = term.decode("utf-8", "replace") if isinstance(term, bytes) else str(term)
        if leads[1:][:_PREFIX] in wanted:  # the first sign says which index it is
            return True
    return False
