"""The describer: evidence of a segment → what happened, in plain English. Pure and deterministic.

It states only what the evidence supports:

* people are mentioned when `names` knows them and counted otherwise; a count is what was in view at one moment, because
  two tracks one after the other may be one person or thing that was lost for a while;
* what was seen once and not surely is left out;
* relations come from boxes that overlap over time (`describe_relations`); no posture, no intention, no action of hands;
* words are quoted, shortened in the text, whole in the lines; speech that could not be put into words is
  said as such.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edge.perceive.describe_observations import observations, predicates, speech
from edge.perceive.describe_places import at_table, distance, movement, place, salient, ties
from edge.perceive.describe_relations import Tie
from edge.perceive.describe_scene import Scene, understand
from edge.perceive.describe_words import (
    PERSON,
    are_many,
    census,
    clean,
    enumerated,
    known_among,
    listed,
    most_at_once,
    others_among,
    quoted,
    sentence,
    was,
    who,
)
from edge.perceive.geometry import area
from edge.types.evidence import SegmentEvidence, Track
from edge.types.records import LineDraft
from edge.types.vocabulary import NOTHING_AT_ALL, NOTHING_IN_VIEW, counted

_TOGETHER_S = 1.0  # what appears within this long is told in one line, s
_NOT_ENGLISH = "there was speech that is not English"
_NO_WORDS = "there was speech that could not be put into words"


@dataclass(frozen=True, slots=True)
class Description:
    """A segment in words, with mentions for people."""

    text: str  # the summary
    lines: tuple[LineDraft, ...]  # its statements one by one with their moments, in order
    observations: Mapping[str, str]  # anchor of a track or voice → what is to say of it alone


def describe(evidence: SegmentEvidence, names: Mapping[str, str]) -> Description:
    """Put a segment into words.

    Args:
        evidence: what perception found.
        names: anchor of a track or voice → mention, such as "{{3}}"; who is absent from it is unknown.

    Returns:
        The description. The text is never empty and there is at least one line; every anchor of the evidence has an
        observation.
    """
    scene = understand(evidence, names)
    text = " ".join(sentence(part) for part in _summary(scene))
    return Description(text, _lines(scene), observations(scene))


# -- the summary ----------------------------------------------------------------------------------------------------


def _summary(scene: Scene) -> list[str]:
    seen = [*_people(scene), *_surfaces(scene)]
    seen += _rest(scene, also=bool(seen))
    seen += _changes(scene)
    heard = _speech(scene)
    if seen or heard:
        unseen = ["nothing was recognised in view"] if not seen and scene.evidence.key_frames else []
        return [*seen, *unseen, *heard]
    return [NOTHING_IN_VIEW if scene.evidence.key_frames else NOTHING_AT_ALL]


def _people(scene: Scene) -> list[str]:
    if not scene.people:
        return []
    everyone, plural = who(scene.people, scene.names)
    seated = [group for group in scene.tables if who(group.people, scene.names) == (everyone, plural)]
    sentences: list[str] = []
    told: set[str] = set()
    if len(scene.people) == 1:
        return [f"{everyone} {listed(predicates(scene, scene.people[0]))}"]
    if seated:
        sentences.append(f"{everyone} {was(plural)} {at_table(seated[0].things)}")
    else:
        near = [] if plural else ties(scene, scene.people, both_ways=False)
        if plural:
            sentences.append(f"{everyone} were in view")
        else:
            where = " ".join(part for part in (distance(scene.people), place(scene.people)) if part)
            sentences.append(", ".join([f"{everyone} was {where}", *near]))
            told.update(track.anchor for track in scene.people)
        for group in scene.tables:
            words, several = who(group.people, scene.names)
            sentences.append(f"{words} {was(several)} {at_table(group.things)}")
    unrecognised = scene.unrecognised(scene.people)
    if unrecognised:
        one = unrecognised == 1
        sentences.append(
            f"{counted(PERSON, unrecognised)} who {was(not one)} not recognised {was(not one)} also in view"
        )
    for track in scene.people:
        if track.anchor not in told:
            tracks = scene.same(track)
            told.update(other.anchor for other in tracks)
            if near := ties(scene, tracks, both_ways=False):
                sentences.append(f"{scene.subject(track)} was {', '.join(near)}")
    return sentences


def _surfaces(scene: Scene) -> list[str]:
    by_surface: dict[str, list[Track]] = {}
    for tie in scene.standing:
        by_surface.setdefault(tie.other.label, []).append(tie.one)
    return [
        f"{enumerated(census(things))} {was(are_many(census(things)))} on {counted(label, 1)}"
        for label, things in by_surface.items()
    ]


def _rest(scene: Scene, *, also: bool) -> list[str]:
    """The things that nothing was said of yet."""
    told = {track.anchor for group in scene.tables for track in group.tables}
    for tie in scene.relations:
        if len(scene.people) == 1 or tie.tie in (Tie.AT, Tie.ON) or scene.told(tie):
            told |= {tie.one.anchor, tie.other.anchor}
    rest = sorted((track for track in scene.things if track.anchor not in told), key=_largest_first)
    every, before = census(scene.things), census([track for track in scene.things if track.anchor in told])
    # One that was told of already may have been lost and found again: only those beyond that number are more.
    more = {label: min(count, every[label] - before.get(label, 0)) for label, count in census(rest).items()}
    more = {label: count for label, count in more.items() if count > 0}
    if not more:
        return []
    mine = [track for track in rest if track.label in more]
    if list(more.values()) == [1] and salient(mine):
        if len(mine) == 1 and scene.moves_by_itself(mine[0]) and (way := movement(mine)):
            return [f"{enumerated(more)} {way}"]
        return [f"{enumerated(more)} was {place(mine)}"]
    return [f"{enumerated(more)} {was(are_many(more))} {'also ' if also else ''}in view"]


def _largest_first(track: Track) -> tuple[float, float]:
    return -max((area(box) for _, box in track.boxes), default=0.0), track.start


def _changes(scene: Scene) -> list[str]:
    """Who and what came and left."""
    moving = [track for track in scene.things if scene.moves_by_itself(track)]
    # The only person's coming and going is told with the rest of what they did.
    around = scene.people if len(scene.people) > 1 else ()
    back = [name for name in known_among(around, scene.names) if _returned(scene, name)]
    people = [track for track in around if scene.names.get(track.anchor) not in back]
    came = [track for track in people if track.entered and scene.same(track)[0] is track]
    left = [track for track in people if track.left and scene.same(track)[-1] is track]
    came += [track for track in moving if track.entered]
    left += [track for track in moving if track.left]
    sentences = [f"{listed(back)} went out of view and came back"] if back else []
    if came and set(came) == set(left):
        sentences.append(f"{_those(scene, came)} came into view and went out of view again")
        return sentences
    clauses = [f"{_those(scene, came)} came into view"] if came else []
    if left:
        clauses.append(f"{_those(scene, left)} went out of view")
    return sentences + ([" and ".join(clauses)] if clauses else [])


def _returned(scene: Scene, name: str) -> bool:
    tracks = [track for track in scene.people if scene.names.get(track.anchor) == name]
    return any(one.left and other.entered for one, other in itertools.pairwise(tracks))


def _those(scene: Scene, tracks: Sequence[Track]) -> str:
    """People and things in one list; unknown people with a number only when it is certain."""
    known = known_among(tracks, scene.names)
    unknown = [track for track in tracks if track.label == PERSON and track.anchor not in scene.names]
    parts = list(known)
    if unknown:
        certain = most_at_once(unknown)
        everybody = [track for track in scene.people if track.anchor not in scene.names]
        if len(everybody) == others_among(scene.people, scene.names) == 1 and known_among(scene.people, scene.names):
            parts.append("the other person")
        else:
            parts.append(counted(PERSON, certain) if certain == len(unknown) else "people")
    things = census([track for track in tracks if track.label != PERSON])
    if things:
        parts.append(enumerated(things))
    return listed(parts)


def _speech(scene: Scene) -> list[str]:
    turns = scene.turns(scene.evidence.utterances)
    texts = speech([turn.text for turn in turns])
    parts = [quoted(turn.speaker, text) for turn, text in zip(turns, texts, strict=False)]
    quiet = dict.fromkeys(turn.speaker for turn in turns[len(texts) :])
    spoken = {turn.speaker for turn in turns[: len(texts)]}
    more = [speaker for speaker in quiet if speaker not in spoken]
    if more:
        parts.append(f"{listed(more)} spoke, too")
    return parts + _unheard(scene)


def _unheard(scene: Scene) -> list[str]:
    if scene.evidence.other_language:
        return [_NOT_ENGLISH + (" and was not put into words" if scene.evidence.speech_untranscribed else "")]
    return [_NO_WORDS] if scene.evidence.speech_untranscribed else []


# -- the lines ------------------------------------------------------------------------------------------------------


def _lines(scene: Scene) -> tuple[LineDraft, ...]:
    found: list[tuple[float, str]] = [*_appearances(scene), *_related(scene), *_departures(scene)]
    found += [
        (utterance.start, quoted(scene.speaker(utterance.voice), text))
        for utterance in scene.evidence.utterances
        if (text := clean(utterance.text))
    ]
    start = scene.evidence.start
    found += [(start, text) for text in _unheard(scene)]
    if not found:
        found = [(start, _summary(scene)[0])]
    found.sort(key=lambda item: item[0])
    return tuple(LineDraft(at, sentence(text)) for at, text in dict.fromkeys(found))


def _appearances(scene: Scene) -> list[tuple[float, str]]:
    lines: list[tuple[float, str]] = []
    there: list[Track] = []
    for track in scene.people:
        if scene.same(track)[0] is track and not track.entered:
            there.append(track)
        elif track.entered:
            again = "back " if scene.same(track)[0] is not track else ""
            lines.append((track.start, f"{scene.subject(track)} came {again}into view"))
    for at, group in _together(there):
        words, plural = who(group, scene.names)
        lines.append((at, f"{words} {was(plural)} in view"))
    fresh: list[Track] = []
    known: set[str] = set()
    for track in scene.things:
        if scene.moves_by_itself(track) and track.entered:
            lines.append((track.start, f"{scene.subject(track)} came into view"))
        elif track.label not in known or any(
            track.label == other.label and track.start - other.start <= _TOGETHER_S for other in fresh
        ):
            fresh.append(track)
        known.add(track.label)
    for at, group in _together(fresh):
        things = census(group)
        lines.append((at, f"{enumerated(things)} {was(are_many(things))} in view"))
    return lines


def _departures(scene: Scene) -> list[tuple[float, str]]:
    gone = [track for track in scene.people if track.left]
    gone += [track for track in scene.things if track.left and scene.moves_by_itself(track)]
    return [(track.end, f"{scene.subject(track)} went out of view") for track in gone]


def _related(scene: Scene) -> list[tuple[float, str]]:
    lines: list[tuple[float, str]] = []
    for group in scene.tables:
        words, plural = who(group.people, scene.names)
        lines.append((group.start, f"{words} {was(plural)} {at_table(group.things)}"))
    by_surface: dict[str, list[tuple[float, Track]]] = {}
    for tie in scene.standing:
        by_surface.setdefault(tie.other.label, []).append((tie.start, tie.one))
    for label, placed in by_surface.items():
        things = census([track for _, track in placed])
        start = min(at for at, _ in placed)
        lines.append((start, f"{enumerated(things)} {was(are_many(things))} on {counted(label, 1)}"))
    lines += [
        (tie.start, f"{scene.subject(tie.one)} was {tie.tie} {scene.subject(tie.other)}")
        for tie in scene.relations
        if tie.tie not in (Tie.AT, Tie.ON) and not scene.between_unknown(tie)
    ]
    return lines


def _together(tracks: Sequence[Track]) -> list[tuple[float, list[Track]]]:
    """Tracks that begin within a second of the first of their group, with its time."""
    groups: list[tuple[float, list[Track]]] = []
    for track in sorted(tracks, key=lambda track: track.start):
        if groups and track.start - groups[-1][0] <= _TOGETHER_S:
            groups[-1][1].append(track)
        else:
            groups.append((track.start, [track]))
    return groups
