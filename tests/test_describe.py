"""The describer: golden scenes, the rules of what may be said, and properties that hold for any evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.perceive import Description, describe
from edge.types.evidence import FaceEvidence, KeyFrame, NormBox, SegmentEvidence, Track, Utterance, Voice
from edge.types.records import mentioned
from edge.types.vocabulary import COCO_LABELS, everyday, number, plural

PICTURE = KeyFrame(0.0, np.zeros((2, 2, 3), np.uint8))


def track(
    anchor: str,
    label: str,
    box: NormBox,
    times: Iterable[float] = range(21),
    *,
    to: NormBox | None = None,
    score: float = 0.8,
    entered: bool = False,
    left: bool = False,
) -> Track:
    """A track that moves evenly from one box to another."""
    at = [float(time) for time in times]
    steps = np.linspace(np.array(box), np.array(to or box), len(at))
    boxes = tuple((time, tuple(float(value) for value in step)) for time, step in zip(at, steps, strict=True))
    return Track(anchor, label, at[0], at[-1], boxes, score, entered=entered, left=left)  # type: ignore[arg-type]


def evidence(
    tracks: Sequence[Track] = (),
    voices: Sequence[Voice] = (),
    utterances: Sequence[Utterance] = (),
    *,
    pictures: bool = True,
    other_language: bool = False,
    speech_untranscribed: bool = False,
) -> SegmentEvidence:
    return SegmentEvidence(
        "kitchen", 0.0, 20.0, tuple(tracks), tuple(voices), tuple(utterances), (PICTURE,) if pictures else (),
        speech_untranscribed, other_language,
    )  # fmt: skip


def voice(anchor: str, seen: str | None = None, seconds: float = 5.0) -> Voice:
    return Voice(anchor, seconds, None, seconds >= 2, "x", seen)


LEFT_PERSON, RIGHT_PERSON = (0.1, 0.2, 0.35, 0.9), (0.6, 0.2, 0.85, 0.9)
TABLE = (0.1, 0.6, 0.9, 1.0)
ON_TABLE = [
    track("a4", "cup", (0.4, 0.6, 0.45, 0.7)),
    track("a5", "cup", (0.6, 0.6, 0.65, 0.7)),
    track("a6", "laptop", (0.45, 0.55, 0.6, 0.75)),
]


def at_table() -> SegmentEvidence:
    people = [track("a1", "person", LEFT_PERSON), track("a2", "person", RIGHT_PERSON, range(13), left=True)]
    return evidence(
        [*people, track("a3", "dining table", TABLE), *ON_TABLE],
        [voice("v1", "a1"), voice("v2")],
        [Utterance(3, 5, "Good morning.", "v1"), Utterance(6, 8, "Hello! How are you?", "v2")],
    )


# -- golden scenes ------------------------------------------------------------------------------------------------


def test_breakfast() -> None:
    found = describe(at_table(), {"a1": "{{3}}"})
    assert found.text == (
        "{{3}} and one other person were at a table with two cups and a laptop. The other person went out of view. "
        "{{3}} said: “Good morning.” Someone said: “Hello! How are you?”"
    )
    assert [(line.at, line.text) for line in found.lines] == [
        (0, "{{3}} and one other person were in view."),
        (0, "A table, two cups and a laptop were in view."),
        (0, "{{3}} and one other person were at a table with two cups and a laptop."),
        (3, "{{3}} said: “Good morning.”"),
        (6, "Someone said: “Hello! How are you?”"),
        (12, "A person went out of view."),
    ]
    assert found.observations == {
        "a1": (
            "{{3}} was at a table with two cups and a laptop, stayed on the left of the view and said: “Good morning.”"
        ),
        "a2": "A person was at a table with two cups and a laptop, on the right of the view, and went out of view.",
        "a3": (
            "A table was in the middle of the view; "
            "{{3}} and one other person were at it, with two cups and a laptop on it."
        ),
        "a4": "A cup was on a table, in the middle of the view.",
        "a5": "A cup was on a table, in the middle of the view.",
        "a6": "A laptop was on a table, in the middle of the view.",
        "v1": "{{3}} said: “Good morning.”",
        "v2": "Someone said: “Hello! How are you?”",
    }


GOLDEN = {
    "nothing": (evidence(), {}, "A view with nothing recognised."),
    "no picture": (evidence(pictures=False), {}, "Nothing was recognised."),
    "a cat": (evidence([track("a1", "cat", (0.0, 0.2, 0.6, 0.95))]), {}, "A cat was on the left of the view."),
    "a cat on a sofa": (
        evidence([track("a1", "cat", (0.1, 0.4, 0.3, 0.6)), track("a2", "couch", (0.05, 0.3, 0.7, 0.8))]),
        {},
        "A cat was on a sofa.",
    ),
    "carried": (
        evidence(
            [
                track("a1", "person", (0.05, 0.1, 0.35, 0.95), range(3, 21), to=(0.6, 0.1, 0.9, 0.95), entered=True),
                track("a2", "cup", (0.2, 0.45, 0.25, 0.5), range(3, 21), to=(0.75, 0.45, 0.8, 0.5)),
            ]
        ),
        {"a1": "{{3}}"},
        "{{3}} came into view, was holding a cup and moved from the left to the right of the view.",
    ),
    "not carried": (
        evidence([track("a1", "person", (0.4, 0.2, 0.6, 0.95)), track("a2", "cup", (0.45, 0.5, 0.5, 0.55))]),
        {"a1": "{{3}}"},
        "{{3}} was with a cup and stayed in the middle of the view.",
    ),
    "before a car": (
        evidence(
            [
                track("a1", "person", (0.3, 0.3, 0.4, 0.9)),
                track("a2", "handbag", (0.32, 0.5, 0.37, 0.6)),
                track("a3", "car", (0.2, 0.4, 0.8, 0.85)),
            ]
        ),
        {},
        "A person was with a handbag, in front of a car, and stayed on the left of the view.",
    ),
    "beside a dog": (
        evidence([track("a1", "person", (0.3, 0.3, 0.45, 0.9)), track("a2", "dog", (0.48, 0.7, 0.62, 0.9))]),
        {"a1": "{{-1}}"},
        "{{-1}} was next to a dog and stayed in the middle of the view.",
    ),
    "gone and back": (
        evidence(
            [
                track("a1", "person", (0.3, 0.3, 0.45, 0.9), range(6), left=True),
                track("a2", "person", (0.8, 0.3, 0.95, 0.9)),
                track("a3", "person", (0.3, 0.3, 0.45, 0.9), range(12, 21), entered=True),
            ]
        ),
        {"a1": "{{3}}", "a3": "{{3}}"},
        "{{3}} and one other person were in view. {{3}} went out of view and came back.",
    ),
    "perhaps the same": (
        evidence([track("a1", "person", LEFT_PERSON, range(5)), track("a2", "person", LEFT_PERSON, range(8, 21))]),
        {"a2": "{{3}}"},
        "{{3}} was on the left of the view. A person who was not recognised was also in view.",
    ),
    "a crowd": (
        evidence([track(f"a{i}", "person", (0.1 * i, 0.3, 0.1 * i + 0.04, 0.5)) for i in range(9)]),
        {"a2": "{{1}}", "a3": "{{2}}"},
        "{{1}}, {{2}} and seven other people were in view.",
    ),
    "many": (
        evidence([track(f"a{i}", "person", (0.05 * i, 0.3, 0.05 * i + 0.02, 0.5)) for i in range(13)]),
        {},
        "13 people were in view.",
    ),
    "passing": (
        evidence(
            [
                track("a1", "tv", (0.1, 0.1, 0.5, 0.5)),
                track("a2", "scissors", (0.6, 0.6, 0.7, 0.7)),
                track("a3", "bus", (0.0, 0.5, 0.2, 0.8), range(5, 12), to=(0.8, 0.5, 1, 0.8), entered=True, left=True),
            ]
        ),
        {},
        "A television, a bus and a pair of scissors were in view. A bus came into view and went out of view again.",
    ),
    "heard only": (
        evidence((), [voice("v1")], [Utterance(1, 2, "Hello.", "v1")], pictures=False),
        {},
        "A voice said: “Hello.”",
    ),
    "heard and known": (
        evidence((), [voice("v1")], [Utterance(1, 2, "Hello.", "v1")], pictures=False),
        {"v1": "{{9}}"},
        "{{9}} said: “Hello.”",
    ),
    "foreign": (
        evidence(other_language=True, speech_untranscribed=True),
        {},
        "Nothing was recognised in view. There was speech that is not English and was not put into words.",
    ),
    "no words": (
        evidence([track("a1", "cup", (0.1, 0.1, 0.2, 0.2))], speech_untranscribed=True),
        {},
        "A cup was in view. There was speech that could not be put into words.",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str) -> None:
    seen, names, text = GOLDEN[name]
    found = describe(seen, names)
    assert found.text == text
    assert found.lines


# -- rules --------------------------------------------------------------------------------------------------------


def test_the_order_of_the_evidence_changes_nothing() -> None:
    seen = at_table()
    turned = evidence(seen.tracks[::-1], seen.voices, seen.utterances[::-1])
    names = {"a1": "{{3}}", "a2": "{{4}}"}
    assert describe(seen, names) == describe(turned, names)


@pytest.mark.parametrize(("times", "score", "told"), [([0], 0.45, False), ([0], 0.5, True), ([0, 1], 0.4, True)])
def test_a_thing_is_told_when_seen_twice_or_surely(times: list[int], score: float, told: bool) -> None:
    found = describe(evidence([track("a1", "cup", (0.1, 0.1, 0.2, 0.2), times, score=score)]), {})
    assert ("cup" in found.text) is told
    assert ("Perhaps" in found.observations["a1"]) is not told


def test_a_person_who_is_known_is_told_however_weak_the_box() -> None:
    seen = evidence([track("a1", "person", LEFT_PERSON, [3], score=0.4)])
    assert "{{8}}" in describe(seen, {"a1": "{{8}}"}).text
    assert "person" not in describe(seen, {}).text


def test_one_thing_that_was_lost_for_a_while_is_one_thing() -> None:
    cups = [track("a1", "cup", (0.1, 0.1, 0.2, 0.2), range(5)), track("a2", "cup", (0.1, 0.1, 0.2, 0.2), range(9, 20))]
    assert describe(evidence(cups), {}).text == "A cup was in view."


def test_a_flicker_of_the_box_does_not_break_a_relation() -> None:
    """Every fifth frame the cup's box jumps beside the table."""
    cup = track("a2", "cup", (0.4, 0.6, 0.45, 0.7))
    jumpy = tuple((at, (0.95, 0.6, 1.0, 0.7) if at % 5 == 4 else box) for at, box in cup.boxes)
    seen = evidence([track("a1", "dining table", (0.1, 0.55, 0.9, 0.9)), Track("a2", "cup", 0, 20, jumpy, 0.8)])
    found = describe(seen, {})
    assert found.text == "A cup was on a table."
    assert [line.text for line in found.lines].count("A cup was on a table.") == 1


