"""Where in the view something is, how it moves there, and what it has to do with others, as phrases. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from edge.perceive.describe_relations import Tie
from edge.perceive.describe_scene import Scene
from edge.perceive.describe_words import PERSON, census, enumerated, listed, who
from edge.perceive.geometry import area, centre
from edge.types.evidence import NormBox, Track
from edge.types.vocabulary import number

_SIDE = 0.36  # of the width: left of this is "the left", right of its mirror "the right"
_MOVE = 0.25  # of the width: shorter ways are not told
_STAY = 0.8  # of the segment


def _zone(x: float) -> str:
    return "left" if x < _SIDE else "right" if x > 1 - _SIDE else "middle"


def _across(boxes: Sequence[NormBox]) -> float:
    return statistics.median(centre(box)[0] for box in boxes)


def place(tracks: Sequence[Track]) -> str:
    """Where in the view, over all boxes of one person or thing; "in view" without any."""
    boxes = [box for track in tracks for _, box in track.boxes]
    if not boxes:
        return "in view"
    zone = _zone(_across(boxes))
    return f"{'in' if zone == 'middle' else 'on'} the {zone} of the view"


def movement(tracks: Sequence[Track]) -> str:
    """The way through the view, as a predicate; nothing when it stays about where it is."""
    boxes = [box for track in tracks for _, box in track.boxes]
    if len(boxes) < 2:
        return ""
    ends = min(2, len(boxes) // 2)
    first, last = boxes[:ends], boxes[-ends:]
    start, end = _across(first), _across(last)
    if abs(end - start) >= _MOVE and _zone(start) != _zone(end):
        return f"moved from the {_zone(start)} to the {_zone(end)} of the view"
    growth = [
        statistics.median(box[k + 2] - box[k] for box in last)
        / max(statistics.median(box[k + 2] - box[k] for box in first), 1e-3)
        for k in (0, 1)
    ]
    if len(boxes) >= 3 and min(growth) >= 1.5:
        return "came closer to the camera"
    if len(boxes) >= 3 and max(growth) <= 1 / 1.5:
        return "moved away from the camera"
    return ""


def distance(tracks: Sequence[Track]) -> str:
    """How near a person is, as far as the size of the box tells."""
    boxes = [box for track in tracks for _, box in track.boxes]
    if not boxes:
        return ""
    high = statistics.median(box[3] - box[1] for box in boxes)
    if high >= 0.8 or statistics.median(area(box) for box in boxes) >= 0.35:
        return "close to the camera"
    # Whose face is good enough to be known again is near; a small box is then of the face alone.
    if any(track.face is not None and track.face.safe for track in tracks):
        return ""
    whole = all(min(box[0], box[1]) > 0.01 and max(box[2], box[3]) < 0.99 for box in boxes)
    return "far from the camera" if whole and high <= 0.25 else ""


def stayed(scene: Scene, track: Track) -> bool:
    """Whether it was there for nearly all of a segment that is long enough for this to mean something."""
    length = scene.evidence.end - scene.evidence.start
    return length >= 5 and track.end - track.start >= _STAY * length and not (track.entered or track.left)


def salient(tracks: Sequence[Track]) -> bool:
    """Large enough in the view for its place to matter."""
    return statistics.median([area(box) for track in tracks for _, box in track.boxes] or [0.0]) >= 0.03


def ties(scene: Scene, tracks: Sequence[Track], *, both_ways: bool) -> list[str]:
    """What one person has to do with things and others (tables apart), as phrases after "was".

    Args:
        scene: the scene.
        tracks: of that person.
        both_ways: say all that there is of this person; False: what the summary tells, and of a pair only from
            its first.
    """
    anchors = {track.anchor for track in tracks}
    found: dict[Tie, list[Track]] = {}
    for tie in scene.relations:
        if not (both_ways or scene.told(tie)):
            continue
        if tie.one.anchor in anchors and tie.tie not in (Tie.AT, Tie.ON):
            found.setdefault(tie.tie, []).append(tie.other)
        elif both_ways and tie.tie is Tie.NEXT and tie.other.anchor in anchors:
            found.setdefault(tie.tie, []).append(tie.one)
    phrases = []
    for kind in (Tie.HOLDING, Tie.WITH, Tie.NEXT, Tie.FRONT):
        others = [other for other in found.get(kind, []) if other.anchor not in anchors]
        people = [other for other in others if other.label == PERSON]
        parts = [_neighbours(scene, tracks[0], people)] if people else []
        things = [other for other in others if other.label != PERSON]
        if things:
            parts.append(enumerated(census(things)))
        if parts:
            phrases.append(f"{kind} {listed(parts)}")
    return phrases


def table(scene: Scene, tracks: Sequence[Track]) -> str:
    """The table that a person is at, with what is on it: "at a table with two cups"."""
    anchors = {track.anchor for track in tracks}
    for group in scene.tables:
        if any(person.anchor in anchors for person in group.people):
            return at_table(group.things)
    return ""


def at_table(things: Sequence[Track]) -> str:
    """The phrase for a table and what is on it."""
    return f"at a table with {enumerated(census(things))}" if things else "at a table"


def _neighbours(scene: Scene, person: Track, others: Sequence[Track]) -> str:
    words, _ = who(others, scene.names)
    if person.anchor in scene.names or words.startswith("{{"):
        return words
    # "A person next to a person" would be read as a slip.
    return {"a person": "another person"}.get(words, words.replace(" people", " other people"))


def seconds(length: float) -> str:
    """A duration in words, rounded to whole seconds and at least one."""
    whole = max(1, round(length))
    return f"{number(whole)} second{'s' if whole > 1 else ''}"
