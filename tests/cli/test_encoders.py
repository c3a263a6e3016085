"""`model`, and what a new index says while it waits for its encoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incdsi.cli.progress import waiting
from incdsi.text.encoders import fetch, load_encoder
from tests.cli.conftest import DOCUMENTS, Run, write


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INCDSI_MODELS", str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def on_the_hub(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model is the default one, on the hub and nowhere else."""
    monkeypatch.setattr(fetch, "PUBLISHED", {})
    monkeypatch.setattr(fetch, "PACKAGE", "no_such_package_anywhere")
    monkeypatch.setattr(fetch, "_from_wheel", lambda folder: None)
    monkeypatch.setattr(fetch, "fetch_model", lambda name: tiny_bert)


def test_a_model_is_made_ready_once(run: Run, tiny_bert: Path, models: Path) -> None:
    said = json.loads(run("model", tiny_bert, "--json").stdout)
    assert [path.name for path in models.iterdir()] == [said["fingerprint"]]
    assert said == {"fingerprint": load_encoder(tiny_bert).fingerprint, "dimension": 16}
    assert run("model", tiny_bert).stdout == f"ready: 16 dimensions, fingerprint {said['fingerprint'][:16]}\n"


def test_a_name_that_is_nowhere_is_one_sentence(run: Run, tmp_path: Path) -> None:
    assert "there is no folder" in run("model", tmp_path / "nothing", code=1).stderr


@pytest.mark.usefixtures("on_the_hub")
def test_a_new_index_says_what_it_waits_for(run: Run) -> None:
    documents = write("docs.jsonl", DOCUMENTS)
    assert "fetching the encoder all-MiniLM-L6-v2 (91 MB) from the hub" in run("add", documents).stderr
    assert "fetching" not in run("upsert", documents).stderr


@pytest.mark.usefixtures("on_the_hub")
def test_quiet_says_nothing(run: Run) -> None:
    assert run("add", write("docs.jsonl", DOCUMENTS), "--quiet").stderr == ""


def test_a_terminal_sees_what_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with waiting("opening the encoder"):
        pass
    assert "opening the encoder ..." in capsys.readouterr().err
