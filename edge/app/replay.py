"""Replay: write segments that somebody else described through the same commit as live ones.

Vectors of the next batches are made in two threads while the main thread commits. A second run of the same file goes on
after the last line that was committed.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edge.capture import BadLine, DescribedFile, DescribedSegment
from edge.memory import Store, read_units, search_units, trace_vector
from edge.types.drafts import CommitDraft, NewEntity, ObservationDraft, SourceProgress, TraceDraft, UtteranceDraft
from edge.types.media import Mode, SourceInfo, SourceKind
from edge.types.records import EntityKind, LineDraft, NameSource, mention

_BATCH = 64  # segments embedded at once: many texts of one length run together
_AHEAD = 3  # batches under way
_EXPECTED = 2**40  # keys from here on stand for people who are not in the memory yet
_WORDS_A_SECOND = 3.0  # how long an utterance lasts when only its beginning is given

# Who is called so is nobody in particular.
_NOBODY_WORDS = """
ai all anyone audio baby boss boy brother child children clerk crowd customer driver everybody everyone father
female friend friends gf girl girlfriend guest guy host kid lyrics male man men mother multiple music narrator
neighbor neighbour nobody other others owner passerby people person radio recording seller shopkeeper singer
sister somebody someone speaker staff stranger television together tv unknown video visitor voice waiter
waitress woman women
"""
_NOBODY = frozenset(_NOBODY_WORDS.split())


class Embedder(Protocol):
    """What turns texts into unit vectors."""

    @property
    def key(self) -> str:
        """Names the model."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, L2-normalised."""


@dataclass(slots=True)
class ReplayReport:
    """What a replay did."""

    lines: int = 0  # in the file
    done: int = 0  # lines dealt with, those of earlier runs included
    resumed: int = 0  # lines that an earlier run had dealt with
    segments: int = 0  # written by this run
    bad: list[tuple[int, str]] = field(default_factory=list)  # line number and reason
    interrupted: bool = False


_Read = tuple[NDArray[np.float32], bytes]  # vectors of the units of a segment, signs of their words


@dataclass(frozen=True, slots=True)
class _Item:
    number: int  # of the line
    segment: DescribedSegment


def replay(
    store: Store,
    embedder: Embedder | None,
    file: DescribedFile,
    *,
    stop: threading.Event | None = None,
    progress: Callable[[ReplayReport], None] = lambda _: None,
) -> ReplayReport:
    """Write a file of described segments into the memory.

    Args:
        store: opened for writing.
        embedder: None: the segments are found by words alone.
        file: what to write.
        stop: when set, the replay ends after the segment that is being written.
        progress: called after every segment and every bad line.

    Raises:
        StoreError: a segment could not be written; those before it are kept.
        InferenceError: the embedder failed; likewise.
    """
    stop = stop or threading.Event()
    report = ReplayReport(lines=file.lines)
    report.resumed = report.done = _resume_at(store, file.fingerprint)
    names = _Names(store)
    writer = _Writer(store, file, names)
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="embed") as pool:
        under_way: deque[tuple[list[_Item | tuple[int, str]], Future[list[_Read]]]] = deque()
        batches = _batches(file, report.resumed)
        try:
            while not stop.is_set():
                while len(under_way) < _AHEAD and (batch := next(batches, None)):
                    texts = [writer.texts(item.segment) for item in batch if isinstance(item, _Item)]
                    under_way.append((batch, pool.submit(_embed, embedder, texts)))
                if not under_way:
                    break
                batch, future = under_way.popleft()
                read = iter(future.result())
                for item in batch:
                    if stop.is_set():
                        break
                    if isinstance(item, _Item):
                        writer.write(item, next(read), embedder.key if embedder else "", last=item.number == file.lines)
                        report.segments += 1
                        report.done = item.number
                    else:
                        report.bad.append(item)
                        report.done = item[0]
                    progress(report)
        finally:
            for _, future in under_way:
                future.cancel()
    report.interrupted = stop.is_set()
    if not report.interrupted:
        report.done = report.lines
        progress(report)
    return report


def _resume_at(store: Store, fingerprint: str) -> int:
    return max((source.next_segment for source in store.sources() if source.fingerprint == fingerprint), default=0)


def _batches(file: DescribedFile, skip: int) -> Iterator[list[_Item | tuple[int, str]]]:
    items = iter(file.read(skip))
    while batch := list(islice(items, _BATCH)):
        yield [(number, what.reason) if isinstance(what, BadLine) else _Item(number, what) for number, what in batch]


def _embed(embedder: Embedder | None, texts: list[tuple[str, ...]]) -> list[_Read]:
    if embedder is None or not texts:
        return [(np.zeros((0, 0), np.float32), b"")] * len(texts)
    vectors, words = read_units(embedder, [unit for units in texts for unit in units])
    bounds = np.cumsum([0, *(len(units) for units in texts)]).tolist()
    return [(vectors[a:b], b"".join(words[a:b])) for a, b in pairwise(bounds)]


class _Names:
    """Who is known by name; names that a description uses lead to the same entity every time."""

    def __init__(self, store: Store) -> None:
        self.ids: dict[str, int] = {}
        for person in sorted(store.entities(), key=lambda entity: (entity.kind is not EntityKind.PERSON, entity.id)):
            if person.name:
                self.ids.setdefault(person.name, person.id)

    def pattern(self, names: Sequence[str]) -> re.Pattern[str] | None:
        longest_first = sorted(names, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)") if names else None


