"""How much noise the owner's rules make in a week, and whether each alert has a true ground.

python -m tools.bench.alerts [--shared DIR] [--days 7] [--show 3]

Ten everyday rules and quiet hours watch a week that is replayed in the order of time, while time fires what it makes due: a
week of one person's life (EgoLife, Yang et al. 2025; not part of this project, REFLECTWORLD_SHARED names its folder), or
without it a generated one. What is told is held against the captions and words of the segment themselves, by a reading of
its own that shares nothing with the rules' matcher (`read`): an alert without a true ground, or one that repeats inside its
cool-down, fails the run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import structlog

from edge.app.replay import ReplayReport, replay
from edge.app.work import build_worker
from edge.capture import DescribedFile
from edge.clock import monotonic, parse_instant, to_local
from edge.memory import Store
from edge.memory.tiers import procedural
from edge.memory.tiers.procedural import AlertRecord, Outcome
from edge.notify import Notifier
from edge.settings import NotifySettings, Settings

Segment = dict[str, Any]  # as it stands in a line of the file
Reading = Callable[[Segment], bool]


def words_in(text: str) -> list[str]:
    """Lower-case words; "n't" becomes a word of its own."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"n['’]t\b", " not ", text.lower()).replace("’", "'"))


_PAUSE: Final = re.compile(r"[.;:!?,]|\b(?:and|but|while|then|who|which|as)\b", re.IGNORECASE)
_END: Final = re.compile(r"[.;!?]")
_DENIED: Final = frozenset(words_in("not no never nothing nobody without if whether could would should"))
_SOUGHT: Final = frozenset(
    words_in(
        "want wants wanted need needs needed ask asks asked asking look looks looked looking search searching searched for about"
    )
)
_PEOPLE: Final = words_in("person people someone somebody man woman men women everyone i we they he she")
_HOLD: Final = words_in(
    "hold holds holding held carry carried carrying take takes took taking pick picked picking use used using with"
)


def _clauses(segment: Segment) -> list[list[str]]:
    """What the captions of a segment tell, one thing at a time."""
    return [words for one in segment["captions"] for part in _PAUSE.split(one["text"]) if (words := words_in(part))]


def _there(*subject: str) -> Reading:
    """A clause tells of something, and does not deny it, ask or look for it."""

    def read(segment: Segment) -> bool:
        return any(
            set(subject) & set(clause) and not (_DENIED | _SOUGHT) & set(clause[: _first(clause, subject)])
            for clause in _clauses(segment)
        )

    return read


def _first(clause: Sequence[str], wanted: Sequence[str]) -> int:
    return next((at for at, word in enumerate(clause) if word in wanted), len(clause))


def _placed(
    subject: Sequence[str], relation: Sequence[str], place: Sequence[str], people: Sequence[str], *, acts: bool = True
) -> Reading:
    """A sentence tells of something, and where it is.

    A clause begins with its subject; one without goes on with that of the clause before, if that acts by itself; of a thing
    it says "it".
    """

    def read(segment: Segment) -> bool:
        return any(placed(part) for one in segment["captions"] for part in _END.split(one["text"]))

    def placed(sentence: str) -> bool:
        spoken_of = False
        for clause in map(words_in, _PAUSE.split(sentence)):
            begins = clause[0] if clause else ""
            other = begins in (*people, "the", "a", "an", "my", "there", "another")
            goes_on = spoken_of and ((acts and not other) or bool({"it", "them"} & set(clause)))
            for at, word in enumerate(clause):
                behind = clause[at + 1 : at + 7]
                if word not in relation or not set(place) & set(behind):
                    continue
                told = clause[: at + 1 + _first(behind, place)]
                mine = bool(set(subject) & set(clause[:at])) or goes_on
                if mine and not set(behind[: _first(behind, place)]) & set(relation) and not _DENIED & set(told):
                    return True
            spoken_of = bool(set(subject) & set(clause)) or (spoken_of and not clause) or (goes_on and acts)
        return False

    return read


def _does(name: str, verbs: str) -> Reading:
    """A caption tells that somebody does something, without anybody else (a capital, a pronoun) in between."""
    between = r"(?:\s+(?!not\b|didn|I\b|he\b|she\b|they\b|we\b|to\b|the\b|turn)[a-z']+){0,4}?"
    pattern = re.compile(rf"\b{name}\b{between}\s+(?:{verbs})\b")
    return lambda segment: any(pattern.search(one["text"]) for one in segment["captions"])


def _hears(*words: str) -> Reading:
    return lambda segment: any(set(words) & set(words_in(one["text"])) for one in segment["utterances"])


@dataclass(frozen=True)
class Everyday:
    """A rule, and how somebody who reads captions would say that it is met."""

    text: str
    met: Reading
    absent: bool = False  # fires when it was not met until its hour


def everyday(names: Sequence[str]) -> tuple[Everyday, ...]:
    """The rules; `names` of those who live in the week, in lower case."""
    people = (*_PEOPLE, *names)
    kitchen = _placed(people, ("in", "into", "inside", "within"), ("kitchen",), people)
    phone, dog, door = ("phone", "phones"), ("dog", "dogs"), ("door", "doors")
    return (
        Everyday(
            "Tell me when the phone is on the table",
            _placed(phone, ("on", "onto"), ("table", "tables"), people, acts=False),
        ),
        Everyday("Let me know when the dog is on the sofa", _placed(dog, ("on", "onto"), ("sofa", "couch"), people)),
        Everyday(
            "Tell me when somebody is at the door",
            _placed(people, ("at", "by", "near", "next", "front", "before"), door, people),
        ),
        Everyday("Tell me when somebody is in the kitchen", kitchen),
        Everyday("Tell me when there is a knife", _there("knife", "knives")),
        Everyday("Tell me when I am holding a cup", _placed(("i",), _HOLD, ("cup", "cups"), people)),
        Everyday(
            "Tell me when Katrina leaves",
            _does(
                "Katrina",
                "left|leaves?|leaving|went out|goes out|went away|(?:turn(?:s|ed) and )?walk(?:s|ed) (?:out|away)",
            ),
        ),
        Everyday("Tell me when somebody mentions the dinner", _hears("dinner", "dinners")),
        Everyday("If nobody was in the kitchen by 10, tell me", kitchen, absent=True),
        Everyday("Remind me to give her the keys when I see Lucia", _there("lucia")),
    )


QUIET: Final = "Don't notify me between 22 and 7"
_BY: Final = 10.0  # hour of the rule that waits for something
_TICK_S: Final = 300.0  # from one look at what time makes due to the next


@dataclass
class Row:
    """What became of one rule."""

    text: str
    sent: list[float] = field(default_factory=list)  # UTC POSIX seconds of what was told
    digest: int = 0
    grounds: int = 0  # segments in which it is met, as read here
    dropped: Counter[str] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)  # what was told without a true ground
    missed: list[str] = field(default_factory=list)  # segments that were read as met and not noticed


