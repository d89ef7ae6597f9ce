from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.clock import to_local
from edge.recall import Order, understand_when

DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
WORDS = [
    *DAYS, "last", "the", "two", "3", "days", "hours", "ago", "at", "5", "pm", "between", "and", "before", "after", "since",
    "january", "31", "2024", "this", "night", "yesterday", "noon", "week", "in", "on", "99999999999",
]  # fmt: skip
BERLIN = ZoneInfo("Europe/Berlin")
WEDNESDAY = datetime(2025, 1, 8, 15, 20, tzinfo=BERLIN)

CASES = [
    ("Where was Anna at 09:15:20 today?", "2025-01-08T09:15:15", "2025-01-08T09:15:25"),
    ("What did I do yesterday?", "2025-01-07T00:00", "2025-01-08T00:00"),
    ("Where was my cup this morning?", "2025-01-08T05:00", "2025-01-08T12:00"),
    ("Who did I meet last Tuesday?", "2025-01-07T00:00", "2025-01-08T00:00"),
    ("Who did I meet last Wednesday?", "2025-01-01T00:00", "2025-01-02T00:00"),
    ("Who did I meet on Tuesday afternoon?", "2025-01-07T12:00", "2025-01-07T18:00"),
    ("Who came on Friday?", "2025-01-03T00:00", "2025-01-04T00:00"),
    ("What happened on 3 January?", "2025-01-03T00:00", "2025-01-04T00:00"),
    ("What happened on the 3rd of January?", "2025-01-03T00:00", "2025-01-04T00:00"),
    ("What happened on January 3rd, 2024?", "2024-01-03T00:00", "2024-01-04T00:00"),
    ("What happened on 20 December?", "2024-12-20T00:00", "2024-12-21T00:00"),
    ("What happened on 2025-01-03?", "2025-01-03T00:00", "2025-01-04T00:00"),
    ("What happened at 5 pm?", "2025-01-07T16:30", "2025-01-07T17:30"),  # 5 pm is yet to come today
    ("What happened at 2 pm?", "2025-01-08T13:30", "2025-01-08T14:30"),
    ("What happened at 17:04 yesterday?", "2025-01-07T16:49", "2025-01-07T17:19"),
    ("What happened around noon?", "2025-01-08T11:00", "2025-01-08T13:00"),
    ("What did I say two hours ago?", "2025-01-08T12:50", "2025-01-08T13:50"),
    ("What did I eat half an hour ago?", "2025-01-08T14:42:30", "2025-01-08T14:57:30"),
    ("What did I do three days ago?", "2025-01-05T00:00", "2025-01-06T00:00"),
    ("What did I do 3 days ago in the evening?", "2025-01-05T17:00", "2025-01-05T23:00"),
    ("What happened between 3 and 4 pm yesterday?", "2025-01-07T15:00", "2025-01-07T16:00"),
    ("What happened between 9 and 11?", "2025-01-08T09:00", "2025-01-08T11:00"),
    ("What happened from 3 pm to 5 pm yesterday?", "2025-01-07T15:00", "2025-01-07T17:00"),
    ("Who was here before noon?", "2025-01-08T00:00", "2025-01-08T12:00"),
    ("Who was here after 2 pm yesterday?", "2025-01-07T14:00", "2025-01-08T00:00"),
    ("Who came since this morning?", "2025-01-08T05:00", "2025-01-08T15:20"),
    ("Who came before yesterday?", None, "2025-01-07T00:00"),
    ("What did I do in the last 2 hours?", "2025-01-08T13:20", "2025-01-08T15:20"),
    ("What did we do last week?", "2024-12-30T00:00", "2025-01-06T00:00"),
    ("What did we do over the past week?", "2025-01-01T15:20", "2025-01-08T15:20"),
    ("What did Tom say last night?", "2025-01-07T18:00", "2025-01-08T06:00"),
    ("What did I do the day before yesterday at around 10 am?", "2025-01-06T09:00", "2025-01-06T11:00"),
    ("What happened last month?", "2024-12-01T00:00", "2025-01-01T00:00"),
    ("What happened in December?", "2024-12-01T00:00", "2025-01-01T00:00"),
    ("What happened between Monday and Wednesday?", "2025-01-06T00:00", "2025-01-09T00:00"),
    ("What happened last weekend?", "2025-01-04T00:00", "2025-01-06T00:00"),
    ("What was I doing at midnight?", "2025-01-07T23:30", "2025-01-08T00:30"),
]


