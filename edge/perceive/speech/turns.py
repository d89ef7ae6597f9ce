"""Turns, pieces for transcription and the times of sentences: a pure core over samples and words.

Invariants:

* `widen` keeps bursts rising and disjoint and inside the sound.
* Pieces lie inside the sound, follow one another without overlap, hold one speaker each and are never longer than the
  limit.
* Each sentence gets a stretch inside its piece; stretches rise and do not overlap; no word is lost or doubled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from edge.perceive.speech.words import Word

NOBODY = -1  # the speaker is not known

Range = tuple[int, int]  # begin, end in samples


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of one speaker's speech without a long pause."""

    begin: int  # samples
    end: int
    speaker: int  # 0, 1, … or NOBODY


@dataclass(frozen=True, slots=True)
class Piece:
    """What is transcribed at once: units of one speaker with short pauses between them."""

    units: tuple[Unit, ...]

    @property
    def begin(self) -> int:
        """First sample."""
        return self.units[0].begin

    @property
    def end(self) -> int:
        """One past the last sample."""
        return self.units[-1].end

    @property
    def speaker(self) -> int:
        """Who speaks."""
        return self.units[0].speaker


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words with their stretch of samples."""

    begin: int
    end: int
    words: tuple[Word, ...]


def widen(bursts: Sequence[Range], by: int, length: int) -> tuple[Range, ...]:
    """Give each burst up to `by` samples more on both sides, never more than half of a gap; drop what lies outside.

    Args:
        bursts: rising, in samples.
        by: samples.
        length: of the sound, samples.
    """
    inside = [(max(0, begin), min(length, end)) for begin, end in bursts]
    inside = [(begin, end) for begin, end in inside if end > begin]
    disjoint: list[Range] = []
    for begin, end in sorted(inside):
        if disjoint and begin < disjoint[-1][1]:
            disjoint[-1] = (disjoint[-1][0], max(end, disjoint[-1][1]))
        else:
            disjoint.append((begin, end))
    wide: list[Range] = []
    for index, (begin, end) in enumerate(disjoint):
        before = disjoint[index - 1][1] if index else -begin - 2 * by
        after = disjoint[index + 1][0] if index + 1 < len(disjoint) else 2 * length + 2 * by
        left = begin - min(by, (begin - before) // 2)
        right = end + min(by, (after - end) // 2)
        wide.append((max(0, left), min(length, right)))
    return tuple(wide)


def merge_turns(units: Sequence[Unit], fill: int) -> tuple[Unit, ...]:
    """Join neighbours of one speaker whose gap is at most `fill` samples: the turns of the conversation."""
    turns: list[Unit] = []
    for unit in units:
        last = turns[-1] if turns else None
        if last is not None and last.speaker == unit.speaker and unit.begin - last.end <= fill:
            turns[-1] = replace(last, end=unit.end)
        else:
            turns.append(unit)
    return tuple(turns)


def pieces(units: Sequence[Unit], join: int, longest: int) -> tuple[Piece, ...]:
    """Group units for transcription: one speaker, gaps shorter than `join`, at most `longest` samples.

    A unit that is longer by itself is cut into equal parts.
    """
    found: list[list[Unit]] = []
    for unit in (part for whole in units for part in _parts(whole, longest)):
        last = found[-1] if found else None
        if (
            last is not None
            and last[-1].speaker == unit.speaker
            and unit.begin - last[-1].end < join
            and unit.end - last[0].begin <= longest
        ):
            last.append(unit)
        else:
            found.append([unit])
    return tuple(Piece(tuple(group)) for group in found)


def _parts(unit: Unit, longest: int) -> list[Unit]:
    count = -(-(unit.end - unit.begin) // longest)
    edges = [unit.begin + (unit.end - unit.begin) * index // count for index in range(count + 1)]
    return [Unit(begin, end, unit.speaker) for begin, end in pairwise(edges)]


_END = re.compile(r"[.?!…][\"'”’)]*$")
_NO_END = re.compile(r"^(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Prof|Sr|Jr|Lt|Col|Gen|Capt|vs|etc|No)\.$")


def split_sentences(words: Sequence[Word]) -> tuple[tuple[Word, ...], ...]:
    """Cut words where a sentence ends; a title or an initial ("Mr.", "J.") ends none."""
    sentences: list[list[Word]] = [[]]
    for word in words:
        sentences[-1].append(word)
        if _END.search(word.text) and not _NO_END.match(word.text):
            sentences.append([])
    return tuple(tuple(sentence) for sentence in sentences if sentence)


def place_sentences(sentences: Sequence[tuple[Word, ...]], units: Sequence[Unit], snap: int) -> tuple[Sentence, ...]:
    """Give sentences their stretches of a piece.

    Time is shared out over the voiced samples by letters; an end that falls within `snap` samples of a pause moves
    there.

    Args:
        sentences: at least one word each.
        units: of the piece; rising and disjoint.
        snap: samples of voice.
    """
    if not sentences:
        return ()
    starts = [0]  # of each unit on the axis of voiced samples
    for unit in units:
        starts.append(starts[-1] + unit.end - unit.begin)
    total = starts[-1]
    if total < len(sentences):  # not a sample for each
        return (Sentence(units[0].begin, units[-1].end, tuple(word for sentence in sentences for word in sentence)),)
    letters = [sum(len(word.text) for word in sentence) for sentence in sentences]
    cuts = [0]
    free = set(starts[1:-1])
    for index, count in enumerate(letters[:-1]):
        at = cuts[-1] + (total - cuts[-1]) * count // sum(letters[index:])
        pauses = sorted((abs(pause - at), pause) for pause in free)
        if pauses and pauses[0][0] <= snap:
            at = pauses[0][1]
        left = len(letters) - 1 - index  # each sentence that follows keeps at least one sample
        cuts.append(max(cuts[-1] + 1, min(at, total - left)))
        free = {pause for pause in free if pause > cuts[-1]}
    cuts.append(total)
    placed = []
    for sentence, (begin, end) in zip(sentences, pairwise(cuts), strict=True):
        placed.append(Sentence(_begin_at(begin, units, starts), _end_at(end, units, starts), sentence))
    return tuple(placed)


def _begin_at(voiced: int, units: Sequence[Unit], starts: Sequence[int]) -> int:
    """The sample where voiced sample `voiced` lies; at a pause, after it."""
    index = max(i for i in range(len(units)) if starts[i] <= voiced)
    return units[index].begin + voiced - starts[index]


def _end_at(voiced: int, units: Sequence[Unit], starts: Sequence[int]) -> int:
    """One past voiced sample `voiced - 1`; at a pause, before it."""
    return _begin_at(voiced - 1, units, starts) + 1
