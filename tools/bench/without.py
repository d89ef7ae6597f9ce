"""Recall with parts left out, to show what each of them is worth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import Any, Final

from edge.memory import Store
from edge.recall import Embedder, Head, Known, Question, Recall
from edge.settings import RecallSettings

# entity: people whom a question names count as words only. schema: things count as the words that were asked, not as the classes
# that they are seen as. semantic: no vectors. graph: not asked. time: times in a question are words. head: neither the
# question is found in what is around it, nor its vector moved. neighbours: moments beside the best are not brought up.
PARTS: Final = ("entity", "schema", "semantic", "graph", "time", "head")


class Without(Recall):
    """As `Recall`, without some parts."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        settings: RecallSettings,
        *,
        head: Head | None,
        without: Collection[str] = (),
    ) -> None:
        """Prepare; arguments as of `Recall`, and the parts to leave out."""
        self._without = frozenset(without)
        super().__init__(
            store,
            None if "semantic" in self._without else embedder,
            settings,
            head=None if self._without & {"head", "semantic"} else head,
            graph=0.0 if "graph" in self._without else None,
        )

    def _understand(
        self, text: str, at: float | None, zone: tzinfo | None, known: Sequence[Known] | None = None
    ) -> Question:
        left: dict[str, Any] = {}
        asked = super()._understand(text, at, zone, () if "entity" in self._without else known)
        if "schema" in self._without:
            left["things"] = ()
        if "time" in self._without:
            left["when"] = replace(asked.when, start=None, end=None, hours=None)
        return replace(asked, **left)
