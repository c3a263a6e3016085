"""Local rows answer exactly, whatever was removed, and stay whole under their readers."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.errors import InvalidInput, UnknownDocument
from incdsi.rows import LocalRows
from incdsi.rows.growing import Growing
from incdsi.rows.int8 import Int8
from incdsi.rows.products import exact
from incdsi.rows.scores import Scores
from incdsi.rows.table import BLOCK_ROWS
from tests.rows.screens import SCREENS, Coarse


@pytest.fixture(params=SCREENS)
def screen(request):
    return request.param


def filled(n, h, screen=Int8, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, h)).astype(np.float32)
    queries = rng.standard_normal((n, 2, h)).astype(np.float32)
    rows = LocalRows(h, screen())
    rows.append_many(list(vectors), list(queries))
    return rows, vectors, queries


def by_sorting(vectors, alive, query, k):
    scores = vectors.astype(np.float64) @ query.astype(np.float64)
    order = np.lexsort((np.arange(len(scores)), -scores))
    order = order[alive[order]][:k]
    return order, scores[order]


@pytest.mark.parametrize("n", [0, 1, 5, 300, BLOCK_ROWS + 7])
@pytest.mark.parametrize("k", [1, 10])
def test_top_is_exact_and_leaves_out_the_removed_before_choosing(n, k, screen):
    rows, vectors, _ = filled(n, 16, screen)
    alive = np.ones(n, dtype=bool)
    query = np.random.default_rng(1).standard_normal(16).astype(np.float32)
    for gone in by_sorting(vectors, alive, query, 3)[0]:
        rows.remove_many([int(gone)])
        alive[gone] = False
    allowed = np.arange(n) % 3 != 0
    for mask in (None, allowed):
        slots, scores = rows.scores(query, mask).best(k)
        right_slots, right_scores = by_sorting(vectors, alive if mask is None else alive & mask, query, k)
        assert slots.tolist() == right_slots.tolist()
        assert scores == pytest.approx(right_scores, rel=1e-12)


class Doubtful(Scores):
    """Scores that are known roughly, by so much each."""

    def __init__(self, true: np.ndarray, rough: np.ndarray, doubt: np.ndarray, allowed: np.ndarray) -> None:
        super().__init__(allowed)
        self._true, self._rough, self._doubt = true, rough, doubt

    def reaching(self, count: int) -> tuple[np.ndarray, float]:
        if count >= len(self._rough):
            return np.arange(len(self._rough)), -np.inf
        level = np.sort(self._rough)[-count]
        return np.flatnonzero(self._rough >= level), level + self._doubt.max()

    def at_most(self, slots: np.ndarray) -> np.ndarray:
        return self._rough[slots] + self._doubt[slots]

    def computed(self, slots: np.ndarray) -> np.ndarray:
        return self._true[slots]

    def within(self, slot: int) -> np.ndarray:
        return self._true[[slot]]


@given(st.integers(0, 2**32 - 1), st.integers(0, 700), st.integers(1, 9), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_best_are_found_however_scores_and_doubts_lie(seed, n, k, share):
    rng = np.random.default_rng(seed)
    true = rng.integers(-5, 5, n) * 10.0 ** rng.integers(-3, 3)  # many ties
    doubt = rng.random(n) * rng.choice([0.0, 0.1, 100.0], n)
    allowed = rng.random(n) < share
    scores = Doubtful(true, true + doubt * rng.uniform(-1, 1, n), doubt, allowed)
    slots, found = scores.best(k)
    expected = sorted(np.flatnonzero(allowed).tolist(), key=lambda slot: (-true[slot], slot))[:k]
    assert slots.tolist() == expected
    assert found.tolist() == true[expected].tolist()


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_best_is_the_top_one_without_the_one_that_asks(seed, n, count):
    rng = np.random.default_rng(seed)
    rows, _, _ = filled(n, 4, seed=seed)
    queries = rng.standard_normal((count, 4)).astype(np.float32)
    without = int(rng.integers(0, n)) if n else None
    scores, slots = rows.best(queries, without)
    allowed = np.arange(n) != without
    for i, (best_slots, best_scores) in enumerate(rows.scores(query, allowed).best(1) for query in queries):
        if len(best_slots) == 0:
            assert slots[i] == -1
            assert scores[i] == -np.inf
        else:
            assert slots[i] == best_slots[0]
            assert scores[i] == pytest.approx(best_scores[0], rel=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_best_leaves_out_the_one_that_asks_for_each_query(seed, n, count):
    rng = np.random.default_rng(seed)
    rows, _, _ = filled(n, 4, seed=seed)
    rows.remove_many(np.flatnonzero(rng.random(n) < 0.3).tolist())
    queries = rng.standard_normal((count, 4)).astype(np.float32)
    askers = rng.integers(0, n, count)
    scores, slots = rows.best(queries, askers)
    for number, asker in enumerate(askers.tolist()):
        alone = rows.best(queries[number : number + 1], asker)
        assert (scores[number], slots[number]) == (alone[0][0], alone[1][0])


def test_best_answers_more_queries_than_one_product_takes(screen):
    rows, vectors, _ = filled(50, 8, screen)
    queries = np.random.default_rng(2).standard_normal((600, 8)).astype(np.float32)
    scores, slots = rows.best(queries)
    exact = queries.astype(np.float64) @ vectors.astype(np.float64).T
    assert slots.tolist() == exact.argmax(axis=1).tolist()
    assert scores == pytest.approx(exact.max(axis=1), rel=1e-12)


@pytest.mark.parametrize("n", [0, 3, 200, BLOCK_ROWS])
@pytest.mark.parametrize("limit", [1, 16, 64])
def test_nearest_lists_the_violators_and_proves_the_rest(n, limit, screen):
    rows, _, queries = filled(n, 8, screen)
    ceilings = rows.under(margin=0.5)
    vectors = 2.0 * np.random.default_rng(3).standard_normal((5, 8))
    own = np.einsum("nkh,nh->nk", queries.astype(np.float64), rows.vectors(np.arange(n)).astype(np.float64)).ravel()
    flat = queries.reshape(-1, 8).astype(np.float64)
    for vector, near in zip(vectors, ceilings.nearest(vectors, limit), strict=True):
        assert len(near.indices) <= max(limit, 0) or len(flat) <= limit
        assert np.array_equal(near.rows, flat[near.indices])
        assert near.ceilings == pytest.approx(own[near.indices] - 0.5)
        others = np.setdiff1d(np.arange(len(flat)), near.indices)
        slack = (own[others] - 0.5 - flat[others] @ vector) / np.linalg.norm(flat[others], axis=1)
        assert (slack >= near.radius).all()


def test_nearest_leaves_out_the_rows_of_the_one_that_asks_and_of_the_removed():
    rows, _, _ = filled(20, 4)
    rows.remove_many([3])
    near = rows.under(0.0, without=7).nearest(100 * np.ones((1, 4)), 64)[0]
    violated = near.rows @ (100 * np.ones(4)) > near.ceilings
    assert not set(near.owners[violated].tolist()) & {-1, 3, 7}


def test_a_row_of_zeros_constrains_nobody():
    rows = LocalRows(3)
    rows.append_many([np.ones(3)], [np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])])
    assert len(rows.under(1.0)) == 1


def test_removed_preserve_rows_give_their_memory_back():
    rows, _, _ = filled(100, 4)
    for slot in range(80):
        rows.remove_many([slot])
    assert len(rows.under(0.0)) < 120
    kept = rows.under(0.0).nearest(100 * np.ones((1, 4)), 500)[0]
    alive = set(kept.owners[np.isfinite(kept.ceilings)].tolist())
    assert alive == set(range(80, 100))


@pytest.fixture
def looked_at(monkeypatch):
    """How many entries of growing arrays were handed out: what a change of the rows costs."""
    counts = [0]

    def values(growing):
        counts[0] += growing._count
        return growing._values[: growing._count]

    monkeypatch.setattr(Growing, "values", property(values))
    return counts


@pytest.mark.parametrize(
    "change",
    [
        lambda rows, slots: rows.remove_many(slots),
        lambda rows, slots: rows.append_many(np.ones((len(slots), 4)), np.ones((len(slots), 0, 4)), instead_of=slots),
    ],
    ids=["remove", "replace"],
)
def test_changing_many_documents_looks_at_the_rows_once(change, looked_at):
    costs = []
    for slots in ([0], list(range(150))):
        rows, _, _ = filled(400, 4)
        looked_at[0] = 0
        change(rows, slots)
        costs.append(looked_at[0])
    assert 0 < costs[1] < 2 * costs[0]


def test_removing_many_is_removing_one_by_one():
    together, _, _ = filled(50, 4)
    one_by_one, _, _ = filled(50, 4)
    gone = [40, 3, 7, 0]
    together.remove_many(gone)
    for slot in gone:
        one_by_one.remove_many([slot])
    assert (together.alive == one_by_one.alive).all()
    for found, expected in zip(together.preserve_arrays(), one_by_one.preserve_arrays(), strict=True):
        assert (found == expected).all()
    with pytest.raises(UnknownDocument, match="slot 3 holds no document"):
        together.remove_many([1, 3])
    assert 1 in together


def test_replace_moves_a_document_to_a_new_slot_with_new_rows():
    rows, _, _ = filled(5, 4)
    (slot,) = rows.append_many([9 * np.ones(4)], [np.ones((3, 4))], instead_of=[2])
    assert 2 not in rows
    assert slot in rows
    assert len(rows) == 5
    assert rows.scores(np.ones(4)).best(1)[0].tolist() == [slot]
    assert 2 not in rows.under(0.0).nearest(np.ones((1, 4)), 500)[0].owners


def test_scores_cover_every_slot_and_hide_the_removed():
    rows, vectors, _ = filled(6, 4)
    rows.remove_many([1])
    scores = rows.scores(np.ones(4))
    assert scores.allowed.tolist() == [True, False, True, True, True, True]
    assert scores.exact(np.arange(6)) == pytest.approx(vectors.astype(np.float64).sum(axis=1), rel=1e-12)


@pytest.mark.parametrize(
    "act", [lambda r: r.remove_many([9]), lambda r: r.append_many([np.ones(4)], [np.ones((1, 4))], [9])]
)
def test_an_unknown_slot_is_refused(act):
    with pytest.raises(UnknownDocument, match="slot 9 holds no document"):
        act(filled(3, 4)[0])


@pytest.mark.parametrize(
    "act",
    [
        lambda r: r.append_many([np.ones(5)], [np.ones((1, 4))]),
        lambda r: r.append_many([np.ones(4)], [np.ones((1, 5))]),
        lambda r: r.append_many([np.full(4, np.nan)], [np.ones((1, 4))]),
        lambda r: r.scores(np.ones(3)),
        lambda r: r.append_many([np.ones(4)], [np.full((1, 4), np.inf)], [0]),
        lambda r: LocalRows(0),
    ],
)
def test_arrays_of_a_wrong_kind_are_refused_and_leave_nothing_behind(act):
    rows, _, _ = filled(3, 4)
    with pytest.raises(InvalidInput, match=r"expected|must be|NaN"):
        act(rows)
    assert len(rows) == 3
    assert len(rows.under(0.0)) == 6
    assert len(rows.scores(np.ones(4)).allowed) == 3


def test_readers_never_see_a_document_twice_or_missing_while_it_is_replaced():
    h = 8
    rows = LocalRows(h)
    rows.append_many([np.ones(h)], [np.ones((1, h))])
    wrong: list[int] = []
    done = threading.Event()

    def read():
        while not done.is_set():
            found = len(rows.scores(np.ones(h)).best(5)[0])
            if found != 1:
                wrong.append(found)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    slot = 0
    for turn in range(300):
        (slot,) = rows.append_many([(turn + 2) * np.ones(h)], [np.ones((1, h))], instead_of=[slot])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []


@given(st.integers(0, 2**32 - 1), st.integers(1, 64), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_a_screens_error_stays_within_its_bound(seed, n, b):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 200))
    rows = (rng.standard_normal((n, width)) * 10.0 ** rng.uniform(-2, 2)).astype(np.float32)
    vectors = (rng.standard_normal((b, width)) * 10.0 ** rng.uniform(-2, 2)).astype(np.float32)
    true = rows.astype(np.float64) @ vectors.astype(np.float64).T
    for screen in (make() for make in SCREENS):
        coded, asked = screen.coded(rows), screen.asked(vectors)
        found = screen.multiply(coded.codes, asked) * coded.scales[:, None]
        assert (np.abs(found - true) <= asked.doubt(coded.errors[:, None], coded.lengths[:, None])).all()


def test_an_exact_product_has_the_same_bits_wherever_its_row_stands_and_whoever_stands_beside_it():
    rng = np.random.default_rng(0)
    for h in (1, 7, 128, 384, 769):
        rows = rng.standard_normal((37, h)).astype(np.float32)
        query = rng.standard_normal(h).astype(np.float32)
        together = exact(rows, query)
        assert [exact(row[None], query)[0] for row in rows] == together.tolist()
        assert exact(rows[::-1].copy(), query).tolist() == together[::-1].tolist()
        assert exact(rows, np.repeat(query[None], 37, axis=0)).tolist() == together.tolist()


def test_removed_blocks_leave_nothing_to_look_at_twice(monkeypatch):
    """The oldest documents gone, whole blocks are dead: none of their rows is a candidate."""
    rows, vectors, _ = filled(3 * BLOCK_ROWS, 8)
    rows.remove_many(range(2 * BLOCK_ROWS))
    looked_at = []
    monkeypatch.setattr(
        "incdsi.rows.local.exact", lambda some, queries: looked_at.append(len(some)) or exact(some, queries)
    )
    queries = np.random.default_rng(1).standard_normal((20, 8)).astype(np.float32)
    _, slots = rows.best(queries)
    right = queries.astype(np.float64) @ vectors[2 * BLOCK_ROWS :].astype(np.float64).T
    assert (slots - 2 * BLOCK_ROWS).tolist() == right.argmax(axis=1).tolist()
    assert sum(looked_at) < 10 * len(queries)


def test_a_scan_shared_by_the_cores_finds_what_one_core_finds(monkeypatch):
    rows, _, _ = filled(5 * BLOCK_ROWS, 8, Coarse)
    queries = np.random.default_rng(2).standard_normal((9, 8)).astype(np.float32)
    alone = rows.best(queries), rows.under(0.5).nearest(queries.astype(np.float64), 50)
    monkeypatch.setattr("incdsi.rows.table.WORTH_SHARING", 0)
    shared = rows.best(queries), rows.under(0.5).nearest(queries.astype(np.float64), 50)
    assert np.array_equal(shared[0], alone[0])
    for one, other in zip(shared[1], alone[1], strict=True):
        assert np.array_equal(one.indices, other.indices)
        assert one.radius == other.radius


FORKED = """
import os
import numpy as np
from incdsi.rows import LocalRows, table

table.WORTH_SHARING = 0
rows = LocalRows(4)
vectors = np.random.default_rng(0).standard_normal((2 * table.BLOCK_ROWS, 4)).astype(np.float32)
rows.append_many(list(vectors), [np.empty((0, 4))] * len(vectors))
here = rows.best(np.ones((1, 4)))[1].tolist()
child = os.fork()
if child == 0:
    os._exit(0 if rows.best(np.ones((1, 4)))[1].tolist() == here else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_has_cores_of_its_own():
    # In a process of its own: a fork of this one would inherit what other tests left.
    assert subprocess.run([sys.executable, "-c", FORKED], check=False, timeout=120).returncode == 0
