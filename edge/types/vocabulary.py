"""The words for what detectors see: one everyday word a class, the words people ask with, and how to count them.

The describer writes with `everyday`, and recall leads from a word of a question back to classes with `labels_for`, so
that a question about a "couch" finds a text that says "sofa". Words stand here that people use for the thing that the
detector calls by its class, and true groups ("vehicle" covers a bus).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Noun:
    """How a class is spoken of."""

    word: str  # everyday singular
    plural: str
    also: tuple[str, ...] = ()  # further words for exactly this
    one: str = ""  # how one of it is called with its article, where "a" or "an" does not do
    many: str = ""  # what follows a number, where the plural does not do


def _noun(word: str, *also: str, plural: str = "", one: str = "", many: str = "") -> Noun:
    return Noun(word, plural or pluralise(word), also, one, many)


def pluralise(word: str) -> str:
    """The regular English plural of the last word of `word`."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return word + "es"
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "ies"
    return word + "s"


# In the order of the classes of COCO (Lin et al. 2014, the 80 of the detection task): detectors give the position.
_NOUNS: dict[str, Noun] = {
    "person": _noun("person", "human", "man", "woman", "someone", "somebody", plural="people"),
    "bicycle": _noun("bicycle", "bike", "cycle"),
    "car": _noun("car", "automobile"),
    "motorcycle": _noun("motorcycle", "motorbike"),
    "airplane": _noun("airplane", "plane", "aeroplane", "aircraft"),
    "bus": _noun("bus", "coach"),
    "train": _noun("train"),
    "truck": _noun("truck", "lorry"),
    "boat": _noun("boat", "ship"),
    "traffic light": _noun("traffic light", "traffic signal"),
    "fire hydrant": _noun("fire hydrant", "hydrant"),
    "stop sign": _noun("stop sign"),
    "parking meter": _noun("parking meter"),
    "bench": _noun("bench"),
    "bird": _noun("bird"),
    "cat": _noun("cat", "kitten", "kitty"),
    "dog": _noun("dog", "puppy"),
    "horse": _noun("horse", "pony"),
    "sheep": _noun("sheep", "lamb", plural="sheep"),
    "cow": _noun("cow"),
    "elephant": _noun("elephant"),
    "bear": _noun("bear"),
    "zebra": _noun("zebra"),
    "giraffe": _noun("giraffe"),
    "backpack": _noun("backpack", "rucksack"),
    "umbrella": _noun("umbrella", "parasol"),
    "handbag": _noun("handbag", "purse"),
    "tie": _noun("tie", "necktie"),
    "suitcase": _noun("suitcase", "luggage"),
    "frisbee": _noun("frisbee"),
    "skis": _noun("skis", "ski", plural="skis", one="a pair of skis", many="pairs of skis"),
    "snowboard": _noun("snowboard"),
    "sports ball": _noun("ball", "football", "basketball", "tennis ball"),
    "kite": _noun("kite"),
    "baseball bat": _noun("baseball bat"),
    "baseball glove": _noun("baseball glove", "baseball mitt"),
    "skateboard": _noun("skateboard"),
    "surfboard": _noun("surfboard"),
    "tennis racket": _noun("tennis racket"),
    "bottle": _noun("bottle"),
    "wine glass": _noun("wine glass", "wineglass"),
    "cup": _noun("cup", "mug"),
    "fork": _noun("fork"),
    "knife": _noun("knife", plural="knives"),
    "spoon": _noun("spoon"),
    "bowl": _noun("bowl"),
    "banana": _noun("banana"),
    "apple": _noun("apple"),
    "sandwich": _noun("sandwich"),
    "orange": _noun("orange"),
    "broccoli": _noun("broccoli", plural="broccoli", one="some broccoli", many="pieces of broccoli"),
    "carrot": _noun("carrot"),
    "hot dog": _noun("hot dog", "hotdog"),
    "pizza": _noun("pizza"),
    "donut": _noun("donut", "doughnut"),
    "cake": _noun("cake"),
    "chair": _noun("chair"),
    "couch": _noun("sofa", "couch", "settee"),
    "potted plant": _noun("potted plant", "plant", "pot plant", "houseplant"),
    "bed": _noun("bed"),
    "dining table": _noun("table", "dining table", "desk"),
    "toilet": _noun("toilet"),
    "tv": _noun("television", "tv", "telly", "monitor", "tv screen"),
    "laptop": _noun("laptop", "notebook computer"),
    "mouse": _noun("computer mouse", plural="computer mice"),
    "remote": _noun("remote control", "remote"),
    "keyboard": _noun("keyboard"),
    "cell phone": _noun("phone", "cell phone", "mobile phone", "mobile", "smartphone", "cellphone", "telephone"),
    "microwave": _noun("microwave", "microwave oven"),
    "oven": _noun("oven", "stove", "cooker"),
    "toaster": _noun("toaster"),
    "sink": _noun("sink", "washbasin"),
    "refrigerator": _noun("fridge", "refrigerator"),
    "book": _noun("book"),
    "clock": _noun("clock"),
    "vase": _noun("vase"),
    "scissors": _noun("scissors", plural="scissors", one="a pair of scissors", many="pairs of scissors"),
    "teddy bear": _noun("teddy bear", "teddy"),
    "hair drier": _noun("hair dryer", "hair drier", "hairdryer"),
    "toothbrush": _noun("toothbrush"),
}

