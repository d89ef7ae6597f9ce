"""What there is and whether it is in order: the facts behind `status` and `doctor`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edge.app.upkeep import examine
from edge.clock import iso, utc_now
from edge.errors import ReflectWorldError
from edge.infer import Catalog, Runtime, verify_models
from edge.memory import Store, jobs
from edge.memory.jobs import JobCounts
from edge.memory.tiers import working
from edge.memory.tiers.working import Working
from edge.memory.upkeep import examined, offers
from edge.reason import Ledger, Totals, open_reasoner
from edge.settings import Settings
from edge.types.records import MemoryCounts, SourceRecord

_LOW_DISK = 500_000_000  # bytes: about a week of one camera
_LATE = 3  # times the wait between backups after which something is wrong with them


@dataclass(frozen=True, slots=True)
class State:
    """What the memory holds now."""

    home: Path
    counts: MemoryCounts
    sources: tuple[SourceRecord, ...]
    busy: tuple[str, ...]  # what other processes do with it now, in words
    free_bytes: int  # on the device that holds it
    jobs: JobCounts  # what is still made of it, and what could not be
    reason: Totals  # what language models were asked for it
    working: tuple[Working, ...]  # what goes on in front of each camera, or went on last
    titles: Mapping[int, str]  # of those in it


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def look(settings: Settings) -> State:
    """Read the state of the memory.

    Raises:
        ReflectWorldError: there is none, or it cannot be opened.
    """
    with Store.open(settings.home, settings.memory, user=settings.user, readonly=True) as store:
        with store.reading() as connection:
            queue = jobs.counts(connection, store.user)
            states = tuple(working.states(connection, store.user))
        return State(
            home=settings.home,
            counts=store.counts(),
            sources=tuple(store.sources()),
            busy=tuple(store.claims()),
            free_bytes=shutil.disk_usage(settings.home).free,
            jobs=queue,
            reason=Ledger(settings.home).totals(),
            working=states,
            titles=store.titles({who for state in states for who in state.people}),
        )


def diagnose(settings: Settings, *, deep: bool = False) -> list[Check]:
    """Look at everything that has to be in order, the worst not hiding the rest.

    Args:
        settings: all.
        deep: read the memory whole, which takes time that grows with it.
    """
    checks: list[Check] = []
    for name, probe in (
        ("memory", _whole if deep else _glance),
        ("backups", _backups),
        ("disk", _disk),
        ("networks", _networks),
        ("models", _models),
        ("language model", _language_model),
    ):
        checks += _run(name, probe, settings)
    return checks


def _run(name: str, probe: Callable[[Settings], Iterator[Check]], settings: Settings) -> list[Check]:
    try:
        return list(probe(settings))
    except ReflectWorldError as error:
        return [Check(name, ok=False, detail=str(error))]


def _whole(settings: Settings) -> Iterator[Check]:
    yield from _memory(settings, lambda store: examine(store).problems)


def _glance(settings: Settings) -> Iterator[Check]:
    yield from _memory(settings, Store.glance)
    last = examined.last(settings.home)
    if last is not None:
        found = "; ".join(last.problems[:3]) or "nothing was wrong"
        remedy = "" if not last.problems else "`reflectworld doctor --deep` reads it again."
        yield Check("examined", ok=not last.problems, detail=f"read whole at {iso(last.at)}: {found}", remedy=remedy)


def _memory(settings: Settings, look_over: Callable[[Store], Sequence[str]]) -> Iterator[Check]:
    if not (settings.home / "memory.db").exists():
        yield Check("memory", ok=True, detail=f"none at {settings.home} yet; `reflectworld watch` makes it")
        return
    with Store.open(settings.home, settings.memory, user=settings.user, readonly=True) as store:
        problems = look_over(store)
        counts = store.counts()
        yield Check("key", ok=True, detail=store.key_source)
        yield _queue(store)
    if problems:
        yield Check("memory", ok=False, detail="; ".join(problems[:3]), remedy=offers.offer(settings.home))
    else:
        yield Check(
            "memory",
            ok=True,
            detail=f"in order: {counts.traces} moments in {counts.bytes / 1e6:.1f} MB at {settings.home}",
        )


def _queue(store: Store) -> Check:
    with store.reading() as connection:
        queue = jobs.counts(connection, store.user)
    waiting, aside = sum(queue.waiting.values()), sum(queue.aside.values())
    detail = f"{waiting} wait" + (f", {aside} were set aside" if aside else "")
    remedy = "`reflectworld jobs list --aside` tells why; `reflectworld jobs retry` tries again." if aside else ""
    return Check("jobs", ok=not aside, detail=detail, remedy=remedy)


def _backups(settings: Settings) -> Iterator[Check]:
    found = offers.newest(settings.home)
    if found is None:
        yield Check("backups", ok=True, detail="none is known; `reflectworld backup FOLDER` makes one")
        return
    at, path = found
    late = settings.memory.backup_folder is not None and utc_now() - at > _LATE * settings.memory.backup_h * 3600
    remedy = f"See whether “{settings.memory.backup_folder}” is there and has room." if late else ""
    yield Check("backups", ok=not late, detail=f"the newest is of {iso(at)}: {path}", remedy=remedy)


def _disk(settings: Settings) -> Iterator[Check]:
    folder = settings.home
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    yield Check(
        "disk",
        ok=free > _LOW_DISK,
        detail=f"{free / 1e9:.1f} GB free where the memory is kept",
        remedy="" if free > _LOW_DISK else "Free some space, or move the memory with --home.",
    )


def _networks(settings: Settings) -> Iterator[Check]:
    yield Check("networks", ok=True, detail=Runtime(settings.infer).description)


def _models(settings: Settings) -> Iterator[Check]:
    catalog = Catalog.load(settings.infer)
    needed = {spec.id for spec in catalog.defaults()}
    for checked in verify_models(catalog):
        if checked.state == "missing" and checked.model not in needed:
            continue
        name = f"model {checked.model} ({checked.file})"
        yield Check(name, ok=checked.state == "ok", detail=checked.state, remedy=checked.remedy)


def _language_model(settings: Settings) -> Iterator[Check]:
    if settings.reason.backend == "none":
        yield Check("language model", ok=True, detail="none is set up; what is made of memories is made without one")
        return
    reasoner = open_reasoner(settings.reason, settings.home)
    try:
        refusal = reasoner.probe()
    finally:
        reasoner.close()
    if refusal is not None:
        yield Check("language model", ok=False, detail=refusal.text, remedy=refusal.remedy)
        return
    total = reasoner.totals().all
    asked = f"; {total.answered} of {total.requests} requests were answered so far" if total.requests else ""
    yield Check("language model", ok=True, detail=f"{reasoner.name} is there{asked}")
