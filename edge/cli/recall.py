"""`ask`, `search`, `timeline`, `replay` and `recall`: reading the memory, and measuring it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from edge.app.notices import deliver_waiting
from edge.app.orders import Orders
from edge.app.replay import ReplayReport
from edge.app.replay import replay as replay_file
from edge.app.rooms import build_head, build_text_embedder
from edge.app.work import work_through
from edge.capture import DescribedFile
from edge.cli.console import (
    HomeOption,
    JsonOption,
    bar,
    complain,
    open_for_reading,
    open_for_writing,
    print_json,
    say,
    settings_for,
)
from edge.cli.like import look_alikes
from edge.cli.nodes import FRONTIER, list_nodes
from edge.cli.spans import bound, moment
from edge.cli.tools import (
    CameraOption,
    ImportantOption,
    PersonOption,
    PlaceOption,
    SinceOption,
    ThingOption,
    UntilOption,
    filters_of,
    result_json,
)
from edge.clock import iso, to_local
from edge.errors import ModelError, NotFoundError, QuestionError, SettingsError, SourceError, StoreError
from edge.infer import Catalog, Runtime, TextEmbedder
from edge.memory import Store
from edge.notify import Notifier, command
from edge.reason import Reasoner, open_reasoner
from edge.recall import Answer, Level, Recall, Result, looked_at, read_queries, refused, to_line
from edge.settings import Settings
from edge.types.records import Kind, TraceRecord, parse_id, public_id


class TimelineLevel(StrEnum):
    """What `timeline` lists."""

    TRACE = "trace"
    EVENT = "event"
    CHAPTER = "chapter"
    PART = "part"
    DAY = "day"
    WEEK = "week"
    SEASON = "season"
    ERA = "era"
    AGE = "age"
    FRONTIER = FRONTIER


def ask(
    question: Annotated[str, typer.Argument(help="A question in plain English.", show_default=False)],
    at: Annotated[
        str | None, typer.Option("--at", help="Ask as if it were then: nothing that ended later is used.")
    ] = None,
    deep: Annotated[
        bool | None,
        typer.Option(
            "--deep/--reflex",
            help="Look further although the first answer is sure, or no further at all; default: further where it is not.",
        ),
    ] = None,
    open_picture: Annotated[bool, typer.Option("--open", help="Show the picture that the answer cites.")] = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Ask the memory; the answer is drawn from what was seen and heard, with its time, people and picture.

    “Remind me …”, “tell me when …” and “remember that …” are kept instead (see `reflectworld rules`).
    """
    settings = settings_for(home)
    asked = None if at is None else moment(at, end=True)
    if at is None and command(question):
        _order(question, settings, json=json)
        return
    with open_for_reading(settings) as store:
        with _reasoner(settings) as reasoner:
            asker = _recall(store, settings, reasoner)
            answer = _kept(asker, asker.ask(question, asked, deep=deep), settings)
        if json:
            print_json(_answer_json(answer))
        else:
            _say_answer(answer)
        if open_picture:
            _open_picture(store, answer)


@contextmanager
def _reasoner(settings: Settings) -> Iterator[Reasoner | None]:
    """Who asks the language model, where there is one."""
    if settings.reason.backend == "none":
        yield None
        return
    reasoner = open_reasoner(settings.reason, settings.home)
    try:
        yield reasoner
    finally:
        reasoner.close()


def _kept(asker: Recall, answer: Answer, settings: Settings) -> Answer:
    """The answer with the id by which it can be judged."""
    if not settings.recall.keep_answers:
        return answer
    try:
        with open_for_writing(settings) as store:
            return asker.keep(answer, store)
    except StoreError as error:
        complain(f"Note: this answer cannot be judged later: {error}")
        return answer


def _order(text: str, settings: Settings, *, json: bool) -> None:
    """Keep what is ordered in the place of a question: "remind me …", "remember that …"."""
    with open_for_writing(settings) as store:
        order = Orders(store, Notifier(store, settings.notify), _embedder(settings)).take(text)
    if json:
        print_json({"id": order.item, "text": order.text})
    else:
        say(order.text)


