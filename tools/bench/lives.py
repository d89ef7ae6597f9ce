"""Whether what is known of people and things at the end of their scripted lives is what is so.

`python -m tools.bench.lives [--seeds N] [--days N] [--words dev|held|both]`. A household is lived by code, day by day, in front of
three cameras: people have places, hours, weekdays and company; they say where they work and live, what they like, whom they
have; some of it changes half way, jobs and homes and tastes, habits, and where things lie; things get lost. Between, people say
what is no fact about them, come at other hours, and are not seen at all. What is derived at the end is compared with the script:

* *precision*: of the facts that hold now, those that are so in the script;
* *recall*: of what is so in the script and was said, or was a habit to the end, what is known;
* *contradictions*: facts that hold now in one slot in which only one can;
* *protected*: names that are not what the owner gave, or not of importance 1.

Sentences come from `lives_words`: those of `held` were not looked at while the rules were written. Nothing here depends on
the rules: a truth is what was scripted.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from edge.consolidate import Worker, build_handlers
from edge.identity import name_entity
from edge.memory import Store
from edge.memory.tiers.facts import reads
from edge.memory.tiers.facts.said import norm
from edge.types.drafts import CommitDraft, NewEntity, ObservationDraft, TraceDraft, UtteranceDraft
from edge.types.media import Mode
from edge.types.records import EntityKind, LineDraft, mention
from edge.types.vocabulary import article
from tools.bench import lives_words as words

BEGIN = 1_735_689_600.0  # 2025-01-01T00:00Z, a Wednesday
DAY_S, HOUR_S = 86_400.0, 3600.0
CAMERAS = ("kitchen", "hall", "office")
SURFACES = ("a table", "a shelf", "a chair", "a desk", "a windowsill")
THINGS = ("cup", "bottle", "book", "backpack", "umbrella", "laptop")
NAMES = ("Anna", "Tom", "Priya", "Jun", "Sofia", "Omar", "Kate", "Viktor")
SINGLE = ("work", "job", "home", "origin", "birthday")
KEPT = 0.9  # share of days on which a habit is kept
SETTLED = 28  # days before the end after which nothing changes any more: a habit takes weeks to be one

Truth = tuple[str, str]  # kind of fact, what it says


@dataclass
class Person:
    """Somebody's script."""

    name: str
    place: str = ""
    hour: int = 8
    weekdays: tuple[int, ...] | None = None  # None: any day
    partner: int | None = None
    said: dict[str, str] = field(default_factory=dict)  # of one kind, one value
    likes: set[str] = field(default_factory=set)
    dislikes: set[str] = field(default_factory=set)
    queue: list[tuple[int, str, str, str]] = field(default_factory=list)  # day, kind of sentence, value, old value
    changed: dict[int, Mapping[str, object]] = field(default_factory=dict)  # from that day on


@dataclass
class Thing:
    """A thing's script."""

    label: str
    where: tuple[str, str]  # camera, surface
    moves: tuple[int, tuple[str, str]] | None = None  # from that day on it lies there
    lost: int | None = None  # from that day on it is seen no more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--days", type=int, default=150)
    parser.add_argument("--words", choices=("dev", "held", "both"), default="held")
    parser.add_argument("--show", action="store_true", help="print what is wrong and what is missing")
    asked = parser.parse_args()
    table = Table(
        "seed", "moments", "true", "known", "precision", "recall", "contradictions", "protected", "s",
        title=f"facts after {asked.days} days of {len(NAMES)} people and {len(THINGS)} things, sentences: {asked.words}",
        box=box.SIMPLE,
    )  # fmt: skip
    total: Counter[str] = Counter()
    missed: dict[str, Counter[str]] = defaultdict(Counter)
    for seed in range(1, asked.seeds + 1):
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            scored, wrong, lacking, moments = live(Path(folder) / "home", seed, asked.days, asked.words)
        took = time.perf_counter() - began
        total.update(scored)
        for what, group in (("wrong", wrong), ("lacking", lacking)):
            for _, kind, _ in group:
                missed[kind][what] += 1
        table.add_row(str(seed), str(moments), *_columns(scored), f"{took:.0f}")
        if asked.show:
            Console().print({"wrong": sorted(wrong), "lacking": sorted(lacking)})
    table.add_row("all", "", *_columns(total), "", style="bold")
    console = Console(width=110)
    console.print(table)
    console.print("by kind (wrong, lacking):", {kind: dict(one) for kind, one in sorted(missed.items())})


