"""The real command line over a tiny real encoder, exported once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from incdsi.cli import app
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "boots", "title": "Waterproof boots", "text": "hiking boots for a deep river", "lang": "en", "year": 2001},
    {"id": "sea", "text": "how deep is the sea", "lang": "en", "year": 2005, "queries": ["is the sea deep"]},
    {"id": "mountain", "title": "Mountain", "text": "the mountain is long and the river flows", "lang": "de"},
]

Run = Callable[..., Any]


@pytest.fixture
def encoder(exported: OnnxEncoder) -> str:
    return str(exported.folder)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("add", ...)` calls the command line in an empty folder, expecting an exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INCDSI_INDEX", "shop")

    def call(*arguments: object, code: int = 0, stdin: str | bytes | None = None) -> Any:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
        assert "Traceback" not in result.output
        return result

    return call


@pytest.fixture
def shop(run: Run, encoder: str) -> Path:
    """An index with DOCUMENTS in the folder `shop`."""
    run("add", write("docs.jsonl", DOCUMENTS), "--encoder", encoder)
    return Path("shop")


def write(name: str, rows: Sequence[object]) -> Path:
    path = Path(name)
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