@pytest.mark.parametrize(("bottom", "there"), [(0.9, False), (1.0, True)])
def test_a_table_that_the_edge_cuts_off_is_all_top(bottom: float, there: bool) -> None:
    seen = evidence([track("a1", "dining table", (0.1, 0.5, 0.9, bottom)), track("a2", "cup", (0.4, 0.75, 0.45, 0.88))])
    assert ("on a table" in describe(seen, {}).text) is there


def test_one_frame_by_chance_makes_no_relation() -> None:
    cup = track("a2", "cup", (0.95, 0.1, 0.99, 0.2))
    lucky = tuple((at, (0.4, 0.6, 0.45, 0.7) if at == 10 else box) for at, box in cup.boxes)
    found = describe(evidence([track("a1", "dining table", TABLE), Track("a2", "cup", 0, 20, lucky, 0.8)]), {})
    assert "on a table" not in found.text


def test_a_relation_is_told_when_it_begins() -> None:
    dog = track("a2", "dog", (0.85, 0.7, 0.99, 0.9), range(21), to=(0.46, 0.7, 0.6, 0.9))
    lines = describe(evidence([track("a1", "person", (0.3, 0.3, 0.45, 0.9)), dog]), {"a1": "{{1}}"}).lines
    beside = next(line for line in lines if "next to" in line.text)
    assert beside.text == "{{1}} was next to a dog."
    gap = next(box[0] for at, box in dog.boxes if at == beside.at) - 0.45
    assert 5 < beside.at < 20
    assert gap < 0.06


