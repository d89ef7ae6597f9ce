"""What experience saves: a stream of questions with feedback, in batches, with learning and without.

`python -m tools.bench.experience --home DIR [--batches N] [--seed N]`. The questions are made from sentences of the memory itself
(`DIR` is copied, nothing is written there), so that it is known which moment answers each: half of them name a word wrongly, a day
on which it was not, somebody who was not there, or take words of two moments in a row; some ask for what was never there, and are
answered rightly by saying so. After each answer the stream says whether it was right; after each batch the banks learn. The same
stream is answered without learning. *Rounds* are the looks of a question, the first pass among them.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.clock import to_local
from edge.infer import Catalog, Runtime
from edge.memory import Store
from edge.recall import Recall
from edge.settings import load_settings
from edge.types.frequency import zipf
from edge.types.records import render
from edge.types.words import content_words

BATCH = 64  # as RRM has it
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
ABSENT = (
    "submarine",
    "giraffe",
    "volcano",
    "trombone",
    "glacier",
    "parachute",
    "cathedral",
    "walrus",
    "harpoon",
    "comet",
)
# How often each kind of question comes, and how it opens: as people put such questions.
KINDS = {"plain": 0.3, "misspelt": 0.15, "other day": 0.15, "other person": 0.1, "two moments": 0.15, "absent": 0.15}


@dataclass(frozen=True)
class Asked:
    """A question and what answers it."""

    text: str
    kind: str
    traces: frozenset[str]  # ids; none: nothing does
    at: float  # UTC POSIX seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a memory, such as tools.bench.egolife --home makes")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as folder:
        results = {}
        stream: list[Asked] = []
        for learn in (False, True):
            home = Path(folder) / str(learn)
            shutil.copytree(asked.home, home)
            if not stream:
                with Store.open(home) as store:
                    stream = list(questions(store, chance, asked.batches * BATCH))
            results[learn] = answer(home, stream, learn=learn)
            shutil.rmtree(home)
    show(results[False], results[True], stream, asked.seed)


def questions(store: Store, chance: random.Random, number: int) -> Iterator[Asked]:
    """Questions made from sentences of the memory."""
    rows = store.rows(
        "select l.trace, t.start, t.end, l.text, t.camera from line l join trace t on t.id = l.trace order by t.start, l.id"
    )
    titles = store.titles()
    said = [
        (trace, start, end, render(text, lambda who: titles.get(who, "somebody")), camera)
        for trace, start, end, text, camera in rows
    ]
    names = sorted({title for title in titles.values() if re.fullmatch(r"[A-Z][a-z]+", title)})
    latest = max(end for _, _, end, _, _ in said) + 60.0
    made = 0
    while made < number:
        place = chance.randrange(len(said) - 20)
        trace, start, _, text, camera = said[place]
        words = _telling(text, names)
        if len(words) < 3:
            continue
        kind = chance.choices(list(KINDS), list(KINDS.values()))[0]
        picked = chance.sample(words, 3)
        gold = {f"t{trace}"}
        if kind == "plain":
            asked = f"What was there with {picked[0]}, {picked[1]} and {picked[2]}?"
        elif kind == "misspelt":
            longest = max(picked, key=len)
            wrong = _misspelt(longest, chance)
            asked = f"When did {' and '.join(wrong if word == longest else word for word in picked)} come up?"
        elif kind == "other day":
            day = (to_local(start).weekday() + chance.choice((1, 2))) % 7
            asked = f"Where was {picked[0]} with {picked[1]} and {picked[2]} on {WEEKDAYS[day]}?"
        elif kind == "other person":
            there = [name for name in names if name in text]
            others = [name for name in names if name not in there]
            if not others:
                continue
            asked = f"What did {chance.choice(others)} do with {picked[0]}, {picked[1]} and {picked[2]}?"
        elif kind == "two moments":
            after = next((one for one in said[place + 1 : place + 20] if one[0] != trace and one[4] == camera), None)
            more = _telling(after[3], names) if after is not None else []
            if after is None or len(more) < 2:
                continue
            gold.add(f"t{after[0]}")
            asked = f"Which {picked[0]} and {picked[1]} came before {' and '.join(chance.sample(more, 2))}?"
        else:
            gold = set()
            asked = f"Who put the {chance.choice(ABSENT)} beside {picked[0]} and {picked[1]}?"
        made += 1
        yield Asked(asked, kind, frozenset(gold), latest)


def _telling(text: str, names: Sequence[str]) -> list[str]:
    """The rarer half of the content words of a sentence, names left out."""
    found = dict.fromkeys(text[begin:end].lower() for begin, end in content_words(text) if text[begin:end] not in names)
    words = [word for word in found if word.isalpha() and word.isascii() and len(word) > 3]
    return sorted(words, key=zipf)[: max(3, len(words) // 2)]


def _misspelt(word: str, chance: random.Random) -> str:
    """Two neighbouring letters inside a word change places, or one is left out."""
    at = chance.randrange(1, len(word) - 1)
    return (
        word[:at] + word[at + 1 :]
        if chance.random() < 0.5
        else word[:at] + word[at + 1 : at + 2] + word[at] + word[at + 2 :]
    )


@dataclass
class Went:
    """How one question went."""

    rounds: int
    right: bool
    ms: float


def answer(home: Path, stream: Sequence[Asked], *, learn: bool) -> list[Went]:
    """Answer a stream, with feedback after each answer."""
    settings = load_settings(home)
    recalled = settings.recall.model_copy(update={"learn": learn, "learn_batch": BATCH, "further_s": 5.0})
    embedder = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    went = []
    with Store.open(home, settings.memory) as store:
        recall = Recall(store, embedder, recalled, now=lambda: stream[0].at)
        for one in stream:
            began = time.perf_counter()
            found = recall.ask(one.text)
            took = (time.perf_counter() - began) * 1000
            cited = {item for item in found.cited if item.startswith("t")} | {result.trace for result in found.evidence}
            right = (found.found and bool(cited & one.traces)) if one.traces else not found.found
            if learn:
                kept = recall.keep(found)
                if kept.id is not None:
                    recall.judge(kept.id, good=right)
            went.append(Went(found.rounds, right, took))
    return went


def show(plain: Sequence[Went], learned: Sequence[Went], stream: Sequence[Asked], seed: int) -> None:
    console = Console(width=110)
    table = Table(
        "questions", "n", "rounds", "with learning", "change", "right", "with learning", "ms", "with learning",
        box=box.SIMPLE_HEAD, title=f"{len(stream)} questions in batches of {BATCH}, seed {seed}: the same stream without and with learning",
    )  # fmt: skip
    spans = [(f"batch {n + 1}", range(n * BATCH, (n + 1) * BATCH)) for n in range(len(stream) // BATCH)]
    spans += [("after the first", range(BATCH, len(stream))), ("all", range(len(stream)))]
    kinds = [(kind, [n for n, one in enumerate(stream) if one.kind == kind and n >= BATCH]) for kind in KINDS]
    for name, places in [*spans, *kinds]:
        if not places:
            continue
        one, two = [plain[n] for n in places], [learned[n] for n in places]
        rounds = [sum(went.rounds for went in group) / len(group) for group in (one, two)]
        right = [100 * sum(went.right for went in group) / len(group) for group in (one, two)]
        ms = [sum(went.ms for went in group) / len(group) for group in (one, two)]
        table.add_row(
            name, str(len(one)), f"{rounds[0]:.2f}", f"{rounds[1]:.2f}", f"{100 * (rounds[1] / rounds[0] - 1):+.0f} %",
            f"{right[0]:.1f} %", f"{right[1]:.1f} %", f"{ms[0]:.0f}", f"{ms[1]:.0f}",
            style="bold" if name == "after the first" else "",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
