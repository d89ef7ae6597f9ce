"""The pure parts: the breaker, the waits, JSON among words, prompts."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from edge.reason import breaker as circuit
from edge.reason.backends import Completion, Trouble
from edge.reason.breaker import Breaker, Rules, State
from edge.reason.extraction import NotJsonError, extract_json, schema, validated
from edge.reason.pacing import backoff, retry_after
from edge.reason.wire import Dialect, Format, adapted, clean, completion, endpoint, is_here

RULES = Rules(limit=3, open_s=10.0, longest_s=100.0, probe_s=20.0)

STEPS = st.lists(
    st.tuples(st.sampled_from(["admit", "succeed", "fail", "abandon"]), st.floats(0, 50)), min_size=1, max_size=60
)


@given(STEPS)
def test_the_breaker_keeps_its_promises(steps: list[tuple[str, float]]) -> None:
    breaker, now = Breaker(), 0.0
    in_a_row = 0
    probe_until: float | None = None  # while a probe is out
    for step, passed in steps:
        now += passed
        before = breaker
        if step == "admit":
            breaker, admitted = circuit.admit(breaker, now, RULES)
            if before.state is State.CLOSED:
                assert admitted
                assert breaker == before
            else:
                assert admitted == (now >= before.until)
                if admitted:
                    assert probe_until is None or now >= probe_until  # one probe at a time
                    assert breaker.state is State.HALF_OPEN
                    probe_until = breaker.until
        elif step == "succeed":
            breaker = circuit.succeeded(breaker)
            assert breaker == Breaker()
            in_a_row, probe_until = 0, None
        elif step == "fail":
            breaker = circuit.failed(breaker, now, RULES)
            in_a_row += 1
            if before.state is State.OPEN:
                assert breaker == before
            elif before.state is State.HALF_OPEN or in_a_row >= RULES.limit:
                assert breaker.state is State.OPEN
                assert now + RULES.open_s <= breaker.until <= now + RULES.longest_s
                assert breaker.openings == before.openings + 1
                probe_until = None
            else:
                assert breaker.state is State.CLOSED
        else:
            breaker = circuit.abandoned(breaker, now)
            if before.state is State.HALF_OPEN:
                probe_until = None
            else:
                assert breaker == before
    # Whatever happened, it is tried again some time.
    assert circuit.admit(breaker, now + max(RULES.longest_s, RULES.probe_s) + 1, RULES)[1]


@given(st.integers(0, 10_000), st.floats(0.01, 10), st.floats(0.01, 100), st.integers(0, 2**32))
def test_waits_grow_and_are_bounded(attempt: int, first: float, longest: float, seed: int) -> None:
    assert 0 <= backoff(attempt, first, longest, random.Random(seed)) <= min(longest, first * 2.0 ** min(attempt, 32))


@given(st.text(max_size=40) | st.sampled_from(["-1", "1e9", "٣", "inf", "nan", "Mon, 99 Foo 0000 99:99:99 GMT"]))
def test_any_retry_after_is_a_wait_or_nothing(value: str) -> None:
    wait = retry_after(value, 0.0)
    assert wait is None or 0 <= wait <= 86_400


def test_a_retry_after_is_seconds_or_a_date() -> None:
    assert retry_after("7", 0.0) == 7
    assert retry_after(formatdate(1_000_030, usegmt=True), 1_000_000.0) == 30
    assert retry_after(formatdate(1_000_000, usegmt=True), 1_000_030.0) == 0
    assert retry_after(None, 0.0) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), JSON, min_size=1, max_size=4)
PROSE = st.text(st.characters(codec="utf-8", exclude_characters="{}[]<>"), max_size=30)


@given(OBJECTS, PROSE, PROSE, st.booleans(), st.integers(0, 2))
def test_an_object_is_found_whatever_stands_around_it(
    value: dict[str, Any], before: str, after: str, fenced: bool, indent: int
) -> None:
    written = json.dumps(value, indent=indent or None)
    text = f"{before}\n```json\n{written}\n```\n{after}" if fenced else f"{before}{written}{after}"
    assert extract_json(text) == value


@given(
    st.text(max_size=300) | st.text(st.sampled_from('{}[]",:\\nul1.e- \ud800'), max_size=300) | st.binary().map(repr)
)
def test_any_text_is_json_or_is_not(text: str) -> None:
    with suppress(NotJsonError):
        json.dumps(extract_json(text), ensure_ascii=False, allow_nan=False).encode()


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "{" * 999_999, '{"a": 1e999}', '{"a": ' + "9" * 5000 + "}", "[{" * 1000 + "}"],
)
def test_bombs_are_no_json(text: str) -> None:
    with pytest.raises(NotJsonError):
        extract_json(text)


class Inner(BaseModel):
    x: int = 1


class Outer(BaseModel):
    properties: list[Inner] = []
    either: Inner | None = None


def test_a_schema_is_closed_at_every_depth() -> None:
    made = schema(Outer)
    assert made["required"] == ["properties", "either"]
    assert made["$defs"]["Inner"]["required"] == ["x"]
    assert made["$defs"]["Inner"]["additionalProperties"] is False
    assert validated("{}", Outer) == Outer()  # what has a default may be left out all the same


@pytest.mark.parametrize(
    ("base", "made"),
    [
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("http://localhost:11434/", "http://localhost:11434/v1/chat/completions"),
        ("https://a.example/openai/v1/", "https://a.example/openai/v1/chat/completions"),
        ("https://a.example/v1/chat/completions", "https://a.example/v1/chat/completions"),
    ],
)
def test_addresses_are_understood_with_and_without_their_version(base: str, made: str) -> None:
    assert endpoint(base, "chat/completions") == made


def test_only_this_device_is_here() -> None:
    for url in (
        "http://localhost:1",
        "http://127.0.0.1/v1",
        "http://127.1.2.3",
        "http://[::1]:8080",
        "http://LOCALHOST",
    ):
        assert is_here(url), url
    for url in (
        "http://192.0.2.1",
        "http://localhost.example",
        "http://user:localhost@example.com",
        "http://0.0.0.0",
        "x",
    ):
        assert not is_here(url), url


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_completion_or_trouble(content: bytes) -> None:
    with suppress(Trouble):
        assert isinstance(completion(content), Completion)
    assert clean(content).isprintable()


@given(st.sampled_from([400, 404, 415, 422, 500, 501, 401]), st.binary(max_size=100))
def test_a_dialect_is_learnt_in_a_few_steps(status: int, content: bytes) -> None:
    dialect: Dialect | None = Dialect()
    for _ in range(5):
        if dialect is None:
            break
        dialect = adapted(dialect, status, content)
    assert dialect is None


def test_formats_are_given_up_one_by_one() -> None:
    first = adapted(Dialect(), 400, b"unknown field response_format")
    assert first is not None
    assert first.form is Format.JSON_OBJECT
