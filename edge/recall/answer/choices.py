"""Choosing among given answers by what the moments hold that were found for all of them; no language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edge.memory import Store, index
from edge.recall.question.understand import Question
from edge.recall.search.ranking import Concept, Scores, standardise
from edge.recall.search.searcher import Embedder, Found, Searcher

_CLIPS = 10  # those behind hold less of the answer


def with_choices(question: Question, choices: Mapping[str, Question]) -> Question:
    """The question and what its choices say, as one: what speaks for any of them is looked for, and for none before the others.

    Times and the order that are asked for stay those of the question.

    Args:
        question: what is asked.
        choices: by letter, each read as a question is.
    """
    parts = (question, *choices.values())
    return replace(
        question,
        text=" ".join(part.text for part in parts),
        people=tuple(dict.fromkeys(who for part in parts for who in part.people)),
        people_words=tuple(dict.fromkeys(word for part in parts for word in part.people_words)),
        things=tuple(dict.fromkeys(thing for part in parts for thing in part.things)),
        words=tuple(dict.fromkeys(word for part in parts for word in part.words)),
        about=" ".join(part.about for part in parts),
    )


def choose(
    store: Store,
    searcher: Searcher,
    embedder: Embedder | None,
    found: Found,
    question: Question,
    choices: Mapping[str, Question],
) -> str | None:
    """The letter of the choice for which most speaks in the best clips; None: there are no clips.

    Two things speak for a choice in a clip: the share of its words that are not in the question which the clip holds, each by its
    rarity in English, and the cosine of the choice and the nearest line. A clip counts by its rank (1 / log2(rank + 1), as in
    discounted gain), and up to twice as much the more of the question it holds: what was found for a choice alone says little of
    what is asked. As in ranking, either is standardised, here over the choices, and both are added; of equals, the one for
    which more speaks as it stands wins, then the one with the fewest words: it claims least.

    Args:
        store: the memory.
        searcher: knows the terms of a text.
        embedder: of the choices; None: words alone.
        found: the clips, found for the question with its choices.
        question: what is asked.
        choices: by letter, each read as a question is.

    Raises:
        InferenceError: the embedder failed.
    """
    if not found.hits or not choices:
        return None
    traces = np.array([hit.trace for hit in found.hits[:_CLIPS]], np.int64)
    discounts = 1.0 / np.log2(np.arange(len(traces)) + 2.0)
    vectors = None if embedder is None else embedder.embed([choice.text for choice in choices.values()])
    with store.reading() as connection:
        concepts = searcher.concepts(connection, question)
        asked = {term for concept in concepts for term in concept.terms}
        wanted = [_own(searcher.concepts(connection, choice), asked) for choice in choices.values()]
        words = index.word_sets(connection, traces.tolist())
        clips = [words.get(trace, frozenset()) for trace in traces.tolist()]
        counts = discounts * (1.0 + _shares(concepts, clips))
        speaks = [np.array([_shares(own, clips) for own in wanted]) @ counts]
        if embedder is not None and vectors is not None:
            near = [index.nearest_units(connection, vector, embedder.key, traces)[0] for vector in vectors]
            speaks.append(np.nan_to_num(np.array(near)) @ counts)
    scores = sum(map(standardise, speaks), np.zeros(len(choices)))
    plain = sum(speaks, np.zeros(len(choices)))
    letters = list(choices)
    best = max(
        range(len(letters)), key=lambda i: (round(float(scores[i]), 9), float(plain[i]), -len(wanted[i]), letters[i])
    )
    return letters[best]


def _shares(concepts: Sequence[Concept], clips: list[frozenset[str]]) -> Scores:
    """Of each clip, the share of the words of a text that it holds, by their weight; (n,)."""
    total = sum(concept.weight for concept in concepts)
    if not total:
        return np.zeros(len(clips))
    inside: NDArray[np.float64] = np.array(
        [sum(concept.weight for concept in concepts if not words.isdisjoint(concept.terms)) for words in clips]
    )
    return inside / total


def _own(concepts: tuple[Concept, ...], asked: set[str]) -> list[Concept]:
    """What a choice says beyond the question; all of it when it says nothing more."""
    return [concept for concept in concepts if asked.isdisjoint(concept.terms)] or list(concepts)
