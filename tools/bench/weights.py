"""How much two parts of the ranking should weigh, by questions about made-up lives.

`python -m tools.bench.weights [--lives N] [--seed N]`. The lives and the questions are those by which the reflex head is trained
(`tools.head.lives`): statements in one wording, questions in another. Half of the moments hold three statements, half one. For each
weight of late interaction (`ranking.LATE`) and of what short moments borrow (`ranking.BORROWED`) it is said how often the
moment that answers is first, in five, in ten. These weights were chosen by this table, and by no question of an evaluation.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store, read_units, search_units, trace_vector
from edge.recall import Query, Recall
from edge.recall.search import ranking
from edge.settings import load_settings
from edge.types.drafts import CommitDraft, TraceDraft
from edge.types.media import Mode
from edge.types.records import LineDraft
from tools.head.lexicon import TRAINING
from tools.head.lives import ask, life

SIZE = 24  # events of a life
SHARE = 0.35  # of the events that are asked about
BEGIN = 1_700_000_000.0
Asked = list[tuple[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lives", type=int, default=60)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    table = Table("late interaction", "borrowed", "first", "in five", "in ten", box=box.SIMPLE_HEAD)
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(Path(folder))
        embedder = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
        with Store.open(Path(folder) / "home") as store:
            asked, now = live(store, embedder, random.Random(options.seed), options.lives)
            recall = Recall(store, embedder, now=lambda: now)
            chosen = (ranking.LATE, ranking.BORROWED)
            for late in (0.0, 0.5, 1.0, 1.5, 2.0):
                for borrowed in (0.0, 8.0, 16.0):
                    ranking.LATE, ranking.BORROWED = late, borrowed
                    shares = score(recall, asked, now)
                    style = "bold" if (late, borrowed) == chosen else ""
                    table.add_row(f"{late}", f"{borrowed:.0f}", *(f"{share:.1f} %" for share in shares), style=style)
    table.title = f"{len(asked)} questions about {options.lives} made-up lives"
    Console(width=100).print(table)


def live(store: Store, embedder: TextEmbedder, chance: random.Random, lives: int) -> tuple[Asked, float]:
    """Write the lives; questions with the ids of the moments that answer them, and the end of it all (UTC POSIX seconds)."""
    asked: Asked = []
    at = BEGIN
    for _ in range(lives):
        made = life(chance, TRAINING, SIZE)
        for low in range(0, SIZE, 3):
            group = list(range(low, low + 3))
            for part in [group] if chance.random() < 0.5 else [[one] for one in group]:
                trace = _moment(store, embedder, at, [made.told[one] for one in part])
                at += 60.0
                for one in part:
                    question = _question(chance, made.events[one]) if chance.random() < SHARE else None
                    if question is not None:
                        asked.append((question, f"t{trace}"))
    return asked, at


def _question(chance: random.Random, event: object) -> str | None:
    for _ in range(5):
        one = ask(chance, TRAINING, event)  # type: ignore[arg-type]
        if one.answered and not one.deictic:
            return one.text
    return None


def _moment(store: Store, embedder: TextEmbedder, at: float, told: list[str]) -> int:
    lines = tuple(LineDraft(at + place, text) for place, text in enumerate(told))
    draft = CommitDraft(
        camera="c", trace=TraceDraft(at, at + 30, " ".join(told), Mode.OFFLINE_QUALITY, None, lines=lines)
    )
    vectors, words = read_units(embedder, search_units(draft, lambda _: "someone").units)
    whole = replace(
        draft,
        vector=trace_vector(vectors),
        line_vectors=tuple(vectors),
        word_signs=b"".join(words),
        embedder=embedder.key,
    )
    return store.commit(whole).trace or 0


def score(recall: Recall, asked: Asked, now: float) -> tuple[float, float, float]:
    """How often the moment is first, among five and among ten, in percent."""
    counts = [0, 0, 0]
    for text, trace in asked:
        ids = [row[0] for row in recall.rank(Query("1", now, None, text, {}), 20).rows]
        for place, k in enumerate((1, 5, 10)):
            counts[place] += trace in ids[:k]
    return tuple(100 * count / len(asked) for count in counts)  # type: ignore[return-value]


if __name__ == "__main__":
    main()
