"""Rules in plain words, what they look at, and what is decided and sent."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.consolidate import Worker, build_handlers
from edge.errors import UserError
from edge.memory import Store
from edge.memory.tiers.procedural import AlertRecord, Outcome
from edge.notify import Delivery, Notifier, command, sinks, understand
from edge.notify.program import Absent, Alert, Hours, Moves, Quiet, Remember, Reminder, Said, Seen, Who
from edge.notify.resolver import Candidate, Policy, decide
from edge.serve import build_app
from edge.settings import NotifySettings
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.recall_data import BERLIN, Script, moment, said, seen
from tests.serve_support import LOCAL, Keys, call, service_on

NOON = moment("2026-12-01T12:00")


def due(text: str, now: float = NOON) -> str:
    program = understand(text, now, BERLIN)
    assert isinstance(program, Reminder)
    assert program.due is not None
    return datetime.fromtimestamp(program.due, BERLIN).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("remind me to call Anna at 5 pm", "2026-12-01 17:00"),
        ("remind me to call Anna at 5", "2026-12-01 17:00"),
        ("remind me to call Anna at 11 am", "2026-12-02 11:00"),  # past today
        ("remind me in three minutes to check the oven", "2026-12-01 12:03"),
        ("in half an hour remind me to turn it off", "2026-12-01 12:30"),
        ("remind me tomorrow morning to water the plants", "2026-12-02 09:00"),
        ("remind me on Friday at 9:30 to send the letter", "2026-12-04 09:30"),
        ("remind me to take my pills every day at 8", "2026-12-02 08:00"),
        ("remind me every weekday at 17:30 to go home", "2026-12-01 17:30"),
        ("please remind me to stretch every 2 hours", "2026-12-01 14:00"),
        ("remind me at noon to eat", "2026-12-02 12:00"),
    ],
)
def test_times_of_reminders(text: str, expected: str) -> None:
    assert due(text) == expected


def test_a_day_of_23_hours_keeps_its_clock() -> None:
    evening = moment("2027-03-27T20:00")
    assert due("remind me tomorrow at 8 am to leave", evening) == "2027-03-28 08:00"
    assert due("remind me in one day to leave", evening) == "2027-03-28 20:00"
    assert due("remind me in 24 hours to leave", evening) == "2027-03-28 21:00"


def test_what_rules_mean() -> None:
    rule = understand("Tell me when the dog is on the couch.", NOON, BERLIN)
    assert isinstance(rule, Alert)
    assert isinstance(rule.condition, Seen)
    assert rule.condition.subject.labels == ("dog",)
    assert rule.condition.place is not None
    assert (rule.condition.place.relation, rule.condition.place.labels) == ("on", ("couch",))
    late = understand("let me know if somebody is at the door after 10 pm", NOON, BERLIN)
    assert isinstance(late, Alert)
    assert late.hours.hold(1, 23.0)
    assert late.hours.hold(1, 2.0)
    assert not late.hours.hold(1, 12.0)
    absent = understand("if nobody was in the kitchen by 10, tell me", NOON, BERLIN)
    assert isinstance(absent, Alert)
    assert isinstance(absent.condition, Absent)
    assert absent.condition.by == 10.0
    speech = understand("alert me when Jake mentions the plan", NOON, BERLIN)
    assert isinstance(speech, Alert)
    assert isinstance(speech.condition, Said)
    assert speech.condition.words == ("plan",)
    assert speech.condition.speaker is not None
    comes = understand("tell me when anna comes home", NOON, BERLIN)
    assert isinstance(comes, Alert)
    assert isinstance(comes.condition, Moves)
    assert comes.condition.subject.who is Who.NAMED
    assert understand("don't notify me between 22 and 7", NOON, BERLIN) == Quiet(Hours(22.0, 31.0))
    assert understand("remember that the key is under the pot", NOON, BERLIN) == Remember("the key is under the pot")


@pytest.mark.parametrize(
    "text",
    ["", "hello there", "remind me to go", "where are my keys?", "tell me if the cup is not on the table", "x" * 400],
)
def test_what_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"say|Say|name"):
        understand(text, NOON, BERLIN)


def test_questions_are_no_orders() -> None:
    assert command("remind me at 5 to eat")
    assert command("Tell me when the dog is on the sofa")
    assert not command("when did Anna come home?")
    assert not command("what did you remind me of?")


@given(
    st.text(max_size=80), st.sampled_from(["", "tell me when ", "remind me ", "if ", "remember ", "don't notify me "])
)
def test_whatever_is_said_is_understood_or_refused(words: str, lead: str) -> None:
    try:
        understand(lead + words, NOON, BERLIN)
    except UserError as error:
        told = str(error)
    else:
        return
    assert told


# -- decisions ------------------------------------------------------------------------------------------------------------

POLICY = Policy(cooldown_s=600, topic_s=86_400, daily=3, daily_total=5, zone=BERLIN)


def fired(
    rule: int, at: float, topic: str = "dog on couch", trace: int = 1, outcome: Outcome = Outcome.DELIVER
) -> AlertRecord:
    return AlertRecord(1, rule, trace, at, at, outcome, "", topic, "", (), {}, read=False)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 40_000), st.sampled_from(["a", "b"])), max_size=40),
    st.booleans(),
)
def test_no_alert_is_repeated_inside_its_cool_down(events: list[tuple[int, int, str]], ordered: bool) -> None:
    """Whatever comes, in whatever order: two deliveries of one rule are at least the cool-down apart."""
    sent: list[AlertRecord] = []
    for trace, (rule, offset, topic) in enumerate(sorted(events, key=lambda one: one[1]) if ordered else events, 1):
        candidate = Candidate(rule, trace, NOON + offset, topic, Hours())
        outcome = decide(candidate, sent, POLICY).outcome
        if outcome is not Outcome.DROP:
            sent.append(fired(rule, NOON + offset, topic, trace, outcome))
    for one in sent:
        for other in sent:
            if one is not other and one.rule == other.rule:
                assert abs(one.at - other.at) >= 600
    delivered = [one for one in sent if one.outcome is Outcome.DELIVER]
    assert all(sum(one.at <= other.at < one.at + 86_400 for other in delivered) <= 5 for one in delivered)


def test_the_reasons_in_their_order() -> None:
    candidate = Candidate(1, 9, NOON, "dog on couch", Hours())
    assert decide(candidate, [], POLICY).outcome is Outcome.DELIVER
    assert "outside the hours" in decide(Candidate(1, 9, NOON, "x", Hours(22, 30)), [], POLICY).reason
    assert "cool-down" in decide(candidate, [fired(1, NOON - 60)], POLICY).reason
    assert "same moment" in decide(candidate, [fired(1, NOON, trace=9)], POLICY).reason
    assert "Another rule" in decide(candidate, [fired(2, NOON - 3600)], POLICY).reason
    quiet = Policy(600, 86_400, 3, 5, (Hours(11, 13),), BERLIN)
    assert decide(candidate, [], quiet).outcome is Outcome.DIGEST
    assert decide(Candidate(1, 9, NOON, "x", Hours(), urgent=True), [], quiet).outcome is Outcome.DELIVER
    often = [fired(1, NOON - 3600 * hour, f"t{hour}", hour) for hour in (1, 2, 3)]
    assert decide(candidate, often, POLICY).outcome is Outcome.DIGEST


# -- through the memory ------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


def notifier(store: Store) -> Notifier:
    return Notifier(store, NotifySettings(), zone=BERLIN)


def followed(store: Store) -> list[int]:
    """Let the queue go over what was remembered; the notifications that this brought, in their order."""
    before = {alert.id for alert in notifier(store).alerts(limit=1000)}
    rules = notifier(store)
    worker = Worker(store, build_handlers(store, trace_steps=(rules.look,)))
    worker.drain()
    assert worker.report.failed == 0
    return sorted(a.id for a in rules.alerts(limit=1000) if a.id not in before and a.outcome is Outcome.DELIVER)


def test_the_dog_on_the_sofa(store: Store) -> None:
    rules = notifier(store)
    script = Script(store)
    script.trace(NOON - 60, ["The dog was on the sofa."])  # before the rule
    rule = rules.add("tell me when the dog is on the sofa", now=NOON)
    script.trace(NOON, ["A dog walked by.", "There was no dog on the sofa."])
    script.trace(NOON + 60, ["The sofa was empty and the dog was next to it."])
    assert followed(store) == []
    script.trace(NOON + 120, ["A dog was on a couch."])
    (number,) = followed(store)
    assert followed(store) == []
    alert = rules.alert(number)
    assert alert.text == "Tue 12:02, hall: A dog was on a couch."
    assert alert.ground == ("t4",)
    script.trace(NOON + 180, ["A dog was on a couch."])
    assert followed(store) == []
    assert "cool-down" in rules.why(rule.id)[0].reason
    script.trace(NOON + 900, ["A dog was on a couch."])
    assert len(followed(store)) == 1


def test_people_speech_rooms_and_strangers(store: Store) -> None:
    rules = notifier(store)
    script = Script(store)
    ids = script.trace(
        NOON - 600,
        [f"{mention(-1)} sat."],
        observations=[seen("person", NOON - 600, NOON - 590, f"{mention(-1)} sat.", "a1", -1)],
        entities=[NewEntity(-1, EntityKind.PERSON, "Anna", NameSource.USER)],
    )
    anna = ids[-1]
    for text in (
        "tell me when anna is in the kitchen",
        "tell me when Anna mentions money",
        "remind me to give her the book when I see Anna",
        "warn me if a stranger is in the hall",
    ):
        rules.add(text, now=NOON)
    script.trace(
        NOON + 10,
        [f"{mention(anna)} stood at a table."],
        camera="kitchen",
        observations=[seen("person", NOON + 10, NOON + 20, f"{mention(anna)} stood at a table.", "a1", anna)],
        utterances=[said(NOON + 12, "I have no money today", anna)],
    )
    texts = [rules.alert(number).text for number in followed(store)]
    assert texts == [
        "Tue 12:00, kitchen: Anna stood at a table.",
        "Tue 12:00, kitchen: “I have no money today”",
        "Reminder: give her the book. (Tue 12:00, kitchen: Anna stood at a table.)",
    ]
    assert [rule.text for rule in rules.rules()][-1].startswith("warn me")  # the reminder was given, once
    script.trace(
        NOON + 700,
        ["A person came."],
        observations=[seen("person", NOON + 700, NOON + 705, "A person came.", "a1")],
    )
    assert [rules.alert(number).text for number in followed(store)] == ["Tue 12:11, hall: A person came."]
    store.set_name(anna, "Maria")
    assert "Maria stood" in rules.alerts()[-1].text  # what was told is read with the name of today


def test_nobody_in_the_kitchen_by_ten(store: Store) -> None:
    rules = notifier(store)
    script = Script(store)
    rule = rules.add("if nobody was in the kitchen by 10, tell me", now=NOON)
    day = moment("2026-12-02T00:00")
    at_nine, at_ten = day + 9 * 3600, day + 10 * 3600
    script.trace(
        at_nine,
        ["A person stood."],
        camera="kitchen",
        observations=[seen("person", at_nine, at_nine + 5, "A person stood.", "a1")],
    )
    followed(store)
    assert rules.tick(at_ten - 1) == []
    assert rules.tick(at_ten + 1) == []  # somebody was
    script.trace(at_ten + 86_000, ["A cat."], camera="kitchen")
    followed(store)
    (number,) = rules.tick(at_ten + 86_401)
    assert "not seen since Thu 00:00 (1 moments were looked at)" in rules.alert(number).text
    assert rules.tick(at_ten + 86_500) == []
    assert rules.rule(rule.id).due == at_ten + 2 * 86_400


def test_reminders_come_once_late_or_again_and_again(store: Store) -> None:
    rules = notifier(store)
    rules.add("remind me in three minutes to check the oven", now=NOON)
    daily = rules.add("remind me to take my pills every day at 8", now=NOON)
    assert rules.tick(NOON + 179) == []
    (number,) = rules.tick(NOON + 181)
    assert rules.alert(number).text == "Reminder: check the oven."
    assert rules.tick(NOON + 999) == []
    eight = moment("2026-12-02T08:00")
    (number,) = rules.tick(eight + 7200)  # the device slept
    assert rules.alert(number).text == "Reminder: take my pills (it was due Wed 08:00)."
    assert rules.rule(daily.id).due == eight + 86_400


def test_quiet_hours_keep_for_the_digest(store: Store) -> None:
    rules = notifier(store)
    rules.add("no notifications between 22 and 7", now=NOON)
    rules.add("tell me when a cat is on the table", now=NOON)
    night = moment("2026-12-01T23:00")
    Script(store).trace(night, ["A cat was on a table."])
    assert followed(store) == []
    assert rules.digest(night + 3700) == []
    (kept,) = rules.digest(moment("2026-12-02T07:30"))
    assert kept.text == "Tue 23:00, hall: A cat was on a table."
    assert rules.digest(moment("2026-12-02T09:30")) == []


def test_a_reminder_that_quiet_hours_hold_back_is_told_once(store: Store) -> None:
    rules = notifier(store)
    rules.add("no notifications between 22 and 7", now=NOON)
    rules.add("remind me to close the window when I see a cat", now=NOON)
    night = moment("2026-12-01T23:00")
    for hour in range(3):
        Script(store).trace(night + 3600 * hour, ["A cat was on a table."])
    assert followed(store) == []
    (kept,) = rules.digest(moment("2026-12-02T07:30"))
    assert kept.text.startswith("Reminder: close the window. (Tue 23:00")
    assert [rule.text for rule in rules.rules()] == ["no notifications between 22 and 7"]


def test_a_paused_rule_and_one_twice(store: Store) -> None:
    rules = notifier(store)
    rule = rules.add("tell me when a cat is on the table", now=NOON)
    with pytest.raises(UserError, match="r1 already"):
        rules.add("Tell me when a cat is on the table", now=NOON)
    rules.pause(rule.id, paused=True)
    Script(store).trace(NOON + 5, ["A cat was on a table."])
    assert followed(store) == []
    rules.remove(rule.id)
    assert rules.rules() == []


def test_delivery_goes_on_until_the_webhook_answers(store: Store) -> None:
    answers = [500, 200]
    bodies: list[dict[str, object]] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(answers.pop(0))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        settings = NotifySettings(webhook=f"http://127.0.0.1:{server.server_port}/hook")
        rules = notifier(store)
        told: list[AlertRecord] = []
        delivery = Delivery(store, rules, sinks(settings), told.append)
        rules.add("tell me when a cat is on the table", now=NOON)
        Script(store).trace(NOON + 5, ["A cat was on a table."])
        (number,) = followed(store)
        assert delivery.deliver(NOON + 10) == 1
        assert "answered 500" in rules.alert(number).sent["webhook"]
        assert delivery.deliver(NOON + 11) == 0  # it waits
        assert delivery.deliver(NOON + 20) == 1
        assert rules.alert(number).sent == {"page": "ok", "webhook": "ok"}
        assert [body["id"] for body in bodies] == [f"a{number}"] * 2
        assert delivery.deliver(NOON + 9999) == 0
        assert len(told) == 1
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_old_recording_rings_no_phone(store: Store) -> None:
    rules = notifier(store)
    told: list[AlertRecord] = []
    settings = NotifySettings(webhook="http://127.0.0.1:9/nobody")
    rules.add("tell me when a cat is on the table", now=NOON)
    Script(store).trace(NOON - timedelta(days=30).total_seconds(), ["A cat was on a table."])
    (number,) = followed(store)
    Delivery(store, rules, sinks(settings), told.append).deliver(NOON)
    assert rules.alert(number).sent["webhook"] == "too old to be sent"


def test_rules_and_orders_over_the_api(store: Store) -> None:
    app = build_app(service_on(store), Keys(LOCAL))
    done = call(app, "POST", "/api/v1/orders", json={"text": "tell me when a cat is on the table"})
    assert (done.status_code, done.json()["item"]) == (201, "r1")
    asked = call(app, "POST", "/api/v1/ask", json={"question": "Remember that the key is under the pot."}).json()
    assert asked["kind"] == "order"
    found = call(app, "POST", "/api/v1/ask", json={"question": "Where is the key?"}).json()
    assert "under the pot" in found["answer"]
    (rule,) = call(app, "GET", "/api/v1/rules").json()
    assert (rule["id"], rule["state"]) == ("r1", "active")
    Script(store).trace(NOON + 5, ["A cat was on a table."])
    followed(store)
    page = call(app, "GET", "/api/v1/alerts").json()
    assert [one["text"][-21:] for one in page["items"]] == ["A cat was on a table."]
    assert call(app, "POST", "/api/v1/alerts/a1/read").status_code == 204
    assert call(app, "GET", "/api/v1/alerts").json()["items"][0]["read"]
    assert call(app, "GET", "/api/v1/rules/r1/why").json()[0]["reason"] == "The rule's condition was met."
    assert call(app, "POST", "/api/v1/rules/r1/pause").json()["state"] == "paused"
    assert call(app, "POST", "/api/v1/orders", json={"text": "hello"}).status_code == 422
    assert call(app, "GET", "/api/v1/rules/r9/why").status_code == 404
    assert call(app, "DELETE", "/api/v1/rules/r1").json()["text"] == "tell me when a cat is on the table"
    assert call(app, "GET", "/api/v1/alerts").json()["items"] == []


def test_a_kill_neither_loses_nor_repeats_a_message(tmp_path: Path) -> None:
    """What was remembered and not looked at is looked at after the restart, and once."""
    with Store.open(tmp_path / "home") as store:
        notifier(store).add("tell me when a cat is on the table", now=NOON)
        Script(store).trace(NOON + 5, ["A cat was on a table."])
    with Store.open(tmp_path / "home") as store:
        assert len(followed(store)) == 1
    with Store.open(tmp_path / "home") as store:
        assert followed(store) == []
        told: list[AlertRecord] = []
        assert Delivery(store, notifier(store), (), told.append).deliver(NOON + 10) == 1
    with Store.open(tmp_path / "home") as store:
        assert Delivery(store, notifier(store), (), told.append).deliver(NOON + 20) == 0
    assert len(told) == 1
