"""What happened in a span: told from the nodes of the timeline, on the command line, over HTTP and in an answer."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path

import pytest

from edge.clock import to_local
from edge.consolidate import Worker, build_handlers
from edge.memory import Store
from edge.recall import Level, Recall
from edge.serve import build_app
from edge.types.drafts import NewEntity
from edge.types.records import EntityKind, NameSource, mention
from tests.command import Command, reflectworld
from tests.recall_data import BERLIN, BagEmbedder, Script, moment, said, seen
from tests.serve_support import LOCAL, Keys, call, service_on

__all__ = ["reflectworld"]

NOW = moment("2025-04-10T12:00")
STORIES = {  # day of March -> what is done on it
    3: "paints the fence",
    9: "bakes a plum cake",
    17: "repairs a bicycle",
    28: "plants tulips",
}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spring: every third day from February on has ten moments in the morning."""
    home = tmp_path_factory.mktemp("lived") / "home"
    with Store.open(home) as store:
        script = Script(store, BagEmbedder())
        script.trace(moment("2025-02-01T08:00"), ["A door opens."], entities=[NewEntity(-1, EntityKind.PERSON, "Ida", NameSource.USER)],
                     observations=[seen("person", moment("2025-02-01T08:00"), moment("2025-02-01T08:00") + 5, "", "a1", -1)])  # fmt: skip
        for place in range(80):
            day = to_local(moment("2025-02-01T09:00"), BERLIN) + timedelta(days=place)
            story = STORIES.get(day.day) if day.month == 3 else "sleeps on the sofa"
            if story is None or (day.month != 3 and place % 3):
                continue
            for i in range(8):
                at = day.timestamp() + i * 60
                lines = [f"{mention(1)} {story}, and then once more.", f"The clock shows {i} past nine."]
                script.trace(at, lines, observations=[seen("person", at, at + 20, lines[0], "a1", 1), seen("clock", at, at + 20, "", "a2")],
                             utterances=[said(at + 4, "That is going well today.", 1)], picture=i == 5)  # fmt: skip
        assert Worker(store, build_handlers(store)).drain().failed == 0
    return home


@pytest.fixture
def recall(lived: Path):
    with Store.open(lived, readonly=True) as store:
        yield Recall(store, BagEmbedder(), now=lambda: NOW, zone=BERLIN)


def test_a_month_is_told_by_the_nodes_that_cover_it(recall: Recall) -> None:
    answer = recall.ask("What happened in March?")
    assert answer.found
    for story in STORIES.values():
        assert story in answer.text
    assert "sleeps" not in answer.text
    assert "Ida" in answer.text
    assert "{{" not in answer.text
    assert len(answer.text.split()) < 200
    nodes = [item for item in answer.cited if item.startswith("n")]
    assert 1 <= len(nodes) <= 6
    assert any(item.startswith("t") for item in answer.cited)
    assert answer.key_frame
    assert all(result.start >= moment("2025-03-01T00:00") for result in answer.evidence)


def test_nothing_after_the_question_is_told(recall: Recall) -> None:
    answer = recall.ask("What happened in March?", moment("2025-03-17T09:02:30"))
    assert STORIES[3] in answer.text
    assert STORIES[28] not in answer.text
    assert all(result.end <= moment("2025-03-17T09:02:30") for result in answer.evidence)


def test_a_day_is_told_in_its_own_words(recall: Recall) -> None:
    answer = recall.ask("What happened on 17 March?")
    assert STORIES[17] in answer.text
    assert not any(story in answer.text for day, story in STORIES.items() if day != 17)