class _Writer:
    """Makes drafts of described segments and commits them."""

    def __init__(self, store: Store, file: DescribedFile, names: _Names) -> None:
        self._store = store
        self._file = file
        self._names = names
        self._titles = {entity: name for name, entity in names.ids.items()}
        # Who will be known when a segment is written, by a key of its own until then: texts are made ahead of the commits.
        self._expected = dict(names.ids)
        self._positions: dict[str, float] = {}
        self._start: float | None = None
        for source in store.sources():
            if source.fingerprint == file.fingerprint:
                self._positions[source.camera] = source.position
                self._start = source.start

    def texts(self, segment: DescribedSegment) -> tuple[str, ...]:
        """The units of fine search. They do not depend on the ids of the people, which may not exist yet."""
        for name in _speakers(segment):
            if name not in self._expected:
                key = _EXPECTED + len(self._expected)
                self._expected[name] = key
                self._titles[key] = name
        return search_units(self._draft(segment, self._expected), lambda key: self._titles.get(key, "someone")).units

    def write(self, item: _Item, read: _Read, embedder: str, *, last: bool) -> None:
        """Commit one segment."""
        vectors, words = read
        segment = item.segment
        if self._start is None:
            self._start = segment.start
        before = self._positions.get(segment.camera, 0.0)
        position = max(segment.end - self._start, before + 1e-3)
        info = SourceInfo(
            uri=str(self._file.path.resolve()),
            camera=segment.camera,
            kind=SourceKind.REPLAY,
            fingerprint=self._file.fingerprint,
            start=self._start,
            duration=None,
            has_video=False,
            has_audio=False,
            width=0,
            height=0,
        )
        draft = self._draft(segment, self._names.ids)
        if len(vectors):
            draft = replace(
                draft, vector=trace_vector(vectors), line_vectors=tuple(vectors), word_signs=words, embedder=embedder
            )
        progress = SourceProgress(info, position, next_segment=item.number, finished=last)
        committed = self._store.commit(replace(draft, progress=progress, user=self._store.user))
        self._positions[segment.camera] = position
        for new in draft.entities:
            if new.name:
                self._names.ids[new.name] = committed.entities[new.key]
                self._titles[committed.entities[new.key]] = new.name

    def _draft(self, segment: DescribedSegment, known: Mapping[str, int]) -> CommitDraft:
        new = {name: -1 - place for place, name in enumerate(name for name in _speakers(segment) if name not in known)}
        keys = {**known, **new}
        pattern = self._names.pattern(list(keys))

        def put_mentions(text: str) -> str:
            return pattern.sub(lambda match: mention(keys[match.group()]), text) if pattern else text

        lines = tuple(LineDraft(caption.at, put_mentions(caption.text)) for caption in segment.captions)
        return CommitDraft(
            camera=segment.camera,
            trace=TraceDraft(
                start=segment.start,
                end=segment.end,
                text=" ".join(line.text for line in lines),
                mode=Mode.OFFLINE_QUALITY,
                reason=None,
                lines=lines,
            ),
            entities=tuple(NewEntity(key, EntityKind.NAMED, name, NameSource.ADDRESSED) for name, key in new.items()),
            observations=tuple(self._seen(segment, lines, keys)),
            utterances=tuple(
                UtteranceDraft(
                    start=said.at,
                    end=self._end(segment, place),
                    text=said.text,
                    speaker=keys.get(said.speaker) if said.speaker else None,
                    speaker_name=said.speaker,
                )
                for place, said in enumerate(segment.utterances)
            ),
        )

    def _seen(
        self, segment: DescribedSegment, lines: Sequence[LineDraft], keys: dict[str, int]
    ) -> Iterator[ObservationDraft]:
        """Whoever the captions name was there."""
        place = 0
        for key in dict.fromkeys(keys.values()):
            about = [line for line in lines if mention(key) in line.text]
            if about:
                place += 1
                yield ObservationDraft(
                    anchor=f"a{place}",
                    label="person",
                    entity=key,
                    start=min(max(about[0].at, segment.start), segment.end),
                    end=max(min(about[-1].at, segment.end), segment.start),
                    text=" ".join(line.text for line in about),
                    score=1.0,
                )

    @staticmethod
    def _end(segment: DescribedSegment, place: int) -> float:
        said = segment.utterances[place]
        after = segment.utterances[place + 1].at if place + 1 < len(segment.utterances) else segment.end
        spoken = said.at + max(1.0, len(said.text.split()) / _WORDS_A_SECOND)
        return max(said.at, min(spoken, max(after, said.at + 0.5)))


def _speakers(segment: DescribedSegment) -> list[str]:
    return list(
        dict.fromkeys(said.speaker for said in segment.utterances if said.speaker and is_somebody(said.speaker))
    )


def is_somebody(speaker: str) -> bool:
    """Whether a label of a speaker is a name: it has letters, no brackets, and no word for just anybody."""
    words = re.findall(r"\w+", speaker.lower())
    if not words or len(speaker) > 60 or re.search(r"[()\[\]{}<>#\d]", speaker) or not speaker[0].isalpha():
        return False
    return not _NOBODY.intersection(words) and not speaker[0].islower()