def _columns(scored: Mapping[str, int]) -> list[str]:
    right = scored["right"]
    return [
        str(scored["true"]), str(scored["known"]), f"{right / max(1, scored['known']):.3f}",
        f"{scored['found'] / max(1, scored['true']):.3f}", str(scored["contradictions"]), str(scored["protected"]),
    ]  # fmt: skip


def live(home: Path, seed: int, days: int, which: str) -> tuple[Counter[str], list, list, int]:  # type: ignore[type-arg]
    """One household from the first to the last day: scores, what is known and not so, what is so and not known."""
    chance = random.Random(seed)
    sets = {"dev": (words.DEV,), "held": (words.HELD,), "both": (words.DEV, words.HELD)}[which]
    people = [script(chance, number, days) for number in range(len(NAMES))]
    for number, one in enumerate(people):  # those who belong together keep the same hours in the same place
        if one.partner is not None and one.partner < number:
            other = people[one.partner]
            one.place, one.hour, one.weekdays, one.changed = other.place, other.hour, other.weekdays, other.changed
    things = [thing(chance, label, days) for label in THINGS]
    moments = 0
    with Store.open(home) as store:
        ids = _meet(store)
        worker = Worker(store, build_handlers(store))
        for day in range(days):
            moments += a_day(store, chance, ids, people, things, day, sets)
            if day % 7 == 6:  # as a device that is busy all day does it: late, and many at once
                worker.drain()
        worker.drain()
        scored, wrong, lacking = score(store, ids, people, things)
    return scored, wrong, lacking, moments


# -- the script -------------------------------------------------------------------------------------------------------


