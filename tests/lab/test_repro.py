"""`incdsi repro` refuses in one sentence what it cannot do, and writes nothing then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from incdsi.cli import app
from incdsi.text.encoders.torch_encoder import TorchEncoder
from tests.lab.experiments.study_problems import collection
from tests.training.training_problems import tiny_encoder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "name one of squad, nq-passages, nq320k, msmarco, irds:NAME or a folder"),
        (["nq320k"], "say where the collections are with --data FOLDER"),
        (["squad", "--only", "maine"], "no experiment is called maine; there are main, rule, product, curves"),
        (["squad", "--optimiser", "luck"], "the optimiser must be gp or ax, not 'luck'"),
        (["empty"], "empty"),
        (["squad", "--seeds", "1"], "--seeds takes two or more whole numbers such as 1,2,3, not '1'"),
        (["squad", "--seeds", "1,b"], "not '1,b'"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    result = CliRunner().invoke(app, ["repro", *arguments])
    assert result.exit_code == 1, result.output
    assert sentence in result.stderr
    assert "Traceback" not in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a collection, a model beside it, and the folder we are in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tiny_encoder(tmp_path / "tiny").model.save(str(tmp_path / "model"))
    whole = collection()
    rows = {
        "docs": [{"id": document.id, "text": document.text} for document in whole.documents],
        "queries": [{"id": q.id, "text": q.text, "doc_id": q.document_id, "split": q.split} for q in whole.queries],
    }
    Path("made").mkdir()
    for name, some in rows.items():
        Path("made", f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    return tmp_path / "made"


@pytest.mark.usefixtures("made")
def test_a_collection_in_a_folder_is_studied_at_one_command(tmp_path: Path) -> None:
    options = ["--small", "--only", "beta", "--frozen", "--encoder", str(tmp_path / "model"), "--out", "out", "--json"]
    for _ in range(2):  # the second finds all pieces there
        result = CliRunner().invoke(app, ["repro", "./made", *options])
        assert result.exit_code == 0, (result.output, result.exception)
        assert json.loads(result.stdout)["report"].endswith("report.html")
    assert "beta" in Path("out", "report.md").read_text()
    assert Path("out", "split", "qrels-old.txt").exists()


def test_a_folder_of_another_study_is_refused_before_anything_is_learned(made: Path, tmp_path: Path) -> None:
    Path("out").mkdir()
    Path("out", "study.json").write_text('{"dataset": "another"}')
    options = ["--small", "--encoder", str(tmp_path / "model"), "--encoder-epochs", "1", "--out", "out"]
    result = CliRunner().invoke(app, ["repro", str(made), *options])
    assert result.exit_code == 1
    assert "out holds a study with another" in result.stderr
    assert not (tmp_path / "cache").exists()


def test_the_encoder_learns_first_when_asked(made: Path, tmp_path: Path) -> None:
    options = ["--small", "--only", "beta", "--frozen", "--encoder", str(tmp_path / "model"), "--encoder-epochs", "1"]
    result = CliRunner().invoke(app, ["repro", str(made), *options, "--out", "out"])
    assert result.exit_code == 0, (result.output, result.exception)
    (learned,) = (tmp_path / "cache").glob("incdsi/benchmarks/made-stage1-*/encoder")
    about = json.loads(Path("out", "study.json").read_text())
    assert about["encoder_epochs"] == 1
    assert about["encoder"] == TorchEncoder.load(learned).fingerprint


@pytest.mark.usefixtures("made")
@pytest.mark.slow
def test_several_seeds_have_a_folder_each_and_one_report(tmp_path: Path) -> None:
    options = ["--small", "--documents", "50", "--only", "main", "--frozen", "--encoder", str(tmp_path / "model")]
    for _ in range(2):  # the second finds all pieces there
        result = CliRunner().invoke(app, ["repro", "./made", *options, "--seeds", "1,2", "--out", "out", "--json"])
        assert result.exit_code == 0, (result.output, result.exception)
        assert set(json.loads(result.stdout)["seconds"]) == {"seed 1", "seed 2"}
    said = Path("out", "report.md").read_text()
    assert "2 seeds" in said
    assert "with every seed" in said
    assert Path("out", "seed-2", "report.md").exists()


def test_the_help_has_examples() -> None:
    said = CliRunner().invoke(app, ["repro", "--help"]).stdout
    assert "incdsi repro squad --out report" in said.split("Examples:")[1]