def test_nodes_are_found_read_and_taken_apart_as_tools_do(recall: Recall) -> None:
    best = recall.search(Level.CHAPTER, "bakes a plum cake", k=3)[0]
    assert (best.id[0], best.level) == ("n", Level.CHAPTER)
    assert STORIES[9] in best.text
    assert best.people == ("Ida",)
    events = recall.evidence(best.id)
    assert {one.level for one in events} == {Level.EVENT}
    traces = recall.evidence(events[0].id)
    assert {one.level for one in traces} == {Level.TRACE}
    assert events[0].trace == traces[0].id
    around = recall.get(best.id, 1)
    assert [one.level for one in around] == [Level.CHAPTER] * 3
    assert around[1].id == best.id
    assert around[0].start < around[1].start < around[2].start


def test_the_timeline_by_level_on_the_command_line(
    lived: Path, reflectworld: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLECTWORLD_HOME", str(lived))

    def listed(*arguments: str) -> list[dict[str, object]]:
        return json.loads(reflectworld("timeline", *arguments, "--json").out)

    days = listed("--level", "day", "--since", "2025-03-01", "--until", "2025-03-31")
    assert [day["moments"] for day in days] == [8] * 4
    assert {day["summary_source"] for day in days} == {"extractive"}
    assert days[0]["people"] == [{"id": "p1", "title": "Ida", "moments": 8}]
    assert days[0]["things"] == {"clock": 8}
    state = listed("--level", "frontier")
    assert sum(one["moments"] for one in state) == 1 + 8 * 4 + 8 * 17
    assert {"season", "week", "day", "trace"} <= {one["level"] for one in state}
    assert "Ida" in reflectworld("timeline", "--level", "event", "--person", "Ida").out
    assert reflectworld("timeline", "--level", "day", "--since", "2030-01-01").code == 0


def test_the_timeline_and_the_event_of_now_over_http(lived: Path, tmp_path: Path) -> None:
    with Store.open(lived, readonly=True) as store:
        app = build_app(service_on(store), Keys(LOCAL))
        days = call(app, "GET", "/api/v1/timeline?level=day&limit=3").json()
        assert len(days) == 3
        whole = call(app, "GET", f"/api/v1/timeline/{days[-1]['id']}").json()
        assert whole["text"] == days[-1]["text"]
        assert [one["level"] for one in whole["made_of"]] == ["chapter"]
        assert len(call(app, "GET", "/api/v1/timeline").json()) > 3
        assert call(app, "GET", "/api/v1/timeline/n999999").status_code == 404
        assert call(app, "GET", "/api/v1/timeline/t1").status_code == 404
        (working,) = call(app, "GET", "/api/v1/status").json()["working"]
        assert working["current"] is False
        assert working["people"][0]["title"] == "Ida"
        assert len(working["latest"]) == 3
    with Store.open(tmp_path / "now") as store:
        Script(store).trace(time.time() - 20, ["A kettle boils."])
        Worker(store, build_handlers(store)).drain()
        (working,) = call(build_app(service_on(store), Keys(LOCAL)), "GET", "/api/v1/status").json()["working"]
        assert (working["current"], working["summary"]) == (True, "A kettle boils.")


def test_a_correction_on_the_command_line_reaches_what_is_told_of_them(home: Path, reflectworld: Command) -> None:
    start = moment("2025-03-01T10:00")
    with Store.open(home) as store:
        script = Script(store)
        for i, (key, name) in enumerate(((-1, "Ida"), (-2, "Ada"))):
            at = start + i * 30
            script.trace(at, [f"{mention(key)} waters the roses."], entities=[NewEntity(key, EntityKind.PERSON, name, NameSource.USER)],
                         observations=[seen("person", at, at + 20, "", "a1", key)])  # fmt: skip
        Worker(store, build_handlers(store)).drain()

    def people() -> dict[str, int]:
        (event,) = json.loads(reflectworld("timeline", "--level", "event", "--json").out)
        return {one["title"]: one["moments"] for one in event["people"]}

    assert people() == {"Ida": 1, "Ada": 1}
    assert reflectworld("people", "merge", "Ida", "Ada").code == 0
    assert people() == {"Ida": 2}
    assert reflectworld("people", "undo").code == 0
    assert people() == {"Ida": 1, "Ada": 1}