def script(chance: random.Random, number: int, days: int) -> Person:
    """Who somebody is, and what changes."""
    one = Person(NAMES[number], chance.choice(CAMERAS), chance.randrange(7, 20))
    if chance.random() < 0.25:
        one.weekdays = tuple(sorted(chance.sample(range(7), 2)))
    one.partner = number ^ 1 if number // 2 % 2 == 0 else None  # the first and the third pair are pairs
    last = days - SETTLED - 1
    single = {
        "work": words.WORKPLACES, "job": words.JOBS, "home": words.HOMES, "origin": words.HOMES,
        "birthday": words.BIRTHDAYS, "favourite": words.COLOURS, "sister": words.RELATIVES, "brother": words.RELATIVES,
    }  # fmt: skip
    for kind, values in single.items():
        if chance.random() < 0.7:
            value = chance.choice(values)
            one.queue.append((chance.randrange(30), kind, value, ""))
            if kind in ("work", "job", "home") and chance.random() < 0.6:
                new = chance.choice([other for other in values if other != value])
                one.queue.append((chance.randrange(40, last), f"{kind}_new", new, value))
    tastes = chance.sample(words.TASTES, 4)
    for taste in tastes[:2]:
        one.queue.append((chance.randrange(30), "likes", taste, ""))
    one.queue.append((chance.randrange(30), "dislikes", tastes[2], ""))
    if chance.random() < 0.5:
        one.queue.append((chance.randrange(40, last), "likes_no_more", tastes[0], ""))
    if chance.random() < 0.5:
        one.queue.append((chance.randrange(40, last), "likes", tastes[2], ""))  # a changed mind
    if chance.random() < 0.4:
        one.queue.append((chance.randrange(30), "allergy", chance.choice(words.ALLERGENS), ""))
    if chance.random() < 0.5:  # a new habit
        one.changed[chance.randrange(days // 3, last)] = {
            "place": chance.choice([name for name in CAMERAS if name != one.place]),
            "hour": (one.hour + chance.choice((-5, 5, 6))) % 13 + 7,
        }
    return one


def thing(chance: random.Random, label: str, days: int) -> Thing:
    """Where a thing lies; some move, some get lost."""
    one = Thing(label, (chance.choice(CAMERAS), chance.choice(SURFACES)))
    fate = chance.random()
    when = chance.randrange(days // 3, days - SETTLED - 8)
    if fate < 0.35:
        other = chance.choice([place for place in SURFACES if place != one.where[1]])
        one.moves = (when, (chance.choice(CAMERAS), other))
    elif fate < 0.55:
        one.lost = when
    return one


# -- a day ------------------------------------------------------------------------------------------------------------


def a_day(
    store: Store, chance: random.Random, ids: Sequence[int], people: Sequence[Person], things: Sequence[Thing], day: int,
    sets: Sequence[words.Templates],
) -> int:  # fmt: skip
    """Write the moments of a day; how many."""
    moments: list[tuple[float, str, list[int], list[tuple[int, str]]]] = []
    weekday = (day + 2) % 7  # the first day is a Wednesday
    for number, one in enumerate(people):
        for name, value in one.changed.get(day, {}).items():
            setattr(one, name, value)
        usual = one.weekdays is None or weekday in one.weekdays
        if not usual and chance.random() > 0.05:
            continue
        if usual and chance.random() > KEPT:
            continue
        for _ in range(chance.choice((1, 1, 2))):
            odd = chance.random() > KEPT
            camera = chance.choice(CAMERAS) if odd else one.place
            hour = chance.randrange(7, 23) if odd else one.hour
            who = [number]
            if one.partner is not None and chance.random() < 0.7:
                who.append(one.partner)
            elif chance.random() < 0.1:
                who.append(chance.choice([other for other in range(len(people)) if other != number]))
            moments.append((hour + chance.random(), camera, who, _says(chance, one, number, day, sets)))
    left = [(number, due) for number, one in enumerate(people) for due in one.queue if due[0] == day]
    spoken = {text for _, _, _, lines in moments for _, text in lines}
    for number, due in left:  # who was not seen on that day says it all the same: it is a life, not a schedule
        text = _sentence(chance, sets, due, people[number])
        if text not in spoken:
            moments.append((21 + chance.random(), people[number].place, [], [(number, text)]))
    for number, when, camera, who, lines in [(place, *one) for place, one in enumerate(sorted(moments))]:
        at = BEGIN + day * DAY_S + when * HOUR_S + number
        _commit(store, ids, at, camera, who, lines)
    for place, one in enumerate(things):
        if one.lost is not None and day >= one.lost:
            continue
        where = one.moves[1] if one.moves is not None and day >= one.moves[0] else one.where
        if chance.random() > KEPT:
            where = (chance.choice(CAMERAS), chance.choice(SURFACES))
        at = BEGIN + day * DAY_S + (9 + place) * HOUR_S + chance.random() * HOUR_S
        _commit(store, ids, at, where[0], [], [], (one.label, where[1]))
    return len(moments) + len(things)


def _says(
    chance: random.Random, one: Person, number: int, day: int, sets: Sequence[words.Templates]
) -> list[tuple[int, str]]:
    """What somebody says in a moment: something that is no fact about them, or again what they said before."""
    if chance.random() < 0.4:
        return [(number, _aside(chance))]
    known = [(kind, value) for kind, value in one.said.items()] + [("likes", taste) for taste in sorted(one.likes)]
    if known and chance.random() < 0.15:
        kind, value = chance.choice(known)
        return [(number, _fill(chance, sets, kind, value, ""))]
    return []


def _aside(chance: random.Random) -> str:
    job = chance.choice(words.JOBS)
    return chance.choice(words.ASIDES).format(
        work=chance.choice(words.WORKPLACES), home=chance.choice(words.HOMES), job=job, a=article(job),
        taste=chance.choice(words.TASTES), person=chance.choice(words.RELATIVES),
    )  # fmt: skip


def _sentence(
    chance: random.Random, sets: Sequence[words.Templates], due: tuple[int, str, str, str], one: Person
) -> str:
    """Say what is due, and let it be so from now on."""
    _, kind, value, old = due
    if kind == "likes":
        one.likes.add(value)
        one.dislikes.discard(value)
    elif kind == "dislikes":
        one.dislikes.add(value)
        one.likes.discard(value)
    elif kind == "likes_no_more":
        one.likes.discard(value)
    else:
        one.said[kind.removesuffix("_new")] = value
    return _fill(chance, sets, kind, value, old)


def _fill(chance: random.Random, sets: Sequence[words.Templates], kind: str, value: str, old: str) -> str:
    template = chance.choice([one for group in sets for one in group[kind]])
    return template.format(x=value, old=old, a=article(value), a_old=article(old or "x"))


def _meet(store: Store) -> list[int]:
    """Everybody, named by the owner."""
    new = [NewEntity(-1 - number, EntityKind.PERSON) for number in range(len(NAMES))]
    seen = [_seen(f"a{n}", "person", BEGIN - DAY_S, "Somebody sat.", -1 - n) for n in range(len(NAMES))]
    draft = CommitDraft(
        camera="door", trace=_trace(BEGIN - DAY_S, "People met."), entities=tuple(new), observations=tuple(seen)
    )
    known = dict(store.commit(draft).entities)
    ids = [known[-1 - number] for number in range(len(NAMES))]
    for number, name in enumerate(NAMES):
        name_entity(store, ids[number], name)
    return ids


def _commit(
    store: Store, ids: Sequence[int], at: float, camera: str, who: Sequence[int], lines: Sequence[tuple[int, str]],
    thing: tuple[str, str] | None = None,
) -> None:  # fmt: skip
    seen = [
        _seen(f"a{place}", "person", at, f"{mention(ids[one])} sat.", ids[one])
        for place, one in enumerate(dict.fromkeys(who))
    ]
    if thing is not None:
        text = f"A {thing[0]} was on {thing[1]}, in the middle of the view."
        seen.append(_seen("a9", thing[0], at, text))
    heard = [
        UtteranceDraft(at + place, at + place + 2, text, speaker=ids[one]) for place, (one, text) in enumerate(lines)
    ]
    store.commit(
        CommitDraft(
            camera=camera, trace=_trace(at, "Something went on."), observations=tuple(seen), utterances=tuple(heard)
        )
    )


def _seen(anchor: str, label: str, at: float, text: str, entity: int | None = None) -> ObservationDraft:
    return ObservationDraft(anchor=anchor, label=label, entity=entity, start=at, end=at + 9, text=text, score=0.9)


def _trace(at: float, text: str) -> TraceDraft:
    return TraceDraft(at, at + 20, text, Mode.OFFLINE_QUALITY, None, lines=(LineDraft(at, text),))


# -- the score --------------------------------------------------------------------------------------------------------


def truths(people: Sequence[Person], number: int) -> set[Truth]:
    """What is so of somebody at the end."""
    one = people[number]
    found = {("favourite colour" if kind == "favourite" else kind, norm(value)) for kind, value in one.said.items()}
    found |= {("likes", norm(taste)) for taste in one.likes} | {("dislikes", norm(taste)) for taste in one.dislikes}
    found |= {("place", one.place), ("hours", str(one.hour))}
    if one.weekdays is not None:
        found.add(("weekdays", ",".join(map(str, one.weekdays))))
    if one.partner is not None:
        found.add(("company", people[one.partner].name))
    return found


def score(
    store: Store, ids: Sequence[int], people: Sequence[Person], things: Sequence[Thing]
) -> tuple[Counter[str], list, list]:  # type: ignore[type-arg]
    """Compare what is known with what is so."""
    scored: Counter[str] = Counter()
    wrong: list[tuple[str, str, str]] = []
    lacking: list[tuple[str, str, str]] = []
    names = {ids[number]: one.name for number, one in enumerate(people)}
    with store.reading() as connection:
        cameras = {str(number): name for number, name in connection.execute("select id, name from camera")}
        for number, one in enumerate(people):
            facts = reads.facts(connection, store.user, entity=ids[number], history=False)
            given = [fact for fact in facts if fact.kind == "name"]
            scored["protected"] += [fact.value for fact in given] != [one.name] or given[0].importance != 1.0
            held = [fact for fact in facts if fact.kind != "name"]
            slots = Counter(fact.slot for fact in held if fact.kind != "company")
            scored["contradictions"] += sum(many - 1 for many in slots.values())
            known = [(fact.kind, _value(fact, cameras, names)) for fact in held]
            _compare(one.name, truths(people, number), known, scored, wrong, lacking)
        for thing in things:
            facts = reads.facts(connection, store.user, label=thing.label, history=False)
            where = thing.moves[1] if thing.moves is not None else thing.where
            true = set() if thing.lost is not None else {("place", f"{where[0]} on {where[1]}")}
            known = [(fact.kind, _value(fact, cameras, names)) for fact in facts]
            _compare(thing.label, true, known, scored, wrong, lacking)
    return scored, wrong, lacking


def _value(fact: reads.Fact, cameras: Mapping[str, str], names: Mapping[int, str]) -> str:
    if fact.kind == "place":
        camera, _, surface = fact.value.partition("@")
        return f"{cameras[camera]} {surface}".strip()
    if fact.kind == "company":
        return names.get(int(fact.value), "?")
    return norm(fact.value) if fact.kind not in ("hours", "weekdays") else fact.value


def _compare(
    who: str, true: set[Truth], known: Sequence[Truth], scored: Counter[str],
    wrong: list[tuple[str, str, str]], lacking: list[tuple[str, str, str]],
) -> None:  # fmt: skip
    left = set(true)
    for one in known:
        match = next((truth for truth in left if _same(one, truth)), None)
        scored["known"] += 1
        scored["right"] += match is not None
        if match is None:
            wrong.append((who, *one))
        else:
            left.discard(match)
    scored["true"] += len(true)
    scored["found"] += len(true) - len(left)
    lacking += [(who, *one) for one in left]


def _same(known: Truth, true: Truth) -> bool:
    if known[0] != true[0]:
        return False
    if known[0] == "hours":  # a window of three hours that holds the hour of the habit
        return 0 <= (int(true[1]) - int(known[1])) % 24 < 3
    return known[1] == true[1]


if __name__ == "__main__":
    main()
