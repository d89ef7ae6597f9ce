"""What becomes of each table of memory.db in an export: the one place where a table of the schema is declared.

* *base*: exported, one file of JSON Lines each, in this order (what is referred to comes first);
* *derived*: made again from the base after an import;
* *internal*: of this memory alone, such as its queue.

A test fails when a table of the schema is in none of the three.
"""

# ruff: noqa: S608 -- tables and columns are constants

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from edge.memory.tiers.procedural import Outcome as AlertOutcome
from edge.memory.tiers.procedural import RuleKind, RuleState
from edge.types.media import CutReason, Mode, SourceKind
from edge.types.records import CorrectionKind, EntityKind, Modality, NameSource, Outcome

# Of what is exported there are these temporary tables of ids: camera_in, source_in, trace_in, entity_in.
_TRACE: Final = "x.trace in trace_in"
_ENTITY: Final = "x.entity in entity_in"
WHOLE: Final = ":whole"  # 1: nothing is filtered


@dataclass(frozen=True, slots=True)
class Table:
    """How the rows of a base table are chosen, checked and moved."""

    name: str
    scope: str  # condition on x, a row
    refs: Mapping[str, str] = field(default_factory=dict)  # column -> table whose id is in it
    kinds: tuple[tuple[str, str], ...] = ()  # (column with the name of a table, column with an id of it)
    texts: tuple[str, ...] = ()  # columns with mentions
    json: tuple[str, ...] = ()  # columns that hold JSON
    allowed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    order: str = "x.id"
    identified: bool = True  # has an id that others refer to
    of_new: str | None = None  # in a merge, only for people whom this import brings: the column of the person
    alone: bool = False  # of the whole memory: not in a merge
    single: bool = False  # has one row, which the import replaces
    needs: frozenset[str] = frozenset()  # references without which a row means something else, and is left out
    picture: str | None = None  # table of frames.db with the picture of the same id


def _values(*kinds: type) -> frozenset[str]:
    return frozenset(str(value) for kind in kinds for value in kind)  # type: ignore[attr-defined]


_NAMES: Final = _values(NameSource)
_MODALITIES: Final = _values(Modality)

