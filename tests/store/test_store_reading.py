from __future__ import annotations

import gc
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_samples import content, contents, sample

from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.store import Record, Store
from incdsi.store.filters import matches_everything


def test_changes_are_what_is_newer_in_order(store: Store) -> None:
    with store.transaction() as tx:
        rows = [tx.insert(sample(id)) for id in "abc"]
    seen = store.changes(0).sequence
    with store.transaction() as tx:
        tx.replace("a", sample("a", 1))
        tx.delete("b")
        tx.insert(sample("d"))
    changes = store.changes(seen)
    assert [(r.document.id, r.sequence) for r in changes.upserts] == [("a", 4), ("d", 6)]
    assert (changes.removed, changes.sequence, changes.reload) == ((rows[1],), 6, False)
    again = store.changes(6)
    assert (list(again.upserts), again.removed) == ([], ())


def test_changes_hold_one_snapshot_while_writing_goes_on(store: Store) -> None:
    with store.transaction() as tx:
        for number in range(50):
            tx.insert(sample(f"d{number}"))
    changes = store.changes(0)
    first = next(changes.upserts)
    with store.transaction() as tx:
        for number in range(50):
            tx.replace(f"d{number}", sample(f"d{number}", 1))
    found = [first, *changes.upserts]
    assert [content(r) for r in found] == [content(sample(f"d{n}")) for n in range(50)]
    assert changes.sequence == 50


def test_an_abandoned_iterator_does_not_hold_up_compaction(store: Store) -> None:
    with store.transaction() as tx:
        for number in range(3):
            tx.insert(sample(f"d{number}"))
    store.changes(0)
    partly = store.changes(0)
    next(partly.upserts)
    del partly
    gc.collect()
    with store.transaction() as tx:
        tx.delete("d0")
    store.compact()  # IndexLocked if a snapshot were still held
    assert [record.document.id for record in store.changes(0).upserts] == ["d1", "d2"]
    assert (store.path / "store.db-wal").stat().st_size == 0


def test_a_reader_that_missed_a_purged_deletion_is_told_to_reload(store: Store) -> None:
    with store.transaction() as tx:
        for id in "abc":
            tx.insert(sample(id))
    with store.transaction() as tx:
        tx.delete("b")
    with store.transaction() as tx:
        tx.insert(sample("e"))
    store.compact()
    assert not store.changes(4).reload
    behind = store.changes(3)
    assert behind.reload
    assert behind.removed == ()
    assert [r.document.id for r in behind.upserts] == ["a", "c", "e"]
    assert store.changes(99).reload


