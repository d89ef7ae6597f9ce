"""Names: what earns one and what does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.identity import Bearer, HeardName, Said, name_claims, names_in
from edge.types.drafts import NameClaim
from edge.types.evidence import Utterance
from edge.types.records import NameSource

SELF, ADDRESSED, USER, NONE = NameSource.SELF, NameSource.ADDRESSED, NameSource.USER, NameSource.NONE


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("I'm Sam.", "Sam"),
        ("I’m Sam", "Sam"),
        ("Hi, I'm Sam.", "Sam"),
        ("Hello everyone, I am Katrina.", "Katrina"),
        ("Hi there! I'm Sam and I live here.", "Sam"),
        ("Nice to meet you, I'm Priya.", "Priya"),
        ("My name is Sam.", "Sam"),
        ("my name is sam", "Sam"),
        ("Hello, my name's Ngozi, nice to meet you.", "Ngozi"),
        ("My name is Shure.", "Shure"),
        ("This is Sam speaking.", "Sam"),
        ("Hi, Sam here.", "Sam"),
        ("I am called Bjorn.", "Bjorn"),
        ("You can call me Kate.", "Kate"),
        ("I'm Rose.", "Rose"),
        ("I'm Will, the new neighbour.", "Will"),
        ("My name is Mark Miller.", "Mark Miller"),
        ("My name is Jean-Luc.", "Jean-Luc"),
        ("I'm Grace. Where do I sit?", "Grace"),
        ("My name is Christian.", "Christian"),
    ],
)
def test_a_name_said_of_oneself_is_heard(text: str, name: str) -> None:
    assert names_in(text) == (Said(name, SELF),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hi Sam.", "Sam"),
        ("Hi, Sam!", "Sam"),
        ("Good morning, Katrina. Did you sleep well?", "Katrina"),
        ("Sam, can you pass me the salt?", "Sam"),
        ("Thanks, Sam.", "Sam"),
        ("Thank you, Rose.", "Rose"),
        ("Thanks Sam for the coffee.", "Sam"),
        ("How are you, Sam?", "Sam"),
        ("Will, could you come here?", "Will"),
        ("Hello, Mark.", "Mark"),
        ("Okay, Lucia, your turn.", "Lucia"),
        ("Look, Tasha, a bird.", "Tasha"),
    ],
)
def test_a_name_that_somebody_is_called_is_heard(text: str, name: str) -> None:
    assert names_in(text) == (Said(name, ADDRESSED),)


@pytest.mark.parametrize(
    "text",
    [
        "I'm not Sam.",
        "I am not called Sam.",
        "My name is not Sam.",
        "My name isn't Sam.",
        "Call Sam.",
        "Please call Sam and tell him I'm late.",
        "He said: I'm Sam.",
        "He said, I'm Sam.",
        "And then she goes. I'm Sam.",
        "“I'm Sam,” he said.",
        'She told me "my name is Kim".',
        "I'm Sam, he said.",
        "I'm sorry.",
        "I'm Jewish.",
        "I'm American.",
        "I'm Christian.",
        "I'm German.",
        "I'm home.",
        "I'm Home.",
        "I'm tired.",
        "I'm early.",
        "I'm Sam's brother.",
        "I'm with Sam.",
        "I'm Mark Twain's biggest fan.",
        "I'm going to Paris.",
        "I'm rose.",
        "i'm grace under pressure",
        "I'm will",
        "Are you Sam?",
        "I'm Sam?",
        "You're Sam, right?",
        "If my name is Sam, what is yours?",
        "They think I'm Sam.",
        "Pretend I'm Sam.",
        "Is Sam here?",
        "Sam's here.",
        "This is Sam.",
        "Tell Sam thanks.",
        "Thanks to Sam we made it.",
        "Hi Sam and Kim.",
        "Thanks, Sam's mother.",
        "Hey Google.",
        "Hey Alexa, what time is it?",
        "Hello there.",
        "Hi guys.",
        "Good morning, everyone.",
        "May I come in?",
        "Will you come?",
        "Hope you are well.",
        "Mark my words.",
        "Rose, lily and daisy are flowers.",
        "Thanks, will do.",
        "Sorry, may I?",
        "I saw Kim, Pat, Sam.",
        "Sam, Kim and Pat went home.",
        "Yeah, Sam can't come.",
        "Well, Sam you know, he never comes.",
        "Hi love.",
        "Hello darling.",
        "I'm so happy.",
        "I'm in.",
        "I'm Batman.",
        "My name is very long.",
        "My name is on the list.",
        "I'm Sam. I'm Kim.",
        "I'M SAM",
        "Bin blue at F two now.",
        "",
        "...",
        "💥 I'm 💥",
    ],
)
def test_what_is_no_introduction_gives_no_name(text: str) -> None:
    assert names_in(text) == ()


@given(st.text(max_size=200))
def test_any_text_is_read_without_trouble(text: str) -> None:
    for said in names_in(text):
        assert said.name.strip()
        assert said.source in (SELF, ADDRESSED)


@given(
    st.sampled_from(["Sam", "Kim", "Rose", "Priya", "Ngozi"]), st.sampled_from(["he said", "She says", "they told me"])
)
def test_reported_speech_gives_no_name(name: str, says: str) -> None:
    for text in (
        f"{says}: I'm {name}.",
        f"{says}, my name is {name}.",
        f"I'm {name}, {says}.",
        f"{says} “I'm {name}.”",
    ):
        assert names_in(text) == ()


# -- belief ---------------------------------------------------------------------------------------------------------


def said(*texts: str) -> list[Utterance]:
    return [Utterance(float(at), at + 1.0, text, "v1") for at, text in enumerate(texts)]


def test_one_self_introduction_is_believed() -> None:
    assert name_claims(said("Hi, I'm Sam."), [3], [None], {}) == (NameClaim(3, "Sam", SELF, 0, accepted=True),)


def test_being_called_once_is_kept_and_twice_is_believed() -> None:
    talk = said("Hi Sam.", "Sam, can you help?")
    claims = name_claims(talk, [4, 4], [3, 3], {})
    assert [claim.accepted for claim in claims] == [False, True]
    assert {claim.entity for claim in claims} == {3}


def test_the_second_time_may_come_in_a_later_segment() -> None:
    claims = name_claims(said("Thanks, Sam."), [4], [3], {}, [HeardName(3, "Sam", ADDRESSED)])
    assert claims == (NameClaim(3, "Sam", ADDRESSED, 0, accepted=True),)


def test_two_names_in_one_utterance_count_once() -> None:
    claims = name_claims(said("Hi Sam. Sam, can you help?"), [4], [3], {})
    assert [claim.accepted for claim in claims] == [False]


def test_different_names_do_not_add_up() -> None:
    claims = name_claims(said("Hi Sam.", "Hi Kim."), [4, 4], [3, 3], {})
    assert [claim.accepted for claim in claims] == [False, False]


def test_nobody_is_named_without_a_certain_speaker_or_listener() -> None:
    assert name_claims(said("I'm Sam.", "Hi Kim."), [None, None], [3, 3], {}) == ()
    assert name_claims(said("Hi Kim."), [4], [None], {}) == ()
    assert name_claims(said("Hi Kim."), [4], [4], {}) == ()


@given(
    st.lists(st.sampled_from(["I'm Sam.", "I'm Kim.", "Hi Sam.", "Hi Kim.", "Thanks, Pat."]), max_size=8),
    st.sampled_from([USER, SELF, ADDRESSED, NONE]),
)
def test_a_name_yields_only_to_more_authority(talk: list[str], source: NameSource) -> None:
    utterances = said(*talk)
    bearer = Bearer("Eve" if source is not NONE else None, source)
    speakers = [3 if text.startswith("I'm") else 4 for text in talk]
    claims = name_claims(utterances, speakers, [3 if who == 4 else None for who in speakers], {3: bearer})
    accepted = [claim for claim in claims if claim.accepted]
    if source in (USER, SELF):
        assert not accepted
    assert sum(claim.source is SELF for claim in accepted) <= 1
    assert sum(claim.source is ADDRESSED for claim in accepted) <= (1 if source is NONE else 0)
    first_self = next(
        (index for index, claim in enumerate(claims) if claim.accepted and claim.source is SELF), len(claims)
    )
    assert not any(claim.accepted for claim in claims[first_self + 1 :])


def test_a_second_name_is_kept_and_not_believed() -> None:
    claims = name_claims(said("I'm Kim."), [3], [None], {3: Bearer("Sam", SELF)})
    assert claims == (NameClaim(3, "Kim", SELF, 0, accepted=False),)


def test_what_somebody_says_of_themselves_outranks_what_others_call_them() -> None:
    claims = name_claims(said("I'm Samantha."), [3], [None], {3: Bearer("Sam", ADDRESSED)})
    assert claims == (NameClaim(3, "Samantha", SELF, 0, accepted=True),)


def test_a_name_that_is_known_already_is_not_claimed_again() -> None:
    assert name_claims(said("I'm Sam."), [3], [None], {3: Bearer("Sam Miller", SELF)}) == ()


def test_two_people_may_have_one_name() -> None:
    claims = name_claims(said("I'm Sam."), [5], [None], {3: Bearer("Sam", SELF)})
    assert claims == (NameClaim(5, "Sam", SELF, 0, accepted=True),)