def _utc(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(("question", "start", "end"), CASES)
def test_time_words_become_the_span_they_mean(question: str, start: str | None, end: str) -> None:
    when = understand_when(question, WEDNESDAY.timestamp(), BERLIN)
    assert (when.start, when.end) == (_utc(start), _utc(end))


@pytest.mark.parametrize(
    "question",
    [
        "Where was the clapperboard placed before?",
        "What is on the 3 tables at 2 places?",
        "Did May come in?",
        "Who sat at the table?",
        "What happened on 30 February?",
        "What will we do on the last day?",
        "How many cups did I see?",
        "",
    ],
)
def test_words_that_are_no_time_bind_nothing(question: str) -> None:
    assert not understand_when(question, WEDNESDAY.timestamp(), BERLIN).binds


@pytest.mark.parametrize(
    ("question", "order"),
    [
        ("When did I last see Anna?", Order.LAST),
        ("Where did I put the cup last time?", Order.LAST),
        ("Who just helped me?", Order.LAST),
        ("When did I first see Anna?", Order.FIRST),
        ("What did we do last week?", Order.NONE),
        ("What did I do in the last two hours?", Order.NONE),
        ("Who came last Tuesday?", Order.NONE),
    ],
)
def test_last_means_an_order_unless_it_belongs_to_a_span(question: str, order: Order) -> None:
    assert understand_when(question, WEDNESDAY.timestamp(), BERLIN).order is order


def test_meals_and_parts_of_any_day_are_preferred_and_do_not_bind() -> None:
    lunch = understand_when("What did I drink after lunch?", WEDNESDAY.timestamp(), BERLIN)
    assert lunch.hours == (12.5, 18.0)
    assert not lunch.binds
    both = understand_when("What did we do yesterday after lunch?", WEDNESDAY.timestamp(), BERLIN)
    assert both.binds
    assert both.hours == (12.5, 18.0)


def test_time_words_leave_the_rest_of_the_question() -> None:
    when = understand_when("Where was my cup yesterday at 5 pm?", WEDNESDAY.timestamp(), BERLIN)
    assert when.rest == "Where was my cup?"
    assert "yesterday" in when.phrase


@pytest.mark.parametrize(
    ("day", "hours"),
    [(date(2025, 3, 30), 23), (date(2025, 10, 26), 25), (date(2025, 3, 29), 24), (date(2024, 2, 29), 24)],
)
def test_days_on_which_the_clock_is_changed_have_their_own_length(day: date, hours: int) -> None:
    now = datetime(day.year, day.month, day.day, 12, tzinfo=BERLIN) + timedelta(days=1)
    when = understand_when("What happened yesterday?", now.timestamp(), BERLIN)
    assert when.start is not None
    assert when.end is not None
    assert when.end - when.start == hours * 3600
    assert to_local(when.start, BERLIN).date() == day


def test_an_hour_that_happens_twice_or_never_is_still_a_time() -> None:
    for day in ("2025-03-30", "2025-10-26"):
        now = datetime.fromisoformat(f"{day}T18:00").replace(tzinfo=BERLIN).timestamp()
        when = understand_when("What happened at 2:30 am?", now, BERLIN)
        assert when.start is not None
        assert when.end is not None
        assert when.start < when.end < now


moments = st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.just(BERLIN))


@given(moments, st.integers(1, 2000))
def test_days_ago_is_one_local_day_and_never_now(now: datetime, days: int) -> None:
    when = understand_when(f"What happened {days} days ago?", now.timestamp(), BERLIN)
    assert when.start is not None
    assert when.end is not None
    wanted = to_local(now.timestamp(), BERLIN).date() - timedelta(days=days)
    assert to_local(when.start, BERLIN).date() == wanted
    assert to_local(when.end - 1, BERLIN).date() == wanted
    assert when.end <= now.timestamp()


@given(moments, st.sampled_from(DAYS))
def test_a_last_weekday_is_that_day_within_the_last_seven(now: datetime, name: str) -> None:
    when = understand_when(f"Who came last {name}?", now.timestamp(), BERLIN)
    assert when.start is not None
    day, today = to_local(when.start, BERLIN).date(), to_local(now.timestamp(), BERLIN).date()
    assert f"{day:%A}".lower() == name
    assert 1 <= (today - day).days <= 7


@given(moments, st.integers(0, 23), st.integers(0, 59))
def test_a_time_of_day_has_begun_when_it_is_asked_about(now: datetime, hour: int, minute: int) -> None:
    when = understand_when(f"What happened at {hour:02}:{minute:02}?", now.timestamp(), BERLIN)
    assert when.start is not None
    assert when.end is not None
    middle = (when.start + when.end) / 2
    assert middle <= now.timestamp() + 3600  # an hour that the clock skips or repeats
    assert now.timestamp() - middle <= 26 * 3600


@given(st.text(max_size=80), moments)
def test_any_text_has_a_span_in_order_or_none(text: str, now: datetime) -> None:
    when = understand_when(text, now.timestamp(), BERLIN)
    if when.start is not None and when.end is not None:
        assert when.start <= when.end


@given(
    st.lists(
        st.sampled_from(WORDS),
        max_size=9,
    ),
    moments,
)
def test_any_mixture_of_time_words_is_read(words: list[str], now: datetime) -> None:
    when = understand_when(" ".join(words), now.timestamp(), BERLIN)
    if when.start is not None and when.end is not None:
        assert when.start <= when.end
