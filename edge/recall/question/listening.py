"""How an input is taken: the question in it, whether it asks the memory at all, and the vector it is searched with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from edge.memory import Store
from edge.recall.question.context import read_context
from edge.recall.question.finder import Heard, find_question
from edge.recall.question.head import Action, Context, Head
from edge.recall.search.searcher import Embedder
from edge.settings import RecallSettings

SPEAK: Final = 0.5  # what less likely than not wants an answer gets none when it was overheard
SEARCH: Final = 0.1  # what so surely does not ask the memory is not looked for further than one pass
UNASKED: Final = "That does not sound like a question about what was seen or heard."


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

    def turn(self, at: float) -> Turn:
        """All about the inputs of one moment.

        Args:
            at: UTC POSIX seconds.
        """
        return Turn(self._store, self._embedder, self._head, at, moves=self._moves)


class Turn:
    """One moment of listening: what it is asked in is read once, when it is needed first."""

    def __init__(self, store: Store, embedder: Embedder | None, head: Head | None, at: float, *, moves: bool) -> None:
        """Prepare; as `Listener.turn` does."""
        self._store = store
        self._embedder = embedder
        self._head = head
        self._at = at
        self._moves = moves
        self._context: Context | None = None

    def act(self, text: str) -> Action | None:
        """Whether an input wants an answer, and the memory; None: without the head nobody knows.

        Args:
            text: the question that was heard.

        Raises:
            InferenceError: the embedder failed.
        """
        return None if self._head is None else self._head.act(text, self._read(self._head))

    @property
    def embedder(self) -> Embedder | None:
        """What makes the vectors of questions; None: nothing does."""
        if self._head is None:
            return self._embedder
        return _Asking(self._head, self._read(self._head) if self._moves else None)

    def _read(self, head: Head) -> Context:
        if self._context is None:
            embedder = head.embedder
            with self._store.reading() as connection:
                self._context = read_context(connection, self._store.user, embedder.key, embedder.dimensions, self._at)
        return self._context


class _Asking:
    """The embedder of questions: what the head has read is not read again, and vectors are moved as it says."""

    def __init__(self, head: Head, context: Context | None) -> None:
        self._head = head
        self._context = context

    @property
    def key(self) -> str:
        return self._head.embedder.key

    def read_words(self, text: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        return self._head.read_words(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = [self._head.vector(text) for text in texts]
        if self._context is not None:
            vectors = [self._head.moved(vector, self._context) for vector in vectors]
        return np.stack(vectors) if vectors else np.zeros((0, self._head.embedder.dimensions), np.float32)
