"""Whether forgotten people leave anything behind in a large memory, and what forgetting costs.

python -m tools.bench.forget --traces 3000 --people 12 --forget 4

A memory of moments with several people each, who speak of each other; some were merged and split. One after the other is
forgotten. Before and after, everything that the home folder holds is searched with the key in hand: all pages of both
files as they are on the disk (free pages and gaps inside pages, too), the logs, the words of the index, all other files.
Looked for are the name, secrets that only they said, every vector of them and of the moments in which they were, and the
pixels of every picture in which they were seen: each in four places of 24 bytes.

Before that, a small memory in which every table has something of somebody (a table that has nothing fails the run): she is
forgotten, and the same is looked for in every row, too.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import structlog

from edge.clock import monotonic
from edge.identity import RULES, merge_people, not_this_person
from edge.memory import Store, Target
from edge.memory.database import connect
from edge.memory.files import FRAMES_FILE, MEMORY_FILE
from edge.memory.keys import obtain_key
from edge.settings import MemorySettings
from edge.types.drafts import (
    CommitDraft,
    DecisionDraft,
    KeyFrameDraft,
    NewEntity,
    ObservationDraft,
    SampleDraft,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.media import Mode
from edge.types.records import EntityKind, Kind, LineDraft, Modality, Outcome, mention
from tests import full_memory
from tests.forget_support import evidence_of, leftovers

START = 1_700_000_000.0
FACES, VOICES, TEXTS, SIZE = "faces:bench", "voices:bench", "texts:bench", 192
SYLLABLES = ("zor", "vim", "quel", "thax", "plib", "wund", "grix", "smeb", "yult", "frob", "knaz", "dwix")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.forget", description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--traces", type=int, default=1500, help="moments")
    parser.add_argument("--people", type=int, default=10, help="who are in them")
    parser.add_argument("--forget", type=int, default=4, help="how many of them are forgotten")
    parser.add_argument("--seed", type=int, default=0, help="of all chances")
    asked = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        if every_table(Path(folder) / "small"):
            raise SystemExit(1)
    with tempfile.TemporaryDirectory() as folder:
        if run(Path(folder), asked.traces, asked.people, asked.forget, asked.seed):
            raise SystemExit(1)


def every_table(home: Path) -> int:
    """Forget somebody of whom every table tells; how much is found afterwards, or how many tables were empty."""
    cast = full_memory.fill(home)
    with Store.open(home) as store:
        empty = [one for one in full_memory.empty_tables(store) if one != "forgotten"]
        words = [*full_memory.NAME.split(), *full_memory.SECRETS, f"{{{{{cast.anna}}}}}", f"{{{{{cast.anna}:"]
        blobs = [*evidence_of(store, cast.anna), *full_memory.vectors(store, cast.anna)]
        before = leftovers(home, words, blobs)
        planned = store.forget_plan(Target(person=cast.anna))
        store.forget(planned, RULES)
        after = leftovers(home, words, blobs)
    tables = {one.rpartition(" in a row of ")[2] for one in before if " in a row of " in one}
    print(f"a memory in which every table has something{f', but for {empty}' if empty else ''}: {planned.text}")
    print(
        f"  {len(words)} strings and {len(blobs)} vectors and pictures were in {len(tables)} tables; left: {len(after)}"
    )
    for what in after[:5]:
        print(f"    left: {what}")
    return len(after) + len(empty)


def run(home: Path, traces: int, people: int, forget: int, seed: int) -> int:
    """Fill a memory, forget some, search; how many needles were found afterwards."""
    chance = random.Random(seed)
    worst = 0
    with Store.open(home) as store:
        began = monotonic()
        ids = fill(store, traces, people, chance)
        commit_ms = 1000 * (monotonic() - began) / traces
        began = monotonic()
        full_memory.work(store)
        derive_ms = 1000 * (monotonic() - began) / traces
        began = monotonic()
        store.rebuild_galleries(RULES)
        rebuild_s = monotonic() - began
        for place, who in enumerate(ids):
            store.set_name(who, name_of(place))
        for _ in range(forget):  # what was corrected lies elsewhere in the files
            one, other = chance.sample(ids, 2)
            seen = [row.id for row in store.observations(entity=one, limit=5)]
            not_this_person(store, one, [(Kind.OBSERVATION, number) for number in seen], other)
        twin = store.commit(_scene(traces, [-1], chance, {-1: people + 1}, [name_of(people + 1)])).entities[-1]
        merge_people(store, ids[0], twin)
        full_memory.work(store)
        print(
            f"{traces} moments, {people} people; a commit takes {commit_ms:.1f} ms here, deriving {derive_ms:.1f} ms,"
            f" all galleries {rebuild_s:.2f} s"
        )
        print(
            f"{'who':>12} {'moments':>8} {'plan s':>7} {'forget s':>9} {'per moment, commits':>20}"
            f" {'needles':>8} {'before':>7} {'after':>6}"
        )
        for place in range(forget):
            needles = needles_of(store, ids[place], place)
            before = len(found_in(home, needles))
            began = monotonic()
            planned = store.forget_plan(Target(person=ids[place]))
            plan_s = monotonic() - began
            began = monotonic()
            store.forget(planned, RULES)
            forget_s = monotonic() - began
            left = found_in(home, needles)
            worst = max(worst, len(left))
            moments = len(planned.traces) + len(planned.parts)
            per = 1000 * forget_s / max(1, moments) / commit_ms
            print(
                f"{name_of(place):>12} {moments:8d} {plan_s:7.2f} {forget_s:9.2f} {per:20.2f} {len(needles):8d}"
                f" {before:7d} {len(left):6d}"
            )
            for what in left[:5]:
                print(f"    left: {what}")
        began = monotonic()
        planned = store.forget_plan(Target(since=START, until=START + 40.0 * traces / 10))
        needles = [
            (f"vector of t{trace}", bytes(blob)[:24])
            for trace, blob in store.rows("select trace, vector from embedding where unit = 0")
            if trace in set(planned.traces)
        ]
        store.forget(planned, RULES)
        left = found_in(home, needles)
        worst = max(worst, len(left))
        print(
            f"a tenth of the time: {len(planned.traces)} moments in {monotonic() - began:.2f} s, {len(left)} of {len(needles)} left"
        )
        problems = store.integrity()
        print("integrity:", problems or "nothing is wrong")
    return worst


def name_of(place: int) -> str:
    """A name that no language has."""
    return (SYLLABLES[place % 12] + SYLLABLES[(place * 5 + 3) % 12] + SYLLABLES[(place // 12) % 12]).capitalize()


def secret_of(place: int) -> str:
    """Words that only one person says."""
    return f"{SYLLABLES[(place + 6) % 12]}{SYLLABLES[place % 12]}ing{place}"


def fill(store: Store, traces: int, people: int, chance: random.Random) -> list[int]:
    """Commit moments with one to three people each."""
    ids: list[int] = []
    names = [name_of(place) for place in range(people)]
    for number in range(traces):
        if number < people:
            seeds = {-1: number}
            made = store.commit(_scene(number, [-1], chance, seeds, names))
            ids.append(made.entities[-1])
            continue
        there = chance.sample(range(people), chance.choice((1, 2, 2, 3)))
        store.commit(_scene(number, [ids[place] for place in there], chance, {ids[p]: p for p in there}, names))
    return ids


def _scene(
    number: int, who: Sequence[int], chance: random.Random, seeds: dict[int, int], names: Sequence[str]
) -> CommitDraft:
    start = START + 40.0 * number
    samples, observations, decisions, utterances, lines = [], [], [], [], []
    for place, key in enumerate(who):
        anchor, seed = f"a{place + 1}", seeds[key]
        at = start + 8 * place
        observations.append(
            ObservationDraft(anchor, "person", key, at, at + 7, f"{mention(key, anchor)} sat down.", 0.9)
        )
        candidates = [{"entity": key, "score": 0.9}] if key > 0 else []
        decisions.append(
            DecisionDraft(anchor, Outcome.SAME, key, f"The face matches {mention(key)}.", {"candidates": candidates})
        )
        for modality, model, base in ((Modality.FACE, FACES, 0), (Modality.VOICE, VOICES, 5000)):
            vector = _near(base + seed, chance)
            crop = _noise(chance, 32, 32) if modality is Modality.FACE else None
            samples.append(SampleDraft(key, modality, model, vector, chance.uniform(40, 70), anchor, 6, 0.2, 0.5, crop))
        words = chance.choice(
            (f"I know the {secret_of(seed)} by heart.", f"Was {chance.choice(names)} here today?", "The kettle is on.")
        )
        utterances.append(UtteranceDraft(at + 1, at + 3, words, key, f"v{place + 1}"))
        lines.append(LineDraft(at + 1, f"{mention(key, f'v{place + 1}')} said: “{words}”"))
    everybody = " and ".join(mention(key, f"a{place + 1}") for place, key in enumerate(who))
    lines.append(LineDraft(start + 30, "Two cups were on the table."))
    text = " ".join([f"{everybody} were at a table.", *(line.text for line in lines)])
    return CommitDraft(
        camera=chance.choice(("hall", "kitchen")),
        trace=TraceDraft(start, start + 35, text, Mode.OFFLINE_QUALITY, None, tuple(lines)),
        entities=tuple(NewEntity(key, EntityKind.PERSON) for key in who if key < 0),
        observations=(*observations, ObservationDraft("a9", "cup", None, start, start + 35, "A cup.", 0.8)),
        utterances=tuple(utterances),
        decisions=tuple(decisions),
        samples=tuple(samples),
        key_frames=(KeyFrameDraft(start + 2, _noise(chance, 160, 120), ()),),
        vector=_near(-1, chance),
        line_vectors=(_near(-1, chance),),
        embedder=TEXTS,
    )


def _near(seed: int, chance: random.Random) -> np.ndarray:
    own = np.random.default_rng(chance.randrange(2**32)).normal(size=SIZE)
    vector = own if seed < 0 else np.random.default_rng(seed).normal(size=SIZE) + 0.3 * own
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _noise(chance: random.Random, width: int, height: int) -> np.ndarray:
    return np.random.default_rng(chance.randrange(2**32)).integers(0, 256, (height, width, 3), np.uint8)


def needles_of(store: Store, entity: int, place: int) -> list[tuple[str, bytes]]:
    """What only somebody's own data holds."""
    needles = [(f"name {form}", form.encode()) for form in (name_of(place), name_of(place).lower())]
    secret = secret_of(place)
    # What a correction made somebody else's words stays, whoever it was taken for first.
    if not store.rows("select 1 from utterance where instr(text, ?) and speaker <> ? limit 1", (secret, entity)):
        needles.append((f"secret {secret}", secret.encode()))
    for what, sql in (
        ("sample", "select embedding from sample where entity = ?"),
        ("slot", "select embedding from gallery where entity = ?"),
        (
            "text vector",
            "select e.vector from embedding e join participation p on p.trace = e.trace where p.entity = ?",
        ),
        ("signs", "select s.bits from signs s join participation p on p.trace = s.trace where p.entity = ?"),
    ):
        needles += [cut for (blob,) in store.rows(sql, (entity,)) for cut in _cuts(what, bytes(blob))]
    needles += [cut for face in store.crops(entity) for cut in _cuts("face", _pixels(face.jpeg))]
    frames = "select k.id from key_frame k where trace in (select trace from observation where entity = ? and label = 'person')"
    for (number,) in store.rows(frames, (entity,)):
        needles += _cuts("picture", _pixels(store.key_frame(number).jpeg))
    return needles


