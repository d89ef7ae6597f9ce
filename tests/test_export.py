"""Export and import: all that a memory rests on goes out and comes back equal, or beside what is there; nothing half."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge.errors import ArchiveError, StoreVersionError
from edge.identity import RULES, merge_people, split_person
from edge.memory import Store
from edge.memory.tiers import experience, procedural
from edge.memory.upkeep import exporting, importing
from edge.memory.upkeep.exporting import ExportFilter
from edge.memory.upkeep.importing import ImportReport
from edge.memory.upkeep.tables import BASE, DERIVED, INTERNAL
from edge.settings import MemorySettings
from edge.types.drafts import CommitDraft, NewEntity, SourceProgress
from edge.types.records import EntityKind, Kind, NameSource, mention
from tests import full_memory
from tests.corrections_support import Scene, Sight, commit
from tests.memory_support import SEGMENT_S, START, picture, replayed, segment, source
from tests.store_faults import derived, unlike

SETTINGS = MemorySettings()
Change = Callable[[Path], None]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with something in every table: people, faces, names, corrections, rules, pictures."""
    home = tmp_path_factory.mktemp("full") / "home"
    with Store.open(home) as store:
        for i in range(6):
            store.commit(segment(i, who=1 if i else None, frame=picture(i, 320, 240)))
        store.commit(replayed(7))
        cleo = mention(-1)
        described = replace(replayed(8), entities=(NewEntity(-1, EntityKind.NAMED, "Cleo", NameSource.ADDRESSED),))
        store.commit(replace(described, trace=replace(described.trace, text=f"{cleo} came.")))
        who = (-1, -2)
        for number in range(3):
            scene = Scene((Sight(0, 0.9, claims="Bea"), Sight(1, 0.9, heard_only=True)))
            committed = commit(store, 20 + number, scene, who)
            who = who if number else tuple(committed.entities.values())
        store.commit(segment(200, who=1))
        still = source()
        store.commit(CommitDraft(still.camera, None, SourceProgress(still, 201.5 * SEGMENT_S, 202)))
        store.set_name(1, "Anna")
        store.agree(who[1])
        sightings = [(Kind.OBSERVATION, seen.id) for seen in store.observations(entity=who[0])]
        split_person(store, who[0], sightings[:1])
        merge_people(store, 1, who[0])
        store.transact(_rule)
        store.transact(_experience)
        store.rebuild_galleries(RULES)
    return home


def _experience(memory: Any) -> None:
    shape = frozenset({"kind:where", "people:1"})
    learned = experience.Experience(experience.Bank.SUCCESS, "far", "event", shape, 3, 2, 0.9, START, START)
    experience.replace_experiences(memory, "owner", [learned])


def _rule(memory: Any) -> None:
    rule = procedural.add_rule(memory, "owner", procedural.RuleKind.ALERT, "tell me when the dog sits", created=START)
    for trace, outcome in ((1, procedural.Outcome.DELIVER), (2, procedural.Outcome.DROP)):
        procedural.add_alert(
            memory, "owner", rule, trace, at=START, outcome=outcome, reason="It sat.", topic="dog",
            text="{{1}} sits.", ground=["t1", "o1", "p1"],
        )  # fmt: skip


