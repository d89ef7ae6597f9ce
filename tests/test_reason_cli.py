"""The language model on the command line, in `doctor`, `status` and the metrics."""

from __future__ import annotations

import json
from pathlib import Path

from edge.memory import Store
from edge.reason import Ledger, Tally
from edge.serve import build_app
from tests.command import Command, reflectworld
from tests.memory_support import replayed
from tests.reason_support import fake_models, refuse, tell
from tests.serve_support import LOCAL, Keys, call, service_on

__all__ = ["reflectworld"]


def configure(home: Path, **settings: object) -> None:
    home.mkdir(exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    (home / "config.toml").write_text("\n".join(["[reason]", *lines]))


def model_check(ran: str) -> dict[str, object]:
    (found,) = [one for one in json.loads(ran) if one["check"] == "language model"]
    return found


def test_a_check_asks_something_tiny(home: Path, reflectworld: Command) -> None:
    with fake_models() as models:
        configure(home, backend="openai", base_url=models.url, model="tiny", price_out=1e6)
        models.will(tell({"word": "cup"}, usage=(30, 6)))
        ran = reflectworld("reason", "check", "--home", str(home), "--json")
        assert ran.code == 0, ran.err
        made = json.loads(ran.out)
        assert made["ok"]
        assert made["model"].startswith("tiny at 127.0.0.1")
        assert (made["tokens_in"], made["tokens_out"], made["cost"]) == (30, 6, 6.0)
        assert '"cup"' in models.prompts()[-1]
        assert "30 tokens in" in reflectworld("reason", "check", "--home", str(home)).out
        models.will(refuse(401, "no"))
        ran = reflectworld("reason", "check", "--home", str(home), "--json")
        assert ran.code == 1
        assert json.loads(ran.out)["reason"] == "rejected"


def test_without_a_model_a_check_says_how_to_get_one(home: Path, reflectworld: Command) -> None:
    ran = reflectworld("reason", "check", "--home", str(home))
    assert ran.code == 1
    assert "docs/language-models.md" in ran.out
    assert model_check(reflectworld("doctor", "--home", str(home), "--json").out)["ok"]


def test_doctor_says_whether_it_is_there(home: Path, reflectworld: Command) -> None:
    with fake_models() as models:
        configure(home, backend="openai", base_url=models.url)
        found = model_check(reflectworld("doctor", "--home", str(home), "--json").out)
        assert found["ok"]
        assert not models.asked  # it was not asked for that
    found = model_check(reflectworld("doctor", "--home", str(home), "--json").out)
    assert not found["ok"]
    assert "base_url" in str(found["remedy"])
    configure(home, backend="openai", base_url="http://192.0.2.1")
    assert "allow_remote" in str(model_check(reflectworld("doctor", "--home", str(home), "--json").out)["remedy"])


def test_what_was_asked_is_in_the_status_and_the_metrics(home: Path, reflectworld: Command) -> None:
    with Store.open(home) as store:
        store.commit(replayed(0))
        Ledger(home).add("summary", Tally(requests=2, answered=2, tokens_in=50, cost=0.25), None)
        Ledger(home).add("facts", Tally(requests=1), "offline")
        text = call(build_app(service_on(store), Keys(LOCAL)), "GET", "/metrics").text
    assert 'reflectworld_reason_tokens_in_total{purpose="summary"} 50.0' in text
    assert 'reflectworld_reason_refusals_total{reason="offline"} 1.0' in text
    assert "answered 2 of 3 requests, cost 0.25" in reflectworld("status", "--home", str(home)).out
    made = json.loads(reflectworld("status", "--home", str(home), "--json").out)["reason"]
    assert made["refusals"] == {"offline": 1}
    assert made["purposes"]["summary"]["requests"] == 2
