"""Looks for what should be gone, in everything that a home folder holds, with the key in hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from edge.memory import Store
from edge.memory.database import connect
from edge.memory.files import FRAMES_FILE, MEMORY_FILE
from edge.memory.keys import obtain_key
from edge.settings import MemorySettings
from edge.types.drafts import (
    CommitDraft,
    DecisionDraft,
    KeyFrameDraft,
    NewEntity,
    ObservationDraft,
    SampleDraft,
    TraceDraft,
    UtteranceDraft,
)
from edge.types.media import Image, Mode
from edge.types.records import EntityKind, LineDraft, Modality, Outcome, mention
from tests.identity_support import direction, near


def noise(seed: int, width: int = 96, height: int = 72) -> Image:
    """A picture of which no two parts are the same."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def raw_pages(home: Path) -> dict[str, bytes]:
    """All pages of both files as they are on the disk, decrypted: free pages and gaps inside pages, too."""
    key = obtain_key(home, MemorySettings(), exists=True)
    found = {}
    for file in (MEMORY_FILE, FRAMES_FILE):
        with closing(connect(home / file, key, readonly=True)) as opened:
            found[file] = bytes(opened.serialize("main") or b"")
    return found


def leftovers(home: Path, strings: Iterable[str], blobs: Iterable[bytes]) -> list[str]:
    """Where any of these is still found: pages, logs, terms of the index of words, rows, and all other files.

    A blob counts as found if any stretch of 24 bytes of it is, from its middle or its ends.
    """
    needles = [(text, text.encode()) for text in strings]
    needles += [(text, text.lower().encode()) for text in strings]
    for blob in blobs:
        # Of a picture its pixels: what comes before them is the same in all of one size.
        own = blob[blob.index(b"\xff\xda") + 14 :] if blob.startswith(b"\xff\xd8") else blob
        cuts = {own[at : at + 24] for at in (0, len(own) // 3, len(own) // 2, max(0, len(own) - 26))}
        needles += [(f"blob {blob[:4].hex()}", cut) for cut in cuts if len(set(cut)) > 8]
    contents = dict(raw_pages(home))
    for path in sorted(home.rglob("*")):
        if path.is_file() and path.name not in contents:
            contents[path.name] = path.read_bytes()
            if path.name.endswith("-wal") and contents[path.name]:
                contents[f"{path.name} is not empty"] = b"".join(needle for _, needle in needles)
    found = [f"{what} in {name}" for name, data in contents.items() for what, needle in needles if needle in data]
    key = obtain_key(home, MemorySettings(), exists=True)
    with closing(connect(home / MEMORY_FILE, key, readonly=True)) as memory:
        terms = {term for (term,) in memory.execute("select distinct term from words_instance")}
        found += [f"{text} in the words" for text in strings if text.lower() in terms]
        tables = [name for (name,) in memory.execute("select name from sqlite_schema where type = 'table'")]
        for table in tables:
            for row in memory.execute(f'select * from "{table}"'):
                cells = [
                    cell.encode() if isinstance(cell, str) else cell for cell in row if isinstance(cell, str | bytes)
                ]
                found += [f"{what} in a row of {table}" for what, needle in needles for cell in cells if needle in cell]
    return sorted(set(found))


def evidence_of(store: Store, entity: int) -> list[bytes]:
    """All vectors and pictures of somebody: those of the moments in which they are, too."""
    blobs: list[bytes] = []
    for sql in (
        "select embedding from sample where entity = ?1",
        "select embedding from gallery where entity = ?1",
        "select e.vector from embedding e join participation p on p.trace = e.trace where p.entity = ?1",
        "select s.bits from signs s join participation p on p.trace = s.trace where p.entity = ?1",
    ):
        blobs += [bytes(blob) for (blob,) in store.rows(sql, (entity,))]
    blobs += [face.jpeg for face in store.crops(entity)]
    seen = "select distinct trace from observation where label <> 'voice' and entity = ?"
    for (trace,) in store.rows(seen, (entity,)):
        blobs += [store.key_frame(number).jpeg for number in store.trace(trace).key_frames]
    return blobs


START = 1_700_000_000.0  # UTC POSIX seconds
FACES, VOICES, TEXTS = "faces@1", "voices@1", "texts@1"


def scene(
    number: int, people: Sequence[int], words: Sequence[str] = (), *, camera: str = "hall", cosine: float = 0.97
) -> CommitDraft:
    """What a segment with some people in it writes; each says what is in `words`.

    Args:
        number: of the segment; its random vectors and pictures come from it.
        people: entities; negative: somebody new.
        words: of each.
        camera: where.
        cosine: of their faces and voices to those of the same person before; the person is abs(entity).
    """
    start = START + 40.0 * number
    anchors = [f"a{place + 1}" for place in range(len(people))]
    named = [
        mention(who, anchor, f"v{place + 1}") for place, (who, anchor) in enumerate(zip(people, anchors, strict=True))
    ]
    together = " and ".join(named)
    observations, decisions, samples, utterances, lines = [], [], [], [], []
    for place, (who, anchor) in enumerate(zip(people, anchors, strict=True)):
        at = start + 5 * place
        observations.append(
            ObservationDraft(anchor, "person", who, at, at + 4, f"{mention(who, anchor)} wore scarf{who % 97}.", 0.9)
        )
        rest = {"candidates": [{"entity": who, "score": 0.9}] if who > 0 else [], "modality": "face"}
        decisions.append(DecisionDraft(anchor, Outcome.SAME, who, f"The face matches {mention(who)} (0.90).", rest))
        for modality, model, seed in ((Modality.FACE, FACES, 0), (Modality.VOICE, VOICES, 500)):
            vector = near(direction(seed + abs(who)), cosine, 10_000 * seed + 100 * number + place)
            crop = noise(7000 + 10 * number + place, 24, 24) if modality is Modality.FACE else None
            samples.append(SampleDraft(who, modality, model, vector, 60.0 + number % 7, anchor, 3, 0.2, 0.5, crop))
        lines.append(LineDraft(at, f"{mention(who, anchor)} came into view."))
        if place < len(words) and words[place]:
            utterances.append(UtteranceDraft(at + 1, at + 3, words[place], who, f"v{place + 1}"))
            lines.append(LineDraft(at + 1, f"{mention(who, f'v{place + 1}')} said: “{words[place]}”"))
    lines.append(LineDraft(start + 30, "A cup was on the table."))
    told = [
        f"{together} were at a table.",
        *(line.text for line in lines if "“" in line.text),
        "A cup was on the table.",
    ]
    return CommitDraft(
        camera=camera,
        trace=TraceDraft(start, start + 35, " ".join(told), Mode.OFFLINE_QUALITY, None, tuple(lines)),
        entities=tuple(NewEntity(who, EntityKind.PERSON) for who in people if who < 0),
        observations=(*observations, ObservationDraft("a9", "cup", None, start, start + 35, "A cup.", 0.8)),
        utterances=tuple(utterances),
        decisions=tuple(decisions),
        samples=tuple(samples),
        key_frames=(KeyFrameDraft(start + 2, noise(number), tuple(anchors)),),
        vector=direction(40_000 + number),
        line_vectors=(direction(50_000 + number),),
        word_signs=np.random.default_rng(70_000 + number).bytes(48),
        embedder=TEXTS,
    )


def everything(store: Store) -> Mapping[str, int]:
    """How many rows each table has."""
    tables = store.rows("select name from sqlite_schema where type = 'table' and rootpage > 0")
    return {name: store.rows(f'select count(*) from "{name}"')[0][0] for (name,) in tables}
