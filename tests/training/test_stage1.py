"""The one door: what it refuses, drops, holds out, keeps and resumes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from training_problems import corpus, tiny_encoder

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidDocument, InvalidInput, UnknownDocument
from incdsi.training.settings import FinetuneSettings, FrozenSettings
from incdsi.training.stage1 import train

FROZEN = FrozenSettings(epochs=3, batch_size=16, learning_rate=0.3, patience=9)
FINETUNE = FinetuneSettings(epochs=2, batch_size=16, learning_rate=1e-3, row_learning_rate=0.3)


class Counting:
    """The real encoder, counting what it is asked for."""

    def __init__(self, encoder) -> None:
        self.encoder, self.asked = encoder, 0
        self.dimension, self.fingerprint = encoder.dimension, encoder.fingerprint

    def encode(self, texts, progress=None):
        self.asked += len(texts)
        return self.encoder.encode(texts, progress)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory):
    return tiny_encoder(tmp_path_factory.mktemp("encoder"))


def test_bad_input_gets_a_sentence(encoder) -> None:
    documents, queries = corpus(3)
    with pytest.raises(DuplicateDocument, match="documents 0 and 3 have the same id, 'doc-0'"):
        train([*documents, documents[0]], queries, encoder=encoder)
    with pytest.raises(UnknownDocument, match="queries for 'ghost', which is not among the documents; add"):
        train(documents, {**queries, "ghost": ["boo"]}, encoder=encoder)
    with pytest.raises(UnknownDocument, match="'ghost'"):
        train(documents, queries, encoder=encoder, validation={"ghost": ["boo"]})
    with pytest.raises(InvalidInput, match="the queries of document 'doc-1' are a single string"):
        train(documents, {"doc-1": "one text"}, encoder=encoder)
    with pytest.raises(InvalidDocument, match="query for document 'doc-1'"):
        train(documents, {"doc-1": ["  "]}, encoder=encoder)
    with pytest.raises(InvalidInput, match="no documents to train on"):
        train([], {}, encoder=encoder)
    with pytest.raises(InvalidInput, match="mode must be one of frozen, finetune, not 'melt'"):
        train(documents, queries, encoder=encoder, mode="melt")
    with pytest.raises(InvalidInput, match="mode 'frozen' takes FrozenSettings, not Finetune"):
        train(documents, queries, encoder=encoder, settings=FINETUNE)
    with pytest.raises(InvalidInput, match="a Counting cannot be finetuned"):
        train(documents, queries, encoder=Counting(encoder), mode="finetune")


def test_shared_queries_are_dropped_from_all(encoder) -> None:
    documents, queries = corpus(4)
    queries["doc-0"].append("kab kad kaf")
    queries["doc-1"].append("Kab  kad kaf")
    model = train(documents, queries, encoder=encoder, settings=FROZEN)
    assert not [text for text in (*model.queries.texts, *model.held_out.texts) if "kab kad kaf" in text.lower()]


def test_documents_with_four_queries_give_one_to_validation_by_the_seed(encoder) -> None:
    documents, queries = corpus(6)
    queries["doc-2"] = queries["doc-2"][:3]
    model = train(documents, queries, encoder=encoder, settings=FROZEN)
    assert model.held_out.owners.tolist() == [0, 1, 3, 4, 5]
    assert np.bincount(model.queries.owners).tolist() == [4, 4, 3, 4, 4, 4]
    assert not set(model.queries.texts) & set(model.held_out.texts)
    assert set(model.queries.texts) | set(model.held_out.texts) == {q for own in queries.values() for q in own}
    again = train(documents, dict(reversed(queries.items())), encoder=encoder, settings=FROZEN)
    assert again.held_out.texts == model.held_out.texts
    assert again.document_vectors.tobytes() == model.document_vectors.tobytes()
    other = train(documents, queries, encoder=encoder, settings=replace(FROZEN, seed=5))
    assert other.held_out.texts != model.held_out.texts


def test_given_validation_queries_are_used_and_none_is_taken_from_training(encoder) -> None:
    documents, queries = corpus(4)
    model = train(documents, queries, encoder=encoder, settings=FROZEN, validation={"doc-3": ["kab lod"]})
    assert len(model.queries.texts) == 20
    assert model.held_out.texts == ("kab lod",)
    assert model.held_out.owners.tolist() == [3]
    assert model.epochs[0].quality.queries == 1


@pytest.mark.parametrize("start", ["text", "queries", "random"])
def test_documents_without_query_or_text_keep_their_texts_embedding(encoder, start: str) -> None:
    documents, queries = corpus(5)
    documents += [Document(id="silent", text="kab kad", title="🥾"), Document(id="empty", text="")]
    settings = replace(FROZEN, start=start)
    model = train(documents, queries, encoder=encoder, settings=settings)
    np.testing.assert_allclose(model.document_vectors[5:], 20 * model.text_embeddings[5:], rtol=1e-6)
    assert np.isfinite(model.document_vectors).all()


def test_no_query_at_all_is_a_dense_index(encoder) -> None:
    documents, _ = corpus(3)
    model = train(documents, {}, encoder=encoder)
    np.testing.assert_array_equal(model.document_vectors, np.float32(20) * model.text_embeddings)
    assert model.best_epoch == 0


def test_known_embeddings_are_not_made_again(encoder) -> None:
    documents, queries = corpus(4)
    plain = train(documents, queries, encoder=encoder, settings=FROZEN)
    known = dict(zip(plain.queries.texts, plain.queries.embeddings, strict=True))
    counting = Counting(encoder)
    model = train(documents, queries, encoder=counting, settings=FROZEN, known=known)
    assert counting.asked == len(documents) + len(plain.held_out.texts)
    np.testing.assert_allclose(model.document_vectors, plain.document_vectors, atol=1e-2)
    with pytest.raises(InvalidInput, match=r"expected known embeddings of shape \(16,\), found \(3,\)"):
        train(documents, queries, encoder=encoder, known={documents[0].content: np.zeros(3, np.float32)})


def test_a_stopped_run_goes_on_without_encoding_again(encoder, tmp_path: Path) -> None:
    documents, queries = corpus(6)

    def stop(moment) -> None:
        if moment.step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="to resume"):
        train(documents, queries, encoder=encoder, settings=FROZEN, checkpoint=tmp_path, observe=stop)
    counting = Counting(encoder)
    resumed = train(documents, queries, encoder=counting, settings=FROZEN, checkpoint=tmp_path)
    whole = train(documents, queries, encoder=encoder, settings=FROZEN)
    assert counting.asked == 0
    assert resumed.document_vectors.tobytes() == whole.document_vectors.tobytes()
    with pytest.raises(InvalidInput, match="belongs to another run"):
        train(documents[1:], {"doc-1": ["kab"]}, encoder=encoder, settings=FROZEN, checkpoint=tmp_path)


def test_progress_counts_texts_then_steps(encoder) -> None:
    documents, queries = corpus(4)
    told: list[tuple[int, int]] = []
    train(documents, queries, encoder=encoder, settings=FROZEN, progress=lambda *pair: told.append(pair))
    assert told == [(4, 24), (24, 24), (1, 3), (2, 3), (3, 3)]  # documents, then queries


def test_finetuned_queries_are_embedded_by_the_adapted_encoder(encoder) -> None:
    documents, queries = corpus(6)
    before = encoder.fingerprint
    model = train(documents, queries, encoder=encoder, mode="finetune", settings=FINETUNE)
    assert encoder.fingerprint == before
    assert model.encoder_fingerprint == model.encoder.fingerprint
    assert (model.best_epoch == 0) == (model.encoder_fingerprint == before)
    np.testing.assert_allclose(model.queries.embeddings, model.encoder.encode(model.queries.texts), atol=1e-5)
    contents = [document.content for document in documents]
    np.testing.assert_allclose(model.text_embeddings, model.encoder.encode(contents), atol=1e-5)


def test_finetuning_begins_where_frozen_training_ends(encoder) -> None:
    documents, queries = corpus(6)
    frozen = train(documents, queries, encoder=encoder, settings=FrozenSettings(epochs=3))
    finetuned = train(documents, queries, encoder=encoder, mode="finetune", settings=replace(FINETUNE, frozen_epochs=3))
    assert finetuned.epochs[0].quality == frozen.epochs[frozen.best_epoch].quality


def test_the_paper_begins_finetuning_at_the_start(encoder) -> None:
    documents, queries = corpus(6)
    frozen = train(documents, queries, encoder=encoder, settings=FROZEN)
    finetuned = train(documents, queries, encoder=encoder, mode="finetune", settings=replace(FINETUNE, frozen_epochs=0))
    assert finetuned.epochs[0].quality == frozen.epochs[0].quality


def test_stopped_finetuning_goes_on_to_the_same_result(encoder, tmp_path: Path) -> None:
    finetune = partial(train, *corpus(6), encoder=encoder, mode="finetune", settings=FINETUNE)

    def stop(moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="after step 1 of"):
        finetune(checkpoint=tmp_path, observe=stop)
    steps: list[int] = []
    resumed = finetune(checkpoint=tmp_path, observe=lambda moment: steps.append(moment.step))
    whole = finetune()
    assert steps[0] == 2
    assert resumed.document_vectors.tobytes() == whole.document_vectors.tobytes()
    assert resumed.encoder_fingerprint == whole.encoder_fingerprint


def test_stopping_while_vectors_learn_alone_says_what_is_kept(encoder, tmp_path: Path) -> None:
    documents, queries = corpus(6)
    texts = len(documents) + sum(map(len, queries.values()))

    def stop(done: int, total: int) -> None:
        if total < texts:  # steps, not texts
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=f"learned alone; what was embedded is in {tmp_path}"):
        train(
            documents,
            queries,
            encoder=encoder,
            mode="finetune",
            settings=FINETUNE,
            checkpoint=tmp_path,
            progress=stop,
        )
    counting = Counting(encoder)
    train(documents, queries, encoder=counting, settings=FROZEN, checkpoint=tmp_path)
    assert counting.asked == 0


def test_the_encoder_adapts_to_the_queries_that_are_named(encoder) -> None:
    documents, queries = corpus(6)
    finetune = partial(train, documents, queries, encoder=encoder, mode="finetune", settings=FINETUNE)
    steps: list[int] = []
    few = finetune(adapt_to=queries[documents[0].id], observe=lambda moment: steps.append(moment.total))
    assert set(steps) == {FINETUNE.epochs}  # so few make one batch an epoch
    assert len(few.queries.texts) == len(finetune().queries.texts)
    nothing = finetune(adapt_to=["asked by nobody"])
    assert nothing.encoder_fingerprint == encoder.fingerprint


def test_stopped_finetuning_keeps_what_documents_without_a_named_query_learned_before(encoder, tmp_path: Path) -> None:
    documents, queries = corpus(6)
    named = queries[documents[0].id]
    finetune = partial(
        train, documents, queries, encoder=encoder, mode="finetune", settings=FINETUNE, validation={}, adapt_to=named
    )

    def stop(moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(checkpoint=tmp_path, observe=stop)
    assert finetune(checkpoint=tmp_path).document_vectors.tobytes() == finetune().document_vectors.tobytes()
