"""Large memories for benchmarks, written in bulk: moments made of real sentences, with real words and noise around them.

A moment says a few sentences that follow one another in the seed (captions of a real week, or sentences of a file), each with
some words drawn from general English by their frequency (wordfreq; Speer 2022), so that rare and common words occur as they
do in English. The vector of a unit is that of its sentence with noise, so that neighbours are spread as real ones are. Days
have 16 hours of half minutes. Rows are those that the critical commit writes for such moments; `check` writes some of them
again by the product's own way and compares.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import apsw
import numpy as np
from numpy.typing import NDArray
from wordfreq import top_n_list, word_frequency

from edge.memory import Store, index
from edge.memory.index.write import term_hash

BEGIN = 1_704_096_000.0  # UTC POSIX seconds
HALF_S, DAY_S, WAKING = 30.0, 86_400.0, 1_920  # a half minute, a day, half minutes of a waking day
PEOPLE = ("Alice", "Jake", "Katrina", "Lucia", "Shure", "Tasha")
_SPRINKLED = 4  # words of general English in each sentence
_VOCABULARY = 30_000
_BATCH = 5_000


class Embedder(Protocol):
    """What turns texts into unit vectors."""

    @property
    def key(self) -> str:
        """Names the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """Sentences with their vectors."""

    sentences: tuple[str, ...]
    vectors: NDArray[np.float32]  # (n, d)


