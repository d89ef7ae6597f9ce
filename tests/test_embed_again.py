"""After a correction the vectors of texts are those of the texts as they are now."""

from __future__ import annotations

from pathlib import Path

from edge.clock import utc_now
from edge.consolidate import embed_again
from edge.identity import merge_people, undo
from edge.memory import Store, index, jobs
from tests.recall_data import BagEmbedder, tell


def vectors(store: Store) -> list[tuple[object, ...]]:
    return store.rows("select trace, unit, hex(vector) from embedding order by trace, unit")


def work(store: Store, embedder: BagEmbedder) -> int:
    done = 0
    while waiting := jobs.next_due(store.connection(), store.user, utc_now(), kinds=("embed",)):
        assert embed_again(store, embedder, waiting[0])
        done += 1
    return done


def test_vectors_follow_a_correction_and_its_undoing(home: Path) -> None:
    embedder = BagEmbedder()
    with Store.open(home) as store:
        tell(store, embedder)
        for trace in range(1, 5):
            store.transact(lambda memory, trace=trace: jobs.enqueue(memory, store.user, "embed", trace))
        work(store, embedder)
        before = vectors(store)
        one, other = store.entities()[:2]
        store.set_name(one.id, "Anna")
        merge_people(store, one.id, other.id)
        assert work(store, embedder) > 0
        merged = vectors(store)
        assert merged != before
        titles = store.titles()
        units = index.trace_units(store.connection(), 1, titles.__getitem__)
        assert len([row for row in merged if row[0] == 1]) == len(units) + 1
        undo(store)
        work(store, embedder)
        assert vectors(store) == before
        assert store.integrity() == []


def test_a_trace_that_is_gone_or_asked_for_again_is_left_alone(home: Path) -> None:
    embedder = BagEmbedder()
    with Store.open(home) as store:
        tell(store, embedder)
        store.transact(lambda memory: jobs.enqueue(memory, store.user, "embed", 999))
        assert work(store, embedder) == 1
        store.transact(lambda memory: jobs.enqueue(memory, store.user, "embed", 1))
        (job,) = jobs.next_due(store.connection(), store.user, utc_now(), kinds=("embed",))
        store.transact(lambda memory: jobs.enqueue(memory, store.user, "embed", 1))
        assert not embed_again(store, embedder, job)
        assert work(store, embedder) == 1
