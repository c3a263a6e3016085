"""Torch and ONNX encoders: one protocol, one function."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incdsi.errors import InvalidFile, InvalidInput, ModelNotFound, UnsupportedFormat
from incdsi.text.encoders import Encoder, load_encoder, onnx_encoder
from incdsi.text.encoders.onnx_encoder import BUDGET, OnnxEncoder, _batches

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
from incdsi.text.encoders import export
from incdsi.text.encoders.export import SAMPLES, export_onnx
from incdsi.text.encoders.torch_encoder import TorchEncoder

TEXTS = ["a river", "", "the mountain is deep " * 40, "👩🏽‍🚀 Straße", "how long is the sea", "A RIVER", "?", "w" * 300]


@pytest.fixture(scope="module", params=["torch", "onnx"])
def encoder(request: pytest.FixtureRequest) -> Encoder:
    found: Encoder = request.getfixturevalue("torch_encoder" if request.param == "torch" else "exported")
    return found


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    left, right = left.astype(np.float64), right.astype(np.float64)
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def test_embeddings_are_float32_rows_of_the_stated_dimension(encoder: Encoder) -> None:
    embeddings = encoder.encode(TEXTS)
    assert embeddings.shape == (len(TEXTS), encoder.dimension)
    assert embeddings.dtype == np.float32
    assert np.linalg.norm(embeddings, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-5)


def test_no_texts_give_no_rows(encoder: Encoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_order_is_kept_and_company_does_not_matter(encoder: Encoder) -> None:
    together = encoder.encode(TEXTS)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(encoder.encode(TEXTS[::-1])[::-1] - together).max() < 1e-5
    assert cosines(together[:1], together[5:6]) == pytest.approx([1.0])  # the tokenizer folds case
    assert cosines(together[:1], together[4:5])[0] < 0.999


def test_progress_grows_to_the_number_of_texts(encoder: Encoder) -> None:
    seen: list[tuple[int, int]] = []
    encoder.encode(["a river"] * 700, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (700, 700)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_torch_equals_the_models_own_encode(torch_encoder: TorchEncoder) -> None:
    own = torch_encoder.model.encode(TEXTS, show_progress_bar=False)
    assert np.abs(torch_encoder.encode(TEXTS) - own).max() < 1e-5


def test_onnx_equals_torch(torch_encoder: TorchEncoder, exported: OnnxEncoder) -> None:
    assert cosines(torch_encoder.encode(TEXTS), exported.encode(TEXTS)).min() >= 0.9999
    assert exported.manifest.agreement["lowest"] >= 0.9999
    assert exported.fingerprint == torch_encoder.fingerprint
    assert (exported.manifest.pooling, exported.manifest.normalise, exported.manifest.max_length) == ("mean", True, 64)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=5))
def test_onnx_equals_torch_on_any_text(
    torch_encoder: TorchEncoder, exported: OnnxEncoder, texts: Sequence[str]
) -> None:
    assert cosines(torch_encoder.encode(texts), exported.encode(texts)).min() >= 0.9999


def test_cls_without_normalisation_survives_the_export(tiny_bert: Path, tmp_path: Path) -> None:
    cls = TorchEncoder.load(tiny_bert, pooling="cls", normalise=False, max_length=12, device="cpu")
    assert (cls.pooling, cls.normalise, cls.max_length) == ("cls", False, 12)
    features = cls.model.preprocess([TEXTS[2]]) if hasattr(cls.model, "preprocess") else cls.model.tokenize([TEXTS[2]])
    assert features["input_ids"].shape == (1, 12)
    inputs = {name: features[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    hidden = cls.model.eval()[0].auto_model(**inputs).last_hidden_state[0, 0].detach().numpy()
    assert cls.encode([TEXTS[2]])[0] == pytest.approx(hidden, abs=1e-5)
    exported = export_onnx(cls, tmp_path / "model")
    assert np.abs(exported.encode(TEXTS) - cls.encode(TEXTS)).max() < 1e-4
    assert not np.allclose(np.linalg.norm(exported.encode(TEXTS), axis=1), 1.0)


def test_a_text_longer_than_the_character_limit_is_embedded_as_if_read_whole(
    exported: OnnxEncoder, torch_encoder: TorchEncoder
) -> None:
    limit = exported.manifest.max_length * onnx_encoder.CHARACTERS
    texts = ["the sea " * limit, " " * limit + "a deep river", "x" * (2 * limit), ("y" * 200 + " ") * limit]
    assert cosines(torch_encoder.encode(texts), exported.encode(texts)).min() >= 0.9999


def test_every_part_of_the_function_is_in_the_fingerprint(tiny_bert: Path) -> None:
    import torch

    plain = TorchEncoder.load(tiny_bert, device="cpu")
    assert plain.fingerprint == TorchEncoder.load(tiny_bert, device="cpu").fingerprint
    other = [
        TorchEncoder.load(tiny_bert, pooling="cls", device="cpu"),
        TorchEncoder.load(tiny_bert, normalise=False, device="cpu"),
        TorchEncoder.load(tiny_bert, max_length=32, device="cpu"),
    ]
    trained = TorchEncoder.load(tiny_bert, device="cpu")
    with torch.no_grad():
        next(trained.model.parameters())[0, 0] += 1e-3
    cased = TorchEncoder.load(tiny_bert, device="cpu")
    from tokenizers.normalizers import BertNormalizer

    cased.model.tokenizer.backend_tokenizer.normalizer = BertNormalizer(lowercase=False)
    prints = [each.fingerprint for each in (plain, *other, trained, cased)]
    assert len(set(prints)) == len(prints)


def test_encoding_leaves_a_model_in_training_in_training(torch_encoder: TorchEncoder) -> None:
    torch_encoder.model.train()
    first = torch_encoder.encode(TEXTS)
    assert torch_encoder.model.training
    assert np.array_equal(first, torch_encoder.encode(TEXTS))  # no dropout inside
    torch_encoder.model.eval()


@pytest.mark.usefixtures("graph_at_hand")
def test_int8_is_another_function_with_its_loss_recorded_and_told(
    torch_encoder: TorchEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    small = export_onnx(torch_encoder, tmp_path / "int8", quantise=True)
    assert f"{small.manifest.agreement['lowest']:.3f} at worst" in caplog.text
    assert small.fingerprint != torch_encoder.fingerprint
    assert small.manifest.precision == "int8"
    expected = cosines(torch_encoder.encode(SAMPLES), small.encode(SAMPLES))
    assert small.manifest.agreement["lowest"] <= expected.min() + 1e-6 < 1.0


@pytest.mark.usefixtures("graph_at_hand")
def test_an_export_that_disagrees_is_refused_and_leaves_nothing(
    torch_encoder: TorchEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "AGREEMENT", 1.1)
    with pytest.raises(InvalidInput, match="the ONNX export differs from torch"):
        export_onnx(torch_encoder, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("graph_at_hand")
def test_an_export_replaces_an_older_one_whole(torch_encoder: TorchEncoder, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "left over").write_text("x")
    export_onnx(torch_encoder, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "model.onnx", "tokenizer.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("digest", ["checksum", "sha256"])  # those of older versions have no checksum
@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_file_is_named(exported: OnnxEncoder, tmp_path: Path, name: str, digest: str) -> None:
    folder = Path(shutil.copytree(exported.folder, tmp_path / "model"))
    if digest == "sha256":
        state = json.loads((folder / "manifest.json").read_text())
        del state["checksums"]
        (folder / "manifest.json").write_text(json.dumps(state))
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(InvalidFile, match=f"{name}: expected {digest} .* export the model again"):
        load_encoder(folder)


def test_a_model_of_the_first_format_opens(exported: OnnxEncoder, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported.folder, tmp_path / "model"))
    state = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**state, "format": 1}))
    assert load_encoder(folder).fingerprint == exported.fingerprint


def test_a_foreign_manifest_is_refused(exported: OnnxEncoder, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(exported.folder, tmp_path / "model"))
    state = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**state, "format": 99}))
    with pytest.raises(UnsupportedFormat, match="has format 99, and this incdsi reads up to 2"):
        load_encoder(folder)
    del state["pad_id"]
    wrong = ({"files": {"../x": ""}}, {"pad_id": 0, "checksums": {"model.onnx": ""}}, {"pad_id": 0, "checksums": []})
    for content in (json.dumps(state), "[]", "{", *(json.dumps({**state, **one}) for one in wrong)):
        (folder / "manifest.json").write_text(content)
        with pytest.raises(InvalidFile, match="not the manifest of an encoder"):
            load_encoder(folder)


def test_a_folder_with_onnx_opens_without_torch(exported: OnnxEncoder) -> None:
    code = (
        "import sys; from incdsi.text.encoders import load_encoder; "
        "e = load_encoder(sys.argv[1]); print(e.encode(['a river']).shape, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(exported.folder)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "(1, 16) False"
    assert run.stderr == ""


def test_settings_out_of_range_are_refused(tiny_bert: Path) -> None:
    with pytest.raises(InvalidInput, match="max_length must be from 3 to 64, not 65"):
        TorchEncoder.load(tiny_bert, max_length=65)
    with pytest.raises(InvalidInput, match=r"pooling must be one of .* not 'middle'"):
        TorchEncoder.load(tiny_bert, pooling="middle")


def test_a_missing_model_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelNotFound, match=r"no model in .*: config\.json"):
        load_encoder(tmp_path)
    with pytest.raises(ModelNotFound, match="there is no folder"):
        load_encoder(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelNotFound, match="cannot load the model in"):
        load_encoder(tmp_path)


@given(st.lists(st.integers(1, 256), max_size=60))
def test_every_text_runs_once_and_batches_stay_within_their_budget(lengths):
    batches = list(_batches(lengths))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or len(batch) * lengths[batch[0]] <= BUDGET for batch in batches)
    assert all(lengths[batch[0]] == max(lengths[place] for place in batch) for batch in batches)


def test_the_queries_of_one_document_are_padded_little():
    lengths = [48, 41, 33, 30, 22, 14, 11, 9, 5]
    computed = sum(len(batch) * lengths[batch[0]] for batch in _batches(lengths))
    assert computed < 1.3 * sum(lengths) < len(lengths) * max(lengths)
