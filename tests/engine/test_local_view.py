"""The local engine's view against every document's score, whatever screen its vectors have."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.documents import Document
from incdsi.engine.local import Live
from incdsi.engine.local.view import LocalView
from incdsi.engine.settings import Fusion, Settings
from incdsi.errors import UnknownDocument
from incdsi.filters import Filter, matches, parse
from incdsi.records import Record, StoredQuery, TextVectors
from incdsi.rows.products import exact
from incdsi.rows.scores import LENT
from incdsi.rows.texts import DISCOUNT
from incdsi.search import fused
from tests.rows.screens import SCREENS

H = 6
SETTINGS = Settings(fingerprint="", dimension=H, model=None)
WORDS = ("map", "rope", "boots", "river", "tent")
ODD = parse({"odd": True})


def record(row: int, rng: np.random.Generator, vector: np.ndarray | None = None) -> Record:
    text = " ".join(rng.choice(WORDS, rng.integers(1, 5)))
    vector = rng.integers(-2, 3, H) if vector is None else vector  # whole numbers: ties
    return Record(
        document=Document(id=f"d{row}", text=text, metadata={"odd": bool(row % 2)}),
        vector=vector.astype(np.float32),
        anchor=vector.astype(np.float32),
        queries=(
            StoredQuery(
                text=f"query {row}", embedding=rng.normal(size=H).astype(np.float32), generated=True, preserved=True
            ),
            *(StoredQuery(text="", embedding=one.astype(np.float32)) for one in rng.normal(1, 3, (row % 3, H))),
        ),
        row=row,
    )


class Shelf:
    """A live index and, beside it, what it should show."""

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        self.live, self.records = Live(SETTINGS), dict[int, Record]()
        self._rng = rng
        self.put(range(1, count + 1))

    def put(self, rows: range | list[int]) -> None:
        new = [record(row, self._rng) for row in rows]
        self.live.put(new)
        self.records.update((one.row, one) for one in new)

    def remove(self, rows: list[int]) -> None:
        self.live.remove(rows)
        for row in rows:
            del self.records[row]

    def view(self) -> LocalView:
        return LocalView(self.live, SETTINGS, self._matching)

    def _matching(self, where: Filter) -> np.ndarray:
        return np.array([row for row, one in self.records.items() if matches(where, one.document.metadata)], np.int64)


def bm25(shelf: Shelf, text: str) -> tuple[np.ndarray, float]:
    """By the formula, document by document in the order of rows; and what no document reaches."""
    bags = [Counter(shelf.records[row].document.text.split()) for row in sorted(shelf.records)]
    n, mean = len(bags), sum(bag.total() for bag in bags) / max(len(bags), 1)
    scores, limit = np.zeros(n), 0.0
    for word in text.split():
        df = sum(word in bag for bag in bags)
        weight = np.log1p((n - df + 0.5) / (df + 0.5))
        limit += weight
        scores += [weight * bag[word] / (bag[word] + 0.6 * (0.25 + 0.75 * bag.total() / mean)) for bag in bags]
    return scores, limit


def in_deviations(scores: np.ndarray, of: np.ndarray) -> np.ndarray:
    return (scores - of.mean()) / of.std() if len(of) and np.ptp(of) > 1e-9 else np.zeros_like(scores)


def in_deviations_of_their_kind(own: list[TextVectors], query: np.ndarray) -> np.ndarray:
    """How far the nearest text or question of each stands out among texts, or among questions and LENT texts."""
    texts, asked = (np.concatenate([exact(one[kind], query) for one in own]) for kind in (0, 1))
    mean = (asked.sum() + LENT * texts.mean()) / (len(asked) + LENT)
    squares = ((asked - mean) ** 2).sum() + LENT * (texts.var() + (texts.mean() - mean) ** 2)
    deviation = np.sqrt(squares / (len(asked) + LENT)) if np.ptp(texts) > 1e-9 else np.inf
    return np.array(
        [
            max(
                in_deviations(exact(one.texts, query), texts).max(),
                (DISCOUNT * (exact(one.asked, query) - mean) / deviation).max(initial=-np.inf),
            )
            for one in own
        ]
    )


@pytest.mark.parametrize("screen", SCREENS)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 30) | st.integers(300, 400),
    k=st.integers(1, 12),
    fusion=st.builds(Fusion, st.sampled_from([0.0, 0.3, 0.7]), st.sampled_from([0.0, 0.5, 1.0])),
    filtered=st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_fused_search_is_that_of_sorting_everything(screen, seed, n, k, fusion, filtered):
    rng = np.random.default_rng(seed)
    with patch("incdsi.rows.local.Int8", screen):
        shelf = Shelf(rng, n)
    shelf.put(rng.choice(np.arange(1, n + 1), n // 3, replace=False).tolist())  # changed since
    shelf.remove(rng.choice(np.arange(1, n + 1), n // 4, replace=False).tolist())
    query, text = rng.normal(size=H).astype(np.float32), " ".join(rng.choice(WORDS, 2, replace=False))
    where = ODD if filtered else None
    rows = sorted(shelf.records)
    records = [shelf.records[row] for row in rows]
    learned = exact(np.stack([one.vector for one in records]), query)
    nearest = in_deviations_of_their_kind([one.texts for one in records], query)
    words, limit = bm25(shelf, text)
    total = (
        fusion.learned_weight * in_deviations(learned, learned)
        + fusion.nearest_weight * nearest
        + fusion.lexical_weight * 48 * (words / limit) ** 2
    )
    by_row = dict(zip(rows, total, strict=True))
    allowed = [row for row in rows if where is None or row % 2]
    expected = sorted(allowed, key=lambda row: (-by_row[row], row))[:k]
    view = shelf.view()
    found = fused(view.learned(query, where), view.nearest(query, where), view.lexical(text, where), fusion).top(k)
    assert found.scores == pytest.approx([by_row[row] for row in expected], abs=1e-5)
    assert [by_row[row] for row in found.rows.tolist()] == pytest.approx(found.scores, abs=1e-5)


def scored(live: Live, query: np.ndarray, text: str) -> dict[str, list[tuple[int, float]]]:
    parts = {"learned": live.learned(query), "nearest": live.nearest(query), "lexical": live.lexical(text)}
    found = {name: part.top(100) for name, part in parts.items()}
    return {name: list(zip(best.rows.tolist(), best.scores.tolist(), strict=True)) for name, best in found.items()}


@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_document_that_is_lifted_and_put_back_elsewhere_is_as_if_it_had_always_been_there(seed, n, mapped):
    rng = np.random.default_rng(seed)
    with patch("incdsi.rows.table.BLOCK_ROWS", 8):
        shelf = Shelf(rng, n)
        live = shelf.live.bench() if mapped else shelf.live
        rows = rng.choice(np.arange(1, n + 1), 1 + n // 3, replace=False).tolist()
        live.lift(rows)
        assert len(live) == n - len(rows)
        assert not any(row in live for row in rows)
        query, text = rng.normal(size=H).astype(np.float32), "map rope"
        assert not {row for row, _ in scored(live, query, text)["learned"]} & set(rows)
        assert not set(live.rivals(query[None])[1].tolist()) & set(rows)
        for row in rows:
            vector = rng.normal(size=H).astype(np.float32)
            shelf.records[row] = replace(shelf.records[row], vector=vector)
        live.put([shelf.records[row] for row in rows])
        fresh = Live(SETTINGS)
        fresh.put([shelf.records[row] for row in sorted(shelf.records)])
        assert scored(live, query, text) == scored(fresh, query, text)
        assert live.learned(query).unit.deviation == pytest.approx(fresh.learned(query).unit.deviation, rel=1e-6)
        vector = rng.normal(size=(1, H))
        one, other = (some.preserve(0.5).nearest(vector, n)[0] for some in (live, fresh))
        assert sorted(zip(one.owners.tolist(), one.ceilings.tolist(), strict=True)) == sorted(
            zip(other.owners.tolist(), other.ceilings.tolist(), strict=True)
        )


def test_units_are_those_of_all_documents_and_leave_no_trace_of_the_removed():
    rng = np.random.default_rng(0)
    shelf = Shelf(rng, 60)
    shelf.remove(list(range(1, 31)))
    query = rng.normal(size=H).astype(np.float32)
    view, records = shelf.view(), list(shelf.records.values())
    learned = exact(np.stack([one.vector for one in records]), query)
    texts = exact(np.concatenate([one.texts.texts for one in records]), query)
    for spread, known in ((view.learned(query, ODD).unit, learned), (view.nearest(query, ODD).unit, texts)):
        assert (spread.count, spread.mean) == (len(known), pytest.approx(known.mean(), rel=1e-6))
        assert spread.deviation == pytest.approx(known.std(), rel=1e-5)
    assert view.lexical("rope tent", ODD).unit.limit == pytest.approx(bm25(shelf, "rope tent")[1])


def test_a_view_keeps_to_its_moment():
    rng = np.random.default_rng(1)
    shelf = Shelf(rng, 5)
    view, query = shelf.view(), np.ones(H, np.float32)
    before = view.learned(query)
    first = before.top(5)
    shelf.put([2, 6])
    shelf.remove([3])
    assert before.top(5).rows.tolist() == first.rows.tolist()
    assert before.score(first.rows) == pytest.approx(first.scores)
    assert view.learned(query).score(first.rows) == pytest.approx(first.scores)
    assert sorted(shelf.view().learned(query).top(9).rows.tolist()) == [1, 2, 4, 5, 6]
    with pytest.raises(UnknownDocument, match="row 3"):
        shelf.view().learned(query).score(np.array([3]))


def test_words_alone_find_a_document_that_is_replaced_while_they_are_looked_up(monkeypatch):
    shelf = Shelf(np.random.default_rng(2), 0)
    rng = np.random.default_rng(3)
    one = record(1, rng)
    shelf.live.put([one])
    view, look = shelf.view(), shelf.live.words.scores_and_limit

    def late(text: str, size: int) -> tuple[np.ndarray, float]:
        monkeypatch.undo()
        shelf.live.put([one])  # the same document again, in another slot
        return look(text, size)

    monkeypatch.setattr(shelf.live.words, "scores_and_limit", late)
    assert view.lexical(one.document.text).top(1).rows.tolist() == [1]


def test_rivals_and_preserve_rows_are_known_by_row_and_leave_out_who_asks():
    rng = np.random.default_rng(4)
    shelf = Shelf(rng, 8)
    shelf.put([3])
    view, queries = shelf.view(), rng.normal(size=(5, H)).astype(np.float32)
    for without in (None, 3):
        others = [row for row in sorted(shelf.records) if row != without]
        scores, rows = view.rivals(queries, without)
        known = np.stack([shelf.records[row].vector for row in others]) @ queries.T
        assert scores == pytest.approx(known.max(axis=0), rel=1e-5)
        assert [known[others.index(row), place] for place, row in enumerate(rows)] == pytest.approx(scores, rel=1e-5)
        (near,) = view.preserve(0.0, without).nearest(np.ones((1, H)), 100)
        assert sorted(near.owners.tolist()) == others


def test_on_a_bench_nobody_sees_what_changes():
    shelf = Shelf(np.random.default_rng(5), 4)
    bench = shelf.live.bench()
    bench.remove([1])
    bench.put([record(9, np.random.default_rng(6))])
    assert sorted(shelf.view().learned(np.ones(H, np.float32)).top(9).rows.tolist()) == [1, 2, 3, 4]
    assert sorted(bench.learned(np.ones(H, np.float32)).top(9).rows.tolist()) == [2, 3, 4, 9]
    assert bench.elsewhere("query 2", 9)
    assert not bench.elsewhere("query 1", 9)


def test_the_texts_of_one_document_are_told_without_looking_at_others(monkeypatch):
    shelf, query = Shelf(np.random.default_rng(7), 5), np.arange(H, dtype=np.float32)
    shelf.put([3])
    view = shelf.view()
    monkeypatch.setattr("incdsi.rows.table.Table.scan", None)
    assert view.within(query, 3).tolist() == exact(shelf.records[3].texts.texts, query).tolist()


def test_what_a_search_looked_at_is_let_go_with_it():
    """Rows may lie in a file that is to be deleted, and take more memory than a process should have to wait for."""
    shelf, query = Shelf(np.random.default_rng(8), 5), np.ones(H, np.float32)
    gc.disable()
    try:
        view = shelf.view()
        whole = fused(view.learned(query), view.nearest(query), view.lexical("map"), Fusion(0.3, 0.6))
        whole.top(2)
        live = weakref.ref(shelf.live)
        del whole, view, shelf
        assert live() is None
    finally:
        gc.enable()
