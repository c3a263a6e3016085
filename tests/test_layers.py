"""Imports point down only, and torch stays in its rooms."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "incdsi"
LAYERS = [
    {"cli"},
    {"server", "demo"},
    {"evaluation"},
    {"baselines"},
    {"training"},
    {"index"},
    {"search", "client"},
    {"text", "solver", "rows", "store", "lexical", "readers"},
    {"documents", "durable", "hyperparameters", "markdown", "preserve", "progress"},
    {"errors"},
]
HEIGHT = {room: len(LAYERS) - level for level, rooms in enumerate(LAYERS) for room in rooms}
NEEDS_TORCH = (
    "training/",
    "baselines/",
    "solver/lbfgs.py",
    "text/encoders/torch",
    "text/encoders/export",
    "text/generators/seq2seq",
)
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not node.level:
            # The root defines its version alone; anything else taken from it is a room.
            inside = {f"incdsi.{alias.name}" for alias in node.names if alias.name != "__version__"}
            names |= inside if node.module == "incdsi" else {node.module or ""}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_its_own_room_and_from_below(path):
    if path == PACKAGE / "__init__.py":
        return
    here = room_of(path)
    assert here in HEIGHT, f"{here} has no layer: add it to this test and to docs/ARCHITECTURE.md"
    for name in imported(path):
        if name.split(".")[0] != "incdsi":
            continue
        there = name.split(".")[1]
        assert there in HEIGHT, f"import {there} from the module that defines it, not from the package root"
        assert there == here or HEIGHT[there] < HEIGHT[here], f"{here} may not import {there}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_torch_is_imported_only_where_it_is_the_point(path):
    relative = str(path.relative_to(PACKAGE))
    heavy = {"torch", "transformers", "sentence_transformers", "accelerate"}
    if not relative.startswith(NEEDS_TORCH):
        assert not {name.split(".")[0] for name in imported(path, top_level_only=True)} & heavy


def test_importing_incdsi_does_not_import_torch():
    rooms = "incdsi, incdsi.solver, incdsi.rows, incdsi.index, incdsi.server.run, incdsi.cli"
    code = f"import sys, {rooms}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("given", "expected"), [(None, "16"), ("26", "26")])
def test_blas_is_told_not_to_spin_before_numpy_is_there_unless_the_user_has_spoken(given, expected):
    script = "import sys, incdsi, os; print('numpy' in sys.modules, os.environ['OPENBLAS_THREAD_TIMEOUT'])"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"}
    if given is not None:
        environment["OPENBLAS_THREAD_TIMEOUT"] = given
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", expected]


@pytest.mark.parametrize(("given", "expected"), [(None, "1"), ("4", "4")])
def test_the_command_line_has_one_thread_of_blas_unless_the_user_has_spoken(given, expected):
    script = "import sys, incdsi.cli, os; print('numpy' in sys.modules, os.environ['OPENBLAS_NUM_THREADS'])"
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    if given is not None:
        environment["OPENBLAS_NUM_THREADS"] = given
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", expected]
