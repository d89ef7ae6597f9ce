"""Importing an export: into an empty memory, which is equal then, or into one that goes on beside it.

Everything is one transaction of memory.db; pictures are written before it ends, as in a commit, and those of an import that
was cut off are removed like those of a commit that was. What is read is checked row by row: the columns and the types of
the schema, the values of enumerations, references that lead somewhere.

In a merge ids, and the numbers of unnamed people, are given out anew. A moment that is there already (same camera, source
and time) is passed over with all that hangs on it; whoever was seen or heard in it is who is known from it here.
"""

# ruff: noqa: S608 -- tables and columns are constants; values are bound

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw
import structlog

from edge.errors import StoreVersionError, UserError
from edge.memory import frames, index, jobs
from edge.memory.database import fetch, transaction
from edge.memory.frames import Jpeg
from edge.memory.schema import MEMORY
from edge.memory.tiers import procedural
from edge.memory.upkeep import archive
from edge.memory.upkeep.archive import Archive
from edge.memory.upkeep.checking import Columns, checked
from edge.memory.upkeep.matching import Matches, find_matches
from edge.memory.upkeep.numbering import Numbers, moved_evidence, moved_ground, moved_text
from edge.memory.upkeep.tables import ALIASES, BASE, BY_NAME, Table
from edge.memory.writer import Files

log = structlog.get_logger(__name__)

Progress = Callable[[int, int], None]

_PICTURES: Final = "pictures.jsonl"
_BATCH: Final = 64  # pictures in one transaction of frames.db
_ROWS: Final = 500  # rows in one statement


@dataclass(slots=True)
class ImportReport:
    """What was imported."""

    merged: bool  # there was something before
    rows: dict[str, int] = field(default_factory=dict)  # by table
    passed_over: int = 0  # moments that were there already
    left_out: int = 0  # rows that hang on them, or on something that was not exported
    pictures: int = 0


def load(path: Path, files: Files, user: str, *, progress: Progress = lambda _done, _total: None) -> ImportReport:
    """Import an export. Runs in the writer's thread.

    Args:
        path: a folder or a ZIP file.
        files: of the memory.
        user: whose memory it becomes.
        progress: called with tables done and tables there are.

    Raises:
        ArchiveError: it is no export, damaged, or holds something that cannot be; nothing was imported.
        StoreVersionError: written by a newer version.
        apsw.Error: it cannot be written; nothing was imported.
    """
    with archive.reading(path) as source:
        schema = int(source.manifest["schema"])
        if schema > MEMORY.version:
            raise StoreVersionError(
                path,
                f"“{path}” was written by a newer reflectworld (schema {schema}, not {MEMORY.version});"
                " update with `pip install -U reflectworld-edge`.",
            )
        if unknown := set(source.files) - {f"{table.name}.jsonl" for table in BASE} - {_PICTURES}:
            raise source.wrong(f"holds rows that are not known ({min(unknown)})")
        source.check()
        report = None
        try:
            with transaction(files.memory):
                report = _Import(source, files, user).run(progress)
        except BaseException as error:
            # When it was the commit that failed, what is on the disk may be found committed after a crash: its pictures stay,
            # and the next opening removes them if they are nobody's.
            if report is None:
                _remove_pictures(files)
            if isinstance(error, apsw.ConstraintError):
                raise source.wrong(f"contradicts itself or this memory ({error})") from error
            raise
        return report


def _remove_pictures(files: Files) -> None:
    """Remove those whose rows were taken back."""
    try:
        frames.remove_orphans(files.memory, files.frames)
    except apsw.Error as error:  # what went wrong first is what is told; the next opening removes them
        log.warning("import.pictures_left", error=str(error))


