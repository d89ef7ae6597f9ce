"""The rooms of one process, built once and handed to what runs in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from edge.errors import ModelError
from edge.identity import Identifier
from edge.infer import Catalog, Runtime, TextEmbedder, VoiceActivity, limit_heaps
from edge.memory import Store
from edge.perceive import Perceiver, build_perceiver
from edge.recall import Head
from edge.settings import Settings


@dataclass(frozen=True, slots=True)
class Rooms:
    """Everything that watching needs."""

    settings: Settings
    catalog: Catalog
    runtime: Runtime
    store: Store
    perceiver: Perceiver
    identifier: Identifier
    voice_activity: VoiceActivity | None
    embedder: TextEmbedder | None
    head: Head | None
    missing: tuple[str, ...]  # what cannot be done for want of a model, one sentence each

    def another_perceiver(self) -> Perceiver:
        """One more, for another thread; networks are shared."""
        return build_perceiver(
            self.catalog, self.runtime, self.settings.perceive, speech=self.voice_activity is not None
        )

    def another_voice_activity(self) -> VoiceActivity | None:
        """One more, for another stream; the network is shared."""
        if self.voice_activity is None:
            return None
        network = self.runtime.open(self.catalog.default("voice-activity"))
        return VoiceActivity(network, threshold=self.settings.perceive.vad_threshold)


def build_text_embedder(catalog: Catalog, runtime: Runtime) -> TextEmbedder:
    """The sentence embedder of the catalogue.

    Raises:
        ModelError: its files are not there.
    """
    return TextEmbedder(catalog.default("text-embedding"), runtime)


def build_head(catalog: Catalog, embedder: TextEmbedder) -> Head:
    """The reflex head of the catalogue, for that embedder.

    Raises:
        ModelError: its file is not there, or it was made for another embedder.
    """
    return Head(catalog.default("reflex"), embedder)


@contextmanager
def open_rooms(settings: Settings) -> Iterator[Rooms]:
    """Open the memory for writing and load the networks.

    A missing model takes its capability away and is said in `Rooms.missing`; the rest works.
    """
    limit_heaps()
    catalog = Catalog.load(settings.infer)
    runtime = Runtime(settings.infer)
    missing: list[str] = []
    voice_activity: VoiceActivity | None = None
    embedder: TextEmbedder | None = None
    head: Head | None = None
    try:
        network = runtime.open(catalog.default("voice-activity"))
        voice_activity = VoiceActivity(network, threshold=settings.perceive.vad_threshold)
    except ModelError as error:
        missing.append(f"Speech is not heard: {error}")
    try:
        embedder = build_text_embedder(catalog, runtime)
    except ModelError as error:
        missing.append(f"Search will match words only, not meaning: {error}")
    try:
        head = None if embedder is None else build_head(catalog, embedder)
    except ModelError as error:
        missing.append(f"Questions among other text are found by rules only: {error}")
    perceiver = build_perceiver(catalog, runtime, settings.perceive, speech=voice_activity is not None)
    missing += perceiver.missing
    with Store.open(settings.home, settings.memory, user=settings.user) as store:
        yield Rooms(
            settings=settings,
            catalog=catalog,
            runtime=runtime,
            store=store,
            perceiver=perceiver,
            identifier=Identifier(store, settings.identity, user=settings.user),
            voice_activity=voice_activity,
            embedder=embedder,
            head=head,
            missing=tuple(missing),
        )