def test_a_far_table_is_not_sat_at() -> None:
    seen = evidence([track("a1", "person", (0.3, 0.1, 0.6, 0.95)), track("a2", "dining table", (0.4, 0.4, 0.5, 0.5))])
    assert "at a table" not in describe(seen, {"a1": "{{1}}"}).text


@pytest.mark.parametrize(("safe", "far"), [(True, False), (False, True)])
def test_a_small_box_is_far_only_when_it_is_not_a_good_face(safe: bool, far: bool) -> None:
    small = track("a1", "person", (0.4, 0.4, 0.5, 0.6))
    face = FaceEvidence((), None, safe, "" if safe else "too small", "x")
    text = describe(evidence([replace(small, face=face)]), {}).text
    assert ("far from the camera" in text) is far


def test_a_bag_that_goes_along_is_not_held() -> None:
    seen = evidence(
        [
            track("a1", "person", (0.05, 0.1, 0.35, 0.95), to=(0.6, 0.1, 0.9, 0.95)),
            track("a2", "backpack", (0.2, 0.35, 0.3, 0.5), to=(0.75, 0.35, 0.85, 0.5)),
        ]
    )
    found = describe(seen, {"a1": "{{1}}"})
    assert "with a backpack" in found.text
    assert "holding" not in found.text


