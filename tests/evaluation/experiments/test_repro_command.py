"""`incdsi repro` refuses in one sentence what it cannot do, and writes nothing then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from incdsi.cli import app
from tests.evaluation.experiments.study_problems import collection
from tests.training.training_problems import tiny_encoder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "expected a dataset of squad, nq-passages, nq320k, msmarco or a folder"),
        (["nq320k"], "say where it lies with --data FOLDER"),
        (["squad", "--only", "maine"], "expected experiments of main, curves"),
        (["empty"], "empty"),
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


def test_a_collection_in_a_folder_is_studied_at_one_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tiny_encoder(tmp_path / "tiny").model.save(str(tmp_path / "model"))
    made = collection()
    rows = {
        "docs": [{"id": document.id, "text": document.text} for document in made.documents],
        "queries": [{"id": q.id, "text": q.text, "doc_id": q.document_id, "split": q.split} for q in made.queries],
    }
    Path("made").mkdir()
    for name, some in rows.items():
        Path("made", f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    options = ["--small", "--only", "beta", "--frozen", "--encoder", str(tmp_path / "model"), "--out", "out", "--json"]
    for _ in range(2):  # the second finds all pieces there
        result = CliRunner().invoke(app, ["repro", "./made", *options])
        assert result.exit_code == 0, (result.output, result.exception)
        assert json.loads(result.stdout)["report"].endswith("report.html")
    assert "beta" in Path("out", "report.md").read_text()
    assert Path("out", "split", "qrels-old.txt").exists()


def test_the_help_has_examples() -> None:
    said = CliRunner().invoke(app, ["repro", "--help"]).stdout
    assert "incdsi repro squad --out report" in said.split("Examples:")[1]
