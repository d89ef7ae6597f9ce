"""A small memory that everybody can read, and an embedder without a network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from edge.memory import Store, read_units, search_units, trace_vector
from edge.types.drafts import CommitDraft, KeyFrameDraft, NewEntity, ObservationDraft, TraceDraft, UtteranceDraft
from edge.types.media import Mode
from edge.types.records import EntityKind, LineDraft, NameSource, mention
from edge.types.words import content_words

BERLIN = ZoneInfo("Europe/Berlin")


class BagEmbedder:
    """A bag of hashed words: texts that share words are near."""

    def __init__(self, key: str = "bag-1", dimensions: int = 64) -> None:
        self.key = key
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = [sum((self._word(word) for word in text.lower().split()), self._word("")) for text in texts]
        matrix = np.array(rows, np.float32)
        return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)

    def embed_words(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], tuple[NDArray[np.float32], ...]]:
        return self.embed(texts), tuple(self.read_words(text)[1] for text in texts)

    def read_words(self, text: str) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        words = tuple(text[begin:end] for begin, end in content_words(text))
        rows = [self._word(word.lower()) for word in words]
        states = np.array(rows, np.float32).reshape(len(rows), self.dimensions)
        return words, states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)

    def _word(self, word: str) -> NDArray[np.float64]:
        seed = int.from_bytes(hashlib.sha256(f"{self.key}{word.strip('.,?!')}".encode()).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=self.dimensions)


class WholeEmbedder(BagEmbedder):
    """Makes vectors, and says nothing of single words."""

    embed_words = None  # type: ignore[assignment]
    read_words = None  # type: ignore[assignment]


def moment(text: str) -> float:
    """Local time in Berlin as UTC POSIX seconds."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def seen(label: str, start: float, end: float, text: str, anchor: str, entity: int | None = None) -> ObservationDraft:
    return ObservationDraft(anchor=anchor, label=label, entity=entity, start=start, end=end, text=text, score=0.9)


def said(start: float, text: str, speaker: int | None = None, name: str | None = None) -> UtteranceDraft:
    return UtteranceDraft(start=start, end=start + 2, text=text, speaker=speaker, speaker_name=name)


class Script:
    """Writes traces into a store as a watch would."""

    def __init__(self, store: Store, embedder: BagEmbedder | None = None) -> None:
        self.store = store
        self.embedder = embedder

    def trace(
        self,
        start: float,
        lines: Sequence[str],
        *,
        seconds: float = 20.0,
        camera: str = "hall",
        observations: Sequence[ObservationDraft] = (),
        utterances: Sequence[UtteranceDraft] = (),
        entities: Sequence[NewEntity] = (),
        picture: bool = False,
    ) -> dict[int, int]:
        draft = CommitDraft(
            camera=camera,
            trace=TraceDraft(
                start=start,
                end=start + seconds,
                text=" ".join(lines),
                mode=Mode.OFFLINE_QUALITY,
                reason=None,
                lines=tuple(LineDraft(start + i, line) for i, line in enumerate(lines)),
            ),
            entities=tuple(entities),
            observations=tuple(observations),
            utterances=tuple(utterances),
            key_frames=(KeyFrameDraft(start + 1, np.full((60, 80, 3), 90, np.uint8)),) if picture else (),
        )
        if self.embedder is not None:
            titles = self.store.titles()
            units = search_units(draft, lambda key: titles.get(key, "someone")).units
            if units:
                vectors, words = read_units(self.embedder, units)
                draft = replace(
                    draft,
                    vector=trace_vector(vectors),
                    line_vectors=tuple(vectors),
                    word_signs=b"".join(words),
                    embedder=self.embedder.key,
                )
        return dict(self.store.commit(draft).entities)


def tell(store: Store, embedder: BagEmbedder | None) -> dict[str, int]:
    """Three days in January 2025: Anna, a man without a name, a cat, cups; a trip to Hamburg is planned."""
    script = Script(store, embedder)
    t = moment("2025-01-06T09:00:00")  # Monday
    ids = script.trace(
        t,
        ["{{-1}} sat at a table with a cup.", "A cat was on a sofa."],
        entities=[NewEntity(-1, EntityKind.PERSON, "Anna", NameSource.SELF)],
        observations=[
            seen("person", t, t + 20, "{{-1}} sat at a table with a cup.", "a1", -1),
            seen("cup", t, t + 20, "A cup was on a table, in the middle of the view.", "a2"),
            seen("cat", t + 2, t + 18, "A cat was on a sofa, on the left of the view.", "a3"),
            seen("couch", t + 2, t + 18, "A sofa was on the left of the view.", "a4"),
        ],
        utterances=[
            said(t + 3, "My name is Anna.", -1),
            said(t + 6, "The train to Hamburg leaves on Friday at noon.", -1),
        ],
        picture=True,
    )
    anna = ids[-1]
    her = mention(anna)
    t = moment("2025-01-06T09:00:20")
    script.trace(
        t,
        [f"{her} stood up and left the room."],
        observations=[seen("person", t, t + 10, f"{her} went out of view.", "a1", anna)],
    )
    t = moment("2025-01-07T17:04:00")  # Tuesday
    ids = script.trace(
        t,
        ["{{-1}} repaired a motorcycle with a screwdriver.", "Two cups were on a table."],
        camera="garage",
        entities=[NewEntity(-1, EntityKind.PERSON)],
        observations=[
            seen("person", t, t + 20, "{{-1}} stood near a motorcycle.", "a1", -1),
            seen("motorcycle", t, t + 20, "A motorcycle was in the middle of the view.", "a2"),
            seen("cup", t, t + 20, "A cup was on a table, on the right of the view; another cup beside it.", "a3"),
            seen("cup", t, t + 20, "A cup was on a table, on the right of the view.", "a4"),
        ],
        utterances=[
            said(t + 5, "The chain needs oil.", -1),
            said(t + 9, "I sold the old bicycle to the neighbours.", -1),
        ],
        picture=True,
    )
    man = ids[-1]
    t = moment("2025-01-08T08:30:00")  # Wednesday
    script.trace(
        t,
        [f"{her} drank tea.", "Someone who was not recognised was also in view."],
        observations=[
            seen("person", t, t + 20, f"{her} drank tea.", "a1", anna),
            seen("person", t, t + 20, "A person was in view.", "a2"),
        ],
        utterances=[
            said(t + 4, "Did you pack the blue umbrella for Hamburg?", anna),
            said(t + 8, "Yes, everything is packed."),
        ],
    )
    return {"anna": anna, "man": man}


NOW = moment("2025-01-08T15:20:00")
