from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.app.replay import is_somebody, replay
from edge.capture import BadLine, DescribedFile, DescribedSegment
from edge.capture.described import parse_line
from edge.errors import SourceError
from edge.memory import Store
from edge.recall import Level, Recall
from edge.types.media import SourceKind
from edge.types.records import EntityKind
from tests.recall_data import BagEmbedder

EMBEDDER = BagEmbedder()


def _segment(second: int, captions: list[str], said: list[tuple[str | None, str]] = (), camera: str = "glasses") -> str:
    stamp = f"2025-02-01T10:{second // 60:02}:{second % 60:02}"
    end = f"2025-02-01T10:{(second + 30) // 60:02}:{(second + 30) % 60:02}"
    return json.dumps(
        {
            "camera": camera,
            "start": stamp,
            "end": end,
            "captions": [{"at": stamp, "text": text} for text in captions],
            "utterances": [{"at": stamp, "speaker": who, "text": text} for who, text in said],
        }
    )


LINES = [
    _segment(0, ["I open the shed."], [("Ruth", "Mind the ladder."), ("Others", "Hello!")]),
    _segment(
        30, ["Ruth carries the ladder to Omar.", "The rain starts."], [("Omar", "Thanks, Ruth."), (None, "(thunder)")]
    ),
    _segment(60, ["We wait under the roof."]),
    _segment(90, ["Omar and Ruth share a pear."], [("Ruth:", "It is ripe.")]),
]


def _write(path: Path, lines: list[str]) -> DescribedFile:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return DescribedFile(path)


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "home") as opened:
        yield opened


def test_segments_become_traces_with_people_and_words(store: Store, tmp_path: Path) -> None:
    report = replay(store, EMBEDDER, _write(tmp_path / "s.jsonl", LINES))
    assert (report.segments, report.bad, report.resumed) == (4, [], 0)
    traces = store.traces(newest_first=False)
    assert [trace.text for trace in traces][1] == "Ruth carries the ladder to Omar. The rain starts."
    assert [line.text for line in traces[3].lines] == ["Omar and Ruth share a pear."]
    assert [(u.speaker_name, u.text) for u in traces[0].utterances] == [
        ("Ruth", "Mind the ladder."),
        ("Others", "Hello!"),
    ]
    assert traces[0].utterances[1].speaker is None
    people = {person.name: person for person in store.entities()}
    assert set(people) == {"Ruth", "Omar"}
    assert all(person.kind is EntityKind.NAMED for person in people.values())
    assert {sighting.trace for sighting in store.sightings(people["Ruth"].id)} == {1, 2, 4}
    (ruth,) = store.observations(entity=people["Ruth"].id, trace=2)
    assert ruth.text == "Ruth carries the ladder to Omar."


def test_a_replayed_name_can_be_corrected_everywhere(store: Store, tmp_path: Path) -> None:
    replay(store, EMBEDDER, _write(tmp_path / "s.jsonl", LINES))
    omar = next(person for person in store.entities() if person.name == "Omar")
    store.set_name(omar.id, "Umar")
    assert store.trace(4).text == "Umar and Ruth share a pear."
    assert Recall(store, EMBEDDER).search(Level.TRACE, "Umar pear")[0].id == "t4"


def test_a_second_run_goes_on_and_writes_nothing_twice(store: Store, tmp_path: Path) -> None:
    file = _write(tmp_path / "s.jsonl", LINES)
    stop = threading.Event()

    def after_two(report) -> None:
        if report.segments == 2:
            stop.set()

    first = replay(store, EMBEDDER, file, stop=stop, progress=after_two)
    assert first.interrupted
    assert first.segments == 2
    second = replay(store, EMBEDDER, file)
    assert (second.resumed, second.segments) == (2, 2)
    assert [trace.text.split()[0] for trace in store.traces(newest_first=False)] == ["I", "Ruth", "We", "Omar"]
    third = replay(store, EMBEDDER, file)
    assert (third.resumed, third.segments) == (4, 0)
    assert store.counts().traces == 4
    assert [source.kind if hasattr(source, "kind") else source.finished for source in store.sources()] in (
        [SourceKind.REPLAY],
        [True],
    )


