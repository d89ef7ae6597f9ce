"""Watching real photographs and real speech to the end, with stops, restarts and missing parts in between."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.app import Watch, WatchReport, open_rooms
from edge.errors import StoreError
from edge.infer import Catalog
from edge.memory import Store
from edge.settings import load_settings
from edge.types.media import Mode
from edge.types.records import EntityKind, Outcome
from tests.command import Command, reflectworld
from tools.bench.snapshot import snapshot
from tools.demo.clip import compose

__all__ = ["reflectworld"]

START = 1_767_600_000.0  # 2026-01-05T08:00:00Z


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's clip: a person, a cup, a cat, the person leaving and coming back, a motorcycle, a rocket, the cat."""
    recordings = Catalog.load(load_settings().infer).get("two-cities-speech")
    if not recordings.present:
        pytest.skip("the recordings are not there; `reflectworld models pull --optional` brings them")
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    compose(path, recordings.path("two_cities.wav").parent)
    return path


def watch(home: Path, clip: Path, *, mode: Mode = Mode.OFFLINE_QUALITY, stop_after: int | None = None) -> WatchReport:
    with open_rooms(load_settings(home)) as rooms:
        assert rooms.missing == ()
        job = Watch(rooms, str(clip), camera="glasses", start=START, mode=mode)

        def look(report: WatchReport) -> None:
            if stop_after is not None and report.segments >= stop_after:
                job.stop()

        return job.run(look)


