from __future__ import annotations

import json
import shutil
import stat
from datetime import datetime
from pathlib import Path

import pytest

from edge.cli import recall as commands
from edge.memory import Store
from tests.command import Command, reflectworld
from tests.recall_data import BagEmbedder, tell
from tests.test_replay import LINES

__all__ = ["reflectworld"]

EMBEDDER = BagEmbedder()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_embedder", lambda *_: EMBEDDER)
    monkeypatch.setenv("REFLECTWORLD_RECALL__HEAD", "off")  # it reads the states of the real embedder only


@pytest.fixture
def told(home: Path) -> Path:
    with Store.open(home) as store:
        tell(store, EMBEDDER)
    return home


def test_ask_prints_an_answer_and_its_ids(reflectworld: Command, told: Path) -> None:
    ran = reflectworld("ask", "Where did I last see a cup?")
    assert ran.code == 0
    assert "A cup was last seen" in ran.out
    assert "t3" in ran.out
    assert "k2" in ran.out


def test_ask_as_json_has_the_documented_fields(reflectworld: Command, told: Path) -> None:
    document = json.loads(reflectworld("ask", "Where did I last see a cup?", "--json").out)
    assert list(document) == [
        "question", "kind", "answer", "found", "start", "end", "people", "camera", "key_frame", "cited", "evidence",
        "notes", "understood", "rounds", "looks", "id", "ms",
    ]  # fmt: skip
    assert document["found"] is True
    assert datetime.fromisoformat(document["start"]).tzinfo is not None
    assert list(document["evidence"][0]) == [
        "id", "level", "trace", "camera", "start", "end", "score", "text", "entities", "key_frame",
    ]  # fmt: skip
    lacking = json.loads(reflectworld("ask", "Is there a dog?", "--json").out)
    assert lacking["found"] is False
    assert lacking["cited"] == []


def test_ask_at_a_moment_knows_nothing_later(reflectworld: Command, told: Path) -> None:
    ran = reflectworld("ask", "Where did I last see a cup?", "--at", "2025-01-07T12:00:00+01:00", "--json")
    assert json.loads(ran.out)["camera"] == "hall"


def test_the_picture_of_an_answer_is_written_for_its_owner_alone(
    reflectworld: Command, told: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ran = reflectworld("ask", "Where did I last see a cup?", "--open")
    (path,) = tmp_path.glob("reflectworld-k2-*.jpg")
    assert str(path) in ran.out
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes()[:2] == b"\xff\xd8"
    assert "no picture" in reflectworld("ask", "Is there a dog?", "--open").err


def test_search_and_timeline_as_json(reflectworld: Command, told: Path) -> None:
    found = json.loads(reflectworld("search", "screwdriver", "--level", "line", "--json").out)
    assert found[0]["id"] == "t3"
    assert "screwdriver" in found[0]["text"]
    line = json.loads(reflectworld("timeline", "--json").out)
    assert [trace["id"] for trace in line] == ["t1", "t2", "t3", "t4"]
    assert line[0]["entities"] == [{"id": "p1", "title": "Anna"}]
    assert line[0]["utterances"][1]["speaker_name"] == "Anna"
    assert line[0]["key_frames"] == ["k1"]
    assert "{{" not in json.dumps(line)
    anna = json.loads(reflectworld("timeline", "--person", "Anna", "--camera", "hall", "--json").out)
    assert [trace["id"] for trace in anna] == ["t1", "t2", "t4"]
    early = json.loads(reflectworld("timeline", "--until", "2025-01-06", "--json").out)
    assert [trace["id"] for trace in early] == ["t1", "t2"]
    assert json.loads(reflectworld("timeline", "--since", "yesterday", "--json").out) == []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("ask", ""), 2, "empty"),
        (("ask", "why " * 25_000), 2, "characters"),
        (("search", "cup", "--person", "Nobody"), 2, "nobody called"),
        (("search", "cup", "--camera", "attic"), 2, "attic"),
        (("timeline", "--since", "soonish"), 2, "not a time"),
        (("replay", "/nowhere/x.jsonl"), 2, "no file"),
        (("recall", "--batch", "/nowhere/x.jsonl"), 2, "no file"),
    ],
)
def test_bad_input_is_one_sentence(
    reflectworld: Command, told: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = reflectworld(*arguments)
    assert ran.code == code
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert reflectworld("ask", "Is there a cat?").code == 0


def test_asking_where_there_is_no_memory_says_what_to_do(reflectworld: Command, home: Path) -> None:
    ran = reflectworld("ask", "Is there a cat?")
    assert ran.code != 0
    assert "no memory" in ran.err


def test_replay_then_recall_in_a_batch(reflectworld: Command, home: Path, tmp_path: Path) -> None:
    segments, queries, ranked = (tmp_path / name for name in ("s.jsonl", "q.jsonl", "r.jsonl"))
    segments.write_text("\n".join([LINES[0], "broken", *LINES[1:]]) + "\n")
    ran = reflectworld("replay", str(segments), "--json")
    assert ran.code == 0
    report = json.loads(ran.out)
    assert (report["segments"], [bad["line"] for bad in report["bad"]]) == (4, [2])
    assert "Line 2" in ran.err
    rows = [
        {
            "id": "a",
            "at": "2025-02-01T10:01:00",
            "question": "Who carries the ladder?",
            "choices": {"A": "A horse", "B": "Ruth"},
        },
        {"id": 7, "at": "2025-02-01T10:01:00", "question": "Who shares a pear?"},
        {"id": "c", "at": "2025-02-01T23:00:00", "question": "Who shares a pear?"},
        {"id": "d", "at": "2025-02-01T23:00:00", "question": ""},
    ]
    queries.write_text("\n".join(map(json.dumps, rows)) + "\nbroken\n")
    ran = reflectworld("recall", "--batch", str(queries), "--k", "3", "--out", str(ranked))
    assert ran.code == 0
    assert "Line 5" in ran.err
    a, b, c, d = map(json.loads, ranked.read_text().splitlines())
    assert a["choice"] == "B"
    assert a["results"][0]["id"] == "t2"
    assert a["results"][0]["start"] == "2025-02-01T10:00:30"  # written as `at` was
    assert b["id"] == 7
    assert all(row["end"] <= "2025-02-01T10:01:00" for row in b["results"])
    assert c["results"][0]["id"] == "t4"
    assert list(c["results"][0]) == ["id", "level", "start", "end", "score", "text"]
    assert len(c["results"]) <= 3
    assert d["results"] == []
    assert "empty" in d["error"]
    queries.write_text(json.dumps({**rows[0], "question": "Who was it?", "choices": {"A": "A ladder", "B": "Ruth"}}))
    chosen = json.loads(reflectworld("recall", "--batch", str(queries), "--by-choices").out)
    assert chosen["choice"] in {"A", "B"}
    assert chosen["results"][0]["id"] == "t2"
    offset = {"id": "z", "at": "2025-02-01T23:00:00+05:00", "question": "pear"}
    queries.write_text(json.dumps(offset) + "\n")
    printed = reflectworld("recall", "--batch", str(queries))
    assert (
        json.loads(printed.out)["results"][0]["end"].endswith("+05:00") if json.loads(printed.out)["results"] else True
    )


def test_a_file_without_any_segment_is_refused(reflectworld: Command, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("milk\neggs\n")
    ran = reflectworld("replay", str(path))
    assert ran.code == 2
    assert "no described segment" in ran.err
