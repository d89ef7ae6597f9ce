"""Train the reflex head and print its card: `python -m tools.head.train [--out models/reflex_head.npz] [--cache DIR]`.

It needs the text-embedding model (`reflectworld models pull`) and the packages of the extra `head`, which ship the talk that it
learns from; nothing else is read. All is drawn from seeds: the same environment gives the same weights. The figures are on words,
conversations and packages that training has not seen.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from edge.app import build_text_embedder
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.recall.question.finder import MARGIN
from edge.recall.question.head import FLAGS, Weights, best_span, features, words_of
from edge.settings import load_settings
from edge.types.stop_words import ASKING_WORDS, FUNCTION_WORDS
from tools.head import network
from tools.head.examples import Mixed, a_question, mixed, natural, other_text, surrounded, unpunctuated, wish
from tools.head.lexicon import HELD_OUT, TRAINING, Lexicon
from tools.head.lives import Asked, Event, ask, life, shown
from tools.head.talk import Corpora, read_corpora

SEED = 20_260_101
INPUTS, EPOCHS = 18_000, 8  # of the finder
WISHES, WISH_EPOCHS = 12_000, 12  # of the actor
LIVES, LIFE_EPOCHS = 420, 10  # of the mover
PARTS = 17  # arrays of the three networks

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Read:
    """An input of the finder as features."""

    states: NDArray[np.float16]
    ids: NDArray[np.int64]
    flags: Array
    first: int
    last: int


@dataclass(frozen=True)
class Pairs:
    """Questions of the mover with what answers them, life by life."""

    inputs: Array  # (n, 3 d)
    keys: Array  # (n, d)
    lives: NDArray[np.int64]  # (n,)
    pointing: NDArray[np.bool_]  # (n,)


class Maker:
    """Makes data of one half and reads it with the embedder; what is read is kept in a folder, if one is given."""

    def __init__(self, embedder: TextEmbedder, vocabulary: dict[str, int], cache: Path | None) -> None:
        self.embedder = embedder
        self.vocabulary = vocabulary
        self._cache = cache

    def embed(self, texts: Sequence[str]) -> Array:
        """(n, d) unit vectors."""
        key = hashlib.sha256("\n".join([self.embedder.key, *texts]).encode()).hexdigest()[:24]
        if self._cache is None:
            return self.embedder.embed(list(texts))
        path = self._cache / f"{key}.npy"
        if not path.exists():
            np.save(path, self.embedder.embed(list(texts)))
        return np.load(path)

    def read(self, inputs: Sequence[Mixed]) -> list[Read]:
        """Inputs as features."""
        key = hashlib.sha256("\n".join([self.embedder.key, *(one.text for one in inputs)]).encode()).hexdigest()[:24]
        path = None if self._cache is None else self._cache / f"{key}.npz"
        if path is not None and path.exists():
            with np.load(path) as kept:
                every = kept["states"]
        else:
            every = np.concatenate([self._features(one)[0].astype(np.float16) for one in inputs])
            if path is not None:
                np.savez(path, states=every)
        found, at = [], 0
        for one in inputs:
            words = words_of(one.text)
            _, ids, flags = features(one.text, words, _NOTHING, self.vocabulary)
            span = one.span or (-1, 0)
            found.append(Read(every[at : at + len(words)], ids, flags, span[0], span[1] - 1))
            at += len(words)
        return found

    def _features(self, one: Mixed) -> tuple[Array, NDArray[np.int64], Array]:
        return features(one.text, words_of(one.text), self.embedder.token_states(one.text), self.vocabulary)


class _Nothing:
    states = np.zeros((0, 1), np.float32)
    spans: tuple[tuple[int, int], ...] = ()


_NOTHING: Any = _Nothing()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("models/reflex_head.npz"))
    parser.add_argument("--cache", type=Path, help="keep what the embedder read in this folder")
    parser.add_argument(
        "--only", choices=("finder", "actor", "mover"), help="train one network anew and take the others from --out"
    )
    options = parser.parse_args()
    if options.cache is not None:
        options.cache.mkdir(parents=True, exist_ok=True)
    settings = load_settings()
    embedder = build_text_embedder(Catalog.load(settings.infer), Runtime(settings.infer))
    words = sorted(FUNCTION_WORDS | ASKING_WORDS)
    maker = Maker(embedder, {word: place for place, word in enumerate(words, 1)}, options.cache)
    seen, unseen = read_corpora(held_out=False), read_corpora(held_out=True)
    parameters: network.Parameters = {}
    card = Table(box=box.SIMPLE_HEAD, title="on words, conversations and packages that training has not seen")
    for column in ("network", "what", "value"):
        card.add_column(column)
    began = time.perf_counter()
    if options.only is not None and options.out.exists():
        with np.load(options.out) as kept:
            parameters |= {name: kept[name].astype(np.float32) for name in kept.files if name != "vocabulary"}
    for name, train in (("finder", train_finder), ("actor", train_actor), ("mover", train_mover)):
        if options.only in {None, name}:
            tell: Tell = lambda what, value, name=name: card.add_row(name, what, value)  # noqa: E731 - a typed one-liner
            parameters |= train(maker, seen, unseen, tell, parameters)
            print(f"{name}: trained, {time.perf_counter() - began:.0f} s in all", flush=True)
    if len(parameters) == PARTS:
        arrays = {name: value.astype(np.float16) for name, value in sorted(parameters.items())}
        np.savez(options.out, vocabulary=np.array(words), **arrays)
        data = options.out.read_bytes()
        card.add_row("file", f"{options.out.name}, {len(data)} bytes", hashlib.sha256(data).hexdigest())
    Console(width=150).print(card)


# -- the finder -----------------------------------------------------------------------------------------------------------

Tell = Callable[[str, str], None]


def train_finder(
    maker: Maker, seen: Corpora, unseen: Corpora, tell: Tell, _trained: network.Parameters
) -> network.Parameters:
    """Train the finder and tell how it does."""
    random_ = random.Random(SEED)
    inputs = [mixed(random_, TRAINING, seen) for _ in range(INPUTS)]
    read = maker.read(inputs)
    numbers = np.random.default_rng(SEED)
    parameters = network.new_finder(numbers, maker.embedder.dimensions, len(maker.vocabulary))
    adam = network.Adam(parameters, 2e-3, 1e-3)
    size = 32
    steps = EPOCHS * (len(read) // size)
    step = 0
    for epoch in range(EPOCHS):
        # Of like length together, in random order.
        order = sorted(range(len(read)), key=lambda at: len(read[at].ids) + numbers.normal() * 4)
        batches = [order[at : at + size] for at in range(0, len(order) - size + 1, size)]
        numbers.shuffle(batches)
        total = 0.0
        for batch in batches:
            loss, gradients = network.finder_gradients(parameters, _batch([read[at] for at in batch]), numbers, 0.15)
            adam.step(gradients, _schedule(step, steps))
            total += loss
            step += 1
        print(f"finder: epoch {epoch + 1}, loss {total / len(batches):.3f}", flush=True)
    _tell_finder(maker, Weights({**parameters, "vocabulary": np.array(list(maker.vocabulary))}), unseen, tell)
    return parameters


def _batch(items: Sequence[Read]) -> network.Batch:
    longest = max(len(one.ids) for one in items)
    states = np.zeros((len(items), longest, items[0].states.shape[1]), np.float32)
    ids = np.zeros((len(items), longest), np.int64)
    flags = np.zeros((len(items), longest, FLAGS), np.float32)
    mask = np.zeros((len(items), longest), np.float32)
    for row, one in enumerate(items):
        n = len(one.ids)
        states[row, :n], ids[row, :n], flags[row, :n], mask[row, :n] = one.states, one.ids, one.flags, 1.0
    return network.Batch(
        states, ids, flags, mask, np.array([one.first for one in items]), np.array([one.last for one in items])
    )


def _schedule(step: int, steps: int) -> float:
    """A short warm-up, then half a cosine."""
    return min(1.0, step / 200) * 0.5 * (1.0 + float(np.cos(np.pi * step / steps)))


def _tell_finder(maker: Maker, weights: Weights, unseen: Corpora, tell: Tell) -> None:
    random_ = random.Random(SEED + 1)

    def rate(items: Sequence[Mixed]) -> tuple[float, float, float]:
        """Found exactly; share of the question's words that are kept; share of what is kept that is the question."""
        exact = kept = pure = 0.0
        for one, read in zip(items, maker.read(items), strict=True):
            inside, start, end, _ = weights.finder(read.states.astype(np.float32), read.ids, read.flags)
            first, last, best, whole, _ = best_span(inside, start, end)
            if np.log(best) - np.log(max(whole, 1e-12)) < MARGIN:
                first, last = 0, len(read.ids) - 1
            shared = max(0, min(last, read.last) - max(first, read.first) + 1)
            exact += (first, last) == (read.first, read.last)
            kept += shared / (read.last - read.first + 1)
            pure += shared / (last - first + 1)
            del one
        return exact / len(items), kept / len(items), pure / len(items)

    questions = [a_question(random_, HELD_OUT, unseen) for _ in range(300)]
    alone = [Mixed(text, (0, len(text.split()))) for text in questions]
    exact, kept, _ = rate(alone)
    tell("questions alone: left whole; words kept", f"{exact:.1%}; {kept:.1%}")
    for place in ("before", "after", "around"):
        for worn in (False, True):
            items = []
            for question in questions[:200]:
                one = surrounded(random_, HELD_OUT, unseen, question, place, 4 * len(question.split()), worn=False)
                if worn and one.span is not None:
                    one = Mixed(*unpunctuated(one.text.split(), one.span))
                items.append(one)
            exact, kept, pure = rate(items)
            how = "no signs, no capitals" if worn else "as written"
            tell(f"4 × other text {place}, {how}: exact; words kept; purity", f"{exact:.1%}; {kept:.1%}; {pure:.1%}")
    others = [Mixed(" ".join(other_text(random_, HELD_OUT, unseen, 25)), None) for _ in range(300)]
    none = 0
    for read in maker.read(others):
        none += best_span(*weights.finder(read.states.astype(np.float32), read.ids, read.flags)[:3])[4] > 0.5
    tell("other text alone: no question is found", f"{none / len(others):.1%}")