@pytest.mark.parametrize(
    ("voices", "names", "speaker"),
    [
        ([voice("v1", "a1")], {"a1": "{{3}}"}, "{{3}}"),
        ([voice("v1", "a1")], {"a1": "{{3}}", "v1": "{{4}}"}, "{{4}}"),
        ([voice("v1", "a1")], {}, "A person"),
        ([voice("v1")], {"a1": "{{3}}"}, "Someone"),
        ([], {"a1": "{{3}}"}, "Someone"),
    ],
)
def test_who_said_it(voices: list[Voice], names: dict[str, str], speaker: str) -> None:
    seen = evidence([track("a1", "person", LEFT_PERSON)], voices, [Utterance(1, 2, "Hi.", "v1" if voices else None)])
    assert describe(seen, names).text.endswith(f" {speaker} said: “Hi.”")


def test_long_speech_is_shortened_in_the_text_and_whole_in_the_lines() -> None:
    first = "We went to the market early. " * 30
    second = "and so on without any full stop " * 30
    seen = evidence(
        (), [voice("v1"), voice("v2")], [Utterance(1, 9, first, "v1"), Utterance(9, 19, second, "v2")], pictures=False
    )
    found = describe(seen, {"v1": "{{1}}", "v2": "{{2}}"})
    quotes = re.findall(r"“([^”]*)”", found.text)
    assert 200 < sum(map(len, quotes)) <= 310
    assert quotes[0].endswith("market early. …")
    assert re.search(r"\w…$", quotes[1])
    assert second.strip().startswith(quotes[1][:-1])
    assert [line.text for line in found.lines] == [
        f"{{{{1}}}} said: “{first.strip()}”",
        f"{{{{2}}}} said: “{second.strip()}”",
    ]


def test_many_speakers_are_all_named() -> None:
    words = "This is a sentence that is neither long nor short, to fill the room that there is."
    utterances = [Utterance(i, i + 1, words, f"v{i}") for i in range(8)]
    names = {f"v{i}": f"{{{{{i}}}}}" for i in range(8)}
    text = describe(evidence((), [voice(f"v{i}") for i in range(8)], utterances), names).text
    assert set(mentioned(text)) == set(range(8))
    assert text.endswith("{{5}}, {{6}} and {{7}} spoke, too.")


def test_words_that_look_like_a_mention_stay_words() -> None:
    seen = evidence((), [voice("v1")], [Utterance(1, 2, "he wrote {{7}} and “quit”\nthen left", "v1")], pictures=False)
    found = describe(seen, {})
    assert found.text == "A voice said: “he wrote {7} and ‘quit’ then left”"


def test_a_voice_without_words_has_a_length() -> None:
    found = describe(evidence((), [voice("v1", seconds=3.2)], speech_untranscribed=True), {"v1": "{{2}}"})
    assert found.observations["v1"] == "{{2}} was heard for about three seconds, without words that could be made out."


def test_a_person_with_two_tracks_said_each_thing_once() -> None:
    people = [track("a1", "person", LEFT_PERSON, range(6)), track("a2", "person", LEFT_PERSON, range(12, 21))]
    said = [Utterance(1, 2, "First.", "v1"), Utterance(14, 15, "Second.", "v1")]
    found = describe(evidence(people, [voice("v1")], said), {"a1": "{{1}}", "a2": "{{1}}", "v1": "{{1}}"})
    assert "First." in found.observations["a1"]
    assert "Second." not in found.observations["a1"]
    assert "Second." in found.observations["a2"]


# -- properties ---------------------------------------------------------------------------------------------------

NASTY = st.text(alphabet="{}7-“” .!?\n\tabcé漢😀", max_size=200)
LABELS = st.one_of(
    st.just("person"), st.sampled_from(COCO_LABELS), st.sampled_from(["", "{{5}}", "unicycle", "übergröße"])
)
COORDINATE = st.floats(0, 1, width=32)


@st.composite
def boxes(draw: st.DrawFn) -> NormBox:
    x, y = sorted([draw(COORDINATE), draw(COORDINATE)]), sorted([draw(COORDINATE), draw(COORDINATE)])
    return x[0], y[0], x[1], y[1]


@st.composite
def tracks(draw: st.DrawFn, anchor: str) -> Track:
    at = sorted(draw(st.sets(st.integers(0, 20), max_size=8)))
    start, end = (float(at[0]), float(at[-1])) if at else (3.0, 4.0)
    seen = tuple((float(time), draw(boxes())) for time in at)
    score = draw(st.floats(0, 1))
    return Track(anchor, draw(LABELS), start, end, seen, score, entered=draw(st.booleans()), left=draw(st.booleans()))


