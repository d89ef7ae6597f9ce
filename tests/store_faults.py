"""Faults of the store: a disk that fails at every write, and kills at random moments of everything that writes.

What writes is listed in `ACTIONS` (on a failing disk) and in `_Child` (killed); add what is new there.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw

from edge.app.keeping import thin_out
from edge.app.work import build_worker
from edge.clock import utc_now
from edge.errors import ArchiveError, ReflectWorldError, StoreError, UserError
from edge.identity import RULES, split_person
from edge.memory import Store
from edge.memory.keys import KeySource, former_keys, obtain_key
from edge.memory.upkeep import archive, backup, container, exporting, importing
from edge.memory.upkeep.exporting import ExportFilter
from edge.memory.upkeep.plans import Target
from edge.memory.upkeep.rekey import rekey
from edge.memory.upkeep.restore import restore
from edge.memory.upkeep.tables import BASE, BY_NAME, DERIVED
from edge.settings import MemorySettings, Settings
from edge.types.drafts import CommitDraft
from edge.types.records import Kind, NameSource
from tests.faulty_disk import FaultyDisk, faulty_disk
from tests.memory_support import CAMERA, SEGMENT_S, START, picture, replayed, segment, source

SETTINGS = MemorySettings()
OTHER = source("e" * 32, camera="import")
ATTIC = "attic"  # a camera that sees nothing of importance: its moments are thinned out
_WRITTEN = {"created", "updated", "ingested", "applied"}  # columns that say when a row was written
_NOW = {("correction", "at"), ("name_history", "at"), ("rule", "after")}
# Of derived rows, what depends on the order in which they were made.
_PLACES = {"id", "parent", "node", "dirty", "created", "updated", "made", "digest"}
_INDEX = {"document", "terms", "participation", "working"}

_NODE = "(select n.kind || ' ' || n.name from graph_node n where n.id = x.{})"
_BOND = (
    "(select s.kind || ' ' || s.name || ' ' || b.relation || ' ' || o.kind || ' ' || o.name from graph_bond b"
    " join graph_node s on s.id = b.subject join graph_node o on o.id = b.object where b.id = x.bond)"
)
_SUBJECT = "(select coalesce('entity ' || s.entity, s.label) from fact_subject s where s.id = x.subject)"
# Ids of derived rows, by what they mean.
_MEANS = {
    **{("graph_bond", end): _NODE.format(end) for end in ("subject", "object")},
    **{(table, "bond"): _BOND for table in ("graph_triple", "graph_day", "graph_kept")},
    **{(table, "subject"): _SUBJECT for table in ("fact", "fact_tally", "fact_statement")},
}

State = dict[str, list[tuple[Any, ...]]]


def state(store: Store) -> State:
    """All that a memory rests on, without the moments of writing."""
    found: State = {}
    for table in BASE:
        columns = [name for (name,) in store.rows("select name from pragma_table_info(?)", (table.name,))]
        kept = [name for name in columns if name not in _WRITTEN and (table.name, name) not in _NOW]
        found[table.name] = store.rows(
            f"select {', '.join('x.' + name for name in kept)} from {table.name} x order by {table.order}"
        )
    found["provenance"] = [row for row in found["provenance"] if row[0] in BY_NAME]
    found["words"] = store.rows("select rowid, seen, said from words order by 1")
    return found


def derived(store: Store) -> dict[str, Counter[tuple[Any, ...]]]:
    """What was derived, without what depends on the order of the work and what is told of moments that were thinned out."""
    found = {}
    attic = [number for (number,) in store.rows("select id from camera where name = ?", (ATTIC,))] or [0]
    for table in sorted(DERIVED):
        if table.startswith("words") or table in _INDEX:
            continue
        columns = [name for (name,) in store.rows("select name from pragma_table_info(?)", (table,))]
        kept = [name for name in columns if name not in _PLACES]
        where = f" where x.camera <> {attic[0]}" if "camera" in kept else ""
        if "trace" in kept:
            where = f" where x.trace is null or x.trace not in (select id from trace where camera = {attic[0]})"
        read = ", ".join(_MEANS.get((table, name), f"x.{name}") for name in kept)
        found[table] = Counter(store.rows(f"select {read} from {table} x{where}"))
    return found


def unlike(one: dict[str, Counter[tuple[Any, ...]]], other: dict[str, Counter[tuple[Any, ...]]]) -> dict[str, Any]:
    """Where two memories differ in what was derived: a few rows of each table."""
    return {
        table: [
            [*(these - those).elements()][:3]
            for these, those in ((one[table], other[table]), (other[table], one[table]))
        ]
        for table in one
        if one[table] != other[table]
    }


def work(store: Store) -> None:
    """Do all that waits."""
    build_worker(store, Settings(home=store.home), None, purpose="faults").drain()


# -- a disk that fails ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """Something that writes."""

    run: Callable[[Store, Path], object]
    whole: bool = True  # one transaction: done or not; else several, and doing it again finishes it


def _thin(store: Store, until: float) -> None:
    """Let pictures and unimportant moments before an instant go."""
    days = (utc_now() - until) / 86_400
    store.transact(lambda memory: memory.execute("update trace set ingested = end") and None)  # long in the memory, too
    thin_out(store, MemorySettings(keep_days=days, key_frame_days=days, min_free_gb=0))


def _forget(store: Store, until: float) -> None:
    store.forget(store.forget_plan(Target(until=until)), RULES)


ACTIONS: dict[str, Action] = {
    "a commit": Action(lambda store, _: store.commit(segment(3, who=1, frame=picture(3)))),
    "a commit with somebody new": Action(lambda store, _: store.commit(segment(3))),
    "a name": Action(lambda store, _: store.set_name(1, "Anna")),
    "jobs": Action(lambda store, _: work(store), whole=False),
    "a correction": Action(lambda store, _: split_person(store, 1, [(Kind.OBSERVATION, 1)]), whole=False),
    "an import": Action(lambda store, given: store.upkeep(lambda files: importing.load(given, files, store.user))),
    "galleries": Action(lambda store, _: store.rebuild_galleries(RULES)),
    "forgetting": Action(lambda store, _: _forget(store, START + SEGMENT_S), whole=False),
    "retention": Action(lambda store, _: _thin(store, START + 2 * SEGMENT_S + 1), whole=False),
}


def _restored(home: Path, folder: Path) -> None:
    (copy,) = (folder / "copy").glob("[!.]*.rwbackup")
    restore(copy, home, SETTINGS, replace=True)


# What works on a memory that nobody has open, beside what may be there afterwards.
APART: dict[str, Callable[[Path, Path], object]] = {
    "a backup": lambda home, folder: backup.make(home, SETTINGS, folder / "backups", keep=2),
    "a new key": lambda home, _: rekey(home, SETTINGS, KeySource.FILE),
    "a restore": _restored,
}


@dataclass
class DiskReport:
    """What was tried."""

    points: dict[str, int] = field(default_factory=dict)  # fault points by action
    failed: int = 0  # attempts that raised


def fail_everywhere(folder: Path, *, stride: int = 1, only: tuple[str, ...] = ()) -> DiskReport:
    """Let the disk fail at every operation of each action, once or for good, for want of space or otherwise.

    After each the memory holds what it held before when the action raised, or all of it when it returned; it works on in the
    same process; and a copy of the files as they were at that moment, opened as after a crash, is whole and holds either.

    Args:
        folder: to work in.
        stride: every how manieth operation.
        only: names of actions; none: all.

    Raises:
        AssertionError: something was lost, or half there.
    """
    report = DiskReport()
    given = _archive(folder)
    base = folder / "base"
    with Store.open(base) as store:
        for i in range(3):
            store.commit(segment(i, who=1 if i else None, frame=picture(i)))
    with faulty_disk() as disk:
        for name, action in ACTIONS.items():
            if only and name not in only:
                continue
            before, after, operations = _clean(folder, base, given, action, disk)
            for at in range(1, operations + 1, stride):
                for error, stays in ((apsw.FullError, True), (apsw.FullError, False), (apsw.IOError, False)):
                    report.points[name] = report.points.get(name, 0) + 1
                    where = (
                        f"{name}, operation {at} of {operations}, {error.__name__}{' from then on' if stays else ''}"
                    )
                    report.failed += _fail(folder, base, given, action, disk, (at, error, stays), before, after, where)
        for name, act in APART.items():
            if not only or name in only:
                _fail_apart(folder, base, name, act, disk, stride, report)
    return report


def _fail_apart(
    folder: Path,
    base: Path,
    name: str,
    act: Callable[[Path, Path], object],
    disk: FaultyDisk,
    stride: int,
    report: DiskReport,
) -> None:
    """Let the disk fail under what makes copies: the memory is whole, the old one or the new one, and so is every copy."""
    (folder / "backups").mkdir(exist_ok=True)
    (folder / "copy").mkdir(exist_ok=True)
    if not list((folder / "copy").glob("[!.]*.rwbackup")):
        backup.make(base, SETTINGS, folder / "copy")
    later = _fresh(base, folder / "later")  # has a moment more than the backup
    with Store.open(later) as store:
        before = state(store)
        store.commit(segment(3, who=1, frame=picture(3)))
        now = state(store)
    after = before if name == "a restore" else now

    def whole(home: Path, where: str) -> State:
        with Store.open(home) as store:
            assert store.integrity() == [], where
            found = state(store)
        assert found in (now, after), f"{where}: {_different(found, now)}"
        _look_at_copies(World(folder, home))
        return found

    operations = 0
    at = 0
    while at <= operations:
        for error, stays in ((apsw.FullError, True), (apsw.FullError, False), (apsw.IOError, False)):
            home = _fresh(later, folder / "home")
            for old in (folder / "backups").iterdir():
                old.unlink()
            where = f"{name}, operation {at} of {operations}, {error.__name__}{' from then on' if stays else ''}"
            disk.arm(at or 10**9, error, stays=stays)
            try:
                act(home, folder)
                raised = False
            except ReflectWorldError:
                raised = True
            operations = operations or disk.done
            crashed = _fresh(home, folder / "crashed")
            disk.disarm()
            found = whole(home, where)
            assert raised or found == after, where
            if raised:
                act(home, folder)
                assert whole(home, f"{where}, again") == after
            assert raised or name != "a backup" or list((folder / "backups").glob("[!.]*.rwbackup")), where
            whole(crashed, f"{where}, after a crash")
            if not at:
                break
            report.points[name] = report.points.get(name, 0) + 1
            report.failed += raised
        at += stride if at else 1


def _clean(folder: Path, base: Path, given: Path, action: Action, disk: FaultyDisk) -> tuple[State, State, int]:
    home = _fresh(base, folder / "home")
    with Store.open(home) as store:
        before = state(store)
        disk.arm(10**9, apsw.FullError, stays=False)
        action.run(store, given)
        operations = disk.done
        disk.disarm()
        return before, state(store), operations


def _fail(
    folder: Path,
    base: Path,
    given: Path,
    action: Action,
    disk: FaultyDisk,
    fault: tuple[int, type[apsw.Error], bool],
    before: State,
    after: State,
    where: str,
) -> bool:
    home = _fresh(base, folder / "home")
    at, error, stays = fault
    with Store.open(home) as store:
        disk.arm(at, error, stays=stays)
        try:
            action.run(store, given)
            raised = False
        except (StoreError, ArchiveError):
            raised = True
        crashed = _fresh(home, folder / "crashed")
        disk.disarm()
        now = state(store)
        if action.whole:
            assert now == (before if raised else after), f"{where}: {_different(now, before if raised else after)}"
        if raised:
            with suppress(UserError):  # it was done, and only what follows from it was not
                action.run(store, given)
        work_again(store)
        assert state(store) == after, f"{where}, again: {_different(state(store), after)}"
        assert store.integrity() == [], where
    with Store.open(crashed) as store:
        work_again(store)
        assert store.integrity() == [], f"{where}, after a crash"
        now = state(store)
        if action.whole:
            # A sync that failed may have written all the same.
            assert now == after or (raised and now == before), f"{where}, after a crash: {_different(now, after)}"
    return raised


def work_again(store: Store) -> None:
    """Let the writer finish what can wait."""
    while store.rows("select 1 from reindex union all select 1 from discarded limit 1"):
        store.upkeep(lambda files: None)


def _different(one: State, other: State) -> list[str]:
    return [table for table in one if one[table] != other[table]]


def _fresh(origin: Path, copy: Path) -> Path:
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(origin, copy, ignore=lambda _, names: [name for name in names if name.endswith("-shm")])
    return copy


def _kept(draft: CommitDraft) -> CommitDraft:
    """The same, as a note of the owner: so that it is never thinned out, and what is lost was lost by a fault."""
    assert draft.trace is not None
    return replace(draft, trace=replace(draft.trace, detail={**draft.trace.detail, "note": True}))


def _archive(folder: Path) -> Path:
    """An export of some moments of another camera."""
    other, target = folder / "other", folder / "archive"
    if not target.exists():
        with Store.open(other) as store:
            for i in range(2):  # long after all others
                store.commit(_kept(segment(20_000 + i, who=1 if i else None, info=OTHER, frame=picture(i))))
        exporting.export(other, SETTINGS, target)
    return target


# -- kills ------------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """What must be true, as the killed processes said."""

    folder: Path
    elsewhere: Path | None = None  # where the memory is
    committed: set[int] = field(default_factory=set)  # segments
    forgotten: int = 0  # segments before this
    name: str | None = None
    imported: bool = False
    attic: set[int] = field(default_factory=set)  # moments of the attic that were not thinned out
    doing: tuple[str, Any] | None = None  # what was begun and not said to be done
    done: Counter[str] = field(default_factory=Counter)
    killed_in: Counter[str] = field(default_factory=Counter)

    @property
    def home(self) -> Path:
        """The folder of the memory."""
        return self.elsewhere or self.folder / "home"

    def hear(self, said: tuple[str, str, Any]) -> None:
        """A process said that something begins or is done."""
        phase, what, about = said
        self.doing = (what, about) if phase == "begins" else None
        if phase == "begins":
            return
        self.done[what] += 1
        if what == "commit":
            self.committed.add(about)
        elif what == "forget":
            self.forgotten = max(self.forgotten, about)
            self.attic = {one for one in self.attic if one >= about}
        elif what == "name":
            self.name = about
        elif what == "import":
            self.imported = True
        elif what == "attic":
            self.attic.add(about)
        elif what == "retention":
            self.attic = {one for one in self.attic if one >= about}


class _Child:
    """Writes in every way until it is killed."""

    def __init__(self, folder: Path, seed: int, said: Connection) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.dice = random.Random(seed)
        self.said = said
        self.store = Store.open(self.home)
        self.ways: dict[str, tuple[int, Callable[[], object]]] = {
            "commit": (8, self.commit),
            "work": (4, lambda: work(self.store)),
            "name": (1, self.name),
            "correct": (1, self.correct),
            "import": (1, self.take_in),
            "export": (1, self.export),
            "backup": (2, self.backup),
            "rekey": (2, self.rekey),
            "forget": (1, self.forget),
            "attic": (3, self.look_at_the_attic),
            "retention": (2, self.retention),
        }
        self.about: Any = None

    def run(self) -> None:
        self.tell("commit", self.next_segment(), self.commit)
        names = list(self.ways)
        weights = [weight for weight, _ in self.ways.values()]
        while True:
            (name,) = self.dice.choices(names, weights)
            about = {
                "commit": self.next_segment(),
                "name": f"Name {self.dice.randrange(10**6)}",
                "forget": self.oldest() + (self.oldest() + 1 < self.next_segment() - 3),
                "attic": self.dice.randrange(10**5),
                "retention": self.dice.randrange(10**5),
            }
            self.tell(name, about.get(name), self.ways[name][1])

    def tell(self, what: str, about: Any, act: Callable[[], object]) -> None:
        self.about = about
        self.said.send(("begins", what, about))
        act()
        self.said.send(("done", what, about))

    def next_segment(self) -> int:
        known = self.store.source(CAMERA, source().fingerprint, source().start)
        return known.next_segment if known else 0

    def oldest(self) -> int:
        first = self.store.counts().first
        return 0 if first is None else round((first - START) / SEGMENT_S)

    def commit(self) -> None:
        i = self.about
        self.store.commit(_kept(segment(i, who=1 if i else None, frame=picture(i, 160, 120))))

    def name(self) -> None:
        self.store.set_name(1, self.about, NameSource.USER)

    def correct(self) -> None:
        seen = self.store.observations(entity=1, limit=3)
        if len(seen) > 2:
            split_person(self.store, 1, [(Kind.OBSERVATION, seen[0].id)])

    def take_in(self) -> None:
        self.store.upkeep(lambda files: importing.load(self.folder / "archive", files, self.store.user))
        self.store.rebuild_galleries(RULES)

    def export(self) -> None:
        target = self.folder / "exports" / f"{self.dice.randrange(10**9)}.zip"
        exporting.export(self.home, SETTINGS, target, ExportFilter())

    def backup(self) -> None:
        backup.make(self.home, SETTINGS, self.folder / "backups", keep=3)

    def rekey(self) -> None:
        self.store.close()
        rekey(self.home, SETTINGS, KeySource.FILE)
        self.store = Store.open(self.home)

    def look_at_the_attic(self) -> None:
        self.store.commit(replayed(self.about, camera=ATTIC))

    def retention(self) -> None:
        _thin(self.store, START + self.about * SEGMENT_S)

    def forget(self) -> None:
        _forget(self.store, START + self.about * SEGMENT_S)


def _live(folder: str, seed: int, said: Connection) -> None:
    """The process that is killed; what stops it otherwise is said."""
    try:
        _Child(Path(folder), seed, said).run()
    except (ReflectWorldError, AssertionError) as error:
        said.send(("failed", type(error).__name__, str(error)))


def kill_often(folder: Path, kills: int, seed: int, tell: Callable[[int, World], None] = lambda _n, _w: None) -> World:
    """Kill a process that writes in every way, again and again, and look each time at what is left.

    Args:
        folder: to work in.
        kills: how many.
        seed: of the moments and of what is done.
        tell: called after each kill.

    Raises:
        AssertionError: something was lost, half there, or done twice.
    """
    dice = random.Random(seed)
    world = World(folder)
    for name in ("exports", "backups"):
        (folder / name).mkdir()
    _archive(folder)
    children = multiprocessing.get_context("forkserver")
    children.set_forkserver_preload(["tests.store_faults"])
    for kill in range(kills):
        ours, theirs = children.Pipe(duplex=False)
        child = children.Process(target=_live, args=(str(folder), dice.randrange(10**9), theirs), daemon=True)
        child.start()
        theirs.close()
        if kill % 5:  # else: somewhere in opening
            assert ours.poll(120), "nothing is written"
        child.join(dice.uniform(0, 1.2))
        assert child.pid is not None
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        child.join(30)
        world.doing = None
        while ours.poll():
            try:
                heard = ours.recv()
            except EOFError:
                break
            assert heard[0] != "failed", heard
            world.hear(heard)
        world.killed_in[world.doing[0] if world.doing else "nothing"] += 1
        look(world)
        tell(kill + 1, world)
    compare(world)
    return world


def look(world: World) -> None:
    """See what a kill left."""
    if not (world.home / "memory.db").exists():
        assert not world.committed
        return
    what, about = world.doing or ("nothing", None)
    with Store.open(world.home) as store:
        assert store.integrity() == []
        starts = [t.start for t in store.traces(camera=CAMERA, limit=10**6, newest_first=False)]
        present = {round((start - START) / SEGMENT_S) for start in starts}
        assert len(present) == len(starts)
        if what == "forget" and not any(i < about for i in present):
            world.forgotten = max(world.forgotten, about)
        if what == "commit" and about in present:
            world.committed.add(about)
        assert present == {i for i in world.committed if i >= world.forgotten}, (world.doing, world.forgotten)
        known = store.source(CAMERA, source().fingerprint, source().start)
        assert (known.next_segment if known else 0) == len(world.committed)
        for trace in store.traces(camera=CAMERA, limit=2):
            assert all(store.key_frame(number).width == 160 for number in trace.key_frames)
        attic = {round((one.start - START) / SEGMENT_S) for one in store.traces(camera=ATTIC, limit=10**6)}
        kept = world.attic if what not in ("retention", "forget") else {one for one in world.attic if one >= about}
        assert kept <= attic <= world.attic | ({about} if what == "attic" else set()), world.doing
        world.attic = attic
        imported = len(store.traces(camera=OTHER.camera, limit=100))
        assert imported in ((2,) if world.imported else (0, 2) if what == "import" else (0,))
        world.imported = world.imported or imported == 2
        if world.name is not None or what == "name":
            name = store.entity(1).name
            assert name in {world.name, about if what == "name" else world.name}
            world.name = name
    _look_at_copies(world)


def _look_at_copies(world: World) -> None:
    key = obtain_key(world.home, SETTINGS, exists=True)
    keys = [key.secret, *former_keys(world.home, key)]
    for path in (world.folder / "backups").glob("*.rwbackup"):
        if path.name.startswith("."):
            continue
        head = container.read_head(path)
        secret = next(found for one in keys if (found := container.by_key(head, one)))
        container.check_head(path, head, secret)
        descriptor = os.open(path, os.O_RDONLY)
        try:
            assert backup.verify(descriptor, head, secret) == []
        finally:
            os.close(descriptor)
    for path in (world.folder / "exports").glob("[!.]*.zip"):
        with archive.reading(path) as found:
            found.check()
        path.unlink()


def compare(world: World) -> None:
    """What was derived through all kills is what a memory derives that has the same base and was never killed."""
    exporting.export(world.home, SETTINGS, world.folder / "end")
    with Store.open(world.home) as killed, Store.open(world.folder / "never") as never:
        never.upkeep(lambda files: importing.load(world.folder / "end", files, never.user))
        for store in (killed, never):
            work(store)
            assert not store.rows(
                "select kind, key, error from job where kind not in ('examine', 'backup', 'embed') and due = 0"
            )
        base, again = state(killed), state(never)
        assert base == again, {
            table: [row for row in [*base[table], *again[table]] if (row in base[table]) != (row in again[table])][:4]
            for table in _different(base, again)
        }
        one, other = derived(killed), derived(never)
        assert one == other, unlike(one, other)
