"""The two banks of procedural experience: which move is advised next, and what a batch of judged questions teaches. Pure.

Invariants:

* What goes in are shapes (words of a closed list), signals, moves and counts; what comes out is an order of moves, or to stop.
  No word of a question, an answer or a memory passes through here in either direction.
* The success bank is asked first. The failure bank speaks only of questions that are more alike (`STRICT`), and can put
  a move off or, when nothing that is left has ever helped, advise to stop (RRM: stricter applicability of failures).
* Nothing is learned from a question before all of its batch are judged, and the order inside a batch does not matter.
* Records are bounded: alike ones are merged, those that fade or fail are pruned, at most `MOST` a bank stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from edge.memory.tiers.experience import Bank, Experience
from edge.recall.reflection.shape import is_shape, likeness
from edge.recall.reflection.signals import Signal

ALIKE: Final = 0.5  # likeness from which a success is of use
STRICT: Final = 0.7  # and a failure
MERGE: Final = 0.8  # likeness from which two records become one
DECAY: Final = 0.97  # of a record's weight with each batch in which it was not used
FAINT: Final = 0.2  # weight under which a record is pruned
MOST: Final = 128  # records of a bank
PRIOR: Final = 2.0  # uses that the first order of moves counts for
RIGHT: Final = 0.5  # chance of success, without experience, of the first move of that order; each next one has less
STEP: Final = 0.75
ENOUGH: Final = 3.0  # uses before a failure may stop anything
FUTILE: Final = 0.12  # chance of success under which a further look is not worth it
TRUST: Final = 0.5  # chance of success under which a first answer is looked at again


class Move(StrEnum):
    """What can be done next."""

    REFLEX = "reflex"  # the first pass; always first
    CONTENT = "content"  # only the words that say what it is about
    REWORD = "reword"  # words that occur in the place of those that do not
    WIDEN = "widen"  # at any time
    ANYONE = "anyone"  # people may be spoken of
    SPEECH = "speech"  # what was said, by whom ever
    EVENT = "event"  # an event as a whole: its moments together
    BESIDE = "beside"  # with what came just before and after
    CHAPTER = "chapter"  # what longer stretches of the timeline tell
    FACTS = "facts"  # what is known of the people
    GRAPH = "graph"  # over who and what is related
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """How one question went."""

    shape: frozenset[str]
    signal: Signal  # at the end
    steps: tuple[tuple[Signal, Move], ...]  # after the first pass, in order: what a search had shown, and what was done
    answered: Move | None  # the move that gave the answer; None: there was none
    good: bool  # what was thought of the answer


@dataclass(frozen=True, slots=True)
class Advice:
    """What experience says of the next move."""

    order: tuple[Move, ...]  # most promising first; ends with STOP where going on has not been worth it
    known: bool  # whether any experience applies
    distrust: bool = False  # answers of the first pass to such questions were wrong more often than not

    @property
    def first(self) -> Move:
        """What to do now."""
        return self.order[0] if self.order else Move.STOP


@dataclass(frozen=True, slots=True)
class Batch:
    """What was learned from."""

    trajectories: tuple[Trajectory, ...]
    at: float  # UTC POSIX seconds


def advise(
    learned: Iterable[Experience], shape: frozenset[str], signal: Signal, order: Sequence[Move], tried: int = 0
) -> Advice:
    """Order the moves that can be made by what they brought to questions alike.

    Args:
        learned: both banks.
        shape: of the question.
        signal: of its first pass.
        order: the moves that are left, as they would be made without experience.
        tried: how many were made before.
    """
    fitting = [one for one in learned if one.signal == signal and all(map(is_shape, one.shape))]
    near = [(likeness(one.shape, shape), one) for one in fitting]
    near = [(how, one) for how, one in near if how >= (ALIKE if one.bank is Bank.SUCCESS else STRICT)]
    if not near:
        return Advice(tuple(order), known=False)
    chance: dict[Move, float] = {}
    seen: dict[Move, float] = {}
    for place, move in enumerate(order):
        uses, wins = _counts(near, move)
        prior = RIGHT * STEP ** (place + tried)
        chance[move] = (wins + PRIOR * prior) / (uses + PRIOR)
        seen[move] = uses
    best_first = sorted(order, key=lambda move: (-chance[move], order.index(move)))
    hopeful = [move for move in best_first if chance[move] >= FUTILE or seen[move] < ENOUGH]
    stops, right = _counts(near, Move.STOP)
    given_up = stops >= ENOUGH and right / stops > 0.5 and not any(wins for wins in _wins(near, order))
    distrusted, trusted = _counts(near, Move.REFLEX)
    distrust = distrusted >= ENOUGH and trusted / distrusted < TRUST
    return Advice((Move.STOP,) if given_up else (*hopeful, Move.STOP), known=True, distrust=distrust)


def learn(learned: Sequence[Experience], batch: Batch) -> list[Experience]:
    """What both banks hold after a batch.

    Args:
        learned: what they held.
        batch: judged questions.
    """
    counts: dict[tuple[Bank, str, str, frozenset[str]], list[float]] = {}
    for one in batch.trajectories:
        for signal, move, won in _outcomes(one):
            bank = Bank.SUCCESS if won else Bank.FAILURE
            pair = counts.setdefault((bank, signal.value, move.value, one.shape), [0.0, 0.0])
            pair[0] += 1.0
            pair[1] += float(won)
    fresh = [
        Experience(bank, of, move, shape, uses, wins, 1.0, batch.at, batch.at)
        for (bank, of, move, shape), (uses, wins) in sorted(counts.items(), key=lambda item: _key(item[0]))
    ]
    kept = [one for one in learned if one.weight * DECAY >= FAINT and all(map(is_shape, one.shape))]
    return _bounded(_merged([replace(one, weight=one.weight * DECAY) for one in kept], fresh))


def _outcomes(one: Trajectory) -> list[tuple[Signal, Move, bool]]:
    """Each move that was made after which signal, and whether it was the right one."""
    found = [(signal, move, one.good and move is one.answered) for signal, move in one.steps]
    if one.answered is Move.REFLEX:
        found.append((Signal.FITS, Move.REFLEX, one.good))
    elif one.answered is None:
        found.append((one.signal, Move.STOP, one.good))
    return found


def _counts(near: Sequence[tuple[float, Experience]], move: Move) -> tuple[float, float]:
    """How often a move was made for questions alike, and how often it helped; each counts as far as it is alike."""
    uses = sum(how * one.weight * one.uses for how, one in near if one.move == move)
    wins = sum(how * one.weight * one.wins for how, one in near if one.move == move)
    return uses, wins


def _wins(near: Sequence[tuple[float, Experience]], order: Sequence[Move]) -> list[float]:
    return [_counts(near, move)[1] for move in order]


def _merged(old: Sequence[Experience], new: Sequence[Experience]) -> list[Experience]:
    """Records of the same bank, signal and move whose shapes are alike become one, of what the shapes have in common."""
    kept: list[Experience] = list(old)
    for one in new:
        best, place = max(
            (
                (likeness(one.shape, other.shape), place)
                for place, other in enumerate(kept)
                if (other.bank, other.signal, other.move) == (one.bank, one.signal, one.move)
            ),
            default=(0.0, -1),
        )
        if best < MERGE:
            kept.append(one)
            continue
        other = kept[place]
        kept[place] = replace(
            other,
            shape=one.shape & other.shape,
            uses=other.weight * other.uses + one.uses,
            wins=other.weight * other.wins + one.wins,
            weight=1.0,
            used=one.used,
        )
    return kept


def _bounded(records: Sequence[Experience]) -> list[Experience]:
    """The most useful of each bank: those that were used often and lately."""
    found: list[Experience] = []
    for bank in Bank:
        own = [one for one in records if one.bank is bank]
        own.sort(
            key=lambda one: (-one.weight * math.log1p(one.uses), *_key((one.bank, one.signal, one.move, one.shape)))
        )
        found += own[:MOST]
    return found


def _key(record: tuple[Bank, str, str, frozenset[str]]) -> tuple[int, str, str, str]:
    bank, signal, move, shape = record
    return int(bank), signal, move, " ".join(sorted(shape))


def trajectory(route: Mapping[str, object], *, good: bool) -> Trajectory | None:
    """A question as it was kept with its answer; None: it was kept by another version, and teaches nothing."""
    shape, signal, steps, answered = (route.get(key) for key in ("shape", "signal", "steps", "answered"))
    if not isinstance(shape, list) or not isinstance(steps, list):
        return None
    try:
        return Trajectory(
            frozenset(str(word) for word in shape if is_shape(str(word))),
            Signal(str(signal)),
            tuple((Signal(str(after)), Move(str(move))) for after, move in steps),
            None if answered is None else Move(str(answered)),
            good,
        )
    except (TypeError, ValueError):
        return None


def as_route(one: Trajectory) -> dict[str, object]:
    """A question as it is kept with its answer, JSON values."""
    return {
        "shape": sorted(one.shape),
        "signal": one.signal.value,
        "steps": [[signal.value, move.value] for signal, move in one.steps],
        "answered": None if one.answered is None else one.answered.value,
    }
