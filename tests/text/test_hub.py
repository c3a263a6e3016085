"""Models by name, from the hub client's own copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from incdsi.errors import ModelNotFound
from incdsi.text.hub import fetch_model, folder_named


@pytest.fixture
def client_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model as the hub client keeps it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    revision = "1" * 40
    snapshot = tmp_path / "models--some--model" / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors").write_bytes(b"")
    refs = tmp_path / "models--some--model" / "refs"
    refs.mkdir()
    (refs / "main").write_text(revision)
    return snapshot


def test_the_clients_own_copy_is_used_without_a_connection(client_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", lambda *_, **__: pytest.fail("asked the hub"))
    assert fetch_model("some/model") == client_cache


def test_a_copy_without_weights_is_fetched(client_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> None:
        raise OSError("no connection")

    (client_cache / "model.safetensors").unlink()
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", offline)
    with pytest.raises(ModelNotFound, match=r"not on the hub \(no connection\); check the name"):
        fetch_model("some/model")


def test_what_looks_like_a_path_is_one(tmp_path: Path) -> None:
    assert folder_named(tmp_path) == folder_named(str(tmp_path)) == tmp_path
    assert folder_named("owner/model") is None
    for name in (tmp_path / "nothing", str(tmp_path / "nothing")):
        with pytest.raises(ModelNotFound, match="there is no folder"):
            folder_named(name)
