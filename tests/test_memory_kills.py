"""Kills at random moments: what was committed stays, at most the open segment is lost, and nothing is corrupt."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from edge.memory import Store
from tests.memory_support import CAMERA, picture, segment, source


def write_forever(home: str, said: Connection) -> None:
    """The child: go on where the memory ends, and say what was committed after each commit."""
    with Store.open(Path(home)) as store:
        info = source()
        known = store.source(CAMERA, info.fingerprint, info.start)
        i = known.next_segment if known else 0
        while True:
            done = store.commit(segment(i, who=1 if i else None, frame=picture(i, 320, 240)))
            said.send((i, done.trace))
            i += 1


def kill_often(home: Path, kills: int, seed: int) -> int:
    """Kill a writer again and again; the number of segments at the end."""
    chance = random.Random(seed)
    children = multiprocessing.get_context("forkserver")
    children.set_forkserver_preload(["tests.test_memory_kills"])
    committed = 0  # segments known to be committed
    for kill in range(kills):
        ours, theirs = children.Pipe(duplex=False)
        child = children.Process(target=write_forever, args=(str(home), theirs), daemon=True)
        child.start()
        theirs.close()
        if kill % 3:  # else: somewhere in opening, or in the first commit
            assert ours.poll(60), "the writer does not write"
        child.join(chance.uniform(0, 0.15))
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        child.join(30)
        assert child.exitcode == -signal.SIGKILL
        while ours.poll():
            try:
                i, _ = ours.recv()
            except EOFError:
                break
            assert i >= committed - 1
            committed = i + 1
        committed = check(home, committed)
    return committed


def check(home: Path, committed: int) -> int:
    """The memory opens, is sound, and holds what was committed and at most one segment more."""
    if not (home / "memory.db").exists():
        return 0  # killed before there was anything
    with Store.open(home) as store:
        assert store.integrity() == []
        traces = store.traces(limit=100_000, newest_first=False)
        assert len(traces) in (committed, committed + 1)
        assert [trace.start for trace in traces] == sorted({trace.start for trace in traces})
        for trace in traces[-2:]:
            assert len(trace.lines) == 2
            assert len(trace.utterances) == 1
            assert store.key_frame(trace.key_frames[0]).width == 320
        known = store.source(CAMERA, source().fingerprint, source().start)
        assert (known.next_segment if known else 0) == len(traces)
        assert len(store.entities()) == (1 if traces else 0)
        return len(traces)


def test_fifteen_kills_lose_nothing_that_was_committed(home: Path) -> None:
    assert kill_often(home, 15, seed=1) >= 10


@pytest.mark.slow
def test_fifty_kills_lose_nothing_that_was_committed(home: Path) -> None:
    assert kill_often(home, 50, seed=2) >= 40
    with Store.open(home) as killed, Store.open(home.parent / "never") as never:
        segments = killed.counts().traces
        for i in range(segments):
            never.commit(segment(i, who=1 if i else None, frame=picture(i, 320, 240)))
        assert content(killed) == content(never)


def content(store: Store) -> dict[str, list]:
    """All that was stored, without the moments at which it was written."""
    skipped = {"created", "updated", "ingested", "applied"}
    found = {}
    for (table,) in store.rows(
        "select name from sqlite_schema where type = 'table' and rootpage > 0 and name not like 'words_%'"
    ):
        columns = [
            name for (name,) in store.rows("select name from pragma_table_info(?)", (table,)) if name not in skipped
        ]
        found[table] = store.rows(f"select {', '.join(columns)} from {table} order by 1, 2")
    found["pictures"] = [
        store.key_frame(number).jpeg for trace in store.traces(limit=100_000) for number in trace.key_frames
    ]
    return found
