"""What is kept how long: what goes first, what stays, and that the device never fills."""

from __future__ import annotations

import json
import math
import shutil
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app.keeping import room, short_of_room, thin_out
from edge.app.work import build_worker
from edge.clock import utc_now
from edge.errors import DiskFullError
from edge.identity import RULES
from edge.memory import Store, Target
from edge.memory.upkeep import retention
from edge.settings import MemorySettings, Settings
from edge.types.drafts import CommitDraft
from tests.command import Command, reflectworld
from tests.forget_support import scene

__all__ = ["reflectworld"]

DAY = 86_400.0
Usage = namedtuple("Usage", "total used free")  # noqa: PYI024 -- as shutil.disk_usage gives it


def at(draft: CommitDraft, age: float, **detail: object) -> CommitDraft:
    """The same, so many seconds ago."""
    assert draft.trace is not None
    shift = utc_now() - age - draft.trace.start
    trace = replace(
        draft.trace,
        start=draft.trace.start + shift,
        end=draft.trace.end + shift,
        detail=detail,
        lines=tuple(replace(line, at=line.at + shift) for line in draft.trace.lines),
    )
    return replace(
        draft,
        trace=trace,
        observations=tuple(replace(o, start=o.start + shift, end=o.end + shift) for o in draft.observations),
        utterances=tuple(replace(u, start=u.start + shift, end=u.end + shift) for u in draft.utterances),
        key_frames=tuple(replace(k, at=k.at + shift) for k in draft.key_frames for _ in range(2)),
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as opened:
        yield opened


def age(store: Store) -> None:
    """Let everything have come into the memory when it happened."""
    store.transact(lambda memory: memory.execute("update trace set ingested = end") and None)


def lived(store: Store) -> dict[str, int]:
    """Moments of several ages: with Ann, who has a name; with somebody who has none; with nobody; a note."""
    made: dict[str, int] = {}
    ann = store.commit(at(scene(0, [-1], ["I collect zithers."]), 40 * DAY)).entities[-1]
    other = store.commit(at(scene(1, [-2], ["A rumble of thunder today."]), 39 * DAY)).entities[-2]
    store.set_name(ann, "Ann")
    moments = {
        "ann, old": at(scene(2, [ann]), 30 * DAY),
        "other, old": at(scene(3, [other], ["The parcel came at noon."]), 30 * DAY - 600),
        "nobody, old": at(scene(4, []), 29 * DAY),
        "note": at(scene(5, []), 28 * DAY, note=True),
        "ann": at(scene(6, [ann]), 2 * DAY),
        "other": at(scene(7, [other]), 2 * DAY - 600),
        "now": at(scene(8, [other]), 600),
    }
    for name, draft in moments.items():
        trace = store.commit(draft).trace
        assert trace is not None
        made[name] = trace
    age(store)
    store.rebuild_galleries(RULES)
    build_worker(store, Settings(home=store.home), None, purpose="test").drain()
    return made


def pictures(store: Store, made: dict[str, int]) -> dict[str, int]:
    return {name: len(store.trace(trace).key_frames) for name, trace in made.items() if there(store, trace)}


def there(store: Store, trace: int) -> bool:
    return bool(store.rows("select 1 from trace where id = ?", (trace,)))


def test_nothing_goes_by_itself(store: Store) -> None:
    lived(store)
    assert not room(store, MemorySettings(min_free_gb=0)).thinning
    assert not thin_out(store, MemorySettings(min_free_gb=0))


def test_old_pictures_go_but_for_one_of_what_is_important(store: Store) -> None:
    made = lived(store)
    settings = MemorySettings(key_frame_days=10, min_free_gb=0)
    planned = room(store, settings).thinning
    went = thin_out(store, settings)
    assert set(went.pictures) == set(planned.pictures)
    assert pictures(store, made) == {
        "ann, old": 1, "other, old": 0, "nobody, old": 0, "note": 1, "ann": 2, "other": 2, "now": 2,
    }  # fmt: skip
    assert not thin_out(store, settings)
    assert store.integrity() == []


def test_old_moments_go_and_what_is_told_of_them_stays(store: Store) -> None:
    made = lived(store)
    told = store.rows("select id, text from node order by id")
    facts = store.rows("select id, name from entity order by id")
    went = thin_out(store, MemorySettings(keep_days=10, min_free_gb=0))
    assert set(went.moments) == {2, made["other, old"], made["nobody, old"]}
    assert there(store, made["ann, old"])
    assert there(store, made["note"])
    assert store.rows("select id, text from node order by id") == told
    assert any("parcel" in text for _, text in told)
    assert store.rows("select id, name from entity order by id") == facts
    # What happens in such an hour later does not lose it, either.
    again = at(scene(9, [1]), 30 * DAY - 900)
    store.commit(again)
    build_worker(store, Settings(home=store.home), None, purpose="test").drain()
    assert {row[1] for row in told if "parcel" in row[1]} <= {
        text for _, text in store.rows("select id, text from node")
    }
    assert store.integrity() == []


def test_an_old_recording_that_is_watched_today_does_not_go_tonight(store: Store) -> None:
    for number in range(3):
        store.commit(at(scene(number, [-1 - number]), 400 * DAY))
    settings = MemorySettings(key_frame_days=7, keep_days=30, keep_gb=1e-6, min_free_gb=0)
    assert not thin_out(store, settings)
    age(store)
    assert thin_out(store, settings)


def test_what_is_told_of_moments_that_went_is_forgotten_with_their_time(store: Store) -> None:
    lived(store)
    thin_out(store, MemorySettings(keep_days=10, min_free_gb=0))
    assert any("parcel" in text for (text,) in store.rows("select text from node"))
    planned = store.forget_plan(Target(until=utc_now() - 20 * DAY))
    assert dict(planned.counts)["summaries"] > 0
    store.forget(planned, RULES)
    assert not any("parcel" in text for (text,) in store.rows("select text from node"))
    assert store.integrity() == []


def test_somebody_is_forgotten_also_where_only_a_summary_is_left(store: Store) -> None:
    lived(store)
    (other,) = (one.id for one in store.entities() if one.name is None)
    thin_out(store, MemorySettings(keep_days=10, min_free_gb=0))
    store.forget(store.forget_plan(Target(person=other)), RULES)
    texts = [text for (text,) in store.rows("select text from node")]
    assert not any("parcel" in text or f"{{{{{other}" in text for text in texts)
    assert not any(f'"{other}"' in people for (people,) in store.rows("select people from node"))


def test_under_want_of_room_what_tells_least_goes_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    made = lived(store)
    settings = MemorySettings(min_free_gb=1)
    frame = len(store.key_frame(store.trace(made["other"]).key_frames[0]).jpeg)

    def short(by: float) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, int(1e9 - by)))

    short(frame * 2.5)
    assert short_of_room(store, settings)
    went = room(store, settings).thinning
    assert len(went.pictures) == 3
    assert not went.moments
    short(frame * 6 + 4 * retention.DETAIL_BYTES + 1)  # more than all second pictures of what is unimportant
    went = room(store, settings).thinning
    assert went.details or went.moments or len(went.pictures) > 6
    short(1e8)
    settings = MemorySettings(min_free_gb=1)
    thin_out(store, settings, steps=20)
    left = pictures(store, made)
    assert left["now"] == 2  # nothing of the last hour
    assert set(left) == {"ann, old", "note", "ann", "now"}
    assert left["ann"] == 0
    assert store.trace(made["ann"]).text
    assert store.integrity() == []
    assert not thin_out(store, settings)


