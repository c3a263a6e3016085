"""The artefact: saving and loading is the identity, damage is named, nothing is half-written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from training_problems import corpus, tiny_encoder

from incdsi.errors import InvalidFile, InvalidInput, UnsupportedFormat
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.training.artefact import ARRAYS, TrainedModel
from incdsi.training.settings import FrozenSettings
from incdsi.training.stage1 import train

SETTINGS = FrozenSettings(epochs=2, batch_size=16, learning_rate=0.3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    documents, queries = corpus()
    encoder = tiny_encoder(tmp_path_factory.mktemp("encoder"))
    return train(documents, queries, encoder=encoder, settings=SETTINGS)


@pytest.fixture(scope="module")
def saved(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("artefact") / "trained"
    model.save(folder)
    return folder


def assert_equal(one: TrainedModel, other: TrainedModel) -> None:
    assert one.document_ids == other.document_ids
    assert one.epochs == other.epochs
    assert one.best_epoch == other.best_epoch
    assert one.encoder_fingerprint == other.encoder_fingerprint
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for mine, theirs in ((one.queries, other.queries), (one.held_out, other.held_out)):
        assert mine.texts == theirs.texts
        np.testing.assert_array_equal(mine.owners, theirs.owners)
        np.testing.assert_array_equal(mine.embeddings, theirs.embeddings)


def test_load_gives_back_what_was_saved_with_the_same_encoder_as_onnx(model: TrainedModel, saved: Path) -> None:
    loaded = TrainedModel.load(saved)
    assert_equal(model, loaded)
    assert isinstance(loaded.encoder, OnnxEncoder)
    assert loaded.encoder.fingerprint == model.encoder_fingerprint
    texts = model.queries.texts[:4]
    np.testing.assert_allclose(loaded.encoder.encode(texts), model.encoder.encode(texts), atol=1e-5)


def test_a_loaded_model_saves_again_by_copying_its_onnx_encoder(saved: Path, tmp_path: Path) -> None:
    TrainedModel.load(saved).save(tmp_path / "copy")
    for path in saved.rglob("*"):
        if path.is_file():
            assert (tmp_path / "copy" / path.relative_to(saved)).read_bytes() == path.read_bytes()


def test_own_scores_and_representative_queries_are_consistent(model: TrainedModel) -> None:
    scores = (model.representative_queries * model.document_vectors).sum(axis=1)
    np.testing.assert_allclose(model.own_scores, scores, rtol=1e-5)
    first = model.queries.embeddings[model.queries.owners == 0]
    np.testing.assert_allclose(model.representative_queries[0], first.mean(axis=0), atol=1e-6)


def test_an_existing_folder_is_left_alone(model: TrainedModel, saved: Path) -> None:
    before = (saved / "manifest.json").read_bytes()
    with pytest.raises(InvalidInput, match=r"expected nothing at .* name a new folder"):
        model.save(saved)
    assert (saved / "manifest.json").read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_damage_is_found_and_named(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "m")
    vectors = tmp_path / "m" / "document_vectors.npy"
    content = bytearray(vectors.read_bytes())
    content[-1] ^= 1
    vectors.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"document_vectors\.npy: .* missing or changed"):
        TrainedModel.load(tmp_path / "m")
    vectors.unlink()
    with pytest.raises(InvalidFile, match="missing or changed"):
        TrainedModel.load(tmp_path / "m")
    with pytest.raises(InvalidFile, match="expected the manifest of a trained model"):
        TrainedModel.load(tmp_path)


def test_a_newer_format_is_refused_with_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 7, "files": {}}))
    with pytest.raises(UnsupportedFormat, match=r"format 1 or older .* found 7"):
        TrainedModel.load(tmp_path)


def test_a_foreign_encoder_cannot_be_saved_and_leaves_nothing(tmp_path: Path) -> None:
    class Foreign:
        dimension = 4
        fingerprint = "foreign"

        def encode(self, texts, progress=None):
            return np.ones((len(texts), 4), dtype=np.float32)

    documents, queries = corpus(3)
    foreign = train(documents, queries, encoder=Foreign(), settings=SETTINGS)
    with pytest.raises(InvalidInput, match="expected an ONNX or torch encoder to save, found Foreign"):
        foreign.save(tmp_path / "m")
    assert not list(tmp_path.iterdir())
