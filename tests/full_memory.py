"""A memory in which every table has something of the person who is to be forgotten, or of what they did."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from edge.app.keeping import thin_out
from edge.app.work import build_worker
from edge.clock import utc_now
from edge.identity import RULES, merge_people, split_person
from edge.memory import Store
from edge.memory.tiers import experience, facts, procedural
from edge.settings import MemorySettings, Settings
from edge.types.drafts import CommitDraft, NameClaim, NewEntity, PendingWrite, SourceProgress, TraceDraft
from edge.types.evidence import VisualEvidence
from edge.types.media import Mode, SourceInfo, SourceKind
from edge.types.records import EntityKind, Kind, Modality, NameSource, mention
from tests.forget_support import FACES, START, scene
from tests.identity_support import direction, near

NAME = "Zebulonia Quirke"  # which nothing else holds
SECRETS = ("xylophone", "plumbus", "glockenspiel", "marzipan")  # what only she speaks of
DAY = 2160  # scenes of 40 s
ATTIC = "attic"  # whose moments are not kept
BLOCK = 1 << 14  # ids of a sealed block of the index
# What is empty once it is worked off.
PASSING = frozenset({"discarded", "reindex"})


@dataclass(frozen=True)
class Cast:
    """Who is in it."""

    anna: int  # who is to be forgotten
    marta: int  # has a name
    third: int  # has none
    told: float  # UTC POSIX seconds at which the owner asked for her


def fill(home: Path, *, fading: bool = True) -> Cast:
    """Two weeks with three people, corrections, rules, questions; older days of one camera are not kept any more.

    Args:
        home: where there is no memory yet.
        fading: with moments that are not kept any more, and a sealed block of the index.
    """
    with Store.open(home) as store:
        cast = _live(store, fading)
    with Store.open(home) as store:  # a writer that just began waits for no quiet moment
        if fading:
            _sealed(store)
        store.commit(_seen(DAY * 13 + 70, [cast.anna, cast.marta], ["Ask the xylophone.", "I will."]))  # its job waits
    return cast


def _live(store: Store, fading: bool) -> Cast:
    first = store.commit(_seen(0, [-1, -2, -3], ["I work at the Plumbus bakery.", "Good morning.", "My cat is ill."]))
    anna, marta, third = (first.entities[-number] for number in (1, 2, 3))
    if fading:
        for day in range(4):
            for part in range(2):
                words = ["My favourite dish is marzipan.", "So it is."]
                store.commit(_seen(DAY * day + 10 + part, [anna, third], words, camera=ATTIC))
        work(store)
        store.transact(lambda memory: _note(memory, store.user, anna))
        store.transact(lambda memory: memory.execute("update trace set ingested = end") and None)
        days = (utc_now() - (START + 40 * DAY * 6)) / 86_400
        store.set_name(marta, "Marta")  # so that what she is in stays
        thin_out(store, MemorySettings(keep_days=days, min_free_gb=0))
        assert not store.traces(camera=ATTIC)
    store.set_name(marta, "Marta")
    for day in range(7, 13):
        for part in range(3):
            number = DAY * day + 30 * part
            there = [[anna], [anna, marta], [marta, third]][part]
            words = [
                ["I play the xylophone.", "I live in Glockenspiel Street."][day % 2],
                ["I saw Zebulonia yesterday.", "The kettle is on."][day % 2],
            ]
            if part == 2:
                words = ["Zebulonia said so.", "I play chess."]
            store.commit(_seen(number, there, words, camera=["hall", "kitchen"][part % 2]))
    if fading:
        store.transact(_next_block)
    claim = NameClaim(anna, "Zebulonia", NameSource.SELF, 0, True)
    late = DAY * 13
    store.commit(replace(_seen(late, [anna], ["I am Zebulonia."]), names=(claim,)))
    store.set_name(anna, NAME)
    double = store.commit(_seen(late + 10, [-9], ["That is me with the xylophone."])).entities[-9]
    merge_people(store, anna, double)
    last = store.commit(_seen(late + 20, [marta, anna], ["", "Where is the xylophone?"]))
    split_person(store, marta, [(Kind.OBSERVATION, last.observations[0])])
    waits = tuple(
        PendingWrite("a1", Modality.FACE, FACES, near(direction(who), 0.55, 3), 60.0, START + 1e8) for who in (1, 2)
    )
    store.commit(replace(_seen(late + 30, [third]), pending=waits))
    cleo = NewEntity(-1, EntityKind.NAMED, "Cleo", NameSource.ADDRESSED)
    text = f"{mention(-1)} came with Zebulonia."
    told_of = TraceDraft(START + 40.0 * (late + 40), START + 40.0 * (late + 41), text, Mode.OFFLINE_QUALITY, None)
    store.commit(CommitDraft("hall", told_of, entities=(cleo,)))
    source = SourceInfo("clip.mp4", "hall", SourceKind.FILE, "f" * 32, START, 1e7, True, True, 640, 480)
    for place in (0.0, 30.0):
        store.commit(CommitDraft("hall", None, SourceProgress(source, place + 40.0 * (late + 50), 1 + int(place))))
    store.agree(third)
    store.rebuild_galleries(RULES)
    work(store)
    told = START + 40.0 * (late + 60)
    store.transact(lambda memory: _tell(memory, store.user, anna, last.trace or 0, told))
    if fading:  # what a model said is not made again by rules
        store.transact(lambda memory: _note(memory, store.user, anna))
    return Cast(anna, marta, third, told)


def work(store: Store) -> None:
    """Do all that waits."""
    build_worker(store, Settings(home=store.home), None, purpose="test").drain()


def vectors(store: Store, person: int) -> list[bytes]:
    """What moments looked like in which somebody was, and the signs of the words in them."""
    looks = "select v.vector, v.bits from visual v join participation p on p.trace = v.trace where p.entity = ?"
    words = "select w.bits from word_signs w join participation p on p.trace = w.trace where p.entity = ?"
    return [bytes(blob) for sql in (looks, words) for row in store.rows(sql, (person,)) for blob in row]


def empty_tables(store: Store) -> list[str]:
    """The tables that hold nothing."""
    tables = store.rows("select name from sqlite_schema where type = 'table' and rootpage > 0")
    return [name for (name,) in tables if not store.rows(f'select 1 from "{name}" limit 1') and name not in PASSING]


def _seen(number: int, people: list[int], words: Iterable[str] = (), *, camera: str = "hall") -> CommitDraft:
    look = VisualEvidence(direction(60_000 + number), "looks@1", 0.9)
    return replace(scene(number, people, list(words), camera=camera), visual=look)


def _next_block(memory: apsw.Connection) -> None:
    """Let the next moment be the first of a block of the index, so that the one before is sealed."""
    memory.execute("update sqlite_sequence set seq = ? where name = 'trace'", (BLOCK - 1,))


def _sealed(store: Store) -> None:
    for _ in range(400):  # the writer seals in its quiet moments
        store.upkeep(lambda files: None)
        if store.rows("select 1 from block, block_cells on block = id"):
            return
        time.sleep(0.02)
    raise AssertionError("no block of the index was sealed")


def _tell(memory: apsw.Connection, user: str, anna: int, trace: int, at: float) -> None:
    rule = procedural.add_rule(memory, user, procedural.RuleKind.ALERT, "tell me when Zebulonia is back", created=START)
    for outcome in (procedural.Outcome.DELIVER, procedural.Outcome.DROP):
        procedural.add_alert(
            memory, user, rule, trace, at=at, outcome=outcome, reason="Zebulonia was seen.", topic="zebulonia",
            text=f"{{{{{anna}}}}} is back.", ground=[f"t{trace}", f"p{anna}"],
        )  # fmt: skip
    experience.note_answer(
        memory, user, at=at, question="Where does Zebulonia keep her xylophone?", found=True,
        route={"shape": ["kind:where"], "looked": [f"p{anna}"]}, cited=[("trace", trace), ("entity", anna)],
    )  # fmt: skip
    experience.note_answer(memory, user, at=at + 1, question="Was Zebulonia here?", found=False, route={}, cited=[])
    shape = frozenset({"kind:where", "people:1"})
    learned = experience.Experience(experience.Bank.SUCCESS, "far", "event", shape, 3, 2, 0.9, START, START)
    experience.replace_experiences(memory, user, [learned])


def _note(memory: apsw.Connection, user: str, anna: int) -> None:
    """What a language model says of others on her ground, and of her."""
    for number in facts.unasked(memory, user, 10):
        shown = facts.material(memory, number, 12)
        if shown is not None:
            text = f"learns the xylophone from {{{{{anna}}}}}"
            facts.note_down(memory, shown, [facts.Noted("", "", text, holds=True)])
