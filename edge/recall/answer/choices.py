"""Choosing among given answers by the words of the best clips; no language model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from edge.memory import Store, index
from edge.recall.question.understand import Question
from edge.recall.search.ranking import Concept
from edge.recall.search.searcher import Found, Searcher

_CLIPS = 10  # those behind hold less of the answer


def choose(
    store: Store, searcher: Searcher, found: Found, question: Question, choices: Mapping[str, Question]
) -> str | None:
    """The letter of the choice whose words the best clips hold most; None: there are no clips.

    A word counts by its rarity in English, a clip by its rank (1 / log2(rank + 1), as in discounted gain), a choice by the
    share of its words that are not in the question. Of equals, the one with the fewest words wins: it claims least.

    Args:
        store: the memory.
        searcher: knows the terms of a text.
        found: the clips.
        question: what is asked.
        choices: by letter, each read as a question is.
    """
    if not found.hits or not choices:
        return None
    best = found.hits[:_CLIPS]
    with store.reading() as connection:
        asked = {term for concept in searcher.concepts(connection, question) for term in concept.terms}
        wanted = {letter: _own(searcher.concepts(connection, choice), asked) for letter, choice in choices.items()}
        held = index.word_sets(connection, [hit.trace for hit in best])
    discounts = 1.0 / np.log2(np.arange(len(best)) + 2.0)

    def share(concepts: list[Concept]) -> float:
        total = sum(concept.weight for concept in concepts)
        if not total:
            return 0.0
        inside = [
            sum(
                concept.weight for concept in concepts if not held.get(hit.trace, frozenset()).isdisjoint(concept.terms)
            )
            for hit in best
        ]
        return float(discounts @ np.array(inside)) / total

    scores = {letter: share(concepts) for letter, concepts in wanted.items()}
    return max(scores, key=lambda letter: (scores[letter], -len(wanted[letter]), letter))


def _own(concepts: tuple[Concept, ...], asked: set[str]) -> list[Concept]:
    """What a choice says beyond the question; all of it when it says nothing more."""
    return [concept for concept in concepts if asked.isdisjoint(concept.terms)] or list(concepts)
