"""Where people and things are to each other, from their boxes over time. Pure.

A relation starts after two frames in a row that show it clearly and goes on until two in a row do not even show it
loosely, so that a jittering box does not make it flicker. Boxes cannot show depth, hands or posture: each rule below
says only what follows from the boxes alone. The proportions are plain geometry, set by reasoning and checked on
photographs; none is fitted to labelled data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from edge.perceive.geometry import area, centre, inside
from edge.types.evidence import NormBox, Track
from edge.types.vocabulary import ANIMALS, BAGS, FOOD, VEHICLES

TABLE = "dining table"
_SEATS = frozenset({"chair", "couch", "bed", "bench"})
_SMALL = frozenset(
    {"bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "book", "scissors", "remote", "cell phone"}
)
_DESK = frozenset(
    {"laptop", "keyboard", "mouse", "vase", "potted plant", "tv", "teddy bear", "toothbrush", "hair drier", "clock"}
)
_ON_TABLE = _SMALL | _DESK | FOOD | BAGS | {"cat", "bird"}
_ON_SEAT = BAGS | {"cat", "dog", "bird", "teddy bear", "laptop", "book", "remote", "cell phone", "umbrella"}
_CARRIED = (
    _SMALL | FOOD | BAGS | {"umbrella", "tie", "laptop", "teddy bear", "toothbrush", "hair drier", "frisbee", "kite"}
)
_SPORT = {
    "sports ball",
    "baseball bat",
    "baseball glove",
    "skateboard",
    "surfboard",
    "tennis racket",
    "skis",
    "snowboard",
}
_WITH = _CARRIED | _SPORT | {"cat", "bird"}
_RIDDEN = frozenset({"bicycle", "motorcycle", "horse", "elephant"})
_STANDING = (
    VEHICLES | ANIMALS | _SEATS | {"refrigerator", "fire hydrant", "parking meter", "toilet", "oven", "suitcase"}
)
_FRONTED = (VEHICLES - {"bicycle", "motorcycle"}) | {"couch", "bed", "refrigerator", "oven", "bench"}

_CUT = 0.985  # a box that reaches below this goes on outside the picture: where it stands is not known


class Tie(StrEnum):
    """How one track is to another, in the words that state it."""

    AT = "at"
    ON = "on"
    HOLDING = "holding"
    WITH = "with"
    NEXT = "next to"
    FRONT = "in front of"


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """`one` is so to `other` from `start` to `end` (UTC POSIX seconds of frames that show it)."""

    tie: Tie
    one: Track
    other: Track
    start: float
    end: float


Rule = Callable[[NormBox, NormBox, float], bool]  # box, box, ease: 1 clearly, less loosely


def _shared(low: float, high: float, other_low: float, other_high: float) -> float:
    return min(high, other_high) - max(low, other_low)


def at_table(person: NormBox, table: NormBox, ease: float) -> bool:
    """Beside or behind it: higher up, touching it from above or level with it at its side, and not tiny before it."""
    wide, table_wide = person[2] - person[0], table[2] - table[0]
    high, table_high = person[3] - person[1], table[3] - table[1]
    across = _shared(person[0], person[2], table[0], table[2])
    down = _shared(person[1], person[3], table[1], table[3])
    if min(wide, table_wide, high, table_high) <= 0 or table_wide < 0.5 * ease * wide or high < 0.3 * ease * table_high:
        return False
    behind = across >= 0.25 * ease * min(wide, table_wide) and person[1] < table[1] and down > 0
    beside = across >= -0.1 * wide / ease and down >= 0.4 * ease * min(high, table_high) and person[1] < table[1]
    return behind or beside


def on_surface(thing: NormBox, surface: NormBox, ease: float, depth: float) -> bool:
    """Its bottom lies in the upper `depth` of the surface's box, and it is over the surface for most of its width."""
    wide, high = thing[2] - thing[0], surface[3] - surface[1]
    if wide <= 0 or high <= 0 or area(thing) > 0.6 / ease * area(surface):
        return False
    if _shared(thing[0], thing[2], surface[0], surface[2]) < 0.6 * ease * wide:
        return False
    low, deep = surface[1] - 0.03 / ease, surface[1] + depth / ease * high
    return low <= thing[3] <= min(deep, surface[3])


