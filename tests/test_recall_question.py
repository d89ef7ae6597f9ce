from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.errors import QuestionError
from edge.recall import Known, QuestionKind, understand
from edge.recall.answer.phrases import listed, say_span, say_time, times
from tests.recall_data import BERLIN, NOW, moment

KNOWN = [
    Known(1, "Anna"),
    Known(2, "Will"),
    Known(3, "person 1"),
    Known(4, "Mary Ann"),
    Known(5, "Zoë"),
    Known(6, "voice 2"),
]


def _ask(text: str):
    return understand(text, NOW, BERLIN, KNOWN)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Where is my cup?", QuestionKind.WHERE),
        ("Tell me where I left the keys", QuestionKind.WHERE),
        ("Who was there?", QuestionKind.WHO),
        ("Whose phone is on the table?", QuestionKind.WHO),
        ("When did I last see Anna?", QuestionKind.WHEN),
        ("What time did Anna leave?", QuestionKind.WHEN),
        ("What did Anna say about the trip?", QuestionKind.SAID),
        ("What were they talking about?", QuestionKind.SAID),
        ("How many cups are there?", QuestionKind.COUNT),
        ("How often did I see Anna?", QuestionKind.COUNT),
        ("Is there a cat?", QuestionKind.EXISTS),
        ("Did Anna come?", QuestionKind.EXISTS),
        ("What is on the table?", QuestionKind.WHAT),
        ("cup table", QuestionKind.WHAT),
    ],
)
def test_the_form_of_the_answer_is_read_from_the_question(text: str, kind: QuestionKind) -> None:
    assert _ask(text).kind is kind


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("Where was Anna?", (1,)),
        ("where was anna's cup?", (1,)),
        ("Did Anna meet Mary Ann?", (1, 4)),
        ("Did Mary come?", (4,)),
        ("Did zoe come?", (5,)),
        ("How often did I see person 1?", (3,)),
        ("What did voice 2 say?", (6,)),
        ("Will it rain?", ()),
        ("will anna come?", (1,)),
        ("Where was Will?", (2,)),
        ("Did I see annabel?", ()),
    ],
)
def test_people_are_found_by_name_whatever_its_case_and_accents(text: str, people: tuple[int, ...]) -> None:
    assert _ask(text).people == people


@pytest.mark.parametrize(
    ("text", "strangers"),
    [
        ("Did Peter come?", ("Peter",)),
        ("What did Peter's brother say?", ("Peter",)),
        ("Do I know somebody called peter?", ("peter",)),
        ("Where was person 7?", ("person 7",)),
        ("Was I in Paris?", ()),
        ("Did Anna come on Monday?", ()),
        ("Is there a Teddy?", ()),
        ("Where is it?", ()),
    ],
)
def test_names_of_nobody_known_are_noticed(text: str, strangers: tuple[str, ...]) -> None:
    assert _ask(text).strangers == strangers


def test_things_lead_to_the_classes_of_the_detector() -> None:
    question = _ask("How many mugs and cell phones were near the dining table?")
    assert [thing.labels for thing in question.things] == [("cup",), ("cell phone",), ("dining table",)]


def test_content_words_leave_out_names_times_and_the_way_of_asking() -> None:
    question = _ask("Do you remember what Anna told me about the red umbrella yesterday?")
    assert question.words == ("red", "umbrella")
    assert question.topic == ("red", "umbrella")
    assert question.me


@given(st.text(max_size=200))
def test_any_text_is_a_question_or_refused(text: str) -> None:
    try:
        question = _ask(text)
    except QuestionError:
        return
    assert question.text


def test_long_questions_are_refused() -> None:
    with pytest.raises(QuestionError, match="4000"):
        _ask("why " * 25_000)


# -- phrases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2025-01-08T08:30:00", "today at 08:30"),
        ("2025-01-07T17:04:59", "yesterday at 17:04"),
        ("2025-01-02T12:00:00", "on Thursday at 12:00"),
        ("2025-01-01T12:00:00", "on 1 January 2025 at 12:00"),
        ("2024-02-29T00:00:00", "on 29 February 2024 at 00:00"),
    ],
)
def test_moments_are_said_as_people_say_them(at: str, words: str) -> None:
    assert say_time(moment(at), NOW, BERLIN) == words


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("2025-01-07T00:00", "2025-01-08T00:00", "yesterday"),
        ("2025-01-08T05:00", "2025-01-08T12:00", "today between 05:00 and 12:00"),
        ("2024-12-30T00:00", "2025-01-06T00:00", "between 30 December and 5 January 2025"),
        ("2025-01-07T18:00", "2025-01-08T06:00", "between 18:00 yesterday and 06:00 today"),
        (None, "2025-01-07T00:00", "before yesterday"),
    ],
)
def test_spans_are_said_as_people_say_them(start: str | None, end: str, words: str) -> None:
    assert say_span(None if start is None else moment(start), moment(end), NOW, BERLIN) == words


def test_small_phrases() -> None:
    assert [listed(list("abc")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [times(n) for n in (0, 1, 2, 3)] == ["never", "once", "twice", "3 times"]
