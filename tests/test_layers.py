"""Imports point down only, from the laboratory to the product, and torch stays in its rooms."""

from __future__ import annotations

import ast
import graphlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from incdsi import Index

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE, LABORATORY = SOURCE / "incdsi", SOURCE / "incdsi_lab"
LAYERS = [
    {"cli", "pyterrier", "mteb", "dspy"},
    {"server", "demo", "adapter", "mcp"},
    {"index"},
    {"search", "training", "client"},
    {"engine", "gaps"},
    {"text", "solver", "rows", "store", "lexical", "readers", "trec", "search_index"},
    {"clicks", "filters", "info", "records"},
    {"confidence", "cores", "documents", "durable", "hyperparameters", "mapped", "markdown", "preserve", "progress"},
    {"errors"},
]
HEIGHT = {room: len(LAYERS) - level for level, rooms in enumerate(LAYERS) for room in rooms}
NEEDS_TORCH = (
    "incdsi/training/",
    "incdsi_lab/lbfgs.py",
    "incdsi/text/encoders/torch",
    "incdsi/text/encoders/export",
    "incdsi/text/generators/seq2seq",
    "incdsi_lab/baselines/",
)
MODULES = sorted(PACKAGE.rglob("*.py"))
LABORATORY_MODULES = sorted(LABORATORY.rglob("*.py"))
BASELINES = sorted((LABORATORY / "baselines").rglob("*.py"))


def named(path: Path) -> str:
    return str(path.relative_to(SOURCE))


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


@pytest.mark.parametrize("path", MODULES, ids=named)
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


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) == "index"], ids=named)
def test_an_index_knows_its_documents_only_through_an_engine(path):
    """The one place that names a kind of engine is where an index is created and opened."""
    rooms = {".".join(name.split(".")[1:3]) for name in imported(path) if name.startswith("incdsi.")}
    assert not {room for room in rooms if room.split(".")[0] in ("store", "lexical")}
    assert not rooms & {"engine.local", "engine.milvus"} or path.name == "making.py"


def test_no_modules_import_each_other_in_a_circle():
    modules = {".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in MODULES}
    needs: dict[str, set[str]] = {}
    for path in MODULES:
        here = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        needs[here] = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                parts = {f"{node.module}.{alias.name}" for alias in node.names}
                needs[here] |= (parts & modules) | ({node.module} & modules if parts - modules else set())
    graphlib.TopologicalSorter(needs).prepare()  # raises CycleError


def test_no_file_of_the_product_has_more_than_400_lines():
    assert [named(path) for path in MODULES if len(path.read_text().splitlines()) > 400] == []


def test_an_index_has_at_most_thirty_public_methods_and_a_file_of_250_lines():
    public = [name for name in dir(Index) if not name.startswith("_") and callable(getattr(Index, name))]
    assert len(public) <= 30, public
    assert len((PACKAGE / "index" / "index.py").read_text().splitlines()) <= 250


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_nothing_of_the_product_imports_the_laboratory(path):
    assert not {name for name in imported(path) if name.split(".")[0] == LABORATORY.name}


@pytest.mark.parametrize("path", BASELINES, ids=named)
def test_baselines_know_nothing_else_of_the_laboratory(path):
    ours = {name for name in imported(path) if name.split(".")[0] == LABORATORY.name}
    assert all(name.startswith("incdsi_lab.baselines.") for name in ours), ours


def test_without_the_laboratory_every_command_but_its_own_is_there():
    names = "[command.name or command.callback.__name__ for command in app.registered_commands]"
    code = f"{{}}; from incdsi.cli import app; print(*{names})"
    there, missing = (
        subprocess.run([sys.executable, "-c", code.format(before)], capture_output=True, text=True, check=True)
        for before in ("import sys", "import sys; sys.modules['incdsi_lab'] = None")
    )
    assert set(there.stdout.split()) - set(missing.stdout.split()) == {"repro"}
    assert {"add", "search"} < set(missing.stdout.split())


@pytest.mark.parametrize("path", [*MODULES, *LABORATORY_MODULES], ids=named)
def test_torch_is_imported_only_where_it_is_the_point(path):
    heavy = {"torch", "transformers", "sentence_transformers", "accelerate"}
    if not named(path).startswith(NEEDS_TORCH):
        assert not {name.split(".")[0] for name in imported(path, top_level_only=True)} & heavy


def test_importing_incdsi_does_not_import_torch():
    rooms = "incdsi, incdsi.solver, incdsi.rows, incdsi.index, incdsi.server.run, incdsi.cli"
    code = f"import sys, {rooms}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("room", "variable", "given", "expected"),
    [
        ("incdsi", "OPENBLAS_THREAD_TIMEOUT", None, "16"),
        ("incdsi", "OPENBLAS_THREAD_TIMEOUT", "26", "26"),
        ("incdsi.cli", "OPENBLAS_NUM_THREADS", None, "1"),
        ("incdsi.cli", "OPENBLAS_NUM_THREADS", "4", "4"),
    ],
)
def test_blas_is_told_before_numpy_is_there_unless_the_user_has_spoken(room, variable, given, expected):
    script = f"import sys, {room}, os; print('numpy' in sys.modules, os.environ[{variable!r}])"
    environment = {name: value for name, value in os.environ.items() if name != variable}
    if given is not None:
        environment[variable] = given
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", expected]
