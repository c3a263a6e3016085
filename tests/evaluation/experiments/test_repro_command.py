"""`incdsi repro` refuses in one sentence what it cannot do, and writes nothing then."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from incdsi.cli import app


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


def test_the_help_has_examples() -> None:
    said = CliRunner().invoke(app, ["repro", "--help"]).stdout
    assert "incdsi repro squad --out report" in said.split("Examples:")[1]