# -- the actor ------------------------------------------------------------------------------------------------------------


def train_actor(
    maker: Maker, seen: Corpora, unseen: Corpora, tell: Tell, trained: network.Parameters
) -> network.Parameters:
    """Train the actor and tell how it does."""
    numbers = np.random.default_rng(SEED + 10)
    reader = Weights({**trained, "vocabulary": np.array(list(maker.vocabulary))})
    inputs, labels, _ = _wishes(maker, reader, random.Random(SEED + 11), TRAINING, seen, WISHES, numbers)
    parameters = network.new_actor(numbers, maker.embedder.dimensions)
    adam = network.Adam(parameters, 1e-3, 1e-2)
    size = 64
    steps = WISH_EPOCHS * (len(inputs) // size)
    step = 0
    for epoch in range(WISH_EPOCHS):
        order = numbers.permutation(len(inputs))
        total = 0.0
        for at in range(0, len(order) - size + 1, size):
            chosen = order[at : at + size]
            loss, gradients = network.actor_gradients(parameters, inputs[chosen], labels[chosen], numbers, 0.3)
            adam.step(gradients, _schedule(step, steps))
            total += loss
            step += 1
        print(f"actor: epoch {epoch + 1}, loss {total / (len(order) // size):.3f}", flush=True)
    weights = Weights({**parameters, "vocabulary": np.array(["a"])})
    inputs, labels, kinds = _wishes(maker, reader, random.Random(SEED + 12), HELD_OUT, unseen, 2_000, numbers)
    d = maker.embedder.dimensions
    chances = np.array([weights.actor(row[:d], row[d : 2 * d], row[2 * d : 3 * d], row[3 * d :]) for row in inputs])
    right = (chances > 0.5) == (labels > 0.5)
    tell("P(speak), P(search) right", f"{right[:, 0].mean():.1%}, {right[:, 1].mean():.1%}")
    for kind in sorted(set(kinds)):
        of = np.array([one == kind for one in kinds])
        tell(f"… {kind} ({of.sum()})", f"{right[of, 0].mean():.1%}, {right[of, 1].mean():.1%}")
    return parameters


def _wishes(
    maker: Maker,
    reader: Weights,
    random_: random.Random,
    lexicon: Lexicon,
    corpora: Corpora,
    count: int,
    numbers: np.random.Generator,
) -> tuple[Array, Array, list[str]]:
    wishes = [wish(random_, lexicon, corpora) for _ in range(count)]
    told = [life(random_, lexicon, 12).told for _ in range(80)]
    vectors = maker.embed([text for texts in told for text in texts]).reshape(len(told), 12, -1)
    questions = maker.embed([one.text for one in wishes])
    which = numbers.integers(len(told), size=count)
    now = vectors[which, numbers.integers(12, size=count)] * (numbers.random(count) < 0.7)[:, None]
    frontier = _mean(vectors)[which] * (numbers.random(count) < 0.8)[:, None]
    labels = np.array([(one.speak, one.search) for one in wishes], np.float32)
    read = maker.read([Mixed(one.text, None) for one in wishes])
    layers = np.stack([reader.finder(one.states.astype(np.float32), one.ids, one.flags)[3] for one in read])
    inputs = np.concatenate([questions, frontier, now, layers], axis=1).astype(np.float32)
    return inputs, labels, [one.kind for one in wishes]


def _mean(vectors: Array) -> Array:
    mean = vectors.mean(axis=1)
    unit: Array = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    return unit


# -- the mover ------------------------------------------------------------------------------------------------------------


def train_mover(
    maker: Maker, seen: Corpora, unseen: Corpora, tell: Tell, _trained: network.Parameters
) -> network.Parameters:
    """Train the mover and tell how it does."""
    numbers = np.random.default_rng(SEED + 20)
    pairs = _pairs(maker, random.Random(SEED + 21), TRAINING, seen, LIVES)
    parameters = network.new_mover(numbers, maker.embedder.dimensions)
    adam = network.Adam(parameters, 5e-4, 1e-2)
    groups = [np.flatnonzero(pairs.lives == one) for one in np.unique(pairs.lives)]
    size = 12  # lives in a batch: the rest of a life are the hard negatives
    steps = LIFE_EPOCHS * (len(groups) // size)
    step = 0
    for epoch in range(LIFE_EPOCHS):
        order = numbers.permutation(len(groups))
        total = 0.0
        for at in range(0, len(order) - size + 1, size):
            chosen = np.concatenate([groups[one] for one in order[at : at + size]])
            loss, gradients = network.mover_gradients(parameters, pairs.inputs[chosen], pairs.keys[chosen], 0.05, KEEP)
            adam.step(gradients, _schedule(step, steps))
            total += loss
            step += 1
        print(f"mover: epoch {epoch + 1}, loss {total / max(1, len(order) // size):.3f}", flush=True)
    weights = Weights({**parameters, "vocabulary": np.array(["a"])})
    d = maker.embedder.dimensions
    made = _pairs(maker, random.Random(SEED + 22), HELD_OUT, unseen, 40, real=False)
    real = _pairs(maker, random.Random(SEED + 23), HELD_OUT, unseen, 0)
    for name, held in (("made-up lives", made), ("real talk", real)):
        moved = np.array([weights.mover(row[:d], row[d : 2 * d], row[2 * d :]) for row in held.inputs])
        plain = _found(held.inputs[:, :d], held.keys)
        better = _found(moved, held.keys)
        tell(f"{name}, {len(moved)} questions: answer first, in ten, before → after", _change(plain, better))
        if held.pointing.any():
            chosen = held.pointing
            tell("… that point at what is on camera", _change(plain[chosen], better[chosen]))
        cosine = (moved * held.inputs[:, :d]).sum(axis=1)
        tell("… cosine of before and after, mean", f"{cosine.mean():.3f}")
    return parameters


KEEP = 0.3  # what is added stays short: a question of a kind that training lacks is hardly moved


def _found(vectors: Array, keys: Array) -> NDArray[np.int64]:
    """The rank of each question's answer among all."""
    scores = vectors @ keys.T
    return (scores > np.diag(scores)[:, None]).sum(axis=1)


def _change(before: NDArray[np.int64], after: NDArray[np.int64]) -> str:
    return "; ".join(f"{(before < k).mean():.1%} → {(after < k).mean():.1%}" for k in (1, 10))


def _pairs(
    maker: Maker, random_: random.Random, lexicon: Lexicon, corpora: Corpora, lives: int, *, real: bool = True
) -> Pairs:
    """Questions of lives, of which half are answered by a line and half by a moment of three lines, and of real talk."""
    size = 20
    asked: list[str] = []
    lines: list[str] = []
    owners: list[int] = []
    pointing: list[bool] = []
    on_camera: list[str] = []
    for number in range(lives):
        made = life(random_, lexicon, size)
        for event, told in zip(made.events, made.told, strict=True):
            question = _answered(random_, lexicon, event)
            asked.append(question.text)
            lines.append(told)
            owners.append(number)
            pointing.append(question.deictic)
            on_camera.append(shown(random_, event))
    if real:
        for place in range(60 * size if lives else 25 * size):
            found = natural(random_, corpora)
            asked.append(found[0])
            lines.append(found[1])
            owners.append(lives + place // size)
            pointing.append(False)
            on_camera.append("")
    questions, keys, views = maker.embed(asked), maker.embed(lines), maker.embed(on_camera)
    number = np.array(owners)
    frontier = np.zeros_like(keys)
    now = np.zeros_like(keys)
    moments = keys.copy()
    for one in np.unique(number):
        rows = np.flatnonzero(number == one)
        frontier[rows] = _mean(keys[None, rows])[0]
        for at, row in enumerate(rows):
            now[row] = views[row] if pointing[row] else keys[rows[random_.randrange(len(rows))]]
            if random_.random() < 0.5:
                beside = keys[[rows[at - 1], row, rows[(at + 1) % len(rows)]]].sum(axis=0)
                moments[row] = beside / np.linalg.norm(beside)
            if random_.random() < 0.3 and not pointing[row]:
                now[row] = 0.0
            if random_.random() < 0.2:
                frontier[row] = 0.0
    inputs = np.concatenate([questions, frontier, now], axis=1).astype(np.float32)
    return Pairs(inputs, moments, number, np.array(pointing))


def _answered(random_: random.Random, lexicon: Lexicon, event: Event) -> Asked:
    while True:
        question = ask(random_, lexicon, event)
        if question.answered:
            return question


if __name__ == "__main__":
    main()
