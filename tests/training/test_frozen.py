"""Frozen training: what it learns, keeps, and repeats to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import Synthetic, synthetic

from incdsi.errors import InvalidInput
from incdsi.training.frozen import train_frozen
from incdsi.training.pairs import EmbeddedPairs
from incdsi.training.records import Moment
from incdsi.training.settings import FrozenSettings
from incdsi.training.starts import represent_all, start_rows

SETTINGS = FrozenSettings(epochs=6, batch_size=32, learning_rate=0.3)


@pytest.fixture(scope="module")
def problem() -> Synthetic:
    return synthetic()


def start_of(problem: Synthetic, settings: FrozenSettings = SETTINGS) -> np.ndarray:
    training = problem.training
    return start_rows(settings, problem.text, training.embeddings, training.owners)


@pytest.mark.parametrize("start", ["text", "random"])
def test_training_beats_its_start_on_held_out_queries(problem: Synthetic, start: str) -> None:
    settings = FrozenSettings(epochs=10, batch_size=32, learning_rate=0.3, start=start)
    rows, outcome = train_frozen(start_of(problem, settings), problem.training, problem.held_out, settings)
    before, after = outcome.epochs[0].quality, outcome.epochs[outcome.best_epoch].quality
    assert before is not None
    assert after is not None
    assert after.hits_at_1 > before.hits_at_1 + 20
    scores = problem.held_out.embeddings @ rows.T
    assert 100 * np.mean(scores.argmax(1) == problem.held_out.owners) == pytest.approx(after.hits_at_1)


def test_two_runs_with_one_seed_are_identical_and_another_seed_differs(problem: Synthetic) -> None:
    runs = [
        train_frozen(start_of(problem), problem.training, problem.held_out, settings)
        for settings in (SETTINGS, SETTINGS, FrozenSettings(epochs=6, batch_size=32, learning_rate=0.3, seed=1))
    ]
    assert runs[0][0].tobytes() == runs[1][0].tobytes()
    assert runs[0][1].epochs == runs[1][1].epochs
    assert runs[0][0].tobytes() != runs[2][0].tobytes()


def test_the_best_epoch_is_kept_and_patience_ends_the_run(problem: Synthetic) -> None:
    wild = FrozenSettings(epochs=40, batch_size=360, learning_rate=30.0, patience=3, decay=False)
    rows, outcome = train_frozen(start_of(problem), problem.training, problem.held_out, wild)
    scores = [epoch.quality.mrr_at_10 for epoch in outcome.epochs if epoch.quality]
    assert outcome.best_epoch == int(np.argmax(scores))
    assert len(scores) == outcome.best_epoch + 3 + 1 < 41
    if outcome.best_epoch == 0:
        np.testing.assert_array_equal(rows, start_of(problem))


def test_a_document_without_a_query_stays_where_it_started(problem: Synthetic) -> None:
    kept = problem.training.owners >= 5
    training = EmbeddedPairs(
        texts=tuple(np.array(problem.training.texts)[kept]),
        owners=problem.training.owners[kept],
        embeddings=problem.training.embeddings[kept],
    )
    for name in ("text", "queries", "random"):
        settings = FrozenSettings(epochs=2, batch_size=32, learning_rate=0.3, start=name, weight_decay=0.1)
        start = start_rows(settings, problem.text, training.embeddings, training.owners)
        rows, _ = train_frozen(start, training, problem.held_out, settings)
        np.testing.assert_array_equal(rows[:5], 20 * problem.text[:5])
        assert (rows[5:] != start[5:]).any(axis=1).all()


def test_no_query_at_all_gives_the_start_back(problem: Synthetic) -> None:
    nothing = EmbeddedPairs(texts=(), owners=np.zeros(0, np.int64), embeddings=np.zeros((0, 16), np.float32))
    rows, outcome = train_frozen(20 * problem.text, nothing, nothing, SETTINGS)
    np.testing.assert_array_equal(rows, 20 * problem.text)
    assert outcome.best_epoch == 0


def test_without_held_out_queries_the_last_epoch_is_kept(problem: Synthetic) -> None:
    nothing = EmbeddedPairs(texts=(), owners=np.zeros(0, np.int64), embeddings=np.zeros((0, 16), np.float32))
    _, outcome = train_frozen(start_of(problem), problem.training, nothing, SETTINGS)
    assert outcome.best_epoch == SETTINGS.epochs
    losses = [epoch.loss for epoch in outcome.epochs[1:]]
    assert losses == sorted(losses, reverse=True)


def test_steps_are_observed_with_their_losses(problem: Synthetic) -> None:
    moments: list[Moment] = []
    settings = FrozenSettings(epochs=2, batch_size=100, learning_rate=0.1, patience=9)
    _, outcome = train_frozen(start_of(problem), problem.training, problem.held_out, settings, observe=moments.append)
    assert [moment.step for moment in moments] == list(range(1, 9))
    assert {moment.total for moment in moments} == {8}
    assert tuple(moment.ended for moment in moments if moment.ended) == outcome.epochs[1:]
    sizes = np.array([100, 100, 100, 60])
    mean = np.dot(sizes, [moment.loss for moment in moments[:4]]) / 360
    assert outcome.epochs[1].loss == pytest.approx(mean)


def test_a_tiny_memory_budget_changes_only_rounding() -> None:
    problem = synthetic(documents=300_000 // 1000, seed=3)
    rows = []
    for memory in (1, 256):
        settings = FrozenSettings(epochs=1, batch_size=1800, learning_rate=0.3, memory=memory)
        rows.append(train_frozen(start_of(problem), problem.training, problem.held_out, settings)[0])
    np.testing.assert_allclose(rows[0], rows[1], rtol=1e-3, atol=1e-3)


def test_representative_queries_are_the_means_of_each_documents_own(problem: Synthetic) -> None:
    means = represent_all(problem.training.embeddings, problem.training.owners, 61)
    for position in range(60):
        own = problem.training.embeddings[problem.training.owners == position]
        np.testing.assert_allclose(means[position], own.mean(axis=0), rtol=1e-5, atol=1e-6)
    assert not means[60].any()


def test_arrays_that_do_not_fit_are_refused(problem: Synthetic) -> None:
    with pytest.raises(InvalidInput, match="expected query embeddings as long as the documents', 5, found"):
        train_frozen(np.zeros((60, 5), np.float32), problem.training, problem.held_out, SETTINGS)
    with pytest.raises(InvalidInput, match="owners must be from 0 to 9"):
        train_frozen(np.zeros((10, 16), np.float32), problem.training, problem.held_out, SETTINGS)
    with pytest.raises(InvalidInput, match="an owner and an embedding for each of 3 queries"):
        EmbeddedPairs(texts=("a", "b", "c"), owners=np.zeros(2, np.int64), embeddings=np.zeros((3, 2), np.float32))
