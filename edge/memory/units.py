"""What of a trace is embedded and indexed: its text in units of fine search, and scripts without spaces parted. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edge.types.drafts import CommitDraft
from edge.types.evidence import Vector
from edge.types.records import render

UNIT_CHARS = 160  # a unit of fine search is closed once it is this long (about 40 word pieces)
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "BOPOMOFO", "YI SYLLABLE")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of fine search: neighbouring lines or utterances of one trace."""

    at: float  # UTC POSIX seconds of its first line
    text: str  # titles put in


@dataclass(frozen=True, slots=True)
class SearchTexts:
    """The texts of a trace that are embedded."""

    whole: str
    units: tuple[str, ...]


def spaced(text: str) -> str:
    """Part signs of scripts without spaces, and symbols such as emoji, from their neighbours."""
    if text.isascii():
        return text
    parts = []
    for sign in text:
        alone = unicodedata.category(sign) == "So" or (
            ord(sign) > 0xE00 and unicodedata.name(sign, "").startswith(_UNSPACED)
        )
        parts.append(f" {sign} " if alone else sign)
    return "".join(parts)


def units_of(
    lines: Sequence[tuple[float, str]],
    utterances: Sequence[tuple[float, str, str]],
    title: Callable[[int], str],
) -> tuple[Unit, ...]:
    """Group what a trace says into units of fine search; pure, and the same for a draft and for what is stored.

    Args:
        lines: (UTC POSIX seconds, text with mentions) in order.
        utterances: (UTC POSIX seconds, title of the speaker or "", words with mentions) in order.
        title: of an entity by its key.

    Returns:
        Runs of neighbours of one kind (lines, or utterances), each closed once it has `UNIT_CHARS` characters. Names do
        not count in that, so that units keep their numbers when somebody is renamed.
    """
    said = [
        (at, f"{who}: {render(words, title)}" if who else render(words, title), words) for at, who, words in utterances
    ]
    seen = [(at, render(text, title), text) for at, text in lines]
    units: list[Unit] = []
    for group in (seen, said):
        run: list[str] = []
        first, length = 0.0, 0
        for at, text, stored in group:
            if not run:
                first, length = at, 0
            run.append(text)
            length += len(render(stored, lambda _: "somebody"))
            if length >= UNIT_CHARS:
                units.append(Unit(first, " ".join(run)))
                run = []
        if run:
            units.append(Unit(first, " ".join(run)))
    return tuple(units)


def search_units(draft: CommitDraft, title: Callable[[int], str]) -> SearchTexts:
    """The texts of a draft to embed, for `CommitDraft.line_vectors`; see `trace_vector` for `CommitDraft.vector`.

    Args:
        draft: what will be committed.
        title: of an entity that exists already, by its id. Those that the draft creates are called by their name in it,
            or "someone".
    """
    new = {entity.key: entity.name or "someone" for entity in draft.entities}

    def name(key: int) -> str:
        return new.get(key, "someone") if key < 0 else title(key)

    trace = draft.trace
    lines = [(line.at, line.text) for line in trace.lines] if trace else []
    if trace and not lines and trace.text:
        lines = [(trace.start, trace.text)]
    said = [
        (heard.start, name(heard.speaker) if heard.speaker is not None else heard.speaker_name or "", heard.text)
        for heard in draft.utterances
    ]
    units = tuple(unit.text for unit in units_of(lines, said, name))
    return SearchTexts(" ".join(units), units)


class Embedder(Protocol):
    """What turns texts into unit vectors."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


@runtime_checkable
class WordReader(Protocol):
    """What also says what each content word means where it stands (`edge.infer.TextEmbedder`)."""

    def embed_words(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], tuple[NDArray[np.float32], ...]]:
        """(n, d) as of `embed`; of each text (m, d) states of its content words."""


def read_units(embedder: Embedder, units: Sequence[str]) -> tuple[NDArray[np.float32], tuple[bytes, ...]]:
    """The vectors of units of fine search, and the signs of their content words.

    Args:
        embedder: of texts.
        units: as `search_units` lists them.

    Returns:
        For `CommitDraft.line_vectors`, (n, d); for `CommitDraft.word_signs`, of each unit; empty where the embedder reads no words.

    Raises:
        InferenceError: the network failed.
    """
    if not isinstance(embedder, WordReader):
        return embedder.embed(units), (b"",) * len(units)
    vectors, words = embedder.embed_words(units)
    return vectors, tuple(np.packbits(states > 0, axis=1, bitorder="little").tobytes() for states in words)


def trace_vector(units: Sequence[Vector] | NDArray[np.float32]) -> Vector:
    """The vector of a whole trace: the mean of those of its units, L2-normalised.

    As good as embedding the whole text (mean of eight retrieval figures on 6,223 half minutes: 50.6 against 50.5), at half
    the cost, and nothing is cut off after the model's longest input.

    Raises:
        ValueError: there are no units.
    """
    if not len(units):
        raise ValueError("a trace without a unit has no vector")
    mean = np.mean(np.asarray(units, np.float32), axis=0)
    vector: Vector = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return vector