def on_table(thing: NormBox, table: NormBox, ease: float) -> bool:
    """On a table: its top takes the upper two thirds of its box, or all of it when the picture's edge cuts it off."""
    cut = table[3] >= _CUT - 0.02 and inside(thing, table) >= 0.9
    return on_surface(thing, table, ease, 1.0 if cut else 0.66)


def on_seat(thing: NormBox, seat: NormBox, ease: float) -> bool:
    """On a sofa, bed, chair or bench: the seat is below the back, so the bottom comes deeper."""
    return on_surface(thing, seat, ease, 0.8) and inside(thing, seat) >= 0.6 * ease


def with_person(person: NormBox, thing: NormBox, ease: float) -> bool:
    """Nearly all of it inside the person's box, and much smaller than that."""
    return area(thing) > 0 and inside(thing, person) >= 0.8 * ease and area(thing) <= 0.5 / ease * area(person)


def with_ridden(person: NormBox, ridden: NormBox, ease: float) -> bool:
    """A good part of the person is over it, or it over the person, on the same ground."""
    close = max(inside(person, ridden), inside(ridden, person)) >= 0.35 * ease
    return close and abs(person[3] - ridden[3]) <= 0.35 / ease * (person[3] - person[1])


def at_hands(person: NormBox, thing: NormBox) -> bool:
    """The thing's middle is between the chest and the hips of a standing person's box."""
    high = person[3] - person[1]
    return high > 0 and 0.25 <= (centre(thing)[1] - person[1]) / high <= 0.7


def next_to(one: NormBox, other: NormBox, ease: float) -> bool:
    """Side by side: little overlap, a small gap, and on one level."""
    wide, other_wide = one[2] - one[0], other[2] - other[0]
    high, other_high = one[3] - one[1], other[3] - other[1]
    if min(wide, other_wide, high, other_high) <= 0:
        return False
    across = _shared(one[0], one[2], other[0], other[2])
    level = abs(one[3] - other[3]) <= 0.2 / ease * max(high, other_high)
    down = _shared(one[1], one[3], other[1], other[3]) >= 0.5 * ease * min(high, other_high)
    return level and down and -0.3 / ease * min(wide, other_wide) <= across <= 0.35 / ease * min(wide, other_wide)


def people_next(one: NormBox, other: NormBox, ease: float) -> bool:
    """Two people side by side are of similar height in the picture; otherwise one is farther away."""
    high, other_high = one[3] - one[1], other[3] - other[1]
    return next_to(one, other, ease) and min(high, other_high) >= 0.6 * ease * max(high, other_high)


def in_front(person: NormBox, thing: NormBox, ease: float) -> bool:
    """Over it for most of the width and standing nearer on the same ground; both must be seen to the ground."""
    if max(person[3], thing[3]) >= _CUT or thing[3] <= thing[1]:
        return False
    across = _shared(person[0], person[2], thing[0], thing[2])
    narrower = min(person[2] - person[0], thing[2] - thing[0])
    covers = _shared(person[1], person[3], thing[1], thing[3]) >= 0.4 * ease * min(
        thing[3] - thing[1], person[3] - person[1]
    )
    return narrower > 0 and across >= 0.7 * ease * narrower and covers and person[3] >= thing[3] + 0.02 * ease


def spans(frames: Sequence[tuple[float, bool, bool]]) -> list[tuple[float, float, int]]:
    """When a relation holds, with hysteresis.

    Args:
        frames: time, shows it clearly, shows it loosely; of the frames in which both are seen, in order.

    Returns:
        First and last time of each stretch, and how many frames show it there.
    """
    need = min(2, len(frames))
    found: list[tuple[float, float, int]] = []
    start = end = 0.0
    shown = clear_run = miss_run = 0
    for position, (at, clearly, loosely) in enumerate(frames):
        if not shown:
            clear_run = clear_run + 1 if clearly else 0
            if clear_run >= need:
                start, end, shown, miss_run = frames[position - clear_run + 1][0], at, clear_run, 0
        elif loosely:
            end, shown, miss_run = at, shown + 1, 0
        else:
            miss_run += 1
            if miss_run >= 2:
                found.append((start, end, shown))
                shown = clear_run = 0
    if shown:
        found.append((start, end, shown))
    return found