COCO_LABELS: tuple[str, ...] = tuple(_NOUNS)

ANIMALS = frozenset({"bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"})
VEHICLES = frozenset({"bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat"})
FURNITURE = frozenset({"chair", "couch", "bed", "dining table", "bench"})
FOOD = frozenset({"banana", "apple", "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake"})
BAGS = frozenset({"backpack", "handbag", "suitcase"})

_GROUPS: dict[str, frozenset[str]] = {
    "animal": ANIMALS,
    "pet": frozenset({"cat", "dog"}),
    "vehicle": VEHICLES,
    "furniture": FURNITURE,
    "food": FOOD,
    "fruit": frozenset({"banana", "apple", "orange"}),
    "vegetable": frozenset({"broccoli", "carrot"}),
    "bag": BAGS,
    "cutlery": frozenset({"fork", "knife", "spoon"}),
    "computer": frozenset({"laptop"}),
    "appliance": frozenset({"microwave", "oven", "toaster", "refrigerator"}),
    "seat": frozenset({"chair", "couch", "bench"}),
}

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def _index() -> dict[str, tuple[str, ...]]:
    index: dict[str, tuple[str, ...]] = {}
    for label, noun in _NOUNS.items():
        for word in (label, noun.word, noun.plural, *noun.also, *(pluralise(other) for other in noun.also)):
            if label not in index.get(word, ()):
                index[word] = (*index.get(word, ()), label)
    index |= {"men": ("person",), "women": ("person",), "mice": ("mouse",)}
    for group, members in _GROUPS.items():
        ordered = tuple(label for label in COCO_LABELS if label in members)
        for word in (group, pluralise(group)):
            index.setdefault(word, ordered)
    return index


_INDEX = _index()


def labels_for(word: str) -> tuple[str, ...]:
    """The detector classes that a word of a question means, in the order of COCO.

    Args:
        word: a noun in singular or plural ("sofa", "cell phones", "animals"), in any case.

    Returns:
        The classes; empty where no class is meant.
    """
    return _INDEX.get(" ".join(word.lower().split()), ())


def everyday(label: str) -> str:
    """The everyday word for a detector class; a class that is not in the table is its own word."""
    noun = _NOUNS.get(label)
    return noun.word if noun else label


def plural(label: str) -> str:
    """The plural of the everyday word for a detector class."""
    noun = _NOUNS.get(label)
    return noun.plural if noun else pluralise(label)


def article(word: str) -> str:
    """The indefinite article that the sound of a word wants."""
    sounds_like_consonant = re.match(r"(uni|use|eu|one|ufo|ut[ie])", word, re.IGNORECASE)
    return "an" if word[:1].lower() in "aeiou" and word and not sounds_like_consonant else "a"


def number(count: int) -> str:
    """A number as it stands in a sentence: in words up to twelve."""
    return _NUMBERS[count] if 0 <= count < len(_NUMBERS) else str(count)


def counted(label: str, count: int) -> str:
    """So many of a class: "a cup", "two cups", "a pair of scissors"."""
    noun = _NOUNS.get(label)
    if count == 1:
        return noun.one if noun and noun.one else f"{article(everyday(label))} {everyday(label)}"
    return f"{number(count)} {noun.many if noun and noun.many else plural(label)}"


# What a moment is said to show in which nothing was recognised: with a picture of it, and without one.
NOTHING_IN_VIEW: Final = "A view with nothing recognised"
NOTHING_AT_ALL: Final = "Nothing was recognised"


def tells_nothing(text: str) -> bool:
    """Whether the text of a moment says no more than that nothing was recognised."""
    return text.rstrip(". ") in {NOTHING_IN_VIEW, NOTHING_AT_ALL, ""}