def test_a_resumed_memory_is_the_same_as_one_written_at_once(tmp_path: Path) -> None:
    def content(store: Store) -> list[object]:
        tables = ("trace", "line", "utterance", "observation", "entity", "embedding", "signs", "document")
        columns = {
            "trace": "id, camera, start, end, text, detail",
            "entity": "id, kind, number, name, first_seen, last_seen",
        }
        return [sorted(store.rows(f"select {columns.get(table, '*')} from {table}"), key=repr) for table in tables]

    file = _write(tmp_path / "s.jsonl", LINES)
    with Store.open(tmp_path / "whole") as store:
        replay(store, EMBEDDER, file)
        whole = content(store)
    with Store.open(tmp_path / "parts") as store:
        for count in (1, 2, 1):
            stop = threading.Event()
            replay(
                store,
                EMBEDDER,
                file,
                stop=stop,
                progress=lambda r, n=count, s=stop: s.set() if r.segments == n else None,
            )
        assert content(store) == whole


def test_every_trace_has_as_many_vectors_as_units(store: Store, tmp_path: Path) -> None:
    from edge.memory import index

    lines = [_segment(i * 30, [f"Ruth{' and Bartholomew' if i > 3 else ''} moves box {j}." for j in range(i + 1)],
                      [("Ruth", "Heavy."), ("Bartholomew", "Very.")] if i > 2 else [("Ruth", "Heavy.")]) for i in range(12)]  # fmt: skip
    replay(store, EMBEDDER, _write(tmp_path / "s.jsonl", lines))
    titles = store.titles()
    for trace in store.traces(limit=100):
        units = index.trace_units(store.connection(), trace.id, titles.__getitem__)
        ((vectors,),) = store.rows("select count(*) from embedding where trace = ? and unit > 0", (trace.id,))
        assert len(units) == vectors


def test_bad_lines_are_counted_with_their_number_and_the_rest_is_written(store: Store, tmp_path: Path) -> None:
    bad = [
        "not json",
        "[]",
        '{"camera": "c"}',
        '{"camera": "c", "start": "yesterday", "end": "2025-01-01"}',
        '{"camera": "c", "start": "2025-01-02", "end": "2025-01-01", "captions": [{"at": "2025-01-01", "text": "x"}]}',
        '{"camera": "c", "start": "2025-01-01", "end": "2025-01-02"}',
        '{"camera": " ", "start": "2025-01-01", "end": "2025-01-02", "captions": [{"at": "2025-01-01", "text": "x"}]}',
    ]
    report = replay(store, EMBEDDER, _write(tmp_path / "s.jsonl", [LINES[0], *bad, "", LINES[1]]))
    assert report.segments == 2
    assert [number for number, _ in report.bad] == [2, 3, 4, 5, 6, 7, 8]
    assert all(reason for _, reason in report.bad)


def test_two_cameras_of_one_file_are_kept_apart(store: Store, tmp_path: Path) -> None:
    lines = [
        _segment(0, ["A cat sleeps."], camera="hall"),
        _segment(0, ["A dog barks."], camera="yard"),
        _segment(30, ["It wakes."], camera="hall"),
    ]
    file = _write(tmp_path / "s.jsonl", lines)
    replay(store, None, file)
    assert {trace.camera for trace in store.traces()} == {"hall", "yard"}
    assert replay(store, None, file).segments == 0


def test_without_an_embedder_words_find_the_traces(store: Store, tmp_path: Path) -> None:
    replay(store, None, _write(tmp_path / "s.jsonl", LINES))
    assert Recall(store, EMBEDDER).search(Level.TRACE, "pear")[0].id == "t4"


@pytest.mark.parametrize("kind", ["absent", "empty", "directory"])
def test_what_is_no_file_of_segments_is_one_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    if kind == "empty":
        path.touch()
    elif kind == "directory":
        path.mkdir()
    with pytest.raises(SourceError) as caught:
        DescribedFile(path)
    assert str(path) in str(caught.value)


keys = st.sampled_from(["camera", "start", "end", "captions", "at", "text"])
documents = st.recursive(
    st.none() | st.text(max_size=9) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
).map(lambda value: json.dumps(value).encode())


@given(st.binary(max_size=200) | documents)
def test_any_line_is_a_segment_or_bad(line: bytes) -> None:
    assert isinstance(parse_line(line), DescribedSegment | BadLine)


@pytest.mark.parametrize("label", ["Ruth", "Omar Khan", "Zoë", "李婷"])
def test_names_are_somebody(label: str) -> None:
    assert is_somebody(label)


@pytest.mark.parametrize(
    "label", ["Others", "Unknown", "Male Guest", "(Lyrics)", "speaker 1", "everyone", "", "???", "S1"]
)
def test_labels_for_anybody_are_nobody(label: str) -> None:
    assert not is_somebody(label)
