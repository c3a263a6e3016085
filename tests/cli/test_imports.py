"""A command imports what it needs: this is most of what a search from a shell takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from incdsi import cli
from incdsi.index import Index
from tests.index.index_samples import docs
from tests.index.tiny_models import tiny_model

SHOW = """
import sys
from incdsi.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
NEVER = {"torch", "transformers", "pydantic", "fastapi", "uvicorn", "httpx", "scipy", "pyarrow", "optuna", "matplotlib"}
TO_FETCH = {"http.client", "ssl", "zipfile", "importlib.metadata", "incdsi.text.encoders.bert"}
TO_SEARCH = {"numpy", "onnxruntime", "tokenizers", "apsw", "simsimd", "incdsi.index"}


def imported(*arguments: str) -> set[str]:
    """The modules in memory when a command ends."""
    command = [sys.executable, "-c", SHOW, *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_brings_nothing_that_searches(argument: str) -> None:
    assert not imported(argument) & (NEVER | TO_FETCH | TO_SEARCH)


def test_a_search_brings_nothing_that_trains_serves_or_fetches(tmp_path: Path) -> None:
    with Index.create(tmp_path / "index", tiny_model(tmp_path / "model")) as index:
        index.add_many(docs(3))
    found = imported("search", "river", "--index", str(tmp_path / "index"))
    assert {"numpy", "onnxruntime", "incdsi.index"} <= found
    assert not found & (NEVER | TO_FETCH)
    others = {f"incdsi.cli.{file}" for file in cli.FILES} - {"incdsi.cli.searching"}
    assert not found & others, "describing the commands of a file takes milliseconds each"


def test_every_command_is_in_the_file_that_is_imported_for_it() -> None:
    found = {(str(one.callback.__module__), one.callback.__name__) for one in cli.app.registered_commands}
    told = {(f"incdsi.cli.{file}", command) for file, commands in cli.FILES.items() for command in commands}
    assert {one for one in found if one[0] != "incdsi_lab.repro"} == told