@dataclass
class Result:
    """What became of the week."""

    segments: int
    rows: list[Row]
    repeated: int  # alerts that came again inside the cool-down
    seconds: float


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--days", type=int, default=7, help="of the week, from its first")
    parser.add_argument("--show", type=int, default=3, help="so many examples of what is doubtful, of each rule")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    with tempfile.TemporaryDirectory() as folder:
        week = egolife(options.shared, Path(folder))
        print("the replayed week of EgoLife" if week else "a generated week (there is no EgoLife to be found)")
        segments = [one for one in week or generated() if _day(one, week or generated()) < options.days]
        result = run(Path(folder) / "home", segments)
    show(result, options.show)
    if result.repeated or any(row.false for row in result.rows):
        raise SystemExit(1)


def egolife(shared: Path, folder: Path) -> list[Segment]:
    """The week in the order of time; empty: it is not there."""
    script = shared / "eval" / "egolife_convert.py"
    if not script.is_file():
        return []
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return [json.loads(line) for line in (folder / "segments.jsonl").read_text().splitlines()]


def generated(seed: int = 1, every_s: int = 600) -> list[Segment]:
    """A week at home in plain sentences, some of which only sound like what the rules watch for."""
    chance = random.Random(seed)
    told = (
        "A dog was lying on the sofa.", "There was no dog on the sofa.", "Anna put the phone on the table.",
        "I looked at the phone while Ben sat on the table.", "I looked for a knife.", "A knife was beside the bread.",
        "Katrina did not leave.", "Katrina left the room.", "Someone is standing at the door.", "Lucia poured tea.",
        "I am holding a cup of tea.", "I put the cup back.", "Ben went into the kitchen.", "Nobody was in the kitchen.",
        "A lamp was on.", "I walked past the window.", "Ben was reading.", "The phone rang; a book was on the table.",
    )  # fmt: skip
    said = ("What is for dinner?", "The train is late.", "I had lunch already.", "Good morning.")
    first = datetime(2025, 3, 3, 6)
    segments = []
    for number in range(7 * 86_400 // every_s):
        start = first + timedelta(seconds=every_s * number)
        if 1 <= start.hour < 6:
            continue
        lines = chance.sample(told, 3)
        if start.weekday() == 2 and start.hour < 10:  # one morning nobody is in the kitchen
            lines = [line for line in lines if "kitchen" not in line] or ["A lamp was on."]
        heard = (
            [{"at": start.isoformat(), "speaker": "Ben", "text": chance.choice(said)}] if chance.random() < 0.2 else []
        )
        segments.append({
            "camera": "glasses", "start": start.isoformat(), "end": (start + timedelta(seconds=30)).isoformat(),
            "captions": [{"at": start.isoformat(), "text": line} for line in lines], "utterances": heard,
        })  # fmt: skip
    return segments


def _day(segment: Segment, week: Sequence[Segment]) -> int:
    first, this = (datetime.fromisoformat(one["start"]).date() for one in (week[0], segment))
    return (this - first).days


def run(home: Path, segments: Sequence[Segment]) -> Result:
    """Replay the segments under the rules, with time going on beside them."""
    began = monotonic()
    home.mkdir(parents=True)
    path = home.parent / "week.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in segments))
    settings = Settings(home=home)
    first = parse_instant(segments[0]["start"])
    names = {word for one in segments for said in one["utterances"] for word in words_in(said["speaker"] or "")}
    rules = everyday(sorted(names))
    with Store.open(home) as store:
        notifier = Notifier(store, settings.notify)
        kept = [notifier.add(one.text, now=first - 60) for one in rules]
        notifier.add(QUIET, now=first - 60)
        worker = build_worker(store, settings, None, purpose="bench")
        due = first

        def goes_on(report: ReplayReport) -> None:
            nonlocal due
            end = parse_instant(segments[report.done - 1]["end"])
            if due < end:
                worker.drain()
            while due < end:  # also in the hours of which nothing is told
                due += _TICK_S
                notifier.tick(min(due, end))

        replay(store, None, DescribedFile(path), progress=goes_on)
        worker.drain()
        with store.reading() as connection:
            told = {
                rule.id: procedural.alerts(connection, store.user, rule_id=rule.id, limit=10**6)[::-1] for rule in kept
            }
        numbers = [number for (number,) in store.rows("select id from trace order by id")]  # as the lines stand
        fired = {rule: {one.trace for one in alerts} for rule, alerts in told.items()}
    rows = []
    repeated = 0
    for rule, record in zip(rules, kept, strict=True):
        row = _judge(rule, told[record.id], segments, numbers)
        rows.append(row)
        cool = NotifySettings().cooldown_s if record.cooldown is None else record.cooldown
        sent = sorted(row.sent)
        repeated += sum(later - earlier < cool for earlier, later in pairwise(sent))
        if not rule.absent and len(told[record.id]) < procedural.KEPT_DROPS:
            place = dict(zip(numbers, segments, strict=True))
            gone = record.id in told and any(one.outcome is not Outcome.DROP for one in told[record.id])
            if not (gone and rule.text.startswith("Remind")):
                row.missed = [
                    " ".join(one["text"] for one in place[number]["captions"])
                    for number in numbers
                    if number not in fired[record.id] and rule.met(place[number])
                ]
    return Result(len(segments), rows, repeated, monotonic() - began)


def _judge(rule: Everyday, alerts: Sequence[AlertRecord], segments: Sequence[Segment], numbers: Sequence[int]) -> Row:
    place = dict(zip(numbers, segments, strict=True))
    row = Row(rule.text, grounds=len(_without(rule, segments)) if rule.absent else sum(map(rule.met, segments)))
    for one in alerts:
        if one.outcome is Outcome.DROP:
            row.dropped[_why(one.reason)] += 1
            continue
        row.sent.append(one.at)
        row.digest += one.outcome is Outcome.DIGEST
        if rule.absent:
            row.false += [one.text] if to_local(one.at).date().isoformat() not in _without(rule, segments) else []
        elif one.trace is None or not rule.met(place[one.trace]):
            row.false.append(one.text)
    return row


def _without(rule: Everyday, segments: Sequence[Segment]) -> set[str]:
    """The days on which a rule was not met by its hour."""
    days = {one["start"][:10] for one in segments}
    return days - {
        one["start"][:10] for one in segments if datetime.fromisoformat(one["start"]).hour < _BY and rule.met(one)
    }


def _why(reason: str) -> str:
    for words, name in (("cool-down", "cool-down"), ("hours", "hours"), ("same", "same told")):
        if words in reason:
            return name
    return "else"


def show(result: Result, examples: int) -> None:
    """Print the table."""
    print(f"{result.segments} segments in {result.seconds:.0f} s; cool-down {NotifySettings().cooldown_s:.0f} s")
    print(f"{'rule':50} {'grounds':>8} {'told':>6} {'digest':>7} {'suppressed':>11} {'false':>6}")
    for row in result.rows:
        dropped = sum(row.dropped.values())
        more = "+" if dropped >= procedural.KEPT_DROPS else ""
        print(
            f"{row.text[:50]:50} {row.grounds:8d} {len(row.sent):6d} {row.digest:7d} {dropped:10d}{more or ' '} {len(row.false):6d}"
        )
        for words in row.false[:examples]:
            print(f"      no true ground: {words[:300]}")
        for words in row.missed[:examples]:
            print(f"      read as met and not noticed ({len(row.missed)}): {words[:300]}")
    told = sum(len(row.sent) for row in result.rows)
    false = sum(len(row.false) for row in result.rows)
    print(f"{told} told; {result.repeated} inside a cool-down; {false} without a true ground")


if __name__ == "__main__":
    main()
