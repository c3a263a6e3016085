"""A quick look at likely rows: it finds violated ones, never what is gone, and changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi.hyperparameters import Margins, Weights
from incdsi.rows import LocalRows
from incdsi.rows.ceilings import ALONE
from incdsi.rows.likely import ENOUGH, Owned
from incdsi.solver import Newcomer, active_set, solve_many

WIDTH, EACH = 16, 4
DOCUMENTS = ENOUGH // EACH + 100
LIMIT = 50


@pytest.fixture
def rows() -> LocalRows:
    draw = np.random.default_rng(0)
    made = LocalRows(WIDTH)
    queries = draw.standard_normal((DOCUMENTS, EACH, WIDTH), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=2, keepdims=True)
    made.append_many(list(20 * queries.mean(axis=1)), list(queries))
    return made


def test_what_a_quick_look_finds_is_violated_and_as_stored(rows: LocalRows) -> None:
    vector = 20 * np.random.default_rng(1).standard_normal((1, WIDTH))
    owners, whole, own = rows.preserve_arrays()
    (near,) = rows.under(1.0).likely(vector, LIMIT)
    assert 0 < len(near) <= LIMIT
    assert near.radius == -np.inf
    assert np.array_equal(near.rows, whole[near.indices])
    assert np.array_equal(near.owners, owners[near.indices])
    assert near.ceilings == pytest.approx(own[near.indices] - 1.0)
    assert (whole[near.indices] @ vector[0] > near.ceilings - 0.02 * np.linalg.norm(vector)).all()


def test_what_was_removed_or_left_out_is_not_found(rows: LocalRows) -> None:
    vector = 20 * np.random.default_rng(1).standard_normal((1, WIDTH))
    (before,) = rows.under(1.0).likely(vector, LIMIT)
    gone, asking = before.owners[0], before.owners[-1]
    rows.remove_many([int(gone)])
    (after,) = rows.under(1.0, without=int(asking)).likely(vector, LIMIT)
    assert gone != asking
    assert not {gone, asking} & set(after.owners.tolist())


def test_few_rows_and_many_vectors_are_left_to_a_pass(rows: LocalRows) -> None:
    assert rows.under(1.0).likely(np.ones((ALONE + 1, WIDTH)), LIMIT) == []
    rows.remove_many(range(200))
    assert rows.under(1.0).likely(np.ones((1, WIDTH)), LIMIT) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_quick_look_changes_no_answer(rows: LocalRows, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    queries = draw.standard_normal((3, WIDTH))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    newcomer = Newcomer(queries, rows.best(queries)[0], 20 * queries.mean(axis=0))
    how = {"margins": Margins(retrieve=2.0, preserve=1.0), "weights": Weights(retrieve=0.7, anchor=0.05)}
    (quick,) = solve_many([newcomer], rows.under(1.0), **how)
    monkeypatch.setattr(active_set, "GLANCES", 0)
    (plain,) = solve_many([newcomer], rows.under(1.0), **how)
    assert quick.vector == pytest.approx(plain.vector, abs=1e-5)
    assert quick.solution.status is plain.solution.status
    assert set(quick.solution.stolen.indices.tolist()) == set(plain.solution.stolen.indices.tolist())


def test_a_slot_owns_the_rows_it_was_given_last() -> None:
    owned = Owned()
    owned.append(0, np.array([0, 0, 2, 2, 2]))
    owned.append(5, np.array([0, 1]))
    assert owned.of(np.array([0, 1, 2, 7])).tolist() == [5, 6, 2, 3, 4]