BASE: Final = (
    Table("embedder", "1", order="x.name", identified=False),
    Table("text_embedder", "1"),
    Table("camera", "x.id in camera_in"),
    Table("source", "x.id in source_in", {"camera": "camera"}, allowed={"kind": _values(SourceKind)}),
    Table(
        "entity",
        "x.id in entity_in",
        {"merged_into": "entity"},
        allowed={"kind": _values(EntityKind), "name_source": _NAMES},
    ),
    Table("entity_number", f"x.user = :user and {WHOLE}", order="x.series", identified=False, alone=True),
    Table("timeline_clock", WHOLE, order="1", identified=False, alone=True, single=True),
    Table(
        "trace",
        "x.id in trace_in",
        {"camera": "camera", "source": "source"},
        texts=("text",),
        json=("counts", "detail"),
        allowed={"mode": _values(Mode), "reason": _values(CutReason)},
    ),
    Table("line", _TRACE, {"trace": "trace"}, texts=("text",)),
    Table("observation", _TRACE, {"trace": "trace", "entity": "entity"}, texts=("text",), json=("boxes", "detail")),
    Table("utterance", _TRACE, {"trace": "trace", "speaker": "entity"}),
    Table(
        "decision",
        _TRACE,
        {"trace": "trace", "entity": "entity"},
        texts=("reason",),
        json=("evidence",),
        allowed={"outcome": _values(Outcome)},
    ),
    Table(
        "sample",
        _TRACE,
        {"trace": "trace", "observation": "observation", "entity": "entity"},
        allowed={"modality": _MODALITIES},
    ),
    Table(
        "gallery",
        f"{_ENTITY} and {WHOLE}",
        {"entity": "entity", "observation": "observation"},
        allowed={"modality": _MODALITIES},
        of_new="entity",
    ),
    Table(
        "pending",
        _TRACE,
        {"trace": "trace", "observation": "observation", "camera": "camera"},
        allowed={"modality": _MODALITIES},
    ),
    Table(
        "name_claim",
        f"{_ENTITY} and ({WHOLE} or x.utterance is null or x.utterance in (select id from utterance where trace in trace_in))",
        {"entity": "entity", "utterance": "utterance"},
        allowed={"source": _NAMES},
        of_new="entity",
    ),
    Table(
        "name_history",
        _ENTITY,
        {"entity": "entity", "claim": "name_claim"},
        allowed={"old_source": _NAMES, "new_source": _NAMES},
        of_new="entity",
    ),
    Table(
        "given_name",
        _ENTITY,
        {"entity": "entity"},
        allowed={"source": _NAMES},
        order="x.entity",
        identified=False,
        of_new="entity",
    ),
    Table("consent", _ENTITY, {"entity": "entity"}, order="x.entity", identified=False, of_new="entity"),
    Table("key_frame", _TRACE, {"trace": "trace"}, json=("anchors",), picture="frame"),
    Table(
        "crop",
        "x.sample in (select id from sample where trace in trace_in)"
        f" or ({WHOLE} and x.gallery in (select id from gallery where entity in entity_in))",
        {"gallery": "gallery", "sample": "sample", "observation": "observation"},
        picture="crop",
    ),
    Table(
        "correction",
        "x.user = :user and x.person in entity_in and (x.other is null or x.other in entity_in)",
        {"person": "entity", "other": "entity"},
        allowed={"kind": _values(CorrectionKind), "name_source": _NAMES},
        of_new="person",
        needs=frozenset({"other"}),
    ),
    Table(
        "correction_item",
        "x.correction in (select id from correction where user = :user and person in entity_in)",
        {"correction": "correction"},
        kinds=(("kind", "item"),),
        order="x.correction, x.kind, x.item",
        identified=False,
    ),
    Table(
        "moved",
        f"x.origin in entity_in and (x.trace in trace_in or ({WHOLE} and x.trace is null))",
        {"trace": "trace", "origin": "entity"},
        kinds=(("kind", "item"),),
        order="x.kind, x.item",
        identified=False,
    ),
    Table(
        "original_text",
        _TRACE,
        {"trace": "trace"},
        kinds=(("kind", "item"),),
        texts=("text",),
        order="x.kind, x.item",
        identified=False,
    ),
    Table(
        "rule",
        f"x.user = :user and {WHOLE}",
        allowed={"kind": _values(RuleKind), "state": _values(RuleState)},
    ),
    Table(
        "alert",
        f"x.user = :user and {WHOLE}",
        {"rule": "rule", "trace": "trace"},
        texts=("text",),
        json=("ground", "sent"),
        allowed={"outcome": _values(AlertOutcome)},
    ),
    Table("experience", f"x.user = :user and {WHOLE}", json=("shape",), alone=True),
    Table(
        "embedding",
        _TRACE,
        {"trace": "trace", "embedder": "text_embedder"},
        order="x.trace, x.embedder, x.unit",
        identified=False,
    ),
    Table(
        "signs",
        _TRACE,
        {"trace": "trace", "embedder": "text_embedder"},
        order="x.trace, x.embedder",
        identified=False,
    ),
    Table(
        "word_signs",
        _TRACE,
        {"trace": "trace", "embedder": "text_embedder"},
        order="x.trace, x.embedder",
        identified=False,
    ),
    Table("visual", _TRACE, {"trace": "trace"}, order="x.trace", identified=False),
    Table("quiet", "x.camera in camera_in", {"camera": "camera"}, order="x.camera, x.hour", identified=False),
    Table(
        "provenance",
        "",  # of what is exported: see `provenance_scope`
        kinds=(("item_kind", "item"), ("source_kind", "source")),
        order="x.item_kind, x.item, x.source_kind, x.source",
        identified=False,
    ),
)

DERIVED: Final = frozenset(
    {
        *("words", "words_config", "words_content", "words_data", "words_docsize", "words_idx", "words_instance"),
        *("document", "terms", "participation", "block", "block_signs", "block_cells", "posting"),
        *("node", "node_trace", "working", "faded"),
        *("scene_hour", "scene_tally"),
        *("fact", "fact_subject", "fact_tally", "fact_statement"),
        *("graph_node", "graph_bond", "graph_triple", "graph_day", "graph_kept"),
    }
)

INTERNAL: Final = frozenset(
    {
        *("sqlite_sequence", "migration", "index_state", "identity_state", "reindex", "discarded", "job"),
        "forgotten",
        "answer",  # with what it cites, by the ids of this memory
    }
)

BY_NAME: Final = {table.name: table for table in BASE}
ALIASES: Final = {"claim": "name_claim"}  # what columns with the name of a table say instead


def provenance_scope(pictures: bool) -> str:
    """Which rows of `provenance` are of something exported."""
    parts = []
    for table in BASE:
        if table.identified and (pictures or table.picture is None):
            these = table.scope.replace("x.", f"{table.name}.")
            parts.append(f"(x.item_kind = '{table.name}' and x.item in (select id from {table.name} where {these}))")
    return " or ".join(parts)
