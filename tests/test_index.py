from __future__ import annotations

import random
import time
from pathlib import Path

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.errors import StoreError
from edge.memory import Store, index, search_units, trace_vector
from edge.memory.index import Filter
from edge.memory.index.cells import grouped
from edge.recall.question.understand import understand
from edge.recall.search import pool
from edge.recall.search.searcher import Searcher
from edge.types.drafts import CommitDraft, NewEntity, TraceDraft, UtteranceDraft
from edge.types.media import Mode
from edge.types.records import EntityKind, LineDraft
from tests.recall_data import BagEmbedder, Script, WholeEmbedder, said, seen

EMBEDDER = BagEmbedder()


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "home") as opened:
        yield opened


def _documents(store: Store, word: str) -> list[int]:
    connection = store.connection()
    return sorted({n for term in index.tokens(connection, word) for n in index.documents_of(connection, term).tolist()})


def _counts(store: Store, term: str, trace: int) -> float:
    with store.reading() as connection:
        columns = store.columns(connection, None)
        rows, counts = index.postings(connection, columns, term, 0, len(columns.traces))
    return float(counts[columns.traces[rows] == trace].sum())


def _through(store: Store, where: Filter) -> set[int]:
    """What a filter lets through."""
    with store.reading() as connection:
        columns = store.columns(connection, EMBEDDER.key)
        return set(index.corpus_of(columns, index.visible(connection, columns, where)).traces.tolist())


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("She was dancing in the café.", "dance"),
        ("She was dancing in the café.", "CAFE"),
        ("我们在讨论晚饭吃什么。", "晚饭"),
        ("Ein Gruß über den Zaun", "uber"),
        ("Party 🎂tonight", "🎂"),
        ("He writes C++ and “SQL”", "c++"),
        ("Привет, мир", "привет"),
    ],
)
def test_words_are_found_in_any_form_and_script(store: Store, text: str, asked: str) -> None:
    Script(store).trace(0.0, ["Nothing of the kind."])
    Script(store).trace(100.0, [text])
    assert _documents(store, asked) == [2]