@pytest.fixture(scope="session")
def watched(clip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that holds the whole clip, watched in one go."""
    home = tmp_path_factory.mktemp("watched")
    report = watch(home, clip)
    assert not report.interrupted
    return home


@pytest.fixture
def memory(watched: Path) -> Iterator[Store]:
    settings = load_settings(watched)
    with Store.open(watched, settings.memory, user=settings.user, readonly=True) as store:
        yield store


def test_the_person_is_one_and_was_found_again(memory: Store) -> None:
    people = [entity for entity in memory.entities() if entity.kind is EntityKind.PERSON]
    assert [person.title for person in people] == ["person 1"]
    sightings = memory.observations(entity=people[0].id, newest_first=False)
    assert len(sightings) >= 3
    assert sightings[0].start - START < 1
    assert any(seen.detail["left"] for seen in sightings)
    assert sightings[-1].end - START == pytest.approx(35.0, abs=1.0)


def test_things_and_words_are_remembered_when_they_were_there(memory: Store) -> None:
    def seen(label: str) -> list[tuple[float, float]]:
        return [
            (thing.start - START, thing.end - START) for thing in memory.observations(label=label, newest_first=False)
        ]

    assert all(start >= 9 and end <= 15.01 for start, end in seen("cup"))
    assert seen("cup")
    assert {start // 30 for start, _ in seen("cat")} == {0, 1}
    assert all(start >= 35 and end <= 45.01 for start, end in seen("motorcycle"))
    assert seen("motorcycle")
    said = " ".join(words.text for words in memory.utterances(newest_first=False)).lower()
    assert "best of times" in said
    assert "ever tried" in said


def test_nobody_is_made_of_a_cat_or_a_motorcycle(memory: Store) -> None:
    people = memory.observations(label="person")
    assert people
    assert all(seen.entity is not None for seen in people), [seen.text for seen in people]


def test_every_moment_has_its_source_its_pictures_and_its_decisions(memory: Store) -> None:
    traces = memory.traces(newest_first=False)
    assert [trace.camera for trace in traces] == ["glasses"] * len(traces)
    for before, after in itertools.pairwise(traces):
        assert before.end == pytest.approx(after.start)
    assert traces[-1].end - START == pytest.approx(57.0, abs=0.1)
    for trace in traces:
        assert trace.text
        assert trace.end - trace.start <= 30.001
        for number in trace.key_frames:
            assert memory.key_frame(number).jpeg.startswith(b"\xff\xd8")
    assert memory.integrity() == []


def test_a_second_run_has_nothing_to_do(watched: Path, clip: Path) -> None:
    before = snapshot(watched)
    report = watch(watched, clip)
    assert report.already_finished
    assert snapshot(watched) == before


def test_a_stopped_watch_goes_on_to_the_same_memory(watched: Path, clip: Path, tmp_path: Path) -> None:
    home = tmp_path / "stopped"
    first = watch(home, clip, stop_after=2)
    assert first.interrupted
    assert 0 < first.position < 57
    # The segment that was open when the stop came has an end of its own; what was closed before it is the same.
    whole, part = snapshot(watched), snapshot(home)
    closed = [row for row in part if row[0] == "trace"][:2]
    assert closed == [row for row in whole if row[0] == "trace"][:2]
    second = watch(home, clip)
    assert second.resumed_at == pytest.approx(first.position)
    assert second.position == pytest.approx(57.0, abs=0.1)
    settings = load_settings(home)
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        assert [who.title for who in store.entities() if who.kind is EntityKind.PERSON] == ["person 1"]
        assert store.integrity() == []


def kill_and_resume(clip: Path, home: Path, whole: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    environment = {**os.environ, "REFLECTWORLD_HOME": str(home)}
    command = [
        sys.executable,
        "-m",
        "edge",
        "watch",
        str(clip),
        "--camera",
        "glasses",
        "--start",
        "2026-01-05T08:00:00+00:00",
    ]
    remembered, done = 0, 0
    while done < kills:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.communicate(timeout=dice.uniform(1.0, 7.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            done += 1
        else:
            assert process.returncode == 0
            break
        if (home / "memory.db").exists():
            settings = load_settings(home)
            with Store.open(home, settings.memory, user=settings.user) as store:
                assert store.integrity() == []
                assert store.counts().traces >= remembered
                remembered = store.counts().traces
    finished = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert finished.returncode == 0, finished.stderr
    assert snapshot(home) == snapshot(whole)


def test_a_killed_watch_goes_on_to_the_memory_of_one_that_was_never_killed(
    clip: Path, watched: Path, tmp_path: Path
) -> None:
    kill_and_resume(clip, tmp_path / "killed", watched, kills=3, seed=7)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills(clip: Path, watched: Path, tmp_path: Path) -> None:
    for round_ in range(10):
        kill_and_resume(clip, tmp_path / f"killed{round_}", watched, kills=5, seed=round_)


def test_two_watches_of_one_camera_do_not_mix(clip: Path, tmp_path: Path) -> None:
    settings = load_settings(tmp_path / "home")
    with (
        Store.open(settings.home, settings.memory, user=settings.user) as other,
        other.claim("camera glasses", "test"),
        open_rooms(settings) as rooms,
        pytest.raises(StoreError, match="glasses"),
    ):
        Watch(rooms, str(clip), camera="glasses", start=START).run()


def test_live_latency_loses_no_speech(clip: Path, tmp_path: Path) -> None:
    report = watch(tmp_path / "live", clip, mode=Mode.LIVE_LATENCY)
    assert report.position == pytest.approx(57.0, abs=0.1)
    settings = load_settings(tmp_path / "live")
    with Store.open(settings.home, settings.memory, user=settings.user, readonly=True) as store:
        said = " ".join(words.text for words in store.utterances(newest_first=False)).lower()
    assert "best of times" in said
    assert "ever tried" in said


def test_a_name_reaches_what_was_remembered_before_it(watched: Path, tmp_path: Path, reflectworld: Command) -> None:
    import shutil

    home = tmp_path / "named"
    shutil.copytree(watched, home)
    assert reflectworld("people", "name", "person 1", "Eileen", "--home", str(home)).code == 0
    shown = reflectworld("people", "show", "Eileen", "--home", str(home))
    assert shown.code == 0
    assert "person 1" not in shown.out
    settings = load_settings(home)
    with Store.open(home, settings.memory, user=settings.user, readonly=True) as store:
        assert any("Eileen" in trace.text for trace in store.traces())
        assert not any("person 1" in trace.text.lower() for trace in store.traces())


def test_photographs_that_were_copied_at_one_time_are_not_two_places_at_once(tmp_path: Path) -> None:
    """The date of a file is that of the copy; it does not contradict that one person is on two pictures."""
    import cv2
    import numpy as np
    import skimage.data

    home = tmp_path / "copied"
    picture = np.ascontiguousarray(skimage.data.astronaut()[..., ::-1])
    paths = [tmp_path / "one.jpg", tmp_path / "two.jpg"]
    cv2.imwrite(str(paths[0]), picture)
    cv2.imwrite(str(paths[1]), cv2.convertScaleAbs(picture, alpha=0.9, beta=12))
    for path in paths:
        os.utime(path, (START, START))
    with open_rooms(load_settings(home)) as rooms:
        for path in paths:
            Watch(rooms, str(path)).run()
        people = [who for who in rooms.store.entities() if who.kind is EntityKind.PERSON]
        assert [(who.title, who.sightings) for who in people] == [("person 1", 2)]
        # Given times are believed: then it is a contradiction.
        Watch(rooms, str(paths[0]), camera="hall", start=START + 9000).run()
        Watch(rooms, str(paths[1]), camera="kitchen", start=START + 9000).run()
        (kitchen,) = rooms.store.traces(camera="kitchen")
        assert [made.outcome for made in rooms.store.decisions(trace=kitchen.id)] == [Outcome.CONFLICT]