def test_nothing_is_remembered_when_the_device_is_as_good_as_full(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.commit(scene(0, [-1]))
    before = store.counts()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, 10**7))
    with pytest.raises(DiskFullError, match="No space"):
        store.commit(scene(1, [-1]))
    assert store.counts().traces == before.traces
    monkeypatch.undo()
    store.commit(scene(1, [-1]))


def test_a_memory_that_is_larger_than_wanted_becomes_smaller(store: Store) -> None:
    for number in range(40):
        store.commit(at(scene(number, [-1 - number]), (50 - number) * DAY))
    age(store)
    before = room(store, MemorySettings(min_free_gb=0)).used
    keep = before * 0.7
    thin_out(store, MemorySettings(keep_gb=keep / 1e9, min_free_gb=0))
    after = room(store, MemorySettings(min_free_gb=0)).used
    assert after <= keep * 1.02
    assert store.counts().traces == 40  # pictures were enough


@given(
    st.floats(1e9, 2e9),
    st.one_of(st.none(), st.floats(0.1, 1000)),
    st.one_of(st.none(), st.floats(0.1, 1000)),
    st.integers(0, 10**12),
)
def test_nothing_of_the_last_hour_goes(now: float, days: float | None, pictures: float | None, free: int) -> None:
    settings = MemorySettings(keep_days=days, key_frame_days=pictures)
    wanted = retention.policy(settings, now=now, used=10**9, missing=2e9 - free)
    assert wanted.latest <= now - 3600
    assert max(wanted.pictures_before, wanted.moments_before) <= wanted.latest
    assert wanted.surplus == max(0.0, 2e9 - free)
    assert (wanted.moments_before == -math.inf) == (days is None)


def test_a_small_device_is_not_emptied_for_the_sake_of_a_large_floor(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a stick of a gigabyte, a gigabyte can never be free."""
    lived(store)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 9 * 10**8, 10**8))
    assert not short_of_room(store, MemorySettings())
    assert not room(store, MemorySettings()).thinning
    store.commit(at(scene(90, [-1]), 0.0))


def test_the_command_shows_and_runs(home: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(home) as opened:
        opened.commit(at(scene(0, [-1]), 40 * DAY))
        age(opened)
    monkeypatch.setenv("REFLECTWORLD_MEMORY__KEY_FRAME_DAYS", "7")
    monkeypatch.setenv("REFLECTWORLD_MEMORY__MIN_FREE_GB", "0")
    shown = json.loads(reflectworld("retention", "show", "--json").out)
    assert shown["would_go"]["pictures"] == 2
    assert "2 pictures" in reflectworld("retention", "show").out
    assert "would go" in reflectworld("retention", "run", "--dry-run").out
    done = json.loads(reflectworld("retention", "run", "--json").out)
    assert (done["done"], done["pictures"]) == (True, 2)
    assert "Nothing is to go." in reflectworld("retention", "run").out
