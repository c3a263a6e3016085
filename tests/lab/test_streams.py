"""Adding from embeddings gives what solving each document's whole problem gives."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.engine.settings import Method
from incdsi.errors import InvalidInput
from incdsi.hyperparameters import Hyperparameters, Margins, Weights
from incdsi.index.placement import MOST_PRESERVED
from incdsi.solver import Problem, solve
from incdsi_lab.ranking import Standing, ranks_among
from incdsi_lab.streams import Newcomers, State, add_all

H = 12
HOW = Hyperparameters(
    margins=Margins(retrieve=0.5, preserve=0.3), weights=Weights(retrieve=0.6, anchor=0.01), anchor_scale=3.0
)
Floats = NDArray[np.float32]


def units(draw: np.random.Generator, count: int) -> Floats:
    rows = draw.normal(size=(count, H)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def newcomers(seed: int, count: int) -> Newcomers:
    draw = np.random.default_rng(seed)
    return Newcomers(texts=units(draw, count), queries=[units(draw, int(k)) for k in draw.integers(0, 4, count)])


def initial(form: Method, count: int = 30) -> State:
    some = newcomers(0, count)
    return State.of(4 * some.texts, some, form)


def one_by_one(state: State, added: Newcomers) -> Floats:
    """The oracle: every document's whole problem by itself, over plain arrays."""
    vectors = list(state.vectors)
    rows, own = list(state.rows), list(state.own_scores)
    for text, queries in zip(added.texts, added.queries, strict=True):
        paper = state.form == "paper"
        asked = (queries.mean(axis=0, keepdims=True) if len(queries) else text[None]) if paper else queries
        anchor = 0.0 * text if paper else HOW.anchor_scale * text
        rivals = (asked @ np.stack(vectors).T).max(axis=1)
        ceilings = np.array(own) - HOW.margins.preserve
        problem = Problem(asked, rivals + HOW.margins.retrieve, np.stack(rows), ceilings, anchor)
        weights = HOW.weights
        vector = solve(problem, retrieve=weights.retrieve, anchor=weights.anchor).vector.astype(np.float32)
        for query, rival in zip(asked, rivals, strict=True):
            if paper or query @ vector > rival:
                rows.append(query)
                own.append(float(query @ vector))
        vectors.append(vector)
    return np.stack(vectors)


@pytest.mark.parametrize("form", ["paper", "general"])
@pytest.mark.parametrize("batch", [1, 7, 128])
def test_every_batch_size_ends_where_one_by_one_ends(form: Method, batch: int) -> None:
    state, added = initial(form), newcomers(1, 20)
    stream = add_all(state, added, hyperparameters=HOW, batch=batch)
    np.testing.assert_allclose(stream.state.vectors, one_by_one(state, added), atol=2e-4)


@pytest.mark.parametrize("form", ["paper", "general"])
def test_the_papers_solver_ends_near_ours(form: Method) -> None:
    pytest.importorskip("torch")
    state, added = initial(form), newcomers(2, 4)
    ours = add_all(state, added, hyperparameters=HOW).state
    theirs = add_all(state, added, hyperparameters=HOW, solver="lbfgs").state
    np.testing.assert_allclose(theirs.vectors, ours.vectors, atol=2e-2)
    np.testing.assert_array_equal(theirs.owners, ours.owners)
    np.testing.assert_array_equal(theirs.rows, ours.rows)


def test_the_plain_hinge_is_another_problem() -> None:
    pytest.importorskip("torch")
    state, added = initial("paper"), newcomers(2, 1)
    squared, plain = (add_all(state, added, hyperparameters=HOW, solver=s) for s in ("lbfgs", "lbfgs-plain"))
    assert np.abs(squared.state.vectors - plain.state.vectors).max() > 1e-2


@pytest.mark.parametrize("form", ["paper", "general"])
def test_an_index_may_begin_with_nothing(form: Method) -> None:
    stream = add_all(State.empty(H, form), newcomers(3, 15), hyperparameters=HOW)
    assert len(stream.state) == 15
    assert np.isfinite(stream.state.vectors).all()