def seed_of(sentences: Sequence[str], embedder: Embedder, count: int = 2_000) -> Seed:
    """Some of many sentences, in runs that follow one another, with their vectors."""
    step = max(len(sentences) // count, 1) * 8
    runs = [sentences[at : at + 8] for at in range(0, len(sentences), step)]
    chosen = tuple(sentence for run in runs for sentence in run)[:count]
    return Seed(chosen, embedder.embed(chosen))


def captions(segments: Path) -> list[str]:
    """The captions of a file of described segments."""
    with segments.open() as lines:
        return [
            caption["text"] for line in lines for caption in json.loads(line)["captions"] if caption["text"].strip()
        ]


def write(
    store: Store, seed: Seed, embedder: str, traces: int, *, units: int = 3, noise: float = 0.6, chance: int = 1
) -> NDArray[np.int8]:
    """Fill an empty memory.

    Args:
        store: open for writing.
        seed: what moments say.
        embedder: key of the model that made the vectors.
        traces: how many moments.
        units: of fine search in each.
        noise: length of what is added to a vector of length 1.
        chance: seed of the random numbers.

    Returns:
        (traces, units + 1, d) the int8 vectors as stored, the whole moment first.
    """
    random = np.random.default_rng(chance)
    words, shares = _vocabulary()
    size = seed.vectors.shape[1]
    kept = np.zeros((traces, units + 1, size), np.int8)
    camera = store.transact(lambda memory: _prepare(memory, store.user, embedder, size))
    with store.reading() as connection:
        texts = _Tokens(connection)
        for first in range(0, traces, _BATCH):
            count = min(_BATCH, traces - first)
            heads = random.integers(0, len(seed.sentences) - units, count)
            drawn = random.choice(len(words), (count, units * _SPRINKLED), p=shares)
            told = [
                [
                    f"{seed.sentences[head + unit].rstrip('.')} {' '.join(words[w] for w in row[unit::units])}."
                    for unit in range(units)
                ]
                for head, row in zip(heads.tolist(), drawn.tolist(), strict=True)
            ]
            speakers = random.integers(-len(PEOPLE), len(PEOPLE), count)
            vectors = seed.vectors[heads[:, None] + np.arange(units)]
            vectors = vectors + random.normal(0, noise / size**0.5, vectors.shape).astype(np.float32)
            vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
            whole = vectors.mean(axis=1, keepdims=True)
            whole /= np.linalg.norm(whole, axis=2, keepdims=True)
            every = np.concatenate([whole, vectors], axis=1)
            scaled = np.rint(every * (127 / np.abs(every).max(axis=2, keepdims=True))).astype(np.int8)
            kept[first : first + count] = scaled
            signs = np.packbits(every > 0, axis=2, bitorder="little")
            store.transact(
                partial(
                    _insert,
                    texts=texts,
                    camera=camera,
                    first=first,
                    told=told,
                    speakers=speakers,
                    scaled=scaled,
                    signs=signs,
                )
            )
    return kept


def check(store: Store, traces: Sequence[int]) -> bool:
    """Whether some moments are indexed as the product does it."""
    sql = "select hashes, counts from terms where trace = ?"

    def words(memory: apsw.Connection, trace: int) -> dict[int, int]:
        row: tuple[bytes, bytes] = memory.execute(sql, (trace,)).fetchall()[0]  # type: ignore[assignment]
        hashes, counts = row
        return dict(zip(np.frombuffer(hashes, np.uint32).tolist(), counts, strict=True))

    def again(memory: apsw.Connection) -> bool:
        before = [words(memory, trace) for trace in traces]
        for trace in traces:
            index.reindex_trace(memory, trace)
        return before == [words(memory, trace) for trace in traces]

    return store.transact(again)


class _Tokens:
    """The words of texts as the index sees them; each word is looked at once."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, text: str) -> Iterator[str]:
        for word in text.split():
            if word not in self._known:
                self._known[word] = tuple(index.tokens(self._connection, word))
            yield from self._known[word]


def _vocabulary() -> tuple[list[str], NDArray[np.float64]]:
    words = [word for word in top_n_list("en", _VOCABULARY) if word.isalpha()]
    shares = np.array([word_frequency(word, "en") for word in words])
    return words, shares / shares.sum()


def _prepare(memory: apsw.Connection, user: str, embedder: str, size: int) -> int:
    memory.execute("insert into camera(user, name, created) values(?, 'glasses', ?)", (user, BEGIN))
    camera = memory.last_insert_rowid()
    memory.execute("insert into text_embedder(key, dimensions) values(?, ?)", (embedder, size))
    for number, name in enumerate(PEOPLE, 1):
        memory.execute(
            "insert into entity(user, kind, number, name, name_source, first_seen, last_seen)"
            " values(?, 'person', ?, ?, 'user', ?, ?)",
            (user, number, name, BEGIN, BEGIN),
        )
    return camera


def _insert(
    memory: apsw.Connection,
    texts: _Tokens,
    camera: int,
    first: int,
    told: Sequence[Sequence[str]],
    speakers: NDArray[np.int64],
    scaled: NDArray[np.int8],
    signs: NDArray[np.uint8],
) -> None:
    ids = range(first + 1, first + 1 + len(told))
    starts = [
        BEGIN + (number // WAKING) * DAY_S + (number % WAKING) * HALF_S for number in range(first, first + len(told))
    ]
    each = list(zip(ids, starts, told, speakers.tolist(), strict=True))
    memory.executemany(
        "insert into trace(id, camera, start, end, text, mode, counts, detail, ingested) values(?, ?, ?, ?, ?, ?, '{}', '{}', ?)",
        ((t, camera, start, start + HALF_S, " ".join(lines), "offline_quality", start) for t, start, lines, _ in each),
    )
    memory.executemany(
        "insert into line(trace, at, text) values(?, ?, ?)",
        ((t, start + 9 * at, line) for t, start, lines, _ in each for at, line in enumerate(lines)),
    )
    memory.executemany(
        "insert into utterance(trace, start, end, text, speaker, confidence) values(?, ?, ?, ?, ?, 1.0)",
        ((t, start + 5, start + 7, "Well.", who + 1) for t, start, _, who in each if who >= 0),
    )
    said = {t: f"{index.entity_token(who + 1)} \nWell." if who >= 0 else "" for t, _, _, who in each}
    memory.executemany(
        "insert into words(rowid, seen, said) values(?, ?, ?)",
        ((t, " \n".join(lines), said[t]) for t, _, lines, _ in each),
    )
    counted = {t: Counter(texts.of(f"{' '.join(lines)} {said[t]}")) for t, _, lines, _ in each}
    memory.executemany("insert into document values(?, ?)", ((t, one.total()) for t, one in counted.items()))
    memory.executemany(
        "insert into terms values(?, ?, ?)",
        (
            (t, np.fromiter(map(_hash, one), np.uint32, len(one)).tobytes(), bytes(min(n, 255) for n in one.values()))
            for t, one in counted.items()
        ),
    )
    memory.executemany(
        "insert into embedding values(?, 1, ?, ?)",
        ((t, unit, row.tobytes()) for t, rows in zip(ids, scaled, strict=True) for unit, row in enumerate(rows)),
    )
    memory.executemany(
        "insert into signs values(?, 1, ?)", ((t, rows.tobytes()) for t, rows in zip(ids, signs, strict=True))
    )


_HASHES: dict[str, int] = {}


def _hash(term: str) -> int:
    if term not in _HASHES:
        _HASHES[term] = term_hash(term)
    return _HASHES[term]
