"""The store: two encrypted files in the home folder, read from any thread, written by one.

docs/adr/0002-store.md says which promises it keeps and how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import apsw

from edge.clock import utc_now
from edge.errors import NotFoundError, ReflectWorldError, StoreError, UserError
from edge.memory import commit, correcting, frames, locks, names
from edge.memory.correcting import Derivation, Prepared
from edge.memory.correction_reads import CorrectionReads
from edge.memory.database import connect, disk_full, snapshot, transaction, translated
from edge.memory.health import problems
from edge.memory.index import Columns, ColumnsCache, Sealer
from edge.memory.keys import MasterKey, obtain_key
from edge.memory.people import PeopleReads
from edge.memory.queries import EventReads
from edge.memory.reader import FRAMES_FILE, MEMORY_FILE
from edge.memory.schema import FRAMES, MEMORY
from edge.memory.tiers import visual
from edge.memory.upkeep import copies, erase, forget, retention, sentinels, strangers, swap
from edge.memory.upkeep.plans import Plan, Target
from edge.memory.writer import Files, Writer
from edge.settings import MemorySettings
from edge.types.drafts import CommitDraft, Committed
from edge.types.records import (
    DEFAULT_USER,
    CorrectionDraft,
    CorrectionKind,
    CorrectionRecord,
    EntityRecord,
    MemoryCounts,
    NameSource,
)

Result = TypeVar("Result")


_RESERVE = (
    16  # with this part of what should be free left, nothing more is remembered: databases need room to tidy up, too
)
_TRIES = 5  # of a correction, when another one comes in between


class Store(EventReads, PeopleReads, CorrectionReads):
    """The memory of one user. Thread-safe; made by `open`."""

    def __init__(self, home: Path, key: MasterKey, user: str, settings: MemorySettings, files: Files | None) -> None:
        super().__init__(home, key, user)
        self._settings = settings
        sealer = Sealer()
        self._writer = (
            Writer(files, lambda files: _upkeep(files) or sealer.step(files.memory)) if files is not None else None
        )
        self._columns = ColumnsCache()
        self._looks = visual.ColumnsCache()
        self._generation = 0
        self._foreign: int | None = None

    @classmethod
    def open(
        cls,
        home: Path,
        settings: MemorySettings | None = None,
        *,
        user: str = DEFAULT_USER,
        readonly: bool = False,
        passphrase: str | None = None,
    ) -> Store:
        """Open the memory in `home`; unless `readonly`, make it if there is none.

        Args:
            home: the folder of the memory; made with mode 0700.
            settings: pictures and the key file.
            user: whose memory; everything that is read and written belongs to them.
            readonly: for commands that only ask; works while another process writes.
            passphrase: instead of the one in the environment.

        Raises:
            NotFoundError: `readonly`, and there is no memory.
            MemoryKeyError: the key is absent or wrong, or a file is not ours.
            StoreVersionError: written by a newer version.
            DiskFullError, StoreError: the files cannot be used.
        """
        settings = settings or MemorySettings()
        path = home / MEMORY_FILE
        if readonly:
            with translated(path):
                swap.settle(home)  # a new key or a restored memory that a kill left on the way to its place
            if not _holds_memory(home):
                raise NotFoundError(
                    str(home), f"There is no memory in “{home}” yet; start one with `reflectworld watch SOURCE`."
                )
            with translated(path):
                key = obtain_key(home, settings, exists=True, passphrase=passphrase)
            store = cls(home, key, user, settings, None)
            try:
                if store._behind():
                    with cls.open(home, settings, user=user, passphrase=passphrase):
                        pass  # brings it up to date
            except BaseException:
                store.close()
                raise
            return store
        with translated(path):
            if home.exists() and not home.is_dir():
                raise StoreError(home, f"“{home}” is a file; set REFLECTWORLD_HOME to a folder.")
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locks.opening(home), ExitStack() as undo:
                swap.finish(home)
                key = obtain_key(home, settings, exists=_holds_memory(home), passphrase=passphrase)
                memory = connect(path, key)
                undo.callback(memory.close)
                pictures = connect(home / FRAMES_FILE, key)
                undo.callback(pictures.close)
                MEMORY.migrate(memory, path)
                FRAMES.migrate(pictures, home / FRAMES_FILE)
                for connection, file in ((memory, path), (pictures, home / FRAMES_FILE)):
                    with translated(file, key):
                        sentinels.touch(connection)
                frames.remove_orphans(memory, pictures)
                undo.pop_all()
        return cls(home, key, user, settings, Files(path, memory, pictures))

    def _behind(self) -> bool:
        """Whether a file was written by an older version.

        Raises:
            StoreVersionError: by a newer one.
        """
        behind = 0
        for file, migrations in ((MEMORY_FILE, MEMORY), (FRAMES_FILE, FRAMES)):
            with translated(self.home / file, self._key):
                behind += migrations.check(self._connection(file), self.home / file)
        return behind > 0

    @property
    def key_source(self) -> str:
        """Where the key comes from, in words; docs/security.md says what each source protects against."""
        return self._key.words

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is being written and close the files. May be called again."""
        self._close_readers()  # first, so that the writer is the last to close and empties the logs
        if self._writer is not None:
            self._writer.close()

    # -- writing ------------------------------------------------------------------------------------------------------

    def commit(self, draft: CommitDraft) -> Committed:
        """Write all of a segment, or nothing; what this returns for survives a power cut.

        Raises:
            StoreError: the draft contradicts itself, is at or before what its source has already given, is another
                user's, or cannot be written.
            DiskFullError: no space is left.
        """
        if draft.user not in (DEFAULT_USER, self.user):
            message = f"A segment of the user “{draft.user}” was not written into the memory of “{self.user}”."
            raise StoreError(self.home / MEMORY_FILE, message)
        draft = replace(draft, user=self.user)
        free, floor = retention.free_and_floor(self.home, self._settings)
        if free < floor / _RESERVE:
            raise disk_full(self.home / MEMORY_FILE)
        pictures = frames.encode_draft(
            draft, max_px=self._settings.key_frame_max_px, quality=self._settings.key_frame_quality
        )
        return self._write(lambda files: commit.write(files, draft, pictures))

    def set_name(self, entity: int, name: str, source: NameSource = NameSource.USER) -> EntityRecord:
        """Name an entity; every text that mentions it is read with the new name from now on.

        Raises:
            NotFoundError: nobody has this id.
            UserError: not a name, or the one there is has a higher authority.
        """
        return self._rename(entity, names.checked(name), source)

    def clear_name(self, entity: int) -> EntityRecord:
        """Take the name of an entity away, on the user's authority: it may earn another one.

        Raises:
            NotFoundError: nobody has this id.
        """
        return self._rename(entity, None, NameSource.NONE)

    def _rename(self, entity: int, name: str | None, source: NameSource) -> EntityRecord:
        before = self.entity(entity)

        def work(files: Files) -> bool:
            with transaction(files.memory):
                changed = names.change(files.memory, entity, name, source, at=utc_now(), claim=None)
                if changed:
                    kind = CorrectionKind.NAME
                    correcting.note(files.memory, self.user, kind, entity, name=name, source=source)
                return changed

        if not self._write(work) and (before.name, before.name_source) != (name, source):
            raise UserError(f"{before.title} was named by you; only you can change that.")
        self._generation += 1
        return self.entity(entity)

    def columns(self, connection: apsw.Connection, embedder: str | None) -> Columns:
        """The columns of all traces, for search.

        Args:
            connection: of `reading`.
            embedder: key of the model whose signs are wanted; None: none.
        """
        return self._columns.get(connection, embedder)

    def visual_columns(self, connection: apsw.Connection, embedder: str) -> visual.Columns:
        """What all traces look like, for search; arguments as those of `columns`."""
        return self._looks.get(connection, embedder)

    def correct(self, draft: CorrectionDraft, rules: Derivation) -> CorrectionRecord:
        """Correct who is who; everything that hangs on it follows, as if it had been right from the start.

        Args:
            draft: what to correct.
            rules: by which galleries and names follow (`edge.identity.RULES`).

        Raises:
            NotFoundError: somebody is not known.
            UserError: it makes no sense.
            StoreError: it cannot be written.
        """
        return self.correction(self._derived(lambda at: correcting.prepare(at, self.user, draft, rules), rules))

    def undo(self, number: int | None, rules: Derivation) -> CorrectionRecord:
        """Take a correction back, whichever came after it; the memory is as if it had never been made.

        Args:
            number: its id; None: the latest that holds.
            rules: as in `correct`.

        Raises:
            NotFoundError: there is none of this id.
            UserError: it was undone already.
        """
        return self.correction(self._derived(lambda at: correcting.prepare_undo(at, self.user, number, rules), rules))

    def rebuild_galleries(self, rules: Derivation) -> None:
        """Make all galleries again from what was offered to them, for example after some of it was forgotten."""
        self._derived(lambda at: correcting.prepare_galleries(at, self.user, rules), rules)

    def _derived(self, prepare: Callable[[apsw.Connection], Prepared], rules: Derivation) -> int:
        for _ in range(_TRIES):
            with self.reading() as connection:
                prepared = prepare(connection)

            def work(memory: apsw.Connection, prepared: Prepared = prepared) -> int | None:
                return correcting.carry_out(memory, self.user, prepared, rules)

            number = self.transact(work)
            if number is not None:
                self._generation += 1
                while self.transact(correcting.reindex_some):
                    pass
                return number
        raise StoreError(self.home / MEMORY_FILE, "People are being corrected elsewhere just now; try again.")

    def agree(self, entity: int) -> EntityRecord:
        """Keep somebody who has no name, whatever the policy about strangers.

        Raises:
            NotFoundError: nobody has this id.
        """
        record = self.entity(entity)
        self.transact(lambda memory: strangers.agree(memory, entity))
        self._generation += 1
        return record

    def forget_plan(self, target: Target) -> Plan:
        """What would be forgotten; nothing is changed.

        Raises:
            NotFoundError: it is not there.
            UserError: it cannot be forgotten by itself.
        """
        with self.reading() as connection:
            return forget.plan(connection, self.user, target)

    def copies(self) -> tuple[str, ...]:
        """Copies of this memory that forgetting does not reach, one sentence each."""
        return copies.copies(self.home, self._settings)

    def forget(self, planned: Plan, rules: Derivation) -> None:
        """Forget what a plan names; the bytes are gone from the files.

        Args:
            planned: of `forget_plan`.
            rules: by which galleries and names follow from what stays (`edge.identity.RULES`).

        Raises:
            UserError: the memory has changed since the plan was made; nothing was forgotten.
            StoreError: a log could not be emptied; everything else is done.
        """
        self.upkeep(lambda files: erase.carry_out(files, self.user, planned, rules.believes))
        self.rebuild_galleries(rules)
        self.upkeep(erase.give_back)

    def data_version(self) -> int:
        """A number that changes when people may have changed by another hand: another process wrote, a name was given.

        Commits of this process do not change it: who makes them knows what is in them.
        """
        if self._writer is not None:
            foreign = self._write(lambda files: int(files.memory.pragma("data_version")))
        else:
            ((foreign,),) = self.rows("pragma data_version")
        if self._foreign is not None and foreign != self._foreign:
            self._generation += 1
        self._foreign = foreign
        return self._generation

    @contextmanager
    def claim(self, what: str, purpose: str) -> Iterator[None]:
        """Keep other processes from doing the same long work, such as watching the same camera, at the same time.

        Args:
            what: a name for it, such as "camera hall".
            purpose: the command, as the other process will say it.

        Raises:
            StoreError: another process has it.
        """
        with ExitStack() as held:
            with translated(self.home / MEMORY_FILE):
                held.enter_context(locks.claimed(self.home, what, purpose))
            yield

    def claims(self) -> list[str]:
        """Which long work other processes and this one are at now, in words."""
        with translated(self.home / MEMORY_FILE):
            return locks.claims(self.home)

    def transact(self, work: Callable[[apsw.Connection], Result]) -> Result:
        """Run a piece of writing in one transaction of the writer; an exception takes all of it back.

        For the tiers and for jobs: `work` gets the connection that the functions of this room take, runs in the writer's
        thread, and should be short, because commits wait for it.

        Raises:
            StoreError: it cannot be written.
        """

        def inside(files: Files) -> Result:
            with transaction(files.memory):
                return work(files.memory)

        return self._write(inside)

    def upkeep(self, work: Callable[[Files], Result]) -> Result:
        """Run a piece of upkeep with both files in the writer's thread; it minds its own transactions.

        Raises:
            StoreError: it cannot be written.
        """
        try:
            return self._write(work)
        finally:
            self._generation += 1

    def _write(self, work: Callable[[Files], Result]) -> Result:
        if self._writer is None:
            raise StoreError(self.home / MEMORY_FILE, "The memory was opened for reading only; open it for writing.")
        return self._writer.call(work)

    # -- the whole ----------------------------------------------------------------------------------------------------

    def counts(self) -> MemoryCounts:
        """How much the memory of this user holds."""
        ((traces, first, last),) = self.rows(
            "select count(*), min(t.start), max(t.end) from trace t join camera c on c.id = t.camera where c.user = ?",
            (self.user,),
        )
        numbers = []
        for table in ("observation", "utterance", "key_frame"):
            counted = f"select count(*) from {table} x join trace t on t.id = x.trace"  # noqa: S608 -- constants
            rows = self.rows(f"{counted} join camera c on c.id = t.camera where c.user = ?", (self.user,))
            numbers.append(int(rows[0][0]))
        ((entities,),) = self.rows("select count(*) from entity where user = ? and merged_into is null", (self.user,))
        size = sum(
            path.stat().st_size
            for file in (MEMORY_FILE, FRAMES_FILE)
            for path in (self.home / file, self.home / f"{file}-wal")
            if path.exists()
        )
        return MemoryCounts(traces, numbers[0], numbers[1], entities, numbers[2], first, last, size)

    def glance(self) -> list[str]:
        """Look a memory over without reading all of it; takes milliseconds however large it is.

        Returns:
            What is wrong, one sentence each; empty: nothing was found.
        """
        found = []
        for file in (MEMORY_FILE, FRAMES_FILE):
            try:
                with (
                    translated(self.home / file, self._key),
                    closing(connect(self.home / file, self._key, readonly=True)) as opened,
                ):
                    sentinels.touch(opened)
            except ReflectWorldError as error:
                found.append(str(error))
        return found

    def integrity(self) -> list[str]:
        """Examine both files thoroughly; takes time that grows with them.

        Returns:
            What is wrong, one sentence each; empty: nothing.
        """
        try:
            with ExitStack() as opened, translated(self.home / MEMORY_FILE, self._key):
                # Connections of their own: FTS5 (3.54) examines what a connection that has searched before remembers of
                # the index, and reports a mismatch when another connection has written since.
                memory, pictures = (
                    opened.enter_context(closing(connect(self.home / file, self._key, readonly=True)))
                    for file in (MEMORY_FILE, FRAMES_FILE)
                )
                with snapshot(memory):
                    return problems(memory, pictures)
        except ReflectWorldError as error:
            return [str(error)]


def _holds_memory(home: Path) -> bool:
    path = home / MEMORY_FILE
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _upkeep(files: Files) -> bool:
    if frames.remove_discarded(files.memory, files.frames):
        return True
    if not files.memory.execute("select 1 from reindex limit 1").fetchall():
        return False
    with transaction(files.memory):  # of a correction that was cut short
        return correcting.reindex_some(files.memory)