def _pixels(jpeg: bytes) -> bytes:
    return jpeg[jpeg.index(b"\xff\xda") + 14 :]


def _cuts(what: str, blob: bytes) -> list[tuple[str, bytes]]:
    places = {0, len(blob) // 3, len(blob) // 2, max(0, len(blob) - 26)}
    return [(what, blob[at : at + 24]) for at in sorted(places) if len(set(blob[at : at + 24])) > 8]


def found_in(home: Path, needles: Iterable[tuple[str, bytes]]) -> list[str]:
    """Which needles are somewhere in a home folder, with the key in hand."""
    key = obtain_key(home, MemorySettings(), exists=True)
    contents: dict[str, bytes] = {}
    for file in (MEMORY_FILE, FRAMES_FILE):
        with closing(connect(home / file, key, readonly=True)) as opened:
            contents[file] = bytes(opened.serialize("main") or b"")
            if file == MEMORY_FILE:
                terms = [str(term) for (term,) in opened.execute("select distinct term from words_instance")]
                contents["words"] = "\n".join(terms).encode()
    for path in home.rglob("*"):
        if path.is_file() and path.name not in contents:
            contents[path.name] = path.read_bytes()
    return [f"{what} in {name}" for name, data in contents.items() for what, cut in _present(data, needles)]


def _present(data: bytes, needles: Iterable[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Those that are in the data. Long ones by the runs of 24 bytes that begin with the same 8 as some needle."""
    wanted = list(needles)
    long = {cut[:8]: (what, cut) for what, cut in wanted if len(cut) == 24}
    found = [(what, cut) for what, cut in wanted if len(cut) != 24 and cut in data]
    if long and len(data) >= 24:
        heads = np.sort(np.frombuffer(b"".join(long), "<u8"))
        for shift in range(8):
            words = np.frombuffer(data, "<u8", (len(data) - shift) // 8, shift)
            hits = np.flatnonzero(np.isin(words, heads))
            for at in hits.tolist():
                begin = shift + 8 * at
                entry = long.get(data[begin : begin + 8])
                if entry is not None and data[begin : begin + 24] == entry[1]:
                    found.append(entry)
    return found


if __name__ == "__main__":
    main()