@st.composite
def scenes(draw: st.DrawFn) -> tuple[SegmentEvidence, dict[str, str]]:
    people = [draw(tracks(f"a{i}")) for i in range(draw(st.integers(0, 6)))]
    seen_by = st.one_of(st.none(), st.sampled_from([f"a{i}" for i in range(10)]))
    voices = [
        Voice(f"v{i}", draw(st.floats(0, 30)), None, True, "x", draw(seen_by)) for i in range(draw(st.integers(0, 3)))
    ]
    speaker = st.one_of(st.none(), st.sampled_from([f"v{i}" for i in range(4)]))
    said = [Utterance(at, at + 1, draw(NASTY), draw(speaker)) for at in draw(st.lists(st.floats(0, 20), max_size=6))]
    anchors = [item.anchor for item in people] + [item.anchor for item in voices]
    known = draw(st.lists(st.sampled_from(anchors), unique=True)) if anchors else []
    names = {anchor: f"{{{{{draw(st.integers(-3, 3))}}}}}" for anchor in known}
    pictures, language, mute = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    seen = evidence(people, voices, said, pictures=pictures, other_language=language, speech_untranscribed=mute)
    return seen, names


def without_quotes(text: str) -> str:
    return re.sub(r"“[^”]*”", "“”", text)


def at_once(found: Sequence[Track]) -> int:
    """The most that are in view at one moment; tracks begin and end at whole seconds here."""
    return max(sum(item.start <= moment <= item.end for item in found) for moment in range(21))


def every_text(found: Description) -> list[str]:
    return [found.text, *(line.text for line in found.lines), *found.observations.values()]


@settings(max_examples=100, deadline=None)
@given(scenes())
def test_any_evidence_gives_text_that_keeps_to_it(scene: tuple[SegmentEvidence, dict[str, str]]) -> None:
    seen, names = scene
    found = describe(seen, names)
    again = describe(seen, names)
    assert (found.text, found.lines, found.observations) == (again.text, again.lines, again.observations)
    assert set(found.observations) == {item.anchor for item in (*seen.tracks, *seen.voices)}
    assert found.lines
    assert list(found.lines) == sorted(found.lines, key=lambda line: line.at)
    allowed = {key for name in names.values() for key in mentioned(name)}
    for text in every_text(found):
        assert text == text.strip()
        assert text[-1] in ".”!?…"
        assert set(mentioned(text)) <= allowed
        plain = re.sub(r"\{\{-?\d+\}\}", "NAME", without_quotes(text))
        assert "{{" not in plain
        assert not re.search(r"\b[av]\d+\b", plain), "an anchor is left over"
        assert "  " not in plain
    assert len("".join(re.findall(r"“([^”]*)”", found.text))) <= 320


@settings(max_examples=100, deadline=None)
@given(scenes())
def test_every_number_agrees_with_the_evidence(scene: tuple[SegmentEvidence, dict[str, str]]) -> None:
    seen, names = scene
    found = describe(seen, names)
    words = {number(count): count for count in range(1, 13)}
    for text in every_text(found):
        plain = without_quotes(text)
        for label in {item.label for item in seen.tracks} & set(COCO_LABELS):
            mine = [item for item in seen.tracks if item.label == label]
            noun = "(?:other )?people" if label == "person" else re.escape(plural(label))
            for said in re.findall(rf"\b({'|'.join(words)}) {noun}\b", plain):
                assert 2 <= words[said] <= at_once(mine)
    people = [item for item in seen.tracks if item.label == "person"]
    if match := re.search(rf"and ({'|'.join(words)}) other (?:person|people)", without_quotes(found.text)):
        unknown = [item for item in people if item.anchor not in names]
        assert words[match.group(1)] <= at_once(unknown)


@settings(max_examples=60, deadline=None)
@given(scenes())
def test_what_was_surely_seen_is_in_the_text(scene: tuple[SegmentEvidence, dict[str, str]]) -> None:
    seen, names = scene
    text = without_quotes(describe(seen, names).text)
    for item in seen.tracks:
        if item.label in COCO_LABELS and (len(item.boxes) >= 2 or item.score >= 0.5):
            if item.label == "person":
                assert item.anchor in names or re.search("person|people", text)
            else:
                assert re.search(rf"{everyday(item.label)}|{plural(item.label)}", text, re.IGNORECASE)
    for anchor, name in names.items():
        if anchor.startswith("a") and any(item.anchor == anchor and item.label == "person" for item in seen.tracks):
            assert name in text
