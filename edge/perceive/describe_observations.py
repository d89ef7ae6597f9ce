"""One short text for each track and voice: where it was, what it did, with whom, what it said. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from edge.perceive.describe_places import distance, movement, place, seconds, stayed, table, ties
from edge.perceive.describe_relations import TABLE, Tie
from edge.perceive.describe_scene import Scene
from edge.perceive.describe_words import PERSON, census, enumerated, listed, sentence, shares, shorten, was, who
from edge.types.evidence import Track, Voice

SPEECH_CHARS = 300  # of speech in one text; the lines hold all of it
LEAST_SPEECH_CHARS = 60  # shorter pieces say nothing


def observations(scene: Scene) -> dict[str, str]:
    """Anchor → words, for every track and voice of the evidence."""
    found: dict[str, str] = {}
    for track in scene.people:
        found[track.anchor] = _person(scene, track)
    for track in scene.things:
        found[track.anchor] = _thing(scene, track)
    for track in scene.weak:
        found[track.anchor] = sentence(
            f"perhaps {scene.subject(track)} {place([track])}, seen only once and not clearly"
        )
    for voice in scene.evidence.voices:
        found[voice.anchor] = _voice(scene, voice)
    return found


def speech(texts: Sequence[str]) -> list[str]:
    """Texts shortened so that they are about 300 characters together; those that come too late are left out."""
    granted = shares([len(text) for text in texts], SPEECH_CHARS, LEAST_SPEECH_CHARS)
    return [shorten(text, limit) for text, limit in zip(texts, granted, strict=True) if limit]


def predicates(scene: Scene, track: Track) -> list[str]:
    """What one person did while one track of theirs lasted, as predicates in order of time."""
    seat = table(scene, [track])
    # A table hides part of who is behind it, so the size of the box says nothing of the distance there.
    where = ", ".join(part for part in ("" if seat else distance([track]), place([track])) if part)
    near = [phrase for phrase in (seat, *ties(scene, [track], both_ways=True)) if phrase]
    way = movement([track])
    found = []
    if track.entered:
        found.append("came into view" if scene.same(track)[0] is track else "came back into view")
    if near:
        found.append(f"was {', '.join(near)}")
    if way:
        found.append(way)
    elif stayed(scene, track):
        found.append(f"stayed {where}")
    elif near:
        found[-1] += f", {where}"
    else:
        found.append(f"was {where}")
    if track.left:
        found.append("went out of view")
    return found


def _person(scene: Scene, track: Track) -> str:
    subject, did = scene.subject(track), predicates(scene, track)
    words = speech([turn.text for turn in scene.turns(scene.heard_during(track))])
    if not words:
        return sentence(f"{subject} {listed(did)}")
    said = f"said: “{' … '.join(words)}”"
    if track.left:
        return f"{sentence(f'{subject} {listed(did)}')} {sentence(f'{subject} {said}')}"
    return sentence(f"{subject} {listed([*did, said])}")


def _thing(scene: Scene, track: Track) -> str:
    on = next((tie.other for tie in scene.relations if tie.tie is Tie.ON and tie.one.anchor == track.anchor), None)
    way = movement([track])
    did: list[str] = []
    event = scene.moves_by_itself(track)
    if event and track.entered:
        did.append("came into view")
    surface = f"on {scene.subject(on)}, " if on is not None else ""
    if way and event:
        did.append(way)
    else:
        did.append(f"was {surface}{place([track])}")
    if event and track.left:
        did.append("went out of view")
    text = f"{scene.subject(track)} {listed(did)}"
    company = _company(scene, track)
    return sentence(f"{text}; {company}" if company else text)


def _company(scene: Scene, track: Track) -> str:
    """Who has to do with a thing, as a clause."""
    if track.label == TABLE:
        for group in scene.tables:
            if any(table.anchor == track.anchor for table in group.tables):
                words, plural = who(group.people, scene.names)
                on = f", with {enumerated(census(group.things))} on it" if group.things else ""
                return f"{words} {was(plural)} at it{on}"
        on_it = [tie.one for tie in scene.relations if tie.tie is Tie.ON and tie.other.anchor == track.anchor]
        things = census(on_it)
        return f"{enumerated(things)} {was(sum(things.values()) > 1)} on it" if things else ""
    mine = [tie for tie in scene.relations if tie.other.anchor == track.anchor and tie.one.label == PERSON]
    clauses = []
    for kind, words in (
        (Tie.HOLDING, "holding it"),
        (Tie.WITH, "with it"),
        (Tie.FRONT, "in front of it"),
        (Tie.NEXT, "next to it"),
    ):
        people = [tie.one for tie in mine if tie.tie is kind]
        if people:
            named, plural = who(people, scene.names)
            clauses.append(f"{named} {was(plural)} {words}")
    return listed(clauses)


def _voice(scene: Scene, voice: Voice) -> str:
    speaker = scene.speaker(voice.anchor)
    words = [
        turn.text for turn in scene.turns([item for item in scene.evidence.utterances if item.voice == voice.anchor])
    ]
    if words:
        return sentence(f"{speaker} said: “{' … '.join(speech(words))}”")
    if voice.seconds <= 0:
        return sentence(f"{speaker} was heard")
    return sentence(f"{speaker} was heard for about {seconds(voice.seconds)}, without words that could be made out")