class _Import:
    """One import under way, inside the transaction."""

    def __init__(self, source: Archive, files: Files, user: str) -> None:
        self.source = source
        self.files = files
        self.memory = files.memory
        self.user = user
        used = fetch(self.memory, "select name from sqlite_sequence where seq > 0")
        known = fetch(self.memory, "select 1 from text_embedder union all select 1 from embedder limit 1")
        self.merging = bool(known) or not BY_NAME.keys().isdisjoint(name for (name,) in used)
        self.report = ImportReport(self.merging)
        self.numbers = Numbers(BASE)
        self.matches = Matches()
        self.pictures = self._listed()
        self.picture: tuple[str, int, str] | None = next(self.pictures, None)
        self.parts: list[tuple[int, int]] = []  # people who became part of others: id here, id of the other there
        self.waiting: dict[str, list[tuple[int, Jpeg]]] = {"frame": [], "crop": []}

    def run(self, progress: Progress) -> ImportReport:
        memory = self.memory
        memory.execute("pragma defer_foreign_keys = 1")  # of people who are part of those that come later
        if self.merging:
            self.matches = find_matches(self.source, memory, self.user)
            self.report.passed_over = len(self.matches.traces)
        for done, table in enumerate(BASE):
            progress(done, len(BASE))
            if f"{table.name}.jsonl" in self.source.files and not (self.merging and table.alone):
                self.report.rows[table.name] = self._table(table)
        if self.picture is not None:
            raise self.source.wrong("has pictures of nothing")
        self._put_pictures(0)
        if broken := fetch(memory, "pragma foreign_key_check"):
            raise self.source.wrong(f"refers to something that is not in it ({broken[0][0]})")
        if not self.merging:
            self._sequences()
        self._derive()
        progress(len(BASE), len(BASE))
        return self.report

    # -- rows -----------------------------------------------------------------------------------------------------------

    def _table(self, table: Table) -> int:
        columns = Columns(self.memory, table.name)
        batch: list[dict[str, Any]] = []
        count, last = 0, 0
        for row in self.source.rows(f"{table.name}.jsonl"):
            values = checked(self.source, table, columns, row)
            if table.identified:
                if values["id"] <= last:
                    raise self.source.wrong(f"has rows that are not in order ({table.name})")
                last = values["id"]
            place = self._place(table, columns, values)
            if place is None:
                self.report.left_out += 1
                continue
            if table.single:
                self.memory.execute(f"delete from {table.name}")
                batch = []
            batch.append(place)
            count += 1
            if len(batch) == _ROWS:
                self._insert(table, columns, batch)
                batch = []
        self._insert(table, columns, batch)
        for here, other in self.parts:
            target = self.numbers.here(table.name, other)
            self.memory.execute(f"update {table.name} set merged_into = ? where id = ?", (target, here))
        self.parts = []
        return count

    def _insert(self, table: Table, columns: Columns, batch: list[dict[str, Any]]) -> None:
        if batch:
            places = ", ".join(f":{name}" for name in columns.names)
            verb = "insert" if table.identified else "insert or replace" if table.alone else "insert or ignore"
            self.memory.executemany(f"{verb} into {table.name}({', '.join(columns.names)}) values({places})", batch)

    def _place(self, table: Table, columns: Columns, values: dict[str, Any]) -> dict[str, Any] | None:
        """A row with the ids that it has here; None: it is left out."""
        old = values.get("id") if table.identified else None
        jpeg = self._jpeg(table, old) if table.picture is not None and old is not None else None
        if old is not None and self._known(table, old, values):
            return None
        if (
            table.of_new is not None
            and values[table.of_new] in self.matches.entities
            and not self._heard(table, values)
        ):
            return None
        if not self._refer(table, columns, values):
            return None
        if table.picture is not None and (jpeg is None or not self._shown(values)):
            return None
        if "user" in values:
            values["user"] = self.user
        if table.name == "embedder":
            self._same_dimension(values)
        part_of = values.get("merged_into")
        if self.merging:
            self._renumber(table, values)
        if old is not None:
            values["id"] = self.numbers.give(table.name, old, None if not self.merging else self._next(table.name))
            if part_of is not None and self.merging:
                self.parts.append((values["id"], part_of))
                values["merged_into"] = None
            if jpeg is not None and table.picture is not None:
                self.waiting[table.picture].append((values["id"], jpeg))
                self._put_pictures(_BATCH)
        return values

    def _refer(self, table: Table, columns: Columns, values: dict[str, Any]) -> bool:
        """Let a row refer to what its references are here; False: what it belongs to is not here."""
        for column, target in table.refs.items():
            number = values[column]
            if number is None:
                continue
            if target == table.name:
                continue  # may come later: see `parts`; without a merge ids stay, and are looked at in the end
            here = self.numbers.here(target, number)
            if here is None and column in columns.required | table.needs:
                return False
            values[column] = here
        for kind, item in table.kinds:
            named = ALIASES.get(values[kind], values[kind])
            if named not in BY_NAME:
                raise self.source.wrong(f"has rows of a kind that is not known ({table.name}.{kind})")
            here = self.numbers.here(named, values[item])
            if here is None:
                return False
            values[item] = here
        return True

    def _renumber(self, table: Table, values: dict[str, Any]) -> None:
        """What a merge changes in a row beside its references."""
        for column in table.texts:
            values[column] = moved_text(values[column], self.numbers)
        if table.name == "decision":
            values["evidence"] = moved_evidence(values["evidence"], self.numbers)
        elif table.name == "alert":
            values["ground"] = moved_ground(values["ground"], self.numbers)
        elif table.name == "entity":
            values["number"] = self.matches.new_number(self.memory, self.user, values["kind"])
        elif table.name == "correction":
            values["claims"] = self.numbers.at_most("name_claim", values["claims"], self.matches.last_claim)

    def _known(self, table: Table, old: int, values: dict[str, Any]) -> bool:
        """Whether a row is one that is here already, or that nothing new needs."""
        here = (
            self.matches.known(self.memory, table.name, old, values, self.numbers, self.user) if self.merging else None
        )
        if here is None:
            return False
        if here:
            self.numbers.match(table.name, old, here)
        return True

    def _heard(self, table: Table, values: Mapping[str, Any]) -> bool:
        """Whether a claim of a name comes with a moment that is new."""
        said = values.get("utterance")
        return table.name == "name_claim" and said is not None and self.numbers.here("utterance", said) is not None

    def _next(self, table: str) -> int:
        return self.matches.next_id(self.memory, table)

    def _same_dimension(self, values: Mapping[str, Any]) -> None:
        known = fetch(self.memory, "select dimension from embedder where name = ?", (values["name"],))
        if known and known[0][0] != values["dimension"]:
            raise self.source.wrong(
                f"holds vectors of “{values['name'][:60]}” that are of another length than those here"
            )

    # -- pictures -------------------------------------------------------------------------------------------------------

    def _listed(self) -> Iterator[tuple[str, int, str]]:
        if _PICTURES not in self.source.files:
            return
        for row in self.source.rows(_PICTURES):
            table, number, digest = row.get("table"), row.get("id"), row.get("sha256")
            if (
                table not in ("frame", "crop")
                or not isinstance(number, int)
                or not isinstance(digest, str)
                or number < 1
            ):
                raise self.source.wrong("has a list of pictures that makes no sense")
            yield str(table), number, digest

    def _jpeg(self, table: Table, number: int) -> Jpeg | None:
        """The picture of a row, read if it is wanted; both lists are in the same order."""
        if self.picture is None or self.picture[:2] != (table.picture, number):
            return None
        kind, _, digest = self.picture
        self.picture = next(self.pictures, None)
        return Jpeg(self.source.picture(archive.picture_name(kind, number), digest), 0, 0)

    @staticmethod
    def _shown(values: Mapping[str, Any]) -> bool:
        """Whether a picture still belongs to something."""
        return "gallery" not in values or values["gallery"] is not None or values["sample"] is not None

    def _put_pictures(self, least: int) -> None:
        if sum(map(len, self.waiting.values())) > least:
            frames.put(self.files.frames, self.waiting["frame"], self.waiting["crop"])
            self.report.pictures += sum(map(len, self.waiting.values()))
            self.waiting = {"frame": [], "crop": []}

    # -- what follows ---------------------------------------------------------------------------------------------------

    def _sequences(self) -> None:
        """Let ids go on where they were, so that none is given out twice."""
        for name, last in self.source.manifest["sequences"].items():
            if name in BY_NAME and isinstance(last, int) and 0 <= last < 2**62:
                self.memory.execute(
                    "insert into sqlite_sequence(name, seq) select ?1, 0 where not exists"
                    " (select 1 from sqlite_sequence where name = ?1)",
                    (name,),
                )
                self.memory.execute("update sqlite_sequence set seq = max(seq, ?) where name = ?", (last, name))
        self.memory.execute(
            "insert into entity_number select user, iif(kind = 'voice', 'voice', 'person') series, max(number) from entity"
            " where true group by 1, 2 on conflict do update set last = max(last, excluded.last)"
        )

    def _derive(self) -> None:
        """Make what came findable, and ask for all that is derived from it."""
        for trace in self.numbers.new("trace"):
            index.add_trace(self.memory, trace, None, (), "")
            jobs.enqueue(self.memory, self.user, jobs.TRACE, trace, priority=jobs.AT_ONCE)
        # Of a part, the first sighting of somebody may have stayed behind.
        first = next(self.numbers.new("trace"), None)
        for entity in self.numbers.new("entity"):
            self.memory.execute(
                "insert into provenance select 'entity', ?1, 'trace',"
                " coalesce((select min(trace) from participation where entity = ?1), ?2)"
                " where ?2 is not null and not exists (select 1 from provenance where item_kind = 'entity' and item = ?1)",
                (entity, first),
            )
        whole = not any(self.source.manifest["filter"].get(bound) for bound in ("since", "until", "camera"))
        due = int(self.merging or not whole)
        self.memory.execute(
            "update identity_state set generation = generation + 1, galleries_due = max(galleries_due, ?)", (due,)
        )
        procedural.look_from_now(self.memory, self.user)


def check_quiet(claims: list[str]) -> None:
    """See to it that nothing else writes, as the import is one long transaction.

    Args:
        claims: what others are at (`Store.claims`).

    Raises:
        UserError: something does.
    """
    if claims:
        raise UserError(f"{claims[0]} is writing to this memory; stop it, then import.")
