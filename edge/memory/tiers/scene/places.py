"""What kind of place a camera looks at, from the things that are seen there, the words about it and its name. Pure.

Each kind of evidence multiplies the odds of a place: a thing that hardly stands anywhere else ("telling": an oven) by 20, one
that is more often there than elsewhere ("usual": a bowl) by 3, and one that is there in few of the moments by less. The odds
are a plain statement of what belongs where, and are fitted to nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from edge.memory.tiers.scene.days import PLACE, SEEN, TOLD
from edge.memory.tiers.timeline.extract import places_in

_TELLING: Final = math.log(20.0)
_USUAL: Final = math.log(3.0)
_NAMED: Final = math.log(50.0)  # the owner calls the camera so
_SPOKEN: Final = math.log(8.0)  # a description says where it is
_UNKNOWN: Final = math.log(6.0)  # odds of a place that is not in the table
_OFTEN: Final = 0.1  # share of the moments from which evidence counts whole
_GROUNDS: Final = 5  # that are named

# place: (things that tell it, things that are usual there), in the classes of COCO.
_PLACES: Final[Mapping[str, tuple[str, str]]] = {
    "kitchen": ("oven, refrigerator, microwave, toaster", "sink, bowl, knife, spoon, fork, cup, bottle"),
    "bathroom": ("toilet, toothbrush, hair drier", "sink"),
    "bedroom": ("bed", "teddy bear, clock"),
    "living room": ("couch, remote", "tv, potted plant, vase, book"),
    "dining room": ("", "dining table, chair, wine glass, fork, knife, cup, bowl"),
    "office": ("keyboard, mouse", "laptop, chair, tv, book"),
    "hall": ("", "umbrella, handbag, backpack, suitcase"),
    "street": (
        "traffic light, stop sign, parking meter, fire hydrant, bus, truck",
        "car, motorcycle, bicycle",
    ),
    "park": ("frisbee, kite", "bench, bird, dog"),
    "station": ("train", "suitcase, bench"),
    "airport": ("airplane", "suitcase"),
    "water": ("boat, surfboard", "bird"),
    "snow": ("skis, snowboard", ""),
    "sports ground": ("baseball bat, baseball glove, tennis racket", "sports ball, skateboard"),
    "farm": ("cow, sheep, horse", ""),
}
# Words for places that mean one of the above.
_WORDS: Final[Mapping[str, str]] = {
    "toilet": "bathroom", "hallway": "hall", "corridor": "hall", "lobby": "hall", "entrance": "hall", "study": "office",
    "road": "street", "sidewalk": "street", "river": "water", "beach": "water", "garden": "garden", "yard": "garden",
    "backyard": "garden", "courtyard": "garden", "cafe": "restaurant", "cafeteria": "restaurant", "canteen": "restaurant",
    "bar": "restaurant", "store": "shop", "supermarket": "shop", "market": "shop", "stairs": "staircase", "platform": "station",
    "stadium": "sports ground", "field": "field",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of place."""

    kind: str | None  # "kitchen"; None: nothing tells
    confidence: float  # 0..1
    grounds: tuple[str, ...] = ()  # what it rests on, the most telling first: "oven", "the word “kitchen”", "its name"


def _odds() -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for place, lists in _PLACES.items():
        for things, odds in zip(lists, (_TELLING, _USUAL), strict=True):
            for thing in filter(None, things.split(", ")):
                table.setdefault(thing, {})[place] = odds
    return table


_ODDS: Final = _odds()


def place_of(counts: Mapping[str, int], moments: int, name: str = "") -> Place:
    """The most likely kind of place.

    Args:
        counts: in how many moments each thing was seen (`seen:oven`), told of (`told:oven`), each place spoken of
            (`place:kitchen`).
        moments: how many there are.
        name: of the camera, in the owner's words; "" where the camera moves about.
    """
    scores: dict[str, float] = {}
    grounds: dict[str, list[tuple[float, str]]] = {}

    def weigh(place: str, odds: float, ground: str) -> None:
        scores[place] = scores.get(place, 0.0) + odds
        grounds.setdefault(place, []).append((odds, ground))

    for what, count in sorted(counts.items()):
        part = min(1.0, count / (_OFTEN * moments)) if moments else 0.0
        kind, _, word = what.partition(":")
        if f"{kind}:" == SEEN:
            for place, odds in _ODDS.get(word, {}).items():
                weigh(place, odds * part, word)
        elif f"{kind}:" == TOLD and f"{SEEN}{word}" not in counts:
            for place, odds in _ODDS.get(word, {}).items():
                weigh(place, 0.5 * odds * part, f"the word “{word}”")
        elif f"{kind}:" == PLACE:
            weigh(_WORDS.get(word, word), _SPOKEN * part, f"the word “{word}”")
    for place in named_places(name):
        weigh(place, _NAMED, "its name")
    if not scores:
        return Place(None, 0.0)
    best = max(scores, key=lambda place: (scores[place], place))
    top = max(scores[best], _UNKNOWN)
    total = math.exp(_UNKNOWN - top) + sum(math.exp(score - top) for score in scores.values())
    confidence = math.exp(scores[best] - top) / total
    told = sorted(grounds[best], key=lambda one: (-one[0], one[1]))
    return Place(best, confidence, tuple(dict.fromkeys(ground for _, ground in told))[:_GROUNDS])


def named_places(name: str) -> tuple[str, ...]:
    """The kinds of places that the name of a camera speaks of: "Kitchen 2", "living_room_cam"."""
    words = re.sub(r"[\W_\d]+", " ", name)
    return tuple(sorted({_WORDS.get(place, place) for place in places_in([words])}))
