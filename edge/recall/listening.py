"""How an input is taken: the question in it, whether it asks the memory at all, and the vector it is searched with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edge.memory import Store
from edge.recall.context import read_context
from edge.recall.finder import Heard, find_question
from edge.recall.head import Action, Context, Head
from edge.recall.search import Embedder
from edge.settings import RecallSettings

NO_HEAD: Final = "Inputs are taken by rules: the reflex head is missing"
SPEAK: Final = 0.5  # less likely than not, and nothing is said


class Listener:
    """Takes inputs for one memory, with the reflex head or without. Thread-safe as the store is."""

    def __init__(self, store: Store, embedder: Embedder | None, head: Head | None, settings: RecallSettings) -> None:
        """Prepare to listen.

        Args:
            store: the memory.
            embedder: makes vectors of questions; None: there are none.
            head: finds, judges and moves; None: rules find, and nothing is judged or moved.
            settings: `head` says how far it goes.
        """
        self._store = store
        self._embedder = embedder
        self._head = head if settings.head not in {"off", "rules"} else None
        self._moves = settings.head == "move"
        self._whole = settings.head == "off"
        self._longest = settings.max_question_chars

    def hear(self, text: str) -> Heard:
        """The question in an input. What is longer than a question may be comes back whole, to be refused.

        Raises:
            InferenceError: the embedder failed.
        """
        if self._whole or len(text) > self._longest:
            return Heard(text, cut=False, asks=True)
        return find_question(text, self._head)

    def act(self, text: str, at: float) -> Action | None:
        """Whether an input wants an answer, and the memory; None: without the head nobody knows.

        Args:
            text: the question that was heard.
            at: UTC POSIX seconds.

        Raises:
            InferenceError: the embedder failed.
        """
        return None if self._head is None else self._head.act(text, self._context(self._head, at))

    def asking(self, at: float) -> Embedder | None:
        """What makes the vectors of questions that are asked at a time; None: nothing does.

        Args:
            at: UTC POSIX seconds.
        """
        if self._head is None:
            return self._embedder
        return _Asking(self._head, self._context(self._head, at) if self._moves else None)

    def _context(self, head: Head, at: float) -> Context:
        with self._store.reading() as connection:
            return read_context(connection, self._store.user, head.embedder.key, head.embedder.dimensions, at)


class _Asking:
    """The embedder of questions: what the head has read is not read again, and vectors are moved as it says."""

    def __init__(self, head: Head, context: Context | None) -> None:
        self._head = head
        self._context = context

    @property
    def key(self) -> str:
        return self._head.embedder.key

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = [self._head.vector(text) for text in texts]
        if self._context is not None:
            vectors = [self._head.moved(vector, self._context) for vector in vectors]
        return np.stack(vectors) if vectors else np.zeros((0, self._head.embedder.dimensions), np.float32)