def test_another_process_polls_and_pulls(store: Store) -> None:
    script = """
import sys
from incdsi.store import Store
with Store.open(sys.argv[1], writer=False) as store:
    seen = 0
    assert not store.poll()
    print("ready", flush=True)
    for _ in sys.stdin:
        changed = store.poll()
        changes = store.changes(seen)
        seen = changes.sequence
        print(changed, *[r.document.id for r in changes.upserts], *changes.removed, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"

        def ask() -> str:
            reader.stdin.write("\n")  # type: ignore[union-attr]
            reader.stdin.flush()  # type: ignore[union-attr]
            return reader.stdout.readline().strip()  # type: ignore[union-attr]

        assert ask() == "False"
        with store.transaction() as tx:
            tx.insert(sample("a"))
            tx.insert(sample("b"))
        assert ask() == "True a b"
        assert ask() == "False"
        with store.transaction() as tx:
            tx.delete("a")
        assert ask() == "True 1"
        reader.stdin.close()
    assert reader.returncode == 0


def test_threads_read_whole_transactions_while_one_writes(store: Store) -> None:
    ids = [f"d{number}" for number in range(6)]
    with store.transaction() as tx:
        for id in ids:
            tx.insert(sample(id))
    expected = [{id: content(sample(id, revision)) for id in ids} for revision in range(25)]
    problems: list[str] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                if contents(store) not in expected:
                    problems.append("saw half a transaction")
                assert store.documents(range(1, 7))[0].id == "d0"
                assert len(store.filter_rows({"revision": {"gte": 0}})) == 6
        except Exception as error:
            problems.append(repr(error))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for revision in range(1, 25):
        with store.transaction() as tx:
            for id in ids:
                tx.replace(id, sample(id, revision))
    done.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert contents(store) == expected[-1]


def test_unknown_rows_and_ids_are_errors(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    assert store.documents([]) == []
    assert [d.id for d in store.documents([1, 1])] == ["a", "a"]
    with pytest.raises(UnknownDocument, match="2"):
        store.documents([1, 2])
    with pytest.raises(UnknownDocument, match="'b'"):
        store.get("b")
    with pytest.raises(UnknownDocument, match="'b'"):
        store.row_of("b")


VALUES = st.sampled_from([1, 1.0, "1", True, 0, False, None, "", "en", "de", 2.5, -3, 10**15, "z\0z"])
FIELDS = st.sampled_from(["a", "b", "c"])
TESTS = st.one_of(
    VALUES,
    st.fixed_dictionaries({"in": st.lists(VALUES, max_size=4)}),
    st.dictionaries(
        st.sampled_from(["gt", "gte", "lt", "lte"]),
        st.sampled_from([1, 0, 2.5, -3, "en", "1", ""]),
        min_size=1,
        max_size=2,
    ),
)
FILTERS = st.recursive(
    st.dictionaries(FIELDS, TESTS, max_size=2),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"not": inner}),
    ),
    max_leaves=6,
)


def passes(metadata: dict[str, Any], where: dict[str, Any]) -> bool:
    """The meaning of a filter, written a second time."""
    return all(passes_part(metadata, name, value) for name, value in where.items())


def passes_part(metadata: dict[str, Any], name: str, value: Any) -> bool:
    if name == "not":
        return not passes(metadata, value)
    if name in ("or", "and"):
        return (any if name == "or" else all)(passes(metadata, part) for part in value)
    tests = value if isinstance(value, dict) else {"eq": value}
    return name in metadata and all(holds(metadata[name], op, wanted) for op, wanted in tests.items())


def holds(found: Any, operator: str, wanted: Any) -> bool:
    if operator == "in":
        return any(holds(found, "eq", one) for one in wanted)
    kinds = [bool if isinstance(v, bool) else float if isinstance(v, int | float) else type(v) for v in (found, wanted)]
    if kinds[0] is not kinds[1]:
        return False
    if operator == "eq":
        return bool(found == wanted)
    return {"gt": found > wanted, "gte": found >= wanted, "lt": found < wanted, "lte": found <= wanted}[operator]


@pytest.fixture(scope="module")
def filtered(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pool = [1, 1.0, "1", True, 0, False, None, "", "en", "de", 2.5, -3, 10**15, "z\0z"]
    with Store.create(tmp_path_factory.mktemp("filter") / "shop", {}) as store:
        with store.transaction() as tx:
            for number in range(120):
                chosen = {
                    field: pool[(number * step + shift) % len(pool)]
                    for shift, (field, step) in enumerate(zip("abc", (1, 3, 5), strict=True))
                    if (number + shift) % 4
                }
                tx.insert(sample(f"d{number}", metadata=chosen))
        yield store, {r.row: dict(r.document.metadata) for r in store.changes(0).upserts}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=FILTERS)
def test_a_filter_means_what_python_means(filtered: Any, where: dict[str, Any]) -> None:
    store, metadata = filtered
    assert store.filter_rows(where).tolist() == [row for row, fields in metadata.items() if passes(fields, where)]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=FILTERS)
def test_a_filter_said_to_match_everything_does(filtered: Any, where: dict[str, Any]) -> None:
    store, metadata = filtered
    if matches_everything(where):
        assert store.filter_rows(where).tolist() == [*metadata]


@pytest.mark.parametrize(
    ("where", "everything"),
    [
        ({}, True),
        ({"and": [{}, {"or": [{"a": 1}, {}]}]}, True),
        ({"not": {"a": {"in": []}}}, True),
        ({"not": {"not": {}}}, True),
        ({"not": {"and": [{"a": 1}, {"b": {"gt": 1, "in": []}}]}}, True),
        ({"a": {"in": []}}, False),
        ({"not": {}}, False),
        ({"or": [{"a": 1}, {"not": {}}]}, False),
        ({"not": {"a": 1}}, False),
    ],
)
def test_a_filter_without_a_condition_is_known_to_match_everything(where: dict[str, Any], everything: bool) -> None:
    assert matches_everything(where) is everything


def nested(depth: int) -> dict[str, Any]:
    return {"not": nested(depth - 1)} if depth else {"a": 1}


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ({"a": {"like": "x"}}, "expected one of eq, gt, gte, lt, lte, in, found 'like'"),
        ({"a": {}}, "expected one of eq"),
        ({"a": {"gt": True}}, "number or text"),
        ({"a": {"in": "abc"}}, "a list under 'in'"),
        ({"a": [1]}, "found list"),
        ({"or": {"a": 1}}, "list of filters"),
        ({"or": []}, "'or' is an empty list; put a filter in it or leave it out"),
        ({"not": {"and": []}}, "'and' is an empty list"),
        ({"not": 3}, "a filter like"),
        ({"a": 2**70}, "64 bits"),
        ({"a": {"in": list(range(40_000))}}, "at most 30000"),
        (nested(60), "levels deep"),
        ("lang", "a filter like"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_an_unknown_filter_is_refused_with_what_works(store: Store, where: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        store.filter_rows(where)


def test_long_and_deep_filters_work(filtered: Any) -> None:
    store, metadata = filtered
    ones = [row for row, fields in metadata.items() if passes(fields, {"a": 1})]
    assert store.filter_rows({"or": [{"a": 1}] * 1500}).tolist() == ones
    assert store.filter_rows({"and": [{"a": 1}] * 1500}).tolist() == ones
    assert store.filter_rows({"a": {"in": [*range(1, 29_000)]}}).tolist() == ones
    assert store.filter_rows(nested(50)).tolist() == ones
    deep: dict[str, Any] = {"a": 1}
    for _ in range(49):
        deep = {"and": [deep] + [{}] * 100}
    assert store.filter_rows(deep).tolist() == ones


def test_filters_follow_updates_and_deletions(store: Store, tmp_path: Path) -> None:
    def tagged(id: str, tag: str) -> Record:
        return sample(id, metadata={"tag": tag})

    with store.transaction() as tx:
        tx.insert(tagged("a", "old"))
        tx.insert(tagged("b", "old"))
        tx.replace("a", tagged("a", "new"))
    assert store.filter_rows({"tag": "old"}).tolist() == [2]
    with store.transaction() as tx:
        tx.delete("b")
    assert store.filter_rows({"tag": {"in": ["old", "new"]}}).tolist() == [1]
    assert store.filter_rows({}).tolist() == [1]