def test_the_state_at_a_mark_is_what_adding_that_many_gives() -> None:
    state, added = initial("general"), newcomers(4, 20)
    stream = add_all(state, added, hyperparameters=HOW, marks=(0, 5, 17), batch=6)
    early = add_all(state, added.at(np.arange(5)), hyperparameters=HOW)
    then = len(state) + 5
    np.testing.assert_allclose(stream.state.vectors[:then], early.state.vectors, atol=1e-5)
    np.testing.assert_array_equal(stream.state.vectors[: len(state)], state.vectors)
    assert list(stream.seconds) == [0, 5, 17, 20]
    first, early_on, last = (sum(stream.seconds[mark].values()) for mark in (0, 5, 20))
    assert first == 0 < early_on < last
    assert set(stream.seconds[20]) == {"constrain", "solve", "append"}


def test_a_stream_in_two_parts_is_the_stream() -> None:
    state, added = initial("general"), newcomers(5, 20)
    whole = add_all(state, added, hyperparameters=HOW).state
    first = add_all(state, added.at(np.arange(8)), hyperparameters=HOW).state
    second = add_all(first, added.at(np.arange(8, 20)), hyperparameters=HOW).state
    np.testing.assert_allclose(second.vectors, whole.vectors, atol=1e-4)
    np.testing.assert_array_equal(second.owners, whole.owners)


def test_the_general_form_preserves_what_is_won_and_the_papers_the_means() -> None:
    some = newcomers(0, 30)
    vectors = 4 * some.texts
    general, paper = (State.of(vectors, some, form) for form in ("general", "paper"))
    won = [(o, q) for o, queries in enumerate(some.queries) for q in queries if (vectors @ q).argmax() == o]
    np.testing.assert_array_equal(general.owners, [owner for owner, _ in won])
    np.testing.assert_array_equal(general.rows, [query for _, query in won])
    np.testing.assert_array_equal(paper.owners, np.arange(30))
    for row, owner, own in zip(paper.rows, paper.owners, paper.own_scores, strict=True):
        asked = some.queries[owner] if len(some.queries[owner]) else some.texts[owner][None]
        np.testing.assert_allclose(row, asked.mean(axis=0), atol=1e-6)
        assert own == pytest.approx(float(row @ vectors[owner]), abs=1e-5)


def test_a_document_with_very_many_queries_is_left_as_many_as_the_index_leaves_it() -> None:
    draw = np.random.default_rng(7)
    near = units(draw, 1) + 0.05 * units(draw, 100)
    added = Newcomers(texts=near[:1], queries=[near])
    stream = add_all(State.empty(H, "general"), added, hyperparameters=HOW)
    assert len(stream.state.rows) == MOST_PRESERVED
    assert (near @ stream.state.vectors[0] > 0).sum() > MOST_PRESERVED


def test_adding_leaves_the_state_it_began_with() -> None:
    state = initial("general")
    before = [array.copy() for array in (state.vectors, state.owners, state.rows)]
    first, second = (add_all(state, newcomers(1, 20), hyperparameters=HOW).state for _ in range(2))
    np.testing.assert_array_equal(first.vectors, second.vectors)
    for then, now in zip(before, (state.vectors, state.owners, state.rows), strict=True):
        np.testing.assert_array_equal(then, now)


def test_some_documents_alone_keep_their_own_rows() -> None:
    state = initial("general")
    places = np.array([7, 2, 29])
    part = state.only(places)
    np.testing.assert_array_equal(part.vectors, state.vectors[places])
    for here, there in enumerate(places):
        np.testing.assert_array_equal(part.rows[part.owners == here], state.rows[state.owners == there])


def test_progress_counts_documents() -> None:
    seen: list[tuple[int, int]] = []
    add_all(
        initial("general"),
        newcomers(1, 20),
        hyperparameters=HOW,
        batch=8,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen == [(8, 20), (16, 20), (20, 20)]


def test_documents_without_a_list_of_queries_are_refused() -> None:
    with pytest.raises(InvalidInput, match="queries for each of 2 documents"):
        Newcomers(texts=np.zeros((2, H), dtype=np.float32), queries=[])


def test_standing_counts_newcomers_without_scoring_the_old_again() -> None:
    draw = np.random.default_rng(6)
    old, added, queries = units(draw, 50), units(draw, 9), units(draw, 40)
    added[3] = old[5]  # tied with a right document
    owners = draw.integers(0, 50, 40)
    standing = Standing.of(old, queries, owners)
    for count in (0, 4, 9):
        expected = ranks_among(np.concatenate([old, added[:count]]), queries, owners)
        np.testing.assert_array_equal(standing.after(added[:count]), expected)
