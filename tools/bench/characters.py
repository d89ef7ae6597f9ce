"""Learn names from what people in a series say to each other, and know whom their words mean, beside simpler rules.

`python -m tools.bench.characters [--shared DIR]`. The data are the transcripts of Character Identification (Chen and Choi
2016), which are not part of this project (REFLECTWORLD_SHARED names the folder). Voices are taken as told apart without fault:
every speaker is somebody without a name, over all episodes; a segment has at most 30 s of a scene, at 2.5 words a second, and
those who speak in it are there.

*Names.* Of those who speak often enough: how many got a name, and how many of these names are theirs. Beside it, in the same
run: the given name that is said most often while somebody is there, and the one that is said most often right before they speak.

*Mentions.* Given names in what is said, and whom they mean: whether two mentions that mean the same character are taken for one
(B-cubed). Ours are one when the name is that of one known person, and else when they are written alike; beside it: written alike.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from edge.identity import Bearer, HeardName, is_given_name, name_claims
from edge.types.evidence import Utterance
from edge.types.records import NameSource

SEGMENT_S: Final = 30.0
WORDS_PER_S: Final = 2.5
OFTEN: Final = 10  # utterances of somebody of whom a name is expected

Told = tuple[str, Mapping[str, Any]]  # speaker, utterance


@dataclass
class Learned:
    """What became of one way to learn names."""

    names: dict[str, str] = field(default_factory=dict)  # speaker -> name

    def row(self, speakers: Sequence[str]) -> tuple[int, int, int]:
        """How many of some speakers got a name, got their own, and got another."""
        given = [(one, self.names[one]) for one in speakers if one in self.names]
        right = sum(_theirs(one, name) for one, name in given)
        return len(given), right, len(given) - right


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("REFLECTWORLD_SHARED", "../shared")))
    parser.add_argument("--data", type=Path, help="the file; default: the development one of the shared folder")
    parser.add_argument("--often", type=int, default=OFTEN, help="utterances of those of whom a name is expected")
    asked = parser.parse_args()
    path = asked.data or asked.shared / "eval" / "character_identification" / "character-identification-dev.json"
    if not path.is_file():
        parser.error(f"there is no {path}; set REFLECTWORLD_SHARED, or give --shared or --data")
    segments = list(segments_of(json.loads(path.read_text())))
    said = Counter(speaker for segment in segments for speaker, _ in segment)
    speakers = [one for one, times in said.most_common() if times >= asked.often and _has_name(one)]
    ways = {
        "heard (this project)": ours(segments),
        "most said there": most(segments, 0),
        "said before": most(segments, 1),
    }
    print(f"{len(segments)} segments; {len(speakers)} characters with a name who say {asked.often} sentences or more")
    print(f"{'names':24}{'learned':>9}{'right':>7}{'wrong':>7}")
    for what, learned in ways.items():
        given, right, wrong = learned.row(speakers)
        print(f"{what:24}{given:9d}{right:7d}{wrong:7d}")
    others = [one for one in said if one not in speakers]
    given, right, wrong = ways["heard (this project)"].row(others)
    print(
        f"of {len(others)} who say less, or have no name in the script: {given} learned, {right} right, {wrong} wrong"
    )
    mentions = list(mentions_of(segments))
    known = ways["heard (this project)"].names
    print(f"{len(mentions)} mentions by a given name:")
    print(f"{'mentions':24}{'precision':>10}{'recall':>8}{'F1':>6}")
    for what, groups in (
        ("by whom is known", [_person(name, known) for name, _ in mentions]),
        ("written alike", [name.casefold() for name, _ in mentions]),
    ):
        precision, recall = b_cubed(groups, [gold for _, gold in mentions])
        print(f"{what:24}{precision:10.3f}{recall:8.3f}{2 * precision * recall / max(1e-9, precision + recall):6.3f}")


def segments_of(season: Mapping[str, Any]) -> Iterator[list[Told]]:
    """What is said in each segment, by whom; words of several at once are left out."""
    for episode in season["episodes"]:
        for scene in episode["scenes"]:
            segment: list[Told] = []
            seconds = 0.0
            for one in scene["utterances"]:
                if len(one["speakers"]) != 1 or not one["transcript"].strip():
                    continue
                takes = len(one["transcript"].split()) / WORDS_PER_S
                if segment and seconds + takes > SEGMENT_S:
                    yield segment
                    segment, seconds = [], 0.0
                segment.append((one["speakers"][0], one))
                seconds += takes
            if segment:
                yield segment


def ours(segments: Sequence[Sequence[Told]]) -> Learned:
    """As the product learns names, with voices that it is sure of."""
    ids: dict[str, int] = {}
    bearers: dict[Any, Bearer] = {}
    heard: list[HeardName] = []
    for segment in segments:
        speakers: list[int | None] = [ids.setdefault(speaker, len(ids) + 1) for speaker, _ in segment]
        there = set(speakers)
        listeners = [next(iter(there - {one})) if len(there) == 2 else None for one in speakers]
        utterances = [Utterance(place, place + 1.0, one["transcript"], "v1") for place, (_, one) in enumerate(segment)]
        for claim in name_claims(utterances, speakers, listeners, bearers, heard):
            heard.append(HeardName(int(claim.entity), claim.name, claim.source))
            if claim.accepted:
                bearers[claim.entity] = Bearer(claim.name, claim.source)
    return Learned({one: name for one, number in ids.items() if (name := bearers.get(number, _NOBODY).name)})


def most(segments: Sequence[Sequence[Told]], before: int) -> Learned:
    """The given name that others say most often while somebody is there, or right before they speak."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for segment in segments:
        for place, (speaker, _) in enumerate(segment):
            nearby = segment[place - 1 : place] if before else segment
            for other, one in nearby:
                if other != speaker:
                    found[speaker].update(token for tokens in one["tokens"] for token in tokens if _name(token))
    return Learned({one: names.most_common(1)[0][0] for one, names in found.items() if names})


def mentions_of(segments: Sequence[Sequence[Told]]) -> Iterator[tuple[str, str]]:
    """Given names in what is said, with the one character that is meant."""
    for segment in segments:
        for _, one in segment:
            for tokens, entities in zip(one["tokens"], one["character_entities"], strict=False):
                for start, end, *meant in entities:
                    names = [token for token in tokens[start:end] if _name(token)]
                    if names and len(meant) == 1 and not meant[0].startswith("#"):
                        yield names[0], meant[0]


def b_cubed(groups: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Precision and recall of a grouping (Bagga and Baldwin 1998)."""
    both, mine, theirs = Counter(zip(groups, gold, strict=True)), Counter(groups), Counter(gold)
    total = max(1, len(gold))
    precision = sum(count * count / mine[group] for (group, _), count in both.items()) / total
    recall = sum(count * count / theirs[one] for (_, one), count in both.items()) / total
    return precision, recall


_NOBODY: Final = Bearer(None, NameSource.NONE)


def _person(name: str, known: Mapping[str, str]) -> str:
    bearers = [who for who, called in known.items() if called.split()[0].casefold() == name.casefold()]
    return f"={bearers[0]}" if len(bearers) == 1 else name.casefold()


def _theirs(speaker: str, name: str) -> bool:
    return name.split()[0].casefold() in {word.casefold().strip(".") for word in speaker.split()}


def _has_name(speaker: str) -> bool:
    return any(_name(word) for word in speaker.split())


def _name(word: str) -> bool:
    return word[:1].isupper() and word[1:].islower() and is_given_name(word)


if __name__ == "__main__":
    main()
