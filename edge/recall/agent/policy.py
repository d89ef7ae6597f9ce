"""Which move comes next without a language model: the order that a signal suggests, as experience has put it. Pure.

Without experience the order follows from what a search showed: a word that is nowhere is spelled another way, a time that holds
nothing is given up, people who are not there may be spoken of, parts that are apart are looked for together. What is
far from everything is looked for in what is known of people and in longer stretches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from edge.memory.tiers.experience import Experience
from edge.recall.reflection import Advice, Move, Signal, advise

_ALL: Final = (
    Move.CONTENT,
    Move.EVENT,
    Move.BESIDE,
    Move.ANYONE,
    Move.SPEECH,
    Move.FACTS,
    Move.GRAPH,
    Move.CHAPTER,
    Move.WIDEN,
)

ORDERS: Final[Mapping[Signal, tuple[Move, ...]]] = {
    Signal.UNKNOWN: (Move.REWORD,),
    Signal.OUTSIDE: (Move.WIDEN, Move.CONTENT, Move.SPEECH, Move.EVENT, Move.FACTS, Move.GRAPH),
    Signal.APART: (Move.ANYONE, Move.SPEECH, Move.EVENT, Move.BESIDE, Move.FACTS, Move.GRAPH),
    Signal.PART: _ALL,
    Signal.FAR: (Move.FACTS, Move.GRAPH, Move.CHAPTER, Move.SPEECH, Move.EVENT, Move.WIDEN),
    Signal.UNSURE: (Move.CONTENT, Move.EVENT, Move.BESIDE, Move.SPEECH, Move.FACTS, Move.GRAPH),
    Signal.CONTRADICTION: (Move.BESIDE, Move.EVENT, Move.FACTS, Move.SPEECH),
}


def next_move(
    learned: Iterable[Experience], shape: frozenset[str], signal: Signal, possible: Iterable[Move], tried: int
) -> Advice:
    """What to do next.

    Args:
        learned: both banks; none: no experience.
        shape: of the question.
        signal: of its first pass.
        possible: moves that can be made and were not.
        tried: how many were made.
    """
    there = set(possible)
    order = [move for move in ORDERS.get(signal, _ALL) if move in there]
    return advise(learned, shape, signal, order, tried)