@given(st.text(max_size=60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_text_of_a_user_breaks_a_search(store: Store, text: str) -> None:
    hostile = f'{text}" OR * NEAR( -x: ^y {{a b}} AND NOT "'
    connection = store.connection()
    for term in index.tokens(connection, hostile):
        assert index.documents_of(connection, term).tolist() == []


def test_people_are_found_under_a_name_that_they_got_later(store: Store) -> None:
    ids = Script(store).trace(
        0.0,
        ["{{-1}} watered the plants."],
        entities=[NewEntity(-1, EntityKind.PERSON)],
        utterances=[said(1.0, "Hello.", -1)],
    )
    store.set_name(ids[-1], "Beatrice")
    token = index.entity_token(ids[-1])
    assert index.documents_of(store.connection(), token).tolist() == [1]
    assert _counts(store, token, 1) == 2.0  # in the line and as the speaker


def test_a_summary_that_joins_the_lines_does_not_count_their_words_twice(store: Store) -> None:
    Script(store).trace(0.0, ["A kettle boiled.", "A kettle whistled."])
    assert _counts(store, "kettl", 1) == 2.0


def test_units_join_short_neighbours_and_keep_their_numbers_under_another_name(store: Store) -> None:
    lines = tuple(LineDraft(float(i), "{{5}} moved a chair to the window and sat down.") for i in range(9))
    draft = CommitDraft(
        camera="c",
        trace=TraceDraft(0.0, 30.0, "", Mode.OFFLINE_QUALITY, None, lines),
        utterances=(UtteranceDraft(1.0, 2.0, "Well.", None, speaker_name="Tom"),),
    )
    short, long = (search_units(draft, lambda _, name=name: name).units for name in ("Jo", "Maximiliana Alexandra"))
    assert len(short) == len(long) == 4
    assert short[-1] == "Tom: Well."
    assert short[0].count("Jo") == long[0].count("Maximiliana Alexandra")


def test_stored_units_are_those_that_were_embedded(store: Store) -> None:
    Script(store, EMBEDDER).trace(
        0.0, ["A dog barked at the postman. " * 6, "Then it slept."], utterances=[said(2.0, "Quiet!", None, "Tom")]
    )
    units = index.trace_units(store.connection(), 1, lambda _: "someone")
    (count,) = store.rows("select count(*) from embedding where unit > 0")[0]
    assert len(units) == count == 3
    query = EMBEDDER.embed([units[1].text])[0]
    traces = np.array([1])
    _, nearest = index.best_units(query, index.stored_signs(store.connection(), EMBEDDER.key, [1]), traces)
    assert nearest.tolist() == [2]
    exact = index.cosines(store.connection(), query, EMBEDDER.key, traces, nearest)
    assert exact[0] == pytest.approx(1.0, abs=0.01)


def test_the_vector_of_a_trace_is_the_mean_of_its_units() -> None:
    units = EMBEDDER.embed(["one cup", "two cups"])
    assert np.linalg.norm(trace_vector(units)) == pytest.approx(1.0, abs=1e-6)
    assert trace_vector(units[:1]) == pytest.approx(units[0], abs=1e-6)
    with pytest.raises(ValueError, match="no vector"):
        trace_vector(units[:0])


@pytest.mark.parametrize(
    "vector", [np.zeros(64, np.float32), np.full(64, np.nan, np.float32), np.full(64, np.inf, np.float32)]
)
def test_vectors_that_cannot_be_compared_are_refused_with_their_segment(store: Store, vector: np.ndarray) -> None:
    draft = CommitDraft("c", TraceDraft(0.0, 1.0, "x", Mode.OFFLINE_QUALITY, None), vector=vector, embedder="bag")
    with pytest.raises(StoreError):
        store.commit(draft)
    assert store.counts().traces == 0
    with pytest.raises(ValueError, match="cannot be searched for"):
        index.sign_words(vector)


def test_vectors_of_another_embedder_are_never_compared(store: Store) -> None:
    Script(store, BagEmbedder("old", 64)).trace(0.0, ["A red kite flew."])
    Script(store, BagEmbedder("new", 32)).trace(100.0, ["A red kite flew."])
    both = np.array([1, 2])
    for key, dimensions, expected in (("old", 64, [1]), ("new", 32, [2]), ("other", 64, [])):
        query = BagEmbedder(key, dimensions).embed(["A red kite flew."])[0]
        with store.reading() as connection:
            columns = store.columns(connection, key)
            whole = columns.distances(index.sign_words(query), np.arange(2))
            best, _ = index.best_units(query, index.stored_signs(connection, key, [1, 2]), both)
            assert index.stale_traces(connection, "new", 10) == [1]
        assert both[whole != index.MISSING].tolist() == both[~np.isnan(best)].tolist() == expected


def test_removing_a_trace_leaves_nothing_of_it_in_any_table(store: Store) -> None:
    Script(store, EMBEDDER).trace(0.0, ["The zanzibarian parcel arrived."])
    Script(store, EMBEDDER).trace(100.0, ["Another parcel arrived."])
    connection = store._writer._files.memory  # nothing deletes yet but a later command that will do it like this
    connection.execute("delete from trace where id = 1")
    for table in ("embedding", "signs", "document"):
        assert connection.execute(f"select count(*) from {table} where trace = 1").fetchall() == [(0,)]
    for shadow in ("words_data", "words_content", "words_idx", "words_docsize", "words_config"):
        rows = connection.execute(f"select * from {shadow}").fetchall()
        kept = b" ".join(value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row)
        assert b"zanzibar" not in kept
    assert _documents(store, "parcel") == [2]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory):
    """120 traces of two cameras, every tenth with Zoe, over an hour; far more alike than any short list."""
    with Store.open(tmp_path_factory.mktemp("crowd")) as opened:
        script = Script(opened, EMBEDDER)
        zoe = None
        for i in range(120):
            t = i * 30.0
            entities, observations = [], []
            if i % 10 == 0:
                key = zoe if zoe is not None else -1
                entities = [NewEntity(-1, EntityKind.PERSON, "Zoe")] if zoe is None else []
                observations = [seen("person", t, t + 9, "Zoe was in view.", "a1", key)]
            ids = script.trace(
                t,
                [f"A cup number {i} was on a table."],
                seconds=20.0,
                camera="ab"[i % 2],
                entities=entities,
                observations=observations,
            )
            zoe = ids.get(-1, zoe)
        yield opened, zoe


@given(
    st.one_of(st.none(), st.floats(0, 3600)),
    st.one_of(st.none(), st.floats(0, 3600)),
    st.one_of(st.none(), st.floats(0, 3600)),
    st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_filter_never_starves_a_search(crowd, start, end, before, cameras, with_zoe) -> None:
    store, zoe = crowd
    where = Filter("owner", start, end, before, cameras, (zoe,) if with_zoe else ())
    expected = {
        i + 1
        for i in range(120)
        if (start is None or i * 30 + 20 > start)
        and (end is None or i * 30 < end)
        and (before is None or i * 30 + 20 <= before)
        and (not cameras or "ab"[i % 2] in cameras)
        and (not with_zoe or i % 10 == 0)
    }
    assert _through(store, where) == expected
    some = tuple(sorted(expected))[:3]
    assert _through(store, Filter("owner", traces=some)) == set(some)
    # Nor does the search behind it: whoever is let through is ranked, however far from the question.
    asked = understand("Where is cup number 3?", 3600.0, None, [])
    found = Searcher(store, EMBEDDER).find(asked, where, 3600.0, 200)
    assert {hit.trace for hit in found.hits} == expected


def test_another_user_sees_nothing(crowd) -> None:
    store, _ = crowd
    assert _through(store, Filter("somebody else")) == set()


def test_the_columns_follow_what_comes_changes_and_goes(store: Store) -> None:
    """What a kept copy must not miss: new traces, a correction, a new text, vectors that come later, forgetting."""
    script = Script(store, EMBEDDER)
    ids = script.trace(
        0.0, ["Zoe came."], entities=[NewEntity(-1, EntityKind.PERSON, "Zoe")],
        observations=[seen("person", 0.0, 9.0, "Zoe came.", "a1", -1)],
    )  # fmt: skip
    zoe = ids[-1]
    hers = Filter("owner", entities=(zoe,))
    assert _through(store, hers) == {1}
    script.trace(100.0, ["Nobody came."])
    assert (_through(store, hers), _through(store, Filter("owner"))) == ({1}, {1, 2})
    with store.reading() as connection:
        before = store.columns(connection, EMBEDDER.key)
    store.transact(lambda memory: memory.execute("update observation set entity = null where trace = 1"))
    assert _through(store, hers) == set()

    def later(memory: apsw.Connection) -> None:
        memory.execute("update trace set text = 'Zoe came early, before the others.' where id = 1")
        index.reindex_trace(memory, 1)
        index.add_vectors(memory, 1, EMBEDDER.embed(["x"])[0], EMBEDDER.embed(["x"]), EMBEDDER.key)

    store.transact(later)
    with store.reading() as connection:
        now = store.columns(connection, EMBEDDER.key)
        query = index.sign_words(EMBEDDER.embed(["x"])[0])
        assert now.distances(query, np.arange(1)).tolist() == [0.0]
    assert now.lengths[0] > before.lengths[0]
    assert before.traces.tolist() == [1, 2]  # a copy that was given out stays as it was
    store.transact(lambda memory: memory.execute("delete from trace where id = 1"))
    assert _through(store, Filter("owner")) == {2}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory):
    """900 traces of words drawn unevenly, several times what a search looks at closely."""
    chance = random.Random(3)
    words = [
        f"{a}{b}" for a in ("red", "blue", "old", "wet", "tin") for b in ("cup", "dog", "hat", "key", "map", "pan")
    ]
    weights = [1 / (place + 1) for place in range(len(words))]
    with Store.open(tmp_path_factory.mktemp("town")) as opened:
        script = Script(opened, EMBEDDER)
        for i in range(900):
            script.trace(i * 60.0, [" ".join(chance.choices(words, weights, k=6)) + "." for _ in range(3)])
        yield opened, words


def test_what_is_ranked_is_what_ranking_everything_would_find(town) -> None:
    """The recall of the index itself: of the best ten of all traces, nearly all are found."""
    store, words = town
    chance = random.Random(4)
    shared = []
    for _ in range(25):
        asked = understand("Where is the " + " and the ".join(chance.sample(words, 3)) + "?", 54_000.0, None, [])
        searcher = Searcher(store, WholeEmbedder())  # words one by one are compared in the best of these only
        found = searcher.find(asked, Filter("owner"), 54_000.0, 10).hits
        everything = searcher.find(
            asked, Filter("owner"), 54_000.0, 900
        ).hits  # as many as there are: all are candidates
        assert len(everything) == 900
        shared.append(len({hit.trace for hit in found} & {hit.trace for hit in everything[:10]}) / 10)
    assert sum(shared) / len(shared) >= 0.97


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory):
    """A memory with two sealed blocks of 260 traces and some loose ones, as it is after years; and what was found before."""
    chance = random.Random(5)
    words = [f"{a}{b}" for a in ("red", "blue", "old", "wet") for b in ("cup", "dog", "hat", "key", "map", "pan")]
    questions = ["Where is the " + " and the ".join(chance.sample(words, 3)) + "?" for _ in range(12)]
    home = tmp_path_factory.mktemp("years")
    with Store.open(home) as opened:
        script = Script(opened, EMBEDDER)
        for block, count in enumerate((260, 260, 40)):
            for i in range(count):
                told = [" ".join(chance.choices(words, k=6)) + "." for _ in range(2)]
                script.trace((block * 1000 + i) * 60.0, told)
            last = ((block + 1) << 14) - 1
            opened.transact(lambda memory, last=last: memory.execute("update sqlite_sequence set seq = ?", (last,)))
            if not block:
                loose = [_ranked(opened, question) for question in questions]
        for _ in range(200):  # the writer seals in its quiet moments
            if opened.rows("select count(*) from block") == [(2,)]:
                break
            time.sleep(0.05)
        yield opened, home, questions, loose