def relations(people: Sequence[Track], things: Sequence[Track]) -> tuple[Relation, ...]:
    """All that the boxes show, in order of time.

    A thing has at most one surface and one person; a surface goes before a person, unless the thing is carried.
    """
    found: list[Relation] = []
    placed: set[str] = set()
    carried: set[str] = set()
    for thing in things:
        owner = _best([relation for person in people if (relation := _belonging(person, thing))], thing)
        surface = _best([relation for other in things if (relation := _standing(thing, other))], thing)
        if owner is not None and (surface is None or owner.tie is Tie.HOLDING):
            found.append(owner)
            carried.add(thing.anchor)
        elif surface is not None:
            found.append(surface)
            placed.add(thing.anchor)
    free = [thing for thing in things if thing.anchor not in placed | carried]
    for index, person in enumerate(people):
        for other in people[index + 1 :]:
            _add(found, Tie.NEXT, person, other, people_next)
        for thing in free:
            if thing.label == TABLE:
                _add(found, Tie.AT, person, thing, at_table)
            elif (
                not (thing.label in _FRONTED and _add(found, Tie.FRONT, person, thing, in_front))
                and thing.label in _STANDING
            ):
                _add(found, Tie.NEXT, person, thing, next_to)
    return tuple(sorted(found, key=lambda relation: (relation.start, relation.one.start)))


def _add(found: list[Relation], tie: Tie, one: Track, other: Track, rule: Rule) -> bool:
    relation = _relate(tie, one, other, rule)
    if relation is not None:
        found.append(relation)
    return relation is not None


def _relate(tie: Tie, one: Track, other: Track, rule: Rule, least: float = 0.0) -> Relation | None:
    boxes = dict(other.boxes)
    pairs = [(at, box, boxes[at]) for at, box in one.boxes if at in boxes]
    held = spans([(at, rule(mine, its, 1.0), rule(mine, its, 0.7)) for at, mine, its in pairs])
    if not held or sum(count for _, _, count in held) < least * len(pairs):
        return None
    return Relation(tie, one, other, held[0][0], held[-1][1])


def _standing(thing: Track, surface: Track) -> Relation | None:
    if surface.label == TABLE and thing.label in _ON_TABLE:
        return _relate(Tie.ON, thing, surface, on_table, 0.5)
    if surface.label in _SEATS and thing.label in _ON_SEAT:
        return _relate(Tie.ON, thing, surface, on_seat, 0.5)
    return None


def _belonging(person: Track, thing: Track) -> Relation | None:
    if thing.label in _RIDDEN:
        return _relate(Tie.WITH, person, thing, with_ridden, 0.6)
    if thing.label not in _WITH:
        return None
    relation = _relate(Tie.WITH, person, thing, with_person, 0.6)
    if relation is not None and thing.label in _CARRIED and _carried_along(person, thing):
        return Relation(Tie.HOLDING, person, thing, relation.start, relation.end)
    return relation


def _carried_along(person: Track, thing: Track) -> bool:
    """Whether it is certainly in the hands: at their height in nearly all of at least four frames, and going along.

    A thing that stands still may stand on something that is not seen; one that follows the person's path does not. Bags
    and clothes follow, too, without a hand, so they are not held.
    """
    if thing.label in BAGS or thing.label == "tie":
        return False
    boxes = dict(thing.boxes)
    pairs = [(mine, boxes[at]) for at, mine in person.boxes if at in boxes]
    if len(pairs) < 4 or sum(at_hands(mine, its) for mine, its in pairs) < 0.8 * len(pairs):
        return False
    path = [centre(mine)[0] for mine, _ in pairs]
    gaps = [centre(its)[0] - centre(mine)[0] for mine, its in pairs]
    return max(path) - min(path) >= 0.15 and max(gaps) - min(gaps) <= 0.3 * (max(path) - min(path))


def _best(candidates: Sequence[Relation], thing: Track) -> Relation | None:
    """The closest of several: the smallest counterpart, for the larger ones reach over more."""

    def size(relation: Relation) -> float:
        other = relation.one if relation.other is thing else relation.other
        return max((area(box) for _, box in other.boxes), default=0.0)

    return min(candidates, key=size, default=None)