def search(
    query: Annotated[str | None, typer.Argument(help="Words or a question.", show_default=False)] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like", help="In place of words: moments that look like this one (t12, k4), or like a picture (a file)."
        ),
    ] = None,
    level: Annotated[Level, typer.Option("--level", help="What to find by words.")] = Level.TRACE,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="How many.")] = 10,
    since: SinceOption = None,
    until: UntilOption = None,
    camera: CameraOption = None,
    person: PersonOption = None,
    thing: ThingOption = None,
    place: PlaceOption = None,
    important: ImportantOption = False,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Search the memory by words and by meaning, or by what moments look like, best first."""
    if (query is None) == (like is None):
        raise QuestionError("Give words to search for, or --like with a moment or a picture, and not both.")
    if like is not None and (thing or place or important):
        raise QuestionError("--like goes with --since, --until, --camera and --person; leave the other filters out.")
    settings = settings_for(home)
    filters = filters_of(since, until, camera, person, thing, place, important)
    with open_for_reading(settings) as store:
        if query is None:
            results = look_alikes(store, settings, like or "", filters, k)
        else:
            results = _recall(store, settings).search(level, query, filters, k)
    if json:
        print_json([result_json(result) for result in results])
    elif not results:
        say("Nothing was found.")
    else:
        for result in results:
            _say_result(result)


def timeline(
    since: SinceOption = None,
    until: UntilOption = None,
    camera: CameraOption = None,
    person: PersonOption = None,
    level: Annotated[
        TimelineLevel,
        typer.Option(
            "--level",
            help="Moments, or the stretches of time that they were put together to; frontier: what is recent in detail, "
            "the rest in summary.",
        ),
    ] = TimelineLevel.TRACE,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="The latest so many.")] = 50,
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """List what is remembered in the order of time: moment by moment, or in summary.

    An event is a run of moments, a chapter up to eight events of an hour; above days, a week is 8 days, a season 64, an era 512.
    """
    settings = settings_for(home)
    with open_for_reading(settings) as store:
        entity = _person(store, person)
        if level is not TimelineLevel.TRACE:
            list_nodes(
                store,
                level.value,
                since=bound(since, end=False),
                until=bound(until, end=True),
                camera=camera,
                person=entity,
                limit=limit,
                json=json,
            )
            return
        records = store.traces(
            since=bound(since, end=False), until=bound(until, end=True), camera=camera, entity=entity, limit=limit
        )
        records.reverse()
        titles = store.titles({entity for record in records for entity in record.entities})
    if json:
        print_json([_trace_json(record, titles) for record in records])
    elif not records:
        say("Nothing is remembered in that time.")
    else:
        for record in records:
            start, end = to_local(record.start), to_local(record.end)
            who = ", ".join(titles[entity] for entity in record.entities if entity in titles)
            where = f"{public_id(Kind.TRACE, record.id)}  {record.camera}" + (f"  ({who})" if who else "")
            say(f"{start:%Y-%m-%d %H:%M:%S}–{end:%H:%M:%S}  {where}")
            say(f"    {record.text or '(only speech)'}")
            for words in record.utterances:
                say(f"    {words.speaker_name or 'somebody'}: “{words.text}”")


def replay(
    segments: Annotated[Path, typer.Argument(help="SEGMENTS.jsonl: described segments.", show_default=False)],
    json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Write already described segments into the memory, as if they had just been seen.

    A second run of the same file goes on where the first stopped.
    """
    settings = settings_for(home)
    file = DescribedFile(segments)
    embedder = _embedder(settings)
    stop = threading.Event()
    with open_for_writing(settings) as store, bar("Replaying") as advance:
        try:
            report = replay_file(store, embedder, file, stop=stop, progress=lambda now: advance(now.done, file.lines))
        except KeyboardInterrupt:
            stop.set()
            complain("Interrupted: what was written is kept, and the same command goes on from there.")
            raise typer.Exit(130) from None
        with bar("Going over it") as show_work:
            work_through(store, settings, embedder, purpose="reflectworld replay", progress=show_work)
        told = deliver_waiting(store, settings)
    if not report.segments and report.bad and not report.resumed:
        number, reason = report.bad[0]
        raise SourceError(str(segments), f"“{segments}” holds no described segment (line {number}: {reason}).")
    for number, reason in report.bad[:20]:
        complain(f"Line {number} was left out: {reason}.")
    if len(report.bad) > 20:
        complain(f"… and {len(report.bad) - 20} more lines.")
    if json:
        print_json(_replay_json(report))
    else:
        before = f" ({report.resumed} lines were there already)" if report.resumed else ""
        say(f"{report.segments} segments written{before}, {len(report.bad)} lines left out.")
        for text in told:
            say(f"! {text}")


def recall(
    batch: Annotated[Path, typer.Option("--batch", help="QUERIES.jsonl.", show_default=False)],
    out: Annotated[Path | None, typer.Option("--out", help="RANKED.jsonl; default: standard output.")] = None,
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=1000, help="Results a question.")] = 50,
    by_choices: Annotated[
        bool, typer.Option("--by-choices", help="Rank by what the choices say, too, not by the question alone.")
    ] = False,
    home: HomeOption = None,
) -> None:
    """Rank traces for many questions, each seen from its own moment: to measure the memory."""
    settings = settings_for(home)
    queries = list(read_queries(batch))
    with open_for_reading(settings) as store, _output(out) as sink, bar("Recalling") as advance:
        asker = _recall(store, settings)
        for done, (number, query) in enumerate(queries, 1):
            if isinstance(query, str):
                complain(f"Line {number} was left out: {query}.")
            else:
                try:
                    sink.write(to_line(query, asker.rank(query, k, by_choices=by_choices)))
                except QuestionError as error:
                    complain(f"Line {number}: {error}")
                    sink.write(refused(query, error))
            advance(done, len(queries))


# -- what is printed --------------------------------------------------------------------------------------------------


