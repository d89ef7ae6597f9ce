"""Hours of a household as scene memory counts them, from habits with chance in them, and the oddities put into them.

Habits are probabilities per hour and kind of day, written down here before anything was measured with them. On top come what
every household and every detector brings: people who get up earlier or later, visitors, things that are taken for something
else, days on which a camera was off for hours, and a habit that changes half way.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from edge.memory.tiers.scene.days import HOURS, MOTION, PERSON, SEEN, SPEECH, Cell, Hour, weekday

DAY_S = 86_400.0
BEGIN = 20_089  # days since 1970-01-01: a Wednesday
THINGS = ("bicycle", "suitcase", "skateboard", "umbrella", "surfboard", "horse", "bear", "kite", "boat", "motorcycle")
MISTAKES = ("bench", "bird", "clock", "vase", "toilet", "kite", "sports ball", "remote", "teddy bear", "train")

# camera: (hours, probability) by kind of day: what happens there.
Habit = tuple[str, range, float, float, float]  # what, hours, on working days, at weekends, of it at once on average
HABITS: Mapping[str, tuple[Habit, ...]] = {
    "kitchen": (
        (PERSON, range(7, 9), 0.97, 0.45, 1.6), (PERSON, range(9, 11), 0.06, 0.95, 1.8), (PERSON, range(12, 14), 0.08, 0.85, 1.5),
        (PERSON, range(18, 21), 0.96, 0.92, 2.0), (PERSON, range(21, 23), 0.5, 0.5, 1.2), (f"{SEEN}dog", range(7, 10), 0.7, 0.7, 1.0),
        (f"{SEEN}dog", range(17, 21), 0.6, 0.6, 1.0),
    ),
    "hall": (
        (PERSON, range(8, 9), 0.96, 0.3, 1.5), (PERSON, range(17, 19), 0.95, 0.5, 1.3), (PERSON, range(9, 17), 0.05, 0.2, 1.0),
        (f"{SEEN}dog", range(6, 8), 0.9, 0.8, 1.0), (f"{SEEN}dog", range(20, 22), 0.9, 0.9, 1.0),
    ),
    "office": (
        (PERSON, range(9, 12), 0.9, 0.05, 1.0), (PERSON, range(13, 17), 0.88, 0.05, 1.0), (f"{SEEN}cat", range(10, 16), 0.25, 0.1, 1.0),
    ),
    "street": (
        (PERSON, range(7, 22), 0.93, 0.85, 2.0), (PERSON, range(22, 24), 0.4, 0.6, 1.2), (PERSON, range(6), 0.12, 0.2, 1.0),
        (f"{SEEN}car", range(6, 23), 0.95, 0.9, 2.5), (f"{SEEN}car", range(6), 0.3, 0.3, 1.0),
        (f"{SEEN}bicycle", range(7, 20), 0.6, 0.5, 1.2), (f"{SEEN}dog", range(7, 22), 0.3, 0.4, 1.0),
    ),
    "glasses": ((PERSON, range(9, 20), 0.75, 0.75, 2.0),),
}  # fmt: skip
STANDING = {
    "kitchen": ("oven", "refrigerator", "sink", "chair", "bowl"), "hall": ("umbrella", "chair"),
    "office": ("laptop", "keyboard", "chair"), "street": ("traffic light",), "glasses": (),
}  # fmt: skip
WORN = range(9, 20)  # hours in which the glasses watch
SEEN_ABROAD = ("car", "bus", "bicycle", "dog", "cat", "bench", "chair", "cup", "bottle", "tv", "laptop", "couch", "bed", "book",
               "truck", "boat", "bird", "umbrella", "handbag", "backpack", "clock", "train", "pizza", "cake", "skateboard")  # fmt: skip


@dataclass(frozen=True)
class Odd:
    """Something that was put into a life."""

    camera: str
    day: int
    hours: range
    what: str
    kind: str


@dataclass
class Life:
    """What the cameras counted, and what was unusual."""

    slots: dict[str, dict[int, Hour]] = field(default_factory=dict)
    odd: list[Odd] = field(default_factory=list)
    days: int = 0


def live(days: int, seed: int, *, mistakes: float = 0.05, quiet_days: int = 28) -> Life:
    """A life of so many days; nothing is put into the first `quiet_days`."""
    chance = random.Random(seed)
    life = Life(days=days)
    number = 0
    for camera in HABITS:
        life.slots[camera] = {}
        for day in range(BEGIN, BEGIN + days):
            for hour, counts in _day(camera, day, day - BEGIN >= days // 2, chance, mistakes).items():
                cells = {}
                for what, most in counts.items():
                    number += 1
                    cells[what] = Cell(1 + (what == PERSON) * 3, most, number, (day * HOURS + hour) * 3600.0 + 600.0)
                life.slots[camera][day * HOURS + hour] = Hour(3600.0, cells, 4 * bool(cells))
    for day in range(BEGIN + quiet_days, BEGIN + days):
        for kind in ("night", "new", "crowd", "away"):
            if chance.random() < 0.02:
                _disturb(life, kind, day, chance)
    return life


def _day(camera: str, day: int, later: bool, chance: random.Random, mistakes: float) -> dict[int, dict[str, int]]:
    weekend = weekday(day) >= 5
    watched = set(WORN) if camera == "glasses" else set(range(HOURS))
    if chance.random() < 0.03:  # switched off for hours
        off = chance.randrange(20)
        watched -= set(range(off, off + 4))
    hours: dict[int, dict[str, int]] = {hour: {} for hour in watched}
    for what, when, working, free, usual in HABITS[camera]:
        early = chance.choice((-1, 0, 0, 0, 0, 1)) if len(when) > 1 else 0
        probability = free if weekend else working
        if later and camera == "office":  # half way, work begins two hours later
            early += 1
        there = chance.random() < probability
        for hour in when:
            # A habit is kept or not on a day; what has no hours of its own comes and goes.
            so = there and chance.random() < 0.92 if probability > 0.8 else chance.random() < probability
            if so and hour + early in hours:
                most = 1 + sum(chance.random() < (usual - 1) / 3 for _ in range(3))
                hours[hour + early][what] = max(most, hours[hour + early].get(what, 0))
    for counts in hours.values():
        if PERSON in counts:
            counts[MOTION] = 1
            if counts[PERSON] > 1 and chance.random() < 0.7:
                counts[SPEECH] = 1
        if counts:
            for thing in STANDING[camera]:
                if chance.random() < 0.8:
                    counts[f"{SEEN}{thing}"] = 1
        if camera == "glasses":
            for thing in chance.sample(SEEN_ABROAD, k=3):
                counts[f"{SEEN}{thing}"] = 1
    if hours and chance.random() < mistakes:
        hours[chance.choice(sorted(hours))][f"{SEEN}{chance.choice(MISTAKES)}"] = 1
    return hours


def _disturb(life: Life, kind: str, day: int, chance: random.Random) -> None:
    if kind == "night":
        camera, hour = chance.choice((("kitchen", 3), ("office", 2), ("hall", 3), ("kitchen", 2)))
        if _put(life, camera, day, hour, {PERSON: 1, MOTION: 1}):
            life.odd.append(Odd(camera, day, range(hour, hour + 1), PERSON, kind))
    elif kind == "new":
        camera = chance.choice(("kitchen", "hall", "office"))
        thing = f"{SEEN}{chance.choice(THINGS)}"
        known = any(thing in hour.cells for slot, hour in life.slots[camera].items() if slot < day * HOURS)
        hour = chance.choice((8, 14, 18))
        if not known and _put(life, camera, day, hour, {thing: 1}):
            life.odd.append(Odd(camera, day, range(hour, hour + 1), thing, kind))
    elif kind == "crowd":
        hour = chance.choice((19, 20))
        if _put(life, "kitchen", day, hour, {PERSON: chance.randint(7, 11), SPEECH: 1, MOTION: 1}):
            life.odd.append(Odd("kitchen", day, range(hour, hour + 1), PERSON, kind))
    else:
        evening = range(day * HOURS + 15, day * HOURS + 24)
        kitchen = life.slots["kitchen"]
        if all(slot in kitchen for slot in evening):
            for slot in evening:
                cells = {
                    what: cell for what, cell in kitchen[slot].cells.items() if what not in (PERSON, SPEECH, MOTION)
                }
                kitchen[slot] = Hour(3600.0, cells, 0)
            life.odd = [
                one for one in life.odd if not (one.camera == "kitchen" and one.day == day and one.kind == "crowd")
            ]
            life.odd.append(Odd("kitchen", day, range(18, 21), PERSON, kind))


def _put(life: Life, camera: str, day: int, hour: int, counts: Mapping[str, int]) -> bool:
    slot = day * HOURS + hour
    before = life.slots[camera].get(slot)
    if before is None:
        return False
    cells = dict(before.cells)
    for what, most in counts.items():
        cells[what] = Cell(2, most, 10**9 + slot, slot * 3600.0 + 720.0)
    life.slots[camera][slot] = Hour(before.watched, cells, before.traces + 2)
    return True