def _ranked(store: Store, text: str, k: int = 10, before: float | None = None) -> list[tuple[int, float]]:
    asked = understand(text, 200_000.0, None, [])
    found = Searcher(store, EMBEDDER).find(asked, Filter("owner", before=before), 200_000.0, k).hits
    return [(hit.trace, round(hit.score, 6)) for hit in found]


def test_sealing_changes_nothing_of_what_is_found(years) -> None:
    store, home, questions, loose = years
    assert store.rows("select count(*) from block, block_cells on block = id") == [(2,)]
    until = 259 * 60.0 + 600.0  # the time at which only the first block was there
    assert [_ranked(store, question, before=until) for question in questions] == loose
    with Store.open(home, readonly=True) as again:  # which reads the sealed blocks, and not row by row
        assert [_ranked(again, question, before=until) for question in questions] == loose


def test_cells_find_what_comparing_everything_finds(years, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large memory is compared by cells: all of them give the same, and a fifth of them nearly the same."""
    store, _, questions, _ = years
    exact = [_ranked(store, question) for question in questions]
    monkeypatch.setattr(pool, "LARGE", 100)
    for question, all_of_them in zip(questions, exact, strict=True):
        came = _ranked(store, question)
        assert [trace for trace, _ in came] == [trace for trace, _ in all_of_them]
        # Words as they are meant are standardised over the short list, whose last few may be others.
        assert [score for _, score in came] == pytest.approx([score for _, score in all_of_them], abs=0.02)
    monkeypatch.setattr(pool, "PROMISING", 100)
    monkeypatch.setattr(pool, "_ALIKE", 50)
    monkeypatch.setattr(pool, "_TELLING", 50)
    some = [_ranked(store, question) for question in questions]
    shared = [len({t for t, _ in a} & {t for t, _ in b}) / 10 for a, b in zip(some, exact, strict=True)]
    assert sum(shared) / len(shared) >= 0.9


@given(st.integers(1, 200), st.integers(1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_groups_hold_everything_once_and_what_is_equal_together(count: int, words: int, seed: int) -> None:
    random_signs = np.random.default_rng(seed).integers(0, 2**63, (count, words)).astype(np.uint64)
    signs = np.concatenate([random_signs, random_signs[: count // 2]])
    owners, centres = grouped(signs)
    assert owners.shape == (len(signs),)
    assert centres.shape[1] == words
    assert owners[: count // 2].tolist() == owners[count:].tolist()
    again, _ = grouped(signs)
    assert again.tolist() == owners.tolist()


def test_a_block_whose_trace_changed_is_dropped_and_nothing_is_missed(years) -> None:
    store, *_ = years
    gone = store.rows("select min(id) from trace")[0][0]
    store.transact(lambda memory: memory.execute("delete from trace where id = ?", (gone,)))
    assert store.rows("select id from block") == [(1,)]
    assert store.rows("select distinct block from block_cells union select distinct block from posting") == [(1,)]
    found = Searcher(store, EMBEDDER).find(understand("Where is it?", 2e5, None, []), Filter("owner"), 2e5, 600).hits
    assert {hit.trace for hit in found} == {number for (number,) in store.rows("select id from trace")}


# -- words as they are meant -------------------------------------------------------------------------------------------


class Meanings(BagEmbedder):
    """Knows that some words mean the same."""

    def _word(self, word: str) -> np.ndarray:
        bare = word.strip(".,?!").lower()
        return super()._word({"bicycle": "bike", "repaired": "fixed"}.get(bare, bare))


def test_words_that_mean_the_same_find_what_shares_none_of_them(home: Path) -> None:
    embedder = Meanings()
    with Store.open(home) as store:
        script = Script(store, embedder)
        for place in range(30):
            script.trace(
                place * 600.0,
                [f"Somebody {'fixed a lamp' if place % 2 else 'washed a bicycle'} in the yard number {place}."],
            )
        script.trace(10 * 600.0 + 60, ["A woman repaired a bicycle."])
        asked = understand("Who fixed the bike?", 30_000.0, None, [])
        with_words = Searcher(store, embedder).find(asked, Filter("owner"), 30_000.0, 10).hits
        signs = store.rows("select trace, length(bits) from word_signs order by trace")
    assert with_words[0].start == 10 * 600.0 + 60
    assert [number for number, _ in signs] == list(range(1, 32))
    assert {size for _, size in signs} == {8 * 5, 8 * 3}  # 64 signs for each content word, and none for “a” and “in”


def test_traces_without_words_are_compared_without_them(home: Path) -> None:
    with Store.open(home) as store:
        Script(store, WholeEmbedder()).trace(0.0, ["A cup was on a table."])
        Script(store, EMBEDDER).trace(600.0, ["A plate was on a table."])
        asked = understand("Where was the cup?", 3600.0, None, [])
        found = Searcher(store, EMBEDDER).find(asked, Filter("owner"), 3600.0, 10).hits
        assert [hit.trace for hit in found] == [1, 2]
        assert all(np.isfinite(hit.score) for hit in found)
        with store.reading() as connection:
            words, states = EMBEDDER.read_words("Where was the cup?")
            late = index.late_interaction(connection, EMBEDDER.key, states, np.ones(len(words)), np.array([1, 2, 99]))
    assert np.isnan(late[[0, 2]]).all()
    assert -1.0 <= late[1] <= 1.0