def _say_answer(answer: Answer) -> None:
    if answer.understood is not None:
        say(f"understood: {answer.understood}")
    say(answer.text)
    if answer.found and answer.cited:
        say(f"  [{', '.join(answer.cited[:8])}{', …' if len(answer.cited) > 8 else ''}]")
    if answer.key_frame:
        say(f"  picture: {answer.key_frame} (show it with --open)")
    if answer.looks:
        say(f"  looked further: {'; '.join(looked_at(look) for look in answer.looks)}")
    if answer.id:
        say(f"  right or wrong? reflectworld feedback {answer.id} good|bad")
    for note in answer.notes:
        complain(f"Note: {note}")


def _say_result(result: Result) -> None:
    who = f"  ({', '.join(result.people)})" if result.people else ""
    say(f"{to_local(result.start):%Y-%m-%d %H:%M:%S}  {result.id}  {result.camera}{who}  {result.score:.2f}")
    say(f"    {result.text}")


def _answer_json(answer: Answer) -> dict[str, object]:
    return {
        "question": answer.question,
        "kind": answer.kind.value,
        "answer": answer.text,
        "found": answer.found,
        "start": _iso(answer.start),
        "end": _iso(answer.end),
        "people": list(answer.people),
        "camera": answer.camera,
        "key_frame": answer.key_frame,
        "cited": list(answer.cited),
        "evidence": [result_json(result) for result in answer.evidence],
        "notes": list(answer.notes),
        "understood": answer.understood,
        "rounds": answer.rounds,
        "looks": [
            {
                "memory": look.memory,
                "where": looked_at(look),
                "query": look.query,
                "why": look.why,
                "brought": look.brought,
                "helped": look.helped,
            }
            for look in answer.looks
        ],
        "id": answer.id,
        "ms": round(answer.milliseconds, 2),
    }


def _trace_json(record: TraceRecord, titles: dict[int, str]) -> dict[str, object]:
    return {
        "id": public_id(Kind.TRACE, record.id),
        "camera": record.camera,
        "start": iso(record.start),
        "end": iso(record.end),
        "text": record.text,
        "lines": [{"at": iso(line.at), "text": line.text} for line in record.lines],
        "entities": [
            {"id": public_id(Kind.ENTITY, entity), "title": titles.get(entity, "someone")} for entity in record.entities
        ],
        "utterances": [
            {
                "id": public_id(Kind.UTTERANCE, words.id),
                "start": iso(words.start),
                "end": iso(words.end),
                "speaker": public_id(Kind.ENTITY, words.speaker) if words.speaker is not None else None,
                "speaker_name": words.speaker_name,
                "text": words.text,
            }
            for words in record.utterances
        ],
        "key_frames": [public_id(Kind.KEY_FRAME, frame) for frame in record.key_frames],
    }


def _replay_json(report: ReplayReport) -> dict[str, object]:
    return {
        "lines": report.lines,
        "segments": report.segments,
        "resumed": report.resumed,
        "bad": [{"line": number, "reason": reason} for number, reason in report.bad],
    }


def _iso(at: float | None) -> str | None:
    return None if at is None else iso(at)


# -- small things -----------------------------------------------------------------------------------------------------


def _recall(store: Store, settings: Settings, reasoner: Reasoner | None = None) -> Recall:
    catalog = Catalog.load(settings.infer)
    embedder = _embedder(settings, catalog)
    head = None
    if embedder is not None and settings.recall.head in {"find", "move"}:
        try:
            head = build_head(catalog, embedder)
        except ModelError as error:
            complain(f"Note: questions among other text are found by rules only: {error}")
    return Recall(store, embedder, settings.recall, head=head, reasoner=reasoner)


def _embedder(settings: Settings, catalog: Catalog | None = None) -> TextEmbedder | None:
    try:
        return build_text_embedder(catalog or Catalog.load(settings.infer), Runtime(settings.infer))
    except ModelError as error:
        complain(f"Note: only words are matched, not meaning: {error}")
        return None


def _person(store: Store, person: str | None) -> int | None:
    if person is None:
        return None
    found = store.find_entities(person)
    if not found:
        raise NotFoundError(
            person, f"The memory knows nobody called “{person}”; `reflectworld people` lists everybody."
        )
    if len(found) > 1:
        ids = ", ".join(public_id(Kind.ENTITY, one.id) for one in found)
        raise NotFoundError(person, f"“{person}” may be any of {ids}; give the id.")
    return found[0].id


def _open_picture(store: Store, answer: Answer) -> None:
    if answer.key_frame is None:
        complain("There is no picture of that.")
        return
    jpeg = store.key_frame(parse_id(answer.key_frame)[1]).jpeg
    descriptor, name = tempfile.mkstemp(prefix=f"reflectworld-{answer.key_frame}-", suffix=".jpg")  # mode 0600
    with os.fdopen(descriptor, "wb") as file:
        file.write(jpeg)
    viewer = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if viewer is None:
        say(f"  the picture is in {name}")
        return
    subprocess.Popen([viewer, name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - our own file


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with path.open("wb") as file:
            yield file
    except OSError as error:
        raise SettingsError(f"“{path}” cannot be written ({error.strerror}); choose another --out.") from error
