"""Putting tracklets right at the end of a segment, when faces have been embedded: split, then stitch. Pure.

Geometry alone swaps two people who cross. Two clusters of good shots inside one tracklet whose means disagree (cosine
below `SPLIT`) are two people: the tracklet is cut. Tracklets whose faces agree and that are never in view together
are one person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from edge.perceive.embed import mean_vector
from edge.perceive.geometry import inside, iou
from edge.perceive.sightings import PERSON
from edge.perceive.tracking import Tracklet
from edge.types.evidence import FaceShot, Vector

SPLIT = (
    0.35  # cosine of cluster means; different people have a mean of .05 and one person's shots .72 and more (measured)
)
STITCH = 0.58  # cosine of means; the bound of identity (measured)
_MOST_CLASHES = 2  # frames that two parts of a repaired swap may share
_SAME_PLACE = 0.75  # mean overlap of boxes of two object classes for them to be one object


def split(tracklet: Tracklet, good: Sequence[FaceShot], numbers: Iterable[int]) -> list[Tracklet]:
    """Cut a tracklet into one for each face.

    Args:
        tracklet: of a person.
        good: its embedded shots that pass the gates.
        numbers: free numbers for further tracklets.

    Returns:
        The tracklet itself when all shots agree, else one part for each person, the first with the old number. Each
        frame goes with the good shot that is nearest in time.
    """
    ordered = sorted(good, key=lambda shot: shot.at)
    labels = _clusters([shot.embedding for shot in ordered if shot.embedding is not None])
    if len(set(labels)) < 2:
        return [tracklet]
    times = np.array([shot.at for shot in ordered])
    fresh = iter(numbers)
    parts = []
    for position, label in enumerate(dict.fromkeys(labels)):
        keep = {seen.frame for seen in tracklet.seen if labels[int(np.argmin(np.abs(times - seen.at)))] == label}
        moments = {seen.at for seen in tracklet.seen if seen.frame in keep}
        parts.append(tracklet.part(tracklet.number if position == 0 else next(fresh), keep, moments))
    return [part for part in parts if part.seen]


def _clusters(vectors: Sequence[Vector]) -> list[int]:
    """Average-linkage clusters that differ by less than `SPLIT`; a cluster of one shot joins the nearest.

    One shot alone proves no second person: a blink or a hand before the face moves an embedding as far.
    """
    if len(vectors) < 4:
        return [0] * len(vectors)
    groups = [[index] for index in range(len(vectors))]
    stack = np.stack(vectors).astype(np.float64)

    def alike(a: list[int], b: list[int]) -> float:
        first, second = stack[a].mean(axis=0), stack[b].mean(axis=0)
        return float(first @ second / max(float(np.linalg.norm(first) * np.linalg.norm(second)), 1e-9))

    while len(groups) > 1:
        pairs = [(alike(groups[i], groups[j]), i, j) for i in range(len(groups)) for j in range(i + 1, len(groups))]
        small = [pair for pair in pairs if min(len(groups[pair[1]]), len(groups[pair[2]])) == 1]
        best = max(pairs, key=lambda pair: (pair[0], -pair[1], -pair[2]))
        if best[0] < SPLIT:
            if not small:
                break
            best = max(small, key=lambda pair: (pair[0], -pair[1], -pair[2]))
        groups[best[1]] = sorted(groups[best[1]] + groups[best[2]])
        del groups[best[2]]
    labels = [0] * len(vectors)
    for label, group in enumerate(groups):
        for index in group:
            labels[index] = label
    return labels


def stitch(tracklets: Sequence[Tracklet], means: dict[int, Vector]) -> list[Tracklet]:
    """Join tracklets of one person that was lost and found again.

    Args:
        tracklets: of a segment.
        means: number → mean of its usable face shots; those without are left alone.

    Returns:
        The tracklets; of those that were joined, the earliest keeps its number.
    """
    pool = sorted(tracklets, key=lambda tracklet: (tracklet.seen[0].frame, tracklet.number))
    known = dict(means)
    while (pair := _best_pair(pool, known)) is not None:
        i, j = pair
        first, second = pool[i], pool[j]
        mean = mean_vector([known[part.number] * np.float32(max(1, len(part.shots))) for part in (first, second)])
        del known[second.number]
        if mean is not None:
            known[first.number] = mean
        pool[i] = _join(first, second)
        del pool[j]
    return pool


def _best_pair(pool: Sequence[Tracklet], means: dict[int, Vector]) -> tuple[int, int] | None:
    best: tuple[float, int, int] | None = None
    for i, first in enumerate(pool):
        for j in range(i + 1, len(pool)):
            second = pool[j]
            if first.number not in means or second.number not in means or _clashes(first, second) > _MOST_CLASHES:
                continue
            cosine = float(means[first.number] @ means[second.number])
            if cosine >= STITCH and (best is None or cosine > best[0]):
                best = (cosine, i, j)
    return None if best is None else (best[1], best[2])


def _clashes(a: Tracklet, b: Tracklet) -> int:
    """Frames in which both are seen; many when neither is a part that a split may have cut at the wrong frame."""
    shared = {seen.frame for seen in a.seen} & {seen.frame for seen in b.seen}
    if shared and not (a.weak or b.weak):
        return _MOST_CLASHES + 1
    return len(shared)


def _join(a: Tracklet, b: Tracklet) -> Tracklet:
    """One tracklet of two; in a frame that both claim, the sighting with a face stays, else that of the longer one."""
    main, other = (a, b) if len(a.seen) >= len(b.seen) else (b, a)
    by_frame = {seen.frame: seen for seen in other.seen}
    for seen in main.seen:
        rival = by_frame.get(seen.frame)
        if rival is None or seen.face is not None or rival.face is None:
            by_frame[seen.frame] = seen
    seen_all = [by_frame[frame] for frame in sorted(by_frame)]
    return Tracklet(
        number=a.number,
        label=a.label,
        seen=seen_all,
        shots=sorted([*a.shots, *b.shots], key=lambda shot: (shot.at, shot.box)),
        moves=sorted([*a.moves, *b.moves], key=lambda move: move.start),
        bodies=sorted([*a.bodies, *b.bodies], key=lambda body: body.at),
        weak=a.weak or b.weak,
    )


def one_class(tracklets: Sequence[Tracklet]) -> list[Tracklet]:
    """Drop the weaker of two object tracklets that are one thing under two names (a cup that flickers to a bowl)."""
    kept: list[Tracklet] = []
    for tracklet in sorted(tracklets, key=lambda t: (-sum(seen.score for seen in t.seen), t.number)):
        if tracklet.label != PERSON and any(_same_thing(tracklet, other) for other in kept):
            continue
        kept.append(tracklet)
    return sorted(kept, key=lambda tracklet: (tracklet.seen[0].frame, tracklet.number))


def _same_thing(a: Tracklet, b: Tracklet) -> bool:
    return b.label not in (PERSON, a.label) and overlap(a, b) >= _SAME_PLACE


def overlap(a: Tracklet, b: Tracklet) -> float:
    """Mean over the sightings of one tracklet of the overlap with the other where it was at about that time, 0..1.

    The overlap of boxes, or of a face that was seen alone the share inside.
    """
    frames = np.array([seen.frame for seen in b.seen])
    overlaps: list[float] = []
    for seen in a.seen:
        nearest = b.seen[int(np.argmin(np.abs(frames - seen.frame)))]
        overlaps.append(iou(seen.box, nearest.box) if seen.body is not None else inside(seen.box, nearest.box))
    return float(np.mean(overlaps))


def usable_mean(shots: Sequence[FaceShot]) -> Vector | None:
    """The normalised mean of embedded shots, without those that disagree with the rest."""
    vectors = [shot.embedding for shot in shots if shot.embedding is not None]
    mean = mean_vector(vectors)
    if mean is None or len(vectors) < 3:
        return mean
    stack: NDArray[np.float32] = np.stack(vectors)
    close = [vector for vector, cosine in zip(vectors, stack @ mean, strict=True) if float(cosine) >= SPLIT]
    return mean_vector(close) if close else mean
