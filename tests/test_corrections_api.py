"""Corrections on the command line and over the API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from edge.memory import Store
from edge.serve import build_app
from tests.command import Command, reflectworld
from tests.memory_support import segment
from tests.serve_support import LOCAL, Keys, call, service_on

__all__ = ["reflectworld"]


def told(home: Path) -> None:
    """Somebody twice: p1 in t1 and t3, p2 in t2."""
    with Store.open(home) as store:
        store.commit(segment(0))
        store.commit(segment(1))
        store.commit(segment(2, who=1))


@pytest.fixture
def app(home: Path) -> Iterator[FastAPI]:
    told(home)
    with Store.open(home) as store:
        yield build_app(service_on(store), Keys(LOCAL))


def people(app: FastAPI) -> dict[str, int]:
    return {one["id"]: one["seen"] for one in call(app, "GET", "/api/v1/people").json()["items"]}


def made(app: FastAPI, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = call(app, "POST", f"/api/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_two_become_one_and_two_again_over_the_api(app: FastAPI) -> None:
    said = made(app, "people/p1/merge", {"other": "p2", "preview": True})
    assert said["correction"] is None
    assert said["text"] == "person 2 (p2) becomes part of person 1 (p1): 1 sighting and 1 utterance in 1 moment."
    assert people(app) == {"p1": 2, "p2": 1}
    done = made(app, "people/p1/merge", {"other": "p2"})
    assert people(app) == {"p1": 3}
    (listed,) = call(app, "GET", "/api/v1/corrections?person=p1").json()
    assert listed == done["correction"]
    assert (listed["kind"], listed["person"], listed["other"]) == ("merge", "p1", "p2")
    undone = made(app, f"corrections/{listed['id']}/undo", {})
    assert undone["undone_at"] is not None
    assert people(app) == {"p1": 2, "p2": 1}
    again = call(app, "POST", f"/api/v1/corrections/{listed['id']}/undo", json={})
    assert (again.status_code, again.json()["detail"]) == (422, "c1 was undone already.")


@pytest.mark.parametrize("way", ["split", "not"])
def test_a_sighting_goes_to_somebody_new_over_the_api(app: FastAPI, way: str) -> None:
    done = made(app, f"people/p1/{way}", {"sightings": ["t3"]})["correction"]
    assert (done["kind"], done["created"], done["other"], done["observations"]) == (way, True, "p3", 1)
    assert people(app) == {"p1": 1, "p2": 1, "p3": 1}
    made(app, f"people/p3/{way}", {"sightings": ["o5"], "to": "p2"})
    assert people(app) == {"p1": 1, "p2": 2}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("people/p1/merge", {"other": "p1"}, 422),
        ("people/p1/merge", {"other": "p9"}, 404),
        ("people/p9/merge", {"other": "p1"}, 404),
        ("people/p1/split", {"sightings": []}, 422),
        ("people/p1/split", {"sightings": ["t2"]}, 422),
        ("people/p1/split", {"sightings": ["k1"]}, 422),
        ("people/p1/split", {"sightings": ["99"]}, 422),
        ("people/p1/split", {"sightings": ["t99999999999999999999"]}, 422),
        ("people/p1/not", {"sightings": ["t1"], "to": "t1"}, 404),
        ("corrections/c7/undo", {}, 404),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    app: FastAPI, path: str, body: dict[str, Any], status: int
) -> None:
    answer = call(app, "POST", f"/api/v1/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"]
    assert people(app) == {"p1": 2, "p2": 1}


def test_corrections_on_the_command_line(reflectworld: Command, home: Path) -> None:
    told(home)
    assert reflectworld("people", "history").out == "Nothing was corrected yet.\n"
    said = reflectworld("people", "merge", "person 1", "p2", "--dry-run").out
    assert said == "person 2 (p2) becomes part of person 1 (p1): 1 sighting and 1 utterance in 1 moment.\n"
    done = reflectworld("people", "merge", "person 1", "p2")
    assert (done.code, done.out) == (0, f"{said}Done. `reflectworld people undo c1` takes it back.\n")
    moved = json.loads(reflectworld("people", "not", "p1", "t3", "--json").out)
    assert moved["done"]
    assert [(one["id"], len(one["sightings"])) for one in moved["people"]] == [("p1", 2), ("p3", 1)]
    assert moved["correction"]["text"].endswith("became those of person 3 (p3), who is somebody else.")
    reflectworld("people", "name", "p3", "Zoë")
    history = json.loads(reflectworld("people", "history", "--json").out)
    assert [(one["id"], one["kind"]) for one in history] == [("c3", "name"), ("c2", "not"), ("c1", "merge")]
    assert [one["id"] for one in json.loads(reflectworld("people", "history", "Zoë", "--json").out)] == ["c3", "c2"]
    assert "would be undone" in reflectworld("people", "undo", "--dry-run").out
    assert reflectworld("people", "undo").out == "c3 is undone: p3 was named Zoë; undone since.\n"
    assert reflectworld("people", "undo", "c1").code == 0
    assert json.loads(reflectworld("people", "undo", "--json").out)["correction"]["id"] == "c2"
    listed = json.loads(reflectworld("people", "list", "--json").out)
    assert sorted((one["id"], len(one["sightings"])) for one in listed) == [("p1", 2), ("p2", 1)]
    nothing = reflectworld("people", "undo")
    assert (nothing.code, nothing.err.count("\n")) == (2, 1)
    assert reflectworld("people", "undo", "t1").code == 2
    assert reflectworld("people", "split", "p1", "t2").code == 2