def dump(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of what is exported, and of the index that is made of it."""
    with Store.open(home) as store:
        found = {table.name: store.rows(f"select x.* from {table.name} x order by {table.order}") for table in BASE}
        for table in ("document", "terms", "participation"):
            found[table] = store.rows(f"select * from {table} order by 1, 2")
        found["words"] = store.rows("select rowid, seen, said from words order by 1")
        found["sequences"] = store.rows(
            "select name, seq from sqlite_sequence where name not in ('job', 'node') and name not like 'fact%' order by 1"
        )
        for table in ("frame", "crop"):
            found[f"{table} pictures"] = store.upkeep(
                lambda files, table=table: files.frames.execute(f"select id, jpeg from {table} order by id").fetchall()
            )
        assert store.integrity() == []
    return found


def load(home: Path, archive: Path) -> ImportReport:
    with Store.open(home) as store:
        return store.upkeep(lambda files: importing.load(archive, files, store.user))


def empty(home: Path) -> bool:
    with Store.open(home) as store:
        assert store.integrity() == []
        pictures = store.upkeep(lambda files: files.frames.execute("select count(*) from frame").fetchall())
        return store.counts().traces == 0 and pictures == [(0,)]


# -- completeness -----------------------------------------------------------------------------------------------------


def test_every_table_of_the_schema_is_exported_or_declared_derived_or_internal(home: Path) -> None:
    with Store.open(home) as store:
        tables = {name for (name,) in store.rows("select name from sqlite_schema where type = 'table'")}
    declared = {table.name for table in BASE}
    missing = tables - declared - DERIVED - INTERNAL
    assert not missing, f"say in edge/memory/upkeep/tables.py what becomes of these in an export: {missing}"
    assert declared | DERIVED | INTERNAL <= tables
    assert not (declared & DERIVED) | (declared & INTERNAL) | (DERIVED & INTERNAL)


def test_every_reference_of_a_table_is_declared(home: Path) -> None:
    with Store.open(home) as store:
        for table in BASE:
            keys = store.rows('select "from", "table" from pragma_foreign_key_list(?)', (table.name,))
            assert dict(keys).items() <= table.refs.items(), table.name


def test_the_memory_of_these_tests_has_something_in_every_table(full: Path) -> None:
    assert [name for name, rows in dump(full).items() if not rows] == []


@pytest.mark.parametrize("name", ["archive", "archive.zip"])
def test_an_import_into_an_empty_memory_is_equal(full: Path, home: Path, name: str) -> None:
    report = exporting.export(full, SETTINGS, home.parent / name)
    loaded = load(home, home.parent / name)
    assert dump(home) == dump(full)
    assert not loaded.merged
    assert loaded.left_out == 0
    assert loaded.rows == dict(report.rows)
    assert loaded.pictures == report.pictures > 6


def test_derived_tiers_are_asked_for_again(full: Path, home: Path) -> None:
    exporting.export(full, SETTINGS, home.parent / "x")
    load(home, home.parent / "x")
    with Store.open(home) as store:
        waiting = {int(key) for (key,) in store.rows("select key from job where kind = 'trace'")}
        assert waiting == {trace.id for trace in store.traces(limit=1000)}


# -- merging ----------------------------------------------------------------------------------------------------------


def test_an_import_twice_adds_nothing(full: Path, home: Path) -> None:
    exporting.export(full, SETTINGS, home.parent / "x")
    load(home, home.parent / "x")
    before = dump(home)
    again = load(home, home.parent / "x")
    assert again.merged
    assert again.passed_over == len(before["trace"])
    assert dump(home) == before


def test_a_merge_clashes_with_nothing_and_means_the_same(full: Path, home: Path) -> None:
    exporting.export(full, SETTINGS, home.parent / "x")
    with Store.open(home) as store:
        for i in range(100, 104):
            store.commit(segment(i, who=1 if i > 100 else None, frame=picture(i, 320, 240)))
        store.set_name(1, "Zoe")
    before = dump(home)
    load(home, home.parent / "x")
    after = dump(home)
    for table in ("trace", "observation", "key_frame", "entity", "frame pictures"):
        assert after[table][: len(before[table])] == before[table]
        assert len(after[table]) == len(before[table]) + len(dump(full)[table])
    with Store.open(home) as merged, Store.open(full, readonly=True) as original:
        assert readable(merged, after=4) == readable(original)
        names = [person.title for person in merged.entities()]
        assert len(names) == len(set(names))
        rules = merged.rows("select id, text from rule")
        alerts = merged.rows("select rule, trace, ground, text from alert order by id")
        traces = [number for (number,) in merged.rows("select id from trace where id > 4 order by id limit 2")]
        anna = next(person.id for person in merged.entities() if person.name == "Anna")
        assert [alert[:2] for alert in alerts] == [(rules[0][0], trace) for trace in traces]
        assert alerts[0][3] == f"{{{{{anna}}}}} sits."
        assert json.loads(alerts[0][2])[0] == f"t{traces[0]}"
        assert json.loads(alerts[0][2])[2] == f"p{anna}"
        merged.rebuild_galleries(RULES)
        assert merged.integrity() == []


def readable(store: Store, after: int = 0) -> list[tuple[Any, ...]]:
    """What is said of each moment, without ids, and its pictures."""
    found = []
    titles = {person.id: person.name or "somebody" for person in store.entities()}
    for trace in store.traces(limit=1000, newest_first=False):
        if trace.id <= after:
            continue
        seen = [(one.anchor, titles.get(one.entity or 0)) for one in store.observations(trace=trace.id, limit=100)]
        said = [(one.text, titles.get(one.speaker or 0)) for one in trace.utterances]
        jpegs = [store.key_frame(number).jpeg for number in trace.key_frames]
        found.append((trace.start, trace.camera, len(trace.lines), seen, said, jpegs))
    return found


def test_overlapping_exports_know_who_is_who(home: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    with Store.open(source) as store:
        for i in range(4):
            store.commit(segment(i, who=1 if i else None))
    exporting.export(source, SETTINGS, tmp_path / "first")
    with Store.open(source) as store:
        for i in range(4, 8):
            store.commit(segment(i, who=1))
    exporting.export(source, SETTINGS, tmp_path / "second")
    with Store.open(home) as store:
        store.commit(segment(500))
    load(home, tmp_path / "first")
    report = load(home, tmp_path / "second")
    assert (report.passed_over, report.rows["trace"], report.rows["entity"]) == (4, 4, 0)
    with Store.open(home) as store:
        assert store.counts().traces == 9
        assert [person.sightings for person in store.entities()] == [1, 8]
        assert store.sources()[0].position == 501 * 30.0


# -- filters ----------------------------------------------------------------------------------------------------------


def test_a_part_holds_only_what_is_asked_for_and_who_is_in_it(full: Path, home: Path) -> None:
    wanted = ExportFilter(since=START + 1900, until=START + 2150)
    report = exporting.export(full, SETTINGS, home.parent / "x", wanted)
    text = "".join(path.read_text() for path in (home.parent / "x").glob("*.jsonl"))
    assert report.rows["trace"] == 2
    assert "Sentence" not in text
    assert not report.rows["rule"]
    load(home, home.parent / "x")
    with Store.open(home) as store:
        assert store.counts().traces == 2
        assert store.integrity() == []
        assert len(store.rows("select * from timeline_clock")) == 1
        store.commit(segment(300))  # somebody new, with a number of their own
        store.rebuild_galleries(RULES)
        assert store.integrity() == []


def test_without_pictures_there_are_none_and_no_rows_of_them(full: Path, home: Path) -> None:
    report = exporting.export(full, SETTINGS, home.parent / "x", ExportFilter(pictures=False))
    assert report.pictures == 0
    assert not (home.parent / "x" / "pictures").exists()
    load(home, home.parent / "x")
    with Store.open(home) as store:
        assert store.counts().key_frames == 0
        assert store.counts().traces == 12
        assert store.integrity() == []


# -- hostile and broken -----------------------------------------------------------------------------------------------


def manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads((folder / "manifest.json").read_text())
    change(data)
    (folder / "manifest.json").write_text(json.dumps(data))


def rewritten(folder: Path, name: str, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change rows, and the manifest so that it agrees."""
    import hashlib

    rows = [json.loads(line) for line in (folder / name).read_text().splitlines()]
    change(rows)
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    (folder / name).write_bytes(data)
    said = {"rows": len(rows), "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest(folder, lambda document: document["files"].update({name: said}))


def cut(folder: Path) -> None:
    data = (folder / "observation.jsonl").read_bytes()
    (folder / "observation.jsonl").write_bytes(data[: len(data) - 20])


def flip(folder: Path) -> None:
    data = bytearray((folder / "line.jsonl").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "line.jsonl").write_bytes(data)


def linked(folder: Path) -> None:
    (folder / "line.jsonl").unlink()
    (folder / "line.jsonl").symlink_to(folder / "trace.jsonl")


def first_picture(folder: Path) -> Path:
    return max((folder / "pictures" / "frame").rglob("*.jpg"))


BROKEN: dict[str, Change] = {
    "no manifest": lambda folder: (folder / "manifest.json").unlink(),
    "another format": lambda folder: manifest(folder, lambda data: data.update(format="x")),
    "no json": lambda folder: (folder / "manifest.json").write_text("{"),
    "half a line": cut,
    "a flipped bit": flip,
    "a link": linked,
    "a file is missing": lambda folder: (folder / "utterance.jsonl").unlink(),
    "a picture is missing": lambda folder: first_picture(folder).unlink(),
    "another picture": lambda folder: first_picture(folder).write_bytes(b"\xff\xd8 other"),
    "a path out": lambda folder: manifest(
        folder, lambda data: data["files"].update({"../line.jsonl": data["files"]["line.jsonl"]})
    ),
    "unknown rows": lambda folder: manifest(
        folder, lambda data: data["files"].update({"migration.jsonl": data["files"]["line.jsonl"]})
    ),
    "a longer file": lambda folder: manifest(folder, lambda data: data["files"]["line.jsonl"].update(bytes=10)),
    "a reference to nothing": lambda folder: rewritten(
        folder, "entity.jsonl", lambda rows: rows[0].update(merged_into=99)
    ),
    "a text for a number": lambda folder: rewritten(folder, "trace.jsonl", lambda rows: rows[0].update(start="now")),
    "not a number": lambda folder: rewritten(folder, "sample.jsonl", lambda rows: rows[0].update(quality=True)),
    "no known mode": lambda folder: rewritten(folder, "trace.jsonl", lambda rows: rows[0].update(mode="fast")),
    "an id below zero": lambda folder: rewritten(folder, "trace.jsonl", lambda rows: rows[0].update(id=-1)),
    "an id twice": lambda folder: rewritten(folder, "trace.jsonl", lambda rows: rows[1].update(id=rows[0]["id"])),
    "an unknown column": lambda folder: rewritten(folder, "line.jsonl", lambda rows: rows[0].update(x=1)),
    "no json in json": lambda folder: rewritten(folder, "observation.jsonl", lambda rows: rows[0].update(boxes="[")),
    "no vector": lambda folder: rewritten(
        folder, "sample.jsonl", lambda rows: rows[0].update(embedding={"base64": "AA=="})
    ),
    "a list for a row": lambda folder: (folder / "line.jsonl").write_text("[1]\n"),
    "two of one number": lambda folder: rewritten(
        folder, "entity.jsonl", lambda rows: rows[1].update(kind=rows[0]["kind"], number=rows[0]["number"])
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_broken_is_said_in_one_sentence_and_nothing_is_imported(exported: Path, home: Path, how: str) -> None:
    refused(exported, home, how)
    assert empty(home)


@pytest.mark.parametrize("how", ["half a line", "another picture"])
def test_what_is_broken_changes_nothing_in_a_memory_that_has_something(exported: Path, home: Path, how: str) -> None:
    with Store.open(home) as store:
        store.commit(segment(900))
    before = dump(home)
    refused(exported, home, how)
    assert dump(home) == before


def refused(exported: Path, home: Path, how: str) -> None:
    folder = home.parent / "x"
    shutil.copytree(exported, folder)
    BROKEN[how](folder)
    with pytest.raises(ArchiveError) as caught:
        load(home, folder)
    assert 30 < len(str(caught.value)) < 400


@pytest.fixture(scope="module")
def exported(full: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "x"
    exporting.export(full, SETTINGS, folder)
    return folder


def test_a_newer_export_is_said(exported: Path, home: Path) -> None:
    folder = home.parent / "x"
    shutil.copytree(exported, folder)
    manifest(folder, lambda data: data.update(schema=10_000))
    with pytest.raises(StoreVersionError, match="newer reflectworld"):
        load(home, folder)
    manifest(folder, lambda data: data.update(version=2))
    with pytest.raises(ArchiveError, match="newer reflectworld"):
        load(home, folder)
    assert empty(home)


def test_an_older_export_lacks_columns_that_have_a_default(exported: Path, home: Path) -> None:
    folder = home.parent / "x"
    shutil.copytree(exported, folder)
    rewritten(folder, "trace.jsonl", lambda rows: [row.pop("embedder") for row in rows])
    load(home, folder)
    with Store.open(home) as store:
        assert store.integrity() == []
        assert {trace.embedder for trace in store.traces(limit=100)} == {""}


def test_a_zip_bomb_and_other_files_that_are_no_export_are_refused(exported: Path, home: Path, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(exported / "manifest.json", "manifest.json")
        archive.writestr("embedder.jsonl", b"0" * 60_000_000)
    with pytest.raises(ArchiveError, match="would unpack to 60 MB"):
        load(home, bomb)
    (tmp_path / "text.zip").write_text("no archive")
    twice = tmp_path / "twice.zip"
    with zipfile.ZipFile(twice, "w") as archive:
        archive.write(exported / "manifest.json", "manifest.json")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.write(exported / "manifest.json", "manifest.json")
    for path in (tmp_path / "text.zip", tmp_path / "absent.zip", twice, tmp_path / "absent", home.parent):
        with pytest.raises(ArchiveError):
            load(home, path)
    assert empty(home)


def test_an_export_is_there_whole_or_not_at_all(full: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("mine")
    with pytest.raises(ArchiveError, match="is there already"):
        exporting.export(full, SETTINGS, tmp_path / "there")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there"]
    exporting.export(full, SETTINGS, tmp_path / "x.zip")
    assert (tmp_path / "x.zip").stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["there", "x.zip"]


def test_what_is_derived_is_made_again_the_same(tmp_path: Path) -> None:
    full_memory.fill(tmp_path / "full", fading=False)
    with Store.open(tmp_path / "full") as store:
        full_memory.work(store)
    exporting.export(tmp_path / "full", SETTINGS, tmp_path / "x")
    load(tmp_path / "again", tmp_path / "x")
    with Store.open(tmp_path / "full") as full, Store.open(tmp_path / "again") as again:
        full_memory.work(again)
        one, other = derived(full), derived(again)
        empty = {table for table, rows in one.items() if not rows}
        assert empty <= {"block", "block_signs", "block_cells", "posting", "faded", "graph_kept"}, empty
        assert one == other, unlike(one, other)
