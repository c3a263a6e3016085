"""train: stage 1 on what is in the index, then the new encoder swapped in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incdsi.training.settings import FinetuneSettings
from tests.cli.conftest import Run, write
from tests.cli.test_documented import COMMANDS

WORDS = ["river", "mountain", "boots", "sea", "who", "where", "deep", "long"]


@pytest.fixture
def asked(run: Run, encoder: str) -> Path:
    """An index of eight documents with queries to learn from."""
    rows = [
        {"id": f"d{n}", "text": f"the {word}", "queries": [f"{word} {other}" for other in WORDS[:4]]}
        for n, word in enumerate(WORDS)
    ]
    run("add", write("docs.jsonl", rows), "--encoder", encoder)
    return Path("shop")


@pytest.mark.slow
def test_training_swaps_in_the_adapted_encoder(run: Run, asked: Path, tiny_bert: Path) -> None:
    before = json.loads(run("info", "--json").stdout)["encoder"]
    log = write("log.jsonl", [{"text": "where flows it", "document_id": "d0"}])
    how = ("--encoder", tiny_bert, "--epochs", 2, "--frozen-epochs", 0, "--batch-size", 8, "--learning-rate", 0.01)
    result = run("train", "--queries", log, *how, "--save", "adapted", "--json")
    assert result.stderr == ""
    told = json.loads(result.stdout)
    after = json.loads(run("info", "--json").stdout)
    assert len(told["epochs"]) >= 2
    assert told["best_epoch"] > 0
    assert told["adopted"]
    assert after["encoder"] == told["encoder"]
    assert after["encoder"] != before
    assert after["documents"] == 8
    assert "where flows it" in json.loads(run("get", "d0", "--json").stdout)["queries"]
    assert (Path("adapted") / "modules.json").is_file()
    assert not Path("shop.training").exists()
    run("verify")


def test_training_names_what_it_lacks(run: Run, asked: Path, encoder: str) -> None:
    log = write("log.jsonl", [{"text": "x", "document_id": "ghost"}])
    assert "unknown document 'ghost'; add the document first" in run("train", "--queries", log, code=1).stderr
    assert "config.json" in run("train", "--encoder", encoder, code=1).stderr
    run("train", "--epochs", 0, code=2)


def test_tuning_without_held_out_queries_is_refused(run: Run, shop: Path) -> None:
    assert "add documents with three or more queries each" in run("tune", code=1).stderr
    run("tune", "--no-tuning")
    assert "an index whose tuning is off holds no queries out; switch it on" in run("tune", code=1).stderr


def test_the_defaults_are_those_of_the_library() -> None:
    given = {parameter.name: parameter.default for parameter in COMMANDS["train"].params}
    library = FinetuneSettings()
    for name in ("epochs", "frozen_epochs", "batch_size", "learning_rate", "seed"):
        assert given[name] == getattr(library, name)
