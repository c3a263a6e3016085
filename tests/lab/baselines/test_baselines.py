"""Every method speaks the protocol; each does what makes it that method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from incdsi.errors import InvalidHyperparameters, InvalidInput
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.training.settings import FinetuneSettings, FrozenSettings
from incdsi_lab.baselines.classification import DSIDPR, Retraining, trained
from incdsi_lab.baselines.dpr import DPR, DPRSettings
from incdsi_lab.baselines.lexical import BM25
from incdsi_lab.baselines.protocol import Method, Part, Questions, joined
from incdsi_lab.baselines.ranking import best
from incdsi_lab.baselines.scratch import DSIScratch
from incdsi_lab.baselines.vectors import Dense

QUICK = FrozenSettings(epochs=2, batch_size=8)
FINETUNE = FinetuneSettings(epochs=1, batch_size=8, learning_rate=1e-3)
DPR_QUICK = DPRSettings(batch_size=6, learning_rate=1e-3)
MAKERS: dict[str, Callable[[TorchEncoder], Method]] = {
    "BM25": lambda _: BM25(),
    "dense": lambda _: Dense(),
    "DPR": lambda encoder: DPR(encoder, DPR_QUICK),
    "DSI-DPR": lambda _: DSIDPR(QUICK, epochs=1),
    "DSI-Scratch": lambda encoder: DSIScratch(encoder, FINETUNE),
    "retraining": lambda _: Retraining(QUICK),
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_method_ranks_old_and_new_documents(name: str, encoder: TorchEncoder, initial: Part, new: Part) -> None:
    method = MAKERS[name](encoder)
    assert method.name == name
    method.fit(initial)
    before = method.search(new.held_out, 4)
    method.add(new)
    after = method.search(joined([initial.held_out, new.held_out.moved(len(initial))]), 4)
    assert before.positions.shape == (len(new.held_out), 4)
    assert before.positions.max() < len(initial) <= after.positions.max() < len(initial) + len(new)
    assert (np.diff(after.scores, axis=1) <= 0).all()
    assert all(len(set(row)) == 4 for row in after.positions.tolist())
    assert method.seconds.get("search", 0.0) > 0.0


@pytest.mark.parametrize("name", MAKERS)
def test_a_method_gives_all_documents_when_there_are_fewer_than_asked_for(
    name: str, encoder: TorchEncoder, initial: Part
) -> None:
    method = MAKERS[name](encoder)
    method.fit(initial.first(3))
    assert sorted(method.search(initial.held_out.take(np.array([0])), 10).positions[0].tolist()) == [0, 1, 2]


def test_bm25_finds_what_shares_words(initial: Part, new: Part) -> None:
    method = BM25()
    method.fit(initial)
    method.add(new)
    everything = initial.followed_by(new)
    found = method.search(everything.held_out, 1).positions[:, 0]
    assert (found == everything.held_out.owners).mean() > 0.8


def test_bm25_knows_queries_without_any_known_word(encoder: TorchEncoder, initial: Part) -> None:
    method = BM25()
    method.fit(initial)
    strange = replace(initial.held_out.take(np.array([0])), texts=("zzz qqq",))
    assert (method.search(strange, 3).scores == 0).all()


def test_dense_scores_are_inner_products(initial: Part) -> None:
    method = Dense()
    method.fit(initial)
    found = method.search(initial.held_out, len(initial))
    expected = initial.held_out.embeddings @ initial.embeddings.T
    np.testing.assert_allclose(found.scores, -np.sort(-expected, axis=1), rtol=1e-5)


def test_ties_go_to_the_earlier_document() -> None:
    vectors = np.ones((5, 2), dtype=np.float32)
    assert best(np.ones((1, 2), dtype=np.float32), vectors, 5).positions.tolist() == [[0, 1, 2, 3, 4]]


def test_retraining_is_training_on_everything(initial: Part, new: Part) -> None:
    method = Retraining(QUICK)
    method.fit(initial)
    method.add(new)
    np.testing.assert_array_equal(method.document_vectors, trained(initial.followed_by(new), QUICK))


def test_a_shared_initial_model_is_used_and_not_trained_again(initial: Part) -> None:
    vectors = trained(initial, QUICK)
    for method in (Retraining(QUICK, initial=vectors), DSIDPR(QUICK, initial=vectors)):
        method.fit(initial)
        assert method.document_vectors is vectors
    with pytest.raises(InvalidInput, match="initial rows"):
        Retraining(QUICK, initial=vectors[:-1]).fit(initial)


def test_dsi_dpr_learns_new_queries_and_moves_old_rows(initial: Part, new: Part) -> None:
    method = DSIDPR(QUICK, epochs=2)
    method.fit(initial)
    before = method.document_vectors.copy()
    method.add(new)
    assert len(method.document_vectors) == len(initial) + len(new)
    assert not np.array_equal(method.document_vectors[: len(initial)], before)


def test_dsi_scratch_replays_as_many_old_queries_and_leaves_its_encoder_alone(
    encoder: TorchEncoder, initial: Part, new: Part
) -> None:
    fingerprint = encoder.fingerprint
    none = np.empty(0, dtype=np.intp)  # nothing to choose by: the last epoch is kept
    initial, new = (replace(some, held_out=some.held_out.take(none)) for some in (initial, new))
    method = DSIScratch(encoder, FINETUNE, per_document=8 / len(new))
    method.fit(initial)
    lesson, _ = method._lesson(initial, new)
    assert (lesson.owners >= len(initial)).sum() == (lesson.owners < len(initial)).sum() == 4
    method.add(new)
    assert encoder.fingerprint == fingerprint
    assert not np.allclose(method.embedded(new.queries), new.queries.embeddings)


@pytest.mark.parametrize("towers", ["both", "query"])
def test_dpr_learns_from_natural_queries(towers: str, encoder: TorchEncoder, initial: Part) -> None:
    fingerprint = encoder.fingerprint
    settings = DPRSettings(epochs=6, batch_size=12, learning_rate=3e-3, towers=towers)  # type: ignore[arg-type]
    method = DPR(encoder, settings)
    method.fit(initial)
    natural = initial.queries.natural()
    own = natural.owners[:, None]
    dense = Dense()
    dense.fit(initial)
    rank = lambda some: (some.search(natural, 12).positions == own).argmax(axis=1).mean()  # noqa: E731
    assert rank(method) < rank(dense)
    assert encoder.fingerprint == fingerprint
    assert (method.document_vectors is initial.embeddings) == (towers == "query")


def test_dpr_learns_the_same_whatever_was_drawn_before(encoder: TorchEncoder, initial: Part) -> None:
    found = []
    for drawn in (0, 7):
        torch.rand(drawn)
        method = DPR(encoder, DPRSettings(batch_size=6, queries=12, seed=3))
        method.fit(initial)
        found.append(method.embedded(initial.held_out))
    np.testing.assert_array_equal(found[0], found[1])


def test_dpr_learns_from_so_many_queries_only(encoder: TorchEncoder, initial: Part) -> None:
    seen: list[tuple[int, int]] = []
    settings = DPRSettings(batch_size=6, queries=13, epochs=2)
    DPR(encoder, settings, progress=lambda done, total: seen.append((done, total))).fit(initial)
    assert (6, 6) in seen  # two epochs of three batches


def test_a_batch_of_dpr_has_no_document_twice(encoder: TorchEncoder, initial: Part) -> None:
    from incdsi_lab.baselines.dpr import _Finetuning

    run = _Finetuning(encoder, initial, initial.queries, DPRSettings(batch_size=10, epochs=2))
    for batch in run._batches():
        owners = initial.queries.owners[batch]
        assert len(set(owners.tolist())) == len(owners)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidHyperparameters, match="epochs"):
        DPRSettings(epochs=0)
    with pytest.raises(InvalidHyperparameters, match="towers"):
        DPRSettings(towers="none")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [BM25(), Dense(), Retraining(QUICK), DSIDPR(QUICK)])
def test_searching_before_fit_is_refused(method: Method, initial: Part) -> None:
    with pytest.raises(InvalidInput, match="call fit first"):
        method.search(initial.held_out, 1)


def test_parts_keep_their_queries_when_taken_and_joined(initial: Part, new: Part) -> None:
    together = initial.followed_by(new)
    back = together.take(np.arange(len(initial), len(together)))
    assert [document.id for document in back.documents] == [document.id for document in new.documents]
    assert back.queries.texts == new.queries.texts
    np.testing.assert_array_equal(back.queries.owners, new.queries.owners)
    turned = initial.take(np.array([3, 1]))
    assert set(turned.queries.owners.tolist()) == {0, 1}
    first = {turned.queries.texts[place] for place in np.flatnonzero(turned.queries.owners == 0)}
    assert first == {initial.queries.texts[place] for place in np.flatnonzero(initial.queries.owners == 3)}


def test_questions_with_an_owner_missing_are_refused() -> None:
    with pytest.raises(InvalidInput, match="for each of 1 queries"):
        Questions(
            texts=("a",),
            owners=np.empty(0, dtype=np.int64),
            embeddings=np.ones((1, 2), dtype=np.float32),
            generated=np.zeros(1, dtype=bool),
        )
